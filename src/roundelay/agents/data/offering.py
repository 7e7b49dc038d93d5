"""What a site says of its columns to the others: what kind of values each has, and of words those that are no secret.

A word is told where many rows have it and the column has few words. So names, numbers of patients and free text are not told, nor is it told
that somebody has what few have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roundelay.agents.agreement.invitations import LONGEST_LEVEL, TOLD_LEVELS, can_be_told, refuse_same_names
from roundelay.agents.data.parquet import headings_of, table_of_batch
from roundelay.agents.data.reading import read_table
from roundelay.agents.data.table import Choose, Plain, Table, Texts
from roundelay.agents.data.values import NUMBER, WITH_COMMA, Understood, as_texts, days_of, folded, is_missing
from roundelay.regression.columns import TRUTH, Column, in_order

# So many different whole numbers may be codes of something, which are told as words are.
TOLD_NUMBERS = 10


@dataclass(frozen=True)
class Offer:
    """The columns that a site offers, as the others are told, and what the site itself should know of them, in sentences."""

    columns: tuple[Column, ...]
    notes: tuple[str, ...]


def offer(path: str | Path, least: int, names: Sequence[str] = ()) -> Offer:
    """What is in a data file, all of it or the columns of some names; words that fewer than `least` rows have are not told."""
    path = Path(path)

    def choose(header: tuple[Column, ...]) -> list[int]:
        refuse_same_names(header, str(path))
        known = [column.name for column in header]
        for name in names:
            if name not in known:
                raise ValueError(f"There is no column {name!r} in {path}: its columns are {', '.join(known)}.")
        return [number for number, name in enumerate(known) if not names or name in names]

    table, partly = _first_rows(path, choose) if path.is_dir() else (read_table(path, choose), [])
    if not len(table.places):
        raise ValueError(
            f"{path} has no rows: give at least one, so that it can be said what kind of values its columns have."
        )
    columns, notes = [], []
    for number in range(len(table.columns)):
        column, said = _described(table, number, least)
        columns += [] if column is None else [column]
        notes += said
    return Offer(tuple(columns), (*notes, *_doubts(table, columns), *partly))


def _first_rows(path: Path, choose: Choose) -> tuple[Table, list[str]]:
    """Of a folder that is read by batches, its first part, and what is to be known of that."""
    import pyarrow

    from roundelay.batches import open_folder

    folder = open_folder(path)
    first = folder.parts[0]
    names, headings, _ = headings_of(Path(first.path), choose)
    whole = pyarrow.Table.from_batches(list(first.batches(names))).select(list(names)).combine_chunks()
    said = [f"What is said of the columns goes by the first {first.rows:,} of {folder.rows:,} rows."]
    return table_of_batch(whole.to_batches()[0], first.path, headings, first.first), said * (first.rows < folder.rows)


def _doubts(table: Table, columns: Iterable[Column]) -> list[str]:
    """What will be refused of numbers when the data are used."""
    numbers = {column.name for column in columns if column.values == "number"}
    places = [place for place, heading in enumerate(table.headings) if heading.name in numbers]
    headings = tuple(Column(table.headings[place].name, table.headings[place].unit) for place in places)
    try:
        Understood(
            replace(table, headings=headings, columns=tuple(table.columns[place] for place in places)), headings
        ).has_commas()
    except ValueError as error:
        return [str(error)]
    return []


def _described(table: Table, number: int, least: int) -> tuple[Column | None, list[str]]:
    heading, column = table.headings[number], table.columns[number]
    if isinstance(column, Plain):
        if np.isnan(column.values).all():
            return None, [_nothing(heading)]
        if column.dates:
            return replace(heading, values="date"), []
        few = len(np.unique(column.values[~np.isnan(column.values)])) <= TOLD_NUMBERS
        return replace(heading, levels=_codes(_counted(as_texts(column)), least) if few else ()), []
    counts = _counted(column)
    words = list(counts)
    if not words:
        return None, [_nothing(heading)]
    if all(map(_is_number, words)):
        return replace(heading, levels=_codes(counts, least)), []
    if all(word.lower() in TRUTH for word in words):
        both = ("no", "yes") if any(word.lower() in ("no", "yes") for word in words) else ("false", "true")
        return replace(heading, values="levels", levels=both), []
    days, day_first = days_of(words)
    if day_first is None and _look_like_dates(words):
        return replace(heading, values="date"), [
            f'It can\'t be told what is the day and what the month in the column "{heading}": write the year first, as in 2024-02-01.'
        ]
    if not np.isnan(days).any():
        return replace(heading, values="date"), []
    levels, notes = _told(heading, counts, least)
    return replace(heading, values="levels", levels=levels), [*notes, *_mixed(table, number, column, words)]


def _nothing(heading: Column) -> str:
    return f'The column "{heading}" has nothing but empty cells, and is not offered.'


def _counted(column: Texts) -> dict[str, int]:
    """How many rows have each word, without the words that say that there is nothing."""
    rows = np.bincount(column.codes[column.codes >= 0], minlength=len(column.words)).tolist()
    counts: dict[str, int] = {}
    for word, count in zip(map(folded, column.words), rows, strict=True):
        if count and not is_missing(word):
            counts[word] = counts.get(word, 0) + count
    return counts


def _is_number(word: str) -> bool:
    return (NUMBER.fullmatch(word) or WITH_COMMA.fullmatch(word)) is not None


def _look_like_dates(words: Sequence[str]) -> bool:
    """Whether there are dates, and nothing else, but for what is the day and what the month."""
    return (
        not np.isnan(days_of([*words, "31/01/2024"])[0]).any() or not np.isnan(days_of([*words, "01/31/2024"])[0]).any()
    )


def _codes(counts: Mapping[str, int], least: int) -> tuple[str, ...]:
    """A few whole numbers, which may be codes: those that are not rare."""
    if len(counts) > TOLD_NUMBERS or len(counts) == sum(counts.values()):
        return ()
    whole: dict[str, int] = {}
    for word, count in counts.items():
        value = float(word) if NUMBER.fullmatch(word) else np.nan
        if not float(value).is_integer():
            return ()
        whole[f"{value:.0f}"] = whole.get(f"{value:.0f}", 0) + count
    return in_order(word for word, count in whole.items() if count >= least and can_be_told(word))


def _told(heading: Column, counts: Mapping[str, int], least: int) -> tuple[tuple[str, ...], list[str]]:
    """The words that may be told, and what the site should know of the others."""
    if len(counts) > TOLD_LEVELS or len(counts) == sum(counts.values()):
        return (), [
            f'The column "{heading}" has {len(counts):,} different texts: none of them is told, and it can be used only where a plan names its levels.'
        ]
    told = in_order(word for word, count in counts.items() if count >= least and can_be_told(word))
    rare, long = sum(count < least for count in counts.values()), sum(not can_be_told(word) for word in counts)
    notes = []
    if rare:
        notes.append(
            f'{rare} of the {len(counts)} levels of the column "{heading}" {"has" if rare == 1 else "have"} fewer than {least} rows and '
            f"{'is' if rare == 1 else 'are'} not told: join {'it' if rare == 1 else 'them'} with another level, or let the plan name "
            f"{'it' if rare == 1 else 'them'}."
        )
    if long:
        notes.append(
            f'{long} of the {len(counts)} levels of the column "{heading}" can\'t be told: let them have at most {LONGEST_LEVEL} letters that can '
            "be printed."
        )
    return told, notes


def _mixed(table: Table, number: int, column: Texts, words: Sequence[str]) -> list[str]:
    """Where most texts are numbers, the others may be slips."""
    if 2 * sum(map(_is_number, words)) <= len(words):
        return []
    strange = [
        code for code, word in enumerate(map(folded, column.words)) if not _is_number(word) and not is_missing(word)
    ]
    rows = np.flatnonzero(np.isin(column.codes, strange))
    more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return [
        f'The column "{table.headings[number]}" has numbers, but for {table.counted_in} {table.places[rows[0]]}{more}: so it is offered as words. '
        "Where that is a slip, correct it and offer the data anew."
    ]


__all__ = ["Offer", "offer"]
