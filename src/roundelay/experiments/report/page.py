"""The whole report as one page that needs nothing but itself."""

from __future__ import annotations

from pathlib import Path
from string import Template

from roundelay.experiments.report.claims import claim_links, claims_table
from roundelay.experiments.report.items import figure_markup, table_markup
from roundelay.experiments.report.looks import palette_style
from roundelay.experiments.report.markup import paragraphs, prose, resource, text
from roundelay.experiments.report.names import check_names
from roundelay.experiments.reproduce.document import Document, Section
from roundelay.plots.chart import ChartFigure


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
        plotly=_plotly_script(),
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


def _plotly_script() -> str:
    """The library that draws the charts, as its own package ships it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ModuleNotFoundError(
            "The report's charts are drawn by plotly, which is not installed: run pip install 'roundelay[report]'."
        ) from error
    return get_plotlyjs().replace("</script", "<\\/script")
