"""Settings of one algorithm against each other: each is given no more than it takes to see that it is not the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np

from roundelay.comparison.costs import spent
from roundelay.comparison.ground import Ground, was_interrupted
from roundelay.comparison.search import Score
from roundelay.engine import Ensemble


class Rank(IntEnum):
    """What came of a setting: each ranks behind all of those before it."""

    REACHED = 0
    SHORT = 1
    DIVERGED = 2
    REFUSED = 3


OUTCOMES = {
    Rank.REACHED: "reached",
    Rank.SHORT: "not reached",
    Rank.DIVERGED: "diverged",
    Rank.REFUSED: "refused",
}


# A setting is given so many times the units of the best so far. The median of an even number of seeds is the mean of
# two, one of which may be twice the mean.
AHEAD_ODD, AHEAD_EVEN = 1.3, 2.0


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
        return "given up" if self.raced and self.score.rank == Rank.SHORT else OUTCOMES[Rank(self.score.rank)]


def trial_of(values: Mapping[str, float], ensemble: Ensemble, level: float, budget: float, raced: bool) -> Trial:
    """The setting's medians over the seeds."""
    units = float(np.median([run.units_to(level) for run in ensemble]))
    error = float(np.median([run.history["error"].iloc[-1] for run in ensemble]))
    if math.isfinite(units):
        score = Score(Rank.REACHED, units)
    elif 2 * sum(run.stop == "diverged" for run in ensemble) > len(ensemble) or not math.isfinite(error):
        # Of two that diverge, the one that does so later is nearer to one that does not.
        score = Score(Rank.DIVERGED, -float(np.median([spent(run) for run in ensemble])))
    else:
        score = Score(Rank.SHORT, error)
    settled = all(run.stop in ("tolerance", "diverged") for run in ensemble)
    return Trial(values, score, units, error, budget, raced, settled)


def refused_trial(values: Mapping[str, float], budget: float) -> Trial:
    """A setting that the algorithm does not accept."""
    return Trial(values, Score(Rank.REFUSED, 0.0), math.inf, math.nan, budget, False, True)


@dataclass
class Race:
    """All trials of an algorithm so far, and the least units that any of them needed."""

    place: Ground
    start: Any
    level: float
    units: float
    told: Callable[[int], None]
    trials: list[Trial] = field(default_factory=list)
    least: float = math.inf

    def evaluate(self, values: Mapping[str, float]) -> Trial:
        """Try a setting. One that the algorithm does not accept ranks last, unless it is the first."""
        ahead = AHEAD_ODD if len(self.place.seeds) % 2 else AHEAD_EVEN
        budget = min(self.units, ahead * self.least)
        try:
            candidate = replace(self.start, **values) if values else self.start
            trial = self._run(candidate, values, budget)
            if budget < self.units and trial.units < self.least and not trial.settled:
                trial = self._run(candidate, values, self.units)  # it might not have stayed there
        except ValueError:
            if not self.trials:
                raise
            trial = refused_trial(values, budget)
        self.trials.append(trial)
        if trial.score.rank == Rank.REACHED:
            self.least = min(self.least, trial.units)
        self.told(len(self.trials))
        return trial

    def _run(self, candidate: Any, values: Mapping[str, float], budget: float) -> Trial:
        ensemble = self.place.run(candidate, budget, 0.5 * self.level)
        if was_interrupted(ensemble, self.place.seeds):
            raise KeyboardInterrupt
        return trial_of(values, ensemble, self.level, budget, budget < self.units)
