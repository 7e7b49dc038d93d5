"""Losses with a corner: steps that are exact, minimisers as linear programming finds them, and what refuses to go without a gradient."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog, lsq_linear

import roundelay as rl
from roundelay.problems import total_value, with_corners

from .cases import call_minimise, kernel_function

AGENTS = 5


def drawn(
    kind: Any, seed: int = 1, agents: int = AGENTS, samples: int = 9, dim: int = 3, whole: bool = False, **options: Any
) -> Any:
    """Rows of any numbers, or of small whole ones, among which many corners meet."""
    rng = np.random.default_rng(seed)
    make = (lambda *size: rng.integers(-2, 3, size).astype(float)) if whole else lambda *size: rng.normal(size=size)
    features, targets = make(agents, samples, dim), make(agents, samples)
    return kind(features, np.where(targets > 0.0, 1.0, -1.0) if kind is rl.Hinge else targets, **options)


def unexplained(numbers: Any, agent: int, x: np.ndarray, w: np.ndarray, penalty: float) -> float:
    """How far 0 is from the subgradients of f_i(x) + penalty/2 ‖x‖² − w'x, relative to their sizes.

    A row with a residual has one slope; those of rows without one are any of the box, and scipy chooses the best.
    """
    own = slice(numbers.row_starts[agent], numbers.row_starts[agent + 1])
    rows, low, high = numbers.rows[own], numbers.low[own], numbers.high[own]
    residuals, lengths = numbers.targets[own] - rows @ x, np.linalg.norm(rows, axis=1)
    free = np.abs(residuals) <= 1e-12 * (
        np.abs(numbers.targets[own]) + lengths * (np.linalg.norm(x) + np.linalg.norm(w) / penalty)
    )
    pull = (penalty + numbers.ridge) * x - w - rows[~free].T @ np.where(residuals > 0.0, high, low)[~free]
    if free.any():
        pull = pull - rows[free].T @ lsq_linear(rows[free].T, pull, (low[free], high[free]), tol=1e-15, method="bvls").x
    return float(np.linalg.norm(pull) / (np.linalg.norm(w) + (np.maximum(-low, high) * lengths).sum()))


@settings(max_examples=60)
@given(
    st.sampled_from([rl.Quantile, rl.Hinge]), st.integers(0, 10**6), st.booleans(), st.integers(1, 5), st.integers(1, 25),
    st.sampled_from([1e-4, 1e-2, 1.0, 100.0]), st.sampled_from([0.1, 1.0, 10.0]), st.sampled_from([0.0, 0.3]),
)  # fmt: skip
def test_proximal_steps_are_exact(
    kind: Any, seed: int, whole: bool, dim: int, samples: int, penalty: float, spread: float, ridge: float
) -> None:
    problem = drawn(kind, seed, 1, samples, dim, whole, ridge=ridge)
    rng = np.random.default_rng(seed)
    v, far = spread * rng.normal(size=dim), 10.0 * rng.normal(size=dim)
    x = problem.prox(0, v, penalty)
    assert unexplained(problem.numbers, 0, x, penalty * v, penalty) <= 1e-12
    again = np.full(dim, np.nan)  # from elsewhere, and from there
    with_corners.minimise(problem.numbers, 0, penalty * v, penalty, far, again)
    np.testing.assert_allclose(again, x, rtol=1e-9, atol=1e-9 / min(penalty, 1.0) * 1e-2)
    with_corners.minimise(problem.numbers, 0, penalty * v, penalty, x, again)
    np.testing.assert_allclose(again, x, rtol=1e-9, atol=1e-9 / min(penalty, 1.0) * 1e-2)


MUTATIONS = [
    ("minimise", "else low[moving]\n            moving = -1", "else high[moving]\n            moving = -1"),
    ("minimise", "a[free[place]] -= sign", "a[free[place]] += sign"),
    ("minimise", "penalty + problem.ridge", "penalty"),
    ("shares_of", "triangle[other, place]", "triangle[place, other]"),
    ("residuals_of", "out[j] - rows", "out[j] + rows"),
]


def steps_gap(minimise: Any) -> float:
    """The worst step of a few."""
    problem, gap = drawn(rl.Quantile, samples=40, dim=4, level=0.3, ridge=0.1), 0.0
    for agent in range(AGENTS):
        for penalty in (1e-4, 0.01, 2.0):
            v, x = np.random.default_rng(agent).normal(size=4), np.zeros(4)
            minimise(problem.numbers, agent, penalty * v, penalty, v, x)
            gap = max(gap, unexplained(problem.numbers, agent, x, penalty * v, penalty))
    return gap


@pytest.mark.parametrize(("function", "old", "new"), MUTATIONS)
def test_one_changed_symbol_is_noticed(function: str, old: str, new: str) -> None:
    assert steps_gap(with_corners.minimise) <= 1e-13
    text = inspect.getsource(getattr(with_corners, function))
    assert text.count(old) == 1
    module = dict(vars(with_corners))
    with np.errstate(all="ignore"):
        exec(text.replace(old, new), module)
        if function != "minimise":
            exec(inspect.getsource(with_corners.minimise), module)
        assert steps_gap(module["minimise"]) > 1e-6


def test_both_engines_take_the_same_steps_to_the_bit() -> None:
    """Coordinate after coordinate, in scalars or in whole columns."""
    problem, rng = drawn(rl.Quantile, dim=5, samples=12, level=0.3), np.random.default_rng(2)
    python, compiled = (kernel_function(problem, call_minimise, compiled) for compiled in (False, True))
    for penalty in (1e-3, 1.0):
        for agent in range(AGENTS):
            w, start, outs = rng.normal(size=5), rng.normal(size=5), np.full((3, 5), np.nan)
            python(agent, w, penalty, start, outs[0])
            compiled(agent, w, penalty, start, outs[1])
            np.testing.assert_array_equal(outs[0], outs[1])
    compiled(0, np.full(5, np.inf), 1.0, np.zeros(5), outs[2])
    assert not np.isfinite(outs[2]).any()  # a run that diverges is not kept waiting


def by_linear_program(problem: Any) -> tuple[np.ndarray, float]:
    """A minimiser of Σ f_i and its value: a(r − q'x) split into what is above and below the corner."""
    numbers = problem._whole
    count, dim = numbers.rows.shape
    cost = np.concatenate([np.zeros(dim), numbers.high, -numbers.low])
    equations = np.hstack([numbers.rows, np.eye(count), -np.eye(count)])
    answer = linprog(
        cost, A_eq=equations, b_eq=numbers.targets, bounds=[(None, None)] * dim + [(0.0, None)] * (2 * count)
    )
    return answer.x[:dim], float(answer.fun)


@pytest.mark.parametrize(
    "problem",
    [drawn(rl.Quantile, level=0.3), drawn(rl.Hinge, samples=30, weights="rows"), drawn(rl.Quantile, whole=True)],
)
def test_minimisers_are_those_of_linear_programming(problem: Any) -> None:
    x, least = by_linear_program(problem)
    assert total_value(problem, problem.minimiser()) == pytest.approx(least, abs=1e-12)
    if np.isfinite(problem.optimum).all():
        np.testing.assert_allclose(problem.optimum, x, atol=1e-9)
        assert problem.objective_gaps(problem.optimum[None]) == [0.0]


def test_quantiles_as_statsmodels_fits_them() -> None:
    import statsmodels.api as sm

    problem = drawn(rl.Quantile, level=0.3)
    fit = sm.QuantReg(problem.rows.targets, problem.rows.features).fit(q=0.3)
    np.testing.assert_allclose(problem.optimum, fit.params, atol=1e-4)


def test_a_machine_with_a_ridge_as_scikit_learn_fits_it() -> None:
    svm = pytest.importorskip("sklearn.svm")
    problem = drawn(rl.Hinge, ridge=0.1)
    # Σf_i = (1/9)Σ(1 − m)₊ + N·ridge/2·‖x‖².
    fit = svm.SVC(C=1.0 / (9 * AGENTS * 0.1), kernel=lambda a, b: a @ b.T, tol=1e-10).fit(
        problem.rows.features, problem.rows.targets
    )
    # This one has an intercept, so that what it finds is compared where it has it too.
    rows = np.column_stack([problem.rows.features, np.full(len(problem.rows.targets), 1e4)])
    own = rl.Hinge(np.split(rows, AGENTS), np.split(problem.rows.targets, AGENTS), ridge=0.1)
    slopes = fit.dual_coef_[0] @ problem.rows.features[fit.support_]
    np.testing.assert_allclose(own.optimum[:-1], slopes, atol=1e-5)
    np.testing.assert_allclose(own.optimum[-1] * 1e4, fit.intercept_[0], atol=1e-4)


def test_the_median_is_half_the_least_sum_of_residuals_and_many_are_smooth_ones() -> None:
    median, points = drawn(rl.Quantile), np.random.default_rng(0).normal(size=(AGENTS, 3))
    rows = median.rows
    residuals = np.abs(rows.targets - (rows.features * points[rows.owners]).sum(axis=1))
    np.testing.assert_allclose(median.values(points), 0.5 * rows.sums(residuals) / rows.counts)
    narrow = 1e-7
    machine, rounded = (
        drawn(rl.Hinge, ridge=0.1),
        drawn(lambda f, t: rl.SmoothedHinge(f, np.where(t > 0, 1.0, -1.0), narrow, 0.1)),
    )
    np.testing.assert_allclose(rounded.optimum, machine.optimum, atol=1e-6)


def test_where_several_minimise_there_is_none_to_measure_by_and_the_objective_remains() -> None:
    """The median of two numbers is any between them."""
    problem = rl.Quantile([[[1.0]], [[1.0]]], [[1.0], [3.0]])
    assert np.isnan(problem.optimum).all() and problem.minimiser() == pytest.approx([1.0], abs=1e-9)
    run = rl.simulate(rl.IADMM(rho=1.0), problem, rl.ring(2), 200, engine="python")
    assert not run.has_optimum and [*run.history.columns][-2:] == ["consensus", "objective"]
    assert run.history["objective"].iloc[-1] == pytest.approx(1.0, abs=1e-9)
    known = problem.with_optimum([2.0])
    assert rl.simulate(rl.IADMM(rho=1.0), known, rl.ring(2), 50, engine="python").has_optimum
    with pytest.raises(ValueError, match=r"The optimum is none: Σf_i is 1\.5 there, and elsewhere 1\."):
        problem.with_optimum([0.5])
    with pytest.raises(ValueError, match="was said to have none"):
        rl.simulate(rl.IADMM(), problem, rl.ring(2), 5, tolerance=1e-3)
    ranked = rl.compare(
        [rl.IADMM(rho=1.0), rl.WADMM(rho=1.0)],
        problem,
        rl.ring(2),
        seeds=[0],
        units=100,
        engine="python",
        progress=False,
    )
    assert "objective" in str(ranked)


@pytest.mark.parametrize(
    "algorithm",
    [rl.WPG(), rl.EXTRA(), rl.SealedLaps(), rl.IADMM(first_order=True), rl.SIADMM(), rl.LEAD()],
)
def test_what_needs_gradients_says_what_to_use_instead(algorithm: Any) -> None:
    with pytest.raises(ValueError, match=r"roundelay\.IADMM\(\) or"):
        rl.simulate(algorithm, drawn(rl.Quantile), rl.ring(AGENTS), 10)


def test_a_token_and_gossip_end_where_no_gradient_leads() -> None:
    problem, network = drawn(rl.Quantile, level=0.3, samples=20), rl.ring(AGENTS)
    token = rl.simulate(rl.IADMM(rho=0.3), problem, network, 2000, engine="python", monitors=[rl.KKTResiduals()])
    gossip = rl.simulate(rl.DADMM(c=0.1), problem, network, iterations=400, engine="python")
    shifted = rl.simulate(rl.IADMM(rho=0.3), problem, network, 2000, engine="python", x0=[1.0, 0.0, -1.0])
    for run, error in ((token, 1e-9), (shifted, 1e-9), (gossip, 1e-4)):
        assert run.history["error"].iloc[-1] < error, run.algorithm.name
    assert np.isnan(token.history["kkt_gradient"]).all() and token.history["kkt_multipliers"].iloc[-1] < 1e-9
    for ask in (problem.gradients, problem.total_gradient, lambda x: problem.hessian(0, x[0])):
        with pytest.raises(ValueError, match="A loss with a corner has no gradient: use"):
            ask(np.zeros((AGENTS, 3)) if ask != problem.total_gradient else np.zeros(3))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5])
def test_levels_lie_between_0_and_1(level: float) -> None:
    with pytest.raises(ValueError, match="level is"):
        rl.Quantile([[[1.0]]], [[1.0]], level)
