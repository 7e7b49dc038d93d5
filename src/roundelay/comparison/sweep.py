"""Every point of a product: methods, their parameters, problems, networks and seeds, each a task whose row is kept as soon as it is there."""

from __future__ import annotations

import itertools
import os
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import roundelay
from roundelay.algorithms.algorithm import Algorithm
from roundelay.comparison.costs import short
from roundelay.comparison.ground import geometric_marks, is_sealed
from roundelay.comparison.kept import (
    FORMAT,
    NUMBERS,
    Kept,
    NoDigestError,
    key_of,
    network_digest,
    opened,
    problem_digest,
)
from roundelay.comparison.naming import named, parameters as parameters_of
from roundelay.comparison.runners import Dask, Done, LostError, Shared, Task, completed
from roundelay.engine.assemble import EngineChoice
from roundelay.engine.checks import check_conditions, check_seed, the_network, the_problem, the_seeds
from roundelay.engine.result import Run
from roundelay.engine.simulate import simulate
from roundelay.engine.storage import RECORD
from roundelay.kernels.checks import finite_number
from roundelay.links.conditions import NetworkConditions
from roundelay.networks import Network
from roundelay.problems import Problem
from roundelay.shown.notebook import View
from roundelay.shown.numbers import plural
from roundelay.shown.show import Shown
from roundelay.shown.table import Table
from roundelay.shown.watched import Report, reporting
from roundelay.tables import as_table

if TYPE_CHECKING:
    import pandas as pd

PLAIN = (bool, int, float, str, type(None))
# While rows are read, whoever watches is told of so many at a time.
MANY_ROWS = 500


@dataclass(frozen=True)
class Rule:
    """How long each run is, when it stops before that, and what is read off it; `sweep` explains each."""

    hops: int | None = None
    iterations: int | None = None
    tolerance: float | None = None
    content: float | None = None
    levels: tuple[float, ...] = (1e-3, 1e-6, 1e-9)
    conditions: NetworkConditions | None = None
    engine: EngineChoice = "auto"
    x0: tuple[float, ...] | None = None

    def steps(self, algorithm: Any) -> dict[str, int]:
        """The length in the word of the algorithm's family; sealed laps and the one pass end of themselves."""
        method = algorithm.parts()
        noun, steps = ("iterations", self.iterations) if hasattr(method, "mixing") else ("hops", self.hops)
        takes = hasattr(method, "mixing") or hasattr(method, "walk")
        return {noun: steps} if takes and steps is not None else {}

    def described(self, algorithm: Any) -> dict[str, Any]:
        """What a run of the algorithm depends on of it, in plain values."""
        conditions = None if self.conditions is None else as_table(self.conditions, NetworkConditions)
        return {
            **self.steps(algorithm),
            "tolerance": self.tolerance,
            "content": self.content,
            "levels": list(self.levels),
            "conditions": conditions,
            "engine": self.engine,
            **({} if self.x0 is None else {"x0": list(self.x0)}),
        }


def sweep(
    algorithms: Any,
    problems: Any,
    networks: Any,
    *,
    seeds: Sequence[int] = range(10),
    parameters: Mapping[str, Sequence[Any]] | None = None,
    hops: int | None = None,
    iterations: int | None = None,
    tolerance: float | None = None,
    content: float | None = None,
    levels: Sequence[float] = (1e-3, 1e-6, 1e-9),
    conditions: NetworkConditions | None = None,
    engine: EngineChoice = "auto",
    x0: Sequence[float] | NDArray[np.float64] | None = None,
    folder: str | Path | None = None,
    processes: int | None = None,
    dask: Dask = None,
    retry_failed: bool = False,
    progress: Report | bool = True,
) -> pd.DataFrame:
    """Run every algorithm, with all values of its `parameters`, on every problem, over every network, from every seed.

    Each of `algorithms`, `problems` and `networks` is one thing, a list, or a mapping from names; a problem or a network may be a function of
    the seed. `parameters` names options, each with a list of values; a method that has no such option is run without it. `hops` is the
    length of token methods, `iterations` that of gossip; `tolerance`, `content`, `conditions`, `engine` and `x0` (one point for all) are as for `simulate`.

    With a `folder` every row is kept there the moment it is there, in a Parquet file named by a hash of what it depends on: the same call
    computes what is missing, whoever or whatever was killed, and several may share the folder. Without one, all is in memory.

    It runs on the cores of this machine, in so many `processes` (0 is this very one), or on a Dask cluster, by `dask`, the address of its
    scheduler or a `distributed.Client`. A task that fails is a row whose `failed` says why; `retry_failed=True` computes those
    again that the folder holds. `progress` is True for a bar, False for none, or a function (done, total).

    The table has one row a point, seeds fastest, then networks, problems, parameters, algorithms: how the run ended, its costs, its errors
    at the end, and the units to each of `levels`.
    """
    plan = sweep_plan(
        algorithms, problems, networks, seeds=seeds, parameters=parameters, hops=hops, iterations=iterations,
        tolerance=tolerance, content=content, levels=levels, conditions=conditions, engine=engine, x0=x0,
    )  # fmt: skip
    return plan.run(folder, processes, dask, retry_failed, progress)


