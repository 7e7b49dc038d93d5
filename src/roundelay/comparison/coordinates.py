"""A parameter as a search sees it: a number t that a step changes by the logarithm of a factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roundelay.comparison.numbers import in_words
from roundelay.engine.checks import name_of

Kind = Literal["positive", "below one", "share"]

# The sizes between which e^t may be. A parameter below one may go nearly to 0, and never so near to 1 that rounding
# makes it 1.
SIZES: dict[Kind, tuple[float, float]] = {
    "positive": (1e-100, 1e100),
    "share": (1e-100, 1.0),
    "below one": (1e-12, 0.99),
}
# Points are compared by t in so many digits, so that a step and a step back give the same point.
DIGITS = 12


@dataclass(frozen=True)
class Coordinate:
    """A positive number, or a share up to 1, whose logarithm is t; or a number whose distance from 1 has that logarithm.

    `begin` is the value where a search begins.
    """

    name: str
    kind: Kind
    begin: float

    @property
    def origin(self) -> float:
        """The t where a search begins."""
        return self.clipped(math.log(1.0 - self.begin if self.kind == "below one" else self.begin))

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest t that make sense."""
        low, high = SIZES[self.kind]
        return round(math.log(low), DIGITS), round(math.log(high), DIGITS)

    def value(self, t: float) -> float:
        """The value that t stands for, in six digits, so that it can be written down."""
        if t == self.origin:
            return self.begin
        size = float(f"{math.exp(t):.6g}")
        return 1.0 - size if self.kind == "below one" else size

    def clipped(self, t: float) -> float:
        """The nearest t that makes sense."""
        low, high = self.limits
        return round(min(max(t, low), high), DIGITS)


def coordinates_of(algorithm: Any, names: Sequence[str] | None) -> tuple[Coordinate, ...]:
    """What is tuned of an algorithm, each parameter from its own value where a search can begin there.

    Without `names` that is all it offers, but for parameters that are switched off and have no other place to begin.
    """
    if isinstance(names, str):
        raise ValueError(f"parameters is {names!r}: give a list of names, for instance [{names!r}].")
    tunable = {entry.name: entry for entry in getattr(algorithm, "tunable", ())}
    for name in names or ():
        if name not in tunable:
            offered = f"what can be tuned is {in_words(list(tunable))}" if tunable else "it has nothing to tune"
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


def can_begin(kind: Kind, value: Any) -> bool:
    """Whether a search in factors can begin at this value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return value > 0.0 and (kind == "positive" or value < 1.0 or (kind == "share" and value == 1.0))
