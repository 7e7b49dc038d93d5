"""Options that several commands share, and what they stand for: a problem on a random network, and the network's conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from roundelay.cli import completion

if TYPE_CHECKING:
    from roundelay.links.conditions import NetworkConditions
    from roundelay.networks import Network


class Engine(StrEnum):
    """Which engine runs: "auto" is compiled where possible, but for runs that are over before."""

    auto = "auto"
    compiled = "compiled"
    python = "python"


USUAL_PROBLEM = "least-squares"

Problem = Annotated[
    str,
    typer.Option(
        "--problem",
        help="The word of a problem: least-squares, logistic, huber, poisson, smoothed-hinge, or another package's.",
        autocompletion=completion.problems,
    ),
]
Agents = Annotated[int, typer.Option("--agents", help="N, how many agents.")]
Density = Annotated[float, typer.Option("--density", help="The share of all pairs of agents that are linked.")]
Dim = Annotated[int, typer.Option("--dim", help="p, the dimension of x.")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Rows instead of drawn ones: a CSV file, one of LIBSVM (.svm, .libsvm, also packed), or sklearn:breast_cancer and its like.",
    ),
]
Target = Annotated[
    str | None, typer.Option("--target", help="The column of the file that is fitted; all others are features.")
]
Site = Annotated[str | None, typer.Option("--site", help="The column of the file that says whose a row is.")]
Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="How rows are divided over --agents instead: even, sizes:1,2,7, label, label:2, dirichlet:0.3; each seed does it anew.",
        autocompletion=completion.splits,
    ),
]
Positive = Annotated[
    str | None, typer.Option("--positive", help="The target that is to be 1, all others −1, once rows are divided.")
]
Ridge = Annotated[
    float | None, typer.Option("--ridge", help="ridge/2 ‖x‖² for every agent, beside the rows of --data.")
]
Samples = Annotated[int, typer.Option("--samples", help="b, how many samples each agent has.")]
EngineOption = Annotated[Engine, typer.Option("--engine", help="Which engine runs it.")]
Loss = Annotated[float | None, typer.Option("--loss", help="The chance that a message is lost.")]
Resend = Annotated[
    bool, typer.Option("--resend", help="A lost message of a gossip method is sent again, as tokens are.")
]
Noise = Annotated[float | None, typer.Option("--noise", help="The standard deviation of the links' noise.")]
Latency = Annotated[float | None, typer.Option("--latency", help="The seconds that a message takes.")]
Compute = Annotated[float | None, typer.Option("--compute", help="The seconds that an update takes.")]
Links = Annotated[float | None, typer.Option("--links", help="The chance that a link is up, in each round anew.")]
Awake = Annotated[float | None, typer.Option("--awake", help="The chance that an agent is awake, in each round anew.")]
Units = Annotated[float, typer.Option("--units", help="The budget of each run, in units of communication.")]
OnDask = Annotated[
    str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is there.")
]
Style = Annotated[
    str | None,
    typer.Option(help="Draw the figure for print: ieee (3.5 in wide), ieee-wide (7.16 in) or neurips (5.5 in)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]


@dataclass(frozen=True)
class Scene:
    """A problem with synthetic data and a random network, both made from a seed."""

    kind: str
    agents: int
    density: float
    dim: int
    samples: int

    def problem(self, seed: int) -> Any:
        """The data of this seed."""
        from roundelay.problems.row_problem import problem_named

        return problem_named(self.kind).drawn(self.agents, self.samples, self.dim, seed)

    def network(self, seed: int) -> Network:
        """The network of this seed."""
        from roundelay.networks import random_network

        return random_network(self.agents, self.density, seed=seed)

    def described(self) -> dict[str, Any]:
        """The scene as data."""
        return {
            "problem": {"kind": self.kind, "agents": self.agents, "samples": self.samples, "dim": self.dim},
            "density": self.density,
        }

    @property
    def words(self) -> str:
        """The problem in words."""
        return f"{self.kind}: {self.agents} agents, {self.samples} samples each, dimension {self.dim}"


@dataclass(frozen=True)
class FileScene:
    """The rows of a file, one agent for each word in its column of sites, and a random network that is made from a seed."""

    kind: str
    path: Path
    target: str
    site: str
    density: float
    ridge: float = 0.0

    @cached_property
    def data(self) -> Any:
        """The problem; all columns but that of the sites and the target are features."""
        from roundelay.cli.data_files import check_numbers, read_csv
        from roundelay.problems.row_problem import problem_named

        frame = read_csv(self.path, {"--target": self.target, "--site": self.site})
        features = [column for column in frame.columns if column not in (self.target, self.site)]
        check_numbers(frame, [*features, self.target], self.path)
        if frame[self.site].isna().any():
            raise ValueError(
                f"{self.path} names no site in line {np.flatnonzero(frame[self.site].isna())[0] + 2}: every row belongs to one."
            )
        numbers = frame[[*features, self.target]].astype(np.float64)
        sites = [rows for _, rows in numbers.groupby(frame[self.site], sort=False)]
        problem = problem_named(self.kind)
        targets = [rows[self.target].to_numpy() for rows in sites]
        if problem.needs_labels and set(np.unique(np.concatenate(targets))) <= {0.0, 1.0}:
            targets = [2.0 * labels - 1.0 for labels in targets]
        make: Any = problem
        return make([rows[features].to_numpy() for rows in sites], targets, ridge=self.ridge)

    def problem(self, seed: int) -> Any:
        """The data, whatever the seed."""
        return self.data

    def network(self, seed: int) -> Network:
        """The network of this seed."""
        return _network(self.data.agents, self.density, seed)

    def described(self) -> dict[str, Any]:
        """The scene as data."""
        counts = self.data.rows.counts
        samples = f"{counts.min()} to {counts.max()}" if counts.min() < counts.max() else int(counts[0])
        about = {
            "kind": self.kind,
            "agents": self.data.agents,
            "samples": samples,
            "dim": self.data.dim,
            "file": str(self.path),
        }
        return {"problem": about, "density": self.density}

    @property
    def words(self) -> str:
        """The problem in words."""
        about = self.described()["problem"]
        return f"{self.kind}: {self.path}, {about['agents']} agents, {about['samples']} rows each, dimension {about['dim']}"


@dataclass(frozen=True)
class DividedScene:
    """Rows of a file or a loader, which each seed divides over agents anew, and a random network that is made from it too."""

    kind: str
    path: Path
    target: str | None
    how: Any
    agents: int
    positive: str | None
    density: float
    ridge: float = 0.0

    @cached_property
    def table(self) -> Any:
        """The rows before they are divided."""
        from roundelay.cli.data_files import read_table

        return read_table(self.path, self.target, self.positive is not None)

    def problem(self, seed: int) -> Any:
        """The rows as this seed divides them."""
        from roundelay.problems.row_problem import problem_named
        from roundelay.problems.splitting import split

        kind: Any = problem_named(self.kind)
        features, targets, name = self.table
        positive = self._positive(targets, kind.needs_labels)
        divided = split(features, targets, agents=self.agents, how=self.how, seed=seed, positive=positive, name=name)
        return kind(*divided, ridge=self.ridge)

    def _positive(self, targets: Any, needed: bool) -> Any:
        """The target that is to be 1: the one that was named, or where labels are needed the larger of two."""
        if self.positive is not None:
            return next((known for known in np.unique(targets) if _is_called(known, self.positive)), self.positive)
        known = np.unique(targets)
        if not needed:
            return None
        if len(known) != 2:
            raise ValueError(
                f"{self.path} has {len(known)} different targets: say by --positive which one is to be 1, all others −1."
            )
        return known[1]

    def network(self, seed: int) -> Network:
        """The network of this seed."""
        return _network(self.agents, self.density, seed)

    def described(self) -> dict[str, Any]:
        """The scene as data."""
        rows, dim = self.table.features.shape
        about = {
            "kind": self.kind,
            "agents": self.agents,
            "rows": rows,
            "samples": f"about {rows / self.agents:.0f}",
            "dim": dim,
            "file": str(self.path),
            "split": self.how.words,
        }
        return {"problem": about, "density": self.density}

    @property
    def words(self) -> str:
        """The problem in words."""
        about = self.described()["problem"]
        return f"{self.kind}: {self.table.name}, {about['rows']:,} rows, {self.agents} agents, {self.how.words}, dimension {about['dim']}"


def _is_called(known: Any, word: str) -> bool:
    """Whether a target is what the word says, be it a number or a word."""
    try:
        return float(known) == float(word)
    except ValueError:
        return str(known) == word


def _network(agents: int, density: float, seed: int) -> Network:
    """A random network that is connected, also where there are few agents."""
    from roundelay.networks import random_network, ring

    return ring(agents) if agents < 4 else random_network(agents, max(density, min(1.0, 2.5 / agents)), seed=seed)


AnyScene = Scene | FileScene | DividedScene


@dataclass(frozen=True)
class FileOfRows:
    """What a command is told of data of one's own: nothing, a file whose column names the sites, or one whose rows are divided."""

    path: Path | None
    target: str | None
    site: str | None
    split: str | None = None
    positive: str | None = None
    ridge: float | None = None

    def scene(self, drawn: Scene) -> AnyScene:
        """The scene that the file is, or the one that is drawn."""
        if self.path is None:
            if (self.target, self.site, self.split, self.positive, self.ridge) != (None,) * 5:
                raise ValueError("--target, --site, --split, --positive and --ridge are of a file: give it by --data.")
            return drawn
        ridge = self.ridge or 0.0
        if self.split is not None and self.site is None:
            return DividedScene(
                drawn.kind,
                self.path,
                self.target,
                *way_to_divide(self.split, drawn.agents),
                self.positive,
                drawn.density,
                ridge,
            )
        if self.target is None or self.site is None or self.split is not None or self.positive is not None:
            raise ValueError(
                "Whose the rows are is said in one of two ways: by --site, the column that names the sites, beside --target, the column to "
                "fit; or by --split, such as --split even or --split dirichlet:0.3, beside --agents, and --positive where a label is to be 1."
            )
        return FileScene(drawn.kind, self.path, self.target, self.site, drawn.density, ridge)


