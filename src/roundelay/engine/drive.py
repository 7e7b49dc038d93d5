"""Drive a loop from the start to a reason to stop: in pieces, so that somebody can watch and interrupt.

`run_token` and `run_gossip` ask the driver for one piece after another, and do between two of them what their family needs.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Protocol

import numpy as np

from roundelay.engine.assemble import Assembly, CannotCompileError, Prepared, is_from_numba, prepare
from roundelay.engine.checks import Options, name_of
from roundelay.engine.monitors import Snapshot
from roundelay.engine.result import StopKind
from roundelay.engine.token_loop import ALL_CONTENT, DIVERGED, RUNNING, TOLERANCE_MET
from roundelay.kernels import Integers, Vector
from roundelay.networks import Network
from roundelay.problems import Problem
from roundelay.shown.watched import Report, reporting, tell_nobody

# ---------------------------------------------------------------- who interrupts


@dataclass
class Interrupt:
    """Whether the user has asked to stop."""

    asked: bool = False


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Note Ctrl-C instead of raising it; a second one raises at once. Only the main thread can do so."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True

    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.default_int_handler:
        # Somebody else handles interrupts here; leave that to them.
        yield interrupt
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)


# ---------------------------------------------------------------- piece by piece


@dataclass(frozen=True, eq=False)
class Request:
    """One run that is asked for: a method on a problem over a network, from a seed; how; and who watches.

    `given` is the algorithm as it was given, `algorithm` with all that follows from the problem.
    """

    given: Any
    algorithm: Any
    method: Any
    problem: Problem
    network: Network
    seed: int
    options: Options
    progress: Report | bool
    interrupt: Interrupt

    @property
    def name(self) -> str:
        """The algorithm's name."""
        return name_of(self.algorithm)


class Drivable(Protocol):
    """What the driver needs of a state."""

    @property
    def step(self) -> int:
        """How many hops or iterations have been made."""

    @property
    def rows(self) -> int:
        """How many rows the history has."""

    @property
    def marks(self) -> Integers:
        """The steps at which the history has a row."""

    def handed(self) -> tuple[Any, ...]:
        """What the loop is handed, in its order."""

    def snapshot(self) -> Snapshot:
        """The state as the monitors see it."""

    def write_last_row(self) -> None:
        """The row of the step at which the run ended."""


STOPS: dict[int, StopKind] = {TOLERANCE_MET: "tolerance", ALL_CONTENT: "content", DIVERGED: "diverged"}


class Driver:
    """Calls the loop in pieces of about a tenth of a second.

    With each piece: `until` says how far it goes, `advance` makes it, and `reason_to_stop` says whether it was the last.
    `prepared` is the loop by the engine that was asked for; where that was left open, by Python if it turns out not to compile.
    """

    def __init__(self, assembly: Assembly, request: Request, steps: int, at_the_end: StopKind) -> None:
        self.assembly, self.request, self.steps, self.at_the_end = assembly, request, steps, at_the_end
        self._use(prepare(assembly, request.options.engine, steps))
        self._report: Report = tell_nobody
        self._watched: list[tuple[float, ...]] = []

    def _use(self, prepared: Prepared) -> None:
        compiled = prepared.engine == "compiled"
        self.prepared = prepared
        self._key: Any = np.uint64(self.request.seed) if compiled else self.request.seed
        self._piece = 1000 if compiled else 10

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """While the loop runs somebody may watch, and numbers that leave all bounds are no news."""
        with (
            np.errstate(over="ignore", invalid="ignore", divide="ignore"),
            reporting(self.request.progress, self.request.name) as self._report,
        ):
            yield

    def until(self, state: Drivable) -> int:
        """How far the next piece goes: not beyond the next row, where monitors look at each."""
        until = min(state.step + self._piece, self.steps)
        if self.request.options.monitors and state.rows < len(state.marks):
            until = min(until, int(state.marks[state.rows]))
        return until

    def advance(self, state: Drivable, until: int) -> int:
        """Make a piece; returns what the loop reports."""
        rows, began = state.rows, time.perf_counter()
        try:
            status = self._call(state, until)
        except CannotCompileError as error:
            if self.request.options.engine != "auto":
                raise
            # It was found out before the first step, so that the state is as it was.
            self._use(replace(prepare(self.assembly, "python"), reason=str(error)))
            status = self._call(state, self.until(state))
        took = time.perf_counter() - began
        self._piece = 2 * self._piece if took < 0.05 else max(self._piece // 2, 1) if took > 0.2 else self._piece
        if state.rows > rows:
            self._look(state)
        self._report(state.step, self.steps)
        return status

    def _call(self, state: Drivable, until: int) -> int:
        """The loop, up to a step; what numba can't compile is said in a sentence."""
        try:
            return self.prepared.travel(*self.prepared.numbers, self._key, *state.handed(), until)
        except Exception as error:
            if self.prepared.engine == "compiled" and is_from_numba(error):
                first = next(line for line in [*str(error).splitlines()[1:], str(error)] if line.strip())
                raise CannotCompileError(
                    f"The compiled engine can't run this: numba says {first.strip()!r}."
                ) from error
            raise

    def reason_to_stop(self, state: Drivable, status: int) -> StopKind | None:
        """Why this piece was the last; None where there is more to do."""
        if status != RUNNING:
            return STOPS[status]
        if state.step >= self.steps:
            return self.at_the_end
        return "interrupted" if self.request.interrupt.asked else None

    def write_last_row(self, state: Drivable) -> None:
        """The history ends with a row of the step at which the run ended."""
        if state.rows == 0 or state.marks[state.rows - 1] != state.step:
            state.write_last_row()
            self._look(state)

    def _look(self, state: Drivable) -> None:
        """Evaluate the monitors for the row that has just been written."""
        if not self.request.options.monitors:
            return
        problem, method, snapshot = self.request.problem, self.request.method, state.snapshot()
        values = (monitor.measure(problem, method, snapshot) for monitor in self.request.options.monitors)
        self._watched.append(tuple(number for numbers in values for number in numbers))

    @property
    def columns(self) -> dict[str, Vector]:
        """What the monitors saw, column by column."""
        names = [column for monitor in self.request.options.monitors for column in monitor.columns]
        return {column: np.array([row[k] for row in self._watched]) for k, column in enumerate(names)}


def steps_of_rows(state: Drivable) -> Integers:
    """The hop or iteration of each row of the history."""
    step = np.append(state.marks[: state.rows], -1)[: state.rows]
    step[-1] = state.step
    return step
