"""What a fitted regression predicts: as statsmodels, lifelines and scikit-learn do with the pooled rows, and sentences for what it can't."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import lifelines
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from lifelines.datasets import load_rossi
from sklearn.linear_model import LogisticRegression
from statsmodels.datasets import fair

from roundelay.regression.pooled import Fit, glm
from roundelay.regression.predicting import as_sklearn, predictions
from roundelay.regression.shown.printed import printed
from roundelay.regression.shown.report import report


def people() -> pd.DataFrame:
    frame = fair.load_pandas().data[::8].reset_index(drop=True)
    frame["faith"] = np.array(["none", "mild", "fair", "strong"])[frame["religious"].astype(int) - 1]
    frame["any"] = (frame["affairs"] > 0).astype(float)
    frame["count"] = np.minimum(np.ceil(frame["affairs"]), 8.0)
    frame["cost"] = 1.0 + frame["affairs"] + 0.1 * frame["age"]
    return frame


def apart(frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
    return {f"site {number}": frame.iloc[number::4] for number in range(4)}


NEW = pd.DataFrame(
    {
        "age": [22.0, 37.0, 42.0],
        "faith": ["strong", "none", "fair"],
        "children": [0.0, 2.5, 4.0],
        "yrs_married": [1.0, 9.0, 23.0],
    }
)
FORMULA = "age*children + faith + np.log(yrs_married)"


@pytest.mark.parametrize(
    ("family", "target", "statsmodels"),
    [
        ("binomial", "any", sm.families.Binomial()), ("poisson", "count", sm.families.Poisson()),
        ("gamma", "cost", sm.families.Gamma(sm.families.links.Log())), ("gaussian", "rate_marriage", None),
    ],
)  # fmt: skip
def test_means_and_their_intervals_are_those_of_statsmodels_and_of_scikit_learn(
    family: str, target: str, statsmodels: Any
) -> None:
    frame = people()
    plain = FORMULA.replace("np.log", "log")
    fit = glm(f"{target} ~ {plain}", apart(frame), family, references={"faith": "none"})
    treated = FORMULA.replace("faith", "C(faith, Treatment('none'))")
    if statsmodels is None:
        known = smf.ols(f"{target} ~ {treated}", frame).fit().get_prediction(NEW).summary_frame()
    elif family == "gamma":
        known = (
            smf.glm(f"{target} ~ {treated}", frame, family=statsmodels)
            .fit(scale="X2")
            .get_prediction(NEW)
            .summary_frame()
        )
    else:
        known = (
            smf.glm(f"{target} ~ {treated}", frame, family=statsmodels)
            .fit(tol=1e-14)
            .get_prediction(NEW)
            .summary_frame()
        )
    found = predictions(fit.study.regression, fit.result, NEW)
    expected = known[["mean", "mean_ci_lower", "mean_ci_upper"]].to_numpy()
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-6)
    eta = predictions(fit.study.regression, fit.result, NEW, link=True)["predicted"]
    distribution = fit.study.regression.distribution
    assert distribution is not None
    np.testing.assert_allclose(distribution.mean(eta.to_numpy()), found["predicted"], rtol=1e-12)
    model = pickle.loads(pickle.dumps(as_sklearn(fit.study.regression, fit.result)))
    learned = model.predict_proba(NEW)[:, 1] if family == "binomial" else model.predict(NEW)
    np.testing.assert_allclose(learned, found["predicted"], rtol=1e-9)
    assert list(model[0].get_feature_names_out()) == [term.name for term in fit.result.terms[1:]]


def test_chances_of_many_levels_and_their_intervals() -> None:
    frame = people()
    fit = glm("faith ~ age + any", apart(frame), "multinomial", references={"faith": "none"})
    regression, result = fit.study.regression, fit.result
    found = predictions(regression, result, NEW.assign(any=[1.0, 0.0, 1.0]))
    chances = found[[f"predicted {level}" for level in regression.classes]].to_numpy()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    codes = pd.Categorical(frame["faith"], regression.classes).codes
    known = sm.MNLogit(codes, sm.add_constant(frame[["age", "any"]])).fit(disp=False, method="newton", maxiter=50)
    np.testing.assert_allclose(
        chances, known.predict(np.column_stack([np.ones(3), NEW["age"], [1.0, 0.0, 1.0]])), rtol=1e-6
    )
    model = as_sklearn(regression, result)
    np.testing.assert_allclose(model.predict_proba(NEW.assign(any=[1.0, 0.0, 1.0])), chances, rtol=1e-9)
    assert set(model.predict(NEW.assign(any=1.0))) <= set(regression.classes)
    # The slopes behind the intervals, against draws of the coefficients.
    draws = np.random.default_rng(0).multivariate_normal(
        [one.estimate for one in result.terms], np.array(result.covariance), 20_000
    )
    eta = draws.reshape(-1, 3, 3) @ np.array([1.0, 22.0, 1.0])
    whole = np.exp(np.column_stack([np.zeros(len(eta)), eta]))
    odds = whole / (whole.sum(axis=1, keepdims=True) - whole)
    low, high = np.quantile(odds / (1.0 + odds), [0.025, 0.975], axis=0)
    np.testing.assert_allclose(
        found.loc[0, [f"low {level}" for level in regression.classes]].astype(float), low, atol=0.01
    )
    np.testing.assert_allclose(
        found.loc[0, [f"high {level}" for level in regression.classes]].astype(float), high, atol=0.01
    )


def test_ratios_of_hazards() -> None:
    rossi = load_rossi()
    fit = glm("Surv(week, arrest) ~ fin + age + prio", apart(rossi), "cox")
    found = predictions(fit.study.regression, fit.result, rossi[:5])
    known = lifelines.CoxPHFitter().fit(rossi.assign(site=np.arange(len(rossi)) % 4)[["week", "arrest", "fin", "age", "prio", "site"]], "week", "arrest", strata=["site"], fit_options={"precision": 1e-12})  # fmt: skip
    expected = known.predict_partial_hazard(rossi[:5].assign(site=np.arange(5) % 4))
    np.testing.assert_allclose(found["hazard ratio"] / found["hazard ratio"][0], expected / expected[0], rtol=1e-6)


def test_knots_are_those_of_the_fit_and_an_offset_counts() -> None:
    frame = people()
    frame["exposure"] = 1.0 + frame["yrs_married"]
    fit = glm("count ~ bs(age, df=4) + offset(log(exposure))", apart(frame), "poisson")
    rows = frame[:200]
    whole = predictions(fit.study.regression, fit.result, rows)["predicted"].to_numpy()
    one_by_one = [
        predictions(fit.study.regression, fit.result, rows[number : number + 1])["predicted"].iloc[0]
        for number in range(3)
    ]
    np.testing.assert_allclose(whole[:3], one_by_one, rtol=1e-12)
    doubled = predictions(fit.study.regression, fit.result, rows.assign(exposure=2.0 * rows["exposure"]))["predicted"]
    np.testing.assert_allclose(doubled, 2.0 * whole, rtol=1e-12)
    everywhere = predictions(fit.study.regression, fit.result, frame)["predicted"]
    assert everywhere.sum() == pytest.approx(frame["count"].sum(), rel=1e-8), "the score of the constant"


def test_each_question_is_nearer_to_the_end_than_the_one_before() -> None:
    fit = glm("any ~ age + faith", apart(people()), "binomial")
    slopes = fit.result.slopes
    assert len(slopes) == fit.result.questions and slopes[-1] < 1e-12 and list(slopes) == sorted(slopes, reverse=True)
    assert "fair (reference), mild, none, strong" in fit.report()
    assert "How it converged" in fit.report() and "odds ratio" in fit.summary()
    assert fit.to_sklearn().predict(NEW).shape == (3,) and fit.predict(NEW).shape == (3, 3)


def test_a_constant_alone_and_no_rows_at_all() -> None:
    fit = glm("rate_marriage ~ 1", apart(people()))
    assert predictions(fit.study.regression, fit.result, NEW)["predicted"].tolist() == pytest.approx(
        [people()["rate_marriage"].mean()] * 3
    )
    assert predictions(fit.study.regression, fit.result, NEW[:0]).shape == (0, 3)


@pytest.fixture(scope="module")
def fit() -> Fit:
    return glm("any ~ `age` + faith", apart(people()), "binomial")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (NEW.assign(faith=["strong", "secret", "fair"]), "Row 1 has a level in the column 'faith' that the model does not know: it knows fair, mild, none, strong."),
        (NEW.assign(age=[1.0, None, 2.0]), r"Row 1 has no value in the column 'age' \(1 such row\)"),
        (NEW.assign(age=["1", "secret", "2"]), "Row 1 has no finite number in the column 'age'"),
        (NEW.assign(age=[1.0, 2.0, np.inf]), "Row 2 has no finite number in the column 'age'"),
        (NEW.drop(columns="age"), "The data has no column 'age'"),
        (NEW.rename(columns={"age": "age [months]"}), "The column 'age' is given in months, but the model takes it without a unit: convert it."),
        (NEW.assign(**{"age [years]": 1.0}), "has more than one column 'age'"),
    ],
)  # fmt: skip
def test_what_the_model_does_not_know_is_refused_in_a_sentence(fit: Fit, rows: pd.DataFrame, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refusal:
        predictions(fit.study.regression, fit.result, rows)
    assert "secret" not in str(refusal.value)


def test_a_model_whose_constants_only_the_sites_know_predicts_nothing() -> None:
    fit = glm("any ~ age + site", apart(people()), "binomial")
    with pytest.raises(ValueError, match="that site alone knows"):
        predictions(fit.study.regression, fit.result, NEW)
    with pytest.raises(ValueError, match="that site alone knows"):
        as_sklearn(fit.study.regression, fit.result)
    probit = glm("any ~ age", apart(people()), "binomial", link="probit")
    with pytest.raises(ValueError, match="scikit-learn has no model"):
        as_sklearn(probit.study.regression, probit.result)


def test_shrunk_coefficients_predict_without_intervals_and_are_shown_without_errors() -> None:
    fit = glm("any ~ age + faith", apart(people()), "binomial", ridge=0.1)
    assert list(predictions(fit.study.regression, fit.result, NEW)) == ["predicted"]
    model = as_sklearn(fit.study.regression, fit.result)
    assert isinstance(model[-1], LogisticRegression)
    text, document = printed(fit.result), report(fit.result, fit.study.regression)
    assert "std. error" not in text and "std. error" not in document and "shrunk" in text
    assert (
        "folds" not in document
        and "outside each of 3 folds"
        in glm("any ~ age + faith", apart(people()), "binomial", lasso=1.0, folds=3).report()
    )
