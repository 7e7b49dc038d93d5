"""Drive the hop loop from the start to a reason to stop."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from roundelay.engine import token_loop as loop
from roundelay.engine.assemble import CannotCompileError, Prepared
from roundelay.engine.monitors import Monitor, Snapshot
from roundelay.engine.result import StopKind
from roundelay.engine.state import State
from roundelay.problems import Problem

if TYPE_CHECKING:
    from rich.progress import Progress


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


Report = Callable[[int, int], None]

PATIENCE = 2.0


class Bar:
    """Shows itself once the work has taken two seconds, and only where somebody watches."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.began = time.monotonic()
        self.progress: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        """Report how much is done."""
        if self.progress is None:
            if time.monotonic() - self.began < PATIENCE or not sys.stderr.isatty():
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self.progress.start()
            self.progress.add_task(self.title, total=total)
        self.progress.update(self.progress.task_ids[0], completed=done)

    def close(self) -> None:
        """Take the bar away."""
        if self.progress is not None:
            self.progress.stop()


STOPS: dict[int, StopKind] = {
    loop.TOLERANCE_MET: "tolerance",
    loop.ALL_CONTENT: "content",
    loop.DIVERGED: "diverged",
}


class Drivable(Protocol):
    """What the driver needs of a state."""

    @property
    def method(self) -> Any:
        """The method that runs."""

    @property
    def step(self) -> int:
        """How many hops or iterations have been made."""

    @property
    def rows(self) -> int:
        """How many rows the history has."""

    @property
    def marks(self) -> NDArray[np.int64]:
        """The steps at which the history has a row."""

    def handed(self) -> tuple[Any, ...]:
        """What the loop is handed, in its order."""

    def snapshot(self) -> Snapshot:
        """The state as the monitors see it."""

    def write_last_row(self) -> None:
        """The row of the step at which the run ended."""


Driven = TypeVar("Driven", bound=Drivable)


@dataclass(frozen=True, eq=False)
class Course(Generic[Driven]):
    """How a run went: its last state, why it stopped, and what the monitors saw."""

    state: Driven
    stop: StopKind
    watched: list[tuple[float, ...]]


def drive(
    state: Driven,
    prepared: Prepared,
    problem: Problem,
    seed: int,
    steps: int,
    at_the_end: StopKind,
    monitors: Sequence[Monitor],
    progress: Report | bool,
    name: str,
    interrupt: Interrupt,
    before: Callable[[Driven, int], Driven] = lambda state, until: state,
    confirm: Callable[[Driven], bool] = lambda state: True,
) -> Course[Driven]:
    """Call the loop in pieces of about a tenth of a second, so that somebody can watch and interrupt.

    `before` is given the state, and how far the next piece goes; `confirm` is asked when all agents are content.
    """
    bar = Bar(name) if progress is True else None
    report = bar if bar is not None else (progress if callable(progress) else None)
    key = np.uint64(seed) if prepared.engine == "compiled" else seed
    piece = 1000 if prepared.engine == "compiled" else 10
    watched: list[tuple[float, ...]] = []

    def look() -> None:
        """Evaluate the monitors for the row that has just been written."""
        snapshot = state.snapshot()
        values = (monitor.measure(problem, state.method, snapshot) for monitor in monitors)
        watched.append(tuple(number for numbers in values for number in numbers))

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            while True:
                rows, until = state.rows, min(state.step + piece, steps)
                if monitors and rows < len(state.marks):
                    until = min(until, int(state.marks[rows]))
                state = before(state, until)
                began = time.perf_counter()
                status = _call(prepared, key, state, until)
                took = time.perf_counter() - began
                if monitors and state.rows > rows:
                    look()
                if report is not None:
                    report(state.step, steps)
                if status == loop.ALL_CONTENT and not confirm(state):
                    status = loop.RUNNING
                stop = STOPS.get(status, at_the_end)
                if status != loop.RUNNING or state.step >= steps:
                    break
                if interrupt.asked:
                    stop = "interrupted"
                    break
                piece = 2 * piece if took < 0.05 else max(piece // 2, 1) if took > 0.2 else piece
        finally:
            if bar is not None:
                bar.close()
    if state.rows == 0 or state.marks[state.rows - 1] != state.step:
        state.write_last_row()
        look()
    return Course(state, stop, watched)


def _call(prepared: Prepared, key: Any, state: Drivable, until: int) -> int:
    """The loop, up to a step; what numba can't compile is said in a sentence."""
    try:
        return prepared.travel(*prepared.numbers, key, *state.handed(), until)
    except Exception as error:
        if prepared.engine == "compiled" and type(error).__module__ == "numba.core.errors":
            first = next(line for line in [*str(error).splitlines()[1:], str(error)] if line.strip())
            raise CannotCompileError(f"The compiled engine can't run this: numba says {first.strip()!r}.") from error
        raise


def all_confirm(state: State, prepared: Prepared) -> bool:
    """The last lap: the frozen token goes round once more, and every agent says whether it is in balance with it.

    While the agents were being counted the token still moved a little. With the token frozen, the mean of what
    they find is the gradient of the mean function there, so a stop is right, not just likely.
    """
    agents, unrest, token = len(state.agents.x), prepared.functions().unrest, state.trail.tokens[0]
    problem, method = prepared.numbers[:2]
    return all(
        unrest(problem, method, i, agents, token, state.agents.share[i]) <= state.rule.content for i in range(agents)
    )
