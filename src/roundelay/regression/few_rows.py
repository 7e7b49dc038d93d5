"""What keeps a count of few rows from following out of what is shown: bins are joined with their neighbours, or one more is hidden."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector


def joined(counts: Matrix, least: int) -> tuple[slice, ...]:
    """Neighbouring bins put together until each part has `least` of every line of counts; what is left over goes to the last.

    Where all bins together have fewer there is no part.
    """
    rounded, parts, begin = np.round(counts), list[slice](), 0
    for end in range(1, rounded.shape[1] + 1):
        if (rounded[:, begin:end].sum(axis=1) >= max(least, 1)).all():
            parts.append(slice(begin, end))
            begin = end
    if parts:
        parts[-1] = slice(parts[-1].start, rounded.shape[1])
    return tuple(parts)


def hidden_bins(counts: Vector, least: int) -> NDArray[np.bool_]:
    """Which bins of rows whose sum is known are not shown: those of 1 to `least` − 1 rows, and of the others the smallest, as long as one bin
    alone is hidden, or so few rows that each of them would follow.
    """
    rounded = np.round(counts)
    hidden = (rounded > 0.0) & (rounded < least)
    while hidden.any() and not hidden.all() and (hidden.sum() == 1 or rounded[hidden].sum() < 2 * least):
        # An empty bin only where there is no other.
        hidden[np.argmin(np.where(hidden, np.inf, np.where(rounded == 0.0, 1e300, rounded)))] = True
    return hidden
