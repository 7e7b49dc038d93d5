"""Problems and runs for the tests of the defences."""

from __future__ import annotations

from typing import Any

import numpy as np

import roundelay as rl

# Shorter runs are over before they would be compiled.
SHORT = 2_500


def quick(algorithm: Any, problem: Any, hops: int, seed: int = 0, **options: Any) -> rl.Run:
    """A run on a ring with its transcript."""
    network = options.pop("network", None) or rl.ring(problem.agents)
    usual = {"transcript": True, "progress": False, "engine": "python" if hops <= SHORT else "auto"}
    return rl.simulate(algorithm, problem, network, hops=hops, seed=seed, **{**usual, **options})


def moved(problem: rl.LeastSquares, giver: int, taker: int, v: np.ndarray) -> rl.LeastSquares:
    """The same H_i for all, with v taken from the giver's g and given to the taker's: the sum is the same."""
    rows = problem.rows
    features = [rows.features[rows.of(i)] for i in range(problem.agents)]
    targets = [rows.targets[rows.of(i)].copy() for i in range(problem.agents)]
    for agent, change in ((giver, -v), (taker, v)):
        a = features[agent]
        targets[agent] -= a @ np.linalg.solve(a.T @ a, change)  # g = −A'b
    return rl.LeastSquares(features, targets)


def slopes(problem: Any) -> np.ndarray:
    """g_i = ∇f_i(0) of all agents."""
    return problem.gradients(np.zeros((problem.agents, problem.dim)))


def looks_uniform(words: np.ndarray) -> bool:
    """Whether words look uniform: the bytes' χ², and the mean of the words, within what chance allows."""
    counts = np.bincount(np.ascontiguousarray(words).view(np.uint8).ravel(), minlength=256)
    expected = counts.sum() / 256.0
    chi = ((counts - expected) ** 2).sum() / expected
    mean = (words.astype(np.float64) / 2.0**64).mean()
    return bool(abs(chi - 255.0) < 6.0 * np.sqrt(510.0) and abs(mean - 0.5) < 6.0 / np.sqrt(12.0 * words.size))