def way_to_divide(word: str, agents: int, what: str = "--split") -> tuple[Any, int]:
    """What a word such as dirichlet:0.3 stands for, and over how many agents, where it does not say that itself."""
    from roundelay.cli.settings import read_value
    from roundelay.problems.splitting import Split

    way = read_value(what, Split, word)
    return way, getattr(way, "agents", agents)


def conditions_of(
    loss: float | None,
    noise: float | None,
    latency: float | None,
    compute: float | None,
    resend: bool = False,
    links: float | None = None,
    awake: float | None = None,
) -> NetworkConditions | None:
    """The network's conditions; None where no option was given."""
    if resend and not loss:
        raise ValueError("--resend has nothing to send again: give --loss too, or leave it out.")
    if all(given is None for given in (loss, noise, latency, compute, links, awake)):
        return None
    from roundelay.links.conditions import BernoulliLoss, NetworkConditions
    from roundelay.links.presence import AllLinks, AlwaysAwake, AwakeAtRandom, RandomLinks

    return NetworkConditions(
        BernoulliLoss(loss or 0.0),
        noise or 0.0,
        resend,
        latency=latency or 0.0,
        compute=compute or 0.0,
        links=AllLinks() if links is None else RandomLinks(links),
        waking=AlwaysAwake() if awake is None else AwakeAtRandom(awake),
    )


def conditions_in_words(conditions: NetworkConditions | None) -> str:
    """What happens on the links, in words; empty where nothing does."""
    if conditions is None:
        return ""
    loss = conditions.loss.chances()[0]
    again = " (sent again)" if conditions.resend else ""
    words = f"loss {loss:g}{again}, noise {conditions.noise:g}, latency {conditions.latency:g} s, compute {conditions.compute:g} s"
    if conditions.changes:
        falls_asleep, wakes_up = conditions.waking.turning()
        awake = wakes_up / (falls_asleep + wakes_up)
        words += f", links up {conditions.links.chance_up():g}, agents awake {awake:g}"
    return words
