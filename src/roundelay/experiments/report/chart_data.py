"""A figure as the data that the page's script draws it from."""

from __future__ import annotations

import math
from typing import Any

from roundelay.experiments.report.looks import look_of
from roundelay.kernels import Vector
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.plots.drawable import drawable
from roundelay.plots.label_places import label_places

# More digits than these can't be seen, and they make the page larger.
DIGITS = 6


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
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
