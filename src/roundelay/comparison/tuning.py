"""Find good parameters for an algorithm, with the same effort for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.comparison.costs import brief, short, spent
from roundelay.comparison.ground import Ground, checked_ground, was_interrupted
from roundelay.comparison.naming import named, parameters as parameters_of, value_in_words
from roundelay.comparison.runners import Dask, cluster
from roundelay.comparison.search import Coordinate, Point, Score, Search, coordinates_of
from roundelay.engine import Ensemble
from roundelay.engine.assemble import EngineChoice
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.links.conditions import NetworkConditions
from roundelay.networks import Network
from roundelay.networks.network_checks import join_names
from roundelay.problems import Problem, has_optimum
from roundelay.shown.notebook import View
from roundelay.shown.show import Shown
from roundelay.shown.table import table_of
from roundelay.shown.watched import Bar, Report

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tuning(Shown):
    """The result of `tune`.

    `algorithm` is the tuned one, `start` the one that the search began with. `tuned` names the parameters that were
    tuned, and `kept` has the others with their values. `evaluations` counts the settings that were tried, of which
    `extended` came when the best value was still at the edge of what had been tried; `trials` has them all, with what
    came of each. `bracketed` says that for each tuned parameter a smaller and a larger value than the best were tried,
    as far as there are any. `taken` is the trial of the tuned one. `words` says all of that in a few sentences.
    """

    algorithm: Any
    start: Any
    tuned: tuple[str, ...]
    kept: Mapping[str, Any]
    tried: tuple[Trial, ...]
    taken: Trial | None
    extended: int
    bracketed: bool
    interrupted: bool
    seeds: tuple[int, ...]
    level: float
    words: str

    def __repr__(self) -> str:
        return f"Tuning({self.algorithm!r}: {self.words})"

    def view(self) -> View:
        """What came of it in words, and every setting that was tried."""
        return View(self.words, (table_of(self.trials, "tuning"),) if self.tried else ())

    def made(self) -> dict[str, Any]:
        """The tuned method, and the seeds."""
        return {"parameters": self.algorithm, "seeds": ", ".join(map(str, self.seeds))}

    @property
    def evaluations(self) -> int:
        """How many settings were tried."""
        return len(self.tried)

    @property
    def units(self) -> float:
        """What the tuned one cost in the median of the tuning's own seeds; infinite where it did not come to the level."""
        return math.nan if self.taken is None else self.taken.units

    @property
    def diverged(self) -> bool:
        """Whether every setting diverged, so that none is good."""
        return self.taken is not None and self.taken.outcome in ("diverged", "refused")

    @property
    def trials(self) -> pd.DataFrame:
        """One row a setting: its values, the median units to the level, the median error at the end, and the outcome.

        `budget` is how many units it was given: less, once a better setting is known.
        """
        import pandas as pd

        rows = [[*trial.values.values(), trial.units, trial.error, trial.outcome, trial.budget] for trial in self.tried]
        return pd.DataFrame(rows, columns=[*self.tuned, "units", "error", "outcome", "budget"])


def tune(
    algorithm: Any,
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    *,
    seeds: Sequence[int] = range(1000, 1003),
    level: float = 1e-6,
    evaluations: int = 24,
    units: float = 2_000_000,
    conditions: NetworkConditions | None = None,
    engine: EngineChoice = "auto",
    parameters: Sequence[str] | None = None,
    x0: Sequence[float] | NDArray[np.float64] | None = None,
    progress: Report | bool = True,
    dask: Dask = None,
) -> Tuning:
    """Find good values for the parameters that `algorithm.tunable` names, or for those in `parameters`.

    What counts is the median over `seeds` of the units until the error stays at or below `level`; these seeds should
    be others than those of the comparison. A setting that does not get there within `units` ranks behind all that do,
    by its error at the end; one that diverges ranks last.

    It begins at the algorithm's own values and is a compass search in factors: 4 at first, and smaller where no
    neighbour is better, down to 1.05. Every algorithm has the same number of `evaluations`; fewer are made only where
    the factor has become that small. `x0` is where all start, as for `simulate`. Where the best value of a parameter is then at the edge of what was tried, the
    search goes on until it is not, for at most as many again. Ctrl-C ends the search and gives the best so far.
    `progress` is True for a bar, False for none, or a function (done, total). `dask` is the address of a Dask scheduler, or a
    `distributed.Client`, on whose workers the seeds are run; the numbers are the same.
    """
    ((name, algorithm),) = named([algorithm]).items()
    finite_number("level", level, above=0.0)
    finite_number("units", units, above=0.0)
    whole_number("evaluations", evaluations, least=1)
    place = checked_ground(problem, network, seeds, conditions, engine, x0)
    if not all(has_optimum(place.problem_of(seed)) for seed in place.seeds):
        raise ValueError(
            "Tuning goes by the error, which needs a minimiser: give the problem its optimum instead of None."
        )
    start = algorithm.resolved(place.problem_of(place.seeds[0])) if hasattr(algorithm, "resolved") else algorithm
    coordinates = coordinates_of(start, parameters)
    if not coordinates:
        why = f"{name} has no parameter to tune" if parameters is None else f"No parameter of {name} was to be tuned"
        return untuned(algorithm, f"{why}: it is taken as it is.", place.seeds, float(level))
    bar = Bar(f"Tuning {name}") if progress is True else None

    def tell(done: int) -> None:
        if bar is not None:
            bar(done, max(done, evaluations))
        elif callable(progress):
            progress(done, max(done, evaluations))

    try:
        with cluster(dask) as runner:
            race = Race(replace(place, runner=runner), start, float(level), float(units), tell)
            return _tuned(name, race, coordinates, evaluations)
    finally:
        if bar is not None:
            bar.close()


