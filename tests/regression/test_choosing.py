"""The strength of a penalty, chosen by rows left out: every point of the path is what scikit-learn finds on the same folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from roundelay.regression.choosing import dealt
from tests.regression.studies import breast_cancer, diabetes, split

FOLDS = 5


def rows_and_folds(sites: dict[str, pd.DataFrame], names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    rows = pd.concat(sites.values())
    standard = (rows[names] - rows[names].mean()) / rows[names].std(ddof=0)
    return rows, standard, np.concatenate([dealt(len(one), FOLDS) for one in sites.values()])


def left_out(model_at, loss, path, standard, target, fold) -> None:
    for strength in path:
        found = []
        for number in range(FOLDS):
            inside = fold == number
            model = model_at(strength.factor, int((~inside).sum())).fit(standard[~inside], target[~inside])
            found.append(loss(model, standard[inside], target[inside]))
        assert strength.loss == pytest.approx(np.mean(found), rel=1e-6)
        assert strength.error == pytest.approx(np.std(found, ddof=1) / np.sqrt(FOLDS), rel=1e-4)


def half_square(model, features, target) -> float:
    return float(0.5 * ((target - model.predict(features)) ** 2).mean())


@pytest.mark.parametrize(("ridge", "lasso"), [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5)])
def test_squares(ridge, lasso):
    from sklearn.linear_model import ElasticNet, Ridge

    names = ["age", "sex", "bmi", "bp", "s1", "s2"]
    sites = split(diabetes(), "by label", "target", 4)
    fit = rl.glm("target ~ " + " + ".join(names), sites, ridge=ridge, lasso=lasso, folds=FOLDS)
    rows, standard, fold = rows_and_folds(sites, names)

    def model_at(factor: float, count: int):
        if not lasso:
            return Ridge(alpha=factor * ridge * count)
        return ElasticNet(alpha=factor * (lasso + ridge), l1_ratio=lasso / (lasso + ridge), tol=1e-12, max_iter=100_000)

    path = fit.result.path
    left_out(model_at, half_square, path[::6], standard.to_numpy(), rows.target.to_numpy(), fold)
    assert fit.result.strength == min(path, key=lambda one: one.loss).factor
    if lasso:  # where it begins nothing is left, and just below something is
        assert path[0].slopes < 1.0 < path[6].slopes
    # The fit is that of the strength that was chosen, over all rows.
    whole = model_at(fit.result.strength, len(rows)).fit(standard, rows.target)
    own = [fit.coefficients[name] * rows[name].std(ddof=0) for name in names]
    assert own == pytest.approx(whole.coef_, rel=1e-6, abs=1e-7)


def test_a_yes_or_no_outcome():
    from sklearn.linear_model import LogisticRegression

    names = ["mean_radius", "mean_texture", "worst_area", "worst_smoothness"]
    sites = split(breast_cancer(), "90/10", "target", 3)
    fit = rl.glm("target ~ " + " + ".join(names), sites, "binomial", ridge=1.0, folds=FOLDS)
    rows, standard, fold = rows_and_folds(sites, names)

    def deviance(model, features, target) -> float:
        chance = model.predict_proba(features)[:, 1]
        return float(-np.log(np.where(target == 1, chance, 1.0 - chance)).mean())

    def model_at(factor: float, count: int):
        return LogisticRegression(C=1.0 / (factor * count), tol=1e-12, max_iter=100_000)

    left_out(model_at, deviance, fit.result.path[2::9], standard.to_numpy(), rows.target.to_numpy(), fold)


def test_rows_are_dealt_evenly_and_alike_each_time():
    fold = dealt(103, FOLDS)
    assert np.bincount(fold).tolist() == [21, 21, 21, 20, 20] and np.array_equal(fold, dealt(103, FOLDS))
    assert np.abs(np.diff(fold)).max() > 1  # not one behind the other


def test_folds_need_a_penalty():
    sites = split(diabetes(), "evenly", "target", 3)
    with pytest.raises(ValueError, match="folds is 5: use 2 to 20, and a ridge or a lasso"):
        rl.glm("target ~ bmi", sites, folds=5)
