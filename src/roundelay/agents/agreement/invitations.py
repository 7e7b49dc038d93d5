"""An invitation: what a site tells the others of itself before a ring is planned, and whether their data fit together."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundelay.agents.agreement.identity import LONGEST_CERTIFICATE, Identity, check_certificate, is_signed_by
from roundelay.agents.agreement.names import LONGEST_ADDRESS, LONGEST_NAME, check_address, check_site_name
from roundelay.agents.agreement.plan import Column, Member, Task, columns_in
from roundelay.agents.agreement.signed_text import (
    changed_since,
    parsed,
    refuse_other_tables,
    signed_text,
    split_signature,
    table_of,
)
from roundelay.networks.network_checks import join_names
from roundelay.tables import Fields

FORMAT = 2
LONGEST_COLUMN = 100
MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Invitation:
    """A site's name, certificate (PEM), address ("" where it can't be dialled) and columns."""

    name: str
    certificate: str
    address: str = ""
    columns: tuple[Column, ...] = ()

    @property
    def member(self) -> Member:
        """The site as a member of a ring."""
        return Member(self.name, self.certificate, self.address)


def write_invitation(identity: Identity, address: str = "", columns: Sequence[Column] = ()) -> bytes:
    """The text of a site's invitation."""
    member = Member(identity.name, identity.certificate, address)
    table = {"format": FORMAT, **member_table(member), "columns": [column_table(column) for column in columns]}
    text = signed_text({"invitation": table}, identity)
    read_invitation(text, f"the invitation of {identity.name}")  # nothing is sent that the others refuse
    return text


def read_invitation(text: bytes, where: str) -> Invitation:
    """The invitation in a text; `where` is how a sentence calls it, such as its path."""
    body, signature = split_signature(text, where)
    tables = parsed(body, where)
    refuse_other_tables(tables, ("invitation",), where)
    fields = table_of(tables, "invitation", where)
    fields.only("format", "name", "address", "certificate", "columns")
    fields.whole("format", FORMAT, FORMAT)
    member = member_from(fields, where)
    if not is_signed_by(member.certificate, body, signature):
        raise changed_since(where, member.name)
    return Invitation(member.name, member.certificate, member.address, columns_from(fields, "columns"))


# ---------------------------------------------------------------- the columns of the data


def header_columns(path: Path) -> tuple[Column, ...]:
    """The columns of a CSV file, from its header; nothing else of it is read."""
    try:
        with open(path, "rb") as file:
            # Line by line, so that no data are looked at; spreadsheets put a mark before the first cell.
            header = next(csv.reader(line.decode("utf-8-sig") for line in file), [])
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"The header of {path} can't be read: save the data as CSV in UTF-8.") from None
    if not header:
        raise ValueError(f"The header of {path} is empty: name every column in the first line.")
    return columns_in(header, str(path))


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
    lacking = [str(column) for column in task.columns if column not in invitation.columns]
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


# ---------------------------------------------------------------- sites and columns as tables, here and in a ring file


def member_table(member: Member) -> dict[str, Any]:
    """A site as a table."""
    return {
        "name": member.name,
        "address": member.address,
        "certificate": member.certificate,
    }


def member_from(fields: Fields, where: str) -> Member:
    """The site in a table, checked."""
    name, address = fields.text("name", LONGEST_NAME), fields.text("address", LONGEST_ADDRESS)
    try:
        check_site_name(name)
        check_address(address)
    except ValueError as error:
        raise ValueError(f"{fields.where} can't be used. {error}") from None
    certificate = fields.text("certificate", LONGEST_CERTIFICATE)
    check_certificate(certificate, name, where)
    return Member(name, certificate, address)


def column_table(column: Column) -> dict[str, str]:
    """A column as a table."""
    return {"name": column.name, "unit": column.unit}


def column_from(fields: Fields) -> Column:
    """The column in a table, checked."""
    fields.only("name", "unit")
    column = Column(fields.text("name", LONGEST_COLUMN), fields.text("unit", LONGEST_COLUMN))
    for name, text in (("name", column.name), ("unit", column.unit)):
        if not text.isprintable() or text != " ".join(text.split()):
            raise fields.refusal(
                name, "use letters that can be printed, with one space between words and none at the ends"
            )
    if not column.name:
        raise fields.refusal("name", "give the column a name")
    return column


def columns_from(fields: Fields, name: str) -> tuple[Column, ...]:
    """The columns in a list of tables, each there once."""
    entries = fields.list_of(name, dict, "tables with name and unit", MOST_COLUMNS)
    columns = tuple(column_from(Fields(entry, f"{name} of {fields.where}")) for entry in entries)
    refuse_same_names(columns, fields.where)
    return columns


def refuse_same_names(columns: Sequence[Column], where: str) -> None:
    """Refuse two columns of one name."""
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise ValueError(f"The column {column.name!r} is twice in {where}: name every column once.")
        seen.add(column.name)
