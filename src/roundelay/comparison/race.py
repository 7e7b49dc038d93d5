"""Settings of one algorithm against each other: each is given no more than it takes to see that it is not the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roundelay.comparison.budget import Ground, was_interrupted
from roundelay.comparison.trials import REACHED, Trial, refused_trial, trial_of

# A setting is given so many times the units of the best so far. The median of an even number of seeds is the mean of
# two, one of which may be twice the mean.
AHEAD_ODD, AHEAD_EVEN = 1.3, 2.0


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
        if trial.score.rank == REACHED:
            self.least = min(self.least, trial.units)
        self.told(len(self.trials))
        return trial

    def _run(self, candidate: Any, values: Mapping[str, float], budget: float) -> Trial:
        ensemble = self.place.run(candidate, budget, 0.5 * self.level)
        if was_interrupted(ensemble, self.place.seeds):
            raise KeyboardInterrupt
        return trial_of(values, ensemble, self.level, budget, budget < self.units)
