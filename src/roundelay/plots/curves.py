"""What is drawn of a run or an ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.engine import Ensemble, Run
from roundelay.kernels import Vector
from roundelay.plots.labels import COSTS


@dataclass(frozen=True, eq=False)
class Curve:
    """A line over what it cost, and the band around it where there are several seeds; not a number where undrawable."""

    cost: Vector
    middle: Vector
    low: Vector | None = None
    high: Vector | None = None


def curve_of(result: Run | Ensemble, column: str, over: str = "units") -> Curve:
    """The history column of a run, or the median and the band of an ensemble, over units, bytes or seconds.

    Seeds that have ended keep their last value; the curve ends where half of them have, so that one slow
    seed does not draw it out.
    """
    runs = (result,) if isinstance(result, Run) else result.runs
    _check(runs, column, over)
    if isinstance(result, Run):
        history = result.history
        return Curve(history[over].to_numpy(np.float64), _drawable(history[column].to_numpy(np.float64)))
    with np.errstate(invalid="ignore"):  # where seeds diverge, the quantiles of infinite values are not numbers
        bands = result.bands(column, over=over)
    ends = [float(run.history[over].iloc[-1]) for run in runs]
    bands = bands[bands[over] <= np.quantile(ends, 0.5, method="higher")]
    middle, low, high = (_drawable(bands[name].to_numpy(np.float64)) for name in ("median", "low", "high"))
    return Curve(bands[over].to_numpy(np.float64), middle, low, high)


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
