"""What the files say of a site and of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roundelay.agents.certificates import LONGEST_CERTIFICATE, check_certificate
from roundelay.agents.fields import Fields
from roundelay.agents.names import LONGEST_ADDRESS, LONGEST_NAME, check_address, check_site_name
from roundelay.agents.plan import Column, Member
from roundelay.masks.agreement import KEY_BYTES

LONGEST_COLUMN = 100
MOST_COLUMNS = 10_000


def member_table(member: Member) -> dict[str, Any]:
    """A site as a table."""
    return {
        "name": member.name,
        "address": member.address,
        "mask_key": member.mask_key.hex(),
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
    digits, certificate = fields.text("mask_key"), fields.text("certificate", LONGEST_CERTIFICATE)
    if len(digits) != 2 * KEY_BYTES or set(digits) - set("0123456789abcdef"):
        raise fields.refusal("mask_key", f"use {2 * KEY_BYTES} hexadecimal digits")
    check_certificate(certificate, name, where)
    return Member(name, certificate, bytes.fromhex(digits), address)


def column_table(column: Column) -> dict[str, str]:
    """A column as a table."""
    return {"name": column.name, "unit": column.unit}


def column_from(fields: Fields) -> Column:
    """The column in a table, checked."""
    fields.only("name", "unit")
    column = Column(fields.text("name", LONGEST_COLUMN), fields.text("unit", LONGEST_COLUMN))
    for name, text in (("name", column.name), ("unit", column.unit)):
        if not text.isprintable() or text != text.strip():
            raise fields.refusal(name, "use letters that can be printed, without spaces at the ends")
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
