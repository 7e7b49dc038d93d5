"""One method of a comparison: what it cost, and what became of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundelay.comparison.costs import Reached, reached
from roundelay.comparison.naming import parameters_in_words
from roundelay.comparison.numbers import in_words, short
from roundelay.engine import Ensemble
from roundelay.plots.labels import Cost


@dataclass(frozen=True, eq=False)
class Row:
    """One method of a comparison.

    `algorithm` is the method as it was given, and `parameters` all its parameters in words, with the step sizes that
    it took from the problem. `costs` has for each axis, "units", "bytes" and perhaps "seconds", what each level cost.
    `final_error` is the median at the end, `stops` counts over the seeds why they stopped. `words` says what came of it.
    """

    name: str
    algorithm: Any
    parameters: str
    costs: Mapping[Cost, tuple[Reached, ...]]
    final_error: float
    stops: Mapping[str, int]
    words: str


def row_of(
    name: str, algorithm: Any, ensemble: Ensemble, levels: Sequence[float], axes: Sequence[Cost], column: str
) -> Row:
    """The row of a method that was run."""
    costs = {axis: tuple(reached(ensemble, level, column, axis) for level in levels) for axis in axes}
    return Row(
        name,
        algorithm,
        parameters_in_words([run.algorithm for run in ensemble]),
        costs,
        float(np.median([run.history[column].iloc[-1] for run in ensemble])),
        dict(Counter(run.stop for run in ensemble)),
        _outcome(costs["units"], len(ensemble)),
    )


def row_without(name: str, algorithm: Any, why: str, words: str, levels: Sequence[float], axes: Sequence[Cost]) -> Row:
    """The row of a method that was refused, or interrupted."""
    costs = {axis: tuple(Reached(level, axis, math.inf, 0, why, why) for level in levels) for axis in axes}
    return Row(name, algorithm, parameters_in_words([algorithm]), costs, math.nan, {}, words)


def _outcome(costs: Sequence[Reached], seeds: int) -> str:
    """What came of it, in a sentence or two."""
    missed = [cost for cost in costs if cost.why_not]
    partly = [cost for cost in costs if not cost.why_not and cost.seeds < seeds]
    sentences = []
    if not missed:
        sentences.append("It reached every level.")
    else:
        levels = in_words([short(cost.level) for cost in missed])
        sentences.append(f"To {levels}: {missed[-1].words}.")
    sentences += [f"{cost.seeds} of {seeds} seeds reached {short(cost.level)}." for cost in partly]
    return " ".join(sentences)
