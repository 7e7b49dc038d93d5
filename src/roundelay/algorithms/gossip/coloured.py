"""Coloured D-ADMM: neighbours work one after another, each with the latest that it has heard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from roundelay.algorithms.conditions import Conditions
from roundelay.algorithms.gossip.admm import any_penalty
from roundelay.algorithms.gossip.admm_update import ADMMGossipStates
from roundelay.algorithms.gossip.gossip_method import Gossip
from roundelay.algorithms.gossip.mixing import Penalties
from roundelay.algorithms.slots import minimise
from roundelay.algorithms.tunable import Tunable
from roundelay.channels import Channel, Compressor, Plain, channel_of
from roundelay.kernels import DIM, Integers, Matrix, Vector, each, vector
from roundelay.kernels.checks import finite_number
from roundelay.networks import Network
from roundelay.problems import Problem


class ColouredNumbers(NamedTuple):
    """The colour of each agent, how many there are, and ρd_i."""

    colour: Integers
    colours: int
    totals: Vector


def speaks_in_colour(method: ColouredNumbers, i: int, exchange: int) -> bool:
    """One colour speaks at a time."""
    return method.colour[i] == exchange


def listens_before_turn(method: ColouredNumbers, i: int, exchange: int) -> bool:
    """Who speaks next listens, and in the end all do."""
    return exchange == method.colours - 1 or method.colour[i] == exchange + 1


def send_coloured(
    problem: Any,
    method: ColouredNumbers,
    seed: int,
    i: int,
    k: int,
    exchange: int,
    states: ADMMGossipStates,
    own: Matrix,
    inbox: Matrix,
    out: Matrix,
) -> None:
    """x_i⁺ = prox_i((ρΣ_j x_j − γ_i)/(ρd_i), ρd_i) with the latest x_j; its message."""
    w, new = vector(DIM), vector(DIM)
    for d in each(DIM):
        w[d] = inbox[0, d] - states.y[i, d]
    minimise(problem, i, w, method.totals[i], states.x[i], new)
    for d in each(DIM):
        states.x[i, d] = new[d]
        out[0, d] = new[d]


def receive_coloured(
    problem: Any,
    method: ColouredNumbers,
    seed: int,
    i: int,
    k: int,
    exchange: int,
    states: ADMMGossipStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    """When all have spoken: γ_i⁺ = γ_i + ρΣ_j(x_i − x_j)."""
    if exchange == method.colours - 1:
        for d in each(DIM):
            states.y[i, d] += method.totals[i] * own[0, d] - inbox[0, d]


@lru_cache(maxsize=16)
def colours_of(network: Network) -> Integers:
    """A colour for each agent, different from its neighbours'; few of them, by networkx."""
    import networkx

    graph: networkx.Graph[int] = networkx.Graph(network.edges.tolist())
    graph.add_nodes_from(range(network.agents))
    found = networkx.greedy_color(graph, strategy="largest_first")
    return np.array([found[agent] for agent in range(network.agents)], np.int64)


@dataclass(frozen=True)
class ColouredDADMM:
    """Coloured D-ADMM (Mota, Xavier, Aguiar, Püschel 2013).

        colour after colour: x_i⁺ = prox_i((ρΣ_j x_j − γ_i)/(ρd_i), ρd_i) with the latest x_j;
        then for all: γ_i⁺ = γ_i + ρΣ_j(x_i⁺ − x_j⁺)

    `rho` is ρ. The agents are coloured so that no neighbours have the same. An iteration costs 2E, but its
    colours wait for each other.
    """

    name: ClassVar[str] = "coloured D-ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"),)
    rho: float = 1.0
    channel: Channel | Compressor = Plain()

    def __post_init__(self) -> None:
        finite_number("rho", self.rho, above=0.0)
        channel_of(self.channel)

    def parts(self) -> Gossip:
        """As many exchanges as there are colours."""

        def numbers(network: Network) -> ColouredNumbers:
            colour = colours_of(network)
            return ColouredNumbers(colour, int(colour.max()) + 1, np.asarray(self.rho * network.degrees, np.float64))

        return Gossip(
            (("send", send_coloured), ("receive", receive_coloured), ("speaks", speaks_in_colour), ("listens", listens_before_turn)),
            numbers,
            ADMMGossipStates,
            Penalties(float(self.rho)),
            channel_of(self.channel),
            ("minimise",),
            exchange_count=lambda network: int(colours_of(network).max()) + 1,
        )  # fmt: skip

    def conditions(self, problem: Problem) -> Conditions:
        """Any penalty will do."""
        return any_penalty(self.rho, exact=self.channel == Plain())
