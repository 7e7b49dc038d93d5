"""Cells from a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from roundelay.agents.cells import Cells, find_columns, wanted
from roundelay.agents.parquet_pages import largest_claim
from roundelay.agents.plan import Task
from roundelay.kernels import Vector

# Constant columns shrink without a limit, but what is fitted varies: a file that claims more is broken, or made to
# exhaust the memory. Beside that every file may claim a little.
GROWTH, ALWAYS = 1000, 2**26


def read_parquet(path: Path, task: Task) -> Cells:
    """Read the columns of the task, whichever order they stand in; a null and what is not a number are empty cells.

    By pyarrow alone: pandas would take a column away as the index where the file's notes say so.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{path} is a Parquet file, for which pyarrow is needed: install roundelay[parquet], or save it as CSV."
        ) from None
    try:
        file = parquet.ParquetFile(path, page_checksum_verification=True)  # of files that have checksums
        names, rows = [str(name) for name in file.schema_arrow.names], int(file.metadata.num_rows)
    except Exception:  # pyarrow has many kinds of them for bytes that are wrong
        raise ValueError(_broken(path)) from None
    with file:
        columns = find_columns(str(path), names, task)
        for column, sought in zip(columns, wanted(task), strict=True):
            if not _is_number(pyarrow, file.schema_arrow.field(column).type):
                raise ValueError(
                    f'{path} has something else than numbers in the column "{sought}", where numbers belong: convert it.'
                )
        sought_names = [names[column] for column in columns]
        try:
            claim = max(8 * rows * len(columns), largest_claim(path, file.metadata, sought_names))
        except Exception:
            raise ValueError(_broken(path)) from None
        if not 0 <= claim <= ALWAYS + GROWTH * path.stat().st_size:
            raise ValueError(
                f"{path} claims to hold more than a file of its size can well do: write it anew, or save it as CSV."
            )
        try:
            table = file.read(columns=sought_names, use_threads=False)
            matrix = np.column_stack([_floats(pyarrow, table.column(name)) for name in sought_names])
        except Exception:
            raise ValueError(_broken(path)) from None
    return Cells(matrix, np.arange(1, len(matrix) + 1), "row")


def _is_number(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    plain = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return any(belongs(kind) for belongs in plain)


def _floats(pyarrow: Any, column: Any) -> Vector:
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # Not "safe": a whole number beyond 2⁵³ is rounded, as it is where it is read from CSV.
    return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(), np.float64)


def _broken(path: Path) -> str:
    return f"{path} can't be read as Parquet, so it is broken or something else: write it anew, or save it as CSV."
