"""The parts of a document and their names, by which files and links are called, too; and words as markup."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import escape
from importlib.resources import files
from typing import Any

from roundelay.paper.document import Document
from roundelay.plots.chart import ChartFigure
from roundelay.shown.table import Table

CODE = re.compile(r"`([^`]+)`")

# A number such as 1e-6, which a line must not break at its hyphen.
POWER = re.compile(r"\b\d[\d.]*e-\d+\b")


# The table of claims has a file of its own.
CLAIMS_FILE = "claims"

FIT_FOR_A_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


# ------------------------------------------------------------ parts


def figures_of(document: Document) -> tuple[ChartFigure, ...]:
    """All figures, in order."""
    return tuple(item for section in document.sections for item in section.items if isinstance(item, ChartFigure))


def tables_of(document: Document) -> tuple[Table, ...]:
    """All tables but that of the claims, in order."""
    return tuple(item for section in document.sections for item in section.items if isinstance(item, Table))


def check_names(document: Document) -> None:
    """Refuse names that can't be the name of a file, and those that stand for two things."""
    items = [CLAIMS_FILE, *(item.name for section in document.sections for item in section.items)]
    sections = [section.name for section in document.sections]
    for name in (*items, *sections):
        if not FIT_FOR_A_FILE.fullmatch(name):
            raise ValueError(
                f"{name!r} can't name a part of the report: use letters, digits, dots, hyphens and underscores only."
            )
    for names, what in ((items, "figure or table"), (sections, "section")):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"More than one {what} of the report is called {twice[0]!r}: give each a name of its own.")


# ------------------------------------------------------------ words


def text(words: str) -> str:
    """Words as they stand, in an element or in an attribute."""
    return escape(words, quote=True)


def prose(words: str) -> str:
    """Words with what stands between backticks as code, and numbers in one piece."""
    return POWER.sub(r'<span class="whole">\g<0></span>', CODE.sub(r"<code>\1</code>", text(words)))


def paragraphs(words: tuple[str, ...]) -> str:
    """One paragraph after another."""
    return "\n".join(f"<p>{prose(each)}</p>" for each in words)


def embedded_json(data: Any) -> str:
    """Data to stand within a script element: without a `<` nothing in it can end the element."""
    packed = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return packed.replace("<", "\\u003c")


def resource(name: str) -> str:
    """A file that lies beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")
