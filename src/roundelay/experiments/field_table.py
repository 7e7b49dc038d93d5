"""The table of the field as Markdown and CSV, and what can be read off it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from roundelay.comparison.numbers import brief
from roundelay.experiments.field import (
    DENSITY,
    EVALUATIONS,
    GOSSIP_ITERATIONS,
    LEVEL,
    SAMPLES,
    SEEDS,
    TOKEN_UNITS,
    TUNING_SEEDS,
    Cell,
)


def field_as_markdown(cells: Sequence[Cell]) -> str:
    """One table for each kind of problem, and what can be read off it."""
    kinds = list(dict.fromkeys(cell.panel.split(",")[0] for cell in cells))
    blocks = [_heading()]
    for kind in kinds:
        own = [cell for cell in cells if cell.panel.startswith(f"{kind},")]
        blocks += [f"## {kind.capitalize()}", _table(own), _readings(own)]
    return "\n\n".join(blocks) + "\n"


def field_as_csv(cells: Sequence[Cell]) -> str:
    """All cells with their parameters."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Cell)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(cell) for cell in cells)
    return text.getvalue()


def _heading() -> str:
    return (
        "# The field\n\n"
        f"Units until the common error (1/N)Σ‖x_i − x*‖/‖x*‖ stays at or below {brief(LEVEL, 1)}: the paper's synthetic data, b = {SAMPLES} "
        f"rows an agent, random networks of density {DENSITY}; the median of {_by_dim(SEEDS)} seeds, each with its own data and network, "
        f"for p = {_by_dim(dict(zip(SEEDS, SEEDS, strict=True)))}.\n\n"
        "A cell reads *given / tuned*. Given are the paper's parameters where it prints them (methods with a star), else their "
        "authors' or what follows from L. Tuned are the same methods after "
        f"{_by_dim(EVALUATIONS)} evaluations of `rl.tune`, the same for all methods of a column, on {_by_dim(TUNING_SEEDS)} other seeds; where the tuned "
        "one needs more, the seeds differ. Methods in italics are biased: they end at the floor that is given, and are not tuned, since no "
        "parameter takes the floor below the level in reasonable time. An error in place of units is what was left after "
        f"{_by_dim(GOSSIP_ITERATIONS)} iterations, or {_by_dim(TOKEN_UNITS)} hops of a token (a fifth of that for biased methods). A dash means that "
        "the method can't be run on the problem, or was left out as too slow; field.csv has the words, and all parameters. Made by "
        "`make field`."
    )


def _by_dim(numbers: Mapping[int, float]) -> str:
    """One number for each dimension."""
    words = [f"{number:,.0f}" for number in numbers.values()]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _table(cells: Sequence[Cell]) -> str:
    panels = list(dict.fromkeys(cell.panel for cell in cells))
    methods = list(dict.fromkeys(cell.method for cell in cells))
    by_place = {(cell.method, cell.panel): cell for cell in cells}
    heads = [panel.split(", ", 1)[1] for panel in panels]
    lines = [f"| method | {' | '.join(heads)} |", f"|---|{'---:|' * len(panels)}"]
    for method in methods:
        row = [by_place[method, panel] for panel in panels]
        name = f"{method}{'*' if row[0].from_paper else ''}"
        lines.append(f"| {name if row[0].exact else f'*{name}*'} | {' | '.join(map(_cell, row))} |")
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    given = _short(cell.given, cell.given_words)
    if cell.tuned is None:
        return given
    return f"{given} / {_short(cell.tuned, cell.tuned_words)}"


def _short(units: float, words: str) -> str:
    if math.isfinite(units):
        return f"{units:,.0f}"
    for what in ("floor", "error"):  # as in "never (floor 2e-3)" and "not in 1,000 (error 2e-3)"
        if f"({what} " in words:
            return words[words.index(f"({what} ") + 1 :].rstrip(").")
    if "diverged" in words:
        return "diverged"
    return "—"


def best_of(cell: Cell) -> float:
    """The fewer units of the given and the tuned parameters."""
    return cell.given if cell.tuned is None else min(cell.given, cell.tuned)


def _readings(cells: Sequence[Cell]) -> str:
    """For each panel: I-ADMM against what beats it, and the best gossip method."""
    lines = []
    for panel in dict.fromkeys(cell.panel for cell in cells):
        best = {cell.method: best_of(cell) for cell in cells if cell.panel == panel}
        own = best.get("I-ADMM", math.inf)
        ahead = sorted((units, method) for method, units in best.items() if units < own)
        words = ", ".join(f"{method} ({units:,.0f})" for units, method in ahead) or "no method"
        amount = f"{own:,.0f}" if math.isfinite(own) else "not there in its budget"
        lines.append(f"- {panel.split(', ', 1)[1]}: I-ADMM at its better parameters {amount}; fewer units: {words}.")
    return "\n".join(lines)
