"""A comparison as plain text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from roundelay.comparison.costs import Reached
from roundelay.comparison.numbers import amount, brief, short
from roundelay.comparison.rows import Row
from roundelay.plots.labels import Cost

WIDTH = 110

# What stands in the table where there is no cost; the sentences below it say more.
NO_COST = {"floor": "floor", "diverged": "diverged", "budget": "not yet"}


def comparison_in_text(
    rows: Sequence[Row], levels: Sequence[float], axes: Sequence[Cost], column: str, seeds: Sequence[int], units: float
) -> str:
    """A table for each axis, then the parameters of each method, then what became of those that did not get there."""
    times = "one seed" if len(seeds) == 1 else f"the median of {len(seeds)} seeds"
    heading = (
        f"What it costs until the {column.replace('_', ' ')} stays at or below a level: {times}, "
        f"at most about {units:,.0f} units."
    )
    blocks = [textwrap.fill(heading, WIDTH), *(_table(rows, levels, axis) for axis in axes)]
    blocks.append(_notes("parameters", [(row.name, row.parameters) for row in rows]))
    unsettled = [(row.name, row.words) for row in rows if row.costs and not _whole(row, len(seeds))]
    if unsettled:
        blocks.append(_notes("outcomes", unsettled))
    return "\n\n".join(blocks) + "\n"


def _whole(row: Row, seeds: int) -> bool:
    """Whether every seed reached every level."""
    return all(cost.seeds == seeds for cost in row.costs["units"])


def _table(rows: Sequence[Row], levels: Sequence[float], axis: Cost) -> str:
    head = [axis, *(f"to {short(level)}" for level in levels), "final error"]
    body = [[row.name, *(_cell(cost) for cost in row.costs[axis]), _error(row.final_error)] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = [_line(head, widths), "─" * (sum(widths) + 2 * (len(widths) - 1))]
    return "\n".join([*lines, *(_line(cells, widths) for cells in body)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = [
        f"{cell:<{width}}" if not place else f"{cell:>{width}}"
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join([first, *others]).rstrip()


def _cell(cost: Reached) -> str:
    return amount(cost.cost, cost.axis) if math.isfinite(cost.cost) else NO_COST.get(cost.why_not, cost.why_not)


def _error(error: float) -> str:
    return "–" if math.isnan(error) else brief(error)


def _notes(title: str, notes: Sequence[tuple[str, str]]) -> str:
    indent = max(len(name) for name, _ in notes) + 2
    lines = [title]
    for name, words in notes:
        wrapped = textwrap.wrap(words, max(WIDTH - indent, 40), break_long_words=False, break_on_hyphens=False)
        lines.append(f"{name:<{indent}}" + f"\n{' ' * indent}".join(wrapped))
    return "\n".join(lines)
