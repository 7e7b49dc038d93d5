"""A document for people: sections of sentences, notes and tables, as text, and as one file of HTML that needs nothing else.

No script, no picture beside it, no address: it can be kept for years, sent, read aloud and printed. What others have written stands in
it as words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Literal

from roundelay.shown.markup import Markup, tag
from roundelay.shown.numbers import FIGURE_SPACE, POINT_SPACE, printable
from roundelay.shown.table import Table, in_lines

# Nothing is fetched and nothing runs, whatever stands in the file.
_NOTHING_FROM_ELSEWHERE = "default-src 'none'; style-src 'unsafe-inline'"
# A fact of more letters has a line of its own.
LONG = 24
Look = Literal["", "good", "partly", "bad"]


@dataclass(frozen=True)
class Note:
    """Sentences that are to be seen first; `look` says whether they are good or bad news."""

    words: str
    look: Look = ""


@dataclass(frozen=True)
class Judged:
    """A table one of whose columns judges: how the words in it look."""

    table: Table
    looks: Mapping[str, Look]


Part = str | Note | Table | Judged


@dataclass(frozen=True)
class Section:
    """What stands under a title: sentences, each a paragraph, notes and tables."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Document:
    """A title, what it is about, what is to be known first, facts by name, and sections; the last words stand at the end of each."""

    title: str
    about: str
    notes: tuple[Note, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    last_words: str
    made: datetime


# ---------------------------------------------------------------- HTML


def as_html(document: Document) -> str:
    """The whole document as one file."""
    pairs = [
        tag("div", {"class": "long"} if len(value) > LONG else {}, tag("dt", {}, name), tag("dd", {}, value))
        for name, value in document.facts
    ]
    parts = [
        tag(
            "header", {}, tag("h1", {}, document.title), tag("p", {}, document.about), *map(_part, document.notes),
            tag("dl", {"class": "facts"}, *pairs),
        ),
        *(section(one.title, *map(_part, one.parts)) for one in document.sections),
        tag("footer", {}, tag("p", {}, document.last_words)),
    ]  # fmt: skip
    return whole_page(document.title, parts)


def whole_page(title: str, parts: list[Markup], style: str = "") -> str:
    """A page of these parts, in the usual style and with one more."""
    head = tag(
        "head", {}, Markup(f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_NOTHING_FROM_ELSEWHERE}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'),
        tag("title", {}, title), tag("style", {}, Markup(_style() + style)),
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{tag('html', {'lang': 'en-GB'}, head, tag('body', {}, tag('main', {}, *parts)))}\n"


def _style() -> str:
    return (files(__package__) / "document.css").read_text(encoding="utf-8")


def section(title: str, *content: Markup) -> Markup:
    """What there is under a title; nothing where there is nothing."""
    filled = [one for one in content if one]
    return tag("section", {}, tag("h2", {}, title), *filled) if filled else Markup()


def _part(part: Part) -> Markup:
    if isinstance(part, Note):
        return tag("p", {"class": f"note {part.look}".rstrip()}, part.words)
    if isinstance(part, str):
        return tag("p", {}, part)
    table, looks = (part.table, part.looks) if isinstance(part, Judged) else (part, {})
    return table_in_html(table, looks=looks, stacks=True)


def table_in_html(
    table: Table, hidden: bool = False, looks: Mapping[str, Look] | None = None, stacks: bool = False
) -> Markup:
    """A table whose numbers stand with their points one below the other; `hidden`: its title stands above it already.

    On a telephone one that `stacks` has its cells one below the other, each behind what it is about.
    """
    heads = []
    for place, head in enumerate(table.header):
        if not head:  # a column of names needs none
            heads.append(tag("td", {}))
        else:
            heads.append(tag("th", {"scope": "col", **({} if place < table.words else {"class": "number"})}, head))
    body = [
        tag("tr", {}, *(_cell(cell, place, table, looks or {}) for place, cell in enumerate(row)))
        for row in table.aligned(FIGURE_SPACE, POINT_SPACE)
    ]
    caption = tag("caption", {"class": "unseen"} if hidden else {}, table.title)
    whole = tag("table", {"id": table.name}, caption, tag("thead", {}, tag("tr", {}, *heads)), tag("tbody", {}, *body))
    below = tag("p", {"class": "caption"}, table.caption) if table.caption else Markup()
    # By keyboard too one must get to what is wider than the screen.
    scrolls = {"class": "wide", "tabindex": "0", "role": "region", "aria-label": table.title}
    return tag("div", {"class": "part stacks" if stacks else "part"}, tag("div", scrolls, whole), below)


def _cell(cell: str, place: int, table: Table, looks: Mapping[str, Look]) -> Markup:
    if place == 0 and table.words:
        return tag("th", {"scope": "row"}, cell)
    shown = tag("span", {"class": f"badge {looks[cell]}".rstrip()}, cell) if cell in looks else cell
    head = {"data-head": table.header[place]} if table.header[place] else {}
    return tag("td", head if place < table.words else {"class": "number", **head}, shown)


# ---------------------------------------------------------------- text


def in_text(words: str) -> str:
    """A paragraph in lines, without what would move a terminal's cursor."""
    return in_lines(printable(words), "")
