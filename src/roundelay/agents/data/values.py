"""What the cells of a column mean: numbers, with a point or a comma as the whole file has it; levels that were agreed on; and dates.

A column is looked at text by text, not row by row. What can be understood in two ways is refused. No cell is ever shown.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from roundelay.agents.data.table import Plain, Table, Texts
from roundelay.kernels import Vector
from roundelay.regression.columns import TRUTH, Column

# Texts that say that there is nothing.
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", ".", "-"})
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
WITH_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
# One point or comma and three digits behind it: a fraction to some, thousands to others.
EITHER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
# So many levels are named where one is not known.
NAMED = 20


def folded(text: str) -> str:
    """A cell with one space between words and none at the ends, and each letter in one spelling."""
    text = " ".join(text.split())
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_missing(text: str) -> bool:
    """Whether a folded cell says that there is nothing."""
    return len(text) <= 4 and text.lower() in MISSING


@dataclass(frozen=True, eq=False)
class Understood:
    """The columns of a table as numbers, in the order in which they were agreed on: levels by their number, dates by days."""

    table: Table
    agreed: tuple[Column, ...]

    def values(self) -> list[Vector]:
        """A vector each, in the agreed unit; not a number where a cell is empty."""
        comma = self.has_commas()
        return [self._vector(number, comma) for number in range(len(self.agreed))]

    def _vector(self, number: int, comma: bool) -> Vector:
        agreed, column = self.agreed[number], self.table.columns[number]
        if isinstance(column, Plain) and agreed.values == "levels":
            column = as_texts(column)
        if isinstance(column, Plain):
            if column.dates != (agreed.values == "date"):
                has, wanted = ("dates", "numbers") if column.dates else ("numbers", "dates")
                raise ValueError(
                    f'{self.table.file} has {has} in the column "{agreed}", where {wanted} were agreed on: convert it, or plan it as it is.'
                )
            return converted(column.values, agreed, self.table.headings[number].unit)
        if agreed.values == "number":
            return converted(self._numbers(number, column, comma), agreed, self.table.headings[number].unit)
        return self._levels(number, column) if agreed.values == "levels" else self._dates(number, column)

    # ------------------------------------------------------------ numbers

    def has_commas(self) -> bool:
        """Whether the numbers of this file have a comma before their fraction: where one surely has, all have."""
        pairs = [*zip(self.agreed, self.table.columns, strict=True)]
        columns = [
            number
            for number, (agreed, column) in enumerate(pairs)
            if agreed.values == "number" and isinstance(column, Texts)
        ]
        with_commas = [number for number in columns if "," in "".join(pairs[number][1].words)]  # type: ignore[union-attr]
        commas = self._first(with_commas, lambda word: WITH_COMMA.fullmatch(word) is not None)
        # Where cells stand between commas, a point can't be that of a country that writes fractions with a comma.
        if commas is None and self.table.separator not in (";", "\t"):
            return False
        points = self._first(columns, lambda word: "." in word and NUMBER.fullmatch(word) is not None)
        if commas is not None and points is not None:
            raise ValueError(
                f"{commas} has a number with a comma, and {points[:1].lower()}{points[1:]} one with a point: write the fractions of all numbers "
                "of a file with the same mark, a point, and thousands without any."
            )
        doubtful = commas or points
        if doubtful is not None:
            marks = "," if commas else "."
            sure = self._first(
                columns,
                lambda word: (
                    marks in word
                    and (WITH_COMMA if commas else NUMBER).fullmatch(word) is not None
                    and not EITHER.fullmatch(word)
                ),
            )
            if sure is None:
                raise ValueError(
                    f"{doubtful} has a number with a {'comma' if commas else 'point'} and three digits behind it, which may be a fraction or "
                    "thousands, and no other number of the file tells which: write fractions with a point and cells between commas, and "
                    "thousands without a mark."
                )
        return commas is not None

    def _first(self, columns: Iterable[int], which: Callable[[str], bool]) -> str | None:
        """Where the first text of some columns stands that is of a kind."""
        for number in columns:
            column = self.table.columns[number]
            if isinstance(column, Texts):
                found = next((code for code, word in enumerate(column.words) if which(word.strip())), None)
                if found is not None:
                    row = int(np.argmax(column.codes == found))
                    return f'{self.table.place(row)}, in the column "{self.agreed[number]}",'
        return None

    def _numbers(self, number: int, column: Texts, comma: bool) -> Vector:
        words = ["nan" if is_missing(word) else word for word in map(str.strip, column.words)]
        if comma:
            words = [word.replace(",", ".") if WITH_COMMA.fullmatch(word) else word for word in words]
        try:
            together = "".join(words)
            if not together.isascii() or "_" in together:  # Python reads 1_000 and other scripts' digits as numbers
                raise ValueError
            values = np.fromiter(map(float, words), np.float64, len(words))
        except ValueError:
            values = self._numbers_or_words(number, column, words)
        return _spread(values, column)

    def _numbers_or_words(self, number: int, column: Texts, words: Sequence[str]) -> Vector:
        values, wrong, truths = np.full(len(words), math.nan), [], []
        for code, word in enumerate(words):
            if NUMBER.fullmatch(word):
                values[code] = float(word)
            elif (truth := TRUTH.get(word.lower())) is not None:
                values[code] = truth
                truths.append(code)
            elif not is_missing(word):
                wrong.append(code)
        if wrong:
            self._refuse(
                number, column, wrong,
                "text in", "where a number belongs: write numbers with a point or a comma before the fraction, without a unit and without marks "
                "between thousands, and leave a cell empty where there is none",
            )  # fmt: skip
        if truths and not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            self._refuse(
                number,
                column,
                truths,
                "yes, no, true or false in",
                "which has numbers other than 0 and 1 as well: write numbers",
            )
        return values

    # ------------------------------------------------------------ levels

    def _levels(self, number: int, column: Texts) -> Vector:
        agreed = self.agreed[number]
        find = level_finder(agreed.levels)
        values, wrong = np.full(len(column.words), math.nan), []
        for code, word in enumerate(map(folded, column.words)):
            level = find(word)
            if level is not None:
                values[code] = level
            elif not is_missing(word):
                wrong.append(code)
        if wrong:
            known = ", ".join(agreed.levels[:NAMED]) + (" and others" if len(agreed.levels) > NAMED else "")
            self._refuse(
                number, column, wrong, "a level in",
                f"which the plan does not know: it knows {known}. Correct the cell, leave it empty, or have the plan made with that level",
            )  # fmt: skip
        return _spread(values, column)

    # ------------------------------------------------------------ dates

    def _dates(self, number: int, column: Texts) -> Vector:
        words = [folded(word) for word in column.words]
        there = [code for code, word in enumerate(words) if not is_missing(word)]
        values = np.full(len(words), math.nan)
        days, order = days_of([words[code] for code in there])
        if order is None and there:
            self._refuse(
                number, column, there, "dates in",
                "of which it can't be told what is the day and what the month: write the year first, as in 2024-02-01",
            )  # fmt: skip
        wrong = [code for code, day in zip(there, days, strict=True) if math.isnan(day)]
        if wrong:
            self._refuse(
                number, column, wrong, "something else than a date in",
                "where dates were agreed on: write them as in 2024-02-01, all in one way",
            )  # fmt: skip
        values[there] = days
        return _spread(values, column)

    def _refuse(self, number: int, column: Texts, wrong: Sequence[int], what: str, remedy: str) -> None:
        """Refuse the rows that have one of these texts; the texts themselves may be private."""
        rows = np.flatnonzero(np.isin(column.codes, wrong))
        if not len(rows):
            return
        many = f" (and {len(rows) - 1:,} more such row{'s' * (len(rows) > 2)})" if len(rows) > 1 else ""
        raise ValueError(
            f'{self.table.place(int(rows[0]))} has {what} the column "{self.agreed[number]}"{many}, {remedy}.'
        )


def _spread(values: Vector, column: Texts) -> Vector:
    """The value of each row's word; not a number where there is none."""
    return np.append(values, math.nan)[column.codes]


