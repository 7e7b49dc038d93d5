"""One series on an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.plots.chart import BACKGROUND, Chart, Series
from roundelay.plots.label_places import INSIDE, label_places
from roundelay.plots.styles import style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

GREY = "#9a9a9a"

# A dashed line has no markers; that of another place has other dashes.
DASHES: tuple[tuple[float, ...], ...] = ((3.5, 2.0), (1.2, 1.6), (6.0, 1.8, 1.2, 1.8), (7.0, 3.0))

# Up to so many points each has a marker; a longer line has one at every tenth of its length.
FEW = 15

# How far from its point a name begins, in points, and how it is aligned there.
OFFSET = 5.0
ACROSS = {"left": ("right", -1), "center": ("center", 0), "right": ("left", 1)}
UPWARDS = {"bottom": ("top", -1), "middle": ("center", 0), "top": ("bottom", 1)}


def draw_series(axis: Axes, chart: Chart, series: Series) -> Line2D:
    """Draw the band, the line or the points, and the names; return what the legend shows."""
    look = line_look(chart, series)
    if series.low is not None and series.high is not None:
        axis.fill_between(series.x, series.low, series.high, color=look["color"], alpha=0.18, linewidth=0.0)
    (line,) = axis.plot(series.x, series.y, label=series.label, **look)
    if series.mode == "labelled points":
        _draw_names(axis, chart, series)
    return line


def line_look(chart: Chart, series: Series) -> dict[str, Any]:
    """Colour, line and markers as matplotlib calls them."""
    style = style_of(max(series.place, 0))
    behind = series.place == BACKGROUND
    look: dict[str, Any] = {"color": GREY if behind else style.colour, "zorder": 1.5 if behind else 2.0}
    if series.mode in ("points", "labelled points"):
        inside = series.mode == "labelled points" and INSIDE in label_places(chart, series)
        look |= {"linestyle": "none", "marker": "o" if inside else style.marker, "markersize": 13.0 if inside else 6.5}
        edge = {"markerfacecolor": "white", "markeredgewidth": 1.4} if inside else {"markeredgecolor": "white"}
        return look | edge | {"zorder": 3.0, "clip_on": not _within(chart, series)}
    look["linewidth"] = 3.4 if series.thick else 0.9 if behind else 1.4 if series.mode == "dashed" else 1.8
    if series.mode == "dashed":
        return look | {"linestyle": (0, dashes_of(series))}
    if behind or chart.bare:
        return look | {"linestyle": "-", "solid_capstyle": "round"}
    return look | {
        "linestyle": style.line,
        "marker": style.marker,
        "markersize": 5.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.7,
        "markevery": _marked(chart, series),
    }


def dashes_of(series: Series) -> tuple[float, ...]:
    """The pattern of a dashed series in multiples of its width."""
    return DASHES[max(series.place, 0) % len(DASHES)]


def _within(chart: Chart, series: Series) -> bool:
    """Whether no point lies outside the axes; one at the very edge is then drawn whole."""
    axes = ((chart.x_range, series.x), (chart.y_range, series.y))
    return all(
        limits is None or (np.nanmin(values) >= min(limits) and np.nanmax(values) <= max(limits))
        for limits, values in axes
        if np.isfinite(values).any()
    )


def _marked(chart: Chart, series: Series) -> tuple[float, float] | None:
    """Where markers stand: those of different lines apart, so that none hides another."""
    if np.isfinite(series.y).sum() <= FEW:
        return None
    places = sorted({each.place for each in chart.series})
    return (0.1 * (places.index(series.place) + 0.5) / len(places), 0.1)


def _draw_names(axis: Axes, chart: Chart, series: Series) -> None:
    for x, y, name, place in zip(series.x, series.y, series.names, label_places(chart, series), strict=True):
        upwards, across = place.split()
        (vertical, up), (horizontal, right) = UPWARDS[upwards], ACROSS[across]
        axis.annotate(
            name,
            (float(x), float(y)),
            xytext=(OFFSET * right, OFFSET * up),
            textcoords="offset points",
            horizontalalignment=horizontal,
            verticalalignment="center_baseline" if place == INSIDE else vertical,
            fontsize=7.5 if place == INSIDE else "small",
            parse_math=False,
            zorder=4.0,
        )
