"""Huber's loss, counts and the smoothed hinge: derivatives, proximal steps, identities with other problems, and other people's solvers."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.agents.agreement.plan import check_kind
from roundelay.problems import losses, total_gradient

from .cases import call_gradient, call_minimise, kernel_function

KINDS: dict[str, Any] = {"huber": rl.Huber, "poisson": rl.Poisson, "smoothed_hinge": rl.SmoothedHinge}
AGENTS = 5


def drawn(kind: str, agents: int = AGENTS, samples: int = 9, dim: int = 3, seed: int = 1, **options: Any) -> Any:
    problem = KINDS[kind].drawn(agents, samples, dim, seed)
    rows = problem.rows
    blocks = [rows.features[rows.of(agent)] for agent in range(agents)]
    return KINDS[kind](blocks, [rows.targets[rows.of(agent)] for agent in range(agents)], **options)


def derivatives_gap(loss: rl.Loss, own: Any, targets: np.ndarray) -> float:
    """How far slope and curvature are from what steps show: imaginary ones, which cancel nothing, and real ones for the value, |r| being in it."""
    points, gap = np.linspace(-2.937, 3.123, 41), 0.0
    for target in targets:
        step = 1e-6
        rise = (loss.value(own, points + step, target) - loss.value(own, points - step, target)) / (2.0 * step)
        turn = np.imag(loss.slope(own, points + 1e-30j, target)) / 1e-30
        for seen, said in ((rise, loss.slope(own, points, target)), (turn, loss.curvature(own, points, target))):
            gap = max(gap, float((np.abs(seen - said) / (1.0 + np.abs(said))).max()))
    return gap


OWN = {
    "huber": losses.HuberNumbers(0.7),
    "poisson": rl.Poisson.drawn(1, 1, 1, 0).own,
    "smoothed_hinge": losses.HingeWidth(0.3),
}
TARGETS = {
    "huber": np.array([-0.33, 0.0, 1.7]),
    "poisson": np.array([0.0, 1.0, 7.0]),
    "smoothed_hinge": np.array([-1.0, 1.0]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_and_curvatures_are_what_steps_show(kind: str) -> None:
    assert derivatives_gap(KINDS[kind].loss, OWN[kind], TARGETS[kind]) < 1e-8


MUTATIONS = [
    ("huber", "value", "0.5 * within", "1.0 * within"),
    ("huber", "slope", "-own.delta", "own.delta"),
    ("huber", "curvature", "<= own.delta", ">= own.delta"),
    ("poisson", "value", "- count * prediction", "+ count * prediction"),
    ("poisson", "slope", "- count", "+ count"),
    ("poisson", "curvature", "np.exp(", "-np.exp("),
    ("smoothed_hinge", "value", "(short - within)", "(short + within)"),
    ("smoothed_hinge", "slope", "-label", "label"),
    ("smoothed_hinge", "curvature", "/ own.smoothing", "* own.smoothing"),
]


@pytest.mark.parametrize(("kind", "which", "old", "new"), MUTATIONS)
def test_one_changed_symbol_is_noticed(kind: str, which: str, old: str, new: str) -> None:
    loss = KINDS[kind].loss
    text = textwrap.dedent(inspect.getsource(getattr(loss, which)))
    body = text.split('"""')[2]
    assert body.count(old) >= 1
    module = dict(vars(losses))
    exec(text.replace(body, body.replace(old, new, 1)), module)
    wrong = loss._replace(**{which: module[getattr(loss, which).__name__]})
    assert derivatives_gap(wrong, OWN[kind], TARGETS[kind]) > 1e-3


