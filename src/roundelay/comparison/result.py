"""What a comparison leaves behind."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.comparison.numbers import in_words, short
from roundelay.comparison.rows import Row
from roundelay.comparison.text import comparison_in_text
from roundelay.engine import Ensemble
from roundelay.plots import plot_convergence, save_figure
from roundelay.plots.labels import Cost

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SUFFIXES = ("png", "svg")


@dataclass(frozen=True, eq=False)
class Comparison:
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
        title = textwrap.fill(f"Not drawn, since not run: {in_words(missing)}", 90) if missing else None
        figure = plot_convergence(self.ensembles, self.column, title=title, over=over, log_cost=True)
        if self.column == "error":  # below this all but the one pass have stopped
            bottom, _ = figure.axes[0].get_ylim()
            figure.axes[0].set_ylim(bottom=max(bottom, 0.2 * min(self.levels)))
        return figure

    def save(self, folder: str | Path) -> list[Path]:
        """Write table.csv, table.txt, and a figure over each axis as PNG and SVG; missing folders are made."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "table.csv", folder / "table.txt"]
        self.table().to_csv(written[0])
        written[1].write_text(self.text(), encoding="utf-8")
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
            "stops": ", ".join(f"{stop} {times}" for stop, times in row.stops.items()),
            "parameters": row.parameters,
            "outcome": row.words,
        }
