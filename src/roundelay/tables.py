"""Frozen dataclasses as tables of plain values, and back: in ring files, saved runs and what is public.

A table has the kind of a thing, which is the name of its class, and its options. Only registered classes are built from a table,
so that nobody's file can run code, and every refusal is a sentence that names the field and the place. (Why not msgspec or cattrs:
their errors name a path and a type, not what to do, and each slot would need a union of its own beside the register.)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from roundelay.registry import alternatives, classes_for, names_of

LARGEST = 2**62  # whole numbers end up in words of 64 bits
LONGEST_TEXT = 10_000
MOST_NUMBERS = 10_000_000
PLAIN = (bool, int, float, str)


def as_table(thing: Any, slot: Any) -> dict[str, Any]:
    """The thing's kind and its options, with the parts in it as tables of their own. What is None is left out.

    What would not come back as it is, is refused.
    """
    table = _written(thing, slot)
    if from_table(table, "it", slot) != thing:
        raise ValueError(f"{thing!r} can't stand in a file: its options would not come back as they are.")
    return table


def _written(thing: Any, slot: Any) -> dict[str, Any]:
    kinds = classes_for(slot)
    if type(thing) not in kinds:
        raise ValueError(
            f"{thing!r} can't stand in a file: use one of {_names(kinds)}, or enter its class by roundelay.register."
        )
    table: dict[str, Any] = {"kind": type(thing).__name__}
    for name, wanted in options_of(type(thing)).items():
        value = getattr(thing, name)
        if value is not None:
            table[name] = _written(value, wanted) if classes_for(wanted) else _plain(name, wanted, value)
    return table


def from_table(table: Mapping[str, Any], where: str, slot: Any) -> Any:
    """The thing that a table describes, a choice for the slot; options that are left out have their defaults."""
    fields, kinds = Fields(table, where), classes_for(slot)
    chosen = fields.text("kind")
    kind = next((kind for kind in kinds if chosen in names_of(kind)), None)
    if kind is None:
        raise fields.refusal("kind", f"use {'one of ' if len(kinds) > 1 else ''}{_names(kinds)}")
    options = options_of(kind)
    fields.only("kind", *options)
    values = {name: _read(fields, name, options[name]) for name in options if name in table}
    for field in dataclasses.fields(kind):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.init and needed and field.name not in values:
            raise ValueError(f"{where} has no field {field.name}: {chosen} needs it.")
    try:
        return kind(**values)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{where} can't be used: {error}") from None


def described(thing: Any, slot: Any) -> Any:
    """A table; of what is not in the register, or has a part that is not, how it prints."""
    try:
        return None if thing is None else as_table(thing, slot)
    except ValueError:
        return repr(thing)


def restored(described: Any, where: str, slot: Any) -> Any:
    """The thing that was described, where its kind is in the register here too; otherwise the description."""
    kind = described.get("kind") if isinstance(described, dict) else None
    known = isinstance(kind, str) and any(kind in names_of(one) for one in classes_for(slot))
    return from_table(described, where, slot) if known else described


def options_of(kind: type[Any]) -> dict[str, Any]:
    """The options of a dataclass, and the type of each."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _plain(name: str, wanted: Any, value: Any) -> Any:
    """The value as every format knows it: a number of NumPy's, or 40.0 for a whole number, is written plainly."""
    if get_origin(wanted) is Literal:
        return value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [float(number) for number in value]
    kinds = [kind for kind in alternatives(wanted) if kind in PLAIN]
    if not kinds:
        raise ValueError(
            f"The option {name} can't stand in a file: {in_short(value)} is neither plain nor a registered part."
        )
    return next((kind for kind in kinds if isinstance(value, kind)), kinds[0])(value)


def _read(fields: Fields, name: str, wanted: Any) -> Any:
    value = fields.table[name]
    if classes_for(wanted):
        inner = fields.inner(name)
        return from_table(inner.table, inner.where, wanted)
    if get_origin(wanted) is Literal:
        if not any(type(value) is type(choice) and value == choice for choice in get_args(wanted)):
            raise fields.refusal(name, f"use {' or '.join(in_short(choice) for choice in get_args(wanted))}")
        return value
    choices = alternatives(wanted)
    if isinstance(value, list) and any(get_origin(choice) is not None for choice in choices):
        return tuple(Fields({name: number}, fields.where).number(name) for number in fields.numbers(name))
    kinds = [kind for kind in choices if kind in PLAIN]
    if not kinds:
        raise fields.refusal(name, "leave it out, since it can't be read from a file")
    readers = {bool: fields.flag, int: lambda name: fields.whole(name, -LARGEST, LARGEST), float: fields.number}
    kind = next((kind for kind in kinds if type(value) is kind), kinds[0])
    return readers.get(kind, fields.text)(name)


def _names(kinds: Sequence[type[Any]]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


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

    def list_of(self, name: str, kind: Any, words: str, most: int) -> list[Any]:
        """A list whose entries are all of one kind."""
        value = self._value(name)
        if not isinstance(value, list) or not all(isinstance(entry, kind) for entry in value):
            raise self.refusal(name, f"use a list of {words}")
        if len(value) > most:
            raise ValueError(f"The field {name} of {self.where} has {len(value)} entries: it may have at most {most}.")
        return value

    def numbers(self, name: str) -> list[Any]:
        """A list of numbers."""
        return self.list_of(name, int | float, "numbers", MOST_NUMBERS)

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


def harmless(words: str) -> str:
    """Words of somebody else, of which nothing moves the cursor of a terminal or turns the direction of reading."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


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
