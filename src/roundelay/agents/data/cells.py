"""The cells of a data file in the columns of a task, and how they are read from CSV: UTF-8, commas, a header, a point."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.agreement.plan import Column, Task, column_of, columns_in
from roundelay.kernels import Matrix

if TYPE_CHECKING:
    from _csv import Reader

NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.ASCII)
# Words that stand for numbers. An empty cell is not a number.
WORDS = {"": math.nan, "true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class Cells:
    """The rows of a file: in each the features in the task's order, then the target; not a number where a cell is empty.

    `places` says where each row stands in the file: the number of its line or row, from 1, as `counted_in` says.
    """

    values: Matrix
    places: NDArray[np.int64]
    counted_in: str


def wanted(task: Task) -> tuple[Column, ...]:
    """The columns of a task, in the order of `Cells`."""
    if task.target is None:
        raise ValueError("A task of the kind custom has no columns: give the objective, not a data file.")
    return (*task.features, task.target)


def find_columns(file: str, header: Sequence[str], task: Task) -> list[int]:
    """The number of each column in the header, in the order of `Cells`."""
    present = columns_in(header, file)
    return [_find(file, present, column) for column in wanted(task)]


def _find(file: str, present: Sequence[Column], column: Column) -> int:
    # Read as a heading too, so that a name that has brackets itself meets its own kind.
    sought = column_of(str(column))
    numbers = [number for number, other in enumerate(present) if other.name == sought.name]
    # What else stands in the header is not shown: where it was forgotten, that is the first row.
    if not numbers:
        raise ValueError(
            f'{file} has no column "{column}": its first line must name the columns, each as "name [unit]", and this one '
            "among them. Rename or add it."
        )
    if len(numbers) > 1:
        raise ValueError(
            f'{file} has the column "{column.name}" {len(numbers)} times: keep the one that is meant, and rename the others.'
        )
    given = present[numbers[0]].unit
    if given != sought.unit:
        raise ValueError(
            f'{file} gives the column "{column.name}" {_in_unit(given)}, but the ring has agreed to have it '
            f'{_in_unit(sought.unit)}: convert the numbers, and name the column "{column}".'
        )
    return numbers[0]


def _in_unit(unit: str) -> str:
    return f'in "{unit}"' if unit else "without a unit"


def read_csv(path: Path, task: Task) -> Cells:
    """Read the columns of the task, whichever order they stand in.

    By Python's own reader: it tells a row that is cut short from one with empty cells, and knows the line of each.
    """
    try:
        # The signature is a mark that spreadsheets put before UTF-8.
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _cells(str(path), csv.reader(file, strict=True), task)
    except UnicodeDecodeError:
        raise ValueError(f'{path} is not UTF-8 text: save it again as "CSV UTF-8".') from None


def _cells(file: str, reader: Reader, task: Task) -> Cells:
    rows = _rows(file, reader)
    _, header = next(rows, (0, []))
    if not header:
        raise ValueError(f"{file} is empty: it needs a first line that names the columns, and a line for each row.")
    try:
        columns = find_columns(file, header, task)
    except ValueError as error:
        separator = next((mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]), None)
        if separator is None:
            raise
        name = {";": "semicolons", "\t": "tabs"}[separator]
        raise ValueError(
            f"{file} separates its columns by {name}: save it with commas, and numbers with a point."
        ) from error
    numbers, lines = array("d"), array("q")
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"Line {line} of {file} has {len(row)} cells, but its header has {len(header)}: complete the line. Numbers are "
                "written with a point, and text with a comma in it stands in quotation marks."
            )
        numbers.extend(_numbers(file, line, [row[column] for column in columns], task))
        lines.append(line)
    values = np.frombuffer(numbers, np.float64) if numbers else np.empty(0)
    return Cells(values.reshape(-1, len(columns)), np.array(lines, np.int64), "line")


def _rows(file: str, reader: Reader) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not blank, with the line on which it begins."""
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{file} can't be read as CSV from line {line} on ({error}): look for a quotation mark that is not closed."
            ) from None
        if len(row) > 1 or any(cell.strip() for cell in row):
            yield line, row


def _numbers(file: str, line: int, cells: list[str], task: Task) -> list[float]:
    together = "".join(cells)
    if together.isascii() and "_" not in together:  # Python reads 1_000 and other scripts' digits as numbers
        try:
            return [float(cell) for cell in cells]
        except ValueError:
            pass
    return [_number(file, line, cell, number, task) for number, cell in enumerate(cells)]


def _number(file: str, line: int, cell: str, number: int, task: Task) -> float:
    text = cell.strip().lower()
    if NUMBER.fullmatch(text):
        return float(text)
    if text in WORDS:
        return WORDS[text]
    # The cell itself is not shown: it may be private.
    raise ValueError(
        f'Line {line} of {file} has text in the column "{wanted(task)[number]}", where a number belongs: write numbers with '
        "a point and without a unit, and leave a cell empty where there is none."
    )
