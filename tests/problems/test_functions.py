"""Values, gradients and Hessians, against finite differences and the dense reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.problems import Problem, total_gradient, total_value

from .cases import Case, call_gradient, call_row_slope, cases, kernel_function, least_squares, logistic, make_data

FEW = settings(max_examples=60, deadline=None)


def points_of(case: Case, seed: int, spread: float = 2.0) -> np.ndarray:
    return spread * np.random.default_rng(seed).normal(size=(case.problem.agents, case.problem.dim))


@FEW
@given(cases(), st.integers(0, 1000))
def test_agrees_with_the_dense_reference(case: Case, seed: int) -> None:
    problem = case.problem
    assert isinstance(problem, Problem)
    for agent, x in enumerate(points_of(case, seed)):
        dense = case.dense[agent]
        np.testing.assert_allclose(problem.value(agent, x), dense.value(x), rtol=1e-12)
        np.testing.assert_allclose(problem.gradient(agent, x), dense.gradient(x), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(problem.hessian(agent, x), dense.hessian(x), rtol=1e-10, atol=1e-12)


@FEW
@given(cases(), st.integers(0, 1000))
def test_gradient_and_hessian_are_the_slopes_that_differences_show(case: Case, seed: int) -> None:
    problem = case.problem
    step = 1e-5
    for agent, x in enumerate(points_of(case, seed)):
        for d, direction in enumerate(np.eye(problem.dim)):
            rise = problem.value(agent, x + step * direction) - problem.value(agent, x - step * direction)
            turn = problem.gradient(agent, x + step * direction) - problem.gradient(agent, x - step * direction)
            scale = 1.0 + abs(problem.value(agent, x)) + np.linalg.norm(problem.hessian(agent, x))
            assert abs(rise / (2.0 * step) - problem.gradient(agent, x)[d]) <= 1e-8 * scale
            np.testing.assert_allclose(turn / (2.0 * step), problem.hessian(agent, x)[:, d], atol=1e-8 * scale)


@FEW
@given(cases(), st.integers(0, 1000))
def test_batch_forms_are_the_single_ones(case: Case, seed: int) -> None:
    problem = case.problem
    points = points_of(case, seed)
    values = [problem.value(agent, x) for agent, x in enumerate(points)]
    gradients = [problem.gradient(agent, x) for agent, x in enumerate(points)]
    np.testing.assert_allclose(problem.values(points), values, rtol=1e-12)
    np.testing.assert_allclose(problem.gradients(points), gradients, rtol=1e-11, atol=1e-12)
    x = points[0]
    agents = range(problem.agents)
    np.testing.assert_allclose(total_value(problem, x), sum(problem.value(i, x) for i in agents), rtol=1e-12)
    expected = np.sum([problem.gradient(i, x) for i in agents], axis=0)
    np.testing.assert_allclose(total_gradient(problem, x), expected, rtol=1e-11, atol=1e-11)


@FEW
@given(cases(), st.integers(0, 1000))
def test_objective_gaps_are_differences_of_values(case: Case, seed: int) -> None:
    problem = case.problem
    points = np.vstack([points_of(case, seed), problem.optimum])
    least = total_value(problem, problem.optimum)
    expected = np.array([total_value(problem, x) - least for x in points])
    gaps = problem.objective_gaps(points)
    np.testing.assert_allclose(gaps, expected, rtol=1e-9, atol=1e-11 * (1.0 + least))
    assert gaps[-1] == 0.0 and (gaps >= 0.0).all()


@pytest.mark.parametrize("make", [least_squares, logistic])
def test_objective_gap_near_the_optimum_is_quadratic_and_does_not_cancel(make) -> None:
    problem = make(make_data((4, 1, 7), 3, 5)).problem
    direction = np.array([1.0, -2.0, 0.5])
    hessian = sum(problem.hessian(agent, problem.optimum) for agent in range(problem.agents))
    for size, accuracy in ((1e-3, 1e-2), (1e-5, 1e-3)):
        offset = size * direction
        gap = problem.objective_gaps((problem.optimum + offset)[None])[0]
        np.testing.assert_allclose(gap, 0.5 * offset @ hessian @ offset, rtol=accuracy)


@FEW
@given(cases(), st.integers(0, 1000))
def test_L_bounds_every_hessian_and_mu_the_mean_one(case: Case, seed: int) -> None:
    problem = case.problem
    for spread in (0.0, 1.0, 10.0):
        points = points_of(case, seed, spread)
        norms = [np.linalg.norm(problem.hessian(agent, x), 2) for agent, x in enumerate(points)]
        assert max(norms) <= problem.L * (1.0 + 1e-12)
        mean = np.mean([problem.hessian(agent, points[0]) for agent in range(problem.agents)], axis=0)
        assert np.linalg.eigvalsh(mean)[0] >= problem.mu - 1e-12 * problem.L


@pytest.mark.parametrize("scale", ["half_sum", "mean"])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_L_and_mu_of_least_squares_are_attained(scale: str, ridge: float) -> None:
    problem, dense = least_squares(make_data((2, 9, 5), 4, 1), scale, ridge, [1.0, 0.5, 2.0])
    hessians = [agent.hessian(np.zeros(4)) for agent in dense]
    largest = []
    for hessian in hessians:  # by power iteration
        x = np.ones(4)
        for _ in range(3000):
            x = hessian @ x / np.linalg.norm(hessian @ x)
        largest.append(x @ hessian @ x)
    np.testing.assert_allclose(problem.L, max(largest), rtol=1e-10)
    inverse = np.linalg.inv(np.mean(hessians, axis=0))
    np.testing.assert_allclose(problem.mu, 1.0 / np.linalg.norm(inverse, 2), rtol=1e-10)


def test_L_of_logistic_is_attained_where_every_margin_is_zero() -> None:
    problem, dense = logistic(make_data((2, 9, 3), 4, 1), 0.25, [1.0, 0.5, 2.0])
    norms = [np.linalg.norm(agent.hessian(np.zeros(4)), 2) for agent in dense]
    np.testing.assert_allclose(problem.L, max(norms), rtol=1e-12)
    assert problem.mu == 0.25


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("counts", [(2, 2), (1, 3, 8), (5, 4)], ids=["thin", "ragged", "full"])
@pytest.mark.parametrize("make", [least_squares, logistic])
def test_the_kernels_have_the_same_gradient(make, counts: tuple[int, ...], compiled: bool) -> None:
    problem = make(make_data(counts, 4, 3), ridge=0.2).problem
    gradient = kernel_function(problem, call_gradient, compiled)
    row_slope = kernel_function(problem, call_row_slope, compiled)
    rows = problem.kernel().numbers.rows
    for agent in range(problem.agents):
        x, out = np.linspace(-2.0, 3.0, 4), np.full(4, np.nan)
        gradient(agent, x, out)
        np.testing.assert_allclose(out, problem.gradient(agent, x), rtol=1e-12, atol=1e-12)
        own = problem.rows.of(agent)
        by_rows = sum(row_slope(agent, j, x) * rows[j] for j in range(own.start, own.stop)) + 0.2 * x
        np.testing.assert_allclose(by_rows, problem.gradient(agent, x), rtol=1e-12, atol=1e-12)


def test_far_away_the_logistic_loss_is_linear_and_finite() -> None:
    problem = logistic(make_data((3, 5), 2, 0), ridge=1e-9).problem
    x = np.array([1e6, -1e6])
    for agent in range(2):
        margins = problem.signed[problem.rows.of(agent)] @ x
        linear = np.maximum(-margins, 0.0).mean() + 0.5e-9 * x @ x
        np.testing.assert_allclose(problem.value(agent, x), linear, rtol=1e-12)
        assert np.isfinite(problem.gradient(agent, x)).all()


@pytest.mark.parametrize("make", [least_squares, logistic])
def test_what_the_caller_does_to_the_arrays_later_changes_nothing(make) -> None:
    data, weights = make_data((2, 3), 2, 0), np.array([1.0, 2.0])
    problem = make(data, weights=weights).problem
    before = problem.gradients(np.ones((2, 2)))
    for array in (*data.features, *data.targets, *data.labels, weights):
        array[:] = 7.0
    np.testing.assert_array_equal(problem.gradients(np.ones((2, 2))), before)
    np.testing.assert_array_equal(problem.optimum, make(make_data((2, 3), 2, 0), weights=[1.0, 2.0]).problem.optimum)
    with pytest.raises(ValueError, match="read-only"):
        problem.optimum[0] = 1.0
