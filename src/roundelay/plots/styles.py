"""One look for each method: colour, line and marker differ, so that any one of them is enough to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Okabe and Ito's palette, which people with any kind of colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
LINES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (7, 1.5, 1.5, 1.5)), (0, (2, 1.2)), (0, (6, 1.5, 1.5, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# The place of the truth, beside estimates at the first places.
BLACK_AND_SOLID = 25


@dataclass(frozen=True)
class Style:
    """How one method is drawn."""

    colour: str
    line: Any
    marker: str


def style_of(place: int) -> Style:
    """The style of the method at this place in the figure; the first 280 differ."""
    return Style(COLOURS[place % len(COLOURS)], LINES[place % len(LINES)], MARKERS[place % len(MARKERS)])
