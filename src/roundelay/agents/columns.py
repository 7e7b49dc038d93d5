"""The columns that the sites' data have, and whether they agree on them."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from roundelay.agents.invitations import Invitation
from roundelay.agents.plan import Column, Task
from roundelay.networks.sentences import join_names

_HEADER = re.compile(r"(.*\S)\s*\[\s*([^\[\]]*?)\s*\]")


def column_of(cell: str) -> Column:
    """The column that a cell of a header names: "age [years]" is age in years."""
    fits = _HEADER.fullmatch(cell.strip())
    return Column(fits.group(1), fits.group(2)) if fits else Column(cell.strip())


def header_columns(path: Path) -> tuple[Column, ...]:
    """The columns of a CSV file, from its header; nothing else of it is read."""
    try:
        with open(path, "rb") as file:
            # Line by line, so that no data are looked at; spreadsheets put a mark before the first cell.
            header = next(csv.reader(line.decode("utf-8-sig") for line in file), [])
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"The header of {path} can't be read: save the data as CSV in UTF-8.") from None
    columns = tuple(column_of(cell) for cell in header)
    if not columns or not all(column.name for column in columns):
        raise ValueError(f"The header of {path} has a column without a name: name every column in the first line.")
    return columns


def check_same_columns(invitations: Sequence[Invitation]) -> None:
    """Refuse sites whose data have other columns, or other units, than those of the first."""
    first = invitations[0]
    for other in invitations[1:]:
        here, there = set(first.columns) - set(other.columns), set(other.columns) - set(first.columns)
        if here or there:
            raise ValueError(
                f"The sites' columns differ: {_lacking(first, other, here, there)}. Let all sites name the same columns in the "
                "same units, and make new invitations."
            )


def check_fits_task(task: Task, invitation: Invitation) -> None:
    """Refuse a site whose data lack a column of the fit."""
    wanted = () if task.target is None else (*task.features, task.target)
    lacking = [str(column) for column in wanted if column not in invitation.columns]
    if lacking:
        raise ValueError(
            f"{invitation.name} lacks {_counted(lacking)} of the fit: let it name the same columns in the same units, "
            "and make a new invitation with roundelay ring init --data."
        )


def _lacking(first: Invitation, other: Invitation, here: set[Column], there: set[Column]) -> str:
    parts = [
        f"{owner.name} has {_counted(sorted(map(str, columns)))}, which {lacks.name} lacks"
        for owner, lacks, columns in ((first, other, here), (other, first, there))
        if columns
    ]
    return " and ".join(parts)


def _counted(names: Sequence[str]) -> str:
    return ("the column " if len(names) == 1 else "the columns ") + join_names(names)
