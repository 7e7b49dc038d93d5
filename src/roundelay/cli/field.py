"""`roundelay field`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundelay.cli import options
from roundelay.cli.exits import kept_if_interrupted
from roundelay.cli.output import print_result, progress_lines


def field(
    out: Annotated[Path, typer.Option(help="The folder that results are kept in and the tables written to.")] = Path(
        "out/field"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two small panels and few evaluations, to try it out.")
    ] = False,
    dask: options.OnDask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Every method of the field in one table: units to 1e-6, with given and with tuned parameters.

    N = 100 and 200, p = 2, 20 and 100, least squares and logistic regression. It takes about an hour on two cores, and
    each cell is kept as soon as it is there: start it again, and it goes on where it was.

    \b
    Example:
      roundelay field --out out/field
      roundelay field --quick
    """
    from roundelay.comparison.field import (
        FIELD_PANELS,
        QUICK_PANELS,
        field_as_csv,
        field_as_markdown,
        field_tables,
        run_field,
    )
    from roundelay.shown.provenance import before_csv, provenance
    from roundelay.shown.show import to_latex

    folder = out / "quick" if quick else out
    with kept_if_interrupted("cells", folder), progress_lines("cells") as tell:
        if quick:
            cells = run_field(folder, QUICK_PANELS, seeds=2, evaluations=4, report=tell, dask=dask)
        else:
            cells = run_field(folder, FIELD_PANELS, report=tell, dask=dask)
    (folder / "field.md").write_text(field_as_markdown(cells), encoding="utf-8")
    (folder / "field.csv").write_text(before_csv(provenance()) + field_as_csv(cells), encoding="utf-8")
    (folder / "field.tex").write_text("\n".join(map(to_latex, field_tables(cells))), encoding="utf-8")
    if as_json:
        from dataclasses import asdict

        print_result({"cells": [asdict(cell) for cell in cells], "folder": str(folder)})
        return
    typer.echo(field_as_markdown(cells))
    typer.echo(f"The table is in {folder / 'field.md'}, every number with its parameters in {folder / 'field.csv'}.")