def sweep_plan(
    algorithms: Any,
    problems: Any,
    networks: Any,
    *,
    seeds: Sequence[int] = range(10),
    parameters: Mapping[str, Sequence[Any]] | None = None,
    hops: int | None = None,
    iterations: int | None = None,
    tolerance: float | None = None,
    content: float | None = None,
    levels: Sequence[float] = (1e-3, 1e-6, 1e-9),
    conditions: NetworkConditions | None = None,
    engine: EngineChoice = "auto",
    x0: Sequence[float] | NDArray[np.float64] | None = None,
) -> SweepPlan:
    """The same sweep before it is run: it shows what it consists of, and its `run` makes the table."""
    rule = checked_rule(hops, iterations, tolerance, content, levels, conditions, engine, x0)
    points = product_of(
        with_parameters(named([algorithms] if hasattr(algorithms, "parts") else algorithms), parameters or {}),
        [problem_made(name, one) for name, one in _by_name(problems, "problem").items()],
        [network_made(name, one) for name, one in _by_name(networks, "network").items()],
        seeds,
    )
    return SweepPlan(tuple(points), rule)


@dataclass(frozen=True, eq=False)
class SweepPlan(Shown):
    """All points of a sweep, and how each is run."""

    points: tuple[Point, ...]
    rule: Rule

    def __repr__(self) -> str:
        return f"SweepPlan({plural(len(self.points), 'task')})"

    def view(self) -> View:
        """How many tasks there are, and of what."""
        labels = [point.labels for point in self.points]
        columns = list(dict.fromkeys(name for one in labels for name in one if name != "seed"))
        axes = [(name, _in_short([one[name] for one in labels if name in one])) for name in columns]
        axes += [("seed", _in_short([point.seed for point in self.points]))]
        axes += [(name, str(value)) for name, value in vars(self.rule).items() if value is not None]
        rows = tuple((name.replace("_", " "), words) for name, words in axes)
        return View(plural(len(self.points), "task"), (Table("plan", "", ("of", "values"), rows, words=2),))

    def made(self) -> dict[str, Any]:
        """What it consists of."""
        (table,) = self.view().tables
        return {"parameters": "; ".join(f"{name}: {values}" for name, values in table.rows)}

    def run(
        self,
        folder: str | Path | None = None,
        processes: int | None = None,
        dask: Dask = None,
        retry_failed: bool = False,
        progress: Report | bool = True,
    ) -> pd.DataFrame:
        """Run it; `sweep` explains how."""
        return run_points(self.points, self.rule, folder, processes, dask, retry_failed, progress)


def _in_short(values: Sequence[Any]) -> str:
    """Each value once; of more than a dozen the first and the last."""
    words = [str(value) for value in dict.fromkeys(values)]
    return ", ".join(words if len(words) <= 12 else [*words[:3], f"… ({len(words)} in all)", words[-1]])


def checked_rule(
    hops: int | None,
    iterations: int | None,
    tolerance: float | None,
    content: float | None,
    levels: Sequence[float],
    conditions: NetworkConditions | None,
    engine: EngineChoice,
    x0: Sequence[float] | NDArray[np.float64] | None = None,
) -> Rule:
    """The rule; what can't be meant is refused before the work begins."""
    check_conditions(conditions)
    if isinstance(levels, str) or not np.iterable(levels):
        raise ValueError(f"levels is {levels!r}: give a list of errors, for instance (1e-3, 1e-6).")
    numbers = {finite_number("A level", level, above=0.0) for level in levels}
    if x0 is not None and np.ndim(x0) != 1:
        raise ValueError("In a sweep all start at one point: give x0 as a list of p numbers.")
    start = None if x0 is None else tuple(finite_number("A number of x0", value) for value in x0)
    return Rule(hops, iterations, tolerance, content, tuple(sorted(numbers, reverse=True)), conditions, engine, start)


