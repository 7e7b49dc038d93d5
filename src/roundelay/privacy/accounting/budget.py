"""A ledger of what has been spent, the monitor that reads it, a budget of ε that a run keeps to, and what sums with shared noise cost of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundelay.algorithms import TokenMethod
from roundelay.algorithms.sealed.shared_noise import MOST_EPSILON, SharedNoise
from roundelay.engine.monitors import Snapshot
from roundelay.kernels import Integers, Vector
from roundelay.kernels.checks import finite_number
from roundelay.privacy.accounting.composition import Bound, composed_epsilon, multiplier_for
from roundelay.privacy.accounting.guarantee import Guarantee, check_delta, noise_multipliers
from roundelay.privacy.accounting.sensitivities import Relation, rate_of, relation_of, why_no_guarantee
from roundelay.problems import Problem


@dataclass(frozen=True, eq=False)
class Ledger:
    """The noise multiplier of every agent's visits, and how they are reckoned."""

    multipliers: Vector
    rate: float | None
    relation: Relation
    delta: float
    bound: Bound = "exact"

    def epsilon(self, agent: int, visits: int) -> float:
        """What so many visits cost a record of the agent."""
        return composed_epsilon(float(self.multipliers[agent]), self.rate, visits, self.delta, self.bound)

    def spent(self, visits: Integers) -> Guarantee:
        """That of the agent which has spent most."""
        agent = max(self._candidates(visits), key=lambda agent: self.epsilon(agent, int(visits[agent])))
        count, multiplier = int(visits[agent]), float(self.multipliers[agent])
        spent = self.epsilon(agent, count)
        return Guarantee(spent, self.delta, count, multiplier, self.relation, agent, self.rate, self.bound)

    def _candidates(self, visits: Integers) -> list[int]:
        """The agents of whom none other has less noise and as many visits: one or two on a cycle."""
        found: list[int] = []
        for agent in np.lexsort((-visits, self.multipliers)):
            if not found or visits[agent] > visits[found[-1]]:
                found.append(int(agent))
        return found


def ledger_of(method: Any, problem: Any, delta: float, bound: Bound = "exact") -> Ledger:
    """The ledger of a method that has a guarantee."""
    multipliers = noise_multipliers(method, problem)
    return Ledger(multipliers, rate_of(method), relation_of(method), float(delta), bound)


@dataclass(frozen=True)
class PrivacyLoss:
    """The ε that the agent with the largest has spent so far, at this `delta`.

    Every number of visits is reckoned once: in a millisecond, but with sampling in a fifth of a second. There
    `bound="rdp"` is quicker, and a little larger.
    """

    delta: float = 1e-5
    bound: Bound = "exact"
    columns: tuple[str, ...] = ("epsilon",)

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def refusal(self, method: TokenMethod) -> str:
        """It needs a guarantee."""
        return why_no_guarantee(method)

    def measure(self, problem: Problem, method: TokenMethod, snapshot: Snapshot) -> tuple[float, ...]:
        """ε."""
        assert snapshot.visits is not None
        return (ledger_of(method, problem, self.delta, self.bound).spent(snapshot.visits).epsilon,)


# ---------------------------------------------------------------- sums

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


# ---------------------------------------------------------------- a budget

# A σ that was made for an ε must not miss it by the last digit.
ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class PrivacyBudget:
    """No record of any agent may cost more than `epsilon` at `delta`; each agent's visits are counted by themselves."""

    epsilon: float
    delta: float = 1e-5
    bound: Bound = "exact"

    def __post_init__(self) -> None:
        finite_number("epsilon", self.epsilon, above=0.0)
        check_delta(self.delta)

    @property
    def words(self) -> str:
        """What must not be exceeded."""
        return f"ε = {self.epsilon:g} at δ = {self.delta:g}"

    @property
    def noise_multiplier(self) -> float:
        """σ over the sensitivity of a sum, or of several that share the budget, that costs ε."""
        return sum_multiplier(self.epsilon, self.delta)

    def spent_by(self, noise: SharedNoise) -> tuple[float, float]:
        """ε and δ of sealed laps with this noise."""
        return spent_by_sums(noise, self.delta), self.delta

    def refusal(self, method: Any, problem: Problem) -> str:
        """Why there is no ε, or nothing where there is one."""
        return "" if getattr(method, "masked", False) else why_no_guarantee(method, problem)

    def allowance(self, method: TokenMethod, problem: Problem, most: int) -> Callable[[int, int], bool]:
        """Whether an agent may have so many visits in all, of which there are `most` at the most."""
        ledger, limit = ledger_of(method, problem, self.delta, self.bound), self.epsilon * ROUNDING
        poorest = int(np.argmin(ledger.multipliers))
        # What the agent with the least noise may have, all may.
        everybody = _largest(lambda visits: ledger.epsilon(poorest, visits) <= limit, most)
        return lambda agent, visits: visits <= everybody or ledger.epsilon(agent, visits) <= limit


def _largest(holds: Callable[[int], bool], most: int) -> int:
    """The largest whole number up to `most` for which it holds, where it holds for 0 and never again once it fails."""
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
