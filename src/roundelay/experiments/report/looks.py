"""The looks of a series on the page: those of the paper's figures, and their colours by night."""

from __future__ import annotations

from dataclasses import dataclass

from roundelay.plots.chart import BACKGROUND, Chart, Series
from roundelay.plots.chart_series import dashes_of
from roundelay.plots.label_places import INSIDE, label_places
from roundelay.plots.styles import COLOURS, style_of

# Each colour of the palette, lighter where it would drown in the dark.
NIGHT = ("#3d9adb", "#f07f3c", "#1fbb8c", "#dd93be", "#f0f0f0", "#f2b632", "#86cdf7")
DAY_GREY, NIGHT_GREY = "#9a9a9a", "#7d828a"

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
    "*": "star",
}


@dataclass(frozen=True)
class Look:
    """`colour` is the name of a variable of the page's style; without a `symbol` there are no markers, without a `width` no line."""

    colour: str
    width: float
    dash: str
    symbol: str
    size: float
    hollow: bool


def look_of(chart: Chart, series: Series) -> Look:
    """How the series looks on the page."""
    style = style_of(max(series.place, 0))
    behind = series.place == BACKGROUND
    colour = "--background" if behind else f"--series-{series.place % len(COLOURS)}"
    if series.mode in ("points", "labelled points"):
        inside = series.mode == "labelled points" and INSIDE in label_places(chart, series)
        symbol = "circle" if inside else SYMBOLS[style.marker]
        return Look(colour, 0.0, "solid", symbol, 22.0 if inside else 9.0, inside)
    width = 4.0 if series.thick else 1.2 if behind else 1.6 if series.mode == "dashed" else 2.0
    if series.mode == "dashed":
        return Look(colour, width, _dash(dashes_of(series), width), "", 0.0, False)
    if behind or chart.bare:
        return Look(colour, width, "solid", "", 0.0, False)
    dashes = () if style.line == "-" else style.line[1]
    return Look(colour, width, _dash(dashes, width), SYMBOLS[style.marker], 7.0, False)


def palette_style() -> str:
    """The colours as variables, each for day and night."""
    pairs = zip(COLOURS, NIGHT, strict=True)
    lines = [f"--series-{place}: light-dark({day}, {night});" for place, (day, night) in enumerate(pairs)]
    return f":root {{ {' '.join(lines)} --background: light-dark({DAY_GREY}, {NIGHT_GREY}); }}"


def _dash(pattern: tuple[float, ...], width: float) -> str:
    """A pattern in multiples of the line's width, in pixels."""
    return ",".join(f"{width * length:g}px" for length in pattern) or "solid"
