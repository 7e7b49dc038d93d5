"""The gossip references, held to the optimum, to each other, and to values worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from tests.reference import gossip
from tests.reference.dense import Array, DenseLogistic, DenseQuadratic, LocalObjective, optimum_smooth
from tests.reference.gossip import GossipTrajectory

N, P = 7, 2
PROBLEMS = ("least_squares", "logistic")


# The problem: seven agents on a ring with three chords, which has odd cycles and degrees 2 to 4.


def _adjacency() -> Array:
    links = [(i, (i + 1) % N) for i in range(N)] + [(0, 2), (0, 4), (3, 5)]
    matrix = np.zeros((N, N))
    for i, j in links:
        matrix[i, j] = matrix[j, i] = 1.0
    return matrix


ADJACENCY = _adjacency()
W = gossip.metropolis(ADJACENCY)
COLOURS = np.array([0, 1, 2, 0, 1, 2, 3])


def _agents(problem: str) -> list[LocalObjective]:
    random = np.random.default_rng(20260)
    agents: list[LocalObjective] = []
    for i in range(N):
        rows = random.normal(size=(8, P))
        if problem == "least_squares":
            targets = rows @ np.array([1.0, -2.0]) + 0.5 * i + random.normal(size=8)
            agents.append(DenseQuadratic.from_rows(rows, targets, "mean"))
        else:
            labels = np.where(rows @ np.array([1.0, 0.5]) + random.normal(size=8) >= 0.2 * i - 0.5, 1.0, -1.0)
            agents.append(DenseLogistic.from_rows(rows, labels, ridge=0.1))
    return agents


AGENTS = {problem: _agents(problem) for problem in PROBLEMS}
OPTIMA = {problem: optimum_smooth(agents) for problem, agents in AGENTS.items()}


def _smoothness(agents: Sequence[LocalObjective]) -> float:
    """The largest curvature of any agent (of a logistic one, it is largest at 0)."""
    return max(float(np.linalg.eigvalsh(agent.hessian(np.zeros(P)))[-1]) for agent in agents)


SMOOTHNESS = {problem: _smoothness(agents) for problem, agents in AGENTS.items()}


def _random_start(seed: int = 5) -> Array:
    return np.random.default_rng(seed).normal(size=(N, P))


def _error(xs: Array, problem: str) -> float:
    """The largest distance to the optimum over the last 50 entries."""
    return float(np.abs(xs[-50:] - OPTIMA[problem]).max())


def _identity(k: int, i: int, v: Array) -> Array:
    return v


def _gradients(agents: Sequence[LocalObjective], x: Array) -> Array:
    return np.array([agent.gradient(x_i) for agent, x_i in zip(agents, x, strict=True)])


def _centralised(agents: Sequence[LocalObjective], alpha: float, iterations: int, start: Array) -> Array:
    """x⁺ = x − α (1/N) Σ ∇f_i(x), as (K+1, p)."""
    xs = [start]
    for _ in range(iterations):
        xs.append(xs[-1] - alpha * np.mean([agent.gradient(xs[-1]) for agent in agents], axis=0))
    return np.array(xs)


def _assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance)


# Every exact method reaches the optimum

Method = Callable[[list[LocalObjective], float], Array]
UNIFORMS = np.random.default_rng(8).uniform(size=(4000, N, P))
NORMALS = np.random.default_rng(9).normal(size=(4000, N, P))
WALK = np.random.default_rng(10).integers(N, size=2000)
WEIGHTS = np.triu(ADJACENCY * np.random.default_rng(11).uniform(0.2, 1.0, size=(N, N)))
WEIGHTS = WEIGHTS + WEIGHTS.T
WEIGHTS[0, 4] = WEIGHTS[4, 0] = 0.0


def _dithered(bits: int) -> Callable[[int, int, Array], Array]:
    return lambda k, i, v: gossip.dithered_bits(bits, v, UNIFORMS[k - 1, i])


def _admm(iterations: int, **options: Any) -> Method:
    """`decentralised_admm` with the penalty L/8 on every link."""
    return lambda a, L: gossip.decentralised_admm(a, L / 8.0 * ADJACENCY, iterations, **options).xs


def _linear_admm(solve: Literal["first_order", "cola"], iterations: int, **options: Any) -> Method:
    """The same with linearised objectives and the inertia L."""
    return lambda a, L: (
        gossip.decentralised_admm(a, L / 8.0 * ADJACENCY, iterations, solve=solve, inertia=L, **options).xs
    )


EXACT: dict[str, Method] = {
    "d_admm": _admm(150),
    "d_admm_from_x0": _admm(150, x0=_random_start()),
    "d_admm_first_order": _linear_admm("first_order", 500),
    "d_admm_first_order_no_inertia": lambda a, L: (
        gossip.decentralised_admm(a, L * ADJACENCY, 500, solve="first_order").xs
    ),
    "weighted_admm": lambda a, L: gossip.decentralised_admm(a, L / 4.0 * WEIGHTS, 200).xs,
    "stiffening_admm": _admm(160, stiffness=lambda k: min(1.0 + 0.01 * k, 2.0)),
    "coca": _admm(310, threshold=lambda k: 0.9**k),
    "coca_first_order": _linear_admm("first_order", 700, threshold=lambda k: 0.95**k),
    "cola": _linear_admm("cola", 700, threshold=lambda k: 0.95**k),
    "dp_admm": lambda a, L: gossip.dp_admm_printed(a, ADJACENCY, L / 8.0, 150).xs,
    "coloured_admm": lambda a, L: gossip.coloured_admm(a, ADJACENCY, COLOURS, L / 8.0, 170).xs,
    "extra": lambda a, L: gossip.extra(a, W, 0.5 / L, 500).xs,
    "nids": lambda a, L: gossip.nids(a, W, 1.0 / L, 500).xs,
    "gradient_tracking": lambda a, L: gossip.gradient_tracking(a, W, 0.1 / L, 1000).xs,
    "gradient_tracking_atc": lambda a, L: gossip.gradient_tracking(a, W, 0.1 / L, 1000, True).xs,
    "lead_2_bits": lambda a, L: gossip.lead(a, W, 1.0 / L, 1.0, 0.5, _dithered(2), 500).xs,
    "scaffnew": lambda a, L: (
        gossip.scaffnew(a, W, 1.0 / L, 0.3 * L / 2.0, 0.3, UNIFORMS[:, 0, 0] < 0.3, 2000, x0=_random_start()).xs
    ),
    "error_feedback_identity": lambda a, L: gossip.error_feedback(a, 1.0 / L, _identity, 200).xs,
    "pqasgd_one_step_identity": lambda a, L: gossip.pqasgd(a, 1.0 / L, 1, _identity, 200).xs,
    "mc_sag": lambda a, L: gossip.mc_sag(a, WALK, 0.05 / L, 2000)[:, None, :],
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_methods_reach_the_optimum(name: str, problem: str) -> None:
    xs = EXACT[name](AGENTS[problem], SMOOTHNESS[problem])
    assert _error(xs, problem) < 1e-10


# The biased ones settle near it, and only near it

BIASED: dict[str, Method] = {
    "quantised_admm": _admm(160, compress=lambda k, i, v: gossip.round_to(1e-2, v)),
    "quantised_admm_dithered": _admm(160, compress=lambda k, i, v: gossip.dithered_round(1e-2, v, UNIFORMS[k - 1, i])),
    "coca_constant_threshold": _admm(160, threshold=lambda k: 1e-2),
    "dual_perturbation": _admm(160, dual_noise=1e-2 * NORMALS[:160]),
    "primal_perturbation": _admm(160, primal_noise=1e-2 * NORMALS[:160]),
    "penalty_perturbation": _admm(160, penalty_noise=1e-2 * NORMALS[:160], stiffness=lambda k: 1.2),
    "dgd": lambda a, L: gossip.dgd(a, W, np.full(2000, 0.1 / L)).xs,
    "dgd_atc": lambda a, L: gossip.dgd(a, W, np.full(2000, 0.1 / L), True).xs,
    "choco_identity": lambda a, L: gossip.choco(a, W, 0.1 / L, 1.0, _identity, 2000).xs,
    "choco_top_1": lambda a, L: gossip.choco(a, W, 0.05 / L, 0.3, lambda k, i, v: gossip.top_k(1, v), 2000).xs,
    "error_feedback_sign": lambda a, L: (
        gossip.error_feedback(a, 0.05 / L, lambda k, i, v: gossip.scaled_sign(v), 2000).xs
    ),
    "error_feedback_top_1": lambda a, L: (
        gossip.error_feedback(a, 0.05 / L, lambda k, i, v: gossip.top_k(1, v), 2000).xs
    ),
    "pqasgd_4_bits": lambda a, L: gossip.pqasgd(a, 0.1 / L, 1, _dithered(4), 2000).xs,
    "pqasgd_local_steps": lambda a, L: gossip.pqasgd(a, 0.02 / L, 5, _identity, 4000).xs,
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", BIASED)
def test_biased_methods_settle_near_the_optimum(name: str, problem: str) -> None:
    xs = BIASED[name](AGENTS[problem], SMOOTHNESS[problem])
    error = _error(xs, problem)
    assert 3e-4 < error < 0.2 * np.linalg.norm(OPTIMA[problem])
    # No longer on the way there: the first half of the run had brought it as close.
    assert error > 0.2 * _error(xs[: len(xs) // 2 + 1], problem)


@pytest.mark.parametrize("step", [1e-2, 1e-4, 1e-6])
def test_quantised_admm_stops_about_one_step_away(step: float) -> None:
    xs = gossip.decentralised_admm(
        AGENTS["least_squares"], 0.5 * ADJACENCY, 500, compress=lambda k, i, v: gossip.round_to(step, v)
    ).xs
    assert 0.05 * step < _error(xs, "least_squares") < 20.0 * step


def test_dgd_has_the_fixed_point_that_its_equation_gives() -> None:
    agents, alpha = AGENTS["least_squares"], 0.1 / SMOOTHNESS["least_squares"]
    # (I − W)x = −α∇F(x), with ∇f_i(x) = H_i x − b_i.
    system = np.kron(np.eye(N) - W, np.eye(P))
    right = np.zeros(N * P)
    for i, agent in enumerate(agents):
        block = slice(i * P, (i + 1) * P)
        system[block, block] += alpha * agent.hessian(np.zeros(P))
        right[block] = -alpha * agent.gradient(np.zeros(P))
    fixed = np.linalg.solve(system, right).reshape(N, P)
    _assert_close(gossip.dgd(agents, W, np.full(4000, alpha)).xs[-1], fixed, 1e-12)


def test_dgd_with_shrinking_steps_approaches_the_optimum() -> None:
    steps = 1.0 / SMOOTHNESS["least_squares"] / np.arange(1, 20001) ** 0.75
    xs = gossip.dgd(AGENTS["least_squares"], W, steps).xs
    early, late = (np.abs(xs[k] - OPTIMA["least_squares"]).max() for k in (200, 20000))
    assert late < 0.1 * early


# Identities between methods


@pytest.mark.parametrize("start", ["zero", "random"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_printed_dp_admm_is_d_admm(problem: str, start: str) -> None:
    x0 = None if start == "zero" else _random_start()
    printed = gossip.dp_admm_printed(AGENTS[problem], ADJACENCY, 0.4, 30, x0=x0)
    general = gossip.decentralised_admm(AGENTS[problem], 0.4 * ADJACENCY, 30, x0=x0)
    assert printed.ys is not None and general.ys is not None
    _assert_close(printed.xs, general.xs, 1e-12)
    _assert_close(2.0 * printed.ys, general.ys, 1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_lead_without_quantisation_is_nids_from_the_start(problem: str, alpha: float) -> None:
    agents, eta = AGENTS[problem], 1.0 / SMOOTHNESS[problem]
    x0 = _random_start()
    lead = gossip.lead(agents, W, eta, 1.0, alpha, _identity, 100, x0=x0)
    nids = gossip.nids(agents, W, eta, 100, x0=x0)
    _assert_close(lead.xs, nids.xs, 1e-13)
    assert np.array_equal(lead.sent, nids.sent)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_scaffnew_that_always_communicates_is_the_recursion_of_nids(problem: str) -> None:
    agents, gamma = AGENTS[problem], 1.0 / SMOOTHNESS[problem]
    x0 = _random_start()
    half = (np.eye(N) + W) / 2.0
    xs = [x0, half @ (x0 - gamma * _gradients(agents, x0))]
    for _ in range(99):
        change = _gradients(agents, xs[-1]) - _gradients(agents, xs[-2])
        xs.append(half @ (2.0 * xs[-1] - xs[-2] - gamma * change))
    run = gossip.scaffnew(agents, W, gamma, 1.0 / (2.0 * gamma), 1.0, np.ones(100, dtype=bool), 100, x0=x0)
    _assert_close(run.xs, np.array(xs), 1e-13)
    nids = gossip.nids(agents, W, gamma, 100, x0=x0)
    assert np.abs(run.xs[1] - nids.xs[1]).max() > 1e-2


AVERAGE = np.full((N, N), 1.0 / N)
COMPLETE: dict[str, Callable[[list[LocalObjective], float, Array], GossipTrajectory]] = {
    "dgd": lambda a, alpha, x0: gossip.dgd(a, AVERAGE, np.full(100, alpha), False, x0=x0),
    "dgd_atc": lambda a, alpha, x0: gossip.dgd(a, AVERAGE, np.full(100, alpha), True, x0=x0),
    "gradient_tracking": lambda a, alpha, x0: gossip.gradient_tracking(a, AVERAGE, alpha, 100, False, x0=x0),
    "gradient_tracking_atc": lambda a, alpha, x0: gossip.gradient_tracking(a, AVERAGE, alpha, 100, True, x0=x0),
}


def test_metropolis_of_the_complete_graph_averages() -> None:
    _assert_close(gossip.metropolis(np.ones((N, N)) - np.eye(N)), AVERAGE, 1e-15)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ["dgd_atc", "gradient_tracking_atc"])
def test_adapt_then_combine_on_the_complete_graph_is_gradient_descent(name: str, problem: str) -> None:
    """At every index from a common start; from any other, from x¹ on."""
    agents, alpha = AGENTS[problem], 0.5 / SMOOTHNESS[problem]
    common = np.array([0.3, -0.7])
    run = COMPLETE[name](agents, alpha, np.tile(common, (N, 1)))
    expected = _centralised(agents, alpha, 100, common)
    _assert_close(run.xs, np.broadcast_to(expected[:, None], run.xs.shape), 1e-13)

    x0 = _random_start()
    run = COMPLETE[name](agents, alpha, x0)
    first = x0.mean(axis=0) - alpha * _gradients(agents, x0).mean(axis=0)
    expected = _centralised(agents, alpha, 99, first)
    _assert_close(run.xs[1:], np.broadcast_to(expected[:, None], run.xs[1:].shape), 1e-13)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ["dgd", "gradient_tracking"])
def test_the_plain_form_on_the_complete_graph_is_not_gradient_descent(name: str, problem: str) -> None:
    """Only the mean of x¹ agrees: the agents differ at x¹, and the mean from x² on."""
    agents, alpha = AGENTS[problem], 0.1 / SMOOTHNESS[problem]
    run = COMPLETE[name](agents, alpha, np.zeros((N, P)))
    expected = _centralised(agents, alpha, 100, np.zeros(P))
    _assert_close(run.xs[1].mean(axis=0), expected[1], 1e-13)
    assert np.abs(run.xs[1] - expected[1]).max() > 1e-3
    assert np.abs(run.xs[2].mean(axis=0) - expected[2]).max() > 1e-5


@pytest.mark.parametrize("problem", PROBLEMS)
def test_averaging_methods_without_compression_are_gradient_descent(problem: str) -> None:
    agents, alpha = AGENTS[problem], 1.0 / SMOOTHNESS[problem]
    expected = _centralised(agents, alpha, 100, np.zeros(P))
    for run in (
        gossip.error_feedback(agents, alpha, _identity, 100),
        gossip.pqasgd(agents, alpha, 1, _identity, 100),
    ):
        _assert_close(run.xs, np.broadcast_to(expected[:, None], run.xs.shape), 1e-13)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_choco_without_compression_is_dgd(problem: str) -> None:
    agents, eta, gamma = AGENTS[problem], 0.5 / SMOOTHNESS[problem], 0.4
    run = gossip.choco(agents, W, eta, gamma, _identity, 100, x0=_random_start())
    lazy = (1.0 - gamma) * np.eye(N) + gamma * W
    expected = gossip.dgd(agents, lazy, np.full(100, eta), True, x0=_random_start())
    _assert_close(run.xs, expected.xs, 1e-13)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_cola_is_first_order_admm_where_every_message_is_sent(problem: str) -> None:
    agents, L = AGENTS[problem], SMOOTHNESS[problem]
    runs = [
        gossip.decentralised_admm(agents, WEIGHTS, 100, solve=solve, inertia=L, x0=_random_start())
        for solve in ("cola", "first_order")
    ]
    _assert_close(runs[0].xs, runs[1].xs, 1e-13)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_extra_is_colas_form_on_a_regular_graph(problem: str) -> None:
    """With α = 1/(4c + ρ_l) and W = I − 2αcL on a ring whose Laplacian is L, from 0."""
    ring = np.roll(np.eye(N), 1, axis=1) + np.roll(np.eye(N), -1, axis=1)
    c, inertia = 0.3, SMOOTHNESS[problem]
    alpha = 1.0 / (4.0 * c + inertia)
    mixing = np.eye(N) - 2.0 * alpha * c * (2.0 * np.eye(N) - ring)
    expected = gossip.extra(AGENTS[problem], mixing, alpha, 100)
    run = gossip.decentralised_admm(AGENTS[problem], c * ring, 100, solve="cola", inertia=inertia)
    _assert_close(run.xs, expected.xs, 1e-12)


def test_mc_sag_of_one_agent_is_gradient_descent() -> None:
    agents = AGENTS["logistic"][:1]
    tokens = gossip.mc_sag(agents, np.zeros(50, dtype=int), 0.5, 50, x0=np.array([1.0, -1.0]))
    _assert_close(tokens, _centralised(agents, 0.5, 50, np.array([1.0, -1.0])), 1e-13)


def test_coloured_admm_minimises_its_augmented_function_at_every_turn() -> None:
    """∇f_i(x_i) + γ_i + ρ Σ_j (x_i − x_j) = 0, with x_j new where its colour came first, else old."""
    agents, rho = AGENTS["logistic"], 0.5
    run = gossip.coloured_admm(agents, ADJACENCY, COLOURS, rho, 5, x0=_random_start())
    assert run.ys is not None
    for k in range(5):
        for i, agent in enumerate(agents):
            earlier = (COLOURS[i] > COLOURS)[:, None]
            others = np.where(earlier, run.xs[k + 1], run.xs[k])
            own = run.xs[k + 1, i]
            slope = agent.gradient(own) + run.ys[k, i] + rho * ADJACENCY[i] @ (own - others)
            _assert_close(slope, np.zeros(P), 1e-12)


# The perturbations of DP-ADMM, against the gradient of what each agent minimises


@pytest.mark.parametrize("kind", ["dual_noise", "primal_noise", "penalty_noise"])
def test_perturbed_admm_minimises_the_perturbed_function(kind: str) -> None:
    """0 is the gradient at f = x_i of O_i(f) + 2(λ_i + ε)ᵀf + ηg Σ_j ‖½(f_i + f_j) + ε − f‖²."""
    agents, eta, g = AGENTS["logistic"], 0.3, 1.5
    noise = 0.1 * NORMALS[:10]
    run = gossip.decentralised_admm(agents, eta * ADJACENCY, 10, stiffness=lambda k: g, **{kind: noise})
    assert run.ys is not None
    broadcast = run.xs.copy()
    if kind == "primal_noise":
        broadcast[1:] += noise
    for k in range(10):
        for i, agent in enumerate(agents):
            own, others = broadcast[k, i], broadcast[k, ADJACENCY[i] > 0]
            dual = run.ys[k, i] / 2.0 + (noise[k, i] if kind == "dual_noise" else 0.0)
            shift = noise[k, i] if kind == "penalty_noise" else 0.0
            f = run.xs[k + 1, i]
            pull = (f - (0.5 * (own + others) + shift)).sum(axis=0)
            _assert_close(agent.gradient(f) + 2.0 * dual + 2.0 * eta * g * pull, np.zeros(P), 1e-12)
        laplacian = np.diag(ADJACENCY.sum(axis=1)) - ADJACENCY
        _assert_close(run.ys[k + 1] - run.ys[k], eta * laplacian @ broadcast[k + 1], 1e-12)
    assert np.abs(run.ys.sum(axis=1)).max() < 1e-12


# Who transmits


def test_everyone_transmits_where_nothing_stops_them() -> None:
    agents = AGENTS["logistic"]
    for run in (
        gossip.decentralised_admm(agents, ADJACENCY, 4),
        gossip.decentralised_admm(agents, ADJACENCY, 4, threshold=lambda k: 0.0),
        gossip.dp_admm_printed(agents, ADJACENCY, 1.0, 4),
        gossip.coloured_admm(agents, ADJACENCY, COLOURS, 1.0, 4),
        gossip.dgd(agents, W, np.full(4, 0.1)),
        gossip.extra(agents, W, 0.1, 4),
        gossip.gradient_tracking(agents, W, 0.1, 4),
        gossip.choco(agents, W, 0.1, 1.0, _identity, 4),
        gossip.error_feedback(agents, 0.1, _identity, 4),
    ):
        assert run.sent.shape == (4, N) and run.sent.dtype == np.bool_ and run.sent.all()
        assert run.xs.shape == (5, N, P)


def test_first_steps_without_communication_send_nothing() -> None:
    agents = AGENTS["logistic"]
    for run in (gossip.nids(agents, W, 0.1, 4), gossip.lead(agents, W, 0.1, 1.0, 0.5, _identity, 4)):
        assert run.sent.sum(axis=1).tolist() == [0, N, N, N]


def test_coins_and_local_steps_decide_who_sends() -> None:
    agents = AGENTS["logistic"]
    coins = np.array([True, False, False, True])
    run = gossip.scaffnew(agents, W, 0.1, 1.0, 0.5, coins, 4)
    assert np.array_equal(run.sent, np.tile(coins[:, None], (1, N)))
    calls: list[tuple[int, int]] = []

    def quantise(k: int, i: int, v: Array) -> Array:
        calls.append((k, i))
        return v

    run = gossip.pqasgd(agents, 0.1, 2, quantise, 5)
    assert run.sent.all(axis=1).tolist() == run.sent.any(axis=1).tolist() == [False, True, False, True, False]
    assert calls == [(k, i) for k in (2, 4) for i in range(N)]
    assert np.ptp(run.xs[2], axis=0).max() == 0.0 < np.ptp(run.xs[1], axis=0).max()


def test_coca_keeps_what_was_last_sent() -> None:
    agents, c = AGENTS["logistic"], 0.3
    run = gossip.decentralised_admm(agents, c * ADJACENCY, 60, threshold=lambda k: 0.9**k)
    assert run.ys is not None
    assert 0.1 < run.sent.mean() < 0.9
    last = np.zeros((N, P))
    laplacian = np.diag(ADJACENCY.sum(axis=1)) - ADJACENCY
    for k in range(1, 61):
        expected = np.linalg.norm(run.xs[k] - last, axis=1) >= 0.9**k
        assert np.array_equal(run.sent[k - 1], expected)
        last = np.where(run.sent[k - 1][:, None], run.xs[k], last)
        _assert_close(run.ys[k] - run.ys[k - 1], c * laplacian @ last, 1e-13)


def test_compressors_are_called_in_order_and_counted_from_one() -> None:
    agents = AGENTS["logistic"]
    calls: list[tuple[int, int]] = []

    def compress(k: int, i: int, v: Array) -> Array:
        calls.append((k, i))
        return v

    gossip.decentralised_admm(agents, ADJACENCY, 3, compress=compress)
    gossip.choco(agents, W, 0.1, 1.0, compress, 3)
    gossip.error_feedback(agents, 0.1, compress, 3)
    gossip.lead(agents, W, 0.1, 1.0, 0.5, compress, 4)
    assert calls == 4 * [(k, i) for k in (1, 2, 3) for i in range(N)]


# Steps worked out by hand, for two agents with f_1 = ½(x − 2)² and f_2 = ½(x + 4)²; their optimum is −1


PAIR: list[LocalObjective] = [
    DenseQuadratic.from_rows([[1.0]], [2.0]),
    DenseQuadratic.from_rows([[1.0]], [-4.0]),
]
LINK = np.array([[0.0, 1.0], [1.0, 0.0]])
PAIR_W = np.array([[0.75, 0.25], [0.25, 0.75]])


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        # x¹ = (2, −4)/(1 + 2), λ = (2, −2); x² = (2 + w_1, −4 + w_2)/3 with w = (x_1 + x_2) − λ.
        pytest.param(
            lambda: gossip.decentralised_admm(PAIR, LINK, 2), [[2 / 3, -4 / 3], [-2 / 9, -8 / 9]], id="d_admm"
        ),
        # x_1 = 2/2, then x_2 = (−4 + 1)/2; γ = (2.5, −2.5); x_1 = (2 − 1.5 − 2.5)/2, x_2 = (−4 − 1 + 2.5)/2.
        pytest.param(
            lambda: gossip.coloured_admm(PAIR, LINK, np.array([0, 1]), 1.0, 2),
            [[1.0, -1.5], [-1.0, -1.25]],
            id="coloured_admm",
        ),
        # x¹ = (1, −2), ∇F = (−1, 2); W x¹ = (0.25, −1.25).
        pytest.param(lambda: gossip.dgd(PAIR, PAIR_W, np.array([0.5, 0.5])), [[1.0, -2.0], [0.75, -2.25]], id="dgd"),
        # x − α∇F = (1, −2), then (0.25, −1.25) − ½(−1.75, 2.75).
        pytest.param(
            lambda: gossip.dgd(PAIR, PAIR_W, np.array([0.5, 0.5]), True),
            [[0.25, -1.25], [0.1875, -1.6875]],
            id="dgd_atc",
        ),
        # x¹ = (1, −2), ∇F(x⁰) = (−2, 4); x² = x¹ + Wx¹ − ½(∇F(x¹) − ∇F(x⁰)) = (1.25, −3.25) − ½(1, −2).
        pytest.param(lambda: gossip.extra(PAIR, PAIR_W, 0.5, 2), [[1.0, -2.0], [0.75, -2.25]], id="extra"),
        # x² = W̃((2, −4) − ½(1, −2)) with W̃ = [[.875, .125], [.125, .875]].
        pytest.param(lambda: gossip.nids(PAIR, PAIR_W, 0.5, 2), [[1.0, -2.0], [0.9375, -2.4375]], id="nids"),
        # s¹ = W(−2, 4) + (1, −2) = (0.5, 0.5); x² = (0.25, −1.25) − ½s¹.
        pytest.param(
            lambda: gossip.gradient_tracking(PAIR, PAIR_W, 0.5, 2),
            [[1.0, -2.0], [0.0, -1.5]],
            id="gradient_tracking",
        ),
        # s⁰ = (−0.5, 2.5), x¹ = W(0.25, −1.25) = (−0.125, −0.875), s¹ = W((−0.5, 2.5) + x¹) = (−0.0625, 1.0625).
        pytest.param(
            lambda: gossip.gradient_tracking(PAIR, PAIR_W, 0.5, 2, True),
            [[-0.125, -0.875], [-0.421875, -1.078125]],
            id="gradient_tracking_atc",
        ),
        # x¹ = (1, −2), Y = (1.5, −3), q = (1, −3), Wq = (0, −2), D = ½·(1, −1)·2 = (1, −1): x² = Y − ½D.
        pytest.param(
            lambda: gossip.lead(PAIR, PAIR_W, 0.5, 1.0, 0.5, lambda k, i, v: np.trunc(v), 2),
            [[1.0, -2.0], [1.0, -2.5]],
            id="lead",
        ),
        # x = (1, −2), x̂ = (1, −2): x¹ = (1 − .75, −2 + .75); x = (1.125, −2.625), q = (0, 0): again ∓.75.
        pytest.param(
            lambda: gossip.choco(PAIR, PAIR_W, 0.5, 1.0, lambda k, i, v: np.trunc(v), 2),
            [[0.25, -1.25], [0.375, -1.875]],
            id="choco",
        ),
        # x̂ = (1, −2), γτ/q = ½: x¹ = W̃x̂ = (.625, −1.625), h = (.5/.5)(x¹ − x̂); x² = x¹ − ½(∇F − h).
        pytest.param(
            lambda: gossip.scaffnew(PAIR, PAIR_W, 0.5, 0.5, 0.5, np.array([True, False]), 2),
            [[0.625, -1.625], [1.125, -2.625]],
            id="scaffnew",
        ),
        # p = (−1, 2), Δ = (0, 2), e = (−1, 0), x¹ = −1; ∇F = (−3, 3): p = (−2.5, 1.5), Δ = (−2, 0), x² = 0.
        pytest.param(
            lambda: gossip.error_feedback(PAIR, 0.5, lambda k, i, v: 2.0 * np.trunc(v / 2.0), 2),
            [[-1.0, -1.0], [0.0, 0.0]],
            id="error_feedback",
        ),
        # x = (1, −2), then (1.5, −3), sent as (1, −3).
        pytest.param(
            lambda: gossip.pqasgd(PAIR, 0.5, 2, lambda k, i, v: np.trunc(v), 2),
            [[1.0, -2.0], [-1.0, -1.0]],
            id="pqasgd",
        ),
    ],
)
def test_two_iterations_by_hand(run: Callable[[], GossipTrajectory], expected: list[list[float]]) -> None:
    _assert_close(run().xs[1:, :, 0], np.array(expected), 1e-14)


def test_mc_sag_by_hand() -> None:
    # ḡ = −1, x = ½; ḡ = −1 + 4.5/2, x = ½ − 0.625; ḡ = 1.25 + (−2.125 + 2)/2.
    tokens = gossip.mc_sag(PAIR, np.array([0, 1, 0]), 0.5, 3)
    _assert_close(tokens[:, 0], np.array([0.0, 0.5, -0.125, -0.71875]), 1e-14)


# Mixing matrices and compressors


def test_metropolis_weights() -> None:
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    _assert_close(gossip.metropolis(path), np.array([[2, 1, 0], [1, 1, 1], [0, 1, 2]]) / 3.0, 1e-15)
    _assert_close(W, W.T, 0.0)
    _assert_close(W.sum(axis=1), np.ones(N), 1e-15)
    assert np.array_equal((W > 0) & ~np.eye(N, dtype=bool), ADJACENCY > 0)


def test_rounding() -> None:
    v = np.array([0.24, -0.26, 0.25, 0.75, 0.0])
    assert gossip.round_to(0.5, v).tolist() == [0.0, -0.5, 0.0, 1.0, 0.0]
    u = np.array([0.0, 0.0, 0.5, 0.49, 0.99])
    assert gossip.dithered_round(0.5, v, u).tolist() == [0.0, -0.5, 0.5, 0.5, 0.0]


def test_dithered_bits() -> None:
    v = np.array([4.0, -1.0, 0.5, 0.0])
    # b = 2: two levels of size 2; 2|v|/4 = (2, .5, .25, 0).
    assert gossip.dithered_bits(2, v, np.zeros(4)).tolist() == [4.0, 0.0, 0.0, 0.0]
    assert gossip.dithered_bits(2, v, np.full(4, 0.5)).tolist() == [4.0, -2.0, 0.0, 0.0]
    assert gossip.dithered_bits(2, v, np.full(4, 0.99)).tolist() == [4.0, -2.0, 2.0, 0.0]
    assert gossip.dithered_bits(3, np.zeros(3), np.full(3, 0.99)).tolist() == [0.0, 0.0, 0.0]
    # A float32 scale may be above or below the largest entry, which stays at the top level all the same.
    for top in (0.1, 0.7, 1.0 / 3.0):
        scale = float(np.float32(top))
        assert gossip.dithered_bits(4, np.array([top, -top]), np.full(2, 0.5)).tolist() == [scale, -scale]


def test_dithered_bits_are_unbiased() -> None:
    v = np.array([3.0, -1.3, 0.4])
    dithers = (np.arange(1000) + 0.5) / 1000.0
    mean = np.mean([gossip.dithered_bits(3, v, np.full(3, u)) for u in dithers], axis=0)
    _assert_close(mean, v, 1e-3)


def test_sparsifiers_and_signs() -> None:
    v = np.array([1.0, -3.0, 3.0, 0.0, -1.0])
    assert gossip.top_k(1, v).tolist() == [0.0, -3.0, 0.0, 0.0, 0.0]
    assert gossip.top_k(3, v).tolist() == [1.0, -3.0, 3.0, 0.0, 0.0]
    assert gossip.top_k(5, v).tolist() == v.tolist()
    assert gossip.keep(np.array([4, 2]), v, 2.5).tolist() == [0.0, 0.0, 7.5, 0.0, -2.5]
    size = float(np.float32(1.6))
    assert gossip.scaled_sign(v).tolist() == [size, -size, size, size, -size]


def test_runs_leave_their_arguments_alone() -> None:
    x0 = _random_start()
    gossip.decentralised_admm(AGENTS["logistic"], ADJACENCY, 3, x0=x0)
    gossip.coloured_admm(AGENTS["logistic"], ADJACENCY, COLOURS, 1.0, 3, x0=x0)
    gossip.pqasgd(AGENTS["logistic"], 0.1, 2, _identity, 3, x0=x0)
    assert np.array_equal(x0, _random_start())


def test_impossible_arguments_are_refused() -> None:
    agents = AGENTS["logistic"]
    with pytest.raises(ValueError, match="symmetric"):
        gossip.decentralised_admm(agents, np.triu(ADJACENCY), 1)
    with pytest.raises(ValueError, match="needs a link"):
        gossip.decentralised_admm(agents, np.zeros((N, N)), 1)
    with pytest.raises(ValueError, match="COLA"):
        gossip.decentralised_admm(agents, ADJACENCY, 1, solve="cola", stiffness=lambda k: 2.0)
    with pytest.raises(ValueError, match="same colour"):
        gossip.coloured_admm(agents, ADJACENCY, np.zeros(N, dtype=int), 1.0, 1)
    with pytest.raises(ValueError, match="shape"):
        gossip.extra(agents, W, 0.1, 1, x0=np.zeros((N, P + 1)))
