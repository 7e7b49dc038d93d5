"""The minimiser of the sum, against stationarity and against other people's solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.linear_model import LogisticRegression

from roundelay.problems import LeastSquares, Logistic, total_gradient
from tests.reference.dense import optimum_quadratic, optimum_smooth

from .cases import Case, cases, least_squares, logistic, make_data


@settings(max_examples=80, deadline=None)
@given(cases())
def test_the_gradients_cancel(case: Case) -> None:
    problem, x = case.problem, case.problem.optimum
    scale = sum(
        np.linalg.norm(problem.hessian(agent, x), 2) * np.linalg.norm(x)
        + np.linalg.norm(problem.gradient(agent, 0.0 * x))
        for agent in range(problem.agents)
    )
    assert np.linalg.norm(total_gradient(problem, x)) <= 1e-12 * scale
    pull = np.sum([dense.gradient(x) for dense in case.dense], axis=0)
    assert np.linalg.norm(pull) <= 1e-12 * scale


def test_agrees_with_the_dense_reference() -> None:
    quadratic = least_squares(make_data((2, 9, 5), 4, 1), "mean", 0.3, "rows")
    np.testing.assert_allclose(quadratic.problem.optimum, optimum_quadratic(quadratic.dense), rtol=1e-11)
    smooth = logistic(make_data((2, 9, 5), 4, 1), 0.3, "rows")
    np.testing.assert_allclose(smooth.problem.optimum, optimum_smooth(smooth.dense), rtol=1e-10)


@pytest.mark.parametrize(("scale", "weights"), [("half_sum", "equal"), ("half_sum", "rows"), ("mean", "rows")])
def test_least_squares_by_rows_is_the_pooled_fit(scale, weights: str) -> None:
    data = make_data((2, 19, 5, 1), 4, 7)
    problem = LeastSquares(data.features, data.targets, scale, weights=weights)
    pooled = np.linalg.lstsq(np.vstack(data.features), np.concatenate(data.targets), rcond=None)[0]
    np.testing.assert_allclose(problem.optimum, pooled, rtol=1e-11)


def test_the_mean_without_row_weights_is_not_the_pooled_fit() -> None:
    """The control: with unequal rows, one agent one vote is another fit."""
    data = make_data((2, 19, 5, 1), 4, 7)
    pooled = np.linalg.lstsq(np.vstack(data.features), np.concatenate(data.targets), rcond=None)[0]
    assert np.linalg.norm(LeastSquares(data.features, data.targets, "mean").optimum - pooled) > 0.01


def test_least_squares_with_ridge_is_the_pooled_ridge_fit() -> None:
    """Each of N agents adds ridge/2 ‖x‖²: as many rows √(N·ridge)·I below the pooled ones."""
    data = make_data((2, 3, 1), 4, 8)
    problem = LeastSquares(data.features, data.targets, ridge=0.2)
    rows = np.vstack([*data.features, np.sqrt(3 * 0.2) * np.eye(4)])
    pooled = np.linalg.lstsq(rows, np.concatenate([*data.targets, np.zeros(4)]), rcond=None)[0]
    np.testing.assert_allclose(problem.optimum, pooled, rtol=1e-11)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_logistic_by_rows_is_the_pooled_fit(ridge: float) -> None:
    data = make_data((12, 60, 5, 33), 3, 9)
    problem = Logistic(data.features, data.labels, ridge, weights="rows")
    # Weight b_i/b̄ times the mean over b_i rows: each row counts 1/b̄ = N/n, and the ridge N·ridge/2 ‖x‖².
    # scikit-learn minimises C Σ loss + ½‖x‖², so that C = (N/n)/(N·ridge) = 1/(n·ridge); without ridge C is infinite.
    samples = sum(len(block) for block in data.features)
    strength = 1.0 / (samples * ridge) if ridge else np.inf
    model = LogisticRegression(C=strength, fit_intercept=False, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    pooled = model.fit(np.vstack(data.features), np.concatenate(data.labels)).coef_[0]
    np.testing.assert_allclose(problem.optimum, pooled, rtol=1e-8)


@pytest.mark.parametrize("scale", ["half_sum", "mean"])
def test_of_several_least_squares_fits_the_shortest(scale) -> None:
    data = make_data((1, 1, 2), 6, 2)
    problem = LeastSquares(data.features, data.targets, scale)
    shortest = np.linalg.pinv(np.vstack(data.features)) @ np.concatenate(data.targets)
    np.testing.assert_allclose(problem.optimum, shortest, rtol=1e-10)
    assert problem.mu <= 1e-12


def test_of_several_logistic_fits_the_shortest() -> None:
    data = make_data((20, 30), 3, 4)
    fit = Logistic(data.features, data.labels).optimum
    # x and −x/2 are one feature in two units: a + −b/2 is all that counts, and the shortest lies along (1, −1/2).
    doubled = [np.column_stack([block, -0.5 * block[:, 0]]) for block in data.features]
    shortest = Logistic(doubled, data.labels).optimum
    np.testing.assert_allclose(shortest, [fit[0] / 1.25, fit[1], fit[2], -0.5 * fit[0] / 1.25], rtol=1e-8)
    zeros = [np.column_stack([block, np.zeros(len(block))]) for block in data.features]
    np.testing.assert_allclose(Logistic(zeros, data.labels).optimum, [*fit, 0.0], rtol=1e-10)


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e4, 1e8])
def test_the_units_of_a_feature_only_change_the_units_of_its_coefficient(unit: float) -> None:
    data = make_data((20, 7, 30), 3, 4)
    units = np.array([1.0, unit, 1.0])
    scaled = [block * units for block in data.features]
    np.testing.assert_allclose(
        Logistic(scaled, data.labels).optimum * units, Logistic(data.features, data.labels).optimum, rtol=1e-8
    )
    np.testing.assert_allclose(
        LeastSquares(scaled, data.targets).optimum * units, LeastSquares(data.features, data.targets).optimum, rtol=1e-6
    )


def test_features_that_say_nothing_have_the_optimum_zero() -> None:
    blocks, labels = [np.zeros((2, 3)), np.zeros((1, 3))], [[1.0, -1.0], [1.0]]
    np.testing.assert_array_equal(Logistic(blocks, labels).optimum, np.zeros(3))
    np.testing.assert_array_equal(LeastSquares(blocks, labels).optimum, np.zeros(3))
