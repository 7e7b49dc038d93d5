"""A figure as data, drawn for paper: its panels, their axes and their legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from roundelay.plots.axes import frame, remembered
from roundelay.plots.chart import BACKGROUND, Chart, ChartFigure, Series
from roundelay.plots.layout import INSIDE, Legend, drawable, label_places, legends_of
from roundelay.plots.style import PaperStyle, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

GREY = "#9a9a9a"

# A dashed line has no markers; that of another place has other dashes.
DASHES: tuple[tuple[float, ...], ...] = ((3.5, 2.0), (1.2, 1.6), (6.0, 1.8, 1.2, 1.8), (7.0, 3.0))

# Up to so many points each has a marker; a longer line has one at every tenth of its length.
_FEW = 15

# How far from its point a name begins, in points, and how it is aligned there.
OFFSET = 5.0
ACROSS = {"left": ("right", -1), "center": ("center", 0), "right": ("left", 1)}
UPWARDS = {"bottom": ("top", -1), "middle": ("center", 0), "top": ("bottom", 1)}

# The width and height of a panel in inches, by the number of columns; more columns are as narrow as three.
_SIZES = {1: (7.6, 4.4), 2: (5.4, 3.8), 3: (4.3, 3.5)}

# A panel in print is at least so wide, in inches.
_NARROWEST = 2.3

# About how wide a letter and how high a line is in inches, in the legend and in the title.
_LETTER, _LETTER_IN_PRINT = 0.085, 0.06
LINE = 0.2
TITLE_LETTER = 0.11
TITLE_LINE = 0.3

MANY_DECADES = 1e4
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# The first line of each label and place in the palette.
Lines: TypeAlias = "dict[tuple[str, int], Line2D]"


@dataclass(frozen=True)
class _Panel:
    """How many panels stand side by side, the width and height of each in inches, and the size of all else against that on a screen."""

    columns: int
    width: float
    height: float
    scale: float = 1.0
    letter: float = _LETTER

    @property
    def lengths(self) -> float:
        """The width in those of a screen's letters."""
        return self.width / self.scale * _LETTER / self.letter


def draw_chart_figure(figure: ChartFigure) -> Figure:
    """Draw every panel that the figure has, with one legend for all of them where their series are the same."""
    columns = max(1, min(figure.columns, len(figure.charts)))
    made = {"figure": figure.name, "seeds": figure.seeds, "parameters": figure.caption}
    drawn = _drawn(figure, _Panel(columns, *_SIZES.get(columns, _SIZES[3])))
    return remembered(drawn, made, lambda paper: _drawn(replace(figure, title=""), _in_print(figure, paper)))


def _in_print(figure: ChartFigure, paper: PaperStyle) -> _Panel:
    """As many panels side by side as can be read in the width of a column."""
    columns = max(1, min(figure.columns, len(figure.charts), int(paper.width / _NARROWEST)))
    width = paper.width / columns
    return _Panel(columns, width, max(0.62 * width, 1.9), paper.scale, _LETTER_IN_PRINT)


