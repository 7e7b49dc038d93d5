"""Where the methods run: the paper's problems on random networks, under the conditions that the options give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roundelay.cli.choices import ProblemKind

if TYPE_CHECKING:
    from roundelay.networks import Network
    from roundelay.networks.conditions import NetworkConditions


@dataclass(frozen=True)
class Scene:
    """One of the paper's problems and a random network, both made from a seed."""

    kind: ProblemKind
    agents: int
    density: float
    dim: int
    samples: int

    def problem(self, seed: int) -> Any:
        """The data of this seed."""
        from roundelay.problems import paper_least_squares, paper_logistic

        make = paper_least_squares if self.kind is ProblemKind.least_squares else paper_logistic
        return make(self.agents, self.samples, self.dim, seed=seed)

    def network(self, seed: int) -> Network:
        """The network of this seed."""
        from roundelay.networks import random_network

        return random_network(self.agents, self.density, seed=seed)

    def described(self) -> dict[str, Any]:
        """The scene as data."""
        return {
            "problem": {"kind": self.kind.value, "agents": self.agents, "samples": self.samples, "dim": self.dim},
            "density": self.density,
        }

    @property
    def words(self) -> str:
        """The problem in words."""
        return f"{self.kind.value}: {self.agents} agents, {self.samples} samples each, dimension {self.dim}"


def conditions_of(
    loss: float | None, noise: float | None, latency: float | None, compute: float | None, resend: bool = False
) -> NetworkConditions | None:
    """The network's conditions; None where no option was given."""
    if resend and not loss:
        raise ValueError("--resend has nothing to send again: give --loss too, or leave it out.")
    if loss is None and noise is None and latency is None and compute is None:
        return None
    from roundelay.networks.conditions import BernoulliLoss, NetworkConditions

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
