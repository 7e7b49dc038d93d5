"""Drive the hop loop from the start to a reason to stop."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundelay.engine import loop
from roundelay.engine.assemble import CannotCompileError
from roundelay.engine.choose import Prepared
from roundelay.engine.interrupts import Interrupt
from roundelay.engine.options import Options
from roundelay.engine.progress import Bar, Report
from roundelay.engine.run import StopKind
from roundelay.engine.state import State
from roundelay.problems import Problem

STOPS: dict[int, StopKind] = {
    loop.RUNNING: "hops",
    loop.TOLERANCE_MET: "tolerance",
    loop.ALL_CONTENT: "content",
    loop.DIVERGED: "diverged",
}


@dataclass(frozen=True, eq=False)
class Course:
    """How a run went: its last state, why it stopped, what the monitors saw, and where a frozen token went round."""

    state: State
    stop: StopKind
    watched: list[tuple[float, ...]]
    frozen: list[int]


def drive(
    state: State,
    prepared: Prepared,
    problem: Problem,
    seed: int,
    hops: int,
    last_lap: int,
    options: Options,
    progress: Report | bool,
    name: str,
    interrupt: Interrupt,
) -> Course:
    """Call the loop in pieces of about a tenth of a second, so that somebody can watch and interrupt."""
    bar = Bar(name) if progress is True else None
    report = bar if bar is not None else (progress if callable(progress) else None)
    key = np.uint64(seed) if prepared.engine == "compiled" else seed
    piece = 1000 if prepared.engine == "compiled" else 10
    marks, monitors = state.log.marks, options.monitors
    watched: list[tuple[float, ...]] = []
    frozen: list[int] = []

    def look() -> None:
        """Evaluate the monitors for the row that has just been written."""
        snapshot = state.snapshot()
        values = (monitor.measure(problem, state.method, snapshot) for monitor in monitors)
        watched.append(tuple(number for numbers in values for number in numbers))

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            while True:
                rows, until = state.rows, min(state.hop + piece, hops)
                if monitors and rows < len(marks):
                    until = min(until, int(marks[rows]))
                if options.transcript:
                    state = state.with_room(until)
                began = time.perf_counter()
                status = _call(prepared, key, state, until)
                took = time.perf_counter() - began
                if monitors and state.rows > rows:
                    look()
                if report is not None:
                    report(state.hop, hops)
                if status == loop.ALL_CONTENT:
                    state.clock[loop.UNITS] += last_lap
                    frozen.append(state.hop)
                    if not _all_confirm(state, prepared):
                        state.rule.tally[:] = state.rule.tally[0] + 1, 0
                        status = loop.RUNNING
                stop = STOPS[status]
                if status != loop.RUNNING or state.hop >= hops:
                    break
                if interrupt.asked:
                    stop = "interrupted"
                    break
                piece = 2 * piece if took < 0.05 else max(piece // 2, 1) if took > 0.2 else piece
        finally:
            if bar is not None:
                bar.close()
    if state.rows == 0 or marks[state.rows - 1] != state.hop:
        state.write_last_row()
        look()
    return Course(state, stop, watched, frozen)


def _call(prepared: Prepared, key: Any, state: State, until: int) -> int:
    """The loop, up to a hop; what numba can't compile is said in a sentence."""
    try:
        return prepared.travel(prepared.problem, prepared.method, prepared.walk, key, *state.handed(), until)
    except Exception as error:
        if prepared.engine == "compiled" and type(error).__module__ == "numba.core.errors":
            first = next(line for line in [*str(error).splitlines()[1:], str(error)] if line.strip())
            raise CannotCompileError(f"The compiled engine can't run this: numba says {first.strip()!r}.") from error
        raise


def _all_confirm(state: State, prepared: Prepared) -> bool:
    """The last lap: the frozen token goes round once more, and every agent says whether it is in balance with it.

    While the agents were being counted the token still moved a little. With the token frozen, the mean of what
    they find is the gradient of the mean function there, so a stop is right, not just likely.
    """
    agents, unrest, token = len(state.agents.x), prepared.functions().unrest, state.trail.tokens[0]
    return all(
        unrest(prepared.problem, prepared.method, i, agents, token, state.agents.share[i]) <= state.rule.content
        for i in range(agents)
    )
