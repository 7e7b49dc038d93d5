"""`roundelay demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli.options import Engine
from roundelay.cli.output import print_json, print_result, progress_lines, stdout_console

if TYPE_CHECKING:
    from roundelay.paper import Demo


def demo(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds: each has its own data and network.")] = 10,
    hops: Annotated[int, typer.Option(min=1, help="How many hops the token makes in each run.")] = 12_000,
    out: Annotated[Path, typer.Option(help="The folder that demo.png is written to.")] = Path("out"),
    engine: Annotated[Engine, typer.Option(help="Which engine runs the methods.")] = Engine.auto,
    compile_only: Annotated[bool, typer.Option("--compile-only", help="Compile the methods and run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare I-ADMM, W-ADMM, PI-ADMM1 and PI-ADMM2 on the paper's least squares.

    It prints what each method costs in communication until its error, (1/N) Σ ‖x_i − x*‖/‖x*‖, stays below
    1e-3, 1e-6 and 1e-9, and draws the figure. The first time each method is compiled, which takes seconds.

    \b
    Example:
      roundelay demo --seeds 10 --out out
    """
    if compile_only:
        _compile(as_json)
        return
    from roundelay.paper import plot_demo, run_demo
    from roundelay.plots import save_figure

    with progress_lines("seeds") as tell:
        result = run_demo(range(seeds), hops, tell, engine.value)
    figure = save_figure(plot_demo(result), out / "demo.png")
    if as_json:
        print_result(_as_json(result, seeds, hops, figure))
        return
    _print_table(result, seeds, hops)
    typer.echo(f"The figure is in {figure}.")


def _compile(as_json: bool) -> None:
    from roundelay.paper import DEMO_METHODS, compile_methods

    done: list[str] = []
    names = [method.name for method in DEMO_METHODS]
    with progress_lines("methods") as tell:
        tell("Compiling", 0, len(names))

        def one_more(name: str) -> None:
            done.append(name)
            tell("Compiling", len(done), len(names))

        compile_methods(DEMO_METHODS, one_more)
    if as_json:
        print_json({"compiled": names})
    else:
        typer.echo(f"{', '.join(names[:-1])} and {names[-1]} are compiled, and stay so on disk.")


def _print_table(result: Demo, seeds: int, hops: int) -> None:
    from rich.box import ROUNDED
    from rich.table import Table

    from roundelay.comparison.costs import brief

    typer.echo(f"Units of communication until the common error stays below a level, {_seeds(seeds)}, {hops:,} hops:")
    table = Table(box=ROUNDED)
    table.add_column("method", no_wrap=True)
    for level in result.levels:
        table.add_column(f"to {brief(level, digits=1)}", justify="right")
    table.add_column("final error", justify="right")
    for row in result.rows:
        table.add_row(row.method, *(cost.words.replace(" (", "\n(") for cost in row.costs), brief(row.final_error))
    stdout_console().print(table)


def _seeds(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"median of {seeds} seeds"


def _as_json(result: Demo, seeds: int, hops: int, figure: Path) -> dict[str, Any]:
    from roundelay.comparison.costs import brief

    rows = [
        {
            "method": row.method,
            "units_to": {brief(cost.level, digits=1): {"units": cost.cost, "words": cost.words} for cost in row.costs},
            "final_error": row.final_error,
        }
        for row in result.rows
    ]
    return {"seeds": seeds, "hops": hops, "methods": rows, "figure": str(figure)}
