"""What a comparison leaves behind: a row for each method, as a table, as text and as figures."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.comparison.costs import Reached, amount, brief, reached, short
from roundelay.comparison.naming import parameters_in_words
from roundelay.engine import Ensemble
from roundelay.networks.network_checks import join_names
from roundelay.plots import plot_convergence, save_figure
from roundelay.plots.style import Cost
from roundelay.shown.notebook import View
from roundelay.shown.provenance import before_csv, commented, provenance
from roundelay.shown.show import Shown
from roundelay.shown.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


SUFFIXES = ("png", "svg")
_WIDTH = 110

# What stands in the table where there is no cost; the sentences below it say more.
NO_COST = {"floor": "floor", "diverged": "diverged", "budget": "not yet"}


@dataclass(frozen=True, eq=False)
class Row:
    """One method of a comparison.

    `algorithm` is the method as it was given, and `parameters` all its parameters in words, with the step sizes that
    it took from the problem. `costs` has for each axis, "units", "bytes" and perhaps "seconds", what each level cost.
    `final_error` is the median at the end, and so is `final_objective` where there is no minimiser to say how far it is; `stops` counts over
    the seeds why they stopped. `words` says what came of it.
    """

    name: str
    algorithm: Any
    parameters: str
    costs: Mapping[Cost, tuple[Reached, ...]]
    final_error: float
    stops: Mapping[str, int]
    words: str
    final_objective: float = math.nan


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """The result of `compare`.

    `rows` has every method that was asked for, also one that was refused, that diverged, or that Ctrl-C cut short.
    `ensembles` holds the runs of those that were run, by name. `axes` is what costs are given in: "units", "bytes", and
    "seconds" where the network's conditions were given.
    """

    rows: tuple[Row, ...]
    ensembles: Mapping[str, Ensemble]
    levels: tuple[float, ...]
    axes: tuple[Cost, ...]
    column: str
    seeds: tuple[int, ...]
    units: float
    interrupted: bool

    def __repr__(self) -> str:
        return f"Comparison({', '.join(row.name for row in self.rows)}; {len(self.seeds)} seeds)"

    def __str__(self) -> str:
        return self.text()

    def view(self) -> View:
        """A table for each axis, then what became of methods that did not get everywhere, and how the first seed of each went."""
        tables = [_costs(self.rows, self.levels, axis, self.column) for axis in self.axes]
        for name, notes in (
            ("parameters", _parameters(self.rows)),
            ("outcomes", _unsettled(self.rows, len(self.seeds))),
        ):
            if notes:
                tables.append(Table(name, "", ("method", name), tuple(notes), words=2))
        curves = tuple(ensemble[0].curve(name) for name, ensemble in self.ensembles.items() if len(ensemble))
        return View(_heading(self.column, self.seeds, self.units), tuple(tables), curves)

    def made(self) -> dict[str, Any]:
        """Every method with its parameters, and the seeds."""
        return {
            "parameters": "; ".join(f"{row.name}: {row.parameters}" for row in self.rows),
            "seeds": ", ".join(map(str, self.seeds)),
            "data": "; ".join(dict.fromkeys(filter(None, (one.made()["data"] for one in self.ensembles.values())))),
        }

    def table(self) -> pd.DataFrame:
        """One row a method: the costs of each level on each axis, infinite where it was not reached.

        `seeds_at_…` is how many seeds reached a level; `final_…` is the median at the end; `stops` counts why the seeds
        stopped.
        """
        import pandas as pd

        return pd.DataFrame([self._cells(row) for row in self.rows]).set_index("method")

    def text(self) -> str:
        """The comparison as plain text, with the parameters of each method."""
        return comparison_in_text(self.rows, self.levels, self.axes, self.column, self.seeds, self.units)

    def figure(self, over: Cost = "units") -> Figure:
        """The error of each method over units, bytes or seconds, both on logarithmic axes."""
        if not self.ensembles:
            raise ValueError("No method could be run, so there is nothing to draw: `text()` says why.")
        missing = [row.name for row in self.rows if row.name not in self.ensembles]
        title = textwrap.fill(f"Not drawn, since not run: {join_names(missing)}", 90) if missing else None
        # Below this all but the one pass have stopped.
        lowest = 0.2 * min(self.levels) if self.column == "error" else 0.0
        return plot_convergence(self.ensembles, self.column, title=title, over=over, log_cost=True, lowest=lowest)

    def save(self, folder: str | Path) -> list[Path]:
        """Write table.csv, table.txt, table.tex, and a figure over each axis as PNG and SVG; missing folders are made."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / f"table.{suffix}" for suffix in ("csv", "txt", "tex")]
        made = provenance(**self.made())
        csv = before_csv(made) + self.table().to_csv(lineterminator="\n")
        contents = (csv, f"{self.text()}\n{commented(made)}", self.to_latex())
        for path, content in zip(written, contents, strict=True):
            path.write_text(content, encoding="utf-8", newline="\n")
        for axis in self.axes if self.ensembles else ():
            figure = self.figure(axis)
            written += [save_figure(figure, folder / f"{self.column}_over_{axis}.{suffix}") for suffix in SUFFIXES]
        return written

    def _cells(self, row: Row) -> dict[str, Any]:
        costs = {f"{axis}_to_{short(cost.level)}": cost.cost for axis in self.axes for cost in row.costs[axis]}
        return {
            "method": row.name,
            **costs,
            **{f"seeds_at_{short(cost.level)}": cost.seeds for cost in row.costs["units"]},
            f"final_{self.column}": row.final_error,
            **({} if math.isnan(row.final_objective) else {"final_objective": row.final_objective}),
            "stops": ", ".join(f"{stop} {times}" for stop, times in row.stops.items()),
            "parameters": row.parameters,
            "outcome": row.words,
        }


