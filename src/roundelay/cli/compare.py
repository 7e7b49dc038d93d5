"""`roundelay compare`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import completion, options
from roundelay.cli.exits import BAD_INPUT, INTERRUPTED
from roundelay.cli.options import (
    USUAL_PROBLEM,
    AnyScene,
    Engine,
    FileOfRows,
    Scene,
    conditions_in_words,
    conditions_of,
)
from roundelay.cli.output import print_result, progress_lines

if TYPE_CHECKING:
    from roundelay.comparison import Comparison, Row, Tuning
    from roundelay.links.conditions import NetworkConditions

WIDTH = 110


def compare(
    algorithms: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM",
            help="Their names, with options after a colon, as in iadmm coca:c=0.2,alpha=1.",
            autocompletion=completion.algorithms,
        ),
    ],
    problem: options.Problem = USUAL_PROBLEM,
    agents: options.Agents = 100,
    density: options.Density = 0.3,
    dim: options.Dim = 2,
    samples: options.Samples = 30,
    data: options.Data = None,
    target: options.Target = None,
    site: options.Site = None,
    split: options.Split = None,
    positive: options.Positive = None,
    ridge: options.Ridge = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds: each has its own data and network.")] = 10,
    units: options.Units = 2_000_000,
    tune: Annotated[bool, typer.Option("--tune", help="Tune each method first, on three seeds of their own.")] = False,
    loss: options.Loss = None,
    resend: options.Resend = False,
    noise: options.Noise = None,
    latency: options.Latency = None,
    compute: options.Compute = None,
    links: options.Links = None,
    awake: options.Awake = None,
    engine: options.EngineOption = Engine.auto,
    dask: options.OnDask = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the error over units: .png, .svg or .pdf.")] = None,
    style: options.Style = None,
    out: Annotated[Path | None, typer.Option(help="A folder for the table and all figures.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare algorithms by what they cost until the error stays below 1e-3, 1e-6 and 1e-9.

    Costs are the median over the seeds, in units of communication and in bytes, and in seconds where loss, noise,
    latency or compute are given. No method is dropped: of one that is refused, diverges, or does not get there it
    says why. Ctrl-C shows what there is.

    \b
    Example:
      roundelay compare sealed-laps iadmm wpg:alpha=0.14 extra onepass --seeds 5 --out out/compare
      roundelay compare sealed-laps iadmm extra --data patients.csv --target days --site hospital
      roundelay compare sealed-laps iadmm wpg --problem logistic --data news.svm.gz --ridge 1e-3 --split label --agents 20
      roundelay compare iadmm dadmm coca lead:channel=quantised:4 --tune --latency 0.01 --compute 0.001 --json
    """
    from roundelay.cli.settings import algorithm_from
    from roundelay.comparison import compare as compare_methods
    from roundelay.comparison.naming import named

    chosen = [algorithm_from(text) for text in algorithms]
    named(chosen)  # refuses the same one twice before the work begins
    if figure is not None:
        from roundelay.plots import check_figure_path

        check_figure_path(figure, style)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    scene, conditions = (
        FileOfRows(data, target, site, split, positive, ridge).scene(Scene(problem, agents, density, dim, samples)),
        conditions_of(loss, noise, latency, compute, resend, links, awake),
    )
    tunings = _tuned(chosen, scene, units, conditions, engine, dask) if tune else []
    with progress_lines("seeds") as tell:
        result = compare_methods(
            [tuning.algorithm for tuning in tunings] if tune else chosen,
            scene.problem,
            scene.network,
            seeds=range(seeds),
            units=units,
            conditions=conditions,
            engine=engine.value,
            progress=tell,
            dask=dask,
        )
    files = _written(result, figure, style, out)
    if as_json:
        print_result(_as_json(result, scene, conditions, tunings, files))
    else:
        _print(result, scene, conditions, tunings, files)
    raise typer.Exit(INTERRUPTED if result.interrupted else BAD_INPUT if not result.ensembles else 0)


def _tuned(
    chosen: Sequence[Any],
    scene: AnyScene,
    units: float,
    conditions: NetworkConditions | None,
    engine: Engine,
    dask: str | None,
) -> list[Tuning]:
    """Each algorithm tuned; one that can't be run here is left as it is, and the comparison says why."""
    from roundelay.comparison import tune, untuned

    tunings = []
    with progress_lines("evaluations") as tell:
        for number, algorithm in enumerate(chosen, 1):
            what = f"tuning {algorithm.name}, {number} of {len(chosen)}"
            tell(what, 0, 1)
            try:
                tuning = tune(
                    algorithm,
                    scene.problem,
                    scene.network,
                    units=units,
                    conditions=conditions,
                    engine=engine.value,
                    progress=partial(tell, what),
                    dask=dask,
                )
            except ValueError as refusal:
                tuning = untuned(algorithm, f"{algorithm.name} could not be tuned. {refusal}")
            if tuning.interrupted:
                raise KeyboardInterrupt
            tunings.append(tuning)
    return tunings


def _written(result: Comparison, figure: Path | None, style: str | None, out: Path | None) -> list[Path]:
    """The files that were asked for; without a single run there is nothing to draw."""
    from roundelay.plots import save_figure

    files = [] if out is None else result.save(out)
    if figure is not None and result.ensembles:
        files.append(save_figure(result.figure(), figure, style))
    return files


def _print(
    result: Comparison,
    scene: AnyScene,
    conditions: NetworkConditions | None,
    tunings: Sequence[Tuning],
    files: Sequence[Path],
) -> None:
    where = ", ".join(filter(None, [scene.words, f"density {scene.density:g}", conditions_in_words(conditions)]))
    typer.echo(f"{where}\n\n{result.text()}", nl=False)
    if tunings:
        typer.echo("\ntuning\n" + "\n".join(textwrap.fill(tuning.words, WIDTH) for tuning in tunings))
    if files:
        typer.echo(f"\nWritten: {', '.join(map(str, files))}")


def _as_json(
    result: Comparison,
    scene: AnyScene,
    conditions: NetworkConditions | None,
    tunings: Sequence[Tuning],
    files: Sequence[Path],
) -> dict[str, Any]:
    return {
        **scene.described(),
        "network": conditions_in_words(conditions),
        "seeds": list(result.seeds),
        "units": result.units,
        "levels": list(result.levels),
        "interrupted": result.interrupted,
        "methods": [_row_as_json(row) for row in result.rows],
        "tuning": [tuning.words for tuning in tunings],
        "files": [str(file) for file in files],
    }


def _row_as_json(row: Row) -> dict[str, Any]:
    from roundelay.comparison.costs import short
    from roundelay.comparison.naming import parameters

    costs = {
        axis: {short(cost.level): {"cost": cost.cost, "seeds": cost.seeds, "words": cost.words} for cost in reached}
        for axis, reached in row.costs.items()
    }
    return {
        "method": row.name,
        "algorithm": type(row.algorithm).__name__,
        "options": parameters(row.algorithm),
        "parameters": row.parameters,
        "costs": costs,
        "final_error": row.final_error,
        "stops": dict(row.stops),
        "outcome": row.words,
    }
