"""Compare methods by what a level of error costs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.comparison.comparison import Comparison, Row, row_of, row_without
from roundelay.comparison.ground import Ground, checked_ground, was_interrupted
from roundelay.comparison.naming import named
from roundelay.comparison.runners import Dask, cluster
from roundelay.engine import Ensemble
from roundelay.engine.assemble import EngineChoice
from roundelay.kernels.checks import finite_number
from roundelay.links.conditions import NetworkConditions
from roundelay.networks import Network
from roundelay.plots.style import Cost
from roundelay.problems import Problem, has_optimum
from roundelay.problems.problem import total_gradient
from roundelay.shown.watched import Bar, Report

# What the histories of all families have, with a minimiser and without one; the first is taken where none is asked for.
_COLUMNS = ("error", "accuracy", "consensus", "objective_gap")
_WITHOUT_OPTIMUM = ("gradient_norm", "objective", "consensus")

_INTERRUPTED = "It was interrupted before its seeds were done: compare it again."

# (method, done, total): how many of a method's seeds are done.
MethodReport = Callable[[str, int, int], None]


def compare(
    algorithms: Iterable[Any] | Mapping[str, Any],
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    *,
    seeds: Sequence[int] = range(10),
    units: float = 2_000_000,
    levels: Sequence[float] = (1e-3, 1e-6, 1e-9),
    conditions: NetworkConditions | None = None,
    engine: EngineChoice = "auto",
    column: str | None = None,
    x0: Sequence[float] | NDArray[np.float64] | None = None,
    progress: MethodReport | bool = True,
    dask: Dask = None,
) -> Comparison:
    """Run every algorithm over all seeds, and say what it costs each until its error stays at or below each level.

    `algorithms` is a list, or a mapping from names, for two settings of one method. `problem` and `network` may be
    functions of the seed. Each run has a budget of about `units`, and stops before that once its error is half the
    smallest level. `column` is what the levels are about: "error", "accuracy", "consensus" or "objective_gap"; where the problem
    was said to have no minimiser "gradient_norm", "objective" or "consensus". With `conditions` costs are given in seconds too.

    `x0` is where all start, as for `simulate`: where functions are not convex it decides what is found.

    No method is dropped: one that can't be run here has a row with the reason, and so has one that diverges, stays at a
    floor, or is not there when the budget is spent. Ctrl-C ends the comparison and gives what there is.
    `progress` is True for a bar, False for none, or a function (method, done, total). `dask` is the address of a Dask scheduler, or a
    `distributed.Client`, on whose workers the seeds are run; the numbers are the same.
    """
    chosen, limits = named(algorithms), _checked_levels(levels)
    finite_number("units", units, above=0.0)
    place = checked_ground(problem, network, seeds, conditions, engine, x0)
    columns = _COLUMNS if all(has_optimum(place.problem_of(seed)) for seed in place.seeds) else _WITHOUT_OPTIMUM
    if column is None:
        column = columns[0] if columns == _COLUMNS or place.problem_of(place.seeds[0]).has_gradients else "objective"
    if column not in columns:
        why = " on a problem without a minimiser" if columns == _WITHOUT_OPTIMUM else ""
        raise ValueError(f"Methods can't be compared by {column!r}{why}: use one of {', '.join(columns)}.")
    if column == "gradient_norm":
        _check_start(place, min(limits))
    axes: tuple[Cost, ...] = ("units", "bytes") if conditions is None else ("units", "bytes", "seconds")
    tolerance = 0.5 * min(limits) if column == "error" else None
    rows: list[Row] = []
    ensembles: dict[str, Ensemble] = {}
    interrupted = False
    bar = Bar(f"{len(chosen)} methods") if progress is True else None
    try:
        with cluster(dask) as runner:
            place = replace(place, runner=runner)
            for number, (name, algorithm) in enumerate(chosen.items()):
                tell = _reporter(progress, bar, name, number, len(chosen))
                found = None if interrupted else _attempt(place, algorithm, units, tolerance, tell)
                interrupted = found is None
                if found is None:
                    rows.append(row_without(name, algorithm, "interrupted", _INTERRUPTED, limits, axes))
                elif isinstance(found, str):
                    rows.append(row_without(name, algorithm, "refused", found, limits, axes))
                else:
                    ensembles[name] = found
                    rows.append(row_of(name, algorithm, found, limits, axes, column))
    finally:
        if bar is not None:
            bar.close()
    return Comparison(tuple(rows), ensembles, limits, axes, column, place.seeds, float(units), interrupted)


def _check_start(place: Ground, level: float) -> None:
    """At a stationary point every method would be at every level before it has begun."""
    for seed in place.seeds:
        problem = place.problem_of(seed)
        start = getattr(problem, "begins_at", None) if place.x0 is None else place.x0
        x = np.zeros(problem.dim) if start is None else np.asarray(start, np.float64)
        if x.shape != (problem.dim,):
            return  # each agent has its own, or it is refused by what runs
        if np.linalg.norm(total_gradient(problem, x)) <= level:
            raise ValueError(
                f"Where all would start {'(x = 0)' if start is None else '(x0)'} the gradient is at or below {level:g} already, so that no method had "
                "anything to do: give another start as x0=…, or compare by column='objective'."
            )


def _attempt(
    place: Ground, algorithm: Any, units: float, tolerance: float | None, tell: Report
) -> Ensemble | str | None:
    """The runs of a method; or why it refuses to be run here, in words; or None where it was interrupted."""
    try:
        tell(0, len(place.seeds))
        ensemble = place.run(algorithm, units, tolerance, tell)
    except ValueError as refusal:
        return str(refusal)
    except KeyboardInterrupt:
        return None
    return None if was_interrupted(ensemble, place.seeds) else ensemble


def _reporter(progress: MethodReport | bool, bar: Bar | None, name: str, number: int, methods: int) -> Report:
    """Who is told how many seeds of this method are done."""

    def tell(done: int, seeds: int) -> None:
        if bar is not None:
            bar(number * seeds + done, methods * seeds)
        elif callable(progress):
            progress(name, done, seeds)

    return tell


def _checked_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """The levels from the largest to the smallest."""
    if isinstance(levels, str) or not np.iterable(levels):
        raise ValueError(f"levels is {levels!r}: give a list of errors, for instance (1e-3, 1e-6).")
    numbers = {finite_number("A level", level, above=0.0) for level in levels}
    if not numbers:
        raise ValueError("levels is empty: give at least one error, for instance (1e-6,).")
    return tuple(sorted(numbers, reverse=True))
