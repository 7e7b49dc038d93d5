"""The whole report as one page that needs nothing but itself: its claims, its figures and its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from roundelay.paper.document import Document, Judged, Section, Verdict
from roundelay.paper.report.charts import figure_data, legend_markup, palette_style
from roundelay.paper.report.markup import check_names, embedded_json, paragraphs, prose, resource, text
from roundelay.plots.chart import Chart, ChartFigure
from roundelay.plots.layout import legends_of
from roundelay.shown.table import Table


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
_NUMBER = re.compile(r"[−+-]?[\d.,]+([eE][−+-]?\d+)?( ?[%×])?|[—–-]?")


def write_report(document: Document, path: str | Path) -> Path:
    """Write the report as one HTML file, which asks the network for nothing; missing folders are made.

    Its links to images and numbers lead to what `write_files` puts into the same folder.
    """
    page = report_page(document)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def report_page(document: Document) -> str:
    """The text of the page."""
    check_names(document)
    return Template(resource("page.html")).substitute(
        title=text(document.title),
        words=paragraphs(document.words),
        made_by=prose(document.made_by),
        claims=claims_table(document),
        contents="\n".join(map(_contents, document.sections)),
        sections="\n".join(_section(document, section) for section in document.sections),
        style=palette_style() + "\n" + resource("page.css"),
        theme=resource("theme.js"),
        plotly=plotly_script(),
        charts=resource("charts.js"),
        page=resource("page.js"),
    )


def _section(document: Document, section: Section) -> str:
    items = "\n".join(
        figure_markup(item, claim_links(document, item.name))
        if isinstance(item, ChartFigure)
        else table_markup(item, claim_links(document, item.name))
        for item in section.items
    )
    return (
        f'<section class="part" id="section-{text(section.name)}">\n<h2>{text(section.title)}</h2>\n'
        f"{paragraphs(section.words)}\n{items}\n</section>"
    )


def _contents(section: Section) -> str:
    items = "".join(f'<li><a href="#item-{text(item.name)}">{text(item.title)}</a></li>' for item in section.items)
    return f'<li><a href="#section-{text(section.name)}">{text(section.title)}</a><ul>{items}</ul></li>'


def plotly_script() -> str:
    """The library that draws the charts, as its own package ships it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ModuleNotFoundError(
            "The report's charts are drawn by plotly, which is not installed: run pip install 'roundelay[report]'."
        ) from error
    return get_plotlyjs().replace("</script", "<\\/script")


# ------------------------------------------------------------ claims


def claims_table(document: Document) -> str:
    """The filter and the rows; each links to what shows it, where the report has it."""
    titles = {item.name: item.title for section in document.sections for item in section.items}
    rows = "\n".join(_row(place, claim, titles) for place, claim in enumerate(document.claims, start=1))
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("Where", "Claim", "Measured", "Verdict", "Why"))
    return (
        f'<div class="filter" role="group" aria-label="Show claims by verdict">{_filter(document)}</div>\n'
        f'<div class="wide"><table class="claims"><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table></div>\n'
        '<p class="files"><a href="data/claims.csv">CSV</a> <a href="tables/claims.tex">LaTeX</a></p>'
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


# ------------------------------------------------------------ figures and tables


def figure_markup(figure: ChartFigure, decides: str) -> str:
    """A figure with its switches, its caption, and all that is needed to make it again."""
    legends = legends_of(figure)
    shared = "".join(legend_markup(figure, legend) for legend in legends if _is_shared(legend.panels, figure))
    own = {
        legend.panels[0]: legend_markup(figure, legend) for legend in legends if not _is_shared(legend.panels, figure)
    }
    panels = "\n".join(_panel(place, chart, own.get(place, "")) for place, chart in enumerate(figure.charts))
    columns = max(1, min(figure.columns, len(figure.charts)))
    notes = "".join(f"<li>{prose(note)}</li>" for note in figure.notes)
    name = text(figure.name)
    return f"""<figure class="charts" id="item-{name}">
<h3>{text(figure.title)}</h3>
{shared}
<div class="panels" style="--columns: {columns}">
{panels}
</div>
<script type="application/json" class="data">{embedded_json(figure_data(figure))}</script>
<figcaption>
<p class="caption">{prose(figure.caption)}</p>
{f'<ul class="notes">{notes}</ul>' if notes else ""}
{decides}
<div class="tools">
<button type="button" class="reset">Reset zoom</button>
<p class="files"><a href="figures/{name}.png">PNG</a> <a href="figures/{name}.svg">SVG</a> <a href="data/{name}.csv">CSV</a></p>
{_seeds(figure.seeds)}
</div>
{_command(figure.command)}
</figcaption>
</figure>"""


def table_markup(table: Table, decides: str) -> str:
    """A table with its caption; columns of numbers are set flush right."""
    numeric = [
        any(row[place] for row in table.rows) and all(_NUMBER.fullmatch(row[place]) for row in table.rows)
        for place in range(len(table.header))
    ]
    heads = "".join(_cell("th", head, number) for head, number in zip(table.header, numeric, strict=True))
    rows = "\n".join(
        f"<tr>{''.join(_cell('td', cell, number) for cell, number in zip(row, numeric, strict=True))}</tr>"
        for row in table.rows
    )
    name = text(table.name)
    return f"""<section class="table" id="item-{name}">
<h3>{text(table.title)}</h3>
<div class="wide" tabindex="0" role="region" aria-label="{text(table.title)}"><table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
<p class="caption">{prose(table.caption)}</p>
{decides}
<p class="files"><a href="data/{name}.csv">CSV</a> <a href="tables/{name}.tex">LaTeX</a></p>
</section>"""


def _is_shared(panels: tuple[int, ...], figure: ChartFigure) -> bool:
    return len(panels) > 1 or len(figure.charts) == 1


def _panel(place: int, chart: Chart, legend: str) -> str:
    title = f"<h4>{text(chart.title)}</h4>" if chart.title else ""
    y_label = f'<p class="y-label">{text(chart.y_label)}</p>' if chart.y_label and not chart.bare else ""
    x_label = f'<p class="x-label">{text(chart.x_label)}</p>' if chart.x_label and not chart.bare else ""
    kind = "plot bare" if chart.bare else "plot"
    words = text(", ".join(filter(None, (chart.title, f"{chart.y_label} over {chart.x_label}" if y_label else ""))))
    return (
        f'<div class="panel">{title}{legend}{y_label}'
        f'<div class="{kind}" data-panel="{place}" role="img" aria-label="{words}"></div>{x_label}</div>'
    )


def _seeds(words: str) -> str:
    """Which seeds were used, with the word itself where it is missing."""
    if not words:
        return ""
    said = words.lower().startswith("seed")
    return f'<p class="seeds">{prose(words[0].upper() + words[1:] if said else f"Seeds: {words}")}</p>'


def _command(command: str) -> str:
    if not command:
        return ""
    return f'<div class="command"><pre><code>{text(command)}</code></pre><button type="button" class="copy">Copy</button></div>'


def _cell(kind: str, words: str, number: bool) -> str:
    scope = ' scope="col"' if kind == "th" else ""
    style = ' class="number"' if number else ""
    return f"<{kind}{scope}{style}>{prose(words)}</{kind}>"
