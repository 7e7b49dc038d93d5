"""What a level of error costs in communication or time, or why it was not reached; and how such numbers are written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roundelay.engine import Ensemble, Run
from roundelay.kernels import Vector
from roundelay.plots.style import Cost

Shortfall = Literal["floor", "diverged", "budget"]

# An error so many times that of the start, and of the solution's size, does not come back.
FARTHER = 100.0

# An error that falls by less than a fifth in the second half of a run has come to rest.
AT_REST = 0.8


@dataclass(frozen=True)
class Reached:
    """What it cost, in the median over the seeds, until the error stayed at or below `level`.

    `cost` is in units, bytes or seconds, as `axis` says, and infinite where the level was not reached; `seeds` is how
    many seeds got there. `why_not` is empty, or the reason as one word: "floor", "diverged" or "budget"; for a method
    that could not be run, "refused" or "interrupted". `words` says it.
    """

    level: float
    axis: Cost
    cost: float
    seeds: int
    why_not: str
    words: str


def reached(ensemble: Ensemble, level: float, column: str = "error", axis: Cost = "units") -> Reached:
    """What this level cost, in the median over the seeds."""
    costs = np.array([run.cost_to(level, axis, column) for run in ensemble])
    cost, seeds = float(np.median(costs)), int(np.isfinite(costs).sum())
    if not math.isfinite(cost):
        why, words = why_not(ensemble, column, axis)
        return Reached(level, axis, cost, seeds, why, words)
    some = "" if seeds == len(costs) else f" ({seeds} of {len(costs)} seeds)"
    return Reached(level, axis, cost, seeds, "", amount(cost, axis) + some)


def why_not(ensemble: Ensemble, column: str, axis: Cost = "units") -> tuple[Shortfall, str]:
    """Why most seeds did not get to where they should: as one word, and in a few."""
    curves = [run.history[column].to_numpy(np.float64) for run in ensemble]
    floors = np.array([floor_of(curve, run.record.step) for curve, run in zip(curves, ensemble, strict=True)])
    if np.isfinite(floors).sum() > len(floors) / 2:
        return "floor", f"never (floor {brief(float(np.nanmedian(floors)))})"
    if sum(blew_up(run, curve) for run, curve in zip(ensemble, curves, strict=True)) > len(ensemble) / 2:
        return "diverged", "never (diverged)"
    longest = max(spent(run, axis) for run in ensemble)
    last = float(np.median([curve[-1] for curve in curves]))
    return "budget", f"not in {amount(longest, axis)} (error {brief(last)})"


def blew_up(run: Run, curve: Vector) -> bool:
    """Whether a run left all bounds, or was on its way there."""
    return run.stop == "diverged" or not curve[-1] <= FARTHER * max(curve[0], 1.0)


def spent(run: Run, axis: Cost = "units") -> float:
    """What the whole run cost."""
    return float(getattr(run.record, axis)[-1])


def floor_of(curve: Vector, steps: NDArray[Any] | None = None) -> float:
    """The level at which an error stays after it has come down; not a number where it still falls, or never fell.

    `steps` are the hops or iterations of the rows; without them the rows are evenly spaced.
    """
    steps = np.arange(len(curve)) if steps is None else steps
    if len(curve) < 20 or not np.isfinite(curve).all():
        return math.nan
    share = steps / steps[-1]
    middle = curve[np.abs(share - 0.5) <= 0.05]
    late = float(np.median(curve[share >= 0.9]))
    rests = len(middle) > 0 and late > AT_REST * float(np.median(middle))
    return late if rests and late < 0.1 * curve[0] else math.nan


# ------------------------------------------------------------ numbers in words


def brief(number: float, digits: int = 2) -> str:
    """A few digits and the power of ten, as in 2.5e-3."""
    return re.sub(r"e([-+])0*(\d)", r"e\1\2", f"{number:.{digits - 1}e}").replace("e+", "e")


def short(level: float) -> str:
    """A level in as few digits as it has: 1e-6 or 2.5e-3."""
    return next((text for digits in range(1, 8) if float(text := brief(level, digits)) == level), repr(level))


def amount(cost: float, axis: str) -> str:
    """So many units, bytes or seconds, without the word."""
    return f"{cost:.3g}" if axis == "seconds" else f"{cost:,.0f}"
