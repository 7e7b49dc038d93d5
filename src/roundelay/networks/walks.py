"""Where the token goes next: the tour of a network, or a random walk on its links.

A walk is made of four kernel functions. `agent_at` says whose place it is, `works` whether that agent
updates there or only relays, `advance` which place follows, and `move_cost` what the move costs in units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import PLACE, WALK, Part, uniform
from roundelay.kernels.random import uniforms_of_agents
from roundelay.networks.graph import Network
from roundelay.registry import register

Integers = NDArray[np.int64]


class Walk(Protocol):
    """A rule by which tokens travel on a network."""

    @property
    def is_tour(self) -> bool:
        """Whether the token goes round the network's tour, by the same way each lap."""

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """Where each token starts."""


# ---------------------------------------------------------------- the tour


class TourNumbers(NamedTuple):
    """The agents of one lap in order, and whether each works (1) or only relays (0)."""

    order: Integers
    works: Integers


def agent_at_tour(walk: TourNumbers, place: int) -> int:
    """The agent that stands at this place of the tour."""
    return walk.order[place]


def agent_soon_on_tour(walk: TourNumbers, place: int) -> int:
    """The agent that the token will reach six hops later."""
    ahead = place + 6
    return walk.order[ahead if ahead < walk.order.shape[0] else 0]


def works_on_tour(walk: TourNumbers, place: int) -> bool:
    """Whether the agent updates here: an agent met again in the same lap only relays."""
    return walk.works[place] == 1


def advance_on_tour(walk: TourNumbers, seed: int, hop: int, place: int, visits: Integers) -> int:
    """The next place; the lap closes from the last to the first."""
    following = place + 1
    return following if following < walk.order.shape[0] else 0


def move_costs_one(walk: TourNumbers, place: int, following: int) -> int:
    """Every move is one transmission."""
    return 1


def tour_part(order: Integers) -> Part:
    """The kernel functions and numbers of a lap; an agent that is met again in it only relays."""
    works = np.zeros(len(order), np.int64)
    works[np.unique(order, return_index=True)[1]] = 1
    return Part(
        (
            ("agent_at", agent_at_tour),
            ("agent_soon", agent_soon_on_tour),
            ("works", works_on_tour),
            ("advance", advance_on_tour),
            ("move_cost", move_costs_one),
        ),
        TourNumbers(order.astype(np.int64), works),
    )


@register(Walk, "cycle")
@dataclass(frozen=True)
class Cycle:
    """A Hamiltonian cycle of the network, or the shortest covering walk found where there is none."""

    is_tour: ClassVar[bool] = True

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""
        return tour_part(network.tour().order)

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """One token starts at agent 0; several are spread evenly over the tour."""
        return np.arange(tokens, dtype=np.int64) * len(network.tour().order) // tokens


# ---------------------------------------------------------------- random walks


class GraphNumbers(NamedTuple):
    """The neighbours of agent i are `neighbours[starts[i]:starts[i + 1]]`."""

    starts: Integers
    neighbours: Integers
    self_loop_cost: int


def agent_at_itself(walk: GraphNumbers, place: int) -> int:
    """On a random walk a place is an agent."""
    return place


def always_works(walk: GraphNumbers, place: int) -> bool:
    """On a random walk every visit is an update."""
    return True


def move_cost_on_graph(walk: GraphNumbers, place: int, following: int) -> int:
    """One transmission; what staying costs is an option."""
    return walk.self_loop_cost if place == following else 1


def advance_metropolis(walk: GraphNumbers, seed: int, hop: int, place: int, visits: Integers) -> int:
    """P_ij = 1/max(d_i + 1, d_j + 1): propose one of the d_i + 1 nearest, accept with (d_i + 1)/(d_j + 1)."""
    begin = walk.starts[place]
    degree = walk.starts[place + 1] - begin
    choice = int(uniform(seed, place, hop, WALK, 0) * (degree + 1))
    if choice == degree:
        return place
    proposed = walk.neighbours[begin + choice]
    other = walk.starts[proposed + 1] - walk.starts[proposed]
    accepted = uniform(seed, place, hop, WALK, 1) * (other + 1) < degree + 1
    return proposed if accepted else place


