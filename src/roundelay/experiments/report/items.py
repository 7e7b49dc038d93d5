"""The figures and tables of a section."""

from __future__ import annotations

import re

from roundelay.experiments.report.chart_data import figure_data
from roundelay.experiments.report.legend import legend_markup
from roundelay.experiments.report.markup import embedded_json, prose, text
from roundelay.experiments.reproduce.document import Table
from roundelay.plots.chart import Chart, ChartFigure
from roundelay.plots.legends import legends_of

NUMBER = re.compile(r"[−+-]?[\d.,]+([eE][−+-]?\d+)?( ?[%×])?|[—–-]?")


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
        any(row[place] for row in table.rows) and all(NUMBER.fullmatch(row[place]) for row in table.rows)
        for place in range(len(table.columns))
    ]
    heads = "".join(_cell("th", head, number) for head, number in zip(table.columns, numeric, strict=True))
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
<p class="files"><a href="data/{name}.csv">CSV</a></p>
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
