"""A column of the data: its name, its unit, and what kind of values it has, as all sites have agreed."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

# Words for what is false and what is true.
TRUTH = {"false": 0.0, "no": 0.0, "true": 1.0, "yes": 1.0}
# A number; one of some levels, in words; a date, which counts as days since 1970-01-01.
Values = Literal["number", "levels", "date"]


class Conversion(NamedTuple):
    """How numbers in another unit become those in the agreed one: factor·x + offset."""

    unit: str
    factor: float
    offset: float = 0.0

    def __str__(self) -> str:
        """As from lb by 0.45·x."""
        offset = f" {self.offset:+g}" if self.offset else ""
        return f"from {self.unit or 'no unit'} by {self.factor:g}·x{offset}"


@dataclass(frozen=True)
class Column:
    """A column of the data: `name`, and the `unit` in which all sites must give it ("" where there is none).

    `values` says what stands in it, and `levels` has the words of a column of levels, the reference level first. Data in a unit of which
    `conversions` has one are converted. Two columns are the same where name and unit are: what kind of values it has is agreed on, once
    all sites have said what they have.
    """

    name: str
    unit: str = ""
    values: Values = field(default="number", compare=False)
    levels: tuple[str, ...] = field(default=(), compare=False)
    conversions: tuple[Conversion, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        """As it stands in the header of a data file: name [unit]."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def in_words(self) -> str:
        """As it was agreed on, for people."""
        if self.values == "levels":
            return f"{self}: {', '.join([f'{self.levels[0]} (the reference)', *self.levels[1:]])}"
        return "; ".join([f"{self}: {'dates' if self.values == 'date' else 'numbers'}", *map(str, self.conversions)])

    def takes(self, unit: str) -> bool:
        """Whether data in a unit are those of this column, or can be made so."""
        return unit in (self.unit, *(one.unit for one in self.conversions))


def in_order(levels: Iterable[str]) -> tuple[str, ...]:
    """Levels in the order in which all sites have them: numbers by their value, then words by the alphabet."""
    return tuple(sorted(set(levels), key=_by_number))


def _by_number(word: str) -> tuple[bool, float, str, str]:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    return (True, 0.0, word.casefold(), word) if math.isnan(value) else (False, value, "", word)


_HEADING = re.compile(r"(?P<name>.*?) ?\[(?P<unit>[^\[\]]*)\]")


def column_of(heading: str) -> Column:
    """The column that a cell of a header names: "age [years]" is the age in years. Any space counts as one, and each letter has one spelling."""
    heading = unicodedata.normalize("NFC", " ".join(heading.split()))
    found = _HEADING.fullmatch(heading)
    column = Column(found["name"], found["unit"].strip()) if found else Column(heading)
    if not column.name:
        raise ValueError('A column has no name: write one, with the unit behind it, as in "age [years]".')
    return column


def columns_in(header: Sequence[str], file: str) -> tuple[Column, ...]:
    """The columns that a header names. The cells are not shown: where the header was forgotten, they are the first row."""
    columns = []
    for number, heading in enumerate(header, start=1):
        try:
            columns.append(column_of(heading))
        except ValueError as error:
            raise ValueError(f"The header of {file} can't be used at column {number}. {error}") from None
    return tuple(columns)
