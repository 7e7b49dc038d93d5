"""What the axes of a chart can show of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roundelay.kernels import Vector
from roundelay.plots.chart import Chart, Series
from roundelay.plots.room import with_room


def drawable(chart: Chart) -> Chart:
    """The chart with gaps where its axes can't show a value: an infinite one, or on a logarithmic axis one that isn't positive.

    A band that reaches down to zero or below it goes to the floor of a logarithmic axis rather than having a gap. Where
    points have names the ranges leave room for them.
    """
    floor = _floor(chart) if chart.log_y else -np.inf
    return with_room(replace(chart, series=tuple(_drawable(series, chart, floor) for series in chart.series)))


def _drawable(series: Series, chart: Chart, floor: float) -> Series:
    x, y = _finite(series.x, chart.log_x), _finite(series.y, chart.log_y)
    if series.low is None or series.high is None:
        return replace(series, x=x, y=y, low=None, high=None)
    high = _finite(series.high, chart.log_y)
    low = _finite(np.maximum(series.low, floor), chart.log_y)
    seen = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    return replace(series, x=x, y=y, low=np.where(seen, low, np.nan), high=np.where(seen, high, np.nan))


def _finite(values: Vector, logarithmic: bool) -> Vector:
    values = np.asarray(values, np.float64)
    return np.where(np.isfinite(values) & ((values > 0.0) | (not logarithmic)), values, np.nan)


def _floor(chart: Chart) -> float:
    """Where a logarithmic axis ends below: at its range, or a little under the smallest value that it shows."""
    if chart.y_range is not None:
        return min(chart.y_range)
    lines = [line for series in chart.series for line in (series.y, series.low) if line is not None]
    values = _finite(np.concatenate(lines), logarithmic=True) if lines else np.empty(0)
    return 0.5 * float(np.nanmin(values)) if np.isfinite(values).any() else 1.0
