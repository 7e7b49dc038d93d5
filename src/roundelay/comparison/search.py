"""Compass search: try the neighbours at a factor, go where it is better, and take a smaller factor where nothing is.

It knows nothing of algorithms: what is searched is a function of a few numbers, and what it returns can be ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from roundelay.engine.checks import name_of
from roundelay.networks.network_checks import join_names

ParameterKind = Literal["positive", "below one", "share"]
Point = tuple[float, ...]

# The sizes between which e^t may be. A parameter below one may go nearly to 0, and never so near to 1 that rounding
# makes it 1.
_SIZES: dict[ParameterKind, tuple[float, float]] = {
    "positive": (1e-100, 1e100),
    "share": (1e-100, 1.0),
    "below one": (1e-12, 0.99),
}
# Points are compared by t in so many digits, so that a step and a step back give the same point.
_DIGITS = 12
# The first factor, and the one below which no more is to be gained.
WIDEST, FINEST = 4.0, 1.05
# What is better by less than this, relatively, is not better: a parameter that does nothing is left where it is.
GAIN = 1e-3
# Beyond an edge at least this factor is tried.
BEYOND = 2.0


@dataclass(frozen=True)
class Coordinate:
    """A positive number, or a share up to 1, whose logarithm is t; or a number whose distance from 1 has that logarithm.

    `begin` is the value where a search begins.
    """

    name: str
    kind: ParameterKind
    begin: float

    @property
    def origin(self) -> float:
        """The t where a search begins."""
        return self.clipped(math.log(1.0 - self.begin if self.kind == "below one" else self.begin))

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest t that make sense."""
        low, high = _SIZES[self.kind]
        return round(math.log(low), _DIGITS), round(math.log(high), _DIGITS)

    def value(self, t: float) -> float:
        """The value that t stands for, in six digits, so that it can be written down."""
        if t == self.origin:
            return self.begin
        size = float(f"{math.exp(t):.6g}")
        return 1.0 - size if self.kind == "below one" else size

    def clipped(self, t: float) -> float:
        """The nearest t that makes sense."""
        low, high = self.limits
        return round(min(max(t, low), high), _DIGITS)


def coordinates_of(algorithm: Any, names: Sequence[str] | None) -> tuple[Coordinate, ...]:
    """What is tuned of an algorithm, each parameter from its own value where a search can begin there.

    Without `names` that is all it offers, but for parameters that are switched off and have no other place to begin.
    """
    if isinstance(names, str):
        raise ValueError(f"parameters is {names!r}: give a list of names, for instance [{names!r}].")
    tunable = {entry.name: entry for entry in getattr(algorithm, "tunable", ())}
    for name in names or ():
        if name not in tunable:
            offered = f"what can be tuned is {join_names(list(tunable))}" if tunable else "it has nothing to tune"
            raise ValueError(f"{name_of(algorithm)} can't be tuned in {name!r}: {offered}.")
    coordinates = []
    for name, entry in tunable.items():
        if names is not None and name not in names:
            continue
        own = getattr(algorithm, name)
        begin = own if can_begin(entry.kind, own) else entry.start
        if begin is not None:
            coordinates.append(Coordinate(name, entry.kind, float(begin)))
        elif names is not None:
            raise ValueError(
                f"{name} of {name_of(algorithm)} is {own!r}, where a search in factors can't begin: "
                "give it another value, or leave it out of `parameters`."
            )
    return tuple(coordinates)


def can_begin(kind: ParameterKind, value: Any) -> bool:
    """Whether a search in factors can begin at this value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return value > 0.0 and (kind == "positive" or value < 1.0 or (kind == "share" and value == 1.0))


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
