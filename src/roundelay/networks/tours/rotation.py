"""Long paths and Hamiltonian cycles by rotation and extension (Pósa 1976)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network

ROUNDS = 4
"""How often to start afresh from another agent before giving up."""


@dataclass(frozen=True, eq=False)
class LongPath:
    """The longest path found; `closed` where its last agent is linked to its first."""

    order: NDArray[np.int64]
    closed: bool


def find_long_path(network: Network, seed: int, deadline: float) -> LongPath:
    """Return the longest path found before the deadline: a Hamiltonian cycle if closed and complete.

    The effort is bounded by a number of rotations too, so that the outcome depends on the seed alone unless
    the deadline is hit.
    """
    random = np.random.default_rng([seed, network.agents])
    budget = math.ceil(200 + 8 * network.agents * math.log(network.agents + 1))
    longest = LongPath(np.zeros(1, dtype=np.int64), closed=False)
    for _ in range(ROUNDS):
        found = _Path(network, random).grow(budget, deadline)
        if (len(found.order), found.closed) > (len(longest.order), longest.closed):
            longest = found
        if (len(longest.order) == network.agents and longest.closed) or monotonic() > deadline:
            break
    return longest


class _Path:
    """A path that is extended at its end, and rotated where it can't be.

    With end v linked to w on the path …w u…v, dropping the link wu and taking wv gives the path …w v…u: the
    same agents, with u at the end. Rotations prefer an end that can be extended, then one that closes the
    path, then the one that was an end longest ago.
    """

    def __init__(self, network: Network, random: np.random.Generator) -> None:
        self.network = network
        self.random = random
        self.agents = np.empty(network.agents, dtype=np.int64)
        self.length = 0
        self.place = np.full(network.agents, -1, dtype=np.int64)
        self.strangers = network.degrees.copy()  # how many neighbours of each agent are not on the path
        self.last_end = np.zeros(network.agents, dtype=np.int64)
        self.beside_start = np.zeros(network.agents, dtype=bool)
        self._append(int(random.integers(network.agents)))
        self._mark_start()

    def grow(self, budget: int, deadline: float) -> LongPath:
        for rotation in range(1, budget + 1):
            self._extend()
            end = self.agents[self.length - 1]
            closed = bool(self.beside_start[end]) and self.length > 2
            if closed and self.length == self.network.agents:
                break
            if closed:
                self._open_beside_stranger()
                continue
            if rotation % 64 == 0 and monotonic() > deadline:
                break
            self.last_end[end] = rotation
            self._rotate()
        end = self.agents[self.length - 1]
        return LongPath(self.agents[: self.length].copy(), bool(self.beside_start[end]) and self.length > 2)

    def _append(self, agent: int) -> None:
        self.agents[self.length] = agent
        self.place[agent] = self.length
        self.length += 1
        self.strangers[self._neighbours(agent)] -= 1

    def _extend(self) -> None:
        end = self.agents[self.length - 1]
        while self.strangers[end]:
            neighbours = self._neighbours(end)
            choices = neighbours[self.place[neighbours] < 0]
            # First whoever would be hardest to reach later: the one with the fewest strangers left.
            ease = self.strangers[choices] + self.random.random(len(choices))
            end = choices[ease.argmin()]
            self._append(end)

    def _rotate(self) -> None:
        end = self.agents[self.length - 1]
        pivots = self.place[self._neighbours(end)]
        pivots = pivots[pivots < self.length - 2]
        if len(pivots) == 0 or self.random.random() < 0.03:
            self._rewrite(0, self.agents[: self.length][::-1].copy())
            self._mark_start()
            return
        ends = self.agents[pivots + 1]
        for welcome in (self.strangers[ends] > 0, self.beside_start[ends]):
            if welcome.any():
                pivots, ends = pivots[welcome], ends[welcome]
                break
        longest_ago = (self.last_end[ends] + self.random.random(len(ends))).argmin()
        first = int(pivots[longest_ago]) + 1
        self._rewrite(first, self.agents[first : self.length][::-1].copy())

    def _open_beside_stranger(self) -> None:
        """Make a closed path end at an agent that has a neighbour elsewhere; connected as it is, one has."""
        on_path = self.agents[: self.length]
        gates = np.flatnonzero(self.strangers[on_path] > 0)
        gate = int(self.random.choice(gates))
        self._rewrite(0, np.roll(on_path, -gate - 1))
        self._mark_start()

    def _rewrite(self, first: int, agents: NDArray[np.int64]) -> None:
        self.agents[first : self.length] = agents
        self.place[agents] = np.arange(first, self.length)

    def _mark_start(self) -> None:
        self.beside_start[:] = False
        self.beside_start[self._neighbours(int(self.agents[0]))] = True

    def _neighbours(self, agent: int) -> NDArray[np.int64]:
        starts = self.network.neighbour_starts
        return self.network.neighbours[starts[agent] : starts[agent + 1]]
