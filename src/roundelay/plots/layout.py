"""What goes where in a figure as data: the ends of axes, what they can show, the names of points, and legends.

Both the figure for paper and the interactive page are laid out by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roundelay.kernels import Vector
from roundelay.plots.chart import Chart, ChartFigure, Series

# What is left free at each end of an axis, as a part of what is drawn.
MARGIN = 0.05
MARGIN_FOR_NAMES = 0.15

# A panel of usual size in pixels, and what a letter and a marker take there.
PANEL = (400.0, 270.0)
_LETTER = (7.0, 14.0)
MARKER = 5.0

# Names up to this length fit into the marker of a drawing.
_SHORT = 3

# How far the name's middle lies from the point, as multiples of half of its size; the first is tried first.
_PLACES: dict[str, tuple[int, int]] = {
    "middle right": (1, 0),
    "top center": (0, 1),
    "bottom center": (0, -1),
    "middle left": (-1, 0),
    "top right": (1, 1),
    "bottom right": (1, -1),
    "top left": (-1, 1),
    "bottom left": (-1, -1),
}
INSIDE = "middle center"


# ------------------------------------------------------------ axes and what they show


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


# ------------------------------------------------------------ names of points


@dataclass(frozen=True)
class LabelBox:
    """A rectangle on the panel, by its middle and half of its size in pixels."""

    x: float
    y: float
    half_width: float
    half_height: float

    def meets(self, other: LabelBox) -> bool:
        """Whether the two overlap."""
        return (
            abs(self.x - other.x) < self.half_width + other.half_width
            and abs(self.y - other.y) < self.half_height + other.half_height
        )

    def leaves(self) -> bool:
        """Whether a part of it lies outside the panel."""
        return not (
            self.half_width <= self.x <= PANEL[0] - self.half_width
            and self.half_height <= self.y <= PANEL[1] - self.half_height
        )


def label_places(chart: Chart, series: Series) -> tuple[str, ...]:
    """The place of each name of the series, as in "top right" of its point."""
    if chart.bare and max(map(len, series.names), default=0) <= _SHORT:
        return (INSIDE,) * len(series.names)
    xs, ys = _pixels(chart, series)
    others = [_pixels(chart, each) for each in chart.series if each.mode in ("points", "labelled points")]
    points = [LabelBox(x, y, MARKER, MARKER) for both in others for x, y in zip(*both, strict=True)]
    taken: list[LabelBox] = []
    places = []
    for x, y, name in zip(xs, ys, series.names, strict=True):
        boxes = {place: _box(x, y, name, where) for place, where in _PLACES.items()}
        place = min(boxes, key=lambda place: _cost(boxes[place], taken, points))
        taken.append(boxes[place])
        places.append(place)
    return tuple(places)


def _box(x: float, y: float, name: str, where: tuple[int, int]) -> LabelBox:
    half_width, half_height = _LETTER[0] * len(name) / 2.0, _LETTER[1] / 2.0
    gap = MARKER
    return LabelBox(x + where[0] * (half_width + gap), y + where[1] * (half_height + gap), half_width, half_height)


def _cost(box: LabelBox, taken: list[LabelBox], points: list[LabelBox]) -> int:
    """Worst is a name out of the panel, then one over another name, then one over a point."""
    return 100 * box.leaves() + 10 * sum(map(box.meets, taken)) + sum(map(box.meets, points))


def _pixels(chart: Chart, series: Series) -> tuple[Vector, Vector]:
    x_limits, y_limits = limits_of(chart)
    return (
        PANEL[0] * _fraction(series.x, x_limits, chart.log_x),
        PANEL[1] * _fraction(series.y, y_limits, chart.log_y),
    )


def _fraction(values: Vector, limits: tuple[float, float], logarithmic: bool) -> Vector:
    """How far along its axis each value lies, from 0 to 1."""
    low, high = (float(end) for end in scaled(np.array(limits), logarithmic))
    return (scaled(values, logarithmic) - low) / (high - low)


# ------------------------------------------------------------ legends


@dataclass(frozen=True, eq=False)
class Legend:
    """What explains these panels: one series for each label that they have."""

    entries: tuple[Series, ...]
    panels: tuple[int, ...]


def legends_of(figure: ChartFigure) -> tuple[Legend, ...]:
    """One legend for panels that have a series in common and in which each label has one look; drawings apart."""
    legends: list[Legend] = []
    for bare in (False, True):
        each = [Legend(_entries(chart), (place,)) for place, chart in enumerate(figure.charts) if chart.bare == bare]
        legends += _merged(each)
    return tuple(legend for legend in legends if legend.entries)


def _merged(legends: Sequence[Legend]) -> list[Legend]:
    """Each legend joined to the first that it goes with."""
    merged: list[Legend] = []
    for legend in legends:
        for place, other in enumerate(merged):
            if _go_together(legend, other):
                merged[place] = _joined(other, legend)
                break
        else:
            merged.append(legend)
    return merged


def _go_together(one: Legend, other: Legend) -> bool:
    places, others = ({series.label: series.place for series in legend.entries} for legend in (one, other))
    common = places.keys() & others.keys()
    return bool(common) and all(places[label] == others[label] for label in common)


def _joined(one: Legend, other: Legend) -> Legend:
    labels = {series.label for series in one.entries}
    new = tuple(series for series in other.entries if series.label not in labels)
    return Legend(one.entries + new, one.panels + other.panels)


def _entries(chart: Chart) -> tuple[Series, ...]:
    """The first series of each label; without a label there is nothing to explain."""
    first: dict[str, Series] = {}
    for series in chart.series:
        if series.label:
            first.setdefault(series.label, series)
    return tuple(first.values())
