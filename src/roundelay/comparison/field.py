"""The field in one table: every method on every panel, kept cell by cell, then as Markdown and CSV, and what that says."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import roundelay as rl
from roundelay.comparison.bounds import least_hops
from roundelay.comparison.costs import brief
from roundelay.comparison.field_methods import ENTRIES, KINDS, OWN, FieldEntry, Kind, entry_named
from roundelay.comparison.runners import Dask, Task, Told, completed
from roundelay.shown.table import Table

LEVEL = 1e-6
# How many evaluations each method is tuned with, how many iterations a gossip method may make, how many units a token
# method may spend, and how many seeds a method is tuned on and a cell is the median of, in each dimension.
EVALUATIONS = {2: 12, 20: 8, 100: 4}
DENSITY, SAMPLES = 0.3, 30
GOSSIP_ITERATIONS = {2: 1_000, 20: 4_000, 100: 15_000}
TOKEN_UNITS = {2: 1e6, 20: 2e6, 100: 3e6}
TUNING_SEEDS = {2: 3, 20: 2, 100: 1}
FIRST_TUNING_SEED = 1000
SEEDS = {2: 10, 20: 3, 100: 1}
# A method that is biased ends at its floor long before the budget.
BIASED_SHARE = 0.2
# Beyond this dimension a logistic problem is not solved exactly in every step of every agent.
EXACT_LOGISTIC = 20
# What the row of the lower bound is called.
BOUND = "lower bound for tours"


@dataclass(frozen=True)
class FieldPanel:
    """One column of the table: a problem on a network."""

    kind: Kind
    agents: int
    dim: int

    @property
    def title(self) -> str:
        """What stands above the column."""
        return f"{self.kind}, N={self.agents}, p={self.dim}"

    def problem(self, seed: int) -> Any:
        """The paper's synthetic data for a seed."""
        make = rl.paper_least_squares if self.kind == "least squares" else rl.paper_logistic
        return make(self.agents, SAMPLES, self.dim, seed=seed)

    def network(self, seed: int) -> rl.Network:
        """The paper's random network for a seed."""
        return rl.random_network(self.agents, DENSITY, seed=seed)


FIELD_PANELS = tuple(FieldPanel(kind, agents, dim) for dim in (2, 20, 100) for agents in (100, 200) for kind in KINDS)
QUICK_PANELS = tuple(FieldPanel(kind, 20, 2) for kind in KINDS)


# ------------------------------------------------------------ a cell


@dataclass(frozen=True)
class Cell:
    """One method in one panel: units to the level with the given and with tuned parameters, infinite if never."""

    method: str
    panel: str
    exact: bool
    from_paper: bool
    given: float
    given_words: str
    given_parameters: str
    tuned: float | None
    tuned_words: str
    tuned_parameters: str
    tuning: str
    seeds: int


def measure_cell(panel: FieldPanel, method: str, seeds: int, evaluations: int) -> Cell:
    """One cell of the table."""
    entry = entry_named(method)
    if panel.kind == "logistic" and entry.solves_exactly and panel.dim > EXACT_LOGISTIC:
        words = f"left out: it solves every agent's problem exactly in each step, too slow for p > {EXACT_LOGISTIC}"
        return Cell(
            entry.name, panel.title, entry.exact, entry.from_paper, float("inf"), words, "", None, words, "", "", 0
        )
    algorithm = entry.given(panel.kind, panel.problem(0))
    budget = _budget(panel, entry, algorithm)
    given = _row(panel, algorithm, seeds, budget)
    tuned, words, parameters, tuning = None, given.words, "", "not tuned: its floor is above the level"
    if entry.exact and algorithm.tunable and given.costs["units"][0].why_not != "refused":
        search = rl.tune(
            algorithm, panel.problem, panel.network,
            seeds=range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + TUNING_SEEDS[panel.dim]), level=LEVEL, evaluations=evaluations, units=budget, progress=False,
        )  # fmt: skip
        row = _row(panel, search.algorithm, seeds, budget)
        reached = row.costs["units"][0]
        tuned, words, parameters, tuning = reached.cost, reached.words, row.parameters, search.words
    elif entry.exact:
        tuning = "nothing to tune" if not algorithm.tunable else "it can't be run on this problem"
    reached = given.costs["units"][0]
    first = given.words if reached.why_not == "refused" else reached.words
    return Cell(
        entry.name, panel.title, entry.exact, entry.from_paper, reached.cost, first, given.parameters,
        tuned, words, parameters, tuning, seeds,
    )  # fmt: skip


