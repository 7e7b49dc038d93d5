"""What ε = 1 costs in sealed laps, against a trusted curator and against members who each add noise of their own.

`python benchmarks/sealed_privacy.py` takes about two minutes and prints what docs/differential-privacy.md has.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import roundelay as rl
from roundelay.algorithms.sealed.shared_noise import SHARE_BITS, SharedNoise
from roundelay.masks import SeededPairs, discrete_gaussian, own_words
from roundelay.privacy.accounting.budget import sum_multiplier
from roundelay.privacy.accounting.composition import composed_epsilon
from roundelay.problems.row_problem import RowProblem

ROWS, DIM, EPSILON, DELTA = 10_000, 6, 1.0, 1e-6


def drawn(kind: str, agents: int) -> RowProblem:
    """The same rows, however many agents have them: features in [−1, 1] with a column of ones."""
    rng = np.random.default_rng(1)
    features = np.clip(0.35 * rng.normal(size=(ROWS, DIM)), -1.0, 1.0)
    features[:, -1] = 1.0
    truth = rng.normal(size=DIM)
    if kind == "logistic":
        targets = np.where(rng.random(ROWS) < 1.0 / (1.0 + np.exp(-2.0 * features @ truth)), 1.0, -1.0)
    else:
        targets = np.clip(0.3 * features @ truth + 0.2 * rng.normal(size=ROWS), -1.0, 1.0)
    blocks = np.array_split(features, agents), np.array_split(targets, agents)
    return rl.Logistic(*blocks) if kind == "logistic" else rl.LeastSquares(*blocks)


def errors(problem: RowProblem, leave_out: int, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """‖error‖ of the coefficients for each seed, and their error over the deviation that the run itself says."""
    algorithm = rl.SealedLaps(clip_row=math.sqrt(DIM), leave_out=leave_out)
    network = rl.complete(problem.agents)
    budget = rl.PrivacyBudget(EPSILON, DELTA)
    runs = [rl.simulate(algorithm, problem, network, seed=seed, budget=budget, progress=False) for seed in seeds]
    apart = np.array([run.estimate - problem.optimum for run in runs])
    said = np.array([run.privacy.deviations for run in runs])
    return np.linalg.norm(apart, axis=1), apart / said


def promise(agents: int, leave_out: int) -> None:
    """The variance of the total's noise where so many leave theirs out, and ε from it."""
    multiplier = sum_multiplier(EPSILON, DELTA)
    noise = SharedNoise(DIM, agents, 1.0, 1.0, 1.0, multiplier, (1.0,), 0.5, leave_out)
    count, kept = 1_000_000, agents - leave_out
    total = sum(
        discrete_gaussian(own_words(SeededPairs(3), me, 0), count, SHARE_BITS) / 2.0**SHARE_BITS for me in range(kept)
    )
    measured = float(np.var(total)) / noise.honest
    least = measured * (1.0 - 4.0 * math.sqrt(2.0 / count))
    print(f"  N = {agents}, {leave_out} leave out: variance {measured:.4f} σ² (at least {least:.4f}), "
          f"ε = {composed_epsilon(multiplier * math.sqrt(measured), None, 1, DELTA):.4f}")  # fmt: skip


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    seeds = range(parser.parse_args().seeds)
    print(
        f"{ROWS:,} rows, {DIM} unknowns, ε = {EPSILON:g}, δ = {DELTA:g}, multiplier {sum_multiplier(EPSILON, DELTA):.6f}"
    )
    for kind in ("least_squares", "logistic"):
        alone = drawn(kind, 1)
        curator = float(np.median(errors(alone, 0, seeds)[0]))
        print(f"{kind}: ‖coefficients‖ {np.linalg.norm(alone.optimum):.3f}, error of a trusted curator {curator:.4f}")
        for agents in (5, 10):
            problem = drawn(kind, agents)
            sealed, scores = errors(problem, 1, seeds)
            own = float(np.median(errors(problem, agents - 1, seeds)[0]))
            print(f"  N = {agents}: sealed laps {np.median(sealed):.4f}, {np.median(sealed) / curator:.3f} of the curator's (at most 1.2); "
                  f"own noise {own:.4f}, {own / np.median(sealed):.2f} times as much (at least {math.sqrt(agents) / 2:.2f}); "
                  f"errors have {np.sqrt((scores**2).mean()):.2f} times the deviation that the model says")  # fmt: skip
    print("where members leave their noise out:")
    promise(5, 1)
    promise(10, 3)


if __name__ == "__main__":
    main()
