"""The demo: what I-ADMM, W-ADMM, PI-ADMM1 and PI-ADMM2 cost in communication on the paper's least squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import roundelay as rl
from roundelay.comparison import MethodReport, Reached, reached
from roundelay.comparison.runners import Task, completed
from roundelay.engine.assemble import EngineChoice
from roundelay.paper.settings import AGENTS, DENSITY, DIM, SAMPLES
from roundelay.plots import plot_convergence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEMO_METHODS: tuple[Any, ...] = (
    rl.IADMM(rho=10.0),
    rl.WADMM(rho=10.0),
    rl.PIADMM1(rho=10.0),
    rl.PIADMM2(rho=10.0, sigma=1e-3),
)
LEVELS = (1e-3, 1e-6, 1e-9)


PROCESSES = 2
A_FEW_HOPS = 3


@dataclass(frozen=True)
class DemoRow:
    """One method: what each of the levels cost, and the median error at the end."""

    method: str
    costs: tuple[Reached, ...]
    final_error: float


@dataclass(frozen=True, eq=False)
class Demo:
    """The rows of the table, the levels they are about, and the ensembles they were made from."""

    rows: tuple[DemoRow, ...]
    levels: tuple[float, ...]
    ensembles: Mapping[str, rl.Ensemble]


def run_demo(
    seeds: Sequence[int] = range(10),
    hops: int = 12_000,
    report: MethodReport | None = None,
    engine: EngineChoice = "auto",
    methods: Sequence[Any] = DEMO_METHODS,
) -> Demo:
    """Run the four methods on fresh data and a fresh network for each seed."""
    ensembles = {method.name: _run_method(method, seeds, hops, report, engine) for method in methods}
    rows = tuple(_row(name, ensemble) for name, ensemble in ensembles.items())
    return Demo(rows, LEVELS, ensembles)


def plot_demo(demo: Demo) -> Figure:
    """The demo's figure."""
    title = f"Least squares: N = {AGENTS} agents, b = {SAMPLES} samples each, p = {DIM}; ρ = 10"
    return plot_convergence(demo.ensembles, title=title)


def _run_method(
    method: Any, seeds: Sequence[int], hops: int, report: MethodReport | None, engine: EngineChoice
) -> rl.Ensemble:
    def tell(done: int, total: int) -> None:
        if report is not None:
            report(method.name, done, total)

    tell(0, len(seeds))
    ensemble = rl.simulate(
        method,
        lambda seed: rl.paper_least_squares(AGENTS, SAMPLES, DIM, seed=seed),
        lambda seed: rl.random_network(AGENTS, DENSITY, seed=seed),
        hops,
        seeds=seeds,
        engine=engine,
        progress=tell,
    )
    if any(run.stop == "interrupted" for run in ensemble):
        raise KeyboardInterrupt
    tell(len(seeds), len(seeds))
    return ensemble


def _row(name: str, ensemble: rl.Ensemble) -> DemoRow:
    final = float(np.median([run.history["error"].iloc[-1] for run in ensemble]))
    return DemoRow(name, tuple(reached(ensemble, level) for level in LEVELS), final)


def compile_methods(algorithms: Sequence[Any], report: Callable[[str], None] | None = None) -> None:
    """Compile each algorithm for the paper's least squares, two at a time; `report` is told each name when it is done."""
    tasks = (Task(_compile, (algorithm,)) for algorithm in algorithms)
    with completed(tasks, min(PROCESSES, len(algorithms))) as results:
        for finished in results:
            name = finished.result()
            if report is not None:
                report(name)


def _compile(algorithm: Any) -> str:
    """In a process of its own: the first hops make the compiler work."""
    problem, network = rl.paper_least_squares(AGENTS, SAMPLES, DIM), rl.random_network(AGENTS, DENSITY)
    rl.simulate(algorithm, problem, network, A_FEW_HOPS, engine="compiled", progress=False)
    return str(algorithm.name)
