"""`roundelay sweep`, and the plan that it reads."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import options
from roundelay.cli.data_files import LOADER
from roundelay.cli.exits import kept_if_interrupted
from roundelay.cli.options import USUAL_PROBLEM, DividedScene, Engine, FileScene, Scene, conditions_of, way_to_divide
from roundelay.cli.output import print_result, progress_lines
from roundelay.cli.settings import algorithm_named, configured
from roundelay.comparison.costs import short
from roundelay.comparison.kept import network_digest, problem_digest
from roundelay.comparison.sweep import Made, Rule, Setting, SweepPlan, checked_rule, product_of
from roundelay.engine.assemble import EngineChoice
from roundelay.engine.checks import MOST_STEPS, name_of
from roundelay.links.conditions import NetworkConditions
from roundelay.networks import Network, barbell, complete, grid, path, random_network, ring, star
from roundelay.problems.row_problem import problem_named
from roundelay.shown.latex import as_latex
from roundelay.shown.numbers import plural
from roundelay.shown.provenance import before_csv, provenance
from roundelay.shown.table import printed_table, table_of
from roundelay.tables import Fields

if TYPE_CHECKING:
    import pandas as pd

MOST_SEEDS, MOST_ENTRIES, MOST_AGENTS = 1_000_000, 10_000, 10**9
# The sizes of data that are drawn, as for the other commands.
USUAL_SIZES = {"agents": 100, "samples": 30, "dim": 2}


def sweep(
    plan: Annotated[Path, typer.Argument(help="A TOML file with algorithms, problems, networks and seeds.")],
    out: Annotated[
        Path, typer.Option(help="The folder that rows are kept in and the table is written to; several may share it.")
    ] = Path("out/sweep"),
    processes: Annotated[
        int | None, typer.Option(min=0, help="How many processes, by default one for each core; 0 is this one alone.")
    ] = None,
    dask: options.OnDask = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Compute those tasks again whose rows say that they failed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run every algorithm of a plan, with all its parameters, on every problem, over every network, from every seed.

    Each task's row is kept the moment it is there: start the same command again, and it computes what is missing, also
    where the plan has grown. A task that fails is a row that says why.

    \b
    Example:
      roundelay sweep plan.toml
      roundelay sweep plan.toml --out /shared/sweep --dask tcp://192.0.2.7:8786
    """
    planned = read_plan(plan)
    if dry_run:
        shown = planned.view()
        typer.echo(f"{shown.words}\n{printed_table(shown.tables[0])}")
        return
    with kept_if_interrupted("rows", out), progress_lines("tasks", tenths=True) as tell:
        table = planned.run(out / "rows", processes, dask, retry_failed, lambda done, total: tell("sweep", done, total))
    written, made = out / "table.csv", provenance(**planned.made())
    written.write_text(
        before_csv(made) + table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="\n"
    )
    medians = table_of(_medians(table, planned.rule).reset_index(), caption=_heading(table))
    (out / "table.tex").write_text(as_latex(medians, made), encoding="utf-8", newline="\n")
    failed = table[table.failed != ""]
    if as_json:
        print_result({"rows": table.to_dict("records"), "failed": len(failed), "table": str(written)})
        return
    typer.echo(
        f"{_heading(table)}\n{_medians(table, planned.rule).to_string(float_format=lambda number: f'{number:.4g}')}"
    )
    for why, rows in failed.groupby("failed", sort=False):
        typer.echo(f"{len(rows)} of {len(table)} tasks failed: {why}")
    typer.echo(f"The table is {written}, the rows by their keys are in {out / 'rows'}.")


def _heading(table: pd.DataFrame) -> str:
    return f"The median of {plural(table.seed.nunique(), 'seed')}."


def _medians(table: pd.DataFrame, rule: Rule) -> pd.DataFrame:
    """Over the seeds."""
    names = list(table.columns[: list(table.columns).index("seed")])
    numbers = ["error", *(f"units_to_{short(level)}" for level in rule.levels)]
    return table.groupby(names, sort=False, dropna=False)[numbers].median()


# ---------------------------------------------------------------- the plan


