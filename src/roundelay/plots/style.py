"""One look for each method, and one label for each column of a history.

Colour, line and marker differ, so that any one of them is enough to tell methods apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

# ------------------------------------------------------------ looks

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


# ------------------------------------------------------------ paper


@dataclass(frozen=True)
class PaperStyle:
    """How wide a figure is in print, in inches, and how large its letters are, in points."""

    width: float
    letters: float = 8.5

    @property
    def scale(self) -> float:
        """The size of all else against that on a screen."""
        return self.letters / SCREEN_LETTERS

    @property
    def settings(self) -> dict[str, Any]:
        """What matplotlib is told while such a figure is drawn and written: letters like those around it, as outlines that printers take."""
        return {
            "font.family": ["STIXGeneral", "DejaVu Sans"],
            "mathtext.fontset": "stix",
            "font.size": self.letters,
            "axes.linewidth": 0.8 * self.scale,
            "pdf.fonttype": 42,
        }


SCREEN_LETTERS = 10.0
# A column and the whole page of the IEEE's transactions; the text of NeurIPS.
PAPER_STYLES: Mapping[str, PaperStyle] = {
    "ieee": PaperStyle(3.5),
    "ieee-wide": PaperStyle(7.16),
    "neurips": PaperStyle(5.5, 9.0),
}


def paper_style(style: str | PaperStyle) -> PaperStyle:
    """A style by its name."""
    found = style if isinstance(style, PaperStyle) else PAPER_STYLES.get(style)
    if found is None:
        raise ValueError(
            f"There is no style {style!r}: use one of {', '.join(PAPER_STYLES)}, or a roundelay.PaperStyle(width, letters)."
        )
    return found


# ------------------------------------------------------------ labels

# What a curve is drawn over.
Cost = Literal["units", "bytes", "seconds"]

COSTS: dict[str, str] = {
    "units": "communication (units)",
    "bytes": "communication (bytes)",
    "seconds": "time (simulated seconds)",
}

LABELS = {
    "accuracy": r"accuracy   $\frac{1}{N}\,\sum_i\;\|x_i - x^*\|\,/\,\|x_i^0 - x^*\|$",
    "error": r"error (common)   $\frac{1}{N}\,\sum_i\;\|x_i - x^*\|\,/\,\|x^*\|$",
    "token_error": r"error of the token   $\|z - x^*\|\,/\,\|x^*\|$",
    "mean_error": r"error of the mean   $\|\bar{x} - x^*\|\,/\,\|x^*\|$",
    "consensus": r"consensus   $(\frac{1}{N}\,\sum_i\;\|x_i - z\|^2)^{1/2}\,/\,\|x^*\|$",
    "objective_gap": r"objective gap   $\sum_i f_i(z) - \min_x\,\sum_i f_i(x)$",
    "gradient_norm": r"gradient   $\|\,\sum_i \nabla f_i(z)\,\|$",
    "objective": r"objective   $\sum_i f_i(z)$",
}

# Columns that are relative to the size of x, so that 1e-16 is where rounding sets in.
RELATIVE = frozenset({"accuracy", "error", "token_error", "mean_error", "consensus"})


def label_of(column: str) -> str:
    """The label of a history column, be it a cost or an error; its own name, where it is a monitor's."""
    return (COSTS | LABELS).get(column, column.replace("_", " "))