# ---------------------------------------------------------------- the product


@dataclass(frozen=True, eq=False)
class Setting:
    """An algorithm with values for its parameters, and what it is called."""

    name: str
    algorithm: Any
    values: Mapping[str, Any]

    @cached_property
    def table(self) -> dict[str, Any]:
        """The algorithm in plain values; one that is not in the register is refused."""
        return as_table(self.algorithm, Algorithm)


@dataclass(eq=False)
class Made:
    """A problem or a network, given or made by a function: its digests stay, itself no longer than it was last asked for."""

    name: str
    given: Any
    make: Callable[..., Any] | None
    digest_of: Callable[[Any], str]
    _known: dict[tuple[int, ...], tuple[int, str]] = field(default_factory=dict)
    _last: tuple[tuple[int, ...], Any] = ((), None)

    def of(self, *where: int) -> Any:
        """It, for a seed, or for a number of agents and a seed."""
        if self.make is None:
            return self.given
        if self._last[0] != where:
            self._last = where, self.make(*where)
        return self._last[1]

    def known(self, *where: int, alone: bool = False) -> tuple[int, str]:
        """How many agents it has, and its digest; where it stays in this process `alone` it need have none, and gets one by lot."""
        where = () if self.make is None else where
        if where not in self._known:
            made = self.of(*where)
            try:
                digest = self.digest_of(made)
            except NoDigestError:
                if not alone:
                    raise
                digest = uuid.uuid4().hex
            self._known[where] = made.agents, digest
        return self._known[where]

    def shared(self, *where: int) -> Shared:
        """It, as an argument of many tasks."""
        return Shared(self.of(*where), self.known(*where)[1])


@dataclass(frozen=True, eq=False)
class Point:
    """One point of the product."""

    setting: Setting
    problem: Made
    network: Made
    seed: int

    @property
    def labels(self) -> dict[str, Any]:
        """What the columns of the table say of it."""
        values = {
            name: value if isinstance(value, PLAIN) else repr(value) for name, value in self.setting.values.items()
        }
        return {
            "algorithm": self.setting.name,
            **values,
            "problem": self.problem.name,
            "network": self.network.name,
            "seed": self.seed,
        }

    def described(self, rule: Rule, alone: bool = False) -> dict[str, Any]:
        """All that its row depends on."""
        agents, digest = self.problem.known(self.seed, alone=alone)
        return {
            "algorithm": self.setting.table,
            "problem": digest,
            "network": self.network.known(agents, self.seed)[1],
            "seed": self.seed,
            **rule.described(self.setting.algorithm),
        }


def product_of(
    settings: Sequence[Setting], problems: Sequence[Made], networks: Sequence[Made], seeds: Sequence[int]
) -> list[Point]:
    """Every point: seeds fastest, then networks, problems and settings."""
    keys = the_seeds(seeds)
    if len(set(keys)) < len(keys):
        raise ValueError("A seed is given twice, and would count twice: give each once.")
    for seed in keys:
        check_seed(seed)
    return [Point(*one) for one in itertools.product(settings, problems, networks, keys)]


