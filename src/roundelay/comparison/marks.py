"""The steps at which a compared run has a row in its history."""

from __future__ import annotations

import math

import numpy as np

# From one row to the next, once not every step has one: about 1500 rows for two million steps.
RATIO = 1.007


def geometric_marks(steps: int) -> list[int]:
    """Every step at first, then one every 0.7 %: methods that are a hundred times quicker are seen as sharply.

    The marks of a shorter run are the first of a longer one's, so that the length of a run does not change what is
    read off it.
    """
    every = round(1.0 / (RATIO - 1.0))
    later = math.ceil(math.log(max(steps, every) / every) / math.log(RATIO))
    marks = np.concatenate([np.arange(every), np.floor(every * RATIO ** np.arange(later + 1))]).astype(np.int64)
    return [int(mark) for mark in np.unique(marks) if mark <= steps]
