"""Run a token method in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from roundelay.engine import loop
from roundelay.engine.checks import check_monitors, check_run, check_stopping, marks_of, name_of
from roundelay.engine.choose import EngineChoice, Prepared, prepare
from roundelay.engine.ensemble import Ensemble, run_seeds
from roundelay.engine.interrupts import deferred_interrupt
from roundelay.engine.monitors import Monitor
from roundelay.engine.progress import Bar, Report
from roundelay.engine.run import Record, Run, StopKind
from roundelay.engine.state import State, new_state
from roundelay.engine.transcript import Transcript
from roundelay.kernels import Part
from roundelay.networks import Network
from roundelay.networks.walks import Cycle
from roundelay.problems import Problem, composite_optimum

STOPS: dict[int, StopKind] = {
    loop.RUNNING: "hops",
    loop.TOLERANCE_MET: "tolerance",
    loop.ALL_CONTENT: "content",
    loop.DIVERGED: "diverged",
}


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

    options = Options(engine, record, transcript, tuple(monitors), tolerance, content, reader)

    def one(seed: int, progress: Report | bool) -> Run:
        own_problem = problem if isinstance(problem, Problem) else problem(seed)
        own_network = network if isinstance(network, Network) else network(seed)
        return _simulate(algorithm, own_problem, own_network, hops, seed, options, progress)

    if seeds is None:
        return one(seed, progress)
    return run_seeds(lambda seed: one(seed, False), seeds, name_of(algorithm), progress)


@dataclass(frozen=True)
class Options:
    """How to run and what to keep; `simulate` explains each."""

    engine: EngineChoice
    record: int | Sequence[int] | None
    transcript: bool
    monitors: tuple[Monitor, ...]
    tolerance: float | None
    content: float | None
    reader: int


def _simulate(
    algorithm: Any,
    problem: Problem,
    network: Network,
    hops: int,
    seed: int,
    options: Options,
    progress: Report | bool,
) -> Run:
    name, monitors, tolerance, content = name_of(algorithm), options.monitors, options.tolerance, options.content
    method = check_run(algorithm, problem, network, hops, seed, options.reader)
    check_monitors(monitors, method, name)
    check_stopping(tolerance, content, method, problem, name)
    marks = marks_of(options.record, hops)
    prepared = prepare(method, problem, network, options.engine)
    optimum = np.array(composite_optimum(problem, method.regulariser))
    messages = hops if options.transcript else 0
    state = new_state(method, problem, network, seed, optimum, marks, messages, tolerance, content, options.reader)
    watched: list[tuple[float, ...]] = []

    def look() -> None:
        """Evaluate the monitors for the row that has just been written."""
        snapshot = state.snapshot()
        watched.append(tuple(value for monitor in monitors for value in monitor.measure(problem, method, snapshot)))

    last_lap = len(network.tour().order) if content is not None else 0
    stop = _drive(state, prepared, seed, hops, last_lap, look if monitors else None, progress, name)
    if state.rows == 0 or marks[state.rows - 1] != state.hop:
        state.write_last_row()
        look()
    columns = [column for monitor in monitors for column in monitor.columns]
    watch = {column: np.array([row[k] for row in watched]) for k, column in enumerate(columns)}

    units = int(state.clock[loop.UNITS])
    following = _next_receivers(state, method.walk.part(network), seed)
    token = state.mean_token
    on_tour = isinstance(method.walk, Cycle)
    return Run(
        algorithm=algorithm,
        seed=seed,
        engine=prepared.engine,
        engine_reason=prepared.reason,
        outcome=_outcome(stop, state.hop, tolerance, content, last_lap),
        stop=stop,
        hops=state.hop,
        units=units,
        tokens=state.trail.tokens,
        estimate=method.regulariser.prox(token, method.token_scale(problem.agents)),
        x=state.agents.x,
        y=state.agents.y,
        optimum=optimum,
        record=_record(state, watch),
        visits=state.agents.visits,
        tour=network.tour().words if on_tour else "",
        received=_received(state, following),
        reader=options.reader,
        transcript=_transcript(state, following) if options.transcript else None,
        problem=problem,
        regulariser=method.regulariser,
    )


def _drive(
    state: State,
    prepared: Prepared,
    seed: int,
    hops: int,
    last_lap: int,
    look: Callable[[], None] | None,
    progress: Report | bool,
    name: str,
) -> StopKind:
    """Call the loop in pieces of about a tenth of a second, so that somebody can watch and interrupt."""
    bar = Bar(name) if progress is True else None
    report = bar if bar is not None else (progress if callable(progress) else None)
    key = np.uint64(seed) if prepared.engine == "compiled" else seed
    piece = 1000 if prepared.engine == "compiled" else 10
    marks = state.log.marks
    with deferred_interrupt() as interrupt, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            while True:
                rows, until = state.rows, min(state.hop + piece, hops)
                if look is not None and rows < len(marks):
                    until = min(until, int(marks[rows]))
                began = time.perf_counter()
                status = prepared.travel(prepared.problem, prepared.method, prepared.walk, key, *state.handed(), until)
                took = time.perf_counter() - began
                if look is not None and state.rows > rows:
                    look()
                if report is not None:
                    report(state.hop, hops)
                if status == loop.ALL_CONTENT:
                    state.clock[loop.UNITS] += last_lap
                    if not _all_confirm(state, prepared):
                        state.rule.tally[:] = state.rule.tally[0] + 1, 0
                        status = loop.RUNNING
                if status != loop.RUNNING or state.hop >= hops:
                    return STOPS[status]
                if interrupt.asked:
                    return "interrupted"
                piece = 2 * piece if took < 0.05 else max(piece // 2, 1) if took > 0.2 else piece
        finally:
            if bar is not None:
                bar.close()


def _all_confirm(state: State, prepared: Prepared) -> bool:
    """The last lap: the frozen token goes round once more, and every agent says whether it is in balance with it.

    While the agents were being counted the token still moved a little. With the token frozen, the mean of what
    they find is the gradient of the mean function there, so a stop is right, not just likely.
    """
    agents, unrest = len(state.agents.x), prepared.functions().unrest
    return all(
        unrest(prepared.problem, prepared.method, i, agents, state.trail.tokens[0], state.agents.share[i])
        <= state.rule.content
        for i in range(agents)
    )


def _outcome(stop: StopKind, hops: int, tolerance: float | None, content: float | None, last_lap: int) -> str:
    words: dict[StopKind, str] = {
        "hops": f"It made all {hops} hops that were asked for.",
        "tolerance": f"The error came down to {tolerance} after {hops} hops.",
        "content": f"All agents were content within {content} after {hops} hops; "
        f"a last lap of {last_lap} hops carried the frozen token, and all confirmed.",
        "diverged": f"It diverged at hop {hops}: the states left all bounds.",
        "interrupted": f"It was interrupted after {hops} hops; the state is whole.",
    }
    return words[stop]


def _record(state: State, watch: dict[str, np.ndarray[Any, Any]]) -> Record:
    log, rows = state.log, state.rows
    hop = np.append(log.marks, -1)[:rows]
    hop[-1] = state.hop
    sent = log.units[:rows].copy()
    sent[-1] = state.clock[loop.UNITS]  # with the last lap, where there was one
    return Record(hop, sent, log.accuracy[:rows], log.error[:rows], log.consensus[:rows], log.tokens[:rows], watch)


def _next_receivers(state: State, walk: Part, seed: int) -> dict[int, tuple[int, bool]]:
    """For the last message of each token: who is about to receive it, and whether that agent will work on it."""
    functions, numbers, tokens = dict(walk.functions), walk.numbers, len(state.trail.tokens)
    receivers = {}
    for hop in range(max(state.hop - tokens, 0), state.hop):
        place = int(state.trail.places[hop % tokens])
        following = functions["advance"](numbers, seed, hop + tokens, place, state.agents.visits)
        receivers[hop] = (int(functions["agent_at"](numbers, following)), bool(functions["works"](numbers, following)))
    return receivers


def _transcript(state: State, following: dict[int, tuple[int, bool]]) -> Transcript:
    hops = state.hop
    for hop, (receiver, _) in following.items():
        state.post.receiver[hop] = receiver
    return Transcript(
        np.arange(hops, dtype=np.int64), state.post.sender[:hops], state.post.receiver[:hops], state.post.tokens[:hops]
    )


def _received(state: State, following: dict[int, tuple[int, bool]]) -> np.ndarray[Any, Any]:
    """The tokens that the reader has received, with those just sent to it."""
    tokens = len(state.trail.tokens)
    arriving = [
        state.trail.tokens[hop % tokens]
        for hop, (receiver, works) in following.items()
        if works and receiver == state.reader.agent
    ]
    return np.vstack([state.received, *arriving])
