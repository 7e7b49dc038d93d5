"""The table of the claims, with a verdict on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roundelay.experiments.report.markup import prose, text
from roundelay.experiments.reproduce.document import Document, Judged, Verdict


@dataclass(frozen=True)
class Badge:
    """How a verdict is shown: by a colour, a symbol and words, any of which is enough."""

    style: str
    symbol: str
    words: str


BADGES: Mapping[Verdict, Badge] = {
    "holds": Badge("holds", "✓", "Holds"),
    "holds only if": Badge("only-if", "◐", "Holds only if"),
    "does not hold": Badge("fails", "✗", "Does not hold"),
}


def claims_table(document: Document) -> str:
    """The filter and the rows; each links to what shows it, where the report has it."""
    titles = {item.name: item.title for section in document.sections for item in section.items}
    rows = "\n".join(_row(place, claim, titles) for place, claim in enumerate(document.claims, start=1))
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("Where", "Claim", "Measured", "Verdict", "Why"))
    return (
        f'<div class="filter" role="group" aria-label="Show claims by verdict">{_filter(document)}</div>\n'
        f'<div class="wide"><table class="claims"><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table></div>\n'
        '<p class="files"><a href="data/claims.csv">CSV</a></p>'
    )


def claim_links(document: Document, name: str) -> str:
    """Links back from a figure or table to the claims that it decides."""
    links = [
        f'<li><a href="#claim-{place}">{_badge(claim.verdict)}</a> {prose(claim.claim)}</li>'
        for place, claim in enumerate(document.claims, start=1)
        if claim.figure == name
    ]
    return f'<ul class="decides">{"".join(links)}</ul>' if links else ""


def _filter(document: Document) -> str:
    verdicts = [claim.verdict for claim in document.claims]
    buttons = [_button("", "All", len(verdicts), pressed=True)]
    buttons += [
        _button(badge.style, f"{badge.symbol} {badge.words}", verdicts.count(verdict), pressed=False)
        for verdict, badge in BADGES.items()
    ]
    return "".join(buttons)


def _button(style: str, words: str, count: int, pressed: bool) -> str:
    return (
        f'<button type="button" data-verdict="{style}" aria-pressed="{str(pressed).lower()}">'
        f'{words} <span class="count">{count}</span></button>'
    )


def _row(place: int, claim: Judged, titles: Mapping[str, str]) -> str:
    badge = BADGES[claim.verdict]
    condition = f'<p class="condition">{prose(claim.condition)}</p>' if claim.condition else ""
    link = ""
    if claim.figure in titles:
        link = f'<p class="shown"><a href="#item-{text(claim.figure)}">{text(titles[claim.figure])}</a></p>'
    cells = (
        ("Where", prose(claim.where)),
        ("Claim", prose(claim.claim) + link),
        ("Measured", prose(claim.measured)),
        ("Verdict", _badge(claim.verdict) + condition),
        ("Why", prose(claim.why)),
    )
    columns = "".join(f'<td data-head="{head}"><div>{words}</div></td>' for head, words in cells)
    return f'<tr id="claim-{place}" data-verdict="{badge.style}">{columns}</tr>'


def _badge(verdict: Verdict) -> str:
    badge = BADGES[verdict]
    return f'<span class="badge {badge.style}"><span aria-hidden="true">{badge.symbol}</span> {badge.words}</span>'
