"""The figures as images, and the numbers behind them as CSV files that are the same, byte by byte, in every run."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from roundelay.comparison.runners import Task, Told, completed
from roundelay.paper.document import Document, Judged
from roundelay.paper.report.markup import CLAIMS_FILE, check_names, figures_of, tables_of
from roundelay.plots.chart import ChartFigure, chart_numbers
from roundelay.plots.chart_figure import draw_chart_figure
from roundelay.plots.saving import save_figure
from roundelay.shown.latex import as_latex
from roundelay.shown.provenance import before_csv, provenance
from roundelay.shown.table import Table


def write_files(
    document: Document, folder: str | Path, processes: int = 0, report: Told | None = None
) -> tuple[Path, ...]:
    """Write figures/NAME.png, figures/NAME.svg and data/NAME.csv for every figure, data/NAME.csv and tables/NAME.tex for every table.

    The claims are called claims. Missing folders are made. Figures are drawn in so many `processes`, 0 for this one;
    `report` is told of each. Returns the paths, figures first.
    """
    check_names(document)
    folder = Path(folder)
    written: dict[str, tuple[Path, ...]] = {}
    figures = figures_of(document)
    tasks = (Task(write_figure, (figure, folder), about=figure.name) for figure in figures)
    with completed(tasks, processes) as results:
        for result in results:
            written[result.task.about] = result.result()
            if report is not None:
                report("figures", len(written), len(figures))
    images = [path for figure in figures for path in written[figure.name]]
    return (*images, *write_tables(document, folder))


def write_tables(document: Document, folder: Path) -> tuple[Path, ...]:
    """Write data/NAME.csv and tables/NAME.tex for every table, and for the claims."""
    made = provenance(report=document.made_by)
    columns = [field.name for field in fields(Judged)]
    data = [(table.name, table.header, table.rows) for table in tables_of(document)]
    every = [*data, (CLAIMS_FILE, columns, tuple(map(astuple, document.claims)))]
    return (
        *(_write_rows(folder / "data" / f"{name}.csv", head, rows, made) for name, head, rows in every),
        *(_write_latex(folder, table, made) for table in (*tables_of(document), claims_table(document))),
    )


def claims_table(document: Document) -> Table:
    """What the paper says, what was measured, and the verdict."""
    rows = tuple((one.claim, one.measured, f"{one.verdict} {one.condition}".strip()) for one in document.claims)
    return Table(CLAIMS_FILE, "The claims of the paper", ("the paper says", "measured", "verdict"), rows, words=3)


def _write_latex(folder: Path, table: Table, made: Mapping[str, str]) -> Path:
    path = folder / "tables" / f"{table.name}.tex"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_latex(table, made, f"tab:{table.name}"), encoding="utf-8", newline="\n")
    return path


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
    text = chart_numbers(figure).to_csv(index=False, lineterminator="\n")
    made = before_csv(provenance(figure=figure.name, seeds=figure.seeds))
    path.write_text(made + text, encoding="utf-8", newline="\n")
    return path


def _write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]], made: Mapping[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(before_csv(made))
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
