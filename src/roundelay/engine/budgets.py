"""A budget limits how often a token may visit each agent. It is kept by looking ahead along the walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from roundelay.algorithms.token_method import TokenMethod
from roundelay.networks import Network
from roundelay.problems import Problem


class Budget(Protocol):
    """Something that visits use up, agent by agent."""

    @property
    def words(self) -> str:
        """What must not be exceeded."""

    def refusal(self, method: TokenMethod, problem: Problem) -> str:
        """Why nobody can say what a visit of this method uses up, or nothing where one can."""

    def allowance(self, method: TokenMethod, problem: Problem, most: int) -> Callable[[int, int], bool]:
        """Whether an agent may have so many visits in all, of which there are `most` at the most."""


def hops_within(
    budget: Budget | None, method: TokenMethod, problem: Problem, network: Network, seed: int, hops: int
) -> tuple[int, str]:
    """The largest number of hops with which no agent exceeds the budget, and in words why one more would be too many.

    A walk depends on the seed and on the visits, never on the data; so it can be made ahead of the run, and that the run
    ends where it does tells nobody anything of the data.
    """
    if budget is None:
        return hops, ""
    part, allows = method.walk.part(network), budget.allowance(method, problem, hops)
    functions, numbers, tokens = dict(part.functions), part.numbers, method.tokens
    places = [int(place) for place in method.walk.first_places(network, seed, tokens)]
    visits = np.zeros(problem.agents, np.int64)
    for hop in range(hops):
        token = hop % tokens
        if hop >= tokens:  # the first visit is in place
            places[token] = int(functions["advance"](numbers, seed, hop, places[token], visits))
        agent = int(functions["agent_at"](numbers, places[token]))
        if functions["works"](numbers, places[token]):
            if not allows(agent, int(visits[agent]) + 1):
                return hop, f"visit {visits[agent] + 1} of agent {agent}, which is next, would exceed {budget.words}"
            visits[agent] += 1
    return hops, ""
