"""What is drawn of a run or an ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.engine import Ensemble, Run
from roundelay.kernels import Vector


@dataclass(frozen=True, eq=False)
class Curve:
    """A line over the units, and the band around it where there are several seeds; not a number where undrawable."""

    units: Vector
    middle: Vector
    low: Vector | None = None
    high: Vector | None = None


def curve_of(result: Run | Ensemble, column: str) -> Curve:
    """The history column of a run, or the median and the band of an ensemble."""
    runs = (result,) if isinstance(result, Run) else result.runs
    known = [name for name in runs[0].history.columns if name not in ("hop", "units", "bytes")]
    if not all(column in run.history.columns for run in runs):
        raise ValueError(f"The history has no column {column!r}: use one of {', '.join(known)}.")
    if isinstance(result, Run):
        return Curve(
            result.history["units"].to_numpy(np.float64), _drawable(result.history[column].to_numpy(np.float64))
        )
    with np.errstate(invalid="ignore"):  # where seeds diverge, the quantiles of infinite values are not numbers
        bands = result.bands(column)
    middle, low, high = (_drawable(bands[name].to_numpy(np.float64)) for name in ("median", "low", "high"))
    return Curve(bands["units"].to_numpy(np.float64), middle, low, high)


def _drawable(values: Vector) -> Vector:
    """The values that a logarithmic axis can show; not a number elsewhere."""
    return np.where(np.isfinite(values) & (values > 0.0), values, np.nan)
