"""One setting tried: how far it came, and how it ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roundelay.comparison.costs import spent
from roundelay.comparison.search import Score
from roundelay.engine import Ensemble

# Reached the level, did not, diverged, could not be run: each ranks behind all of those before it.
REACHED, SHORT, DIVERGED, REFUSED = range(4)
OUTCOMES = {REACHED: "reached", SHORT: "not reached", DIVERGED: "diverged", REFUSED: "refused"}


@dataclass(frozen=True)
class Trial:
    """One evaluation: the setting, the median units to the level, the median error at the end, and its score.

    `budget` is how many units it was given: less than all where it was `raced` against a better setting. It is
    `settled` where every seed stopped of itself, so that a larger budget would change nothing.
    """

    values: Mapping[str, float]
    score: Score
    units: float
    error: float
    budget: float
    raced: bool
    settled: bool

    @property
    def outcome(self) -> str:
        """What came of it in a word or two; one that is beaten is given up before its budget is spent."""
        return "given up" if self.raced and self.score.rank == SHORT else OUTCOMES[self.score.rank]


def trial_of(values: Mapping[str, float], ensemble: Ensemble, level: float, budget: float, raced: bool) -> Trial:
    """The setting's medians over the seeds."""
    units = float(np.median([run.units_to(level) for run in ensemble]))
    error = float(np.median([run.history["error"].iloc[-1] for run in ensemble]))
    if math.isfinite(units):
        score = Score(REACHED, units)
    elif 2 * sum(run.stop == "diverged" for run in ensemble) > len(ensemble) or not math.isfinite(error):
        # Of two that diverge, the one that does so later is nearer to one that does not.
        score = Score(DIVERGED, -float(np.median([spent(run) for run in ensemble])))
    else:
        score = Score(SHORT, error)
    settled = all(run.stop in ("tolerance", "diverged") for run in ensemble)
    return Trial(values, score, units, error, budget, raced, settled)


def refused_trial(values: Mapping[str, float], budget: float) -> Trial:
    """A setting that the algorithm does not accept."""
    return Trial(values, Score(REFUSED, 0.0), math.inf, math.nan, budget, False, True)
