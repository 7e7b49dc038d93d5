"""The report as data: claims first, then the figures and tables, section by section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roundelay.plots.chart import ChartFigure

Verdict = Literal["holds", "holds only if", "does not hold"]


@dataclass(frozen=True)
class Judged:
    """A claim of the paper with its verdict.

    `claim` is what the paper says, in our words, and `where` it says so. `measured` is the number, with the threshold
    that the verdict follows from; `condition` says when it holds, for "holds only if"; `why` is one line. `figure` is
    the name of the figure that shows it, or empty.
    """

    name: str
    where: str
    claim: str
    measured: str
    verdict: Verdict
    condition: str
    why: str
    figure: str


@dataclass(frozen=True)
class Table:
    """Rows of text under a heading; `name` is what its CSV file is called."""

    name: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading, a few words (paragraphs), and what belongs under it in order."""

    name: str
    title: str
    words: tuple[str, ...]
    items: tuple[ChartFigure | Table, ...]


@dataclass(frozen=True)
class Document:
    """The whole report; `made_by` tells the version, the command and how long it took to make."""

    title: str
    words: tuple[str, ...]
    claims: tuple[Judged, ...]
    sections: tuple[Section, ...]
    made_by: str
