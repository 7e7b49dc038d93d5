"""What a real network does to messages and to time: loss, noise, latency, and agents that take their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Flags, Integers, Part
from roundelay.kernels.bulk import GAPS_AT_ONCE, gaps_between
from roundelay.kernels.checks import finite_number
from roundelay.kernels.ziggurat import layer_edges
from roundelay.links.crossing import (
    ConditionNumbers,
    LinkStates,
    arrive,
    collect_through,
    cross_link,
    disturb_token,
    now,
    open_exchange,
    ring_the_bell,
    spend_time,
    take_turn,
)
from roundelay.links.presence import (
    AllLinks,
    AlwaysAwake,
    Presence,
    Waking,
    awake_now,
    changes,
    come_and_go,
    first_awake,
    heard_now,
    links_of_arcs,
)
from roundelay.networks.graph import Network
from roundelay.registry import register


class MessageLoss(Protocol):
    """How messages are lost on a link."""

    def chances(self) -> tuple[float, float, float, float]:
        """The chance of loss in a good and in a bad state, and those of turning bad and good."""


@register(MessageLoss, "bernoulli")
@dataclass(frozen=True)
class BernoulliLoss:
    """Every message is lost with the same `chance`, whatever happened before."""

    chance: float

    def __post_init__(self) -> None:
        if not 0.0 <= finite_number("chance", self.chance) < 1.0:
            raise ValueError(f"The chance of loss is {self.chance}: use a number from 0 up to, but not including, 1.")

    def chances(self) -> tuple[float, float, float, float]:
        """The chance of loss in a good and in a bad state, and those of turning bad and good."""
        return self.chance, self.chance, 0.0, 0.0


@register(MessageLoss, "gilbert-elliott")
@dataclass(frozen=True)
class GilbertElliott:
    """Loss in bursts: each link is good or bad, and turns with every exchange, or every transmission of a token.

    `turns_bad` is the chance that a good link turns bad, `turns_good` the other way round; `loss_good` and `loss_bad`
    are the chances that a message is lost in either state. Links start as they are in the long run.
    """

    turns_bad: float
    turns_good: float
    loss_bad: float = 1.0
    loss_good: float = 0.0

    def __post_init__(self) -> None:
        for name in ("turns_bad", "turns_good", "loss_bad", "loss_good"):
            if not 0.0 <= finite_number(name, getattr(self, name)) <= 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}: a chance is a number from 0 to 1.")
        if self.turns_bad + self.turns_good == 0.0:
            raise ValueError(
                "A link that never turns has no bursts: use BernoulliLoss, or give turns_bad and turns_good."
            )
        if self.loss_good == 1.0 or (self.loss_bad == 1.0 and self.turns_good == 0.0):
            raise ValueError("Nothing would ever arrive: lower loss_good, or raise turns_good.")

    def chances(self) -> tuple[float, float, float, float]:
        """The chance of loss in a good and in a bad state, and those of turning bad and good."""
        return self.loss_good, self.loss_bad, self.turns_bad, self.turns_good


@register()
@dataclass(frozen=True)
class NetworkConditions:
    """What happens to messages on the links, and how long everything takes.

    `loss` is `BernoulliLoss` or `GilbertElliott`. A token that is lost is sent again, and paid for again, until it
    arrives. In a gossip method the receiver goes on with the last message that it has of this sender, or with nothing
    where messages are added up (LEAD, CHOCO, error feedback, PQASGD); with `resend=True` messages are sent again as
    tokens are.
    `noise` is the standard deviation of a Gaussian that every link adds to every coordinate, drawn anew in each exchange,
    also for a message that is used again. For sums of messages it is drawn for the sum, which is the same in law.
    `latency` is the seconds that a message takes, one number or one for each link in the order of `network.edges`.
    A lost message is noticed after a round trip, and then sent again.
    `compute` is the seconds that an update takes, one number or one for each agent.
    `latency_jitter` and `compute_jitter` multiply each of these times by 1 + jitter·E, E exponential with mean 1.
    With `straggler_chance` an update takes `straggler_factor` times as long.

    `links` says which links are up, `AllLinks()`, `RandomLinks(chance)` or `PeriodicLinks(graphs)`, and `waking` which agents are
    awake, `AlwaysAwake()`, `AwakeAtRandom(chance)` or `SleepsInTurns(falls_asleep, wakes_up)`. A token waits until the link that it is to take
    is up and the agent at its end awake; whoever holds it is. That costs no units: a round of waiting takes `waiting` seconds. With
    `detours=True` a token on a random walk does not insist: it stays where it is for this hop, and draws anew in the next. In
    gossip an agent that sleeps does nothing in this iteration, and the weights are those of the links that are there.
    """

    loss: MessageLoss = BernoulliLoss(0.0)
    noise: float = 0.0
    resend: bool = False
    latency: float | Sequence[float] | NDArray[np.float64] = 0.0
    latency_jitter: float = 0.0
    compute: float | Sequence[float] | NDArray[np.float64] = 0.0
    compute_jitter: float = 0.0
    straggler_chance: float = 0.0
    straggler_factor: float = 10.0
    links: Presence = AllLinks()
    waking: Waking = AlwaysAwake()
    waiting: float = 1.0
    detours: bool = False

    def __post_init__(self) -> None:
        if not hasattr(self.loss, "chances") or isinstance(self.loss, type):
            raise ValueError(f"The loss is {self.loss!r}: use an object such as BernoulliLoss(0.1).")
        for name, member, example in (
            ("links", "turns", "RandomLinks(0.5)"),
            ("waking", "turning", "AwakeAtRandom(0.5)"),
        ):
            given = getattr(self, name)
            if not hasattr(given, member) or isinstance(given, type):
                raise ValueError(f"{name} is {given!r}: use an object such as {example}.")
        finite_number("noise", self.noise, least=0.0)
        finite_number("waiting", self.waiting, least=0.0)
        for name in ("latency_jitter", "compute_jitter"):
            finite_number(name, getattr(self, name), least=0.0)
        finite_number("straggler_factor", self.straggler_factor, least=1.0)
        if not 0.0 <= finite_number("straggler_chance", self.straggler_chance) <= 1.0:
            raise ValueError(f"straggler_chance is {self.straggler_chance}: a chance is a number from 0 to 1.")
        for name in ("latency", "compute"):
            given = getattr(self, name)
            try:
                seconds = np.asarray(given, np.float64)
                if seconds.ndim > 1 or not (np.isfinite(seconds) & (seconds >= 0.0)).all():
                    raise ValueError
            except (TypeError, ValueError):
                raise ValueError(
                    f"{name} is {given!r}: use seconds, one number or a list of numbers, none of them negative."
                ) from None
            if seconds.ndim == 1:  # as a tuple, which can be compared and saved
                object.__setattr__(self, name, tuple(seconds.tolist()))

    @property
    def loses(self) -> bool:
        """Whether any message may be lost."""
        return max(self.loss.chances()[:2]) > 0.0

    @property
    def attempts(self) -> float:
        """How often a message is sent on average until it has arrived, over a link that was left alone for long.

        From a good and from a bad link that is m_g = 1 + loss_g((1 − a)m_g + a·m_b) and m_b = 1 + loss_b(b·m_g + (1 − b)m_b)
        with the chances a and b of turning.
        """
        good, bad, turns_bad, turns_good = self.loss.chances()
        share = turns_bad / (turns_bad + turns_good) if turns_bad > 0.0 else 0.0
        matrix = np.array(
            [[1.0 - good * (1.0 - turns_bad), -good * turns_bad], [-bad * turns_good, 1.0 - bad * (1.0 - turns_good)]]
        )
        from_good, from_bad = np.linalg.solve(matrix, np.ones(2)) if self.loses else np.ones(2)
        return float((1.0 - share) * from_good + share * from_bad)

    @property
    def changes(self) -> bool:
        """Whether links come and go, or agents fall asleep."""
        return changes(self.links, self.waking)

    @property
    def takes_time(self) -> bool:
        """Whether anything takes time."""
        timed = np.any(np.asarray(self.latency) > 0.0) or np.any(np.asarray(self.compute) > 0.0)
        return bool(timed or (self.changes and self.waiting > 0.0))

    def part(self, network: Network, starts: Integers, neighbours: Integers, roams: bool = False) -> Part:
        """The kernel functions of both families, for arcs that agent i hears at `neighbours[starts[i]:starts[i + 1]]`.

        A token that `roams` is on no tour.
        """
        turns, rounds = self.links.turns(network)
        numbers = ConditionNumbers(
            *self.loss.chances(),
            float(self.noise),
            self._latency_of_arcs(network, starts, neighbours),
            float(self.latency_jitter),
            self._seconds("compute", network.agents, "agents"),
            float(self.compute_jitter),
            float(self.straggler_chance),
            float(self.straggler_factor),
            starts,
            neighbours,
            gaps_between(self.loss.chances()[0]),
            layer_edges(),
            links_of_arcs(network, starts, neighbours),
            turns,
            rounds,
            self.links.chance_up(),
            *self.waking.turning(),
            float(self.waiting),
        )
        presence = (("begin_iteration", come_and_go), ("awake", awake_now), ("hearers", heard_now))
        return Part(
            (
                *(presence if self.changes else ()),
                ("cross", cross_link),
                ("add_noise", disturb_token),
                ("work", spend_time),
                ("open_exchange", open_exchange),
                ("collect", collect_through),
                ("take_turn", take_turn),
                ("begin_exchange", ring_the_bell),
                ("arrive", arrive),
                ("seconds_now", now),
            ),
            numbers,
            (
                ("LOSES", int(self.loses)),
                ("BURSTS", int(self.loss.chances()[2] > 0.0)),
                ("RESENDS", int(self.resend)),
                ("NOISY", int(self.noise > 0.0)),
                ("TIMED", int(self.takes_time)),
                ("CHANGES", int(self.changes)),
                ("DETOURS", int(self.detours and roams)),
            ),
        )

    @property
    def replaces(self) -> bool:
        """Whether something else stands in for a lost message, so that it must be kept."""
        return self.loses and not self.resend

    def states(self, seed: int, agents: int, neighbours: Integers, tokens: int, vectors: int, dim: int) -> LinkStates:
        """How the links and the clocks start, for arcs from these senders."""
        arcs = len(neighbours)
        _, _, turns_bad, turns_good = self.loss.chances()
        bad = np.zeros(arcs, np.uint8)
        if turns_bad > 0.0:
            generator = np.random.Generator(np.random.Philox(key=np.array([seed, 0xBAD], np.uint64)))
            bad[:] = generator.random(arcs) < turns_bad / (turns_bad + turns_good)
        gossip = vectors > 0
        # For `chances` a byte for each arc, for `befall` a batch, for `quick_normals` a word for each number.
        blocks = max(-(-arcs // 32), -(-agents * dim // 4), GAPS_AT_ONCE // 16)
        words = np.zeros(4 * blocks if gossip else 0, np.uint64)
        noise = np.zeros((vectors, agents, dim))
        heard = arcs if gossip else 0

        def flags() -> Flags:
            return np.zeros(heard, np.uint8)

        return LinkStates(
            bad,
            np.zeros(0 if gossip else arcs, np.int64),
            np.zeros(1, np.int64),
            flags(),
            flags(),
            flags(),
            flags(),
            np.array(neighbours[:heard], np.uint32),
            np.zeros((2, heard + 1), np.int64),
            np.zeros(2, np.int64),
            words,
            words.view(np.uint8),
            noise,
            noise.reshape(vectors, agents * dim),
            np.zeros(agents),
            np.zeros(agents),
            np.zeros(heard),
            np.zeros(agents),
            np.zeros(agents),
            np.zeros(tokens),
            np.zeros(1, np.int64),
            np.ones(agents, np.uint8) if gossip else first_awake(self.waking, seed, agents),
            np.full(agents, -1, np.int64),
            np.ones(arcs, np.uint8),
            np.zeros(agents, np.uint8),
            np.zeros(agents, np.uint8),
            flags(),
            np.zeros(heard),
            np.zeros(agents),
            np.zeros(agents, np.int64),
        )

    def _seconds(self, name: str, count: int, what: str) -> NDArray[np.float64]:
        given = np.asarray(getattr(self, name), np.float64)
        if given.ndim == 1 and len(given) != count:
            raise ValueError(
                f"{name} has {len(given)} numbers but there are {count} {what}: give one, or one for each."
            )
        return np.array(np.broadcast_to(given, (count,)))

    def _latency_of_arcs(self, network: Network, starts: Integers, neighbours: Integers) -> NDArray[np.float64]:
        """The latency of each arc; where its ends are not linked, that of the quickest way between them."""
        seconds = self._seconds("latency", len(network.edges), "links")
        receivers = np.repeat(np.arange(network.agents), np.diff(starts))
        rows = network.edge_rows(receivers, neighbours)
        direct = seconds[rows] if len(seconds) else np.zeros(len(rows))
        if (rows >= 0).all():
            return direct
        from scipy import sparse
        from scipy.sparse import csgraph

        # A link without latency must still count as a link.
        lengths = np.maximum(seconds, 1e-300)[network.neighbour_links]
        graph = sparse.csr_array((lengths, network.neighbours, network.neighbour_starts), (network.agents,) * 2)
        quickest: Any = csgraph.shortest_path(graph, directed=False)
        return np.where(rows >= 0, direct, np.asarray(quickest[receivers, neighbours], np.float64))
