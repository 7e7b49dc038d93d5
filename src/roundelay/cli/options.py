"""Options that several commands share, and what they stand for: a problem on a random network, and the network's conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

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
