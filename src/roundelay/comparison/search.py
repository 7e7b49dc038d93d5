"""Compass search: try the neighbours at a factor, go where it is better, and take a smaller factor where nothing is.

It knows nothing of algorithms: what is searched is a function of a few numbers, and what it returns can be ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from roundelay.comparison.coordinates import Coordinate

# The first factor, and the one below which no more is to be gained.
WIDEST, FINEST = 4.0, 1.05
# What is better by less than this, relatively, is not better: a parameter that does nothing is left where it is.
GAIN = 1e-3
# Beyond an edge at least this factor is tried.
BEYOND = 2.0

Point = tuple[float, ...]


@dataclass(frozen=True)
class Score:
    """How good a setting is: first by `rank`, then by `value`, where less is better."""

    rank: int
    value: float

    def beats(self, other: Score) -> bool:
        """Whether this is better, and not just by rounding."""
        if self.rank != other.rank:
            return self.rank < other.rank
        return self.value < other.value - GAIN * abs(other.value)


class SpentError(Exception):
    """All evaluations that were allowed have been made."""


@dataclass
class Search:
    """A compass search under way; what it has found stays right whenever it is interrupted.

    `evaluate` is called once for each distinct point. `evaluations` is how many there may be; `extended` counts those
    that the edges took besides, which may be as many again. `factor` is how fine it has become.
    """

    coordinates: tuple[Coordinate, ...]
    evaluate: Callable[[Point], Score]
    evaluations: int
    factor: float = WIDEST
    seen: dict[Point, Score] = field(default_factory=dict)
    extended: int = 0

    def __post_init__(self) -> None:
        self.best: Point = tuple(coordinate.origin for coordinate in self.coordinates)

    def run(self) -> None:
        """Search until the factor is small or the evaluations are spent."""
        try:
            self._look(self.best, self.evaluations)
            directions = [1.0] * len(self.coordinates)
            while self.factor >= FINEST:
                moves = [self._line(axis, directions) for axis in range(len(self.coordinates))]
                if not any(moves):
                    self.factor = math.sqrt(self.factor)
        except SpentError:
            pass

    def close_edges(self) -> None:
        """Go on where the best value of a coordinate is the smallest or the largest that was tried."""
        before = len(self.seen)
        try:
            while edges := self.edges():
                axis, direction = edges[0]
                self._step(axis, direction, max(self.factor, BEYOND), before + self.evaluations)
        except SpentError:
            pass
        finally:
            self.extended = len(self.seen) - before

    def edges(self) -> list[tuple[int, float]]:
        """The coordinates whose best value lies at the edge of what was tried, each with the direction out of it."""
        found = []
        for axis, coordinate in enumerate(self.coordinates):
            own = self.best[axis]
            for direction, limit in zip((-1.0, 1.0), coordinate.limits, strict=True):
                tried_beyond = any(direction * (point[axis] - own) > 0.0 for point in self.seen)
                if not tried_beyond and own != limit:
                    found.append((axis, direction))
        return found

    def _line(self, axis: int, directions: list[float]) -> bool:
        """Go along one coordinate as long as it gets better, first in the direction that was last good."""
        for direction in (directions[axis], -directions[axis]):
            moved = False
            while self._step(axis, direction, self.factor, self.evaluations):
                moved = True
            if moved:
                directions[axis] = direction
                return True
        return False

    def _step(self, axis: int, direction: float, factor: float, allowed: int) -> bool:
        """Try the neighbour, and take it where it is better."""
        t = self.coordinates[axis].clipped(self.best[axis] + direction * math.log(factor))
        point = (*self.best[:axis], t, *self.best[axis + 1 :])
        if not self._look(point, allowed).beats(self.seen[self.best]):
            return False
        self.best = point
        return True

    def _look(self, point: Point, allowed: int) -> Score:
        if point not in self.seen:
            if len(self.seen) >= allowed:
                raise SpentError
            self.seen[point] = self.evaluate(point)
        return self.seen[point]