def _drawn(figure: ChartFigure, panel: _Panel) -> Figure:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from roundelay.plots.shown import ShownFigure

    charts = tuple(drawable(_shown(chart)) for chart in figure.charts)
    if not charts:
        raise ValueError(f"The figure {figure.name!r} has no panel to draw: give it at least one chart.")
    columns, width, scale = panel.columns, panel.width, panel.scale
    rows = -(-len(charts) // columns)
    legends = _one_below(legends_of(replace(figure, charts=charts)))
    title = fill(figure.title, int(width * columns / TITLE_LETTER))
    extra = (TITLE_LINE * (title.count("\n") + 1) if title else 0.0) + _height(legends, panel, rows)
    layout = ConstrainedLayoutEngine(w_pad=0.1 * scale**3, h_pad=0.1 * scale**3, wspace=0.02, hspace=0.03)
    drawn = ShownFigure(figsize=(width * columns, panel.height * rows + extra), layout=layout)
    axes = [drawn.add_subplot(rows, columns, place + 1) for place in range(len(charts))]
    lines = [_draw_panel(axis, chart, panel) for axis, chart in zip(axes, charts, strict=True)]
    for legend in legends:
        _explain(drawn, axes, lines, legend, panel.lengths * (1 if len(legend.panels) == 1 else columns), scale)
    if title:
        drawn.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold", parse_math=False)
    return drawn


def _one_below(legends: Sequence[Legend]) -> tuple[Legend, ...]:
    """The legends with those of several panels made one, since there is one place under the figure."""
    shared = [legend for legend in legends if len(legend.panels) > 1]
    own = tuple(legend for legend in legends if len(legend.panels) == 1)
    if not shared:
        return own
    entries = tuple(series for legend in shared for series in legend.entries)
    return (*own, Legend(entries, tuple(panel for legend in shared for panel in legend.panels)))


def _shown(chart: Chart) -> Chart:
    return replace(chart, series=tuple(series for series in chart.series if series.shown))


def _draw_panel(axis: Axes, chart: Chart, panel: _Panel) -> Lines:
    """Draw the panel; return what the legend needs."""
    lines: Lines = {}
    for series in chart.series:
        lines.setdefault((series.label, series.place), _draw_series(axis, chart, series, panel.scale))
    axis.set_title(chart.title, loc="left", fontsize="medium", parse_math=False)
    if chart.bare:
        axis.set_aspect("equal")
        axis.set_axis_off()
        axis.margins(0.08)
    else:
        axis.set_xlabel(chart.x_label, parse_math=False)
        room = panel.height - 0.9 * panel.scale
        axis.set_ylabel(fill(chart.y_label, int(room / (_LETTER * panel.scale))), parse_math=False)
        _scale(axis, chart)
        if not chart.log_x:
            axis.locator_params(axis="x", nbins=8 if panel.width > 5.5 else 5)
        frame(axis)
    return lines


def _scale(axis: Axes, chart: Chart) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator, StrMethodFormatter

    if chart.log_x:
        axis.set_xscale("log", nonpositive="mask")
    if chart.log_y:
        axis.set_yscale("log", nonpositive="mask")
    if chart.x_range is not None:
        axis.set_xlim(*chart.x_range)
    if chart.y_range is not None:
        axis.set_ylim(*chart.y_range)
    for side, logarithmic in ((axis.xaxis, chart.log_x), (axis.yaxis, chart.log_y)):
        low, high = side.get_view_interval()
        # Over many decades the ticks between them can't be told apart, and take most of the time of drawing.
        if logarithmic and high > MANY_DECADES * low > 0.0:
            side.set_minor_locator(NullLocator())
            side.set_major_formatter(FuncFormatter(_power_of_ten))
        # Thousands are easier to count with a comma than with a power of ten at the corner.
        if not logarithmic and max(map(abs, side.get_view_interval())) >= 1e4:
            side.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _power_of_ten(value: float, place: int) -> str:
    """A tick's label without mathematical markup, which takes long to set; nothing between the powers."""
    power = math.log10(value) if value > 0.0 else math.nan
    if not abs(power - round(power)) < 1e-9:
        return ""
    return f"10{str(round(power)).translate(SUPERSCRIPTS)}"


# ------------------------------------------------------------ legends


def _explain(
    drawn: Figure, axes: Sequence[Axes], lines: Sequence[Lines], legend: Legend, width: float, scale: float
) -> None:
    """One legend under the figure for several panels, or under its only panel."""
    from matplotlib.transforms import ScaledTranslation

    labels = [series.label for series in legend.entries]
    drawn_lines = {look: line for panel in reversed(legend.panels) for look, line in lines[panel].items()}
    handles = [drawn_lines[series.label, series.place] for series in legend.entries]
    words: dict[str, Any] = {
        "ncols": _columns(legend, width),
        "handlelength": 3.4,
        "frameon": False,
        "fontsize": "small",
    }
    if len(legend.panels) > 1:
        made = drawn.legend(handles, labels, loc="outside lower center", **words)
    else:
        axis = axes[legend.panels[0]]
        below = ScaledTranslation(0.0, -0.48 * scale if axis.axison else -0.05, drawn.dpi_scale_trans)
        words |= {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": axis.transAxes + below}
        made = axis.legend(handles, labels, **words)
    for text in made.get_texts():
        text.set_parse_math(False)


def _height(legends: Sequence[Legend], panel: _Panel, rows: int) -> float:
    """What the legends take from the figure's height in inches, at most."""
    width, columns = panel.lengths, panel.columns
    shared = sum(LINE * (_rows(legend, width * columns) + 1) for legend in legends if len(legend.panels) > 1)
    own = [LINE * (_rows(legend, width) + 0.5) for legend in legends if len(legend.panels) == 1]
    return panel.scale * (shared + rows * max(own, default=0.0))


def _columns(legend: Legend, width: float) -> int:
    """How many labels stand side by side, in rows as even as can be."""
    return -(-len(legend.entries) // _rows(legend, width))


def _rows(legend: Legend, width: float) -> int:
    longest = max(len(series.label) for series in legend.entries)
    fit = max(1, int((width - 0.8) / (0.75 + _LETTER * longest)))
    return -(-len(legend.entries) // fit)


# ------------------------------------------------------------ a series


def _draw_series(axis: Axes, chart: Chart, series: Series, scale: float) -> Line2D:
    """Draw the band, the line or the points, and the names; return what the legend shows."""
    look = _line_look(chart, series)
    for size in look.keys() & {"linewidth", "markersize", "markeredgewidth"}:
        look[size] *= scale
    if series.low is not None and series.high is not None:
        axis.fill_between(series.x, series.low, series.high, color=look["color"], alpha=0.18, linewidth=0.0)
    (line,) = axis.plot(series.x, series.y, label=series.label, **look)
    if series.mode == "labelled points":
        _draw_names(axis, chart, series)
    return line


def _line_look(chart: Chart, series: Series) -> dict[str, Any]:
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
    if np.isfinite(series.y).sum() <= _FEW:
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
