"""How results show themselves in a notebook: words, tables and small curves, in the colours that it has by day and by night."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from roundelay.shown.markup import Markup, joined, tag
from roundelay.shown.numbers import FIGURE_SPACE, POINT_SPACE
from roundelay.shown.table import Table

# Of longer tables the first and the last rows.
MOST_ROWS = 60
_SIZE = (220, 36)
_MOST_POINTS = 110
# Seen on white and on black; everything else has the colour of the words around it.
_ACCENT = "#2b8cc4"


@dataclass(frozen=True)
class Curve:
    """A small picture of how something went, the logarithm of positive numbers."""

    name: str
    over: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class View:
    """What somebody sees of a result: words, tables, and small curves."""

    words: str
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()


def as_html(view: View) -> str:
    """The view as markup without a script, an address, or a colour that is not seen at night."""
    parts = [tag("p", {"style": "margin: 0.3em 0"}, line) for line in view.words.splitlines()]
    parts += [_table(table) for table in view.tables]
    drawn = [tag("div", {}, _sparkline(curve), f" {curve.name}") for curve in view.curves]
    return tag("div", {"class": "roundelay"}, *parts, *drawn)


def in_notebook() -> bool:
    """Whether what this process prints is shown in the cells of a notebook, where no terminal is."""
    # That ipykernel was imported says nothing: Dask does so in any program.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _table(table: Table) -> Markup:
    rows = table.aligned(FIGURE_SPACE, POINT_SPACE)
    left_out = len(rows) - MOST_ROWS
    if left_out > 0:
        rows = (*rows[: MOST_ROWS // 2], *rows[-MOST_ROWS // 2 :])
    sides = ["left" if table.is_of_words(place) else "right" for place in range(len(table.header))]
    line = "border-bottom: 1px solid color-mix(in srgb, currentColor {}%, transparent)"

    def row(name: str, cells: Sequence[str], strength: int) -> Markup:
        shape = f"padding: 0.15em 0.9em 0.15em 0; background: none; {line.format(strength)}"
        numbers = "font-variant-numeric: tabular-nums; white-space: nowrap"
        return tag(
            "tr", {"style": "background: none"},
            *(
                tag(name, {"style": f"text-align: {side}; {shape}; {numbers if side == 'right' else 'max-width: 40em'}"}, cell)
                for cell, side in zip(cells, sides, strict=True)
            ),
        )  # fmt: skip

    body = [row("td", cells, 12) for cells in rows]
    if left_out > 0:
        body.insert(MOST_ROWS // 2, tag("tr", {}, tag("td", {"colspan": len(sides)}, f"… {left_out:,} more rows …")))
    style = "border-collapse: collapse; font-size: 0.92em; margin: 0.4em 0"
    title = [tag("caption", {"style": "text-align: left; font-weight: 600"}, table.title)] if table.title else []
    below = [tag("p", {"style": "margin: 0; opacity: 0.75"}, table.caption)] if table.caption else []
    head = tag("thead", {}, row("th", table.header, 60))
    return joined([tag("table", {"style": style}, *title, head, tag("tbody", {}, *body)), *below])


def _sparkline(curve: Curve) -> Markup:
    """A line in a small frame; what is no number is left out."""
    width, height = _SIZE
    step = max(1, len(curve.values) // _MOST_POINTS)
    known = [
        (over, math.log10(value))
        for over, value in zip(curve.over[::step], curve.values[::step], strict=True)
        if math.isfinite(over) and math.isfinite(value) and value > 0.0
    ]
    if len(known) < 2:
        return tag("span", {}, "–")
    xs, ys = zip(*known, strict=True)

    def along(value: float, low: float, high: float) -> float:
        return (value - low) / (high - low) if high > low else 0.5

    points = " ".join(
        f"{2 + (width - 4) * along(x, min(xs), max(xs)):.1f},{2 + (height - 4) * (1 - along(y, min(ys), max(ys))):.1f}"
        for x, y in known
    )
    line = tag("polyline", {"points": points, "fill": "none", "stroke": _ACCENT, "stroke-width": 1.5})
    said = f"{curve.name}: from {10.0 ** ys[0]:.2g} to {10.0 ** ys[-1]:.2g}"
    return tag(
        "svg", {"width": width, "height": height, "role": "img", "aria-label": said, "style": "vertical-align: middle"},
        tag("title", {}, said), line,
    )  # fmt: skip
