"""Whose messages an agent hears, and with what weights it sums them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers, Vector
from roundelay.kernels.checks import finite_number
from roundelay.networks import Network


class MixingNumbers(NamedTuple):
    """Agent i hears `neighbours[starts[i]:starts[i + 1]]` with `weights`, and itself with `own[i]`.

    `receivers[a]` is the agent that hears on arc a. `squares` holds the sums of the neighbours' squared weights, `norms` their roots.
    """

    starts: Integers
    neighbours: Integers
    receivers: Integers
    weights: Vector
    own: Vector
    squares: Vector
    norms: Vector


def mixing_numbers(starts: Integers, neighbours: Integers, weights: Vector, own: Vector) -> MixingNumbers:
    """The weights, and what follows from them."""
    receivers = np.repeat(np.arange(len(own)), np.diff(starts))
    squares = np.asarray(np.bincount(receivers, weights**2, len(own)), np.float64)
    return MixingNumbers(starts, neighbours, receivers, weights, own, squares, np.sqrt(squares))


class Mixing(Protocol):
    """A rule for the weights w_ij with which agent i sums up the messages that it hears."""

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""


@dataclass(frozen=True)
class Metropolis:
    """w_ij = 1/(1 + max(d_i, d_j)) on links, and w_ii what is left of one."""

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""
        receivers = np.repeat(np.arange(network.agents), network.degrees)
        larger = np.maximum(network.degrees[receivers], network.degrees[network.neighbours])
        weights = 1.0 / (1.0 + larger)
        own = np.asarray(1.0 - np.bincount(receivers, weights, network.agents), np.float64)
        return mixing_numbers(network.neighbour_starts, network.neighbours, weights, own)


@dataclass(frozen=True)
class Everyone:
    """Every agent hears every other, by way of those between, and takes the mean: w_ij = 1/N for all.

    A message must reach N − 1 agents, which takes N − 1 transmissions however it travels.
    """

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""
        count = network.agents
        if count > MOST_TO_HEAR:
            raise ValueError(
                f"With {count} agents every one would hear every other, {count * (count - 1):,} messages in each round: "
                f"use a method that speaks to neighbours, or at most {MOST_TO_HEAR} agents."
            )
        starts = np.arange(count + 1, dtype=np.int64) * (count - 1)
        everyone = np.tile(np.arange(count, dtype=np.int64), (count, 1))
        others = everyone[~np.eye(count, dtype=bool)]
        return mixing_numbers(starts, others, np.full(len(others), 1.0 / count), np.full(count, 1.0 / count))


MOST_TO_HEAR = 3000


@dataclass(frozen=True)
class Penalties:
    """w_ij = c_ij, the penalty on a link, and nothing for the agent itself.

    `penalties` is one number for all links, or one for each in the order of `network.edges`; 0 deletes a link.
    """

    penalties: float | Sequence[float]

    def __post_init__(self) -> None:
        self._checked()

    def _checked(self) -> NDArray[np.float64]:
        try:
            given = np.asarray(self.penalties, np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"The penalties are {self.penalties!r}: give a number, or one for each link.") from None
        if given.ndim == 0:
            finite_number("The penalty", float(given), above=0.0)
        elif given.ndim > 1 or not (np.isfinite(given) & (given >= 0.0)).all():
            raise ValueError("Some penalties are negative or not finite: use positive numbers, or 0 to delete a link.")
        return given

    def on_links(self, network: Network) -> NDArray[np.float64]:
        """The penalty of each link."""
        given, links = self._checked(), len(network.edges)
        if given.ndim == 0:
            return np.full(links, float(given))
        if given.shape != (links,):
            raise ValueError(f"There are {given.size} penalties but the network has {links} links: give one for each.")
        return given

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network, without the links that are deleted."""
        on_links = self.on_links(network)
        kept = on_links > 0.0
        if not kept.all():
            try:
                network, on_links = Network(network.agents, network.edges[kept]), on_links[kept]
            except ValueError as error:
                raise ValueError(f"Without the links of penalty 0 nothing can be agreed on. {error}") from None
        weights = on_links[network.neighbour_links]
        return mixing_numbers(network.neighbour_starts, network.neighbours, weights, np.zeros(network.agents))
