"""Coefficients, errors, p values, likelihood and deviance are those that other libraries find in the pooled data, however rows are split."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import roundelay as rl
from tests.regression.studies import (
    SPLITS,
    STUDIES,
    breast_cancer,
    diabetes,
    digits,
    fair,
    farthest,
    glm_of,
    mnlogit,
    ols,
    pooled_fit,
    randhie,
    rossi,
    scotland,
    split,
    wine,
)


@pytest.mark.parametrize("how", SPLITS)
@pytest.mark.parametrize("case", STUDIES, ids=lambda case: case.name)
def test_the_result_is_that_of_the_pooled_data(case, how):
    sites = split(case.rows(), how, case.label, case.sites)
    fit = rl.glm(case.formula, sites, **case.planned)
    assert fit.result.converged and fit.result.rows == sum(map(len, sites.values()))
    for what, apart in farthest(fit.result, pooled_fit(case, sites)).items():
        # lifelines stops at 1e-8 of its own accord.
        assert apart < (1e-6 if case.name == "rossi" else 1e-9), what


ROBUST = {"hc0": "HC0", "hc1": "HC1", "hc2": "HC2", "hc3": "HC3"}


def _clusters(sites: dict[str, pd.DataFrame]) -> dict:
    return {
        "cov_type": "cluster",
        "cov_kwds": {"groups": np.repeat(np.arange(len(sites)), [len(one) for one in sites.values()])},
    }


@pytest.mark.parametrize("errors", [*ROBUST, "site"])
def test_robust_errors_of_squares_are_those_of_statsmodels(errors):
    sites = split(diabetes(), "evenly", "target", 4)
    formula = "target ~ bmi * bp + s5"
    kind = _clusters(sites) if errors == "site" else {"cov_type": ROBUST[errors]}
    found = farthest(rl.glm(formula, sites, errors=errors).result, ols(formula, pd.concat(sites.values()), **kind))
    assert max(found.values()) < 1e-10


@pytest.mark.parametrize("errors", ["hc0", "site"])
@pytest.mark.parametrize(
    ("rows", "formula", "planned", "pooled"),
    [
        (fair, "any ~ age + religious", {"family": "binomial"}, glm_of("Binomial")),
        (fair, "any ~ age + religious", {"family": "binomial", "link": "probit"}, glm_of("Binomial", "Probit")),
        (randhie, "mdvis ~ lncoins + physlm", {"family": "poisson"}, glm_of("Poisson")),
        (scotland, "YES ~ COUTAX + MOR", {"family": "gamma"}, glm_of("Gamma", "Log")),
        (wine, "grape ~ alcohol + hue", {"family": "multinomial"}, mnlogit),
    ],
)
def test_robust_errors_of_other_families_are_those_of_statsmodels(rows, formula, planned, pooled, errors):
    sites = split(rows(), "evenly", "", 4)
    kind = _clusters(sites) if errors == "site" else {"cov_type": "HC0"}
    result = rl.glm(formula, sites, errors=errors, **planned).result
    assert max(farthest(result, pooled(formula, pd.concat(sites.values()), **kind)).values()) < 1e-7


def test_hc2_and_hc3_of_a_logistic_regression_follow_from_leverages():
    rows = fair().iloc[::8]
    sites = split(rows, "evenly", "any", 3)
    design = np.column_stack([np.ones(len(rows)), rows[["age", "religious"]]])
    for errors, power in (("hc2", 0.5), ("hc3", 1.0)):
        result = rl.glm("any ~ age + religious", sites, "binomial", errors=errors).result
        chance = 1.0 / (1.0 + np.exp(-design @ [term.estimate for term in result.terms]))
        weighted = design * (chance * (1.0 - chance))[:, None]
        inverse = np.linalg.inv(design.T @ weighted)
        leverage = np.einsum("ni,ij,nj->n", weighted, inverse, design)
        scores = design * ((rows["any"].to_numpy() - chance) / (1.0 - leverage) ** power)[:, None]
        expected = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
        assert [term.std_error for term in result.terms] == pytest.approx(expected, rel=1e-9)


def test_robust_errors_of_cox_are_those_of_lifelines_where_nobody_dies_at_the_same_time():
    from lifelines import CoxPHFitter

    rows = rossi()
    rows["week"] = rows.week + np.random.default_rng(0).permutation(len(rows)) / (2.0 * len(rows))
    sites = split(rows, "evenly", "week", 3)
    result = rl.glm("Surv(week, arrest) ~ fin + age + prio", sites, "cox", errors="hc0").result
    pooled = pd.concat([one.assign(stratum=name) for name, one in sites.items()])[
        ["week", "arrest", "fin", "age", "prio", "stratum"]
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = CoxPHFitter().fit(
            pooled, "week", "arrest", strata=["stratum"], robust=True, fit_options={"precision": 1e-13}
        )
    errors = other.standard_errors_[[term.name for term in result.terms]]
    assert [term.std_error for term in result.terms] == pytest.approx(errors, rel=1e-6)


@pytest.mark.parametrize(
    ("rows", "formula", "planned", "pooled"),
    [
        (diabetes, "target ~ bmi + bp", {}, ols),
        (breast_cancer, "target ~ mean_texture + mean_symmetry", {"family": "binomial"}, glm_of("Binomial")),
        (
            breast_cancer,
            "target ~ mean_texture",
            {"family": "binomial", "link": "probit"},
            glm_of("Binomial", "Probit"),
        ),
        (randhie, "mdvis ~ lncoins + physlm", {"family": "poisson"}, glm_of("Poisson")),
        (scotland, "YES ~ COUTAX + MOR", {"family": "gamma"}, glm_of("Gamma", "Log")),
        (digits, "digit ~ pixel_2_4 + pixel_5_5", {"family": "multinomial"}, mnlogit),
    ],
)
def test_a_constant_for_each_site_is_an_indicator_of_each_site(rows, formula, planned, pooled):
    sites = split(rows(), "evenly", "", 3)
    fit = rl.glm(f"{formula} + site", sites, **planned)
    other = pooled(f"{formula} + place", pd.concat([one.assign(place=name) for name, one in sites.items()]))
    found = farthest(fit.result, other)
    assert max(found.values()) < 1e-6 and not any("ntercept" in term.name for term in fit.result.terms)


def test_offset_and_weights():
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    rows = fair().assign(years=lambda one: one.yrs_married + 1.0, counted=lambda one: 1.0 + one.children)
    sites = split(rows, "evenly", "any", 3)
    rate = rl.glm("children ~ age + offset(log(years))", sites, "poisson").result
    other = smf.glm("children ~ age", rows, family=sm.families.Poisson(), offset=np.log(rows.years)).fit(
        tol=1e-14, maxiter=100
    )
    assert [term.estimate for term in rate.terms] == pytest.approx(other.params, rel=1e-9)
    assert (rate.deviance, rate.null_deviance) == pytest.approx((other.deviance, other.null_deviance), rel=1e-9)
    weighted = rl.glm("age ~ educ + weights(counted)", sites).result
    line = smf.wls("age ~ educ", rows, weights=rows.counted).fit()
    assert [term.std_error for term in weighted.terms] == pytest.approx(line.bse, rel=1e-9)
    assert (weighted.log_likelihood, weighted.aic, weighted.fit) == pytest.approx(
        (line.llf, line.aic, line.rsquared), rel=1e-9
    )
    chance = rl.glm("any ~ age + offset(log(years))", sites, "binomial").result
    logit = smf.glm("any ~ age", rows, family=sm.families.Binomial(), offset=np.log(rows.years)).fit(
        tol=1e-14, maxiter=100
    )
    assert [term.estimate for term in chance.terms] == pytest.approx(logit.params, rel=1e-8)
    # statsmodels has the null model without the offset; this is the deviance of the best constant beside it.
    null = smf.glm("any ~ 1", rows, family=sm.families.Binomial(), offset=np.log(rows.years)).fit(
        tol=1e-14, maxiter=100
    )
    assert chance.null_deviance == pytest.approx(null.deviance, rel=1e-6)


def test_a_ridge_is_that_of_scikit_learn_and_never_on_the_constant():
    from sklearn.linear_model import LogisticRegression, Ridge

    rows = breast_cancer()
    names = ["mean_radius", "mean_texture", "worst_area"]
    sites, standard = split(rows, "by label", "target", 4), (rows[names] - rows[names].mean()) / rows[names].std(ddof=0)
    formula = "target ~ " + " + ".join(names)
    fit = rl.glm(formula, sites, "binomial", ridge=0.1)
    other = LogisticRegression(C=1.0 / (0.1 * len(rows)), tol=1e-12, max_iter=10_000).fit(standard, rows.target)
    own = np.array([fit.coefficients[name] for name in names]) * rows[names].std(ddof=0)
    assert own.to_numpy() == pytest.approx(other.coef_[0], rel=1e-6)
    assert all(term.std_error is None for term in fit.result.terms) and any(
        "shrunk" in note for note in fit.result.notes
    )
    line = rl.glm("worst_area ~ mean_radius + mean_texture", sites, ridge=0.5).coefficients
    ridge = Ridge(alpha=0.5 * len(rows)).fit(standard[names[:2]], rows.worst_area)
    assert [line[name] * rows[name].std(ddof=0) for name in names[:2]] == pytest.approx(ridge.coef_, rel=1e-8)


def test_a_ridge_on_many_levels_does_not_depend_on_which_is_the_reference():
    sites = split(wine(), "evenly", "target", 3)
    chances = []
    for reference in ("barbera", "barolo", "grignolino"):
        fit = rl.glm("grape ~ alcohol + hue", sites, "multinomial", ridge=0.1, references={"grape": reference})
        levels = fit.study.regression.classes
        eta = {levels[0]: 0.0} | {
            level: fit.coefficients[f"{level}: Intercept"]
            + 13.0 * fit.coefficients[f"{level}: alcohol"]
            + fit.coefficients[f"{level}: hue"]
            for level in levels[1:]
        }
        whole = sum(map(np.exp, eta.values()))
        chances.append({level: np.exp(one) / whole for level, one in eta.items()})
    assert chances[0] == pytest.approx(chances[1], rel=1e-9) and chances[0] == pytest.approx(chances[2], rel=1e-9)


def test_what_is_said_beside_the_coefficients():
    from sklearn.metrics import roc_auc_score, roc_curve
    from statsmodels.stats.outliers_influence import variance_inflation_factor

    rows = breast_cancer()
    names = ["mean_radius", "mean_texture", "mean_symmetry"]
    sites = split(rows, "evenly", "target", 4)
    fit = rl.glm("target ~ " + " + ".join(names), sites, "binomial")
    result = fit.result
    design = np.column_stack([np.ones(len(rows)), rows[names]])
    assert [term.inflation for term in result.terms[1:]] == pytest.approx(
        [variance_inflation_factor(design, one) for one in (1, 2, 3)]
    )
    chance = 1.0 / (1.0 + np.exp(-design @ [term.estimate for term in result.terms]))
    # Rows of one bin of a hundred count as ties.
    binned = np.minimum((chance * 100).astype(int), 99)
    assert result.roc.area == round(roc_auc_score(rows.target, binned), 3)
    assert abs(result.roc.area - roc_auc_score(rows.target, chance)) < 5e-3
    assert sum(one.rows for one in result.calibration if one.rows) == len(rows)
    # The curve is that of all bins at fewer points: each step has five rows with the outcome, and five without.
    false, true, _ = roc_curve(rows.target, binned, drop_intermediate=False)
    shown = np.column_stack([result.roc.false_positive, result.roc.true_positive])
    whole = np.column_stack([false, true])
    assert all(np.isclose(whole, point, rtol=0.0, atol=1e-12).all(axis=1).any() for point in shown)
    steps = np.diff(shown, axis=0) * [(rows.target == 0).sum(), rows.target.sum()]
    assert len(steps) > 5 and (steps > 5 - 1e-9).all() and shown[-1].tolist() == [1.0, 1.0]
    filled = [one for one in result.calibration if one.rows]
    assert len(filled) > 2
    assert all(min(one.observed, 1.0 - one.observed) * one.rows > 5 - 1e-9 for one in filled)
    assert sum(one.rows * one.predicted for one in filled) == pytest.approx(chance.sum())
    assert sum(one.rows * one.observed for one in filled) == pytest.approx(rows.target.sum())
    pearson = (rows.target - chance) / np.sqrt(chance * (1.0 - chance))
    counted, _ = np.histogram(
        np.clip(pearson, result.residuals.edges[0], np.nextafter(result.residuals.edges[-1], 0)), result.residuals.edges
    )
    assert all(own in (None, one) for own, one in zip(result.residuals.counts, counted.tolist(), strict=True))
    hidden = [own is None for own in result.residuals.counts]
    assert all(few for few, one in zip(hidden, counted.tolist(), strict=True) if 0 < one < 5)
    assert sum(hidden) <= ((counted > 0) & (counted < 5)).sum() + 1
    assert result.events == rows.target.sum()


def test_heterogeneity_is_cochrans_q_of_the_sites_own_estimates():
    import statsmodels.formula.api as smf

    sites = split(diabetes(), "by label", "target", 5)
    result = rl.glm("target ~ bmi + bp", sites, heterogeneity=True).result
    for one in result.heterogeneity:
        own = [smf.ols("target ~ bmi + bp", rows).fit() for rows in sites.values()]
        precision = np.array([result.dispersion**-1 / fit.normalized_cov_params.loc[one.term, one.term] for fit in own])
        slopes = np.array([fit.params[one.term] for fit in own])
        mean = precision @ slopes / precision.sum()
        q = float(precision @ (slopes - mean) ** 2)
        assert (one.q, one.p_value) == pytest.approx((q, stats.chi2.sf(q, 4)), rel=1e-6)
        assert one.i_squared == pytest.approx(max(0.0, (q - 4) / q), rel=1e-6)
    assert len(result.heterogeneity) == 2
    # With three sites two of them would know the third's.
    assert not rl.glm("target ~ bmi + bp", split(diabetes(), "evenly", "", 3), heterogeneity=True).result.heterogeneity


def test_survival_is_that_of_kaplan_and_meier_on_the_agreed_times():
    from lifelines import KaplanMeierFitter

    rows = rossi()
    fit = rl.glm("Surv(week, arrest) ~ age", split(rows, "evenly", "week", 3), "cox")
    # Agreed bins with few arrests are joined, and times rounded up to where these end.
    ends = np.array([point.time for point in fit.result.survival])
    assert set(ends) <= set(fit.known.survival_edges) and rows.week.max() <= ends[-1]
    other = KaplanMeierFitter().fit(ends[np.searchsorted(ends, rows.week)], rows.arrest)
    for point in fit.result.survival:
        low, high = other.confidence_interval_survival_function_.loc[: point.time].iloc[-1]
        assert (point.survival, point.low, point.high) == pytest.approx(
            (other.predict(point.time), low, high), rel=1e-9
        )
        assert point.events >= 5 and point.at_risk >= 5
    assert len(fit.result.survival) > 5
    assert sum(point.events for point in fit.result.survival) == rows.arrest.sum()
