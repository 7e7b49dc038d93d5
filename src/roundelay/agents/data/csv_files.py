"""Tables from CSV: UTF-8, a header, and cells between commas, semicolons or tabs.

Where cells begin and end is found on the bytes of the whole file at once; pandas then reads what is known to be whole. So a row that is cut
short is told from one with empty cells, and every row has the number of its line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.data.table import Choose, Table, Texts, texts_of
from roundelay.regression.columns import Column, columns_in

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# Before UTF-8 spreadsheets put a mark.
MARK = b"\xef\xbb\xbf"
QUOTE = ord('"')
Places = NDArray[np.int64]


def read_csv_table(path: Path, choose: Choose) -> Table:
    """The chosen columns of a CSV file."""
    content = path.read_bytes().removeprefix(MARK)
    _check_text(str(path), content)
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    letters = _Letters(str(path), content)
    letters.check_quotes("".join(SEPARATORS))  # or there would be no telling what is a row
    rows = _cut(letters, choose)
    letters.check_quotes(rows.separator)
    if not len(rows.begins):
        raise ValueError(f"{path} is empty: it needs a first line that names the columns, and a line for each row.")
    chosen = choose(rows.headings)
    rows.check_cells()
    kept = tuple(rows.headings[number] for number in chosen)
    return Table(str(path), kept, tuple(rows.columns(chosen)), rows.lines[1:], "line", rows.separator)


def _check_text(file: str, content: bytes) -> None:
    try:
        if b"\0" in content or (not content.isascii() and not content.decode()):
            raise ValueError
    except ValueError:
        raise ValueError(f'{file} is not UTF-8 text: save it again as "CSV UTF-8".') from None


def _cut(letters: _Letters, choose: Choose) -> _Rows:
    """The rows, cut by what the header has between its cells.

    Where it has several marks, that one is meant that gives all rows as many cells; and of several such marks the one with which the header
    has the columns that are wanted.
    """
    found = [rows for mark in SEPARATORS if (rows := _Rows(letters, mark)).width > 1]
    if not found:
        return _Rows(letters, ",")
    meant = found
    if len(meant) > 1:
        meant = [rows for rows in found if rows.is_even]
    if len(meant) > 1:
        meant = [rows for rows in meant if _has(rows, choose)]
    if len(meant) != 1:
        names = " and ".join(SEPARATORS[rows.separator] for rows in found)
        raise ValueError(
            f"The header of {letters.file} has {names}, and it can't be told which of them separate the columns: put every name that has "
            "such a mark in it in quotation marks."
        )
    return meant[0]


def _has(rows: _Rows, choose: Choose) -> bool:
    try:
        choose(rows.headings)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class _Letters:
    """The bytes of a file."""

    file: str
    content: bytes

    @cached_property
    def array(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.content, np.uint8)

    def all(self, letter: str) -> Places:
        """Where a letter stands."""
        return np.flatnonzero(self.array == ord(letter))

    @cached_property
    def quotes(self) -> Places:
        """Of the quotation marks every second one closes what the one before has opened; so two together are one in a text."""
        return self.all('"')

    @cached_property
    def line_ends(self) -> Places:
        return self.all("\n")

    def outside(self, letter: str) -> Places:
        """Where a letter stands outside quotation marks."""
        places = self.all(letter)
        return places[np.searchsorted(self.quotes, places) % 2 == 0] if len(self.quotes) else places

    def line_of(self, places: Places) -> Places:
        return np.searchsorted(self.line_ends, places) + 1

    def at(self, places: Places) -> NDArray[np.uint8]:
        """The letters at some places; before the first and behind the last a line ends."""
        inside = (places >= 0) & (places < len(self.array))
        return np.where(inside, self.array[np.where(inside, places, 0)], np.uint8(ord("\n")))

    def check_quotes(self, separators: str) -> None:
        """A quotation mark opens a cell, closes it, or stands twice for one in a text."""
        if not len(self.quotes):
            return
        around = (*map(ord, separators), ord("\n"), QUOTE)
        opening, closing = self.quotes[::2], self.quotes[1::2]
        wrong = ~np.isin(self.at(opening - 1), around)
        wrong[: len(closing)] |= ~np.isin(self.at(closing + 1), around)
        wrong[len(closing) :] = True
        if wrong.any():
            line = self.line_of(opening)[np.argmax(wrong)]
            raise ValueError(
                f"{self.file} can't be read as CSV from line {line} on: look for a quotation mark that is not closed, or that stands within a "
                "cell, where it is written twice and the cell stands in quotation marks."
            )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a file that are not blank, the header first, as a separator cuts them into cells."""

    letters: _Letters
    separator: str

    @cached_property
    def _bounds(self) -> tuple[Places, Places]:
        content, array = self.letters.content, self.letters.array
        ends = self.letters.outside("\n")
        if content and not content.endswith(b"\n"):
            ends = np.append(ends, len(content))
        begins = np.append(0, ends[:-1] + 1)[: len(ends)]
        full, first = np.ones(len(ends), bool), array[np.minimum(begins, len(array) - 1)]
        blank = b" \t".replace(self.separator.encode(), b"")
        for row in np.flatnonzero(np.isin(first, tuple(b" \t\n"))):
            full[row] = bool(content[begins[row] : ends[row]].strip(blank))
        return begins[full], ends[full]

    @property
    def begins(self) -> Places:
        return self._bounds[0]

    @cached_property
    def lines(self) -> Places:
        """On which line each begins."""
        return self.letters.line_of(self.begins)

    @cached_property
    def counts(self) -> Places:
        """How many cells each has."""
        places, (begins, ends) = self.letters.outside(self.separator), self._bounds
        return np.searchsorted(places, ends) - np.searchsorted(places, begins) + 1

    @property
    def width(self) -> int:
        """How many cells the header has."""
        return int(self.counts[0]) if len(self.counts) else 0

    @property
    def is_even(self) -> bool:
        return bool((self.counts == self.width).all())

    @cached_property
    def headings(self) -> tuple[Column, ...]:
        """What the header says of each column."""
        begin, end = (places[0] for places in self._bounds)
        text = self.letters.content[begin:end].decode()
        try:
            header = next(csv.reader(io.StringIO(text, newline=""), delimiter=self.separator))
        except csv.Error:
            raise ValueError(
                f"The header of {self.letters.file} can't be read: name every column in the first line."
            ) from None
        return columns_in(header, self.letters.file)

    def check_cells(self) -> None:
        if self.is_even:
            return
        row = int(np.argmax(self.counts != self.width))
        has, mark = int(self.counts[row]), {",": "a comma", ";": "a semicolon", "\t": "a tab"}[self.separator]
        what = "Numbers are written with a point, and text" if self.separator == "," else "Text"
        raise ValueError(
            f"Line {self.lines[row]} of {self.letters.file} has {has} cell{'s' * (has != 1)}, but its header has {self.width}: complete the line. "
            f"{what} with {mark} in it stands in quotation marks."
        )

    def columns(self, chosen: Sequence[int]) -> list[Texts]:
        """Some of the columns, without the header."""
        import pandas as pd

        if len(self.begins) == 1:
            return [Texts(np.zeros(0, np.int64), ()) for _ in chosen]
        rows = io.BytesIO(memoryview(self.letters.content)[self.begins[1] :])
        frame = pd.read_csv(
            rows, sep=self.separator, header=None, usecols=sorted(chosen), dtype=str, na_filter=False, low_memory=False
        )
        if len(frame) != len(self.begins) - 1:
            raise ValueError(
                f"{self.letters.file} can't be read as CSV: it has {len(self.begins) - 1:,} rows by their ends and {len(frame):,} by their cells. "
                "Save it again."
            )
        return [texts_of(frame[number]) for number in chosen]
