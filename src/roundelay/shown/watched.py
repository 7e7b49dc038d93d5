"""How far long work is: a bar for whoever watches, in a terminal or in a notebook, a function of the user's, or nobody."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from roundelay.shown.notebook import in_notebook

if TYPE_CHECKING:
    from rich.progress import Progress

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
            notebook = in_notebook() and not sys.stderr.isatty()
            if time.monotonic() - self.began < PATIENCE or not (notebook or sys.stderr.isatty()):
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            # In a notebook a line that is written anew, for which no widgets are needed.
            console = (
                Console(stderr=True, force_terminal=True, force_jupyter=False, width=79)
                if notebook
                else Console(stderr=True)
            )
            self.progress = Progress(*columns, console=console, transient=True)
            self.progress.start()
            self.progress.add_task(self.title, total=total)
        self.progress.update(self.progress.task_ids[0], completed=done)

    def close(self) -> None:
        """Take the bar away."""
        if self.progress is not None:
            self.progress.stop()


@contextmanager
def reporting(progress: Report | bool, title: str) -> Iterator[Report]:
    """Whom to tell how much is done: a bar that is taken away at the end, a function of the user's, or nobody."""
    if progress is not True:
        yield progress if callable(progress) else tell_nobody
        return
    bar = Bar(title)
    try:
        yield bar
    finally:
        bar.close()


def tell_nobody(done: int, total: int) -> None:
    """Nobody watches."""
