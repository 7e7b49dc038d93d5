"""Compile methods ahead of time; the compiled code stays on disk, where every later run finds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from typing import Any

import roundelay as rl
from roundelay.experiments.workers import workers

PROCESSES = 2
A_FEW_HOPS = 3


def compile_methods(algorithms: Sequence[Any], report: Callable[[str], None] | None = None) -> None:
    """Compile each algorithm for the paper's least squares, two at a time; `report` is told each name when it is done."""
    with workers(min(PROCESSES, len(algorithms))) as submit:
        for finished in as_completed([submit(_compile, algorithm) for algorithm in algorithms]):
            name = finished.result()
            if report is not None:
                report(name)


def _compile(algorithm: Any) -> str:
    """In a process of its own: the first hops make the compiler work."""
    problem, network = rl.paper_least_squares(), rl.random_network(100, 0.3)
    rl.simulate(algorithm, problem, network, A_FEW_HOPS, engine="compiled", progress=False)
    return str(algorithm.name)
