"""Markup by construction: what is not markup already is written as words, so that no name of another can be an element."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from roundelay.shown.numbers import printable

Value = str | float


class Markup(str):
    """What may stand in a document as it is."""

    __slots__ = ()


def tag(name: str, attributes: Mapping[str, Value] | None = None, *children: str) -> Markup:
    """An element; children that are no markup are words."""
    written = "".join(f' {each}="{_written(value)}"' for each, value in (attributes or {}).items())
    return Markup(f"<{name}{written}>{''.join(map(words, children))}</{name}>")


def words(text: str) -> Markup:
    """Words as they stand, in an element or in an attribute."""
    return text if isinstance(text, Markup) else Markup(escape(printable(text), quote=True))


def joined(parts: list[Markup]) -> Markup:
    """One behind the other."""
    return Markup("".join(parts))


def _written(value: Value) -> str:
    return words(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