def advance_uniform(walk: GraphNumbers, seed: int, hop: int, place: int, visits: Integers) -> int:
    """Any neighbour, with equal chances."""
    begin = walk.starts[place]
    degree = walk.starts[place + 1] - begin
    if degree == 0:
        return place
    return walk.neighbours[begin + int(uniform(seed, place, hop, WALK, 0) * degree)]


def advance_closed_uniform(walk: GraphNumbers, seed: int, hop: int, place: int, visits: Integers) -> int:
    """Any neighbour or the agent itself, with equal chances."""
    begin = walk.starts[place]
    degree = walk.starts[place + 1] - begin
    choice = int(uniform(seed, place, hop, WALK, 0) * (degree + 1))
    return place if choice == degree else walk.neighbours[begin + choice]


def advance_least_visited(walk: GraphNumbers, seed: int, hop: int, place: int, visits: Integers) -> int:
    """The least visited of the neighbours and the agent itself; ties with equal chances."""
    begin, end = walk.starts[place], walk.starts[place + 1]
    fewest, ties = visits[place], 1
    for j in range(begin, end):
        count = visits[walk.neighbours[j]]
        if count < fewest:
            fewest, ties = count, 1
        elif count == fewest:
            ties += 1
    choice = int(uniform(seed, place, hop, WALK, 0) * ties)
    for j in range(begin, end):
        if visits[walk.neighbours[j]] == fewest:
            if choice == 0:
                return walk.neighbours[j]
            choice -= 1
    return place


def _graph_part(network: Network, advance: Callable[..., int], self_loops_free: bool) -> Part:
    numbers = GraphNumbers(network.neighbour_starts, network.neighbours, 0 if self_loops_free else 1)
    return Part(
        (
            ("agent_at", agent_at_itself),
            ("works", always_works),
            ("advance", advance),
            ("move_cost", move_cost_on_graph),
        ),
        numbers,
    )


def _distinct_agents(network: Network, seed: int, tokens: int) -> Integers:
    """`tokens` distinct agents at random."""
    if tokens > network.agents:
        raise ValueError(
            f"{tokens} tokens can't start at distinct agents of {network.agents}: use at most {network.agents} tokens."
        )
    return np.argsort(uniforms_of_agents(seed, network.agents, 1, PLACE)[:, 0], kind="stable")[:tokens]


@register(Walk, "metropolis")
@dataclass(frozen=True)
class MetropolisWalk:
    """P_ij = 1/max(d_i + 1, d_j + 1), and P_ii the rest: every agent is visited equally often in the long run."""

    is_tour: ClassVar[bool] = False
    self_loops_free: bool = False

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""
        return _graph_part(network, advance_metropolis, self.self_loops_free)

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """Distinct agents at random."""
        return _distinct_agents(network, seed, tokens)


@register(Walk, "uniform")
@dataclass(frozen=True)
class UniformWalk:
    """Any neighbour with equal chances (as in the Walkman paper's own code)."""

    is_tour: ClassVar[bool] = False

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""
        return _graph_part(network, advance_uniform, self_loops_free=False)

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """Distinct agents at random."""
        return _distinct_agents(network, seed, tokens)


@register(Walk, "closed-uniform")
@dataclass(frozen=True)
class ClosedUniformWalk:
    """Any neighbour or the agent itself, with equal chances."""

    is_tour: ClassVar[bool] = False
    self_loops_free: bool = False

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""
        return _graph_part(network, advance_closed_uniform, self.self_loops_free)

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """Distinct agents at random."""
        return _distinct_agents(network, seed, tokens)


@register(Walk, "least-visited")
@dataclass(frozen=True)
class LeastVisitedWalk:
    """Random walk with choice: the least visited of the neighbours and the agent itself, ties at random."""

    is_tour: ClassVar[bool] = False
    self_loops_free: bool = False

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""
        return _graph_part(network, advance_least_visited, self.self_loops_free)

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """Distinct agents at random."""
        return _distinct_agents(network, seed, tokens)
