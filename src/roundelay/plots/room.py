"""How far the axes of a chart go, with room for the names of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from roundelay.kernels import Vector
from roundelay.plots.chart import Chart

# What is left free at each end of an axis, as a part of what is drawn.
MARGIN = 0.05
MARGIN_FOR_NAMES = 0.15


def with_room(chart: Chart) -> Chart:
    """The chart with its ranges wide enough for the names of its points, where it has names and no ranges."""
    if chart.bare or not any(series.mode == "labelled points" for series in chart.series):
        return chart
    x_range, y_range = limits_of(chart)
    return replace(chart, x_range=x_range, y_range=y_range)


def limits_of(chart: Chart) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of both axes: the ranges that are given, or those of the data with a margin."""
    named = any(series.mode == "labelled points" for series in chart.series)
    margin = MARGIN_FOR_NAMES if named and not chart.bare else MARGIN
    x_range = chart.x_range or _limits([series.x for series in chart.series], chart.log_x, margin)
    y_range = chart.y_range or _limits([series.y for series in chart.series], chart.log_y, margin)
    return x_range, y_range


def scaled(values: Vector, logarithmic: bool) -> Vector:
    """The values as they lie along the axis; not a number where it can't show them."""
    if not logarithmic:
        return np.asarray(values, np.float64)
    return np.log10(np.where(values > 0.0, values, np.nan))


def _limits(lines: Sequence[Vector], logarithmic: bool, margin: float) -> tuple[float, float]:
    values = scaled(np.concatenate(lines), logarithmic)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = margin * (high - low) or 0.5  # a single value stands in the middle
    low, high = low - room, high + room
    return (10.0**low, 10.0**high) if logarithmic else (low, high)
