"""The table of a fit without a penalty is the one that statsmodels and lifelines print of all rows together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi
from lifelines.utils import concordance_index
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from roundelay.estimators import (
    RingCox,
    RingLinearRegression,
    RingLogisticRegression,
    RingPoissonRegressor,
    RingRidge,
)
from roundelay.estimators.survival import concordance, signed_times, times_and_events
from tests.estimators.splits import split

CLOSE = {"rtol": 1e-6, "atol": 1e-9}


def columns(result):
    names = ("estimate", "std_error", "statistic", "p_value", "low", "high")
    return {name: np.array([getattr(term, name) for term in result.terms]) for name in names}


def agree(result, params, errors, p_values, intervals):
    found = columns(result)
    np.testing.assert_allclose(found["estimate"], params, **CLOSE)
    np.testing.assert_allclose(found["std_error"], errors, **CLOSE)
    np.testing.assert_allclose(found["p_value"], p_values, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(np.column_stack([found["low"], found["high"]]), intervals, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("constant", [True, False], ids=["", "no constant"])
@pytest.mark.parametrize("family", ["gaussian", "poisson", "binomial"])
def test_against_statsmodels(family, constant, weighted):
    data = load_breast_cancer if family == "binomial" else load_diabetes
    features, target = data(return_X_y=True, as_frame=True)
    features = features.iloc[:, :5] if family == "binomial" else features * 20.0 + 1.0
    options = {"fit_intercept": constant}
    ours = {
        "gaussian": RingLinearRegression(**options),
        "poisson": RingPoissonRegressor(alpha=0.0, **options),
        "binomial": RingLogisticRegression(C=np.inf, **options),
    }[family]
    weight = np.random.default_rng(0).uniform(0.3, 2.0, len(target)) if weighted else None
    result = ours.fit(features, target, split("90/10", target), weight).result()
    design = sm.add_constant(features) if constant else features
    kind = {"gaussian": sm.families.Gaussian(), "poisson": sm.families.Poisson(), "binomial": sm.families.Binomial()}
    if family == "gaussian":
        theirs = sm.WLS(target, design, 1.0 if weight is None else weight).fit()
        assert result.fit == pytest.approx(theirs.rsquared, rel=1e-9)
        assert result.dispersion == pytest.approx(theirs.scale, rel=1e-9) and result.degrees == theirs.df_resid
    else:
        theirs = sm.GLM(target, design, kind[family], var_weights=weight).fit(tol=1e-13, maxiter=200)
        assert result.deviance == pytest.approx(theirs.deviance, rel=1e-9)
        if constant:  # without one statsmodels' null model has one all the same
            assert result.null_deviance == pytest.approx(theirs.null_deviance, rel=1e-9)
    agree(result, theirs.params, theirs.bse, theirs.pvalues, theirs.conf_int())
    assert result.log_likelihood == pytest.approx(theirs.llf, rel=1e-9)
    assert result.aic == pytest.approx(theirs.aic, rel=1e-9)
    np.testing.assert_allclose(result.covariance, theirs.cov_params(), rtol=1e-5, atol=1e-6)
    assert [term.name for term in result.terms] == ["Intercept"] * constant + list(features.columns)
    assert result.sites == ("0", "1") and result.rows == len(target)
    assert result.events == (int(target.sum()) if family == "binomial" else None)


def test_many_classes_against_statsmodels():
    features, target = load_wine(return_X_y=True, as_frame=True)
    features, words = features.iloc[:, :3], np.array(["red", "rosé", "white"])[target]
    result = RingLogisticRegression(C=np.inf).fit(features, words, split("by label", target)).result()
    theirs = sm.MNLogit(target, sm.add_constant(features)).fit(disp=False, tol=1e-12, maxiter=200)
    agree(
        result, theirs.params.to_numpy().T.reshape(-1), theirs.bse.to_numpy().T.reshape(-1),
        theirs.pvalues.to_numpy().T.reshape(-1), theirs.conf_int().to_numpy(),
    )  # fmt: skip
    assert result.log_likelihood == pytest.approx(theirs.llf, rel=1e-9)
    assert result.fit == pytest.approx(theirs.prsquared, rel=1e-9)
    assert result.terms[0].name == "rosé: Intercept" and result.terms[-1].name == "white: ash"


@pytest.mark.parametrize("name", ["evenly", "by label", "90/10", "one row", "one site", ""])
def test_survival_against_lifelines(name):
    """Each site is a stratum; without sites there is one, and the rows may be anywhere."""
    rossi = load_rossi()
    features, target = rossi.drop(columns=["week", "arrest"]), rossi[["week", "arrest"]]
    sites = split(name, rossi["arrest"].to_numpy()) if name else None
    ours = RingCox().fit(features, target, sites=sites)
    frame = rossi.assign(stratum=0 if sites is None else sites)
    theirs = CoxPHFitter().fit(frame, "week", "arrest", strata=["stratum"], fit_options={"precision": 1e-13})
    agree(
        ours.result(), theirs.params_, theirs.standard_errors_, theirs.summary["p"], theirs.confidence_intervals_,
    )  # fmt: skip
    assert ours.result().log_likelihood == pytest.approx(theirs.log_likelihood_, rel=1e-9)
    assert ours.result().events == 114 and ours.result().deviance is None
    risk = ours.predict(features)
    assert ours.score(features, target) == pytest.approx(concordance_index(rossi["week"], -risk, rossi["arrest"]))
    assert "hazard ratio" in ours.summary() and len(ours.run_.x) == (1 if sites is None else len(set(sites)))


def test_survival_with_a_ridge_against_lifelines():
    rossi = load_rossi()
    features = rossi.drop(columns=["week", "arrest"])
    scaled = (features - features.mean()) / features.std()  # lifelines shrinks them in these units
    frame = scaled.assign(week=rossi["week"], arrest=rossi["arrest"])
    theirs = CoxPHFitter(penalizer=0.1).fit(frame, "week", "arrest", fit_options={"precision": 1e-13})
    ours = RingCox(alpha=0.1).fit(scaled, rossi[["week", "arrest"]])
    np.testing.assert_allclose(ours.coef_, theirs.params_, **CLOSE)
    with pytest.raises(ValueError, match="no standard errors"):
        ours.summary()


def test_the_ways_to_write_survival():
    times, events = np.array([0.0, 2.0, 3.0, 0.0]), np.array([1, 0, 1, 0])
    fields = np.array(list(zip(events.astype(bool), times, strict=True)), dtype=[("died", "?"), ("after", "f8")])
    for target in (np.column_stack([times, events]), pd.DataFrame({"t": times, "e": events}), fields):
        again = times_and_events(signed_times(target))
        assert (again[0] == times).all() and (again[1] == events).all()
    assert (times_and_events(np.array([3.0, -2.0]))[1] == [1.0, 0.0]).all()
    with pytest.raises(ValueError, match="row 1 is neither 0 nor 1"):
        signed_times(np.array([[1.0, 1.0], [2.0, 3.0]]))
    with pytest.raises(ValueError, match="row 0 is below 0"):
        signed_times(np.array([[-1.0, 1.0]]))
    with pytest.raises(ValueError, match="boolean one for the event"):
        signed_times(np.array([(1.0, 2.0)], dtype=[("a", "f8"), ("b", "f8")]))
    with pytest.raises(ValueError, match="No two rows"):
        concordance(np.ones(2), np.ones(2), np.zeros(2))


def test_what_the_rows_do_not_say_has_no_table():
    """A ridge leaves no errors; of columns that follow from each other it is said, and one that does not vary has none."""
    features, target = load_diabetes(return_X_y=True, as_frame=True)
    with pytest.raises(ValueError, match="no standard errors"):
        RingRidge().fit(features, target).result()
    refitted = RingPoissonRegressor(alpha=0.0).fit(features, target).set_params(alpha=1.0).fit(features, target)
    with pytest.raises(ValueError, match="no standard errors"):
        refitted.result()
    doubled = features.assign(again=2.0 * features["bmi"], still=3.0)
    result = RingLinearRegression().fit(doubled, target).result()
    assert "follow from others" in result.notes[0] and result.terms[-1].std_error is None
    assert RingLinearRegression().fit(features, target).result().notes == ()


def test_a_monotone_likelihood_is_said():
    """Who is at the head of the column dies first: the larger its coefficient, the better."""
    column = np.arange(8.0)[:, None]
    with pytest.warns(match="choose an alpha above 0"):
        RingCox().fit(column, -column[:, 0] + 9.0)
