"""Every rule for weights is a mixing matrix, every method takes every rule, and each agent its own start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from tests.engine.support import dense_agents
from tests.gossip.cases import NETWORK, SQUARES
from tests.reference import gossip

N = NETWORK.agents
ADJACENCY = np.zeros((N, N))
ADJACENCY[tuple(NETWORK.edges.T)] = 1.0
ADJACENCY += ADJACENCY.T
LAPLACE = np.diag(ADJACENCY.sum(axis=1)) - ADJACENCY
METROPOLIS = NETWORK.metropolis_weights().toarray()
SPECTRUM = np.linalg.eigvalsh(LAPLACE)
OWN = 0.3 * np.eye(N) + 0.7 * METROPOLIS
RULES: dict[str, tuple[Any, np.ndarray]] = {
    "metropolis": (rl.Metropolis(), METROPOLIS),
    "lazy": (rl.Lazy(), 0.5 * (np.eye(N) + METROPOLIS)),
    "laplacian": (rl.Laplacian(0.1), np.eye(N) - 0.1 * LAPLACE),
    "laplacian, left out": (rl.Laplacian(), np.eye(N) - LAPLACE / (1.0 + ADJACENCY.sum(axis=1).max())),
    "best constant": (rl.BestConstant(), np.eye(N) - 2.0 / (SPECTRUM[1] + SPECTRUM[-1]) * LAPLACE),
    "matrix": (rl.OwnWeights(OWN), OWN),
}
STARTS = np.random.default_rng(0).normal(size=(N, 2))
AGENTS = dense_agents(SQUARES)


@pytest.mark.parametrize("rule", RULES)
def test_weights_are_what_they_say(rule: str) -> None:
    weights, expected = RULES[rule]
    numbers = weights.numbers(NETWORK)
    matrix = np.diag(numbers.own)
    matrix[numbers.receivers, numbers.neighbours] += numbers.weights
    np.testing.assert_allclose(matrix, expected, atol=1e-15)


def test_the_best_constant_is_the_best() -> None:
    def slowest(epsilon: float) -> float:
        return float(np.sort(np.abs(np.linalg.eigvalsh(np.eye(N) - epsilon * LAPLACE)))[-2])

    best = float(rl.BestConstant().numbers(NETWORK).weights[0])
    assert all(slowest(best) < slowest(factor * best) for factor in (0.9, 0.99, 1.01, 1.1))


METHODS: dict[str, tuple[Any, Any]] = {
    "DGD": (rl.DGD(0.02), lambda W: gossip.dgd(AGENTS, W, np.full(9, 0.02), x0=STARTS)),
    "DGD, adapt then combine": (
        rl.DGD(0.02, adapt_then_combine=True), lambda W: gossip.dgd(AGENTS, W, np.full(9, 0.02), True, x0=STARTS),
    ),
    "EXTRA": (rl.EXTRA(0.02), lambda W: gossip.extra(AGENTS, W, 0.02, 9, x0=STARTS)),
    "NIDS": (rl.NIDS(0.02), lambda W: gossip.nids(AGENTS, W, 0.02, 9, x0=STARTS)),
    "tracking": (rl.GradientTracking(0.02), lambda W: gossip.gradient_tracking(AGENTS, W, 0.02, 9, x0=STARTS)),
    "tracking, adapt then combine": (
        rl.GradientTracking(0.02, True), lambda W: gossip.gradient_tracking(AGENTS, W, 0.02, 9, True, x0=STARTS),
    ),
    "LEAD": (
        rl.LEAD(0.02, channel=rl.Plain()),
        lambda W: gossip.lead(AGENTS, W, 0.02, 1.0, 0.5, lambda k, i, v: v, 9, x0=STARTS),
    ),
    "CHOCO": (
        rl.CHOCO(0.02, channel=rl.Plain()), lambda W: gossip.choco(AGENTS, W, 0.02, 0.5, lambda k, i, v: v, 9, x0=STARTS),
    ),
    "Scaffnew": (
        rl.Scaffnew(0.02, q=1.0), lambda W: gossip.scaffnew(AGENTS, W, 0.02, 25.0, 1.0, np.ones(9, bool), 9, x0=STARTS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_every_rule_and_a_start_for_each_agent(method: str) -> None:
    from dataclasses import replace

    algorithm, reference = METHODS[method]
    for weights, matrix in RULES.values():
        run = rl.simulate(
            replace(algorithm, weights=weights),
            SQUARES,
            NETWORK,
            iterations=9,
            x0=STARTS,
            engine="python",
            progress=False,
        )
        np.testing.assert_allclose(run.x, reference(matrix).xs[-1], rtol=1e-9, atol=1e-10)
    first = rl.simulate(algorithm, SQUARES, NETWORK, iterations=0, x0=STARTS, engine="python", progress=False)
    np.testing.assert_array_equal(first.x, STARTS)


def test_the_two_starts_of_adapt_then_combine_tracking() -> None:
    """s⁰ = ∇F(x⁰) or W∇F(x⁰); both end at the optimum."""
    W, alpha = METROPOLIS, 0.02

    def slopes(x: np.ndarray) -> np.ndarray:
        return SQUARES.gradients(x)

    for mixes in (True, False):
        x = STARTS.copy()
        s = W @ slopes(x) if mixes else slopes(x)
        for _ in range(6):
            before = slopes(x)
            x = W @ (x - alpha * s)
            s = W @ (s + slopes(x) - before)
        method = rl.GradientTracking(alpha, True, mixes_first=mixes)
        run = rl.simulate(method, SQUARES, NETWORK, iterations=6, x0=STARTS, engine="python", progress=False)
        np.testing.assert_allclose(run.x, x, rtol=1e-10)
        run = rl.simulate(method, SQUARES, NETWORK, iterations=3000, x0=STARTS, progress=False)
        assert run.history["error"].iloc[-1] < 1e-10
    with pytest.raises(ValueError, match="leave mixes_first out"):
        rl.GradientTracking(mixes_first=False)


def test_own_weights_are_saved_and_compared(tmp_path: Path) -> None:
    method = rl.EXTRA(0.02, weights=rl.OwnWeights(OWN))
    run = rl.simulate(method, SQUARES, NETWORK, iterations=3, engine="python", progress=False)
    assert rl.load_run(run.save(tmp_path / "run.npz")).algorithm == method == rl.EXTRA(0.02, weights=rl.OwnWeights(OWN))


def test_what_can_not_mix_is_refused() -> None:
    lopsided = np.eye(N)
    lopsided[0, 0], lopsided[0, 1] = 0.5, 0.5
    for matrix, words in (
        (np.ones((2, 3)), "square"), (lopsided, "not symmetric"), (np.eye(N), "never agree"), ([["a"]], "matrix of numbers"),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), "never agree"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            rl.OwnWeights(matrix)  # type: ignore[arg-type]
    everyone = rl.OwnWeights(np.full((N, N), 1.0 / N))
    with pytest.raises(ValueError, match="but no link"):
        rl.simulate(rl.EXTRA(weights=everyone), SQUARES, NETWORK, iterations=3)
    with pytest.raises(ValueError, match="eigenvalue of −1"):
        rl.simulate(rl.EXTRA(weights=rl.Laplacian(5.0)), SQUARES, NETWORK, iterations=3)
    with pytest.raises(ValueError, match="weights are"):
        rl.DGD(weights="lazy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"an array as it is.*OwnWeights\(matrix\)"):
        rl.DGD(weights=OWN)  # type: ignore[arg-type]
    for algorithm, length in ((rl.IADMM(), {"hops": 3}), (rl.DADMM(0.7), {"iterations": 3})):
        with pytest.raises(ValueError, match="at one point"):
            rl.simulate(algorithm, SQUARES, NETWORK, x0=STARTS, **length)
