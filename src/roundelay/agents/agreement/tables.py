"""A table of a file, read field by field; every refusal names the field and the place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_NAME = 40
LONGEST_ADDRESS = 270

# Plain letters only: a certificate holds 64 bytes of a name, and letters that look alike would mislead.
_NAME = re.compile(r"[A-Za-z0-9._-](?:[A-Za-z0-9._ -]*[A-Za-z0-9._-])?")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


def check_site_name(name: str) -> None:
    """Refuse a name that is too long, or has other signs than letters, digits, - _ . and spaces inside."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise ValueError(
            f"A site can't be called {in_short(name)}: use 1 to {LONGEST_NAME} of the letters a to z and A to Z, "
            "digits, -, _ and ., with spaces between them."
        )


def check_address(address: str) -> None:
    """Refuse what is neither host:port nor empty; a site without an address dials and is never dialled."""
    if address == "":
        return
    fits = _ADDRESS.fullmatch(address) if isinstance(address, str) and len(address) <= LONGEST_ADDRESS else None
    if fits is None or not 0 < int(fits.group(1)) < 2**16:
        raise ValueError(
            f"The address {in_short(address)} can't be dialled: write host:port, for example oslo.example.org:7443, "
            "or leave it empty for a site that only dials others."
        )


def in_short(value: object) -> str:
    """A value as it may stand in a sentence: never long, and nothing in it moves the cursor of a terminal."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else repr(value[:57]) + "…"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a huge number"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


LONGEST_TEXT = 10_000


@dataclass(frozen=True)
class Fields:
    """The fields of one table; `where` is how a sentence calls the table, such as "[ring] in ring.toml"."""

    table: Mapping[str, Any]
    where: str

    def only(self, *names: str) -> None:
        """Refuse fields with other names."""
        for name in self.table:
            if name not in names:
                raise ValueError(
                    f"{self.where} has the field {in_short(name)}, which is not known: it may have {', '.join(names)}."
                )

    def text(self, name: str, longest: int = LONGEST_TEXT) -> str:
        """A text of at most so many characters."""
        value = self._value(name)
        if not isinstance(value, str):
            raise self.refusal(name, "use a text in quotes")
        if len(value) > longest:
            raise self.refusal(name, f"use at most {longest} characters")
        return value

    def whole(self, name: str, least: int, most: int) -> int:
        """A whole number between bounds."""
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.refusal(name, f"use a whole number from {least} to {most}")
        return value

    def number(self, name: str) -> float:
        """A number; it may be infinite, and is never not a number."""
        value = self._value(name)
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
        except OverflowError:
            number = math.nan
        if math.isnan(number):
            raise self.refusal(name, "use a number")
        return number

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._value(name)
        if not isinstance(value, bool):
            raise self.refusal(name, "use true or false")
        return value

    def list_of(self, name: str, kind: type[Any], words: str, most: int) -> list[Any]:
        """A list whose entries are all of one kind."""
        value = self._value(name)
        if not isinstance(value, list) or not all(isinstance(entry, kind) for entry in value):
            raise self.refusal(name, f"use a list of {words}")
        if len(value) > most:
            raise ValueError(f"The field {name} of {self.where} has {len(value)} entries: it may have at most {most}.")
        return value

    def inner(self, name: str) -> Fields:
        """A table within the table."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise self.refusal(name, "make it a table")
        return Fields(value, f"{name} of {self.where}")

    def refusal(self, name: str, what_to_do: str) -> ValueError:
        """The sentence for a field whose value can't be used."""
        return ValueError(f"The field {name} of {self.where} is {in_short(self.table[name])}: {what_to_do}.")

    def _value(self, name: str) -> Any:
        if name not in self.table:
            raise ValueError(f"{self.where} has no field {name}: add it, or ask for the file again.")
        return self.table[name]
