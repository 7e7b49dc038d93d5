"""The figure that compares methods: error against what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.engine import Ensemble, Run
from roundelay.plots.axes import GRID, Curve, curve_of, figure_of, frame, new_axis, remembered, scale_cost
from roundelay.plots.style import RELATIVE, Cost, PaperStyle, label_of, style_of

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
    results: Run | Ensemble | Mapping[str, Run | Ensemble],
    column: str = "error",
    axis: Axes | None = None,
    title: str | None = None,
    over: Cost = "units",
    log_cost: bool = False,
    lowest: float = 0.0,
) -> Figure:
    """Draw a history column of each result against what it cost, the column on a logarithmic axis.

    `results` is a run, or an ensemble, which becomes the median with a band from the 10 % to the 90 % quantile; or it maps
    the name of each method to its own. `column` is any column of `run.history`; `over` is "units", "bytes" or,
    where the network's conditions were given, "seconds". `log_cost` makes the axis of the cost logarithmic, too: token
    and gossip methods differ by a factor of 100. `axis` is where to draw; without it a new figure is made. Relative
    errors are cut at 1e-14, near rounding, and nothing below `lowest` is shown. With more than eight methods the legend stands to the right.

    The figure's `save(path, style="ieee")` draws it for print.
    """
    results = _by_name(results)
    curves = {name: curve_of(result, column, over) for name, result in results.items()}
    words, made = _band_words(results), _made(results)

    def drawn(axis: Axes | None, title: str | None, paper: PaperStyle | None = None) -> Figure:
        return _drawn(curves, words, column, axis, title, over, log_cost, lowest, paper)

    figure = drawn(axis, title)
    return figure if axis is not None else remembered(figure, made, lambda paper: drawn(None, None, paper))


def _by_name(results: Any) -> Mapping[str, Run | Ensemble]:
    """Each by its name; one alone by that of its method."""
    if isinstance(results, Run | Ensemble):
        runs = [results] if isinstance(results, Run) else list(results)
        results = {runs[0].name: results} if runs else {}
    if not isinstance(results, Mapping):
        raise ValueError(
            f"The results are a {type(results).__name__}: give a run, an ensemble, or a mapping from names to them."
        )
    if not results:
        raise ValueError("There are no results to draw: give at least one run by name.")
    return results


def _drawn(
    curves: Mapping[str, Curve],
    words: str | None,
    column: str,
    axis: Axes | None,
    title: str | None,
    over: Cost,
    log_cost: bool,
    lowest: float,
    paper: PaperStyle | None,
) -> Figure:
    limits = _error_limits(list(curves.values()), column in RELATIVE, lowest)
    columns = 1 if paper is None else _columns_below(list(curves), paper)
    if axis is None:
        axis = new_axis(len(curves) > CROWD, paper, -(-len(curves) // columns) + (words is not None))
    for place, (name, curve) in enumerate(curves.items()):
        _draw(axis, name, curve, place, len(curves), 1.0 if paper is None else paper.scale)
    axis.set_yscale("log")
    axis.set_ylim(*limits)
    axis.set_ylabel(label_of(column))
    scale_cost(axis, list(curves.values()), over, log_cost)
    frame(axis)
    if title is not None:
        axis.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    _explain(axis, words, len(curves), columns if paper is not None else 0)
    return figure_of(axis)


def _made(results: Mapping[str, Run | Ensemble]) -> dict[str, str]:
    """The parameters of all methods and their seeds."""
    parts = {name: result.made() for name, result in results.items()}
    return {
        "parameters": "; ".join(f"{name}: {part['parameters']}" for name, part in parts.items()),
        "seeds": "; ".join(dict.fromkeys(str(part["seeds"]) for part in parts.values())),
        "data": "; ".join(dict.fromkeys(filter(None, (part["data"] for part in parts.values())))),
    }


def _columns_below(names: Sequence[str], paper: PaperStyle) -> int:
    """How many labels stand side by side under the figure."""
    return max(1, min(len(names), int(paper.width / (paper.scale * (0.5 + 0.075 * max(map(len, names)))))))


def _error_limits(curves: Sequence[Curve], relative: bool, least: float) -> tuple[float, float]:
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
    return max(bottom, least), 3.0 * highest


def _draw(axis: Axes, name: str, curve: Curve, place: int, methods: int, scale: float) -> None:
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
        linewidth=1.8 * scale,
        marker=style.marker,
        markersize=5.5 * scale,
        markeredgecolor="white",
        markeredgewidth=0.7 * scale,
        markevery=(0.1 * (place + 0.5) / methods, 0.1),
        label=name,
    )


def _explain(axis: Axes, title: str | None, methods: int, columns: int) -> None:
    """The legend: inside where there is room, beside the axis where there are many methods, and below it, in columns, in print."""
    if columns:
        below = figure_of(axis).legend(
            title=title, loc="outside lower center", ncols=columns, frameon=False, fontsize="small", title_fontsize="small",
            handlelength=2.6, columnspacing=1.2, labelspacing=0.3,
        )  # fmt: skip
        below.set_zorder(5)
        return
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
