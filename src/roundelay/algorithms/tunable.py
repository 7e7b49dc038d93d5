"""Which parameters of an algorithm are worth tuning, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Tunable:
    """One parameter: a positive number, or a share between 0 and 1 that is tuned in its distance from 1.

    `start` is where a search begins, where the algorithm's own value is not the place to begin.
    """

    name: str
    kind: Literal["positive", "below one", "share"] = "positive"
    start: float | None = None
