"""How far the axes go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roundelay.plots.curves import Curve

# Below this a relative error is mostly rounding, and its wiggles tell nothing.
ROUNDING = 1e-14
# A method that diverges is shown this far above where it started, so that the others can still be seen.
DIVERGENCE = 1e3


def error_limits(curves: Sequence[Curve], relative: bool) -> tuple[float, float]:
    """The lowest and the highest error that the figure shows."""
    lines = [line for curve in curves for line in (curve.middle, curve.low, curve.high) if line is not None]
    values = np.concatenate(lines)
    shown = values[np.isfinite(values)]
    if not len(shown):
        raise ValueError("Nothing can be drawn on a logarithmic axis: no value of this column is positive and finite.")
    starts = [float(line[np.isfinite(line)][0]) for line in lines if np.isfinite(line).any()]
    highest = min(float(shown.max()), DIVERGENCE * max(starts))
    lowest = float(shown.min())
    bottom = max(lowest / 2.0, ROUNDING) if relative and highest > ROUNDING else lowest / 2.0
    return bottom, 3.0 * highest
