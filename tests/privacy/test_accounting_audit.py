"""An audit of the claim: the best test there is, on simulated runs with two neighbouring data sets.

The observer has every x and z. For agent 0's visits it computes the log-likelihood ratio of the noise under either data
set, Σ_r (‖x⁺ − a'_r‖² − ‖x⁺ − a_r‖²)/(2σ²), where a_r = z + (y − g(x))/ρ. From how well that tells the two apart, a lower
bound on ε follows. It must be clearly above 0 (a positive control) and not above the claim.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import roundelay as rl
from roundelay.privacy import Guarantee, epsilon
from tests.privacy.support import Keep

RHO, VISITS, RUNS, DELTA, CLIP = 5.0, 3, 400, 0.01, 1.0
ROWS = np.array([[0.0, 0.0], [0.3, -0.2]])


def problem(target: float) -> rl.LeastSquares:
    """Agent 0's first record is (0, 1) ↦ target, whose gradient is clipped on one side or on the other."""
    mine = ROWS.copy()
    mine[0] = (0.0, 1.0)
    other = np.array([[1.0, 0.5], [-0.4, 0.8]])
    return rl.LeastSquares([mine, other], [np.array([target, 0.1]), np.array([0.2, 0.3])], scale="mean")


def step(about: rl.LeastSquares, x: np.ndarray, clip: float) -> np.ndarray:
    """Agent 0's gradient, its records clipped."""
    total = np.zeros(2)
    for row, target in zip(about.rows.features[:2], about.rows.targets[:2], strict=True):
        gradient = 2.0 * (row @ x - target) * row
        total += gradient * min(1.0, clip / max(float(np.linalg.norm(gradient)), 1e-300))
    return total / 2.0


def ratios(algorithm: rl.PIADMM2, truth: rl.LeastSquares, other: rl.LeastSquares, first: int) -> np.ndarray:
    """log p_truth − log p_other of the transcripts of many runs."""
    found = []
    for seed in range(first, first + RUNS):
        keep = Keep()
        run = rl.simulate(
            algorithm,
            truth,
            rl.ring(2),
            2 * VISITS,
            seed=seed,
            record=1,
            monitors=[keep],
            engine="python",
            progress=False,
        )
        total, y = 0.0, np.zeros(2)
        for hop in range(0, 2 * VISITS, 2):
            z, x, new = run.record.tokens[hop], keep.x[hop][0], keep.x[hop + 1][0]
            gaps = [new - z - (y - step(about, x, algorithm.clip)) / RHO for about in (truth, other)]
            total += (gaps[1] @ gaps[1] - gaps[0] @ gaps[0]) / (2.0 * algorithm.sigma**2)
            y = y + RHO * (z - new)
        found.append(total)
    return np.array(found)


def lower_bound(under_truth: np.ndarray, under_other: np.ndarray) -> float:
    """The ε that these runs prove with confidence 99.9 %: max over thresholds of log((hits − δ)/false alarms)."""
    best, count = 0.0, len(under_truth)
    for threshold in np.quantile(under_truth, np.linspace(0.05, 0.95, 19)):
        hits, alarms = int((under_truth > threshold).sum()), int((-under_other > threshold).sum())
        least = beta.ppf(5e-4, hits, count - hits + 1) if hits else 0.0
        most = beta.ppf(1.0 - 5e-4, alarms + 1, count - alarms)
        if least > DELTA:
            best = max(best, float(np.log((least - DELTA) / most)))
    return best


def audit(algorithm: rl.PIADMM2, size: float) -> tuple[np.ndarray, float]:
    one, other = problem(-size), problem(size)
    first, second = ratios(algorithm, one, other, 0), ratios(algorithm, other, one, RUNS)
    return np.concatenate([first, second]), lower_bound(first, second)


@pytest.fixture(scope="module")
def claimed() -> tuple[rl.PIADMM2, Guarantee]:
    algorithm = rl.PIADMM2(RHO, 0.3, rl.ZeroStart(), first_order=True, clip=CLIP)
    found = epsilon(algorithm, problem(1.0), VISITS, DELTA)
    assert isinstance(found, Guarantee)
    return algorithm, found


def test_the_claim_stands_and_is_not_empty(claimed: tuple[rl.PIADMM2, Guarantee]) -> None:
    algorithm, guarantee = claimed
    losses, proven = audit(algorithm, 1e3)
    # Worst-case records: the loss is N(μ²/2, μ²) with μ = √R·Δ/σ, so the accounting is tight and not merely safe.
    mu = np.sqrt(VISITS) / guarantee.noise_multiplier
    count = len(losses)
    assert abs(losses.mean() - 0.5 * mu**2) < 4.5 * mu / np.sqrt(count)
    assert abs(losses.std() / mu - 1.0) < 4.5 / np.sqrt(2.0 * count)
    assert 0.25 * guarantee.epsilon < proven <= guarantee.epsilon


def test_without_clipping_the_same_audit_refutes_the_claim(claimed: tuple[rl.PIADMM2, Guarantee]) -> None:
    algorithm, guarantee = claimed
    unclipped: Any = rl.PIADMM2(RHO, algorithm.sigma, rl.ZeroStart(), first_order=True, clip=1e12)
    _, proven = audit(unclipped, 20.0)
    assert proven > guarantee.epsilon
