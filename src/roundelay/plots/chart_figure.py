"""A figure as data, drawn for paper: its panels, their axes and their legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

from roundelay.plots.axes import frame
from roundelay.plots.chart import Chart, ChartFigure
from roundelay.plots.chart_series import draw_series
from roundelay.plots.drawable import drawable
from roundelay.plots.legends import Legend, legends_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# The width and height of a panel in inches, by the number of columns; more columns are as narrow as three.
SIZES = {1: (7.6, 4.4), 2: (5.4, 3.8), 3: (4.3, 3.5)}

# About how wide a letter and how high a line is in inches, in the legend and in the title.
LETTER = 0.085
LINE = 0.2
TITLE_LETTER = 0.11
TITLE_LINE = 0.3

MANY_DECADES = 1e4
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# The first line of each label and place in the palette.
Lines: TypeAlias = "dict[tuple[str, int], Line2D]"


def draw_chart_figure(figure: ChartFigure) -> Figure:
    """Draw every panel that the figure has, with one legend for all of them where their series are the same."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    charts = tuple(drawable(_shown(chart)) for chart in figure.charts)
    if not charts:
        raise ValueError(f"The figure {figure.name!r} has no panel to draw: give it at least one chart.")
    columns = max(1, min(figure.columns, len(charts)))
    rows = -(-len(charts) // columns)
    width, height = SIZES.get(columns, SIZES[3])
    legends = _one_below(legends_of(replace(figure, charts=charts)))
    title = fill(figure.title, int(width * columns / TITLE_LETTER))
    extra = TITLE_LINE * (title.count("\n") + 1) + _height(legends, width, columns, rows)
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, wspace=0.02, hspace=0.03)
    drawn = Figure(figsize=(width * columns, height * rows + extra), layout=layout)
    axes = [drawn.add_subplot(rows, columns, place + 1) for place in range(len(charts))]
    lines = [_draw_panel(axis, chart, columns) for axis, chart in zip(axes, charts, strict=True)]
    for legend in legends:
        _explain(drawn, axes, lines, legend, width if len(legend.panels) == 1 else width * columns)
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


def _draw_panel(axis: Axes, chart: Chart, columns: int) -> Lines:
    """Draw the panel; return what the legend needs."""
    lines: Lines = {}
    for series in chart.series:
        lines.setdefault((series.label, series.place), draw_series(axis, chart, series))
    axis.set_title(chart.title, loc="left", fontsize="medium", parse_math=False)
    if chart.bare:
        axis.set_aspect("equal")
        axis.set_axis_off()
        axis.margins(0.08)
    else:
        axis.set_xlabel(chart.x_label, parse_math=False)
        height = SIZES.get(columns, SIZES[3])[1]
        axis.set_ylabel(fill(chart.y_label, int((height - 0.9) / LETTER)), parse_math=False)
        _scale(axis, chart)
        if not chart.log_x:
            axis.locator_params(axis="x", nbins=8 if columns == 1 else 5)
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
            side.set_major_formatter(FuncFormatter(power_of_ten))
        # Thousands are easier to count with a comma than with a power of ten at the corner.
        if not logarithmic and max(map(abs, side.get_view_interval())) >= 1e4:
            side.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def power_of_ten(value: float, place: int) -> str:
    """A tick's label without mathematical markup, which takes long to set; nothing between the powers."""
    power = math.log10(value) if value > 0.0 else math.nan
    if not abs(power - round(power)) < 1e-9:
        return ""
    return f"10{str(round(power)).translate(SUPERSCRIPTS)}"


def _explain(drawn: Figure, axes: Sequence[Axes], lines: Sequence[Lines], legend: Legend, width: float) -> None:
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
        below = ScaledTranslation(0.0, -0.48 if axis.axison else -0.05, drawn.dpi_scale_trans)
        words |= {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": axis.transAxes + below}
        made = axis.legend(handles, labels, **words)
    for text in made.get_texts():
        text.set_parse_math(False)


def _height(legends: Sequence[Legend], width: float, columns: int, rows: int) -> float:
    """What the legends take from the figure's height in inches, at most."""
    shared = sum(LINE * (_rows(legend, width * columns) + 1) for legend in legends if len(legend.panels) > 1)
    own = [LINE * (_rows(legend, width) + 0.5) for legend in legends if len(legend.panels) == 1]
    return shared + rows * max(own, default=0.0)


def _columns(legend: Legend, width: float) -> int:
    """How many labels stand side by side, in rows as even as can be."""
    return -(-len(legend.entries) // _rows(legend, width))


def _rows(legend: Legend, width: float) -> int:
    longest = max(len(series.label) for series in legend.entries)
    fit = max(1, int((width - 0.8) / (0.75 + LETTER * longest)))
    return -(-len(legend.entries) // fit)
