"""`roundelay simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roundelay.cli.choices import Engine, ProblemKind
from roundelay.cli.exits import DIVERGED, INTERRUPTED
from roundelay.cli.output import print_json
from roundelay.cli.progress import progress_lines

EXITS = {"diverged": DIVERGED, "interrupted": INTERRUPTED}


def simulate(
    algorithm: Annotated[str, typer.Argument(help="For example iadmm, piadmm1, piadmm2, wadmm, wpg, siadmm.")],
    rho: Annotated[float | None, typer.Option(help="ρ, short for --set rho=….")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the algorithm; may be repeated."),
    ] = None,
    problem: Annotated[ProblemKind, typer.Option(help="Which of the paper's problems.")] = ProblemKind.least_squares,
    agents: Annotated[int, typer.Option(help="N, how many agents.")] = 100,
    density: Annotated[float, typer.Option(help="The share of all pairs of agents that are linked.")] = 0.3,
    dim: Annotated[int, typer.Option(help="p, the dimension of x.")] = 2,
    samples: Annotated[int, typer.Option(help="b, how many samples each agent has.")] = 30,
    hops: Annotated[int, typer.Option(help="How many hops the token makes.")] = 20_000,
    seed: Annotated[int, typer.Option(help="The seed of data, network and every draw.")] = 0,
    engine: Annotated[Engine, typer.Option(help="Which engine runs it.")] = Engine.auto,
    tolerance: Annotated[float | None, typer.Option(help="Stop as soon as the common error is this small.")] = None,
    content: Annotated[float | None, typer.Option(help="Stop when all agents are content within this.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the run to this file, for roundelay.load_run.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the error to this file: .png, .svg or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Run one algorithm on the paper's synthetic data, and say what came of it.

    The options of an algorithm are set by name; walks, starts and regularisers too, as in walk=uniform,
    start=uniform:0:100 or regulariser=l1:0.1. Ctrl-C ends a run early and shows what there is.

    \b
    Example:
      roundelay simulate piadmm1 --rho 10 --set gamma_spread=0.2 --hops 20000 --figure run.png
      roundelay simulate wadmm --set walk=uniform --tolerance 1e-9 --json
    """
    from roundelay.cli.algorithms import algorithm_named
    from roundelay.cli.settings import configured
    from roundelay.cli.summary import print_summary, summary_of

    words = [*([] if rho is None else [f"rho={rho!r}"]), *(settings or [])]
    chosen = configured(algorithm_named(algorithm), words)
    if figure is not None:
        from roundelay.plots import check_figure_path

        check_figure_path(figure)
    run = _run(chosen, problem, agents, density, dim, samples, hops, seed, engine, tolerance, content)
    saved = run.save(save) if save is not None else None
    drawn = _draw(run, figure) if figure is not None else None
    summary = summary_of(run, problem.value, samples, density, saved, drawn)
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)
    raise typer.Exit(EXITS.get(run.stop, 0))


def _run(
    chosen: Any,
    problem: ProblemKind,
    agents: int,
    density: float,
    dim: int,
    samples: int,
    hops: int,
    seed: int,
    engine: Engine,
    tolerance: float | None,
    content: float | None,
) -> Any:
    import roundelay as rl

    make = rl.paper_least_squares if problem is ProblemKind.least_squares else rl.paper_logistic
    if seed < 0:
        raise ValueError(f"The seed is {seed}: use a whole number that is not negative.")
    data = make(agents, samples, dim, seed=seed)
    network = rl.random_network(agents, density, seed=seed)
    with progress_lines("hops", keep=False) as tell:
        tell(chosen.name, 0, hops)
        return rl.simulate(
            chosen, data, network, hops, seed=seed, engine=engine.value, tolerance=tolerance, content=content,
            progress=lambda done, total: tell(chosen.name, done, total),
        )  # fmt: skip


def _draw(run: Any, path: Path) -> Path:
    from roundelay.plots import plot_convergence, save_figure

    return save_figure(plot_convergence({run.algorithm.name: run}), path)
