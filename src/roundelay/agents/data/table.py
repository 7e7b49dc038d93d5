"""The columns of a data file as they stand in it: texts, numbers or dates, with the place of each row, and before anything is understood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Vector
from roundelay.regression.columns import Column, column_of

if TYPE_CHECKING:
    import pandas as pd

# Which columns of a file are read, and in which order: of what its header names, the numbers.
Choose = Callable[[tuple[Column, ...]], Sequence[int]]


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: each of the `words` once, and for each row the number of its word; −1 where there is nothing."""

    codes: NDArray[np.int64]
    words: Sequence[str]


@dataclass(frozen=True, eq=False)
class Plain:
    """A column that the file itself holds as numbers or, with `dates`, as days since 1970-01-01; not a number where there is nothing."""

    values: Vector
    dates: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """The chosen columns of a file: what its header says of each, and what stands in it.

    `places` says where each row stands in the file: the number of its line or row, from 1, as `counted_in` says. `separator` is what stands
    between the cells, "" where nothing does.
    """

    file: str
    headings: tuple[Column, ...]
    columns: tuple[Texts | Plain, ...]
    places: NDArray[np.int64]
    counted_in: str
    separator: str = ""

    def place(self, row: int) -> str:
        """A row, as a sentence calls it."""
        return f"{self.counted_in.capitalize()} {self.places[row]} of {self.file}"


def texts_of(cells: pd.Series) -> Texts:
    """The texts of a column of strings."""
    import pandas as pd

    codes, words = pd.factorize(cells.to_numpy())
    return Texts(codes.astype(np.int64), words.tolist())


def find_columns(file: str, present: Sequence[Column], sought: Sequence[Column]) -> list[int]:
    """The number of each column that is sought among those that a header names."""
    return [_find(file, present, column) for column in sought]


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
    if given != sought.unit and not column.takes(given):
        known = [f'"{one.unit}"' for one in column.conversions]
        also = f" (and converts it from {', '.join(known)})" if known else ""
        raise ValueError(
            f'{file} gives the column "{column.name}" {_in_unit(given)}, but the ring has agreed to have it '
            f'{_in_unit(sought.unit)}{also}: convert the numbers, and name the column "{column}".'
        )
    return numbers[0]


def _in_unit(unit: str) -> str:
    return f'in "{unit}"' if unit else "without a unit"