def untuned(algorithm: Any, why: str, seeds: tuple[int, ...] = (), level: float = math.nan) -> Tuning:
    """An algorithm that is taken as it is, and why."""
    kept = parameters_of(algorithm)
    words = " ".join(filter(None, [why, _what_was_kept(kept)]))
    return Tuning(algorithm, algorithm, (), kept, (), None, 0, True, False, seeds, level, words)


def _tuned(name: str, race: Race, coordinates: tuple[Coordinate, ...], evaluations: int) -> Tuning:
    """Search. Where that can't begin at the algorithm's own values, these are tried nevertheless, before all others."""
    own = {coordinate.name: getattr(race.start, coordinate.name) for coordinate in coordinates}
    elsewhere = any(own[coordinate.name] != coordinate.begin for coordinate in coordinates)
    tried: dict[Point, Trial] = {}

    def evaluate(point: Point) -> Score:
        values = {entry.name: entry.value(t) for entry, t in zip(coordinates, point, strict=True)}
        tried[point] = race.evaluate(values)
        return tried[point].score

    search, interrupted = Search(coordinates, evaluate, evaluations - elsewhere), False
    try:
        if elsewhere:
            race.evaluate(own)
        search.run()
        search.close_edges()
    except KeyboardInterrupt:
        if not race.trials:
            raise
        interrupted = True
    first = race.trials[0]
    best = tried.get(search.best, first)
    if elsewhere and not best.score.beats(first.score):
        best = first
    kept = {name: value for name, value in parameters_of(race.start).items() if name not in own}
    edges = _at_the_edge(coordinates, best, race.trials)
    fewer = len(race.trials) - search.extended < evaluations and not interrupted
    sentences = [
        _what_was_tuned(name, first, best, len(race.trials), race.place.seeds),
        _what_it_gained(first, best, race.level, race.units),
        _what_was_kept(kept),
        _how_it_ended(search.extended, edges, fewer, interrupted),
    ]
    return Tuning(
        algorithm=replace(race.start, **best.values),
        start=race.start,
        tuned=tuple(own),
        kept=kept,
        tried=tuple(race.trials),
        taken=best,
        extended=search.extended,
        bracketed=not edges,
        interrupted=interrupted,
        seeds=race.place.seeds,
        level=race.level,
        words=" ".join(filter(None, sentences)),
    )


def _at_the_edge(coordinates: Sequence[Coordinate], best: Trial, trials: Sequence[Trial]) -> list[str]:
    """The parameters whose best value is the smallest or the largest that was tried, though there are others beyond."""
    names = []
    for coordinate in coordinates:
        own, tried = best.values[coordinate.name], [trial.values[coordinate.name] for trial in trials]
        ends = (0.0, *(coordinate.value(limit) for limit in coordinate.limits))
        if own not in ends and not min(tried) < own < max(tried):
            names.append(coordinate.name)
    return names


# ------------------------------------------------------------ in sentences


def _what_was_tuned(name: str, first: Trial, best: Trial, evaluations: int, seeds: Sequence[int]) -> str:
    """Which parameters, on which seeds, by how many evaluations, from what to what."""
    changes = [
        f"{parameter} from {value_in_words(first.values[parameter])} to {value_in_words(value)}"
        if value != first.values[parameter]
        else f"{parameter} stayed at {value_in_words(value)}"
        for parameter, value in best.values.items()
    ]
    names = join_names(list(best.values))
    times = "1 evaluation" if evaluations == 1 else f"{evaluations} evaluations"
    return f"{names} of {name} {_were(len(best.values))} tuned on {_seeds_in_words(seeds)} with {times}: {', '.join(changes)}."


def _what_it_gained(first: Trial, best: Trial, level: float, units: float) -> str:
    """The cost before and after, or why there is none."""
    goal = short(level)
    if best.score.rank == Rank.REACHED and first.score.rank == Rank.REACHED:
        return f"The median cost to {goal} went from {first.units:,.0f} to {best.units:,.0f} units."
    if best.score.rank == Rank.REACHED:
        return f"The start did not come to {goal} ({first.outcome}); the tuned setting needs {best.units:,.0f} units."
    if best.score.rank == Rank.SHORT:
        return f"No setting came to {goal} within {units:,.0f} units; taken is the one with the least error, {brief(best.error)}."
    if best.score.rank == Rank.DIVERGED:
        return "Every setting diverged; taken is the one that did so last."
    return "No setting could be run."


def _what_was_kept(kept: Mapping[str, Any]) -> str:
    """The parameters that were left as they were."""
    return f"As given: {', '.join(f'{name}={value_in_words(value)}' for name, value in kept.items())}." if kept else ""


def _how_it_ended(extended: int, open_edges: Sequence[str], fewer: bool, interrupted: bool) -> str:
    """What is unusual about the search."""
    sentences = []
    if extended:
        sentences.append(
            f"{extended} of these evaluations came on top, since the best value was at the edge of what had been tried."
        )
    if open_edges:
        sentences.append(f"The best {join_names(list(open_edges))} is still at the edge of what was tried.")
    if fewer:
        sentences.append("Fewer than allowed were needed: the factor from one value to the next had become 1.05.")
    if interrupted:
        sentences.append("The search was interrupted; this is the best so far.")
    return " ".join(sentences)


def _seeds_in_words(seeds: Sequence[int]) -> str:
    """Which seeds: one, a range, or a list."""
    if len(seeds) == 1:
        return f"the seed {seeds[0]}"
    if list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"the seeds {seeds[0]} to {seeds[-1]}"
    return f"the seeds {join_names([str(seed) for seed in seeds])}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


# ---------------------------------------------------------------- settings against each other


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
