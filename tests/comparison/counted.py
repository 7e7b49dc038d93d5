"""Tasks of a sweep that note when they begin, and that die where they are told to; in a module that workers can import."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from roundelay.comparison import sweep as sweep_module
from roundelay.comparison.runners import Task


def noted(folder: Path, key: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """In a worker: a line for each beginning, and when. A file with the task's key in the folder `deaths` says how often it is to die of it."""
    with open(folder / "begun", "a") as log:
        log.write(f"{key} {time.time_ns()}\n")
    deaths = folder / "deaths" / key
    if deaths.exists() and (left := int(deaths.read_text())):
        deaths.write_text(str(left - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return work(*arguments)


def begun(folder: Path) -> Counter[str]:
    """How often each task has begun."""
    return _noted_in(folder / "begun")


def handed(folder: Path) -> Counter[str]:
    """How often each task was handed over to whatever runs it."""
    return _noted_in(folder / "handed")


def _noted_in(log: Path) -> Counter[str]:
    return Counter(line.split()[0] for line in log.read_text().splitlines()) if log.exists() else Counter()


@contextmanager
def noting(folder: Path) -> Iterator[None]:
    """Meanwhile all tasks of sweeps that are called in this process are noted in the folder."""

    def task(work: Callable[..., Any], arguments: tuple[Any, ...], key: str) -> Task:
        with open(folder / "handed", "a") as log:
            log.write(f"{key}\n")
        return Task(partial(noted, folder, key, work), arguments, key=key)

    (folder / "deaths").mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_module, "Task", task)
        yield