def read_plan(file: Path) -> SweepPlan:
    """The plan of a file; what it does not mean is refused in a sentence."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"There is no file {file}: give the path of a plan.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} can't be read as TOML ({error}): mend it there.") from None
    fields = Fields(content, str(file))
    fields.only(
        "hops", "iterations", "tolerance", "content", "levels", "seeds", "engine", "conditions", "x0", "algorithm", "problem", "network"
    )  # fmt: skip
    settings = [_settings(entry) for entry in _entries(fields, "algorithm")]
    problems = [_problem(entry, file.parent) for entry in _entries(fields, "problem")]
    networks = [_network(entry) for entry in _entries(fields, "network")]
    _check_names("algorithm", [of_one[0].name for of_one in settings], file)
    _check_names("problem", [problem.name for problem in problems], file)
    _check_names("network", [network.name for network in networks], file)
    wholes = {name: fields.whole(name, 1, MOST_STEPS) for name in ("hops", "iterations") if name in content}
    numbers = {name: fields.number(name) for name in ("tolerance", "content") if name in content}
    rule = checked_rule(
        wholes.get("hops"),
        wholes.get("iterations"),
        numbers.get("tolerance"),
        numbers.get("content"),
        fields.numbers("levels") if "levels" in content else (1e-3, 1e-6, 1e-9),
        _conditions(fields.inner("conditions")) if "conditions" in content else None,
        _engine(fields) if "engine" in content else "auto",
        fields.numbers("x0") if "x0" in content else None,
    )
    points = product_of([setting for of_one in settings for setting in of_one], problems, networks, _seeds(fields))
    return SweepPlan(tuple(points), rule)


def _entries(fields: Fields, name: str) -> list[Fields]:
    """The tables [[name]], at least one."""
    entries = fields.list_of(name, dict, f"tables, each under [[{name}]]", MOST_ENTRIES)
    if not entries:
        raise fields.refusal(name, f"add a table under [[{name}]]")
    return [Fields(entry, f"[[{name}]] number {number} in {fields.where}") for number, entry in enumerate(entries, 1)]


def _check_names(what: str, names: Sequence[str], file: Path) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"{file} has {names.count(name)} entries [[{what}]] that are called {name!r}: give each a label of its own."
            )


def _settings(entry: Fields) -> list[Setting]:
    """An algorithm by its name, with every combination of the values of options that are lists."""
    kind = algorithm_named(entry.text("name"))
    given = {name: value for name, value in entry.table.items() if name not in ("name", "label")}
    every = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    for name, values in every.items():
        if not values or not all(isinstance(value, bool | int | float | str) for value in values):
            raise entry.refusal(
                name, "give a value as on the command line, or a list of values, each of which is tried"
            )
    found = []
    for chosen in itertools.product(*every.values()):
        taken = dict(zip(every, chosen, strict=True))
        try:
            algorithm = configured(kind, [f"{name}={_as_word(value)}" for name, value in taken.items()])
        except ValueError as refusal:
            raise ValueError(f"{entry.where} can't be used: {refusal}") from None
        tried = {name: value for name, value in taken.items() if isinstance(given[name], list)}
        found.append(Setting(entry.text("label") if "label" in entry.table else name_of(algorithm), algorithm, tried))
    return found


def _as_word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(entry: Fields, folder: Path) -> Made:
    """Rows that are drawn from each seed as for the command line, or those of a file."""
    kind = entry.text("kind") if "kind" in entry.table else USUAL_PROBLEM
    problem_named(kind)
    if "data" in entry.table:
        entry.only("kind", "label", "data", "target", "site", "split", "agents", "positive", "ridge")
        ridge = entry.number("ridge") if "ridge" in entry.table else 0.0
        path = entry.text("data")
        if "split" in entry.table and "site" not in entry.table:
            return _divided(entry, kind, Path(path) if path.startswith(LOADER) else folder / path, ridge)
        entry.only("kind", "label", "data", "target", "site", "ridge")
        file = FileScene(kind, folder / entry.text("data"), entry.text("target"), entry.text("site"), 1.0, ridge)
        label = f"{kind}, {Path(entry.text('data')).stem}"
        return Made(_label(entry, label), file.data, None, problem_digest)
    entry.only("kind", "label", "agents", "samples", "dim")
    agents, samples, dim = (
        entry.whole(name, 1, MOST_AGENTS) if name in entry.table else usual for name, usual in USUAL_SIZES.items()
    )
    scene = Scene(kind, agents, 1.0, dim, samples)
    return Made(_label(entry, f"{kind}, N={agents}, b={samples}, p={dim}"), None, scene.problem, problem_digest)


def _divided(entry: Fields, kind: str, path: Path, ridge: float) -> Made:
    """Rows of a file or a loader, which each seed divides anew."""
    given = entry.table
    agents = entry.whole("agents", 1, MOST_AGENTS) if "agents" in given else USUAL_SIZES["agents"]
    target = entry.text("target") if "target" in given else None
    positive = None if "positive" not in given else str(given["positive"])
    way, agents = way_to_divide(entry.text("split"), agents, f"split of {entry.where}")
    scene = DividedScene(kind, path, target, way, agents, positive, 1.0, ridge)
    label = f"{kind}, {scene.table.name}, N={scene.agents}, {scene.how.words}"
    return Made(_label(entry, label), None, scene.problem, problem_digest)


def _network(entry: Fields) -> Made:
    """A network by its name, for as many agents as the problem has."""
    name = entry.text("name")
    if name not in NETWORKS:
        raise entry.refusal("name", f"use {', '.join(NETWORKS)}")
    takes = list(signature(NETWORKS[name]).parameters.values())[2:]
    entry.only("name", "label", *(option.name for option in takes))
    given = {
        option.name: entry.number(option.name)
        if option.annotation == "float"
        else entry.whole(option.name, 0, MOST_AGENTS)
        for option in takes
        if option.name in entry.table or option.default is Parameter.empty
    }
    words = ", ".join([name, *(f"{option} {value:g}" for option, value in given.items())])
    return Made(_label(entry, words), None, partial(NETWORKS[name], **given), network_digest)


def _label(entry: Fields, usual: str) -> str:
    return entry.text("label") if "label" in entry.table else usual


def _seeds(fields: Fields) -> list[int]:
    """So many from 0 on, or a list."""
    if "seeds" not in fields.table:
        return list(range(10))
    if isinstance(fields.table["seeds"], list):
        return fields.list_of("seeds", int, "whole numbers", MOST_SEEDS)
    return list(range(fields.whole("seeds", 1, MOST_SEEDS)))


def _conditions(fields: Fields) -> NetworkConditions | None:
    fields.only("loss", "noise", "latency", "compute", "resend", "links", "awake")
    loss, noise, latency, compute, links, awake = (
        fields.number(name) if name in fields.table else None
        for name in ("loss", "noise", "latency", "compute", "links", "awake")
    )
    resend = "resend" in fields.table and fields.flag("resend")
    return conditions_of(loss, noise, latency, compute, resend, links, awake)


def _engine(fields: Fields) -> EngineChoice:
    if fields.table["engine"] not in list(Engine):
        raise fields.refusal("engine", f"use {' or '.join(Engine)}")
    return Engine(fields.text("engine")).value


# ---------------------------------------------------------------- networks by name, for a number of agents and a seed


def _random(agents: int, seed: int, density: float = 0.3) -> Network:
    return random_network(agents, density, seed)


def _grid(agents: int, seed: int, rows: int) -> Network:
    if rows < 1 or agents % rows:
        raise ValueError(f"A grid of {rows} rows can't have {agents} agents: let the rows be a divisor.")
    return grid(rows, agents // rows)


def _barbell(agents: int, seed: int, bridge: int = 0) -> Network:
    if agents <= bridge or (agents - bridge) % 2:
        raise ValueError(
            f"A barbell with {bridge} agents on its bridge can't have {agents} agents: its two ends are of one size."
        )
    return barbell((agents - bridge) // 2, bridge)


def _whatever_the_seed(make: Callable[[int], Network]) -> Callable[..., Network]:
    def made(agents: int, seed: int) -> Network:
        return make(agents)

    return made


NETWORKS: Mapping[str, Callable[..., Network]] = {
    "random": _random,
    "grid": _grid,
    "barbell": _barbell,
    **{make.__name__: _whatever_the_seed(make) for make in (ring, complete, path, star)},
}
