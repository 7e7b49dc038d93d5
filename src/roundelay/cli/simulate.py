"""`roundelay simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import completion, options
from roundelay.cli.exits import DIVERGED, INTERRUPTED
from roundelay.cli.options import USUAL_PROBLEM, AnyScene, Engine, FileOfRows, Scene, conditions_of
from roundelay.cli.output import print_result, progress_lines

if TYPE_CHECKING:
    from roundelay.links.conditions import NetworkConditions
    from roundelay.privacy import PrivacyBudget

EXITS = {"diverged": DIVERGED, "interrupted": INTERRUPTED}
HOPS, ITERATIONS = 20_000, 1_000


def simulate(
    algorithm: Annotated[
        str,
        typer.Argument(
            help="For example sealed-laps, iadmm, piadmm1, wadmm, wpg, extra, coca, lead.",
            autocompletion=completion.algorithms,
        ),
    ],
    rho: Annotated[float | None, typer.Option(help="ρ, short for --set rho=….")] = None,
    first_order: Annotated[bool, typer.Option("--first-order", help="Short for --set first_order=true.")] = False,
    sigma: Annotated[float | None, typer.Option(help="σ of the primal noise, short for --set sigma=….")] = None,
    clip: Annotated[
        float | None, typer.Option(help="The largest norm of a record's gradient, short for --set clip=….")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of the algorithm; may be repeated.",
            autocompletion=completion.settings,
        ),
    ] = None,
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
    hops: Annotated[
        int | None, typer.Option(help=f"How many hops a token makes, {HOPS} by default; sealed laps end of themselves.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help=f"How many iterations a gossip method makes: {ITERATIONS} by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of data, network and every draw.")] = 0,
    engine: options.EngineOption = Engine.auto,
    tolerance: Annotated[float | None, typer.Option(help="Stop as soon as the common error is this small.")] = None,
    content: Annotated[float | None, typer.Option(help="Stop when all agents are content within this.")] = None,
    budget_epsilon: Annotated[float | None, typer.Option(help="Stop before any record's ε exceeds this.")] = None,
    delta: Annotated[float, typer.Option(help="δ, for which ε is reckoned.")] = 1e-5,
    loss: options.Loss = None,
    resend: options.Resend = False,
    noise: options.Noise = None,
    latency: options.Latency = None,
    compute: options.Compute = None,
    links: options.Links = None,
    awake: options.Awake = None,
    transcript: Annotated[
        bool, typer.Option("--transcript", help="Keep what crossed the links, for roundelay audit.")
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Save the run to this file, for roundelay.load_run.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the error to this file: .png, .svg or .pdf.")] = None,
    style: options.Style = None,
    as_json: options.AsJson = False,
) -> None:
    """Run one algorithm on the paper's synthetic data, or on a file of rows, and say what came of it.

    The options of an algorithm are set by name; walks, starts, regularisers and channels too, as in walk=uniform,
    start=uniform:0:100, regulariser=l1:0.1 or channel=quantised:2. Loss, noise, latency and compute are those of a
    real network. Ctrl-C ends a run early and shows what there is.

    \b
    Example:
      roundelay simulate piadmm1 --rho 10 --set gamma_spread=0.2 --hops 20000 --figure run.png
      roundelay simulate wadmm --set walk=uniform --tolerance 1e-9 --json
      roundelay simulate piadmm1 --hops 2000 --transcript --save run.npz
      roundelay simulate piadmm2 --first-order --clip 1 --sigma 0.5 --problem logistic --budget-epsilon 8
      roundelay simulate lead --set channel=quantised:4 --iterations 500 --latency 0.01
      roundelay simulate sealed-laps --set optimiser=newton --problem logistic
      roundelay simulate iadmm --data patients.csv --target days --site hospital
      roundelay simulate sealed-laps --data sklearn:digits --problem logistic --ridge 1e-3 --split dirichlet:0.3 --agents 10 --positive 3
    """
    from roundelay.cli.settings import algorithm_named, configured
    from roundelay.cli.summary import print_summary, summary_of

    short = {"rho": rho, "sigma": sigma, "clip": clip, "first_order": True if first_order else None}
    words = [*(f"{name}={value!r}" for name, value in short.items() if value is not None), *(settings or [])]
    chosen = configured(algorithm_named(algorithm), words)
    if figure is not None:
        from roundelay.plots import check_figure_path

        check_figure_path(figure, style)
    scene, conditions = (
        FileOfRows(data, target, site, split, positive, ridge).scene(Scene(problem, agents, density, dim, samples)),
        conditions_of(loss, noise, latency, compute, resend, links, awake),
    )
    length, budget = _length(chosen, hops, iterations), _budget(budget_epsilon, delta)
    run = _run(chosen, scene, length, seed, engine, tolerance, content, conditions, transcript, budget)
    saved = run.save(save) if save is not None else None
    drawn = _draw(run, figure, style) if figure is not None else None
    summary = summary_of(run, scene, saved, drawn, delta)
    if as_json:
        print_result(summary)
    else:
        print_summary(summary)
    raise typer.Exit(EXITS.get(run.stop, 0))


def _budget(epsilon: float | None, delta: float) -> PrivacyBudget | None:
    if epsilon is None:
        return None
    from roundelay.privacy import PrivacyBudget
    from roundelay.privacy.accounting.composition import dp_accounting

    try:
        dp_accounting()
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    return PrivacyBudget(epsilon, delta)


def _length(chosen: Any, hops: int | None, iterations: int | None) -> tuple[int | None, int | None]:
    """The hops or the iterations, as the family asks for them; sealed laps and the one pass end of themselves."""
    if hops is None and iterations is None:
        method = chosen.parts()
        if hasattr(method, "mixing"):
            iterations = ITERATIONS
        elif hasattr(method, "walk"):
            hops = HOPS
    return hops, iterations


def _run(
    chosen: Any,
    scene: AnyScene,
    length: tuple[int | None, int | None],
    seed: int,
    engine: Engine,
    tolerance: float | None,
    content: float | None,
    conditions: NetworkConditions | None,
    transcript: bool,
    budget: PrivacyBudget | None,
) -> Any:
    import roundelay as rl

    if seed < 0:
        raise ValueError(f"The seed is {seed}: use a whole number that is not negative.")
    data, network = scene.problem(seed), scene.network(seed)
    hops, iterations = length
    with progress_lines("hops" if iterations is None else "iterations", keep=False) as tell:
        if length != (None, None):
            tell(chosen.name, 0, hops if hops is not None else iterations or 0)
        return rl.simulate(
            chosen, data, network, hops, iterations=iterations, seed=seed, engine=engine.value, tolerance=tolerance, content=content,
            conditions=conditions, transcript=transcript, budget=budget,
            progress=lambda done, total: tell(chosen.name, done, total),
        )  # fmt: skip


def _draw(run: Any, path: Path, style: str | None) -> Path:
    from roundelay.plots import plot_convergence, save_figure

    return save_figure(plot_convergence(run), path, style)
