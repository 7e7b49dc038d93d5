"""A line of progress for each piece of work, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roundelay.cli.output import stderr_console

# (what, done, total): nothing done yet means that it is being compiled.
Tell = Callable[[str, int, int], None]


@contextmanager
def progress_lines(unit: str, keep: bool = True) -> Iterator[Tell]:
    """Bars where somebody watches; elsewhere, as in a log, one line for each piece of work that is finished.

    With `keep=False` nothing is left of them.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )

    console = stderr_console()
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description:<10}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[stage]}", markup=False),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, transient=not keep, disable=not console.is_terminal) as progress:

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total, stage="")
            stage = f"{unit}, compiling" if done == 0 else unit
            finished = progress.tasks[tasks[what]].finished
            progress.update(tasks[what], completed=done, total=total, stage=stage)
            if keep and done >= total and not finished and not console.is_terminal:
                console.print(f"{what}: {done} of {total} {unit} done")

        yield tell
