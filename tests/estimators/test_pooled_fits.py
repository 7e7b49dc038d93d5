"""A fit over sites is the fit to all their rows together: against scikit-learn, however the rows are divided."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge

import roundelay as rl
from roundelay.estimators import (
    RingElasticNet,
    RingLasso,
    RingLinearRegression,
    RingLogisticRegression,
    RingPoissonRegressor,
    RingRidge,
)
from roundelay.estimators.logistic import Turned, basis_of
from roundelay.regression.likelihood import Linear, SoftmaxLosses
from tests.estimators.splits import SPLITS, split

CLOSE = {"rtol": 1e-7, "atol": 1e-9}
DIABETES = load_diabetes(return_X_y=True, scaled=False)
CANCER, WINE = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)
EXACT = {"tol": 1e-14, "max_iter": 100_000}


def exact_logistic(**options):
    return LogisticRegression(solver="newton-cholesky", tol=1e-14, max_iter=1000, **options)


def exact_poisson(**options):
    return PoissonRegressor(solver="newton-cholesky", tol=1e-9, max_iter=1000, **options)


def pairs():
    yield RingLinearRegression(), LinearRegression(), DIABETES
    yield RingLinearRegression(fit_intercept=False), LinearRegression(fit_intercept=False), DIABETES
    yield RingRidge(3.0), Ridge(3.0, solver="cholesky"), DIABETES
    yield RingRidge(3.0, fit_intercept=False), Ridge(3.0, solver="cholesky", fit_intercept=False), DIABETES
    yield RingLasso(2.0), Lasso(2.0, **EXACT), DIABETES
    yield RingElasticNet(0.5, l1_ratio=0.3), ElasticNet(0.5, l1_ratio=0.3, **EXACT), DIABETES
    yield RingLogisticRegression(C=0.1), exact_logistic(C=0.1), CANCER
    yield RingLogisticRegression(fit_intercept=False), exact_logistic(fit_intercept=False), CANCER
    yield RingLogisticRegression(), exact_logistic(), WINE
    yield RingLogisticRegression(class_weight="balanced"), exact_logistic(class_weight="balanced"), CANCER
    yield RingLogisticRegression(class_weight={1: 3.0}), exact_logistic(class_weight={1: 3.0}), WINE
    yield RingPoissonRegressor(alpha=0.1), exact_poisson(alpha=0.1), DIABETES
    yield RingPoissonRegressor(alpha=0.0), exact_poisson(alpha=0.0), DIABETES


PAIRS = list(pairs())
FEW = (1, 4, 6, 8, 12)
NAMES = [repr(ours) for ours, _, _ in PAIRS]


def agree(ours, theirs):
    np.testing.assert_allclose(ours.coef_, theirs.coef_, **CLOSE)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(("ours", "theirs", "data"), PAIRS, ids=NAMES)
def test_the_fit_is_the_pooled_fit(ours, theirs, data, weighted):
    features, target = data
    weight = np.random.default_rng(0).integers(0, 3, len(target)) * 0.7 if weighted else None
    theirs.fit(features, target, sample_weight=weight)
    for name in ("evenly", "by label", "90/10"):
        agree(ours.fit(features, target, split(name, target), weight), theirs)
        assert ours.run_.stop == "found"


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("which", FEW, ids=[NAMES[which] for which in FEW])
def test_few_rows_and_odd_sites(which, name):
    """Down to a row a site, of one class each: the functions of the sites need have no minimum of their own."""
    ours, theirs, (features, target) = PAIRS[which]
    some = np.random.default_rng(1).permutation(len(target))[:40]
    features, target = features[some][:, :5], target[some]
    theirs.fit(features, target)
    agree(ours.fit(features, target, split(name, target)), theirs)


def test_many_classes_with_many_unknowns():
    """Ten classes, columns that hardly vary or not at all, and so many unknowns that no Hessian is asked for."""
    features, target = load_digits(return_X_y=True)
    features, target = features[:300] / 16.0, np.array(list("abcdefghij"))[target[:300]]
    ours = RingLogisticRegression().fit(features, target, split("by label", target))
    theirs = exact_logistic().fit(features, target)
    np.testing.assert_allclose(ours.predict_proba(features), theirs.predict_proba(features), atol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    assert (ours.predict(features) == theirs.predict(features)).all()
    assert "L-BFGS" in ours.run_.outcome


@pytest.mark.parametrize("each", [True, False])
def test_the_coefficients_of_many_classes_by_a_basis(each):
    """With W = Bu the loss is that of the softmax of XW', and its derivatives are right; a basis of sums of 0 is orthonormal."""
    random = np.random.default_rng(3)
    design, levels, weight = random.normal(size=(20, 3)), random.integers(0, 4, 20), random.uniform(0.5, 2.0, 20)
    basis = basis_of(4, each)
    turned = Turned(Linear(design, SoftmaxLosses(levels, 4, weight)), basis[1:] - basis[0])
    u = random.normal(size=turned.dim)
    chances = np.exp(design @ (basis @ u.reshape(-1, 3)).T)
    chances /= chances.sum(axis=1, keepdims=True)
    assert turned.value(u) == pytest.approx(-weight @ np.log(chances[np.arange(20), levels]), rel=1e-12)
    step = 1e-6
    slopes = [(turned.value(u + step * e) - turned.value(u - step * e)) / (2 * step) for e in np.eye(turned.dim)]
    np.testing.assert_allclose(turned.gradient(u), slopes, atol=1e-7)
    bends = [(turned.gradient(u + step * e) - turned.gradient(u - step * e)) / (2 * step) for e in np.eye(turned.dim)]
    np.testing.assert_allclose(turned.hessian(u), bends, atol=1e-7)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-15)
    assert each or np.abs(basis.sum(axis=0)).max() < 1e-15


