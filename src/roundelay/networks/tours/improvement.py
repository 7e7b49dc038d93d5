"""Make a round cheaper step by step: turn stretches of it (2-opt and longer chains), or move one (or-opt)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network

CANDIDATES = 24
"""How many of its nearest each place is tried next to; a gain with the farther ones is rare."""

_WIDTH, _DEPTH = 5, 40
"""How many ways a chain of rotations may begin, and how long it may become."""

MOST_FOR_TABLE = 3000
"""Agents up to which all lengths fit in a table, which is faster to look up than links are."""

SMALLEST_ROUND = 8
"""Shorter rounds would have moves that overlap themselves; they are solved exactly elsewhere."""


class Lengths(Protocol):
    """How far places are from one another."""

    def between(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the length from each tail to its head, infinite where there is no way."""

    def nearest(self, place: int) -> NDArray[np.int64]:
        """Return the places to try next to this one."""


@dataclass(frozen=True, eq=False)
class LinkLengths:
    """Lengths along the links of a network only, so that a round stays on them."""

    network: Network

    def between(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cost of each link, infinite where there is none."""
        rows = self.network.edge_rows(tails, heads)
        return np.where(rows >= 0, self.network.link_costs[rows], np.inf)

    def nearest(self, place: int) -> NDArray[np.int64]:
        """Return the neighbours with the cheapest links, the cheapest first."""
        return self._nearest[place]

    @cached_property
    def _nearest(self) -> list[NDArray[np.int64]]:
        network = self.network
        tails = np.repeat(np.arange(network.agents), network.degrees)
        order = np.lexsort((network.link_costs[network.neighbour_links], tails))
        each = np.split(network.neighbours[order], network.neighbour_starts[1:-1])
        return [neighbours[:CANDIDATES] for neighbours in each]


@dataclass(frozen=True, eq=False)
class TableLengths:
    """Lengths from a table."""

    table: NDArray[np.float64]

    def between(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the entries of the table."""
        entries: NDArray[np.float64] = self.table[tails, heads]
        return entries

    def nearest(self, place: int) -> NDArray[np.int64]:
        """Return the nearest places that can be reached, the nearest first."""
        return self._nearest[place]

    @cached_property
    def _nearest(self) -> list[NDArray[np.int64]]:
        apart = np.array(self.table)
        np.fill_diagonal(apart, np.inf)
        order = np.argsort(apart, axis=1, kind="stable")[:, :CANDIDATES]
        return [row[np.isfinite(apart[place, row])] for place, row in enumerate(order)]


def lengths_of_links(network: Network) -> Lengths:
    """Return the lengths along links, in the form that is quicker to look up."""
    if network.agents > MOST_FOR_TABLE:
        return LinkLengths(network)
    table = np.full((network.agents, network.agents), np.inf)
    first, second = network.edges.T
    table[first, second] = table[second, first] = network.link_costs
    return TableLengths(table)


def improve_round(order: NDArray[np.int64], lengths: Lengths, deadline: float) -> NDArray[np.int64]:
    """Return a round no longer than the given one, starting at the same place; better until no move helps."""
    if len(order) < SMALLEST_ROUND:
        return order
    improved = _Round(order, lengths)
    waiting, is_waiting = deque(order.tolist()), np.ones(len(order), dtype=bool)
    while waiting and monotonic() <= deadline:
        place = waiting.popleft()
        is_waiting[place] = False
        touched = improved.turn_at(place) or improved.move_at(place)
        for other in touched:
            if not is_waiting[other]:
                is_waiting[other] = True
                waiting.append(other)
    return np.roll(improved.order, -int(improved.position[order[0]]))


class _Round:
    def __init__(self, order: NDArray[np.int64], lengths: Lengths) -> None:
        self.order = order.copy()
        self.position = np.empty(len(order), dtype=np.int64)
        self.position[order] = np.arange(len(order))
        self.lengths = lengths
        steps = lengths.between(order, np.roll(order, -1))
        # Gains below rounding are no gains: taking them could go on for ever.
        self.least_gain = 1e-10 * float(steps.sum())

    def turn_at(self, place: int) -> list[int]:
        """Follow a chain of rotations (Lin and Kernighan 1973) from the path left by dropping a link.

        On the path a…w u…v from a = `place`, w–u goes and w–v comes, which makes a…w v…u; then again from
        its new end u, as long as what went is longer than what came. The path is closed where that gains
        most. One rotation is 2-opt; more of them get past the links that a sparse network lacks.
        """
        here, size = int(self.position[place]), len(self.order)
        for way in (1, -1):
            end = self.order[(here - way) % size]
            nearest = self.lengths.nearest(int(end))
            kept = self.lengths.between(np.array(place), end) - self.lengths.between(end, nearest)
            # All that is near enough to the first end; further on, the best alone.
            for first in nearest[kept > self.least_gain][:_WIDTH].tolist():
                order = np.roll(self.order, -here) if way == 1 else np.roll(self.order[::-1], here + 1)
                path = _Chain(order, self.lengths)
                touched = path.follow(first, self.least_gain)
                if touched:
                    self.order, self.position = path.order, path.position
                    return touched
        return []

    def move_at(self, place: int) -> list[int]:
        """Move a stretch of up to three places that starts at `place`, either way, next to a near one.

        With the stretch a…b between p and q, put between c and e: p–a, b–q and c–e go; p–q, a–c and b–e come.
        """
        nearest = self.lengths.nearest(place)
        ways = np.array([1, 1, 1, -1, -1, -1])
        reach = np.array([0, 1, 2, 0, 1, 2])
        here = self.position[place]
        size = len(self.order)
        ends = self.order[(here + ways * reach) % size]
        before = self.order[(here - ways) % size]
        after = self.order[(here + ways * (reach + 1)) % size]
        between, start = self.lengths.between, np.array(place)
        closing = between(before, after) - between(start, before) - between(ends, after)
        others = self._beside(np.broadcast_to(nearest, (2, len(nearest))), np.array([[1], [-1]]))
        opening = between(start, nearest) - between(nearest, others)
        change = closing[:, None, None] + opening[None] + between(ends[:, None, None], others[None])
        within = self._within(nearest, here, ways, reach)[:, None] | self._within(others, here, ways, reach)
        change = np.where(within, np.inf, change)
        stretch, side, choice = np.unravel_index(np.argmin(change), change.shape)
        if not change[stretch, side, choice] < -self.least_gain:
            return []
        moved = self.order[(here + ways[stretch] * np.arange(reach[stretch] + 1)) % size]
        beside, other = int(nearest[choice]), int(others[side, choice])
        self._put(moved, beside, other)
        return [place, int(ends[stretch]), int(before[stretch]), int(after[stretch]), beside, other]

    def _beside(self, places: NDArray[np.int64], sides: NDArray[np.int64]) -> NDArray[np.int64]:
        beside: NDArray[np.int64] = self.order[(self.position[places] + sides) % len(self.order)]
        return beside

    def _within(
        self, places: NDArray[np.int64], here: int, ways: NDArray[np.int64], reach: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Say for each stretch whether it holds each of the places."""
        shape = (len(ways),) + (1,) * places.ndim
        ahead = (ways.reshape(shape) * (self.position[places] - here)) % len(self.order)
        inside: NDArray[np.bool_] = ahead <= reach.reshape(shape)
        return inside

    def _put(self, moved: NDArray[np.int64], beside: int, other: int) -> None:
        """Put a stretch between two places that follow one another, its start next to `beside`."""
        first = min(int(self.position[beside]), int(self.position[other]))
        if {beside, other} == {int(self.order[0]), int(self.order[-1])}:
            first = len(self.order) - 1
        turned = moved if self.order[first] == beside else moved[::-1]
        stays = np.ones(len(self.order), dtype=bool)
        stays[self.position[moved]] = False
        head, tail = self.order[: first + 1][stays[: first + 1]], self.order[first + 1 :][stays[first + 1 :]]
        self.order = np.concatenate([head, turned, tail])
        self.position[self.order] = np.arange(len(self.order))


class _Chain:
    """A path that is rotated at its end, each time for the best gain."""

    def __init__(self, order: NDArray[np.int64], lengths: Lengths) -> None:
        self.order = order
        self.position = np.empty(len(order), dtype=np.int64)
        self.position[order] = np.arange(len(order))
        self.lengths = lengths

    def follow(self, first: int, least_gain: float) -> list[int]:
        """Rotate about `first`, then on; return the ends of what was exchanged, if anything was gained."""
        between, last = self.lengths.between, len(self.order) - 1
        start = self.order[:1]
        gain = float(between(start, self.order[-1:])[0])
        best_gain, best_depth = least_gain, 0
        turned: list[int] = []
        touched = [int(start[0]), int(self.order[-1])]
        taken: set[tuple[int, int]] = set()
        pivots = np.array([first])
        for depth in range(1, _DEPTH + 1):
            end = self.order[-1:]
            pivots = pivots[self.position[pivots] < last - 1]
            beyond = self.order[self.position[pivots] + 1]
            left = gain - between(end, pivots)
            gains = left + between(pivots, beyond)
            # What came may not go again, or the chain could run in circles.
            again = [(w, u) in taken for w, u in zip(pivots.tolist(), beyond.tolist(), strict=True)]
            allowed = (left > least_gain) & ~np.array(again, dtype=bool)
            if not allowed.any():
                break
            choice = int(np.argmax(np.where(allowed, gains, -np.inf)))
            pivot, gain = int(pivots[choice]), float(gains[choice])
            taken |= {(pivot, int(end[0])), (int(end[0]), pivot)}
            touched += [pivot, int(beyond[choice])]
            turned.append(int(self.position[pivot]) + 1)
            self._turn(turned[-1])
            closed = gain - float(between(self.order[-1:], start)[0])
            if closed > best_gain:
                best_gain, best_depth = closed, depth
            pivots = self.lengths.nearest(int(self.order[-1]))
        for place in reversed(turned[best_depth:]):
            self._turn(place)
        return touched[: 2 + 2 * best_depth] if best_depth else []

    def _turn(self, place: int) -> None:
        """Reverse the path from a place to its end; doing so twice changes nothing."""
        self.order[place:] = self.order[place:][::-1].copy()
        self.position[self.order[place:]] = np.arange(place, len(self.order))
