"""Run a token method in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from roundelay.engine import loop
from roundelay.engine.assemble import CannotCompileError
from roundelay.engine.checks import (
    check_balance,
    check_monitors,
    check_run,
    check_stopping,
    marks_of,
    name_of,
    the_network,
    the_problem,
)
from roundelay.engine.choose import EngineChoice, Prepared, prepare
from roundelay.engine.drive import Course, drive
from roundelay.engine.ensemble import Ensemble, run_seeds
from roundelay.engine.interrupts import Interrupt, deferred_interrupt
from roundelay.engine.monitors import Monitor
from roundelay.engine.options import Options
from roundelay.engine.progress import Report
from roundelay.engine.results import next_moves, outcome_in_words, received_by_reader, record_of, transcript_of
from roundelay.engine.run import Run
from roundelay.engine.state import new_state
from roundelay.kernels.checks import whole_number
from roundelay.networks import Network
from roundelay.networks.walks import Cycle
from roundelay.problems import Problem, composite_optimum


@overload
def simulate(
    algorithm: Any,
    problem: Problem,
    network: Network,
    hops: int,
    *,
    seed: int = ...,
    seeds: None = ...,
    engine: EngineChoice = ...,
    record: int | Sequence[int] | None = ...,
    transcript: bool = ...,
    monitors: Sequence[Monitor] = ...,
    tolerance: float | None = ...,
    content: float | None = ...,
    reader: int = ...,
    progress: Report | bool = ...,
) -> Run: ...


@overload
def simulate(
    algorithm: Any,
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    hops: int,
    *,
    seed: int = ...,
    seeds: Sequence[int],
    engine: EngineChoice = ...,
    record: int | Sequence[int] | None = ...,
    transcript: bool = ...,
    monitors: Sequence[Monitor] = ...,
    tolerance: float | None = ...,
    content: float | None = ...,
    reader: int = ...,
    progress: Report | bool = ...,
) -> Ensemble: ...


def simulate(
    algorithm: Any,
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    hops: int,
    *,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    engine: EngineChoice = "auto",
    record: int | Sequence[int] | None = None,
    transcript: bool = False,
    monitors: Sequence[Monitor] = (),
    tolerance: float | None = None,
    content: float | None = None,
    reader: int = 0,
    progress: Report | bool = True,
) -> Run | Ensemble:
    """Run `algorithm` on `problem` over `network` for `hops` hops of the token.

    `seed` keys every random draw. With `seeds` instead, one run for each is made, in parallel, and an
    `Ensemble` comes back; `problem` and `network` may then be functions of the seed.
    `engine` is "auto" (compiled where possible), "compiled" or "python"; `run.engine_reason` says why.
    `record` chooses the rows of the history: every so many hops, or the hops themselves.
    `transcript=True` keeps what crossed the links. `monitors` adds columns, such as `AugmentedLagrangian()`.
    It stops at `hops`; where `tolerance` is given, as soon as the common error is that small; where
    `content` is given, when the agents' own stopping rule says so with that tolerance.
    `reader` is the agent whose received tokens `run.readout()` uses.
    `progress` is True for a bar on long runs, False for none, or a function (done, total).
    """

    if not isinstance(monitors, Sequence):
        raise ValueError(f"monitors is {monitors!r}: give a list, for instance [roundelay.KKTResiduals()].")
    options = Options(engine, record, transcript, tuple(monitors), tolerance, content, whole_number("reader", reader))
    steps = whole_number("hops", hops, least=0)
    with deferred_interrupt() as interrupt:

        def one(seed: int, progress: Report | bool) -> Run:
            own = the_problem(problem, seed), the_network(network, seed)
            return _simulate(algorithm, *own, steps, seed, options, progress, interrupt)

        if seeds is None:
            return one(whole_number("The seed", seed), progress)
        return run_seeds(lambda seed: one(seed, False), seeds, name_of(algorithm), progress, interrupt)


def _simulate(
    algorithm: Any,
    problem: Problem,
    network: Network,
    hops: int,
    seed: int,
    options: Options,
    progress: Report | bool,
    interrupt: Interrupt,
) -> Run:
    name, monitors, tolerance, content = name_of(algorithm), options.monitors, options.tolerance, options.content
    method = check_run(algorithm, problem, network, hops, seed, options.reader)
    check_monitors(monitors, method, name)
    check_stopping(tolerance, content, method, problem, name)
    marks = marks_of(options.record, hops)
    optimum = np.array(composite_optimum(problem, method.regulariser))
    last_lap = len(network.tour().order) if content is not None else 0

    def run(choice: EngineChoice) -> tuple[Prepared, Course]:
        prepared = prepare(method, problem, network, choice)
        state = new_state(method, problem, network, seed, optimum, marks, tolerance, content, options.reader)
        if content is not None:
            check_balance(state.agents.share, name)
        return prepared, drive(state, prepared, problem, seed, hops, last_lap, options, progress, name, interrupt)

    try:
        prepared, course = run(options.engine)
    except CannotCompileError as error:  # found out when compiling, before the first hop
        if options.engine != "auto":
            raise
        prepared, course = run("python")
        prepared = replace(prepared, reason=str(error))
    state, stop = course.state, course.stop
    walk = method.walk.part(network)
    following = next_moves(state, walk, seed)
    # So far the messages that are still under way were counted as one unit each.
    state.clock[loop.UNITS] += sum(move.cost - 1 for move in following)
    token, scale = state.mean_token, float(method.token_scale(problem.agents))
    on_tour = isinstance(method.walk, Cycle)
    return Run(
        algorithm=algorithm,
        seed=seed,
        engine=prepared.engine,
        engine_reason=prepared.reason,
        outcome=outcome_in_words(stop, state.hop, tolerance, content, last_lap),
        stop=stop,
        hops=state.hop,
        units=int(state.clock[loop.UNITS]),
        tokens=state.trail.tokens,
        estimate=method.regulariser.prox(token, scale),
        x=state.agents.x,
        y=state.agents.y,
        optimum=optimum,
        record=record_of(state, course.watched, monitors),
        visits=state.agents.visits,
        tour=network.tour().words if on_tour else "",
        received=received_by_reader(state, following),
        reader=options.reader,
        lap_is_fixed=on_tour and method.mean_token(state.agents.x, state.agents.y) is not None,
        token_scale=scale,
        transcript=transcript_of(course, following, network) if options.transcript else None,
        problem=problem,
        regulariser=method.regulariser,
    )
