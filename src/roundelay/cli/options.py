"""Options that several commands share, and what they stand for: a problem on a random network, and the network's conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

if TYPE_CHECKING:
    from roundelay.links.conditions import NetworkConditions
    from roundelay.networks import Network


class Engine(StrEnum):
    """Which engine runs: "auto" is compiled where possible."""

    auto = "auto"
    compiled = "compiled"
    python = "python"


USUAL_PROBLEM = "least-squares"

Problem = Annotated[
    str, typer.Option("--problem", help="The word of a problem: least-squares, logistic, or another package's.")
]
Agents = Annotated[int, typer.Option("--agents", help="N, how many agents.")]
Density = Annotated[float, typer.Option("--density", help="The share of all pairs of agents that are linked.")]
Dim = Annotated[int, typer.Option("--dim", help="p, the dimension of x.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="A CSV file of rows instead of drawn ones; agents, samples and dim follow from it."),
]
Target = Annotated[
    str | None, typer.Option("--target", help="The column of the file that is fitted; all others are features.")
]
Site = Annotated[str | None, typer.Option("--site", help="The column of the file that says whose a row is.")]
Samples = Annotated[int, typer.Option("--samples", help="b, how many samples each agent has.")]
EngineOption = Annotated[Engine, typer.Option("--engine", help="Which engine runs it.")]
Loss = Annotated[float | None, typer.Option("--loss", help="The chance that a message is lost.")]
Resend = Annotated[
    bool, typer.Option("--resend", help="A lost message of a gossip method is sent again, as tokens are.")
]
Noise = Annotated[float | None, typer.Option("--noise", help="The standard deviation of the links' noise.")]
Latency = Annotated[float | None, typer.Option("--latency", help="The seconds that a message takes.")]
Compute = Annotated[float | None, typer.Option("--compute", help="The seconds that an update takes.")]
Units = Annotated[float, typer.Option("--units", help="The budget of each run, in units of communication.")]
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

    @cached_property
    def data(self) -> Any:
        """The problem; all columns but that of the sites and the target are features."""
        import pandas as pd

        from roundelay.problems.row_problem import problem_named

        try:
            frame = pd.read_csv(self.path, sep=None, engine="python")
        except FileNotFoundError:
            raise ValueError(f"There is no file {self.path}: give a CSV file by --data.") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path} can't be read as CSV ({error}): give a table with a header.") from None
        for option, column in (("--target", self.target), ("--site", self.site)):
            if column not in frame.columns:
                raise ValueError(
                    f"{self.path} has no column {column!r}: {option} is one of {', '.join(map(str, frame.columns))}."
                )
        features = [column for column in frame.columns if column not in (self.target, self.site)]
        if not features:
            raise ValueError(
                f"{self.path} has no column besides those of --target and --site: there is nothing to fit by."
            )
        for column in (*features, self.target):
            bad = np.flatnonzero(pd.to_numeric(frame[column], errors="coerce").isna())
            if len(bad):
                raise ValueError(
                    f"{self.path} has no number in line {bad[0] + 2} of the column {column!r}: encode words as numbers, and leave out or fill in what is missing."
                )
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
        return make([rows[features].to_numpy() for rows in sites], targets)

    def problem(self, seed: int) -> Any:
        """The data, whatever the seed."""
        return self.data

    def network(self, seed: int) -> Network:
        """The network of this seed."""
        from roundelay.networks import random_network, ring

        agents = self.data.agents
        return (
            ring(agents) if agents < 4 else random_network(agents, max(self.density, min(1.0, 2.5 / agents)), seed=seed)
        )

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
class FileOfRows:
    """What a command is told of a file: all three, or nothing."""

    path: Path | None
    target: str | None
    site: str | None

    def scene(self, drawn: Scene) -> Scene | FileScene:
        """The scene that the file is, or the one that is drawn."""
        if self.path is None and self.target is None and self.site is None:
            return drawn
        if self.path is None or self.target is None or self.site is None:
            raise ValueError(
                "--data, --target and --site belong together: give the file, the column to fit, and the column that names the sites."
            )
        return FileScene(drawn.kind, self.path, self.target, self.site, drawn.density)


def conditions_of(
    loss: float | None, noise: float | None, latency: float | None, compute: float | None, resend: bool = False
) -> NetworkConditions | None:
    """The network's conditions; None where no option was given."""
    if resend and not loss:
        raise ValueError("--resend has nothing to send again: give --loss too, or leave it out.")
    if loss is None and noise is None and latency is None and compute is None:
        return None
    from roundelay.links.conditions import BernoulliLoss, NetworkConditions

    return NetworkConditions(
        BernoulliLoss(loss or 0.0), noise or 0.0, resend, latency=latency or 0.0, compute=compute or 0.0
    )


def conditions_in_words(conditions: NetworkConditions | None) -> str:
    """What happens on the links, in words; empty where nothing does."""
    if conditions is None:
        return ""
    loss = conditions.loss.chances()[0]
    again = " (sent again)" if conditions.resend else ""
    return f"loss {loss:g}{again}, noise {conditions.noise:g}, latency {conditions.latency:g} s, compute {conditions.compute:g} s"