def _budget(panel: FieldPanel, entry: FieldEntry, algorithm: Any) -> float:
    units = TOKEN_UNITS[panel.dim]
    if hasattr(algorithm.parts(), "mixing"):
        units = GOSSIP_ITERATIONS[panel.dim] * 2.0 * len(panel.network(0).edges)
    return units if entry.exact else BIASED_SHARE * units


def _row(panel: FieldPanel, algorithm: Any, seeds: int, units: float) -> Any:
    compared = rl.compare(
        [algorithm], panel.problem, panel.network, seeds=range(seeds), units=units, levels=(LEVEL,), progress=False
    )
    return compared.rows[0]


# ------------------------------------------------------------ all cells


@dataclass(frozen=True)
class Job:
    """One cell to measure, and with what effort: another effort is another cell."""

    panel: FieldPanel
    method: str
    seeds: int
    evaluations: int

    def file(self, folder: Path) -> Path:
        """Where the cell is kept."""
        name = f"{self.panel.title} {self.method} {self.seeds} seeds {self.evaluations} evaluations"
        return folder / ("".join(letter if letter.isalnum() else "-" for letter in name) + ".json")


def run_field(
    folder: Path,
    panels: Sequence[FieldPanel] = FIELD_PANELS,
    entries: Sequence[FieldEntry] = ENTRIES,
    seeds: int | None = None,
    evaluations: int | None = None,
    processes: int = 2,
    report: Told | None = None,
    dask: Dask = None,
) -> list[Cell]:
    """Measure every cell that `folder` does not hold yet; each is written as soon as it is there.

    So an interrupted run goes on where it was. `dask` is a cluster to do it on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        Job(panel, entry.name, seeds or SEEDS[panel.dim], evaluations or EVALUATIONS[panel.dim])
        for panel in panels
        for entry in entries
    ]
    missing = [job for job in jobs if not job.file(folder).exists()]
    done = len(jobs) - len(missing)
    if report is not None:
        report("cells", done, len(jobs))
    tasks = (Task(measure_cell, (job.panel, job.method, job.seeds, job.evaluations), about=job) for job in missing)
    with completed(tasks, processes, dask) as results:
        for result in results:
            _write(result.task.about.file(folder), result.result())
            done += 1
            if report is not None:
                report("cells", done, len(jobs))
    return [_read(job.file(folder)) for job in jobs]


def _write(path: Path, cell: Cell) -> None:
    beside = path.with_suffix(f".{os.getpid()}.part")
    beside.write_text(json.dumps(asdict(cell), ensure_ascii=False, indent=1), encoding="utf-8")
    os.replace(beside, path)


def _read(path: Path) -> Cell:
    return Cell(**json.loads(path.read_text(encoding="utf-8")))


# ------------------------------------------------------------ the table


def field_as_markdown(cells: Sequence[Cell]) -> str:
    """One table for each kind of problem, and what can be read off it."""
    kinds = list(dict.fromkeys(cell.panel.split(",")[0] for cell in cells))
    blocks = [_heading()]
    for kind in kinds:
        own = [cell for cell in cells if cell.panel.startswith(f"{kind},")]
        biased = {cell.method for cell in own if not cell.exact}
        blocks += [f"## {kind.capitalize()}", _as_markdown(_shown(kind, own), biased), _readings(own)]
    return "\n\n".join(blocks) + "\n"


def field_as_csv(cells: Sequence[Cell]) -> str:
    """All cells with their parameters."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Cell)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(cell) for cell in cells)
    return text.getvalue()


def _heading() -> str:
    return (
        "# The field\n\n"
        f"Units until the common error (1/N)Σ‖x_i − x*‖/‖x*‖ stays at or below {brief(LEVEL, 1)}: the paper's synthetic data, b = {SAMPLES} "
        f"rows an agent, random networks of density {DENSITY}; the median of {_by_dim(SEEDS)} seeds, each with its own data and network, "
        f"for p = {_by_dim(dict(zip(SEEDS, SEEDS, strict=True)))}.\n\n"
        "A cell reads *given / tuned*. Given are the paper's parameters where it prints them (methods with a star), else their "
        "authors' or what follows from L. Tuned are the same methods after "
        f"{_by_dim(EVALUATIONS)} evaluations of `rl.tune`, the same for all methods of a column, on {_by_dim(TUNING_SEEDS)} other seeds; where the tuned "
        "one needs more, the seeds differ. Where there is one number there is nothing to tune. In sealed laps, and in the one pass, a number counts "
        "as 1/p of a unit, told with a question or summed in its answer; a lap is paid for before the agents are where it takes them. Methods in italics are biased: they end at the floor that is given, and are not tuned, since no "
        "parameter takes the floor below the level in reasonable time. An error in place of units is what was left after "
        f"{_by_dim(GOSSIP_ITERATIONS)} iterations, or {_by_dim(TOKEN_UNITS)} hops of a token (a fifth of that for biased methods). A dash means that "
        "the method can't be run on the problem, or was left out as too slow; field.csv has the words, and all parameters. Made by "
        "`make field`.\n\n"
        f"The last row is no method. A token that goes round a fixed tour by gradients and proximal steps needs at least so many units for the worst f_i that curve "
        "between the μ and L of these problems (for the logistic ones μ = 0) in as many unknowns: `rl.least_hops`, which puts all constants into Woodworth and Srebro "
        "(arXiv 1605.08003). The data of this table are not the worst, so that a method may be below it; and it binds neither random walks nor what sends Hessians, the one "
        "pass and sealed laps."
    )


