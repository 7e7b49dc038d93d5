"""The figure that compares methods: error against communication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundelay.engine import Ensemble, Run
from roundelay.plots.curves import Curve, curve_of
from roundelay.plots.labels import RELATIVE, UNITS, label_of
from roundelay.plots.limits import error_limits
from roundelay.plots.styles import style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID = "#dddddd"
FRAME = "#888888"


def plot_convergence(
    results: Mapping[str, Run | Ensemble], column: str = "error", axis: Axes | None = None, title: str | None = None
) -> Figure:
    """Draw a history column of each result against the units of communication, the column on a logarithmic axis.

    `results` maps the name of each method to its run, or to an ensemble, which becomes the median with a
    band from the 10 % to the 90 % quantile. `column` is any column of `run.history`. `axis` is where to draw;
    without it a new figure is made. Relative errors are cut at 1e-14, near rounding.
    """
    if not results:
        raise ValueError("There are no results to draw: give at least one run by name.")
    curves = {name: curve_of(result, column) for name, result in results.items()}
    limits = error_limits(list(curves.values()), column in RELATIVE)
    axis = axis if axis is not None else _new_axis()
    for place, (name, curve) in enumerate(curves.items()):
        _draw(axis, name, curve, place, len(curves))
    axis.set_yscale("log")
    axis.set_ylim(*limits)
    axis.set_xlim(0.0, max(1.0, *(float(curve.units[-1]) for curve in curves.values())))
    _dress(axis, column, title, _band_words(results))
    return _figure_of(axis)


def _new_axis() -> Axes:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # The padding, in inches, leaves room for labels at the ends of an axis.
    return Figure(figsize=(7.6, 4.8), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)).add_subplot()


def _draw(axis: Axes, name: str, curve: Curve, place: int, methods: int) -> None:
    style = style_of(place)
    if curve.low is not None and curve.high is not None:
        axis.fill_between(curve.units, curve.low, curve.high, color=style.colour, alpha=0.18, linewidth=0.0)
    axis.plot(
        curve.units,
        curve.middle,
        color=style.colour,
        linestyle=style.line,
        linewidth=1.8,
        marker=style.marker,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.7,
        markevery=(0.1 * (place + 0.5) / methods, 0.1),
        label=name,
    )


def _dress(axis: Axes, column: str, title: str | None, legend_title: str | None) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axis.set_xlabel(UNITS)
    axis.set_ylabel(label_of(column))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.grid(True, which="major", color=GRID, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.tick_params(which="both", color=FRAME)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FRAME)
    if title is not None:
        axis.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    legend = axis.legend(
        title=legend_title, loc="best", handlelength=3.6, framealpha=0.9, edgecolor=GRID, title_fontsize="small"
    )
    legend.set_zorder(5)


def _band_words(results: Mapping[str, Run | Ensemble]) -> str | None:
    """What line and band mean, where the results are ensembles."""
    sizes = {len(result) for result in results.values() if isinstance(result, Ensemble)}
    if not sizes:
        return None
    if sizes == {1}:
        return "one seed"
    return f"median and 10–90 % of {sizes.pop() if len(sizes) == 1 else 'the'} seeds"


def _figure_of(axis: Axes) -> Figure:
    from matplotlib.figure import Figure

    figure = axis.figure
    while not isinstance(figure, Figure):
        figure = figure.figure  # a part of a figure knows the whole
    return figure