@pytest.mark.parametrize(("data", "l1_ratio"), [(CANCER, 1.0), (CANCER, 0.7), (WINE, 1.0), (WINE, 0.7)])
def test_a_lasso_of_classes(data, l1_ratio):
    """The constants are spared, and what is 0 there is 0 here."""
    features, target = data
    features = ((features - features.mean(axis=0)) / features.std(axis=0))[
        :, :8
    ]  # saga needs them alike, and gets there slowly
    ours = RingLogisticRegression(C=0.1, l1_ratio=l1_ratio).fit(features, target, split("by label", target))
    theirs = LogisticRegression(C=0.1, l1_ratio=l1_ratio, solver="saga", tol=1e-12, max_iter=100_000).fit(
        features, target
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(features), theirs.predict_proba(features), atol=1e-7)
    assert ((ours.coef_ == 0.0) == (theirs.coef_ == 0.0)).all() and (ours.coef_ == 0.0).any()


def test_more_columns_than_rows_and_columns_that_do_not_vary():
    """Of several minima the shortest; a constant column gets the coefficient 0."""
    random = np.random.default_rng(4)
    features, target = random.normal(size=(12, 30)) * np.logspace(-3, 3, 30), random.normal(size=12)
    features[:, 7] = 3.0
    for ours, theirs in (
        (RingLinearRegression(), LinearRegression()),
        (RingRidge(), Ridge(solver="svd")),
    ):
        agree(ours.fit(features, target), theirs.fit(features, target))
        assert ours.coef_[7] == 0.0


