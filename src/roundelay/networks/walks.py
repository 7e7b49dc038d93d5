"""Where the token goes next: the tour of a network, or a random walk on its links.

A walk is made of four kernel functions. `agent_at` says whose place it is, `works` whether that agent
updates there or only relays, `advance` which place follows, and `move_cost` what the move costs in units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import PLACE, WALK, Part, uniform
from roundelay.kernels.checks import whole_number
from roundelay.kernels.random import uniforms_of_agents
from roundelay.networks.graph import Network
from roundelay.registry import register

Integers = NDArray[np.int64]
Matrix = NDArray[np.float64]


class Walk(Protocol):
    """A rule by which tokens travel on a network."""

    @property
    def is_tour(self) -> bool:
        """Whether the token goes round the network's tour, by the same way each lap."""

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """Where each token starts."""


def walked(walk: Walk, network: Network, seed: int, hops: int, tokens: int = 1) -> Iterator[tuple[int, bool]]:
    """Who holds the token at each hop, and whether that agent works there; several tokens move in turn.

    A walk depends on the seed and on the visits, never on the data; so it can be made ahead of a run.
    """
    part = walk.part(network)
    functions, numbers = dict(part.functions), part.numbers
    places = [int(place) for place in walk.first_places(network, seed, tokens)]
    visits = np.zeros(network.agents, np.int64)
    for hop in range(hops):
        token = hop % tokens
        if hop >= tokens:  # the first visit is in place
            places[token] = int(functions["advance"](numbers, seed, hop, places[token], visits))
        agent, works = (
            int(functions["agent_at"](numbers, places[token])),
            bool(functions["works"](numbers, places[token])),
        )
        yield agent, works
        visits[agent] += works


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


def advance_metropolis(walk: GraphNumbers | MixedNumbers, seed: int, hop: int, place: int, visits: Integers) -> int:
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


def uniform_chances(network: Network, loops: int) -> Matrix:
    """P_ij = 1/(d_i + loops) for each neighbour j, and for i itself where there is a loop."""
    chances = np.zeros((network.agents, network.agents))
    chances[network.edges[:, 0], network.edges[:, 1]] = chances[network.edges[:, 1], network.edges[:, 0]] = 1.0
    np.fill_diagonal(chances, float(loops or network.agents == 1))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True), np.float64)


def metropolis_chances(network: Network) -> Matrix:
    """P_ij = 1/max(d_i + 1, d_j + 1), and P_ii the rest."""
    proposed = uniform_chances(network, 1)
    chances = np.minimum(proposed, proposed.T)
    np.fill_diagonal(chances, 0.0)
    np.fill_diagonal(chances, 1.0 - chances.sum(axis=1))
    return chances


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

    def chances(self, network: Network) -> Matrix:
        """P_ij, with which the token goes from i to j."""
        return metropolis_chances(network)


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

    def chances(self, network: Network) -> Matrix:
        """P_ij, with which the token goes from i to j."""
        return uniform_chances(network, 0)


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

    def chances(self, network: Network) -> Matrix:
        """P_ij, with which the token goes from i to j."""
        return uniform_chances(network, 1)


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


# ---------------------------------------------------------------- a walk that mixes between two visits


class MixedNumbers(NamedTuple):
    """As `GraphNumbers`; a place is an agent, plus N for each step since the last visit."""

    starts: Integers
    neighbours: Integers
    self_loop_cost: int
    steps: int


def agent_at_mixed(walk: MixedNumbers, place: int) -> int:
    """The agent at this place."""
    return place % (walk.starts.shape[0] - 1)


def works_when_mixed(walk: MixedNumbers, place: int) -> bool:
    """In between agents only relay."""
    return place < walk.starts.shape[0] - 1


def advance_mixing(walk: MixedNumbers, seed: int, hop: int, place: int, visits: Integers) -> int:
    """One step of the Metropolis walk, counted."""
    agents = walk.starts.shape[0] - 1
    step = (place // agents + 1) % walk.steps
    return step * agents + advance_metropolis(walk, seed, hop, place % agents, visits)


def move_cost_mixed(walk: MixedNumbers, place: int, following: int) -> int:
    """One transmission; what staying costs is an option."""
    agents = walk.starts.shape[0] - 1
    return walk.self_loop_cost if place % agents == following % agents else 1


@register(Walk, "mixed")
@dataclass(frozen=True)
class MixedWalk:
    """The Metropolis walk on which an agent updates only at every `steps`-th step; in between agents only relay.

    After enough steps where the token was is forgotten, and every agent is as likely as any other: as if drawn independently. How many that takes is the network's
    matter: about 1/(1 − λ₂) with the second eigenvalue λ₂ of the walk; on a complete graph one. Its places count the steps (`is_counted`), which an
    agent of a real ring does not know of.
    """

    is_tour: ClassVar[bool] = False
    is_counted: ClassVar[bool] = True
    steps: int = 1
    self_loops_free: bool = False

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, least=1)

    def part(self, network: Network) -> Part:
        """The walk's kernel functions and numbers."""
        cost = 0 if self.self_loops_free else 1
        return Part(
            (
                ("agent_at", agent_at_mixed),
                ("works", works_when_mixed),
                ("advance", advance_mixing),
                ("move_cost", move_cost_mixed),
            ),
            MixedNumbers(network.neighbour_starts, network.neighbours, cost, int(self.steps)),
        )

    def first_places(self, network: Network, seed: int, tokens: int) -> Integers:
        """Distinct agents at random."""
        return _distinct_agents(network, seed, tokens)
