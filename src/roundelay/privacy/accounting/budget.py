"""A budget of ε that a run keeps to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from roundelay.algorithms import TokenMethod
from roundelay.kernels.checks import finite_number
from roundelay.privacy.accounting.composition import Bound
from roundelay.privacy.accounting.guarantee import check_delta
from roundelay.privacy.accounting.ledger import ledger_of
from roundelay.privacy.accounting.reasons import why_no_guarantee
from roundelay.problems import Problem

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

    def refusal(self, method: TokenMethod, problem: Problem) -> str:
        """Why there is no ε, or nothing where there is one."""
        return why_no_guarantee(method, problem)

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
