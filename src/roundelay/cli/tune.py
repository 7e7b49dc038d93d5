"""`roundelay tune`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import completion, options
from roundelay.cli.exits import DIVERGED, INTERRUPTED
from roundelay.cli.options import USUAL_PROBLEM, Engine, Scene, conditions_in_words, conditions_of
from roundelay.cli.output import print_result, progress_lines, stdout_console

if TYPE_CHECKING:
    from roundelay.comparison import Tuning

# Far from those of a comparison, which begin at 0.
FIRST_SEED = 1000


def tune(
    algorithm: Annotated[
        str,
        typer.Argument(
            help="Its name, with options after a colon, as in coca:c=0.2,alpha=1.", autocompletion=completion.algorithms
        ),
    ],
    parameters: Annotated[
        list[str] | None, typer.Option("--parameter", help="Tune this one; may be repeated. Without it, all are.")
    ] = None,
    level: Annotated[float, typer.Option(help="The error to be reached with the least communication.")] = 1e-6,
    evaluations: Annotated[int, typer.Option(min=1, help="How many settings are tried.")] = 24,
    problem: options.Problem = USUAL_PROBLEM,
    agents: options.Agents = 100,
    density: options.Density = 0.3,
    dim: options.Dim = 2,
    samples: options.Samples = 30,
    seeds: Annotated[int, typer.Option(min=1, help=f"How many seeds, from {FIRST_SEED} on.")] = 3,
    units: options.Units = 2_000_000,
    loss: options.Loss = None,
    resend: options.Resend = False,
    noise: options.Noise = None,
    latency: options.Latency = None,
    compute: options.Compute = None,
    links: options.Links = None,
    awake: options.Awake = None,
    engine: options.EngineOption = Engine.auto,
    dask: options.OnDask = None,
    as_json: options.AsJson = False,
) -> None:
    """Find good values for the parameters of an algorithm: those that come to a level with the least units.

    It begins at the algorithm's own values, tries their neighbours at a factor of 4, goes where it is better, and
    takes smaller factors in the end. Ctrl-C shows the best so far.

    \b
    Example:
      roundelay tune coca --level 1e-6
      roundelay tune lead:channel=quantised:4 --parameter eta --agents 50 --json
    """
    from roundelay.cli.settings import algorithm_from
    from roundelay.comparison import tune as tune_method

    chosen = algorithm_from(algorithm)
    scene, conditions = (
        Scene(problem, agents, density, dim, samples),
        conditions_of(loss, noise, latency, compute, resend, links, awake),
    )
    with progress_lines("evaluations", keep=False) as tell:
        tell(chosen.name, 0, evaluations)
        result = tune_method(
            chosen,
            scene.problem,
            scene.network,
            seeds=range(FIRST_SEED, FIRST_SEED + seeds),
            level=level,
            evaluations=evaluations,
            units=units,
            conditions=conditions,
            engine=engine.value,
            parameters=parameters,
            progress=lambda done, total: tell(chosen.name, done, total),
            dask=dask,
        )
    if as_json:
        print_result({**scene.described(), "network": conditions_in_words(conditions), **_as_json(result)})
    else:
        _print(result, scene.words)
    raise typer.Exit(INTERRUPTED if result.interrupted else DIVERGED if result.diverged else 0)


def _print(result: Tuning, where: str) -> None:
    from rich.box import ROUNDED
    from rich.table import Table

    from roundelay.comparison.costs import brief
    from roundelay.comparison.naming import value_in_words

    typer.echo(where)
    if result.tried:
        table = Table(box=ROUNDED)
        for name in (*result.tuned, f"units to {brief(result.level, digits=1)}", "final error"):
            table.add_column(name, justify="right")
        table.add_column("outcome")
        for trial in result.tried:
            units = f"{trial.units:,.0f}" if trial.outcome == "reached" else "–"
            mark = " ← taken" if trial is result.taken else ""
            table.add_row(*map(value_in_words, trial.values.values()), units, brief(trial.error), trial.outcome + mark)
        stdout_console().print(table)
    typer.echo(result.words)


def _as_json(result: Tuning) -> dict[str, Any]:
    from roundelay.comparison.naming import parameters

    return {
        "algorithm": result.algorithm.name,
        "tuned": {name: getattr(result.algorithm, name) for name in result.tuned},
        "start": {name: getattr(result.start, name) for name in result.tuned},
        "kept": dict(result.kept),
        "options": parameters(result.algorithm),
        "level": result.level,
        "units": result.units,
        "seeds": list(result.seeds),
        "evaluations": result.evaluations,
        "extended": result.extended,
        "bracketed": result.bracketed,
        "interrupted": result.interrupted,
        "words": result.words,
        "trials": result.trials.to_dict("records"),
    }
