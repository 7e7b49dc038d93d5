"""The legend of a page's panels: a button for each series, which switches it in all of them."""

from __future__ import annotations

from roundelay.experiments.report.looks import Look, look_of
from roundelay.experiments.report.markup import text
from roundelay.plots.chart import ChartFigure
from roundelay.plots.drawable import drawable
from roundelay.plots.legends import Legend

# The markers within a field of 32 by 12, around its middle.
SHAPES = {
    "circle": '<circle cx="16" cy="6" r="3.6"/>',
    "square": '<rect x="12.6" y="2.6" width="6.8" height="6.8"/>',
    "triangle-up": '<path d="M16 1.8 20 9H12Z"/>',
    "diamond": '<path d="M16 1.4 20.6 6 16 10.6 11.4 6Z"/>',
    "triangle-down": '<path d="M16 10.2 12 3h8Z"/>',
    "cross": '<path d="M14.5 2h3v2.5H20v3h-2.5V10h-3V7.5H12v-3h2.5Z"/>',
    "x": '<path d="m13.6 1.9 2.4 2.4 2.4-2.4 1.7 1.7L17.7 6l2.4 2.4-1.7 1.7L16 7.7l-2.4 2.4-1.7-1.7L14.3 6l-2.4-2.4Z"/>',
    "star": '<path d="m16 1 1.3 3.5 3.7.1-2.9 2.3 1 3.6L16 8.4l-3.1 2.1 1-3.6L11 4.6l3.7-.1Z"/>',
}


def legend_markup(figure: ChartFigure, legend: Legend) -> str:
    """The buttons; a series that is not shown at first is switched off."""
    panels = [figure.charts[panel] for panel in legend.panels]
    buttons = []
    for series in legend.entries:
        chart = next(panel for panel in panels if series in panel.series)
        shown = any(each.shown for panel in panels for each in panel.series if each.label == series.label)
        swatch = _swatch(look_of(drawable(chart), series))
        buttons.append(
            f'<button type="button" data-label="{text(series.label)}" aria-pressed="{str(shown).lower()}">'
            f"{swatch}<span>{text(series.label)}</span></button>"
        )
    numbers = " ".join(map(str, legend.panels))
    return f'<div class="legend" role="group" aria-label="Series" data-panels="{numbers}">{"".join(buttons)}</div>'


def _swatch(look: Look) -> str:
    parts = ""
    if look.width:
        dashes = "" if look.dash == "solid" else f' stroke-dasharray="{look.dash.replace("px", "")}"'
        parts += f'<path d="M1 6h30" fill="none" stroke="currentColor" stroke-width="{look.width:g}"{dashes}/>'
    if look.symbol:
        fill = "var(--paper)" if look.hollow else "currentColor"
        parts += f'<g fill="{fill}" stroke="currentColor" stroke-width="{1.4 if look.hollow else 0}">{SHAPES[look.symbol]}</g>'
    return f'<svg viewBox="0 0 32 12" width="32" height="12" aria-hidden="true" style="color: var({look.colour})">{parts}</svg>'