def test_units_do_not_matter():
    """Years beside nanometres, and everything far from 0: as exact as in good units."""
    features, target = DIABETES
    scale, shift = np.logspace(-9, 6, 10), np.linspace(-1.0, 1.0, 10) * 1e5
    plain = RingPoissonRegressor(alpha=0.0).fit(features, target)
    moved = RingPoissonRegressor(alpha=0.0).fit((features + shift) * scale, target)
    np.testing.assert_allclose(moved.coef_ * scale, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "ours"),
    [
        (rl.IADMM(rho=0.5), RingRidge(3.0)),
        (rl.PIADMM1(rho=0.5), RingLinearRegression()),
        (rl.IADMM(rho=0.5), RingLasso(2.0)),
        (rl.OnePass(), RingRidge(3.0)),
        (rl.EXTRA(alpha=0.2), RingRidge(3.0)),
        (rl.SealedLaps(optimiser="lbfgs"), RingRidge(3.0)),
        (rl.IADMM(rho=0.3), RingLogisticRegression(C=0.01)),
    ],
    ids=lambda one: getattr(one, "name", type(one).__name__),
)
def test_other_methods_reach_the_same(algorithm, ours):
    logistic = isinstance(ours, RingLogisticRegression)
    features, target = CANCER if logistic else DIABETES
    features, target = features[:120, [0, 1, 4, 8] if logistic else slice(4)], target[:120]
    sealed = ours.set_params(tol=1e-10).fit(features, target)
    expected, bytes_of_sums = sealed.coef_, sealed.communication_.bytes
    other = ours.set_params(algorithm=algorithm).fit(features, target)
    np.testing.assert_allclose(other.coef_, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert other.run_.algorithm.name == algorithm.name and other.n_iter_ >= 1
    assert other.communication_.bytes != bytes_of_sums


def test_the_history_of_a_fit_is_measured_against_where_it_ended():
    """Nobody looks for the minimiser beforehand; of another method it is known by then."""
    sealed = RingRidge().fit(*DIABETES).run_
    assert (sealed.optimum == sealed.estimate).all() and sealed.history["error"].iloc[-1] == 0.0
    assert sealed.history["error"].iloc[0] == pytest.approx(1.0)
    other = RingRidge(algorithm=rl.IADMM(rho=0.5)).fit(*DIABETES).run_
    assert (other.optimum != other.estimate).any() and 0.0 < other.history["error"].iloc[-1] < 1e-6


def test_refusals():
    features, target = DIABETES
    with pytest.raises(ValueError, match="give one label for each row"):
        RingRidge().fit(features, target, np.zeros(3))
    labels = np.array(["Oslo", None] * 221, object)
    with pytest.raises(ValueError, match="Row 1 has no site"):
        RingRidge().fit(features, target, labels)
    with pytest.raises(ValueError, match="alpha is -1"):
        RingRidge(-1.0).fit(features, target)
    with pytest.raises(ValueError, match="has no regulariser"):
        RingLasso(algorithm=rl.EXTRA(alpha=0.1)).fit(features, target)
    with pytest.raises(ValueError, match="algorithm is 'admm'"):
        RingRidge(algorithm="admm").fit(features, target)
    with pytest.raises(ValueError, match="eight"):
        RingRidge().fit(features, target, sample_weight=np.zeros(len(target)))
    with pytest.raises(ValueError, match="below 0"):
        RingPoissonRegressor().fit(features, target - 1e3)


def test_what_has_no_end_is_said():
    """Classes that can be told apart without an error, and a method that is given too few laps."""
    features, target = CANCER
    with pytest.warns(match="choose a finite C"):
        RingLogisticRegression(C=np.inf).fit(features, target)
    with pytest.warns(match="above tol"):
        RingRidge(algorithm=rl.IADMM(rho=0.5), max_laps=3).fit(*DIABETES)


def test_a_model_carries_no_rows_and_says_what_was_sent():
    """The pickle of a fit to ten times the rows is no larger; bytes are those of the sums: two words a number and lap, and what is told."""
    import pickle

    features, target = DIABETES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few, many = (
            RingRidge().fit(
                np.tile(features, (times, 1)), np.tile(target, times), split("evenly", np.tile(target, times))
            )
            for times in (1, 10)
        )
    assert abs(len(pickle.dumps(many)) - len(pickle.dumps(few))) < 200
    p, sites = 10, 5
    before = 2 * (2 + 2 * (p + 1)) + (2 + 2 * (p + 1)) + 2 * (p + 1) + (p + 1)
    laps = (
        2 * (p * (p + 3) // 2) + (p + 2 * p) + 1
    )  # gradient and Hessian; the point and the gradient there; that it is over
    assert few.communication_.bytes == 8 * sites * (before + laps)
    assert few.communication_.laps == 5 and few.communication_.hops == 25
    assert RingRidge().fit(features, target, np.zeros(len(target))).communication_.bytes == 0
