"""The figure that compares methods: error against what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.engine import Ensemble, Run
from roundelay.plots.axes import GRID, Curve, curve_of, figure_of, frame, new_axis, scale_cost
from roundelay.plots.style import RELATIVE, Cost, label_of, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Below this a relative error is mostly rounding, and its wiggles tell nothing.
ROUNDING = 1e-14
# A method that diverges is shown this far above where it started, so that the others can still be seen.
_DIVERGENCE = 1e3


# With more methods than these the legend stands beside the axis.
CROWD = 8


def plot_convergence(
    results: Mapping[str, Run | Ensemble],
    column: str = "error",
    axis: Axes | None = None,
    title: str | None = None,
    over: Cost = "units",
    log_cost: bool = False,
) -> Figure:
    """Draw a history column of each result against what it cost, the column on a logarithmic axis.

    `results` maps the name of each method to its run, or to an ensemble, which becomes the median with a
    band from the 10 % to the 90 % quantile. `column` is any column of `run.history`; `over` is "units", "bytes" or,
    where the network's conditions were given, "seconds". `log_cost` makes the axis of the cost logarithmic, too: token
    and gossip methods differ by a factor of 100. `axis` is where to draw; without it a new figure is made. Relative
    errors are cut at 1e-14, near rounding. With more than eight methods the legend stands to the right.
    """
    if not results:
        raise ValueError("There are no results to draw: give at least one run by name.")
    curves = {name: curve_of(result, column, over) for name, result in results.items()}
    limits = _error_limits(list(curves.values()), column in RELATIVE)
    axis = axis if axis is not None else new_axis(wide=len(curves) > CROWD)
    for place, (name, curve) in enumerate(curves.items()):
        _draw(axis, name, curve, place, len(curves))
    axis.set_yscale("log")
    axis.set_ylim(*limits)
    axis.set_ylabel(label_of(column))
    scale_cost(axis, list(curves.values()), over, log_cost)
    frame(axis)
    if title is not None:
        axis.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    _explain(axis, _band_words(results), len(curves))
    return figure_of(axis)


def _error_limits(curves: Sequence[Curve], relative: bool) -> tuple[float, float]:
    """The lowest and the highest error that the figure shows."""
    lines = [line for curve in curves for line in (curve.middle, curve.low, curve.high) if line is not None]
    values = np.concatenate(lines)
    shown = values[np.isfinite(values)]
    if not len(shown):
        raise ValueError("Nothing can be drawn on a logarithmic axis: no value of this column is positive and finite.")
    starts = [float(line[np.isfinite(line)][0]) for line in lines if np.isfinite(line).any()]
    highest = min(float(shown.max()), _DIVERGENCE * max(starts))
    lowest = float(shown.min())
    bottom = max(lowest / 2.0, ROUNDING) if relative and highest > ROUNDING else lowest / 2.0
    return bottom, 3.0 * highest


def _draw(axis: Axes, name: str, curve: Curve, place: int, methods: int) -> None:
    style = style_of(place)
    # A value that holds from the start on begins at the left edge, also where the axis has no 0.
    cost = np.maximum(curve.cost, np.finfo(np.float64).tiny) if curve.jumps else curve.cost
    if curve.low is not None and curve.high is not None:
        held: Any = {"step": "post"} if curve.jumps else {}
        axis.fill_between(cost, curve.low, curve.high, color=style.colour, alpha=0.18, linewidth=0.0, **held)
    axis.plot(
        cost,
        curve.middle,
        color=style.colour,
        linestyle=style.line,
        drawstyle="steps-post" if curve.jumps else "default",
        linewidth=1.8,
        marker=style.marker,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.7,
        markevery=(0.1 * (place + 0.5) / methods, 0.1),
        label=name,
    )


def _explain(axis: Axes, title: str | None, methods: int) -> None:
    """The legend: inside where there is room, beside the axis where there are many methods."""
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "fontsize": "small"}
    where: dict[str, Any] = beside if methods > CROWD else {"loc": "best"}
    legend = axis.legend(title=title, handlelength=3.6, framealpha=0.9, edgecolor=GRID, title_fontsize="small", **where)
    legend.set_zorder(5)


def _band_words(results: Mapping[str, Run | Ensemble]) -> str | None:
    """What line and band mean, where the results are ensembles."""
    sizes = {len(result) for result in results.values() if isinstance(result, Ensemble)}
    if not sizes:
        return None
    if sizes == {1}:
        return "one seed"
    return f"median and 10–90 % of {sizes.pop() if len(sizes) == 1 else 'the'} seeds"
