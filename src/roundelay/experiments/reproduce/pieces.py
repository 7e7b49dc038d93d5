"""The reproduction in pieces: each is computed once, kept at once, and found again by a run that was interrupted."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import roundelay
from roundelay.experiments.reproduce.effort import Effort
from roundelay.experiments.reproduce.measured import Measured, read_measured, write_measured
from roundelay.experiments.workers import workers

# (what, done, total)
Told = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Piece:
    """One piece of work: `work(effort, *arguments)` in a process of its own. `name` is unique."""

    name: str
    work: Callable[..., Measured]
    arguments: tuple[Any, ...] = ()

    def file(self, folder: Path) -> Path:
        """Where its result is kept."""
        return folder / ("".join(letter if letter.isalnum() else "-" for letter in self.name) + ".json")


def run_pieces(
    pieces: Sequence[Piece], effort: Effort, folder: Path, processes: int = 2, report: Told | None = None
) -> Mapping[str, Measured]:
    """The results of all pieces, by name; those that `folder` holds are not computed again.

    What was kept counts only for the code and the effort it was made with.
    """
    kept = folder / f"{effort.name}-{fingerprint()}"
    for stale in folder.glob(f"{effort.name}-*"):
        if stale != kept:
            shutil.rmtree(stale, ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    missing = [piece for piece in pieces if not piece.file(kept).exists()]
    done = len(pieces) - len(missing)
    if report is not None:
        report("pieces", done, len(pieces))
    if missing:
        _compute(missing, effort, kept, processes, done, len(pieces), report)
    return {piece.name: read_measured(piece.file(kept)) for piece in pieces}


def _compute(
    missing: Sequence[Piece], effort: Effort, kept: Path, processes: int, done: int, total: int, report: Told | None
) -> None:
    with workers(processes) as submit:
        futures: dict[Future[Measured], Piece] = {
            submit(piece.work, effort, *piece.arguments): piece for piece in missing
        }
        for future in as_completed(futures):
            write_measured(future.result(), futures[future].file(kept))
            done += 1
            if report is not None:
                report("pieces", done, total)


def fingerprint() -> str:
    """A few letters that change with any line of the package's code."""
    digest = hashlib.sha256()
    root = Path(roundelay.__file__).parent
    for source in sorted(root.rglob("*.py")):
        digest.update(source.relative_to(root).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
