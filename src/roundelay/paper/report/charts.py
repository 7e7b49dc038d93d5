"""The charts of the page: how each series looks by day and by night, its numbers for the script, and the legend."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from roundelay.kernels import Vector
from roundelay.paper.report.markup import text
from roundelay.plots.chart import BACKGROUND, Chart, ChartFigure, Series
from roundelay.plots.chart_figure import dashes_of
from roundelay.plots.layout import INSIDE, Legend, drawable, label_places
from roundelay.plots.style import COLOURS, style_of

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


# The markers within a field of 32 by 12, around its middle.
SHAPES = {
    "circle": '<circle cx="16" cy="6" r="3.6"/>',
    "square": '<rect x="12.6" y="2.6" width="6.8" height="6.8"/>',
    "triangle-up": '<path d="M16 1.8 20 9H12Z"/>',
    "diamond": '<path d="M16 1.4 20.6 6 16 10.6 11.4 6Z"/>',
    "triangle-down": '<path d="M16 10.2 12 3h8Z"/>',
    "cross": '<path d="M14.5 2h3v2.5H20v3h-2.5V10h-3V7.5H12v-3h2.5Z"/>',
    "x": '<path d="m13.6 1.9 2.4 2.4 2.4-2.4 1.7 1.7L17.7 6l2.4 2.4-1.7 1.7L16 7.7l-2.4 2.4-1.7-1.7L14.3 6l-2.4-2.4Z"/>',
    "star": '<path d="m16 1 1.3 3.5 3.7.1-2.9 2.3 1 3.6L16 8.4l-3.1 2.1 1-3.6L11 4.6l3.7-.1Z"/>',
}

# More digits than these can't be seen, and they make the page larger.
_DIGITS = 6


# ------------------------------------------------------------ looks


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


# ------------------------------------------------------------ numbers


def figure_data(figure: ChartFigure) -> list[dict[str, Any]]:
    """The panels of the figure, ready for JSON."""
    return [_panel(drawable(chart)) for chart in figure.charts]


def _panel(chart: Chart) -> dict[str, Any]:
    return {
        "xLabel": chart.x_label,
        "yLabel": chart.y_label,
        "logX": chart.log_x,
        "logY": chart.log_y,
        "xRange": chart.x_range and [_rounded(end) for end in chart.x_range],
        "yRange": chart.y_range and [_rounded(end) for end in chart.y_range],
        "bare": chart.bare,
        "series": [_series(chart, series) for series in chart.series],
    }


def _series(chart: Chart, series: Series) -> dict[str, Any]:
    look = look_of(chart, series)
    data: dict[str, Any] = {
        "label": series.label,
        "shown": series.shown,
        "colour": look.colour,
        "width": look.width,
        "dash": look.dash,
        "symbol": look.symbol,
        "size": look.size,
        "hollow": look.hollow,
        "x": _numbers(series.x),
        "y": _numbers(series.y),
    }
    if series.low is not None and series.high is not None:
        data |= {"low": _numbers(series.low), "high": _numbers(series.high)}
    if series.mode == "labelled points":
        data |= {"names": list(series.names), "places": list(label_places(chart, series))}
    return data


def _numbers(values: Vector) -> list[float | None]:
    """The values, with nothing in a gap."""
    return [_rounded(value) if math.isfinite(value) else None for value in values.tolist()]


def _rounded(value: float) -> float:
    """The value to so many digits, and whole numbers without a point, which saves two letters each."""
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


# ------------------------------------------------------------ the legend


def legend_markup(figure: ChartFigure, legend: Legend) -> str:
    """The buttons; a series that is not shown at first is switched off."""
    panels = [figure.charts[panel] for panel in legend.panels]
    buttons = []
    for series in legend.entries:
        chart = next(panel for panel in panels if series in panel.series)
        shown = any(each.shown for panel in panels for each in panel.series if each.label == series.label)
        swatch = _swatch(look_of(drawable(chart), series))
        buttons.append(
            f'<button type="button" data-label="{text(series.label)}" aria-pressed="{str(shown).lower()}">'
            f"{swatch}<span>{text(series.label)}</span></button>"
        )
    numbers = " ".join(map(str, legend.panels))
    return f'<div class="legend" role="group" aria-label="Series" data-panels="{numbers}">{"".join(buttons)}</div>'


def _swatch(look: Look) -> str:
    parts = ""
    if look.width:
        dashes = "" if look.dash == "solid" else f' stroke-dasharray="{look.dash.replace("px", "")}"'
        parts += f'<path d="M1 6h30" fill="none" stroke="currentColor" stroke-width="{look.width:g}"{dashes}/>'
    if look.symbol:
        fill = "var(--paper)" if look.hollow else "currentColor"
        parts += f'<g fill="{fill}" stroke="currentColor" stroke-width="{1.4 if look.hollow else 0}">{SHAPES[look.symbol]}</g>'
    return f'<svg viewBox="0 0 32 12" width="32" height="12" aria-hidden="true" style="color: var({look.colour})">{parts}</svg>'
