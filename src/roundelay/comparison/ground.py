"""Where methods meet: the same problems, networks and seeds, and a budget of units, whatever a step of a method costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from roundelay.algorithms.sealed.questions import numbers_asked
from roundelay.algorithms.token_method import vectors_of
from roundelay.comparison.costs import spent
from roundelay.comparison.runners import Done, Runner, Shared, Task
from roundelay.engine import Ensemble
from roundelay.engine.assemble import EngineChoice
from roundelay.engine.checks import check_conditions, check_seed, the_method, the_network, the_problem, the_seeds
from roundelay.engine.result import Run
from roundelay.engine.simulate import simulate
from roundelay.links.conditions import NetworkConditions
from roundelay.networks import Network
from roundelay.problems import Problem
from roundelay.shown.watched import Report

# A method that says less than it might, since its messages are censored, is run again for longer: so many times at
# most, and each time so many times as long at most.
LENGTHENINGS = 3
LONGER = 8.0
# A run that has spent this share of the budget has spent it.
ENOUGH = 0.9
# How long a run is that costs nothing.
FREE_STEPS = 1000
# From one row to the next, once not every step has one: about 1500 rows for two million steps.
RATIO = 1.007


@dataclass(frozen=True, eq=False)
class Ground:
    """Where methods meet: the problem and the network of each seed, the network's conditions, the engine, where all start, and where it runs.

    Without a runner the seeds of a method are threads of this process, since compiled code frees the interpreter.
    """

    problem: Problem | Callable[[int], Problem]
    network: Network | Callable[[int], Network]
    seeds: tuple[int, ...]
    conditions: NetworkConditions | None
    engine: EngineChoice
    x0: Any = None
    runner: Runner | None = None

    def problem_of(self, seed: int) -> Problem:
        """The problem of this seed."""
        return the_problem(self.problem, seed)

    def network_of(self, seed: int) -> Network:
        """The network of this seed."""
        return the_network(self.network, seed)

    def run(self, algorithm: Any, units: float, tolerance: float | None, progress: Report | bool = False) -> Ensemble:
        """Run the algorithm on every seed until its error is at the tolerance, or the budget is spent."""
        steps = self._steps(algorithm, units)
        for _ in range(LENGTHENINGS):
            ensemble = self._run(algorithm, steps, tolerance, progress)
            longer = _lengthened(ensemble, steps, units)
            if longer == steps or was_interrupted(ensemble, self.seeds):
                return ensemble
            steps = longer
        return self._run(algorithm, steps, tolerance, progress)

    def _steps(self, algorithm: Any, units: float) -> dict[str, int]:
        """The length for this budget: the longest that any seed needs, where each has a network of its own."""
        several = callable(self.network) or callable(self.problem)
        lengths = [
            steps_for(algorithm, self.problem_of(seed), self.network_of(seed), units, self.conditions)
            for seed in (self.seeds if several else self.seeds[:1])
        ]
        return {noun: max(length[noun] for length in lengths) for noun in lengths[0]}

    def _run(self, algorithm: Any, steps: dict[str, int], tolerance: float | None, progress: Report | bool) -> Ensemble:
        each: Callable[..., Any] = partial(
            simulate,
            hops=steps.get("hops"),
            iterations=steps.get("iterations"),
            conditions=self.conditions,
            engine=self.engine,
            x0=self.x0,
            record=geometric_marks(*steps.values()) if steps and not is_sealed(algorithm) else None,
            tolerance=tolerance,
        )
        if self.runner is None:
            return each(algorithm, self.problem, self.network, seeds=self.seeds, progress=progress)
        tasks = [self._task(each, algorithm, seed) for seed in self.seeds]
        found: dict[int, Done] = {}
        with closing(self.runner.completed(tasks)) as results:
            for done in results:
                found[done.task.about] = done
                if callable(progress):
                    progress(len(found), len(self.seeds))
        return Ensemble(tuple(replace(found[seed].result(), problem=self.problem_of(seed)) for seed in self.seeds))

    def _task(self, each: Callable[..., Any], algorithm: Any, seed: int) -> Task:
        problem, network = self._shared(self.problem_of(seed)), self._shared(self.network_of(seed))
        return Task(_one_seed, (each, algorithm, problem, network, seed), about=seed)

    def _shared(self, thing: Any) -> Shared:
        """The thing, sent once for all methods; what is kept here keeps its place in memory."""
        return self._sent.setdefault(id(thing), Shared(thing))

    @cached_property
    def _sent(self) -> dict[int, Shared]:
        return {}


def _one_seed(each: Callable[..., Any], algorithm: Any, problem: Problem, network: Network, seed: int) -> Run:
    """In a worker. The data need not travel back."""
    run: Run = each(algorithm, problem, network, seed=seed, progress=False)
    return replace(run, problem=None)


def checked_ground(
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    seeds: Sequence[int],
    conditions: NetworkConditions | None,
    engine: EngineChoice,
    x0: Any = None,
) -> Ground:
    """Check what all methods share, so that what is wrong with it is not taken for a fault of a method."""
    keys = the_seeds(seeds)
    if len(set(keys)) < len(keys):
        raise ValueError("A seed is given twice, and would count twice: give each once.")
    check_conditions(conditions)
    made = Ground(
        cache(problem) if callable(problem) and not hasattr(problem, "kernel") else problem,
        cache(network) if callable(network) and not isinstance(network, Network) else network,
        keys,
        conditions,
        engine,
        x0,
    )
    for seed in keys:
        check_seed(seed)
        agents, nodes = made.problem_of(seed).agents, made.network_of(seed).agents
        if agents != nodes:
            raise ValueError(
                f"The problem of seed {seed} has {agents} agents but its network has {nodes}: make them agree."
            )
    return made


def is_sealed(algorithm: Any) -> bool:
    """Whether sums go round, so that the history has one row a lap."""
    return hasattr(algorithm.parts(), "optimiser")


def was_interrupted(ensemble: Ensemble, seeds: Sequence[int]) -> bool:
    """Whether Ctrl-C ended the runs."""
    return len(ensemble) < len(seeds) or any(run.stop == "interrupted" for run in ensemble)


def _lengthened(ensemble: Ensemble, steps: dict[str, int], units: float) -> dict[str, int]:
    """The same length where the budget was spent or most seeds were done; otherwise about what will spend it."""
    unfinished = [spent(run) for run in ensemble if run.stop in ("hops", "iterations")]
    if 2 * len(unfinished) <= len(ensemble) or max(unfinished) >= ENOUGH * units:
        return steps
    factor = min(LONGER, units / max(*unfinished, units / LONGER))
    return {noun: int(np.ceil(length * factor)) for noun, length in steps.items()}


def units_a_step(
    algorithm: Any, problem: Problem, network: Network, conditions: NetworkConditions | None = None
) -> float:
    """About what one hop, or one iteration, costs in units, with what is sent again; less where messages are censored."""
    _, method = the_method(algorithm, problem, network)
    dim, again = problem.dim, 1.0 if conditions is None else conditions.attempts
    if hasattr(method, "mixing"):
        numbers, bits = method.channel.compressor.weight(dim)
        arcs = len(method.mixing.numbers(network).neighbours)
        again = again if conditions is not None and conditions.resend else 1.0
        return again * float(method.talking() * method.speeches * method.vectors * arcs * (numbers + bits / 32.0) / dim)
    if hasattr(method, "walk"):
        return again * vectors_of(method)
    if is_sealed(algorithm):  # a point, and the longest answer
        return again * (dim + max(numbers_asked(asked, dim) for asked in method.optimiser.asks)) / dim
    return again * (dim + 3) / 2.0


def steps_for(
    algorithm: Any, problem: Problem, network: Network, units: float, conditions: NetworkConditions | None = None
) -> dict[str, int]:
    """The length that spends about so many units, as `simulate` takes it: hops or iterations."""
    _, method = the_method(algorithm, problem, network)
    if not (hasattr(method, "mixing") or hasattr(method, "walk") or is_sealed(algorithm)):
        return {}  # the one pass has its own length
    cost = units_a_step(algorithm, problem, network, conditions)
    steps = max(1, math.ceil(units / cost)) if cost > 0.0 else FREE_STEPS  # one agent alone sends nothing
    return {"iterations" if hasattr(method, "mixing") else "hops": steps}


def geometric_marks(steps: int) -> list[int]:
    """Every step at first, then one every 0.7 %: methods that are a hundred times quicker are seen as sharply.

    The marks of a shorter run are the first of a longer one's, so that the length of a run does not change what is
    read off it.
    """
    every = round(1.0 / (RATIO - 1.0))
    later = math.ceil(math.log(max(steps, every) / every) / math.log(RATIO))
    marks = np.concatenate([np.arange(every), np.floor(every * RATIO ** np.arange(later + 1))]).astype(np.int64)
    return [int(mark) for mark in np.unique(marks) if mark <= steps]