def with_parameters(algorithms: Mapping[str, Any], parameters: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """Each algorithm with every combination of the values of those parameters that it has."""
    known = {name: set(parameters_of(algorithm)) for name, algorithm in algorithms.items()}
    every = sorted(set().union(*known.values()))
    for name, values in parameters.items():
        if name not in every:
            close = get_close_matches(name, every, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise ValueError(
                f"No algorithm of the sweep has an option {name!r}.{hint} The options are {', '.join(every)}."
            )
        if isinstance(values, str) or not np.iterable(values) or not len(list(values)):
            raise ValueError(
                f"The values of {name!r} are {values!r}: give a list of at least one, for instance [1.0, 10.0]."
            )
    settings = []
    for title, algorithm in algorithms.items():
        own = {name: values for name, values in parameters.items() if name in known[title]}
        for chosen in itertools.product(*own.values()):
            taken = dict(zip(own, chosen, strict=True))
            settings.append(Setting(title, replace(algorithm, **taken) if taken else algorithm, taken))
    return settings


def _by_name(given: Any, what: str) -> dict[str, Any]:
    """Each by a name of its own: a mapping's, or the word for its kind, numbered where there are several."""
    if isinstance(given, Mapping):
        found = {str(name): one for name, one in given.items()}
    else:
        single = callable(given) or hasattr(given, "kernel") or isinstance(given, Network)
        entries = (
            [given] if single else list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
        )
        words = [_word(one, what) for one in entries]
        times, met = Counter(words), Counter[str]()
        found = {}
        for word, one in zip(words, entries, strict=True):
            met[word] += 1
            found[word if times[word] == 1 else f"{word} {met[word]}"] = one
    if not found:
        raise ValueError(f"There is no {what} in {given!r}: give one, a list of them, or a mapping from names.")
    return found


def _word(one: Any, what: str) -> str:
    """What it is called where nobody has named it."""
    if not callable(one) or hasattr(one, "kernel"):
        return (getattr(one, "data_in_words", "") or type(one).__name__) if what == "problem" else what
    name = getattr(one, "__name__", what)
    return what if name == "<lambda>" else name


def problem_made(name: str, given: Any) -> Made:
    """A problem of this name: itself, or a function of the seed."""
    if callable(given) and not hasattr(given, "kernel"):
        return Made(name, given, lambda seed: the_problem(given, seed), problem_digest)
    return Made(name, the_problem(given, 0), None, problem_digest)


def network_made(name: str, given: Any) -> Made:
    """A network of this name: itself, or a function of the seed."""
    if callable(given) and not isinstance(given, Network):
        return Made(name, given, lambda agents, seed: the_network(given, seed), network_digest)
    return Made(name, the_network(given, 0), None, network_digest)


# ---------------------------------------------------------------- the work


def run_points(
    points: Sequence[Point],
    rule: Rule,
    folder: str | Path | None = None,
    processes: int | None = None,
    dask: Dask = None,
    retry_failed: bool = False,
    progress: Report | bool = True,
) -> pd.DataFrame:
    """The table of all points; what the folder holds is not computed again."""
    import pandas as pd

    kept = None if folder is None else opened(Path(folder))
    keys, wanted, rows = _keyed(points, rule, alone=kept is None and processes == 0 and dask is None)
    total = len(wanted) + len(rows)
    with reporting(progress, f"{total} tasks") as report:
        if kept is not None:
            for number, key in enumerate(wanted.keys() & kept.keys(), 1):
                rows |= _found(kept, key, retry_failed)
                if number % MANY_ROWS == 0:
                    report(len(rows), total)
        missing = [key for key in wanted if key not in rows]
        report(len(rows), total)
        tasks = _tasks(missing, wanted, rule, kept, rows, retry_failed)
        if processes is None or processes > len(missing) > 0:
            processes = min(processes or os.cpu_count() or 1, max(1, len(missing)))
        with completed(tasks, processes, dask) as results:
            for done in results:
                key = done.task.key
                rows[key] = row = _row_of(done)
                if kept is not None and (done.error is None or isinstance(done.error, LostError)):
                    kept.write(key, wanted[key].described, row)
                report(len(rows), total)
        report(len(rows), total)
    return pd.DataFrame(
        {**point.labels, "key": key if key in wanted else "", **_columns(rows[key], rule)}
        for point, key in zip(points, keys, strict=True)
    )


@dataclass(frozen=True, eq=False)
class _Wanted:
    """A row that is wanted: the first point that it is of, and all that it depends on."""

    point: Point
    described: Mapping[str, Any]

    @property
    def at(self) -> tuple[str, int]:
        """On which data, and from which seed: what is best done one after another."""
        return self.described["problem"], self.point.seed


def _keyed(
    points: Sequence[Point], rule: Rule, alone: bool
) -> tuple[list[str], dict[str, _Wanted], dict[str, dict[str, Any]]]:
    """The key of each point, what is wanted by each key, and the rows of points that can't be made."""
    keys, wanted, refused = list[str](), dict[str, _Wanted](), dict[str, dict[str, Any]]()
    for number, point in enumerate(points):
        try:
            described = point.described(rule, alone)
        except ValueError as refusal:
            keys.append(f"none, {number}")
            refused[keys[-1]] = {"failed": str(refusal)}
            continue
        keys.append(key_of(described))
        wanted.setdefault(keys[-1], _Wanted(point, described))
    return keys, wanted, refused


def _found(kept: Kept, key: str, retry_failed: bool) -> dict[str, dict[str, Any]]:
    """The row of a key, where it is kept and counts."""
    row = kept.read(key)
    return {} if row is None or (retry_failed and row["failed"]) else {key: row}


def _tasks(
    missing: Sequence[str],
    wanted: Mapping[str, _Wanted],
    rule: Rule,
    kept: Kept | None,
    rows: dict[str, dict[str, Any]],
    retry_failed: bool,
) -> Iterator[Task]:
    """Tasks as they are asked for, problem by problem, in an order of this call's own: calls that share a folder seldom meet.

    What another has put there meanwhile is taken.
    """
    rank = {name: random.random() for key in missing for name in wanted[key].at}
    for key in sorted(missing, key=lambda key: (*(rank[name] for name in wanted[key].at), random.random())):
        if kept is not None and kept.path(key).exists() and (found := _found(kept, key, retry_failed)):
            rows |= found
            continue
        point = wanted[key].point
        problem = point.problem.shared(point.seed)
        network = point.network.shared(problem.value.agents, point.seed)
        yield Task(measured, (FORMAT, point.setting.algorithm, problem, network, point.seed, rule), key=key)


def measured(version: int, algorithm: Any, problem: Problem, network: Network, seed: int, rule: Rule) -> dict[str, Any]:
    """The row of one point, computed where a worker is; what the run refuses, or breaks at, is told by the row."""
    if version != FORMAT:
        raise RuntimeError("The worker has another version of roundelay than whoever asks: install the same on both.")
    try:
        steps = rule.steps(algorithm)
        run = simulate(
            algorithm,
            problem,
            network,
            steps.get("hops"),
            iterations=steps.get("iterations"),
            seed=seed,
            conditions=rule.conditions,
            engine=rule.engine,
            x0=rule.x0,
            record=geometric_marks(*steps.values()) if steps and not is_sealed(algorithm) else None,
            tolerance=rule.tolerance,
            content=rule.content,
            progress=False,
        )
        row = _numbers_of(run, rule)
    except Exception as error:
        row = {"failed": _in_words(error)}
    else:
        if run.stop == "interrupted":
            raise KeyboardInterrupt
    return {**row, "roundelay": roundelay.__version__}


def _numbers_of(run: Run, rule: Rule) -> dict[str, Any]:
    """What is read off a run; the objective at its last row alone, since each costs a pass over all data."""
    last = replace(run, record=replace(run.record, **{name: getattr(run.record, name)[-1:] for name in RECORD}))
    end = last.history.iloc[-1]
    without = replace(run, problem=None)
    costs = [without.units_to(level) if run.has_optimum else np.nan for level in rule.levels]
    numbers = {name: float(end[name]) for name in NUMBERS if name in end}
    return {
        "stop": run.stop,
        "outcome": run.outcome,
        "engine": run.engine,
        "steps": run.steps,
        **numbers,
        "costs": costs,
    }


def _in_words(error: BaseException) -> str:
    """A refusal is a sentence already."""
    return str(error) if isinstance(error, ValueError | LostError) else f"{type(error).__name__}: {error}"


def _row_of(done: Done) -> dict[str, Any]:
    return {"failed": _in_words(done.error)} if done.error is not None else done.value


def _columns(row: Mapping[str, Any], rule: Rule) -> dict[str, Any]:
    """What the table has of a row; a kept one has None where a number is missing."""
    costs = row.get("costs") or [None] * len(rule.levels)
    numbers = {name: row.get(name) for name in NUMBERS} | {
        f"units_to_{short(level)}": cost for level, cost in zip(rule.levels, costs, strict=True)
    }
    return {
        "failed": row.get("failed") or "",
        "stop": row.get("stop") or "",
        "outcome": row.get("outcome") or "",
        "steps": row.get("steps") or 0,
        **{name: np.nan if value is None else value for name, value in numbers.items()},
    }