def converted(values: Vector, agreed: Column, unit: str) -> Vector:
    """Numbers in the agreed unit."""
    one = next((one for one in agreed.conversions if one.unit == unit and unit != agreed.unit), None)
    return values if one is None else one.factor * values + one.offset


def as_texts(column: Plain) -> Texts:
    """Numbers as texts, for a column of which they are levels."""
    known = ~np.isnan(column.values)
    words, codes = np.unique(column.values[known], return_inverse=True)
    all_codes = np.full(len(column.values), -1, np.int64)
    all_codes[known] = codes
    if column.dates:
        return Texts(all_codes, [_iso(day) for day in words.tolist()])
    return Texts(all_codes, [f"{word:.0f}" if word.is_integer() else repr(word) for word in words.tolist()])


def _iso(day: float) -> str:
    moment = str(np.datetime64(round(day * 86400.0), "s"))
    return moment.removesuffix("T00:00:00")


def level_finder(levels: Sequence[str]) -> Callable[[str], int | None]:
    """What finds the number of the level that a folded cell stands for.

    A level is spelled as it was agreed on. But 1, 1.0 and 01 are one number; and where the two levels are yes and no, or true and false,
    all four words count, and so do 1 and 0.
    """
    exact = {level: number for number, level in enumerate(levels)}
    truths = {TRUTH.get(level.lower()): number for number, level in enumerate(levels)}
    by_truth = len(levels) == 2 and set(truths) == {0.0, 1.0}
    numbers = {float(level): number for number, level in enumerate(levels) if NUMBER.fullmatch(level)}
    by_number = len(numbers) == sum(NUMBER.fullmatch(level) is not None for level in levels)

    def find(cell: str) -> int | None:
        if cell in exact:
            return exact[cell]
        value = float(cell) if NUMBER.fullmatch(cell) else None
        if by_truth:
            return truths.get(TRUTH.get(cell.lower(), value if value is not None else math.nan))
        return numbers.get(value) if by_number and value is not None else None

    return find


