"""Where the names of points stand, so that they hide neither each other nor other points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.kernels import Vector
from roundelay.plots.chart import Chart, Series
from roundelay.plots.room import limits_of, scaled

# A panel of usual size in pixels, and what a letter and a marker take there.
PANEL = (400.0, 270.0)
LETTER = (7.0, 14.0)
MARKER = 5.0

# Names up to this length fit into the marker of a drawing.
SHORT = 3

# How far the name's middle lies from the point, as multiples of half of its size; the first is tried first.
PLACES: dict[str, tuple[int, int]] = {
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


@dataclass(frozen=True)
class Box:
    """A rectangle on the panel, by its middle and half of its size in pixels."""

    x: float
    y: float
    half_width: float
    half_height: float

    def meets(self, other: Box) -> bool:
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
    if chart.bare and max(map(len, series.names), default=0) <= SHORT:
        return (INSIDE,) * len(series.names)
    xs, ys = _pixels(chart, series)
    others = [_pixels(chart, each) for each in chart.series if each.mode in ("points", "labelled points")]
    points = [Box(x, y, MARKER, MARKER) for both in others for x, y in zip(*both, strict=True)]
    taken: list[Box] = []
    places = []
    for x, y, name in zip(xs, ys, series.names, strict=True):
        boxes = {place: _box(x, y, name, where) for place, where in PLACES.items()}
        place = min(boxes, key=lambda place: _cost(boxes[place], taken, points))
        taken.append(boxes[place])
        places.append(place)
    return tuple(places)


def _box(x: float, y: float, name: str, where: tuple[int, int]) -> Box:
    half_width, half_height = LETTER[0] * len(name) / 2.0, LETTER[1] / 2.0
    gap = MARKER
    return Box(x + where[0] * (half_width + gap), y + where[1] * (half_height + gap), half_width, half_height)


def _cost(box: Box, taken: list[Box], points: list[Box]) -> int:
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
