"""The cells of a data file that a task asks for, and the header that says where they stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.plan import Column, Task
from roundelay.kernels import Matrix

UNIT = re.compile(r"(?P<name>.*?)\s*\[(?P<unit>[^\[\]]*)\]", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Cells:
    """One row a record: the features in the task's order, then the target; not a number where a cell is empty.

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


def column_of(heading: str) -> Column:
    """What a cell of the header says: "age [years]" is the age in years."""
    heading = " ".join(heading.split())
    found = UNIT.fullmatch(heading)
    return Column(found["name"], found["unit"].strip()) if found else Column(heading)


def find_columns(file: str, header: Sequence[str], task: Task) -> list[int]:
    """The number of each column in the header, in the order of `Cells`."""
    present = [column_of(heading) for heading in header]
    return [_find(file, present, column) for column in wanted(task)]


def _find(file: str, present: list[Column], column: Column) -> int:
    # Read as a heading too, so that a name that has brackets itself meets its own kind.
    sought = column_of(str(column))
    numbers = [number for number, other in enumerate(present) if other.name == sought.name]
    # What else stands in the header is not shown: where it was forgotten, that is the first record.
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
