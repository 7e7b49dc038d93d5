"""Compile methods ahead of time; the compiled code stays on disk, where every later run finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import roundelay as rl

PROCESSES = 2
A_FEW_HOPS = 3


def compile_methods(algorithms: Sequence[Any], report: Callable[[str], None] | None = None) -> None:
    """Compile each algorithm for the paper's least squares, two at a time; `report` is told each name when it is done."""
    with _pool(min(PROCESSES, len(algorithms))) as pool:
        for finished in as_completed([pool.submit(_compile, algorithm) for algorithm in algorithms]):
            name = finished.result()
            if report is not None:
                report(name)


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """New interpreters; when something goes wrong, work that has not begun is dropped."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _compile(algorithm: Any) -> str:
    """In a process of its own: the first hops make the compiler work."""
    problem, network = rl.paper_least_squares(), rl.random_network(100, 0.3)
    rl.simulate(algorithm, problem, network, A_FEW_HOPS, engine="compiled", progress=False)
    return str(algorithm.name)
