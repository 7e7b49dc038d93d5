"""The report as data: sentences of the paper and the verdicts on them, then figures and tables, section by section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from roundelay.paper.pieces import Measured
from roundelay.plots.chart import ChartFigure
from roundelay.shown.table import Table

Found = Mapping[str, Measured]
Verdict = Literal["holds", "holds only if", "does not hold"]


@dataclass(frozen=True)
class Check:
    """A number that was measured, and the threshold it must keep; `words` say what the number is."""

    words: str
    value: float
    sign: Literal["≤", "≥"]
    limit: float

    @property
    def holds(self) -> bool:
        """Whether it keeps the threshold; a number that is none does not."""
        return self.value <= self.limit if self.sign == "≤" else self.value >= self.limit

    def __str__(self) -> str:
        return (
            f"{self.words}: {number(self.value)} ({'is' if self.holds else 'is not'} {self.sign} {number(self.limit)})"
        )


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be checked, in our words.

    It holds where all checks `stated` do. Where they don't, but all `conditional` ones do, it holds only if `condition`.
    Otherwise it does not hold. `why` says in one line what is behind it.
    """

    name: str
    where: str
    claim: str
    why: str
    stated: Callable[[Found], tuple[Check, ...]]
    conditional: Callable[[Found], tuple[Check, ...]] | None = None
    condition: str = ""
    figure: str = ""


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


def judge(claim: Claim, found: Found) -> Judged:
    """The verdict on a claim."""
    checks = claim.stated(found)
    verdict: Verdict = "holds"
    if not all(check.holds for check in checks):
        more = claim.conditional(found) if claim.conditional is not None else ()
        verdict = "holds only if" if more and all(check.holds for check in more) else "does not hold"
        checks += tuple(check for check in more if check not in checks)
    measured = "; ".join(str(check) for check in checks)
    condition = claim.condition if verdict == "holds only if" else ""
    return Judged(claim.name, claim.where, claim.claim, measured, verdict, condition, claim.why, claim.figure)


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


def number(value: float) -> str:
    """A number as a reader likes it."""
    if value == float("inf"):
        return "never"
    if value == 0.0 or (abs(value) < 1e6 and value == int(value)):
        return f"{int(value):,}"
    if 1e3 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.3g}"