# ------------------------------------------------------------ a row


def row_of(
    name: str, algorithm: Any, ensemble: Ensemble, levels: Sequence[float], axes: Sequence[Cost], column: str
) -> Row:
    """The row of a method that was run."""
    costs = {axis: tuple(reached(ensemble, level, column, axis) for level in levels) for axis in axes}
    return Row(
        name,
        algorithm,
        parameters_in_words([run.algorithm for run in ensemble]),
        costs,
        float(np.median([run.history[column].iloc[-1] for run in ensemble])),
        dict(Counter(run.stop for run in ensemble)),
        _outcome(costs["units"], len(ensemble)),
        math.nan if ensemble[0].has_optimum else float(np.median([run.column("objective")[-1] for run in ensemble])),
    )


def row_without(name: str, algorithm: Any, why: str, words: str, levels: Sequence[float], axes: Sequence[Cost]) -> Row:
    """The row of a method that was refused, or interrupted."""
    costs = {axis: tuple(Reached(level, axis, math.inf, 0, why, why) for level in levels) for axis in axes}
    return Row(name, algorithm, parameters_in_words([algorithm]), costs, math.nan, {}, words)


def _outcome(costs: Sequence[Reached], seeds: int) -> str:
    """What came of it, in a sentence or two."""
    missed = [cost for cost in costs if cost.why_not]
    partly = [cost for cost in costs if not cost.why_not and cost.seeds < seeds]
    sentences = []
    if not missed:
        sentences.append("It reached every level.")
    else:
        levels = join_names([short(cost.level) for cost in missed])
        sentences.append(f"To {levels}: {missed[-1].words}.")
    sentences += [f"{cost.seeds} of {seeds} seeds reached {short(cost.level)}." for cost in partly]
    return " ".join(sentences)


# ------------------------------------------------------------ the text


def comparison_in_text(
    rows: Sequence[Row], levels: Sequence[float], axes: Sequence[Cost], column: str, seeds: Sequence[int], units: float
) -> str:
    """A table for each axis, then the parameters of each method, then what became of those that did not get there."""
    blocks = [textwrap.fill(_heading(column, seeds, units), _WIDTH)]
    blocks += [_table(_costs(rows, levels, axis, column)) for axis in axes]
    blocks.append(_notes("parameters", _parameters(rows)))
    if unsettled := _unsettled(rows, len(seeds)):
        blocks.append(_notes("outcomes", unsettled))
    return "\n\n".join(blocks) + "\n"


def _heading(column: str, seeds: Sequence[int], units: float) -> str:
    times = "one seed" if len(seeds) == 1 else f"the median of {len(seeds)} seeds"
    return (
        f"What it costs until the {column.replace('_', ' ')} stays at or below a level: {times}, "
        f"at most about {units:,.0f} units."
    )


def _parameters(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [(row.name, row.parameters) for row in rows]


def _unsettled(rows: Sequence[Row], seeds: int) -> list[tuple[str, str]]:
    """What became of methods of which not every seed reached every level."""
    return [
        (row.name, row.words) for row in rows if row.costs and any(cost.seeds < seeds for cost in row.costs["units"])
    ]


def _objective(row: Row) -> str:
    return "–" if math.isnan(row.final_objective) else f"{row.final_objective:.6g}"


def _costs(rows: Sequence[Row], levels: Sequence[float], axis: Cost, column: str) -> Table:
    head = [axis, *(f"to {short(level)}" for level in levels), "final error"]
    body = [[row.name, *(_cell(cost) for cost in row.costs[axis]), _error(row.final_error)] for row in rows]
    if any(math.isfinite(row.final_objective) for row in rows):
        head[-1:] = ["final gradient", "objective"] if column == "gradient_norm" else ["at the end", "objective"]
        body = [[*cells, _objective(row)] for cells, row in zip(body, rows, strict=True)]
    return Table(axis, "", tuple(head), tuple(map(tuple, body)))


def _table(table: Table) -> str:
    widths = [max(map(len, column)) for column in zip(table.header, *table.rows, strict=True)]
    lines = [_line(table.header, widths), "─" * (sum(widths) + 2 * (len(widths) - 1))]
    return "\n".join([*lines, *(_line(cells, widths) for cells in table.rows)])


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
        wrapped = textwrap.wrap(words, max(_WIDTH - indent, 40), break_long_words=False, break_on_hyphens=False)
        lines.append(f"{name:<{indent}}" + f"\n{' ' * indent}".join(wrapped))
    return "\n".join(lines)
