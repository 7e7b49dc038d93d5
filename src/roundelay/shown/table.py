"""A table as data, and as text; what is printed, typeset and shown in a notebook or a report is made of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.shown.numbers import UNKNOWN, aligned, fixed, is_number, printable, short

if TYPE_CHECKING:
    import pandas as pd

# A column whose numbers are further apart, or smaller, is written by powers of ten; whole ones up to this size as they are.
MANY_SIZES, SMALLEST, LARGEST_WHOLE = 1e4, 1e-3, 1e12
# What stands in a line at most, where words can be broken.
WIDTH = 92
GAP = "   "


@dataclass(frozen=True)
class Table:
    """A table: its cells as they are shown, the first `words` of each row being words and the others numbers; 0 where that is to be seen."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    words: int = 1

    def aligned(self, blank: str = " ", point: str = " ") -> tuple[tuple[str, ...], ...]:
        """The rows, each column of numbers with its points one below the other."""
        columns = [
            cells if place < self.words else aligned(cells, blank, point)
            for place, cells in enumerate(zip(*self.rows, strict=True))
        ]
        return tuple(zip(*columns, strict=True))

    def is_of_words(self, place: int) -> bool:
        """Whether a column holds words, which stand at the left."""
        cells = {row[place] for row in self.rows} - {"", UNKNOWN}
        return place < self.words if self.words else bool(cells) and not any(map(is_number, cells))


def table_of(frame: pd.DataFrame, name: str = "table", title: str = "", caption: str = "", digits: int = 4) -> Table:
    """The columns of a data frame, numbers to so many digits."""
    columns = [_column(list(frame.iloc[:, place]), digits) for place in range(len(frame.columns))]
    return Table(name, title, tuple(map(str, frame.columns)), tuple(zip(*columns, strict=True)), caption, words=0)


def _column(values: list[Any], digits: int) -> list[str]:
    """Cells of one kind: whole numbers, numbers of the same size with the same decimals, or powers of ten, or words."""
    if not all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        return [_word(value) for value in values]
    numbers = [float(value) for value in values]
    known = [abs(number) for number in numbers if math.isfinite(number) and number]
    if all(number.is_integer() for number in known) and max(known, default=0.0) < LARGEST_WHOLE:
        return [fixed(number, 0) for number in numbers]
    if max(known) > MANY_SIZES * min(known) or min(known) < SMALLEST:
        return [_power(number, digits - 1) for number in numbers]
    decimals = max(digits - 1 - math.floor(math.log10(min(known))), 0)
    cells = [fixed(number, decimals) for number in numbers]
    ends = [len(cell) - len(cell.rstrip("0")) for cell in cells if "." in cell]
    spare = min(min(ends, default=0), max(decimals - 1, 0))
    return [cell[:-spare] if spare and "." in cell else cell for cell in cells]


def _power(number: float, decimals: int) -> str:
    if not math.isfinite(number) or not number:
        return fixed(number, 0)
    factor, _, power = f"{number:.{decimals}e}".partition("e")
    return f"{factor}e{int(power)}".replace("-", "−")


def _word(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.number):
        return short(float(value))
    return UNKNOWN if value is None else str(value)


def printed_table(table: Table) -> str:
    """Words at the left, numbers at the right, their points one below the other."""
    rows = [[*map(printable, row)] for row in (table.header, *table.aligned())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = (
        GAP.join(
            f"{cell:{'<' if place < table.words else '>'}{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    rule = "─" * max(map(len, (head, *body)))
    caption = [in_lines(table.caption, "")] if table.caption else []
    return "\n".join([table.title, rule, head, rule, *body, rule, *caption])


def in_lines(words: str, head: str) -> str:
    """Words broken into lines, the first of which begins with `head`."""
    return "\n".join(
        wrap(printable(words), WIDTH, initial_indent=head, subsequent_indent=" " * min(len(head), 18)) or [head]
    )
