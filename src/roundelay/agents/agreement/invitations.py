"""An invitation: what a site tells the others of itself before a ring is planned, and whether their data fit together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from roundelay.agents.agreement.identity import LONGEST_CERTIFICATE, Identity, check_certificate, is_signed_by
from roundelay.agents.agreement.names import LONGEST_ADDRESS, LONGEST_NAME, check_address, check_site_name
from roundelay.agents.agreement.plan import Member, Task
from roundelay.agents.agreement.signed_text import (
    changed_since,
    parsed,
    refuse_other_tables,
    signed_text,
    split_signature,
    table_of,
)
from roundelay.networks.network_checks import join_names
from roundelay.regression.columns import TRUTH, Column, Conversion, Values
from roundelay.tables import Fields

FORMAT = 3
LONGEST_COLUMN = LONGEST_LEVEL = 100
MOST_COLUMNS = 10_000
# Of a column of words a site tells at most so many levels, and a plan may have so many; units from which a column is converted.
TOLD_LEVELS, MOST_LEVELS, MOST_UNITS = 50, 1000, 20


@dataclass(frozen=True)
class Invitation:
    """A site's name, certificate (PEM), address ("" where it can't be dialled) and columns.

    A column says what kind of values it has. Of words it has those as levels that the site tells of, and of a few whole numbers, too.
    """

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
    table = {"format": FORMAT, **member_table(member), "columns": [described_table(column) for column in columns]}
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
    _check_format(fields, where)
    member = member_from(fields, where)
    if not is_signed_by(member.certificate, body, signature):
        raise changed_since(where, member.name)
    entries = fields.list_of("columns", dict, "tables with name and unit", MOST_COLUMNS)
    columns = tuple(_described_from(Fields(entry, f"columns of {fields.where}"), TOLD_LEVELS) for entry in entries)
    refuse_same_names(columns, fields.where)
    return Invitation(member.name, member.certificate, member.address, columns)


def address_in(text: bytes, where: str) -> str:
    """The address in a site's own invitation, of whichever release: its other entries and its signature are not looked at."""
    fields = table_of(parsed(split_signature(text, where)[0], where), "invitation", where)
    address = fields.text("address", LONGEST_ADDRESS)
    check_address(address)
    return address


def _check_format(fields: Fields, where: str) -> None:
    found = fields.whole("format", 0, 2**31)
    if found != FORMAT:
        when, remedy = (
            ("an earlier", "let the site make it anew by roundelay ring offer")
            if found < FORMAT
            else ("a later", "install that release, too")
        )
        raise ValueError(f"{where} is of {when} release, in format {found} where this one has {FORMAT}: {remedy}.")


# ---------------------------------------------------------------- the columns of the data


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
    """Refuse a site whose data lack a column of the fit, or have words or dates in one of which a task without a formula takes numbers."""
    offered = {column.name: column for column in invitation.columns}
    lacking = [str(one) for one in task.columns if one.name not in offered or not one.takes(offered[one.name].unit)]
    if lacking:
        raise ValueError(
            f"{invitation.name} lacks {_counted(lacking)} of the fit: let it name the same columns in the same units, "
            "and make a new invitation with roundelay ring offer --data."
        )
    others = [str(one) for one in task.columns if not _has_numbers(offered[one.name])]
    if task.has_rows and others:
        raise ValueError(
            f"{invitation.name} has words or dates in {_counted(others)}, and a fit without a formula takes numbers: plan one with --formula, or let "
            "the sites offer other --columns."
        )


def _has_numbers(column: Column) -> bool:
    """Whether what is offered are numbers, or words that stand for 0 and 1."""
    return column.values == "number" or (bool(column.levels) and all(level.lower() in TRUTH for level in column.levels))


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
    """A column of a task without a formula as a table: its name and its unit."""
    return {"name": column.name, "unit": column.unit}


def column_from(fields: Fields) -> Column:
    """The column in such a table, checked."""
    fields.only("name", "unit")
    return _named_from(fields)


def _named_from(fields: Fields) -> Column:
    column = Column(fields.text("name", LONGEST_COLUMN), fields.text("unit", LONGEST_COLUMN))
    for name, text in (("name", column.name), ("unit", column.unit)):
        _check_printable(fields, name, text)
    if not column.name:
        raise fields.refusal("name", "give the column a name")
    return column


def _check_printable(fields: Fields, name: str, text: str) -> None:
    if not is_plain(text):
        raise fields.refusal(name, "use letters that can be printed, with one space between words and none at the ends")


def is_plain(text: str) -> bool:
    """Whether a text has letters that can be printed, with one space between words and none at the ends."""
    return text.isprintable() and text == " ".join(text.split())


def can_be_told(level: str) -> bool:
    """Whether a word may stand in an invitation and in a plan."""
    return 0 < len(level) <= LONGEST_LEVEL and is_plain(level)


def described_table(column: Column) -> dict[str, Any]:
    """A column as a table: its name and unit, what kind of values it has and, where there are any, its levels."""
    return {**column_table(column), "values": column.values, **({"levels": [*column.levels]} if column.levels else {})}


def _described_from(fields: Fields, most: int, *others: str) -> Column:
    fields.only("name", "unit", "values", "levels", *others)
    column, values, levels = _named_from(fields), fields.text("values"), cast(tuple[str, ...], ())
    if values not in get_args(Values):
        raise fields.refusal("values", f"use {', '.join(get_args(Values))}")
    if "levels" in fields.table:
        levels = tuple(fields.list_of("levels", str, "words", most))
    if not all(map(can_be_told, levels)) or len(set(levels)) < len(levels):
        raise fields.refusal("levels", f"name every level once, in at most {LONGEST_LEVEL} letters that can be printed")
    return Column(column.name, column.unit, cast(Values, values), levels)


def agreed_table(column: Column) -> dict[str, Any]:
    """A column of a regression as a table: as described, and from which units it is converted how."""
    conversions = [
        {"unit": one.unit, "factor": float(one.factor), "offset": float(one.offset)} for one in column.conversions
    ]
    return {**described_table(column), **({"conversions": conversions} if conversions else {})}


def agreed_from(fields: Fields) -> Column:
    """The column in such a table, checked: it has levels where these are its kind of values, and only then."""
    column = _described_from(fields, MOST_LEVELS, "conversions")
    if bool(column.levels) != (column.values == "levels"):
        raise fields.refusal("values", "name the levels of a column that has levels, and of no other")
    if "conversions" not in fields.table:
        return column
    entries = fields.list_of("conversions", dict, "tables with unit, factor and offset", MOST_UNITS)
    conversions = tuple(_conversion_from(Fields(entry, f"conversions of {fields.where}")) for entry in entries)
    units = [column.unit, *(one.unit for one in conversions)]
    if column.values != "number" or len(set(units)) < len(units):
        raise fields.refusal("conversions", "convert numbers alone, and from every other unit once")
    return replace(column, conversions=conversions)


def _conversion_from(fields: Fields) -> Conversion:
    fields.only("unit", "factor", "offset")
    one = Conversion(fields.text("unit", LONGEST_COLUMN), fields.number("factor"), fields.number("offset"))
    _check_printable(fields, "unit", one.unit)
    for name, number in (("factor", one.factor), ("offset", one.offset)):
        if not math.isfinite(number) or (name == "factor" and number == 0.0):
            raise fields.refusal(name, "use a finite number, and a factor other than 0")
    return one


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
