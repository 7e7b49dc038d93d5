"""Exact methods come to the optimum, biased ones to the floor that theory or measurement gives them.

All on the paper's problems with 100 agents and 30 % of the links, by the compiled engine. The tables state the
parameters, and how many iterations (for MC-SAG: hops) each needs to a common error of 1e-9.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import roundelay as rl
from tests.engine.support import dense_agents
from tests.gossip.cases import FIVE, NETWORK, SQUARES
from tests.gossip.support import mixing_matrix

AGENTS = 100
GRAPH = rl.random_network(AGENTS, 0.3, seed=0)
SMALL = rl.paper_least_squares(agents=AGENTS, dim=2, seed=0)
LARGE = rl.paper_least_squares(agents=AGENTS, samples=30, dim=20, seed=0)
LOGISTIC = rl.paper_logistic(agents=AGENTS, seed=0)
SCALE = float(np.linalg.norm(SMALL.optimum))  # 0.61


class Exact(NamedTuple):
    name: str
    algorithm: Any
    problem: Any
    steps: int  # what it needs to 1e-9


# A penalty that is not the same on all links: twice as much on every second one.
UNEQUAL = 0.15 * (1.0 + np.arange(len(GRAPH.edges)) % 2)

L2, L20 = SMALL.L, LARGE.L  # 23.2 and 174.3
EXACT = [
    Exact("D-ADMM", rl.DADMM(0.2), SMALL, 89),
    Exact("D-ADMM by differences of 4 bits", rl.DADMM(0.2, channel=rl.Channel(rl.Quantised(4), None, True)), SMALL, 88),
    Exact("COCA", rl.COCA(0.2), SMALL, 130),
    Exact("weighted ADMM", rl.WeightedADMM(UNEQUAL), SMALL, 85),
    Exact("coloured D-ADMM", rl.ColouredDADMM(0.2), SMALL, 90),
    Exact("EXTRA", rl.EXTRA(0.7 / L2), SMALL, 184),
    Exact("NIDS", rl.NIDS(1.0 / L2), SMALL, 127),
    Exact("gradient tracking", rl.GradientTracking(0.3 / L2), SMALL, 448),
    Exact("gradient tracking, adapt then combine", rl.GradientTracking(0.3 / L2, True), SMALL, 449),
    Exact("Network-DANE", rl.NetworkDANE(0.7 * L2), SMALL, 58),
    Exact("LEAD, 2 bits", rl.LEAD(1.0 / L2), SMALL, 128),
    Exact("Scaffnew", rl.Scaffnew(1.0 / L2, q=0.5), SMALL, 173),
    Exact("MC-SAG, Metropolis walk", rl.MCSAG(0.1 / L2), SMALL, 5232),
    Exact("MC-SAG, cycle", rl.MCSAG(0.02 / L2, rl.Cycle()), SMALL, 6508),
    Exact("D-ADMM", rl.DADMM(0.4), LARGE, 376),
    Exact("COCA", rl.COCA(0.4, rho=0.95), LARGE, 477),
    Exact("weighted ADMM", rl.WeightedADMM(2.0 * UNEQUAL), LARGE, 344),
    Exact("coloured D-ADMM", rl.ColouredDADMM(0.8), LARGE, 193),
    Exact("EXTRA", rl.EXTRA(0.9 / L20), LARGE, 1619),
    Exact("NIDS", rl.NIDS(1.9 / L20), LARGE, 761),
    Exact("gradient tracking", rl.GradientTracking(0.3 / L20), LARGE, 4879),
    Exact("gradient tracking, adapt then combine", rl.GradientTracking(0.5 / L20, True), LARGE, 2924),
    Exact("Network-DANE", rl.NetworkDANE(0.05 * L20), LARGE, 74),
    Exact("LEAD, 2 bits", rl.LEAD(1.5 / L20), LARGE, 967),
    Exact("Scaffnew", rl.Scaffnew(1.0 / L20, q=0.3), LARGE, 1433),
    Exact("MC-SAG, Metropolis walk", rl.MCSAG(0.3 / L20), LARGE, 7049),
    Exact("D-ADMM first order", rl.DADMM(0.05, first_order=True), LOGISTIC, 321),
    Exact("COCA first order", rl.COCA(0.02, first_order=True), LOGISTIC, 142),
    Exact("COLA", rl.COCA(0.02, first_order=True, cola=True), LOGISTIC, 127),
]


def label(row: Exact) -> str:
    problem = "logistic" if isinstance(row.problem, rl.Logistic) else f"p = {row.problem.dim}"
    return f"{row.name}, {problem}"


@pytest.mark.parametrize("row", EXACT, ids=label)
def test_exact_methods_reach_the_optimum(row: Exact) -> None:
    noun = "hops" if isinstance(row.algorithm, rl.MCSAG) else "iterations"
    budget = {noun: row.steps + row.steps // 20 + 2}
    run = rl.simulate(row.algorithm, row.problem, GRAPH, **budget, tolerance=1e-9, engine="compiled", progress=False)
    assert run.stop == "tolerance"
    far = np.linalg.norm(run.x - row.problem.optimum, axis=1).mean() / np.linalg.norm(row.problem.optimum)
    assert far <= 1e-9
    assert run.steps >= row.steps * 0.95 - 2  # the table says what it needs, not what is plenty


# ---------------------------------------------------------------- floors that can be solved for


def blocks(problem: Any) -> tuple[np.ndarray, np.ndarray]:
    """H, block-diagonal of the Hessians, and b with ∇F(x) = Hx − b, by the reference."""
    agents, size = dense_agents(problem), problem.agents * problem.dim
    hessians = np.zeros((size, size))
    for i, agent in enumerate(agents):
        own = slice(i * problem.dim, (i + 1) * problem.dim)
        hessians[own, own] = agent.hessian(np.zeros(problem.dim))
    return hessians, np.concatenate([agent.linear_term() for agent in agents])


def dgd_fixed_point(problem: Any, network: rl.Network, alpha: float, gamma: float | None = None) -> np.ndarray:
    """(I − W + αH)x = αb; or, where γ is given, (I − W_γ + αW_γH)x = αW_γb with W_γ = I + γ(W − I)."""
    H, b = blocks(problem)
    identity = np.eye(len(b))
    W = np.kron(mixing_matrix(network), np.eye(problem.dim))
    if gamma is None:
        x = np.linalg.solve(identity - W + alpha * H, alpha * b)
    else:
        mix = identity + gamma * (W - identity)
        x = np.linalg.solve(identity - mix + alpha * mix @ H, alpha * mix @ b)
    return x.reshape(problem.agents, problem.dim)


def common_error(x: np.ndarray, problem: Any) -> float:
    return float(np.linalg.norm(x - problem.optimum, axis=1).mean() / np.linalg.norm(problem.optimum))


@pytest.mark.parametrize("adapts", [False, True], ids=["combine then adapt", "adapt then combine"])
def test_dgd_ends_at_its_fixed_point(adapts: bool) -> None:
    alpha = 0.5 / L2
    run = rl.simulate(rl.DGD(alpha, adapt_then_combine=adapts), SMALL, GRAPH, iterations=800, engine="compiled")
    point = dgd_fixed_point(SMALL, GRAPH, alpha, 1.0 if adapts else None)
    assert np.abs(run.x - point).max() < 1e-9
    assert common_error(run.x, SMALL) == pytest.approx(8.626e-3 if adapts else 3.229e-2, rel=1e-3)


def test_the_floor_of_dgd_is_in_proportion_to_alpha() -> None:
    floors = []
    for alpha in (0.08 / L2, 0.04 / L2, 0.02 / L2):
        run = rl.simulate(rl.DGD(alpha), SMALL, GRAPH, iterations=20_000, engine="compiled", progress=False)
        assert np.abs(run.x - dgd_fixed_point(SMALL, GRAPH, alpha)).max() < 1e-9
        floors.append(common_error(run.x, SMALL))
    assert floors == pytest.approx([6.5e-3, 3.4e-3, 1.7e-3], rel=0.1)
    assert 1.85 < floors[0] / floors[1] < floors[1] / floors[2] < 2.0
    # A step that decays has no floor.
    run = rl.simulate(rl.DGD(0.5 / L2, decay=0.6), SMALL, GRAPH, iterations=20_000, engine="compiled", progress=False)
    assert common_error(run.x, SMALL) < 0.1 * floors[2]


def test_choco_ends_where_dgd_with_its_own_mixing_does() -> None:
    """What is compressed vanishes at the fixed point, so that the floor is that of W_γ, whatever the compressor."""
    eta, gamma = 0.1 / L2, 0.5
    run = rl.simulate(rl.CHOCO(eta, gamma), SMALL, GRAPH, iterations=5000, engine="compiled", progress=False)
    assert np.abs(run.x - dgd_fixed_point(SMALL, GRAPH, eta, gamma)).max() < 1e-9
    floor = common_error(run.x, SMALL)
    assert floor == pytest.approx(9.208e-3, rel=1e-3)
    dgd = common_error(dgd_fixed_point(SMALL, GRAPH, eta), SMALL)  # 8.0e-3
    assert 1.0 < floor / dgd < 1.3
    # With the largest two of five coordinates too.
    eta, gamma = 0.1 / FIVE.L, 0.3
    run = rl.simulate(
        rl.CHOCO(eta, gamma, rl.TopK(2)), FIVE, NETWORK, iterations=40_000, engine="compiled", progress=False
    )
    assert np.abs(run.x - dgd_fixed_point(FIVE, NETWORK, eta, gamma)).max() < 1e-9


def test_pqasgd_ends_where_the_mean_of_local_runs_stands_still() -> None:
    """Unquantised: Σ(I − A_iᵀ)(x − x_i*) = 0 with A_i = I − αH_i and T local steps."""
    alpha, steps = 0.3 / SQUARES.L, 3
    left, right = np.zeros((2, 2)), np.zeros(2)
    for agent in dense_agents(SQUARES):
        hessian = agent.hessian(np.zeros(2))
        moved = np.eye(2) - np.linalg.matrix_power(np.eye(2) - alpha * hessian, steps)
        left += moved
        right += moved @ np.linalg.solve(hessian, agent.linear_term())
    point = np.linalg.solve(left, right)
    run = rl.simulate(
        rl.PQASGD(alpha, steps, rl.Plain()), SQUARES, NETWORK, iterations=1500, engine="python", progress=False
    )
    assert np.abs(run.x - point).max() < 1e-9
    assert 1e-3 < np.linalg.norm(point - SQUARES.optimum) < 0.1


# ---------------------------------------------------------------- floors that are measured


class Biased(NamedTuple):
    name: str
    algorithm: Any
    low: float
    high: float


# The common error over the last iterations, by its median, must lie between `low` and `high`.
BIASED = [
    Biased("quantised ADMM, Δ = 1e-2", rl.QuantisedADMM(0.2, 1e-2), 4.5e-3, 7.5e-3),
    Biased("quantised ADMM, Δ = 1e-3", rl.QuantisedADMM(0.2, 1e-3), 3.5e-4, 6e-4),
    Biased("quantised ADMM dithered, Δ = 1e-2", rl.QuantisedADMM(0.2, 1e-2, dithered=True), 3.5e-3, 5.5e-3),
    Biased("quantised ADMM dithered, Δ = 1e-3", rl.QuantisedADMM(0.2, 1e-3, dithered=True), 3.3e-4, 5e-4),
    Biased("EF-SignSGD, 0.2/L", rl.EFSignSGD(0.2 / L2), 4e-4, 1.8e-3),
    Biased("EF-SignSGD, 0.025/L", rl.EFSignSGD(0.025 / L2), 3e-5, 1.4e-4),
    Biased("sparse dropping, 0.2/L", rl.SparseDropping(0.2 / L2), 3e-4, 1.3e-3),
    Biased("sparse dropping, 0.025/L", rl.SparseDropping(0.025 / L2), 4e-5, 1.6e-4),
    Biased("PQASGD, 0.2/L", rl.PQASGD(0.2 / L2), 1.1e-3, 4.5e-3),
    Biased("PQASGD, 0.025/L", rl.PQASGD(0.025 / L2), 7e-5, 4e-4),
    Biased("DP-ADMM dual, 1e-2", rl.DualPerturbedADMM(0.2, 1e-2), 3.8e-3, 5e-3),
    Biased("DP-ADMM primal, 1e-2", rl.PrimalPerturbedADMM(0.2, 1e-2), 1.6e-2, 2.2e-2),
    Biased("DP-ADMM penalty, 1e-2", rl.PenaltyPerturbedADMM(0.2, 1.001, 1e-2), 2.9e-2, 4e-2),
]


def floor_of(algorithm: Any, iterations: int = 6000) -> float:
    """The median of the common error over the last 400 iterations."""
    rows = range(iterations - 400, iterations + 1, 10)
    run = rl.simulate(algorithm, SMALL, GRAPH, iterations=iterations, record=rows, engine="compiled", progress=False)
    assert run.stop == "iterations"
    return float(np.median(run.history["error"]))


@pytest.mark.parametrize("row", BIASED, ids=lambda row: row.name)
def test_biased_methods_end_at_their_floor(row: Biased) -> None:
    assert row.low < floor_of(row.algorithm, 1500 if "ADMM" in row.name else 6000) < row.high


@pytest.mark.parametrize("dithered", [False, True], ids=["nearest", "dithered"])
@pytest.mark.parametrize("step", [1e-1, 1e-2, 1e-3, 1e-4, 1e-6])
def test_the_floor_of_quantised_admm_is_about_the_step(step: float, dithered: bool) -> None:
    floor = SCALE * floor_of(rl.QuantisedADMM(0.2, step, dithered), 1500)
    assert 0.05 * step < floor < 20.0 * step


@pytest.mark.parametrize("form", [rl.EFSignSGD, rl.SparseDropping, rl.PQASGD])
def test_the_floors_of_compressed_steps_fall_with_alpha(form: Any) -> None:
    high, low = floor_of(form(0.2 / L2)), floor_of(form(0.025 / L2))
    assert 4.0 < high / low < 32.0  # eight times the step


@pytest.mark.parametrize("form", [rl.DualPerturbedADMM, rl.PrimalPerturbedADMM, rl.PenaltyPerturbedADMM])
def test_the_floors_of_dp_admm_are_in_proportion_to_the_noise(form: Any) -> None:
    """Least squares make every step linear: with the same draws the error is the scale times one fixed path."""
    floors = [floor_of(form(eta=0.2, scale=scale), 1000) for scale in (1e-2, 1e-3, 1e-4)]
    assert floors[0] / floors[1] == pytest.approx(10.0, rel=1e-6)
    assert floors[1] / floors[2] == pytest.approx(10.0, rel=1e-6)