def _by_dim(numbers: Mapping[int, float]) -> str:
    """One number for each dimension."""
    words = [f"{number:,.0f}" for number in numbers.values()]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def field_tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """One table for each kind of problem."""
    kinds = dict.fromkeys(cell.panel.split(",")[0] for cell in cells)
    return tuple(_shown(kind, [cell for cell in cells if cell.panel.startswith(f"{kind},")]) for kind in kinds)


def _shown(kind: str, cells: Sequence[Cell]) -> Table:
    panels = list(dict.fromkeys(cell.panel for cell in cells))
    methods = list(dict.fromkeys(cell.method for cell in cells))
    by_place = {(cell.method, cell.panel): cell for cell in cells}
    rows = []
    for method in methods:
        row = [by_place[method, panel] for panel in panels]
        rows.append((f"{method}{'*' if row[0].from_paper else ''}", *map(_cell, row)))
    rows.append((BOUND, *(f"{tour_bound(panel_titled(title)):,.0f}" for title in panels)))
    heads = ("method", *(panel.split(", ", 1)[1] for panel in panels))
    return Table(kind, f"{kind.capitalize()}: units with given / tuned parameters", heads, tuple(rows))


def _as_markdown(table: Table, biased: Container[str]) -> str:
    """The table, the methods of which some are biased in italics."""
    lines = [f"| {' | '.join(table.header)} |", f"|---|{'---:|' * (len(table.header) - 1)}"]
    for name, *row in table.rows:
        lines.append(f"| {f'*{name}*' if name.rstrip('*') in biased else name} | {' | '.join(row)} |")
    return "\n".join(lines)


def panel_titled(title: str) -> FieldPanel:
    """The panel that a cell is of."""
    kind, agents, dim = title.split(", ")
    return FieldPanel("logistic" if kind == "logistic" else "least squares", int(agents[2:]), int(dim[2:]))


def tour_bound(panel: FieldPanel) -> float:
    """The units that no method on a tour can promise to stay below, for the μ and L of the panel's problems."""
    problems = [panel.problem(seed) for seed in range(SEEDS.get(panel.dim, 1))]
    return float(np.median([least_hops(LEVEL, panel.agents, panel.dim, problem.L, problem.mu) for problem in problems]))


def _cell(cell: Cell) -> str:
    given = _short(cell.given, cell.given_words)
    if cell.tuned is None:
        return given
    return f"{given} / {_short(cell.tuned, cell.tuned_words)}"


def _short(units: float, words: str) -> str:
    if math.isfinite(units):
        return f"{units:,.0f}"
    for what in ("floor", "error"):  # as in "never (floor 2e-3)" and "not in 1,000 (error 2e-3)"
        if f"({what} " in words:
            return words[words.index(f"({what} ") + 1 :].rstrip(").")
    if "diverged" in words:
        return "diverged"
    return "—"


def best_of(cell: Cell) -> float:
    """The fewer units of the given and the tuned parameters."""
    return cell.given if cell.tuned is None else min(cell.given, cell.tuned)


def _readings(cells: Sequence[Cell]) -> str:
    """For each panel: I-ADMM against what beats it, and the best gossip method."""
    lines = []
    for panel in dict.fromkeys(cell.panel for cell in cells):
        best = {cell.method: best_of(cell) for cell in cells if cell.panel == panel}
        own = best.get(OWN, math.inf)
        ahead = sorted((units, method) for method, units in best.items() if units < own)
        words = ", ".join(f"{method} ({units:,.0f})" for units, method in ahead) or "no method"
        amount = f"{own:,.0f}" if math.isfinite(own) else "not there in its budget"
        lines.append(f"- {panel.split(', ', 1)[1]}: {OWN} at its better parameters {amount}; fewer units: {words}.")
    return "\n".join(lines)
