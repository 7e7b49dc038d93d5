"""What is printed: words and tables for people, JSON for machines. Results go to stdout, progress to stderr."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from roundelay.shown.provenance import provenance

if TYPE_CHECKING:
    from rich.console import Console


WIDE = 10_000


def stdout_console() -> Console:
    """Where results go. Nothing in them is markup. A pipe or a file is as wide as what is written: nothing is cut."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False, soft_wrap=False)
    if (
        not console.file.isatty() and "COLUMNS" not in os.environ
    ):  # rich takes any file for a terminal under FORCE_COLOR
        console.width = WIDE
    return console


def stderr_console() -> Console:
    """Where progress goes."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def print_json(content: Mapping[str, Any]) -> None:
    """Print strict JSON: a number that is infinite or not a number becomes null."""
    typer.echo(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False))


def print_result(content: Mapping[str, Any]) -> None:
    """Print what was computed as JSON, with a word of how it was made."""
    print_json({**content, "provenance": provenance()})


def plain(value: Any) -> Any:
    """The value made of what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Sequence):
        return [plain(entry) for entry in value]
    return str(value)


# (what, done, total): nothing done yet means that it is being compiled.
Tell = Callable[[str, int, int], None]


@contextmanager
def progress_lines(unit: str, keep: bool = True, tenths: bool = False) -> Iterator[Tell]:
    """Bars where somebody watches; elsewhere, as in a log, one line for each piece of work that is finished.

    With `keep=False` nothing is left of them. With `tenths` a log has a line for each tenth of a piece, and the time that is left.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = stderr_console()
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description:<10}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[stage]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    told: dict[str, int] = {}
    watched = console.file.isatty()
    # What is left is reckoned from the last ten minutes.
    with Progress(
        *columns, console=console, transient=not keep, disable=not watched, speed_estimate_period=600.0
    ) as progress:

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total, stage="")
            stage = f"{unit}, compiling" if done == 0 else unit
            finished = progress.tasks[tasks[what]].finished
            progress.update(tasks[what], completed=done, total=total, stage=stage)
            if keep and done >= total and not finished and not watched:
                console.print(f"{what}: {done} of {total} {unit} done")
            elif tenths and not watched and 10 * done // total > told.get(what, 10 * done // total):
                left = progress.tasks[tasks[what]].time_remaining
                console.print(
                    f"{what}: {done} of {total} {unit} done" + ("" if left is None else f", about {left:.0f} s left")
                )
            told[what] = 10 * done // max(total, 1)

        yield tell
