"""The curve of a result over what it cost, and an axis to draw it on: its frame, and the side along which the cost grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.engine import Ensemble, Run
from roundelay.kernels import Vector
from roundelay.plots.style import COSTS, PaperStyle, label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


GRID = "#dddddd"
FRAME = "#888888"


# ------------------------------------------------------------ curves


@dataclass(frozen=True, eq=False)
class Curve:
    """A line over what it cost, and the band around it where there are several seeds; not a number where undrawable.

    With `jumps` a value holds until the next, as of sealed laps, where all agents move at once.
    """

    cost: Vector
    middle: Vector
    low: Vector | None = None
    high: Vector | None = None
    jumps: bool = False


def curve_of(result: Run | Ensemble, column: str, over: str = "units") -> Curve:
    """The history column of a run, or the median and the band of an ensemble, over units, bytes or seconds.

    Seeds that have ended keep their last value; the curve ends where half of them have, so that one slow
    seed does not draw it out.
    """
    runs = (result,) if isinstance(result, Run) else result.runs
    _check(runs, column, over)
    jumps = all(run.record.jumps for run in runs)
    if isinstance(result, Run):
        history = result.history
        return Curve(history[over].to_numpy(np.float64), _drawable(history[column].to_numpy(np.float64)), jumps=jumps)
    with np.errstate(invalid="ignore"):  # where seeds diverge, the quantiles of infinite values are not numbers
        bands = result.bands(column, over=over)
    ends = [float(run.history[over].iloc[-1]) for run in runs]
    bands = bands[bands[over] <= np.quantile(ends, 0.5, method="higher")]
    middle, low, high = (_drawable(bands[name].to_numpy(np.float64)) for name in ("median", "low", "high"))
    return Curve(bands[over].to_numpy(np.float64), middle, low, high, jumps)


def _check(runs: tuple[Run, ...], column: str, over: str) -> None:
    if not runs:
        raise ValueError("There is a result without a single run, which can't be drawn: leave it out.")
    if over not in COSTS:
        raise ValueError(f"A curve can't be drawn over {over!r}: use one of {', '.join(COSTS)}.")
    for run in runs:
        columns = run.history.columns
        if over not in columns:
            raise ValueError(f"The history has no {over}: give the network's conditions to simulate.")
        if column not in columns:
            known = [name for name in columns if name not in ("hop", "iteration", *COSTS)]
            raise ValueError(f"The history has no column {column!r}: use one of {', '.join(known)}.")


def _drawable(values: Vector) -> Vector:
    """The values that a logarithmic axis can show; not a number elsewhere."""
    return np.where(np.isfinite(values) & (values > 0.0), values, np.nan)


# ------------------------------------------------------------ axes


def new_axis(wide: bool, paper: PaperStyle | None = None, legend: int = 0) -> Axes:
    """An axis in a new figure; a wide one has room for a legend beside it, one for print for so many rows of a legend below it."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from roundelay.plots.shown import ShownFigure

    # The padding, in inches, leaves room for labels at the ends of an axis.
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    size = (10.4, 5.6) if wide else (7.6, 4.8)
    if paper is not None:
        layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03)
        size = paper.width, min(0.72 * paper.width, 3.6) + 0.19 * paper.scale * legend
    return ShownFigure(figsize=size, layout=layout).add_subplot()


def remembered(figure: Figure, made: Mapping[str, Any], again: Callable[[PaperStyle], Figure]) -> Figure:
    """The figure with a word of how it was made, and the way to draw it again."""
    from roundelay.plots.shown import ShownFigure

    assert isinstance(figure, ShownFigure)
    figure.made, figure.again = made, again
    return figure


def figure_of(axis: Axes) -> Figure:
    """The whole figure that the axis is in."""
    from matplotlib.figure import Figure

    figure = axis.figure
    while not isinstance(figure, Figure):
        figure = figure.figure  # a part of a figure knows the whole
    return figure


def scale_cost(axis: Axes, curves: Sequence[Curve], over: str, logarithmic: bool) -> None:
    """Let the cost grow from left to right, and say what it is."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    most = max(float(curve.cost[-1]) for curve in curves)
    if logarithmic and most > 0.0:
        axis.set_xscale("log", nonpositive="mask")
        axis.set_xlim(_first_progress(curves), most)
        axis.xaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_xlim(0.0, most if most > 0.0 else 1.0)
    if over != "seconds":
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_xlabel(label_of(over))


def frame(axis: Axes) -> None:
    """A light grid, and a frame on two sides."""
    axis.grid(True, which="major", color=GRID, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.tick_params(which="both", color=FRAME)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FRAME)


def _first_progress(curves: Sequence[Curve]) -> float:
    """Half of what it cost until the first of the curves had come down a little; nothing is to be seen before."""
    costs: list[float] = []
    for curve in curves:
        paid = curve.cost > 0.0
        moved = paid & (curve.middle < 0.9 * curve.middle[0])
        costs += curve.cost[moved if moved.any() else paid][:1].tolist()
    return 0.5 * min(costs, default=1.0)
