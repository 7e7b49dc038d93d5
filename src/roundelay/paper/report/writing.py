"""The figures as images, and the numbers behind them as CSV files that are the same, byte by byte, in every run."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from roundelay.comparison.workers import Told, workers
from roundelay.paper.document import Document, Judged
from roundelay.paper.report.markup import CLAIMS_FILE, check_names, figures_of, tables_of
from roundelay.plots.chart import ChartFigure, chart_numbers
from roundelay.plots.chart_figure import draw_chart_figure
from roundelay.plots.saving import save_figure


def write_files(
    document: Document, folder: str | Path, processes: int = 1, report: Told | None = None
) -> tuple[Path, ...]:
    """Write figures/NAME.png, figures/NAME.svg and data/NAME.csv for every figure, and data/NAME.csv for every table.

    The claims are in data/claims.csv. Missing folders are made. Figures are drawn in so many `processes`; `report` is
    told of each. Returns the paths, figures first.
    """
    check_names(document)
    folder = Path(folder)
    written: list[Path] = []
    figures = figures_of(document)
    for done, paths in enumerate(_each_written(figures, folder, processes), start=1):
        written += paths
        if report is not None:
            report("figures", done, len(figures))
    return (*written, *write_tables(document, folder))


def write_tables(document: Document, folder: Path) -> tuple[Path, ...]:
    """Write data/NAME.csv for every table, and data/claims.csv."""
    tables = [
        _write_rows(folder / "data" / f"{table.name}.csv", table.columns, table.rows) for table in tables_of(document)
    ]
    columns = [field.name for field in fields(Judged)]
    return (*tables, _write_rows(folder / "data" / f"{CLAIMS_FILE}.csv", columns, map(astuple, document.claims)))


def _each_written(figures: Sequence[ChartFigure], folder: Path, processes: int) -> Iterator[tuple[Path, ...]]:
    if processes == 1:
        yield from (write_figure(figure, folder) for figure in figures)
        return
    with workers(processes) as submit:
        for future in [submit(write_figure, figure, folder) for figure in figures]:
            yield future.result()


def write_figure(figure: ChartFigure, folder: str | Path) -> tuple[Path, ...]:
    """Write figures/NAME.png, figures/NAME.svg and data/NAME.csv; missing folders are made."""
    folder = Path(folder)
    drawn = draw_chart_figure(figure)
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")  # what was laid out once need not be for each file
    images = [save_figure(drawn, folder / "figures" / f"{figure.name}.{suffix}") for suffix in ("png", "svg")]
    return (*images, write_numbers(figure, folder))


def write_numbers(figure: ChartFigure, folder: Path) -> Path:
    """Write data/NAME.csv, what the figure shows."""
    path = folder / "data" / f"{figure.name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    chart_numbers(figure).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
    return path


def _write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([for_a_program(cell) for cell in row] for row in rows)
    return path


def for_a_program(cell: object) -> object:
    """A number as programs read it, where a cell has one in the words of a reader: 5643 and inf for 5,643 and never."""
    if not isinstance(cell, str):
        return cell
    if cell == "never":
        return "inf"
    return cell.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", cell) else cell