def residual(problem: Any, agent: int, x: np.ndarray, v: np.ndarray, penalty: float) -> float:
    """‖∇f_i(x) + penalty·(x − v)‖ relative to the sizes of all that cancels in it."""
    own = problem.rows.of(agent)
    block, slopes = (
        problem.rows.features[own],
        problem.loss.slope(problem.own, problem.rows.features[own] @ x, problem.rows.targets[own]),
    )
    bends = problem.loss.curvature(problem.own, block @ x, problem.rows.targets[own])
    sizes = np.linalg.norm(block, axis=1)
    # What rounding of a prediction makes of the slope counts too.
    terms = problem.scales[agent] * (
        (np.abs(slopes) + np.abs(problem.rows.targets[own])) @ sizes + (bends * sizes**2).sum() * np.linalg.norm(x)
    )
    whole = terms + (problem.ridge + penalty) * np.linalg.norm(x) + penalty * np.linalg.norm(v)
    return float(np.linalg.norm(problem.gradient(agent, x) + penalty * (x - v)) / whole)


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(0, 10**6),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    st.sampled_from([0.1, 1.0, 20.0]),
)
def test_proximal_steps_solve_their_equation(kind: str, seed: int, penalty: float, spread: float) -> None:
    problem = drawn(kind, 2, 6, 2, seed, ridge=0.01)
    rng = np.random.default_rng(seed)
    minimise = kernel_function(problem, call_minimise, compiled=False)
    for agent in range(2):
        v, start, out = spread * rng.normal(size=2), rng.normal(size=2), np.full(2, np.nan)
        minimise(agent, penalty * v, penalty, start, out)
        assert residual(problem, agent, out, v, penalty) <= 1e-12
        assert residual(problem, agent, problem.prox(agent, v, penalty), v, penalty) <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_do_the_same(kind: str) -> None:
    """Gradients to the bit, but for the last digit of e^u, which is the library's; proximal steps to rounding."""
    problem, rng = drawn(kind, ridge=0.05), np.random.default_rng(5)
    for entry, same in ((call_gradient, kind != "poisson"), (call_minimise, False)):
        python, compiled = (kernel_function(problem, entry, compiled) for compiled in (False, True))
        for agent in range(AGENTS):
            w, start, outs = rng.normal(size=3), rng.normal(size=3), np.full((2, 3), np.nan)
            for function, out in zip((python, compiled), outs, strict=True):
                function(*((agent, w, out) if entry is call_gradient else (agent, w, 0.5, start, out)))
            np.testing.assert_allclose(outs[0], outs[1], rtol=0.0 if same else 1e-12, atol=0.0 if same else 1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_end_at_the_minimiser(kind: str) -> None:
    problem = drawn(kind, ridge=0.05)
    run = rl.simulate(rl.IADMM(rho=1.0), problem, rl.ring(AGENTS), 400, engine="python")
    assert run.history["error"].iloc[-1] < 1e-6
    assert np.linalg.norm(total_gradient(problem, problem.optimum)) < 1e-12


def test_a_huber_loss_that_never_bends_is_least_squares() -> None:
    huber = drawn("huber", delta=1e9, ridge=0.2)
    rows = huber.rows
    blocks = [rows.of(agent) for agent in range(AGENTS)]
    squares = rl.LeastSquares(
        [rows.features[own] for own in blocks], [rows.targets[own] for own in blocks], "mean", 0.2, [0.5] * AGENTS
    )
    np.testing.assert_allclose(huber.optimum, squares.optimum, rtol=1e-12)
    one, other = (
        rl.simulate(rl.IADMM(), problem, rl.ring(AGENTS), 60, engine="python").x for problem in (huber, squares)
    )
    np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("smoothing", [1e-1, 1e-4])
def test_a_narrow_corner_is_nearly_the_hinge(smoothing: float) -> None:
    margins = np.linspace(-3.0, 3.0, 301)
    short = np.maximum(1.0 - margins, 0.0) - losses.smoothed_hinge(losses.HingeWidth(smoothing), margins, 1.0)
    assert short.min() >= 0.0 and short.max() <= 0.5 * smoothing + 1e-14


def test_counts_as_statsmodels_fits_them() -> None:
    import statsmodels.api as sm

    problem = drawn("poisson")
    fit = sm.GLM(problem.rows.targets, problem.rows.features, family=sm.families.Poisson()).fit(tol=1e-14, maxiter=100)
    np.testing.assert_allclose(problem.optimum, fit.params, rtol=1e-9)


def test_huber_as_statsmodels_fits_it() -> None:
    import statsmodels.api as sm

    problem = drawn("huber")
    fit = sm.RLM(problem.rows.targets, problem.rows.features, sm.robust.norms.HuberT()).fit(
        update_scale=False, tol=1e-13, maxiter=500
    )
    np.testing.assert_allclose(drawn("huber", delta=1.345 * fit.scale).optimum, fit.params, rtol=1e-8)


def test_a_wide_smoothed_hinge_as_scikit_learn_fits_it() -> None:
    """Where no row is as far as w, it is the squared hinge over 2w."""
    svm = pytest.importorskip("sklearn.svm")
    smoothing, ridge, rows = 50.0, 0.01, AGENTS * 9
    problem = drawn("smoothed_hinge", smoothing=smoothing, ridge=ridge)
    # Σf_i = (1/9)Σ(1 − m)₊²/(2w) + N·ridge/2·‖x‖².
    fit = svm.LinearSVC(
        C=1.0 / (9 * 2 * smoothing * AGENTS * ridge), dual=False, fit_intercept=False, tol=1e-12, max_iter=100_000
    )
    fit.fit(problem.rows.features, problem.rows.targets)
    assert len(problem.rows.targets) == rows
    np.testing.assert_allclose(problem.optimum, fit.coef_[0], rtol=1e-6)


def test_counts_have_no_L_and_say_so() -> None:
    problem, network = drawn("poisson", weights="rows"), rl.ring(AGENTS)
    assert np.isposinf(problem.L)
    assert not rl.IADMM().conditions(problem).hold and not rl.WPG(alpha=0.01).conditions(problem).hold
    with pytest.raises(
        ValueError, match=r"takes its step size from L, which is not known of this problem, or not finite: give alpha"
    ):
        rl.simulate(rl.EXTRA(), problem, network, iterations=5)
    with pytest.raises(ValueError, match="has no bound, so that no ε can be promised"):
        rl.SealedLaps(clip_row=1.0, noise_multiplier=1.0).choice(problem)
    found = rl.simulate(rl.SealedLaps(), problem, network)
    np.testing.assert_allclose(found.estimate, problem.optimum, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rl.Poisson([[[1.0]], [[1.0], [2.0]]], [[1.0], [0.0, -2.0]]), "Agent 1 has the count -2 in row 1: counts are not negative"),
        (lambda: rl.SmoothedHinge([[[1.0]]], [[0.0]]), "Agent 0 has the label 0 in row 0: labels must be -1 or 1"),
        (lambda: rl.SmoothedHinge([[[1.0]]], [[1.0]], smoothing=0.0), "smoothing is 0"),
        (lambda: rl.Huber([[[1.0]]], [[1.0]], delta=-1.0), "delta is -1"),
        (lambda: rl.Poisson([[[1.0]]], [[0.0]]).optimum, "no finite x gives: then a ridge is what helps"),
        (lambda: check_kind("poisson"), "for the simulator alone: counts are fitted by a formula"),
        (lambda: check_kind("smoothed_hinge"), "for the simulator alone: its predictions are no chances"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
