"""The proximal step: its own optimality, the dense reference, and both engines' kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.problems import LeastSquares, Logistic

from .cases import (
    Case,
    call_gradient,
    call_minimise,
    cases,
    kernel_function,
    least_squares,
    logistic,
    make_data,
    prox_residual,
)

PENALTIES = 10.0 ** np.arange(-6, 9, 2)
FEW = settings(max_examples=60, deadline=None)


@FEW
@given(cases(), st.sampled_from(PENALTIES.tolist()), st.sampled_from([0.0, 1.0, 100.0, 1e4]), st.integers(0, 1000))
def test_the_step_solves_its_equation(case: Case, penalty: float, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for agent in range(case.problem.agents):
        v = spread * rng.normal(size=case.problem.dim)
        x = case.problem.prox(agent, v, penalty)
        assert prox_residual(case.problem, agent, x, v, penalty) <= 1e-12


@FEW
@given(cases(), st.sampled_from([1e-2, 1.0, 1e3]), st.integers(0, 1000))
def test_the_step_agrees_with_the_dense_reference(case: Case, penalty: float, seed: int) -> None:
    v = np.random.default_rng(seed).normal(size=case.problem.dim)
    for agent, dense in enumerate(case.dense):
        np.testing.assert_allclose(case.problem.prox(agent, v, penalty), dense.prox(v, penalty), rtol=1e-8, atol=1e-9)


@FEW
@given(cases(), st.sampled_from([1e-3, 1.0, 1e3]), st.integers(0, 1000))
def test_the_step_is_firmly_non_expansive(case: Case, penalty: float, seed: int) -> None:
    v, w = 3.0 * np.random.default_rng(seed).normal(size=(2, case.problem.dim))
    for agent in range(case.problem.agents):
        moved = case.problem.prox(agent, v, penalty) - case.problem.prox(agent, w, penalty)
        assert moved @ moved <= moved @ (v - w) + 1e-9 * (1.0 + np.linalg.norm(v - w)) ** 2


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("counts", [(2, 2), (1, 3, 8), (5, 4)], ids=["thin", "ragged", "full"])
@pytest.mark.parametrize("make", [least_squares, logistic])
def test_the_kernel_takes_the_same_step(make, counts: tuple[int, ...], compiled: bool) -> None:
    problem = make(make_data(counts, 4, 3), ridge=0.01).problem
    minimise = kernel_function(problem, call_minimise, compiled)
    rng = np.random.default_rng(0)
    for penalty in PENALTIES:
        for spread in (0.0, 1.0, 1e4):
            for agent in range(problem.agents):
                v, start, out = spread * rng.normal(size=4), rng.normal(size=4), np.full(4, np.nan)
                minimise(agent, penalty * v, penalty, start, out)
                assert prox_residual(problem, agent, out, v, penalty) <= 1e-12
                np.testing.assert_allclose(out, problem.prox(agent, v, penalty), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_in_many_dimensions_too(compiled: bool) -> None:
    """Beyond 16 coordinates the compiled sums run in lanes."""
    for problem in (least_squares(make_data((5, 30), 19, 1)).problem, logistic(make_data((5, 30), 19, 1)).problem):
        minimise = kernel_function(problem, call_minimise, compiled)
        for agent in range(2):
            v, out = np.linspace(-1.0, 2.0, 19), np.empty(19)
            minimise(agent, 3.0 * v, 3.0, np.zeros(19), out)
            assert prox_residual(problem, agent, out, v, 3.0) <= 1e-12


@pytest.mark.parametrize("compiled", [False, True])
def test_few_rows_in_many_unknowns_are_taken_as_they_are(compiled: bool) -> None:
    """Beside an agent with many rows; among the few some are repeated, so that their products are singular."""
    data = make_data((3, 1, 30), 24, 5, repeat=True)
    problem, dense = least_squares(data, "mean", 0.2, [0.5, 1.5, 2.5])
    assert problem.quadratics.vectors.shape == (24, 24)  # those of the third agent alone
    minimise, slope = (kernel_function(problem, call, compiled) for call in (call_minimise, call_gradient))
    rng = np.random.default_rng(4)
    for agent in range(3):
        for penalty in (1e-4, 3.0, 1e4):
            v, out = rng.normal(size=24), np.full(24, np.nan)
            minimise(agent, penalty * v, penalty, np.zeros(24), out)
            assert prox_residual(problem, agent, out, v, penalty) <= 1e-12
            np.testing.assert_allclose(out, problem.prox(agent, v, penalty), rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(out, dense[agent].prox(v, penalty), rtol=1e-7, atol=1e-9)
        slope(agent, v, out)
        np.testing.assert_allclose(out, dense[agent].gradient(v), rtol=1e-12, atol=1e-12)
    assert pytest.approx(max(np.linalg.eigvalsh(problem.hessian(agent))[-1] for agent in range(3))) == problem.L


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("distance", [1e3, 1e4, 1e5, 1e6])
def test_newton_gets_home_from_far_away(distance: float, compiled: bool) -> None:
    """Also with labels that a plane separates, and a penalty so small that the minimiser is far away itself."""
    data = make_data((1, 3, 12), 4, 3)
    separable = [np.sign(block[:, 0]) for block in data.features]
    rng = np.random.default_rng(int(distance))
    for labels in (data.labels, separable):
        problem = Logistic(data.features, labels, ridge=1e-9)
        minimise = kernel_function(problem, call_minimise, compiled)
        for penalty in (1e-6, 1e-2, 10.0):
            for agent in range(3):
                v, start, out = rng.normal(size=4), distance * rng.normal(size=4), np.full(4, np.nan)
                minimise(agent, penalty * v, penalty, start, out)
                assert prox_residual(problem, agent, out, v, penalty) <= 1e-12
                np.testing.assert_allclose(out, problem.prox(agent, v, penalty), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("unit", [1e-4, 1e2, 1e3, 1e4, 1e5])
def test_newton_does_not_mind_the_units_of_a_feature(unit: float, compiled: bool) -> None:
    """Platelets per microlitre beside an age: the margins, not the coordinates, say when it has converged."""
    data = make_data((1, 3, 5, 25), 3, 2)
    features = [block * [1.0, unit, 1.0] for block in data.features]
    problem = Logistic(features, data.labels, ridge=1e-3)
    minimise = kernel_function(problem, call_minimise, compiled)
    rng = np.random.default_rng(3)
    for penalty in (1e-3, 1.0, 100.0):
        for spread in (1.0, 100.0):
            for agent in range(4):
                v, out = spread * rng.normal(size=3), np.full(3, np.nan)
                minimise(agent, penalty * v, penalty, v, out)
                assert prox_residual(problem, agent, out, v, penalty) <= 1e-12
                assert prox_residual(problem, agent, problem.prox(agent, v, penalty), v, penalty) <= 1e-12


def test_a_thin_agent_keeps_its_digits_under_a_small_penalty() -> None:
    """One row in five dimensions: along it the step must fit the row, whatever the penalty."""
    row, target = np.array([[0.3, -0.4, 1.2, 0.0, 0.5]]), np.array([0.7])
    problem = LeastSquares([row], [target])
    for penalty in (1e-4, 1e-6, 1e-8):
        x = problem.prox(0, np.zeros(5), penalty)
        expected = row[0] * target[0] / (row[0] @ row[0] + penalty)
        np.testing.assert_allclose(x, expected, rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("make", [least_squares, logistic])
@pytest.mark.parametrize("penalty", [0.0, -1.0, np.inf, np.nan])
def test_penalties_are_positive_and_finite(make, penalty: float) -> None:
    with pytest.raises(ValueError, match=r"^The penalty is .*positive, finite penalty\.$"):
        make(make_data((2, 3), 2, 0)).problem.prox(0, np.zeros(2), penalty)


@pytest.mark.parametrize("make", [least_squares, logistic])
@pytest.mark.parametrize("agent", [-1, 2])
def test_agents_are_counted_from_zero(make, agent: int) -> None:
    problem = make(make_data((2, 3), 2, 0)).problem
    for ask in (problem.value, problem.gradient, problem.hessian, lambda i, x: problem.prox(i, x, 1.0)):
        with pytest.raises(ValueError, match=rf"^There is no agent {agent}: .* from 0 to 1\.$"):
            ask(agent, np.zeros(2))
