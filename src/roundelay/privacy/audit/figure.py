"""Estimate and truth over the hops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import whole_number
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.plots.chart_figure import draw_chart_figure
from roundelay.plots.style import BLACK_AND_SOLID
from roundelay.privacy.attacks import Recovered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roundelay.privacy.audit.audit import Audit


def audit_figure(audit: Audit, coordinate: int) -> Figure:
    """One coordinate of x and y: the truth, where it is known, and what every attack made of it."""
    found = {name: one for name, one in audit.estimates.items() if isinstance(one, Recovered)}
    if not found:
        raise ValueError("There is nothing to draw: no attack could be run, or the agents have no state that changes.")
    dim = next(iter(found.values())).x.shape[1]
    if not 0 <= whole_number("coordinate", coordinate) < dim:
        raise ValueError(f"There is no coordinate {coordinate}: they are numbered from 0 to {dim - 1}.")
    charts = tuple(_chart(audit, found, letter, coordinate) for letter in "xy")
    title = f"What {audit.observer} learned about agent {audit.agent}"
    parameters, seed = (str(audit.origin.get(name, "")) for name in ("parameters", "seeds"))
    return draw_chart_figure(ChartFigure("audit", title, parameters, charts, columns=2, seeds=seed))


def _chart(audit: Audit, estimates: dict[str, Recovered], letter: str, coordinate: int) -> Chart:
    hops = np.array(audit.hops, np.float64) + 1.0
    series = []
    if audit.truth is not None and audit.truth.whole_run:
        truth: Matrix = getattr(audit.truth, letter)
        series.append(Series("truth", hops, truth[1:, coordinate], BLACK_AND_SOLID))
    for place, (name, found) in enumerate(estimates.items()):
        values: Matrix = getattr(found, letter)
        series.append(Series(name, hops, values[1:, coordinate], place, "dashed"))
    range_of = series[0].y if audit.truth is not None else np.concatenate([one.y for one in series])
    return Chart(
        f"{'states' if letter == 'x' else 'multipliers'}, coordinate {coordinate}",
        "hop",
        f"{letter}({coordinate})",
        tuple(series),
        y_range=_view(range_of),
    )


def _view(values: Vector) -> tuple[float, float]:
    """Where the later values lie, with as much room again: the first ones may lie far outside."""
    late = values[len(values) // 4 :] if len(values) > 4 else values
    low, high = float(np.min(late)), float(np.max(late))
    room = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-12)
    return low - room, high + room
