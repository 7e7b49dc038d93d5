"""`roundelay reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundelay.cli import options
from roundelay.cli.exits import kept_if_interrupted
from roundelay.cli.output import print_result, progress_lines, stdout_console

if TYPE_CHECKING:
    from roundelay.paper.document import Judged


def reproduce(
    figure: Annotated[
        str | None,
        typer.Argument(
            help="One figure: fig1 to fig6, lagrangian, remarks, beyond or gamma. Without it the whole report."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder that the report, the figures and the numbers go to.")] = Path(
        "out/reproduce"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Three seeds instead of twenty.")] = False,
    dask: options.OnDask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON instead of a table.")] = False,
) -> None:
    """Every figure of the paper and a verdict on each of its claims.

    The report is one HTML file with interactive figures, beside it the figures as PNG and SVG and all numbers as CSV.
    What was computed is kept: a run that was interrupted goes on where it was.

    \b
    Example:
      roundelay reproduce
      roundelay reproduce --quick --out out/quick
      roundelay reproduce fig3
    """
    from roundelay.paper.pieces import FULL, QUICK, run_pieces
    from roundelay.paper.report import write_figure, write_files, write_report
    from roundelay.paper.report.page import plotly_script
    from roundelay.paper.reproduction import all_pieces, assemble, figure_named

    effort = QUICK if quick else FULL
    entry = figure_named(figure) if figure is not None else None
    if entry is None:
        plotly_script()  # who has none hears it now, and not after an hour
    with kept_if_interrupted("pieces", out / "pieces"), progress_lines("pieces") as tell:
        found = run_pieces(entry.pieces if entry else all_pieces(), effort, out / "pieces", report=tell, dask=dask)
        if entry is not None:
            written = write_figure(entry.make(found, effort), out)
        else:
            document = assemble(found, effort)
            written = write_files(document, out, processes=2, report=tell)
            page = write_report(document, out / "report.html")
    if entry is not None:
        if as_json:
            print_result({"files": [str(path) for path in written]})
        else:
            for path in written:
                typer.echo(str(path))
        return
    if as_json:
        from dataclasses import asdict

        print_result({"claims": [asdict(claim) for claim in document.claims], "report": str(page)})
        return
    _print_claims(document.claims)
    typer.echo(f"The report is {page}; figures are in {out / 'figures'}, all numbers in {out / 'data'}.")


def _print_claims(claims: Sequence[Judged]) -> None:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, show_lines=True)
    for column in ("claim", "verdict", "measured"):
        table.add_column(column, overflow="fold")
    for claim in claims:
        verdict = claim.verdict + (f": {claim.condition}" if claim.condition else "")
        table.add_row(f"{claim.name}\n({claim.where})", verdict, claim.measured)
    stdout_console().print(table)
