"""What the visits so far have cost each agent, and which has spent most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from roundelay.kernels import Integers, Vector
from roundelay.privacy.accounting.composition import Bound, composed_epsilon
from roundelay.privacy.accounting.guarantee import Guarantee, noise_multipliers
from roundelay.privacy.accounting.sensitivities import Relation, relation_of


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
    return Ledger(multipliers, method.xstep.rate, relation_of(method), float(delta), bound)
