"""An axis to draw on, its frame, and the side along which the cost grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roundelay.plots.curves import Curve
from roundelay.plots.labels import label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID = "#dddddd"
FRAME = "#888888"


def new_axis(wide: bool) -> Axes:
    """An axis in a new figure; a wide one has room for a legend beside it."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # The padding, in inches, leaves room for labels at the ends of an axis.
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    return Figure(figsize=(10.4, 5.6) if wide else (7.6, 4.8), layout=layout).add_subplot()


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
