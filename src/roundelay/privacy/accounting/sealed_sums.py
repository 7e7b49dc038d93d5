"""What sealed laps with shared noise cost a record, by dp-accounting: Gaussian mechanisms, which compose to one."""

from __future__ import annotations

from roundelay.algorithms.sealed.shared_noise import MOST_EPSILON, SharedNoise
from roundelay.kernels.checks import finite_number
from roundelay.privacy.accounting.composition import composed_epsilon, multiplier_for
from roundelay.privacy.accounting.guarantee import check_delta

# This part of δ is kept for what the steps of the grid add to it.
RESERVE = 1e-5


def sum_multiplier(epsilon: float, delta: float) -> float:
    """σ over the sensitivity with which a sum, or several that share the budget, cost no more than ε at δ."""
    if not finite_number("epsilon", epsilon, above=0.0) <= MOST_EPSILON:
        raise ValueError(
            f"epsilon is {epsilon:g}, with which next to nothing is promised: use {MOST_EPSILON:g} at the most."
        )
    check_delta(delta)
    return multiplier_for(epsilon, None, 1, (1.0 - RESERVE) * delta)


def spent_by_sums(noise: SharedNoise, delta: float) -> float:
    """ε of a run with this noise at δ; refused where the steps of the grid count beside δ."""
    spent = composed_epsilon(noise.multiplier, None, 1, (1.0 - RESERVE) * delta)
    if not noise.discreteness(spent) <= RESERVE * delta:
        raise ValueError(
            f"With {noise.dim:,} unknowns the grid of the noise is too coarse for δ = {delta:g}: use fewer unknowns or a larger delta."
        )
    return spent
