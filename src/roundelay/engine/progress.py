"""A progress bar for what takes more than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

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
