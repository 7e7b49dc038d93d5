"""Which links are there, and which agents are awake: they come and go from round to round.

A round of gossip is an iteration; a round of a token is one attempt to hand it over. A link is there in a round where the link
itself is up and both its ends are awake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import AWAKE, LINKS, Flags, Integers, chances, each, uniform
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.networks.graph import Network
from roundelay.registry import register

# A token would otherwise wait for ever, or for so long that nobody sees the difference.
LEAST_CHANCE = 1e-4


class Presence(Protocol):
    """Which links are up."""

    @property
    def always(self) -> bool:
        """Whether all are, always."""

    def chance_up(self) -> float:
        """The chance with which a link that has its turn is up, in each round anew."""

    def turns(self, network: Network) -> tuple[Flags, int]:
        """Which links have their turn, (turns, links), one turn after another; and for how many rounds each."""


class Waking(Protocol):
    """Which agents are awake."""

    def turning(self) -> tuple[float, float]:
        """The chances that an agent falls asleep, and that it wakes up, from one round to the next."""


def _chance(name: str, given: float) -> float:
    if not LEAST_CHANCE <= finite_number(name, given) <= 1.0:
        raise ValueError(
            f"{name} is {given}: use a chance from {LEAST_CHANCE:g} to 1, or whoever waits waits for ever."
        )
    return float(given)


@register(Presence, "all")
@dataclass(frozen=True)
class AllLinks:
    """Every link is always up."""

    always: ClassVar[bool] = True

    def chance_up(self) -> float:
        """The chance with which a link that has its turn is up, in each round anew."""
        return 1.0

    def turns(self, network: Network) -> tuple[Flags, int]:
        """Which links have their turn, (turns, links), one turn after another; and for how many rounds each."""
        return np.ones((1, len(network.edges)), np.uint8), 1


@register(Presence, "random")
@dataclass(frozen=True)
class RandomLinks:
    """Every link is up with the same `chance`, in each round anew."""

    always: ClassVar[bool] = False
    chance: float

    def __post_init__(self) -> None:
        _chance("chance", self.chance)

    def chance_up(self) -> float:
        """The chance with which a link that has its turn is up, in each round anew."""
        return float(self.chance)

    def turns(self, network: Network) -> tuple[Flags, int]:
        """Which links have their turn, (turns, links), one turn after another; and for how many rounds each."""
        return AllLinks().turns(network)


@register(Presence, "periodic")
@dataclass(frozen=True)
class PeriodicLinks:
    """Graphs that take turns, each for so many `rounds`: one after another, and then from the first again.

    `graphs` is a list of lists of links, such as [[(0, 1), (2, 3)], [(1, 2)]], or of networks. Every link of theirs is one of
    the network's, and every link of the network is in at least one of them. In files three numbers stand for a link: its
    graph and its two ends.
    """

    always: ClassVar[bool] = False
    graphs: Sequence[float] | Sequence[Any]
    rounds: int = 1

    def __post_init__(self) -> None:
        whole_number("rounds", self.rounds, least=1)
        links = list(self.graphs)
        try:
            if not all(isinstance(entry, int | float | np.number) for entry in links):
                edges = [getattr(graph, "edges", graph) for graph in links]
                links = [end for turn, graph in enumerate(edges) for i, j in graph for end in (turn, i, j)]
            triples = np.asarray(links, np.float64).reshape(-1, 3)
            whole = triples.astype(np.int64)
        except (TypeError, ValueError):
            whole, triples = np.zeros((0, 3), np.int64), np.ones((1, 3))
        if not np.array_equal(whole, triples) or not len(whole) or whole.min() < 0:
            raise ValueError(
                "The graphs are not lists of links between agents: give such as [[(0, 1), (2, 3)], [(1, 2)]], at least one link."
            )
        object.__setattr__(self, "graphs", tuple(whole.ravel().tolist()))  # so that two can be compared, and saved

    def chance_up(self) -> float:
        """The chance with which a link that has its turn is up, in each round anew."""
        return 1.0

    def turns(self, network: Network) -> tuple[Flags, int]:
        """Which links have their turn, (turns, links), one turn after another; and for how many rounds each."""
        turn, tails, heads = np.asarray(self.graphs, np.int64).reshape(-1, 3).T
        if max(tails.max(), heads.max()) >= network.agents:
            raise ValueError(
                f"A link of the graphs goes to an agent that is none of the {network.agents} of the network."
            )
        rows = network.edge_rows(tails, heads)
        if (rows < 0).any():
            i, j = int(tails[rows < 0][0]), int(heads[rows < 0][0])
            raise ValueError(
                f"The graphs link the agents {i} and {j}, which the network does not: give a network with all links that are ever there."
            )
        up = np.zeros((int(turn.max()) + 1, len(network.edges)), np.uint8)
        up[turn, rows] = 1
        if not up.any(axis=0).all():
            i, j = network.edges[int(np.flatnonzero(~up.any(axis=0))[0])]
            raise ValueError(
                f"The link between the agents {i} and {j} is in none of the graphs, so that a token would wait for it for ever: leave it out of the network."
            )
        return up, int(self.rounds)


@register(Waking, "always")
@dataclass(frozen=True)
class AlwaysAwake:
    """Nobody ever sleeps."""

    def turning(self) -> tuple[float, float]:
        """The chances that an agent falls asleep, and that it wakes up, from one round to the next."""
        return 0.0, 1.0


@register(Waking, "random")
@dataclass(frozen=True)
class AwakeAtRandom:
    """Every agent is awake with the same `chance`, in each round anew."""

    chance: float

    def __post_init__(self) -> None:
        _chance("chance", self.chance)

    def turning(self) -> tuple[float, float]:
        """The chances that an agent falls asleep, and that it wakes up, from one round to the next."""
        return 1.0 - self.chance, self.chance


@register(Waking, "in-turns")
@dataclass(frozen=True)
class SleepsInTurns:
    """A Markov chain for each agent: awake, it falls asleep with the chance `falls_asleep`; asleep, it wakes up with `wakes_up`.

    So an agent sleeps for 1/wakes_up rounds on average. In gossip all are awake in the first iteration.
    """

    falls_asleep: float
    wakes_up: float

    def __post_init__(self) -> None:
        if not 0.0 <= finite_number("falls_asleep", self.falls_asleep) <= 1.0:
            raise ValueError(f"falls_asleep is {self.falls_asleep}: a chance is a number from 0 to 1.")
        _chance("wakes_up", self.wakes_up)

    def turning(self) -> tuple[float, float]:
        """The chances that an agent falls asleep, and that it wakes up, from one round to the next."""
        return float(self.falls_asleep), float(self.wakes_up)


def changes(presence: Presence, waking: Waking) -> bool:
    """Whether anything ever comes or goes."""
    return not presence.always or waking.turning()[0] > 0.0


# ---------------------------------------------------------------- tokens


def is_there(conditions: Any, links: Any, seed: int, link: int, receiver: int) -> bool:
    """Whether the token can be handed over in this round; a round has then passed.

    Who holds a token is awake. The receiver is, or is not, by the law of its chain after the rounds since it was last looked at.
    """
    number = links.round[0]
    links.round[0] += 1
    if conditions.turns[(number // conditions.rounds) % conditions.turns.shape[0], link] == 0:
        return False
    if conditions.up < 1.0 and uniform(seed, link, number, LINKS, 0) >= conditions.up:
        return False
    if conditions.falls_asleep > 0.0:
        rate = conditions.falls_asleep + conditions.wakes_up
        usual = conditions.wakes_up / rate
        chance = usual + (links.awake[receiver] - usual) * (1.0 - rate) ** (number - links.looked[receiver])
        links.awake[receiver] = 1 if uniform(seed, receiver, number, AWAKE, 0) < chance else 0
        links.looked[receiver] = number
        return links.awake[receiver] == 1
    return True


# ---------------------------------------------------------------- gossip


def come_and_go(conditions: Any, links: Any, mixing: Any, seed: int, k: int) -> None:
    """Iteration k: who is awake, which links are there, and what weights that leaves. All are awake in the first, and begin.

    Where weights follow from the degrees they do from those of the moment. Otherwise a link that is not there leaves its weight
    to both its ends. Either way W is as symmetric as before and its rows sum to 1, so that the mean survives.
    """
    arcs, agents = mixing.neighbours.shape[0], mixing.own.shape[0]
    if conditions.up < 1.0:
        chances(seed, 0, k, LINKS, conditions.up, links.words, links.lanes, links.up)
    if conditions.falls_asleep > 0.0 and k > 0:
        chances(seed, 0, k, AWAKE, conditions.falls_asleep, links.words, links.lanes, links.falls)
        chances(seed, 1, k, AWAKE, conditions.wakes_up, links.words, links.lanes, links.wakes)
        for i in each(agents):
            links.awake[i] = links.awake[i] * (1 - links.falls[i]) + (1 - links.awake[i]) * links.wakes[i]
    turn = (k // conditions.rounds) % conditions.turns.shape[0]
    for a in each(arcs):
        link = conditions.links[a]
        both = links.awake[mixing.neighbours[a]] * links.awake[mixing.receivers[a]]
        links.there[a] = links.up[link] * conditions.turns[turn, link] * both
    for i in range(agents):
        degree = 0
        for a in range(mixing.starts[i], mixing.starts[i + 1]):
            if links.there[a] == 1:
                degree += 1
        links.degrees[i] = degree
    for i in range(agents):
        kept, all_of_it = 0.0, 0.0
        for a in range(mixing.starts[i], mixing.starts[i + 1]):
            weight = mixing.weights[a]
            if mixing.by_degree > 0.0:
                weight = mixing.by_degree / (1.0 + max(links.degrees[i], links.degrees[mixing.neighbours[a]]))
            links.weights[a] = weight * links.there[a]
            kept += links.weights[a]
            all_of_it += mixing.weights[a]
        links.own[i] = 1.0 - kept if mixing.by_degree > 0.0 else mixing.own[i] + (all_of_it - kept)


def awake_now(links: Any, i: int) -> bool:
    """Whether agent i takes part in this iteration."""
    return links.awake[i] == 1


def heard_now(links: Any, mixing: Any, i: int) -> int:
    """How many hear agent i in this iteration."""
    return links.degrees[i]


def first_awake(waking: Waking, seed: int, agents: int) -> Flags:
    """Who is awake at the beginning."""
    falls_asleep, wakes_up = waking.turning()
    if falls_asleep == 0.0:
        return np.ones(agents, np.uint8)
    generator = np.random.Generator(np.random.Philox(key=np.array([seed, 0xA3A4E], np.uint64)))
    return np.asarray(generator.random(agents) < wakes_up / (falls_asleep + wakes_up), np.uint8)


def links_of_arcs(network: Network, starts: Integers, neighbours: Integers) -> NDArray[np.int64]:
    """The link of each arc; 0 where its ends are not linked."""
    receivers = np.repeat(np.arange(network.agents), np.diff(starts))
    return np.maximum(network.edge_rows(receivers, neighbours), 0)
