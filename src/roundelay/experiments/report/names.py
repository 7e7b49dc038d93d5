"""What a document's parts are called, by which its files and the links to them are called, too."""

from __future__ import annotations

import re
from collections import Counter

from roundelay.experiments.reproduce.document import Document, Table
from roundelay.plots.chart import ChartFigure

# The table of claims has a file of its own.
CLAIMS = "claims"

FIT_FOR_A_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def figures_of(document: Document) -> tuple[ChartFigure, ...]:
    """All figures, in order."""
    return tuple(item for section in document.sections for item in section.items if isinstance(item, ChartFigure))


def tables_of(document: Document) -> tuple[Table, ...]:
    """All tables but that of the claims, in order."""
    return tuple(item for section in document.sections for item in section.items if isinstance(item, Table))


def check_names(document: Document) -> None:
    """Refuse names that can't be the name of a file, and those that stand for two things."""
    items = [CLAIMS, *(item.name for section in document.sections for item in section.items)]
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
