"""What a level of error costs in communication, or why it was not reached."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roundelay.engine import Ensemble
from roundelay.experiments.numbers import brief
from roundelay.kernels import Vector


@dataclass(frozen=True)
class Reached:
    """The median units until the error stayed at or below `level`, infinite where it did not; `words` says which."""

    level: float
    units: float
    words: str


def reached(ensemble: Ensemble, level: float, column: str = "error") -> Reached:
    """What this level cost, in the median over the seeds."""
    units = float(np.median(ensemble.units_to(level, column)))
    return Reached(level, units, f"{units:,.0f}" if math.isfinite(units) else _why_not(ensemble, column))


def _why_not(ensemble: Ensemble, column: str) -> str:
    curves = [run.history[column].to_numpy(np.float64) for run in ensemble]
    floors = np.array([floor_of(curve) for curve in curves])
    if np.isfinite(floors).sum() > len(floors) / 2:
        return f"never (floor {brief(float(np.nanmedian(floors)))})"
    if sum(run.stop == "diverged" for run in ensemble) > len(ensemble) / 2:
        return "never (diverged)"
    longest = max(run.units for run in ensemble)
    last = float(np.median([curve[-1] for curve in curves]))
    return f"not in {longest:,} (error {brief(last)})"


def floor_of(curve: Vector) -> float:
    """The level at which an error stays after it has come down; not a number where it still falls, or never fell."""
    rows = len(curve)
    if rows < 20 or not np.isfinite(curve).all():
        return math.nan
    halfway = float(np.median(curve[rows // 2 : rows // 2 + rows // 10]))
    late = float(np.median(curve[-(rows // 10) :]))
    return late if late > 0.5 * halfway and late < 0.1 * curve[0] else math.nan
