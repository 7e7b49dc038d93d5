"""A site's own rows, read from its data file and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.agreement.plan import Task
from roundelay.agents.data.cells import Cells, read_csv, wanted
from roundelay.agents.data.parquet import read_parquet
from roundelay.kernels import Matrix, Vector
from roundelay.problems.rows import LARGEST

PARQUET = (".parquet", ".pq")
# So many empty cells are named; the others are counted.
NAMED = 3


@dataclass(frozen=True, eq=False)
class OwnRows:
    """What a site has: `features` (n, p), `target` (n,), and how many rows were `dropped` for an empty cell.

    The features stand in the task's order, in the units of the file. A label is −1 or 1.
    """

    features: Matrix
    target: Vector
    dropped: int = 0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.target)


def read_own_rows(path: str | Path, task: Task) -> OwnRows:
    """Read a data file: CSV (UTF-8, commas, a header) or Parquet.

    A heading is a name, or "name [unit]". Columns may stand in any order, and those that the task does not name are
    left alone. What does not fit is refused with the place where it stands, but without the value: that is private.
    """
    path = Path(path)
    wanted(task)
    try:
        cells = read_parquet(path, task) if _is_parquet(path) else read_csv(path, task)
    except OSError as error:
        raise ValueError(f"{path} can't be opened ({error.strerror}): check the path and who may read it.") from None
    except MemoryError:
        raise ValueError(f"{path} does not fit into the memory: give fewer rows or columns.") from None
    _refuse_large(path, cells, task)
    gaps = np.isnan(cells.values)
    if gaps.any() and task.missing == "refuse":
        raise ValueError(_about_gaps(path, cells, gaps, task))
    keep = np.logical_not(gaps.any(axis=1))
    if not keep.any():
        dropped = f" without an empty cell: all {len(keep)} were dropped" if len(keep) else ""
        raise ValueError(f"{path} has no rows{dropped}. Give at least one row, or leave the ring.")
    kept = Cells(cells.values[keep], cells.places[keep], cells.counted_in)
    features, target = np.ascontiguousarray(kept.values[:, :-1]), kept.values[:, -1].copy()
    if task.problem.needs_labels:
        target = _labels(path, kept, task)
    for values in (features, target):
        values.setflags(write=False)
    return OwnRows(features, target, int((~keep).sum()))


def _is_parquet(path: Path) -> bool:
    with open(path, "rb") as file:
        return path.suffix.lower() in PARQUET or file.read(4) == b"PAR1"


def _refuse_large(path: Path, cells: Cells, task: Task) -> None:
    bad = np.abs(cells.values) > LARGEST
    if bad.any():
        row, column = np.argwhere(bad)[0]
        infinite = np.isinf(cells.values[row, column])
        what = "a number that is not finite" if infinite else f"a number beyond {LARGEST:g}"
        remedy = (
            "correct it, or leave the cell empty" if infinite else "correct it, or give the column in a larger unit"
        )
        raise ValueError(f'{_place(path, cells, row)} has {what} in the column "{wanted(task)[column]}": {remedy}.')


def _about_gaps(path: Path, cells: Cells, gaps: NDArray[np.bool_], task: Task) -> str:
    first = [
        f'"{wanted(task)[column]}" in {cells.counted_in} {cells.places[row]}'
        for row, column in np.argwhere(gaps)[:NAMED]
    ]
    count, rows = int(gaps.sum()), int(gaps.any(axis=1).sum())
    cells_are = "1 empty cell" if count == 1 else f"{count} empty cells in {rows} row{'s' if rows > 1 else ''}"
    more = ", and so on" if count > NAMED else ""
    return (
        f"{path} has {cells_are}: {', '.join(first)}{more}. Fill them in or take the rows out, or let the ring agree on "
        'missing = "drop", which leaves such rows out at every site.'
    )


def _labels(path: Path, cells: Cells, task: Task) -> Vector:
    labels = cells.values[:, -1]
    strange = ~np.isin(labels, (-1.0, 0.0, 1.0))
    if strange.any():
        raise ValueError(
            f'{_place(path, cells, int(np.argmax(strange)))} has a number in the column "{task.target}" that is not a label: '
            f"{task.problem.model} needs 0 and 1, or -1 and 1, or false and true."
        )
    if (labels == 0.0).any() and (labels == -1.0).any():
        raise ValueError(
            f'{_place(path, cells, int(np.argmax(labels == -1.0)))} has -1 in the column "{task.target}", and others have 0: '
            "use 0 and 1, or -1 and 1, not both."
        )
    return np.where(labels == 1.0, 1.0, -1.0)


def _place(path: Path, cells: Cells, row: int) -> str:
    return f"{cells.counted_in.capitalize()} {cells.places[row]} of {path}"
