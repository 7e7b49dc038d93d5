"""The reproduction in pieces: each is computed once, kept at once, and found again by a run that was interrupted."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import roundelay
from roundelay.comparison.runners import Dask, Task, Told, completed


@dataclass(frozen=True)
class Effort:
    """How many seeds the figures and the checks of the theory are made with; the first of them is 0.

    `gossip_share` is the part of its iterations that a gossip method makes, `tuning_share` that of the evaluations.
    """

    name: str
    seeds: int
    theory_seeds: int
    gossip_share: float = 1.0
    tuning_share: float = 1.0

    @property
    def words(self) -> str:
        """The seeds of the figures, in words."""
        return f"seeds 0 to {self.seeds - 1}, each with its own data, network and draws"


FULL = Effort("full", seeds=20, theory_seeds=5)
QUICK = Effort("quick", seeds=3, theory_seeds=1, gossip_share=0.4, tuning_share=0.5)


@dataclass(frozen=True, eq=False)
class Measured:
    """Numbers by name, and tables; verdicts and figures are made of these alone."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def write_measured(measured: Measured, path: Path) -> None:
    """Write it as JSON, with every digit; the file is there wholly or not at all."""
    content = {
        "numbers": {name: float(value) for name, value in measured.numbers.items()},
        "tables": {name: table.to_dict("list") for name, table in measured.tables.items()},
    }
    beside = path.with_suffix(f".{os.getpid()}.part")
    beside.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    os.replace(beside, path)


def read_measured(path: Path) -> Measured:
    """Read it again."""
    content = json.loads(path.read_text(encoding="utf-8"))
    tables = {name: pd.DataFrame(columns) for name, columns in content["tables"].items()}
    return Measured(content["numbers"], tables)


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
    pieces: Sequence[Piece],
    effort: Effort,
    folder: Path,
    processes: int = 2,
    report: Told | None = None,
    dask: Dask = None,
) -> Mapping[str, Measured]:
    """The results of all pieces, by name; those that `folder` holds are not computed again.

    What was kept counts only for the code and the effort it was made with. `dask` is a cluster to compute on.
    """
    kept = folder / f"{effort.name}-{code_fingerprint()}"
    for stale in folder.glob(f"{effort.name}-*"):
        if stale != kept:
            shutil.rmtree(stale, ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    missing = [piece for piece in pieces if not piece.file(kept).exists()]
    done = len(pieces) - len(missing)
    if report is not None:
        report("pieces", done, len(pieces))
    if missing:
        _compute(missing, effort, kept, processes, dask, done, len(pieces), report)
    return {piece.name: read_measured(piece.file(kept)) for piece in pieces}


def _compute(
    missing: Sequence[Piece],
    effort: Effort,
    kept: Path,
    processes: int,
    dask: Dask,
    done: int,
    total: int,
    report: Told | None,
) -> None:
    tasks = (Task(piece.work, (effort, *piece.arguments), about=piece) for piece in missing)
    with completed(tasks, processes, dask) as results:
        for result in results:
            write_measured(result.result(), result.task.about.file(kept))
            done += 1
            if report is not None:
                report("pieces", done, total)


def code_fingerprint() -> str:
    """A few letters that change with any line of the package's code."""
    digest = hashlib.sha256()
    root = Path(roundelay.__file__).parent
    for source in sorted(root.rglob("*.py")):
        digest.update(source.relative_to(root).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
