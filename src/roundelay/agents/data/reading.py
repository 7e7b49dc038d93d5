"""A site's own rows, read from its data file and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.agreement.plan import Missing, Task
from roundelay.agents.data.csv_files import read_csv_table
from roundelay.agents.data.parquet import read_parquet_table
from roundelay.agents.data.table import Choose, Table, find_columns
from roundelay.agents.data.values import Understood
from roundelay.kernels import Matrix, Vector
from roundelay.problems.rows import LARGEST
from roundelay.regression.columns import Column
from roundelay.regression.regression import Regression
from roundelay.regression.rows import SiteRows, Written

if TYPE_CHECKING:
    import pandas as pd

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
    """Read the rows of a task without a formula: all its columns are numbers.

    A heading is a name, or "name [unit]". Columns may stand in any order, and those that the task does not name are
    left alone. What does not fit is refused with the place where it stands, but without the value: that is private.
    """
    if task.target is None:
        raise ValueError("A task of the kind custom has no columns: give the objective, not a data file.")
    columns = tuple(Column(column.name, column.unit) for column in (*task.features, task.target))
    table, cells, left = _complete(Path(path), columns, task.missing)
    features, target = np.ascontiguousarray(cells[:, :-1]), cells[:, -1].copy()
    if task.problem.needs_labels:
        target = labels_in(table, target, task)
    for values in (features, target):
        values.setflags(write=False)
    return OwnRows(features, target, left.rows)


def read_site_rows(path: str | Path, regression: Regression, missing: Missing = "refuse") -> SiteRows:
    """Read the rows of a regression, and nothing of columns that it does not name."""
    frame, left = read_frame(path, regression.columns, missing)
    return SiteRows(regression, frame, left.rows, left.by_column, left.converted, left.as_written)


def read_frame(path: str | Path, columns: Sequence[Column], missing: Missing = "refuse") -> tuple[pd.DataFrame, Left]:
    """Read columns as they were agreed on: numbers, levels of which each is known, and dates as days since 1970-01-01.

    The index says on which line, or in which row, of the file each row stands.
    """
    import pandas as pd

    table, cells, left = _complete(Path(path), columns, missing)
    made: dict[str, Any] = {}
    for number, column in enumerate(columns):
        values = cells[:, number]
        if column.values == "levels":
            made[column.name] = pd.Categorical.from_codes(
                values.astype(np.int64), pd.Index(column.levels, dtype=object)
            )
        else:
            made[column.name] = values
    return pd.DataFrame(made, index=pd.Index(table.places, name=table.counted_in)), left


def read_table(path: Path, choose: Choose) -> Table:
    """The chosen columns of a data file, CSV or Parquet, as they stand in it."""
    try:
        return read_parquet_table(path, choose) if _is_parquet(path) else read_csv_table(path, choose)
    except OSError as error:
        raise ValueError(f"{path} can't be opened ({error.strerror}): check the path and who may read it.") from None
    except MemoryError:
        raise ValueError(f"{path} does not fit into the memory: give fewer rows or columns.") from None


def _is_parquet(path: Path) -> bool:
    with open(path, "rb") as file:
        return path.suffix.lower() in PARQUET or file.read(4) == b"PAR1"


class Left(NamedTuple):
    """How many rows were left out for an empty cell, how many of them for one in each column, and in words which columns were converted.

    `as_written` has these columns of the other rows as they were before.
    """

    rows: int
    by_column: tuple[int, ...]
    converted: tuple[str, ...]
    as_written: Mapping[str, Written]


def _complete(path: Path, columns: Sequence[Column], missing: Missing) -> tuple[Table, Matrix, Left]:
    """The rows without an empty cell: where they stand, the columns as numbers, and how many others there were."""
    table = read_table(path, lambda header: find_columns(str(path), header, columns))
    cells = np.column_stack(Understood(table, tuple(columns)).values())
    gaps = gaps_in(table, cells, columns, missing)
    keep: NDArray[np.bool_] = np.logical_not(gaps.any(axis=1))
    if not keep.any():
        dropped = f" without an empty cell: all {keep.size} were dropped" if keep.size else ""
        raise ValueError(f"{path} has no rows{dropped}. Give at least one row, or leave the ring.")
    kept = replace(table, columns=(), places=table.places[keep])
    by_column = tuple(gaps.sum(axis=0).tolist())
    return kept, cells[keep], Left(int((~keep).sum()), by_column, *_converted(table, columns, keep))


def gaps_in(table: Table, cells: Matrix, columns: Sequence[Column], missing: Missing) -> NDArray[np.bool_]:
    """Where cells are empty, if that may be; numbers that nobody can compute with are refused."""
    _refuse_large(table, cells, columns)
    gaps = np.isnan(cells)
    if gaps.any() and missing == "refuse":
        raise ValueError(_about_gaps(table, gaps, columns))
    return gaps


def _converted(
    table: Table, columns: Sequence[Column], keep: NDArray[np.bool_]
) -> tuple[tuple[str, ...], dict[str, Written]]:
    """Which columns were converted, in words, and what they were."""
    found = [
        (number, f"{column} {one}")
        for number, (heading, column) in enumerate(zip(table.headings, columns, strict=True))
        for one in column.conversions
        if one.unit == heading.unit != column.unit
    ]
    plain = Understood(table, tuple(replace(column, conversions=()) for column in columns)).values() if found else []
    as_written = {
        columns[number].name: Written(table.headings[number].unit, plain[number][keep]) for number, _ in found
    }
    return tuple(words for _, words in found), as_written


def _refuse_large(table: Table, cells: Matrix, columns: Sequence[Column]) -> None:
    bad = np.abs(cells) > LARGEST
    if bad.any():
        row, column = np.argwhere(bad)[0]
        infinite = np.isinf(cells[row, column])
        what = "a number that is not finite" if infinite else f"a number beyond {LARGEST:g}"
        remedy = (
            "correct it, or leave the cell empty" if infinite else "correct it, or give the column in a larger unit"
        )
        raise ValueError(f'{table.place(row)} has {what} in the column "{columns[column]}": {remedy}.')


def _about_gaps(table: Table, gaps: NDArray[np.bool_], columns: Sequence[Column]) -> str:
    first = [
        f'"{columns[column]}" in {table.counted_in} {table.places[row]}' for row, column in np.argwhere(gaps)[:NAMED]
    ]
    count, rows = int(gaps.sum()), int(gaps.any(axis=1).sum())
    cells_are = "1 empty cell" if count == 1 else f"{count} empty cells in {rows} row{'s' if rows > 1 else ''}"
    more = ", and so on" if count > NAMED else ""
    return (
        f"{table.file} has {cells_are}: {', '.join(first)}{more}. Fill them in or take the rows out, or let the ring agree on "
        'missing = "drop", which leaves such rows out at every site.'
    )


def labels_in(table: Table, labels: Vector, task: Task) -> Vector:
    """−1 and 1, however they are written."""
    strange = ~np.isin(labels, (-1.0, 0.0, 1.0))
    if strange.any():
        raise ValueError(
            f'{table.place(int(np.argmax(strange)))} has a number in the column "{task.target}" that is not a label: '
            f"{task.problem.model} needs 0 and 1, or -1 and 1, or false and true."
        )
    if (labels == 0.0).any() and (labels == -1.0).any():
        raise ValueError(
            f'{table.place(int(np.argmax(labels == -1.0)))} has -1 in the column "{task.target}", and others have 0: '
            "use 0 and 1, or -1 and 1, not both."
        )
    return np.where(labels == 1.0, 1.0, -1.0)