# ---------------------------------------------------------------- dates

_TIME = r"(?:[T ](?P<time>\d\d?:\d\d(?::\d\d(?:\.\d{1,6})?)?)Z?)?"
_MONTH = r"(?P<word>[A-Za-z]{3,9})\.?"
YEAR_FIRST = re.compile(r"(?P<year>\d{4})(?P<mark>[-/.]?)(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)" + _TIME, re.ASCII)
YEAR_LAST = re.compile(r"(?P<first>\d\d?)(?P<mark>[-/.])(?P<second>\d\d?)(?P=mark)(?P<year>\d{4})" + _TIME, re.ASCII)
DAY_MONTH = re.compile(r"(?P<day>\d\d?)\.?[ -]" + _MONTH + r"[ -](?P<year>\d{4})" + _TIME, re.ASCII)
MONTH_DAY = re.compile(_MONTH + r" (?P<day>\d\d?),? (?P<year>\d{4})" + _TIME, re.ASCII)
NAMES = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


def days_of(texts: Sequence[str]) -> tuple[list[float], bool | None]:
    """Days since 1970-01-01, not a number for what is no date; and whether days come before months, None where that can't be told.

    The year stands first, or the month is a word, or there are points: then the day comes first. Else a number above 12 at one place tells
    it for all texts.
    """
    forms = [YEAR_LAST.fullmatch(text) for text in texts]
    slashed = [found for found in forms if found is not None and found["mark"] != "."]
    day_first, month_first = (any(int(found[place]) > 12 for found in slashed) for place in ("first", "second"))
    if slashed and day_first == month_first:
        # Neither says it, or one says this and another that: then it is these that are no dates.
        return [math.nan] * len(texts), (None if not day_first else True)
    days = [_day(text, found, day_first) for text, found in zip(texts, forms, strict=True)]
    return days, day_first


def _day(text: str, last: re.Match[str] | None, day_first: bool) -> float:
    if last is not None:
        first_is_day = day_first or last["mark"] == "."
        day, month = (last["first"], last["second"]) if first_is_day else (last["second"], last["first"])
        return _days_at(last["year"], int(month), int(day), last["time"])
    found = YEAR_FIRST.fullmatch(text)
    if found is not None:
        # Without marks all eight digits are needed: 2024111 could be two dates.
        whole = found["mark"] or len(found["month"]) == len(found["day"]) == 2
        return _days_at(found["year"], int(found["month"]), int(found["day"]), found["time"]) if whole else math.nan
    worded = DAY_MONTH.fullmatch(text) or MONTH_DAY.fullmatch(text)
    if worded is None:
        return math.nan
    word = worded["word"].lower()
    month = next((number for number, name in enumerate(NAMES, 1) if word in (name, name[:3])), 0)
    return _days_at(worded["year"], month, int(worded["day"]), worded["time"])


def _days_at(year: str, month: int, day: int, time: str | None) -> float:
    """Of a day that there is, from 1800 to 2199."""
    try:
        whole = np.datetime64(f"{year}-{month:02d}-{day:02d}", "D")
    except ValueError:
        return math.nan
    parts = [*map(float, (time or "0:0").split(":")), 0.0][:3]
    if not 1800 <= int(year) < 2200 or parts[0] >= 24.0 or parts[1] >= 60.0 or parts[2] >= 60.0:
        return math.nan
    return float(whole.astype(np.int64)) + (parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]) / 86400.0
