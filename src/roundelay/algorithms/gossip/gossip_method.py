"""What the engines need to know of a gossip method: a message from the state, an update from the inbox."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from roundelay.algorithms.gossip.mixing import Metropolis, Mixing
from roundelay.algorithms.slots import gradient
from roundelay.kernels import DIM, Exchange, Matrix, Part, Vector, each, slot, vector
from roundelay.links.channel import Channel
from roundelay.networks import Network
from roundelay.problems import Problem


class GossipMethod(Protocol):
    """A method in which all agents send, hear their neighbours, and update.

    An iteration has one or several exchanges. In each of them every agent that speaks calls `send`, the channel
    carries its message to those that hear it, and every agent that listens calls `receive`. To add a method of your
    own, write these two kernel functions and an object with these members; `parts()` of an algorithm returns it.
    """

    @property
    def mixing(self) -> Mixing:
        """Whom an agent hears, and with what weights."""

    @property
    def channel(self) -> Channel:
        """How the messages travel."""

    @property
    def vectors(self) -> int:
        """How many vectors a message holds."""

    @property
    def sends_increments(self) -> bool:
        """Whether a message is added to what came before, so that one that is lost counts as 0 and not as the last."""

    @property
    def speeches(self) -> int:
        """How often each agent speaks in an iteration."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The kernel functions that the problem must provide."""

    def exchanges(self, network: Network) -> int:
        """How many exchanges an iteration has."""

    def talking(self) -> float:
        """The share of the iterations in which the agents speak at all."""

    def update(self, problem: Problem, network: Network) -> Part:
        """The kernel functions `send` and `receive` with all that they call, and their numbers."""

    def start_states(self, problem: Problem, network: Network, seed: int) -> Any:
        """The states before the first iteration: a NamedTuple of (N, p) arrays, of which x is one."""


# The slots of the loop that a method may leave open; `engine/gossip_loop.py` has what fills them then.


@slot
def send(problem: Any, method: Any, at: Exchange, states: Any, own: Matrix, inbox: Matrix, out: Matrix) -> None:
    """Write agent i's message to `out`, (vectors, p). `own` is its last message as the others hold it."""
    raise NotImplementedError


@slot
def receive(problem: Any, method: Any, at: Exchange, states: Any, own: Matrix, inbox: Matrix, talked: bool) -> None:
    """Update agent i's state. `inbox` is Σ_j w_ij·(message of j) with its own, `own` its message as the others hold it.

    Without channel and loss `own` is what it sent. Where the agents did not speak in this iteration, `talked` is false.
    """
    raise NotImplementedError


@slot
def talks(method: Any, seed: int, k: int) -> bool:
    """Whether the agents speak in iteration k."""
    raise NotImplementedError


@slot
def speaks(method: Any, i: int, exchange: int) -> bool:
    """Whether agent i speaks in this exchange."""
    raise NotImplementedError


@slot
def listens(method: Any, i: int, exchange: int) -> bool:
    """Whether agent i listens in this exchange."""
    raise NotImplementedError


class Single(NamedTuple):
    """Just x."""

    x: Matrix


def one_exchange(network: Network) -> int:
    """All speak, then all listen."""
    return 1


@dataclass(frozen=True, eq=False)
class Gossip:
    """A gossip method put together: its kernel functions, what they read, and how the messages travel.

    `numbers` makes what the functions read of the network, `states` is the NamedTuple of its states, all of which
    start at 0. The rest is as in `GossipMethod`.
    """

    functions: tuple[tuple[str, Callable[..., Any]], ...]
    numbers: Callable[[Network], Any]
    states: type[Any] = Single
    mixing: Mixing = Metropolis()
    channel: Channel = Channel()
    needs: tuple[str, ...] = ("gradient",)
    vectors: int = 1
    speeches: int = 1
    sends_increments: bool = False
    exchange_count: Callable[[Network], int] = one_exchange
    talking_share: float = 1.0

    def exchanges(self, network: Network) -> int:
        """How many exchanges an iteration has."""
        return self.exchange_count(network)

    def talking(self) -> float:
        """The share of the iterations in which the agents speak at all."""
        return self.talking_share

    def update(self, problem: Problem, network: Network) -> Part:
        """The kernel functions with all that they call, and their numbers."""
        return Part(self.functions, self.numbers(network))

    def start_states(self, problem: Problem, network: Network, seed: int) -> Any:
        """Everything at 0."""
        return self.states(*(np.zeros((problem.agents, problem.dim)) for _ in self.states._fields))


def gradient_step(problem: Any, i: int, alpha: float, x: Vector) -> None:
    """x −= α∇f_i(x)."""
    slope = vector(DIM)
    gradient(problem, i, x, slope)
    for d in each(DIM):
        x[d] -= alpha * slope[d]
