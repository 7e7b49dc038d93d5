"""Runs that spend a budget of units, whatever a step of the method costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from roundelay.comparison.costs import spent
from roundelay.comparison.marks import geometric_marks
from roundelay.engine import Ensemble
from roundelay.engine.checks import check_conditions, check_seed, the_network, the_problem
from roundelay.engine.choose import EngineChoice
from roundelay.engine.lengths import steps_for
from roundelay.engine.progress import Report
from roundelay.engine.simulate import simulate
from roundelay.kernels.checks import whole_number
from roundelay.networks import Network
from roundelay.networks.conditions import NetworkConditions
from roundelay.problems import Problem

# A method that says less than it might, since its messages are censored, is run again for longer: so many times at
# most, and each time so many times as long at most.
LENGTHENINGS = 3
LONGER = 8.0
# A run that has spent this share of the budget has spent it.
ENOUGH = 0.9


@dataclass(frozen=True, eq=False)
class Ground:
    """Where methods meet: the problem and the network of each seed, the network's conditions, and the engine."""

    problem: Problem | Callable[[int], Problem]
    network: Network | Callable[[int], Network]
    seeds: tuple[int, ...]
    conditions: NetworkConditions | None
    engine: EngineChoice

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
        return simulate(
            algorithm,
            self.problem,
            self.network,
            steps.get("hops"),
            iterations=steps.get("iterations"),
            seeds=self.seeds,
            conditions=self.conditions,
            engine=self.engine,
            record=geometric_marks(*steps.values()) if steps else None,
            tolerance=tolerance,
            progress=progress,
        )


def ground(
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    seeds: Sequence[int],
    conditions: NetworkConditions | None,
    engine: EngineChoice,
) -> Ground:
    """Check what all methods share, so that what is wrong with it is not taken for a fault of a method."""
    if isinstance(seeds, (int, str)) or not np.iterable(seeds):
        raise ValueError(f"seeds is {seeds!r}: give a list of seeds, for instance range(10).")
    keys = tuple(whole_number("A seed", seed) for seed in seeds)
    if not keys:
        raise ValueError("seeds is empty: give at least one seed.")
    if len(set(keys)) < len(keys):
        raise ValueError("A seed is given twice, and would count twice: give each once.")
    check_conditions(conditions)
    made = Ground(
        cache(problem) if callable(problem) and not hasattr(problem, "kernel") else problem,
        cache(network) if callable(network) and not isinstance(network, Network) else network,
        keys,
        conditions,
        engine,
    )
    for seed in keys:
        check_seed(seed)
        agents, nodes = made.problem_of(seed).agents, made.network_of(seed).agents
        if agents != nodes:
            raise ValueError(
                f"The problem of seed {seed} has {agents} agents but its network has {nodes}: make them agree."
            )
    return made


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
