"""Whose messages an agent hears, and with what weights it sums them up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers, Vector
from roundelay.kernels.checks import finite_number
from roundelay.networks import Network
from roundelay.registry import register


class MixingNumbers(NamedTuple):
    """Agent i hears `neighbours[starts[i]:starts[i + 1]]` with `weights`, and itself with `own[i]`.

    `receivers[a]` is the agent that hears on arc a. `squares` holds the sums of the neighbours' squared weights, `norms` their roots.
    Where links come and go a weight is by_degree/(1 + the larger degree of the moment), or as it stands where `by_degree` is 0.
    """

    starts: Integers
    neighbours: Integers
    receivers: Integers
    weights: Vector
    own: Vector
    squares: Vector
    norms: Vector
    by_degree: float = 0.0


def mixing_numbers(
    starts: Integers, neighbours: Integers, weights: Vector, own: Vector, by_degree: float = 0.0
) -> MixingNumbers:
    """The weights, and what follows from them."""
    receivers = np.repeat(np.arange(len(own)), np.diff(starts))
    squares = np.asarray(np.bincount(receivers, weights**2, len(own)), np.float64)
    return MixingNumbers(starts, neighbours, receivers, weights, own, squares, np.sqrt(squares), by_degree)


class Mixing(Protocol):
    """A rule for the weights w_ij with which agent i sums up the messages that it hears.

    One that `averages` over the links, with rows that sum to 1, says so: only then can links come and go.
    """

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""


@register(Mixing, "metropolis")
@dataclass(frozen=True)
class Metropolis:
    """w_ij = 1/(1 + max(d_i, d_j)) on links, and w_ii what is left of one."""

    averages: ClassVar[bool] = True

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""
        receivers = np.repeat(np.arange(network.agents), network.degrees)
        larger = np.maximum(network.degrees[receivers], network.degrees[network.neighbours])
        weights = 1.0 / (1.0 + larger)
        own = np.asarray(1.0 - np.bincount(receivers, weights, network.agents), np.float64)
        return mixing_numbers(network.neighbour_starts, network.neighbours, weights, own, by_degree=1.0)


@register(Mixing, "lazy")
@dataclass(frozen=True)
class Lazy:
    """(I + W)/2 of the Metropolis weights W: no eigenvalue is below 0, so that longer steps are safe, on bipartite networks too."""

    averages: ClassVar[bool] = True

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""
        whole = Metropolis().numbers(network)
        return mixing_numbers(whole.starts, whole.neighbours, 0.5 * whole.weights, 0.5 + 0.5 * whole.own, by_degree=0.5)


@register(Mixing, "laplacian")
@dataclass(frozen=True)
class Laplacian:
    """W = I − εL: the same weight on every link. `epsilon` is ε; left out, it is 1/(1 + the largest degree)."""

    averages: ClassVar[bool] = True

    epsilon: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            finite_number("epsilon", self.epsilon, above=0.0)

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""
        epsilon = 1.0 / (1.0 + network.degrees.max()) if self.epsilon is None else self.epsilon
        if self.epsilon is not None:
            largest = laplacian_spectrum(network)[-1]
            if epsilon * largest >= 2.0:
                raise ValueError(
                    f"epsilon is {epsilon:g}, with which I − εL has an eigenvalue of −1 or below: use less than {2.0 / largest:.4g} on this network."
                )
        return constant_weights(network, float(epsilon))


@register(Mixing, "best-constant")
@dataclass(frozen=True)
class BestConstant:
    """W = I − εL with the ε = 2/(λ₂ + λ_N) by which differences fade fastest (Xiao, Boyd 2004), λ the eigenvalues of L."""

    averages: ClassVar[bool] = True

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""
        if network.agents == 1:
            return constant_weights(network, 1.0)
        spectrum = laplacian_spectrum(network)
        return constant_weights(network, float(2.0 / (spectrum[1] + spectrum[-1])))


@register(Mixing, "matrix")
@dataclass(frozen=True)
class OwnWeights:
    """A matrix of your own: symmetric, with rows that sum to 1, weights on links alone, and no eigenvalue −1, nor 1 but one; in files its rows stand one after another."""

    averages: ClassVar[bool] = True

    matrix: Sequence[float] | Sequence[Sequence[float]] | NDArray[np.float64]

    def __post_init__(self) -> None:
        try:
            given = np.asarray(self.matrix, np.float64)
        except (TypeError, ValueError):
            raise ValueError("The weights are not a matrix of numbers: give a row for each agent.") from None
        if given.ndim == 1 and math.isqrt(given.size) ** 2 == given.size:
            given = given.reshape(math.isqrt(given.size), -1)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not np.isfinite(given).all():
            raise ValueError(f"The weights have the shape {given.shape}, or are not finite: give a square matrix.")
        if np.abs(given - given.T).max() > 1e-12 or np.abs(given.sum(axis=1) - 1.0).max() > 1e-12:
            raise ValueError(
                "The weights are not symmetric, or a row does not sum to 1: gossip would end beside the optimum."
            )
        eigenvalues = np.linalg.eigvalsh(given)
        if eigenvalues[0] <= -1.0 + 1e-12 or (len(given) > 1 and eigenvalues[-2] >= 1.0 - 1e-12):
            raise ValueError(
                "The weights have an eigenvalue of −1, or 1 twice: the agents would never agree. Use larger weights on the diagonal, or more links."
            )
        object.__setattr__(self, "matrix", tuple(given.ravel().tolist()))  # so that two can be compared, and saved

    def numbers(self, network: Network) -> MixingNumbers:
        """The weights on a network."""
        given = np.asarray(self.matrix, np.float64)
        given = given.reshape(math.isqrt(given.size), -1)
        if len(given) != network.agents:
            raise ValueError(
                f"The weights are for {len(given)} agents but the network has {network.agents}: make them agree."
            )
        receivers = np.repeat(np.arange(network.agents), network.degrees)
        left = given.copy()
        left[receivers, network.neighbours] = 0.0
        np.fill_diagonal(left, 0.0)
        if left.any():
            i, j = np.argwhere(left)[0]
            raise ValueError(
                f"The agents {i} and {j} have the weight {given[i, j]:g} but no link: put 0 there, or link them."
            )
        return mixing_numbers(
            network.neighbour_starts,
            network.neighbours,
            given[receivers, network.neighbours],
            np.array(np.diag(given), np.float64),
        )


def check_weights(weights: Any) -> None:
    """Refuse what is not a rule for weights."""
    if isinstance(weights, np.ndarray):
        raise ValueError("The weights are an array as it is: say that they are yours by roundelay.OwnWeights(matrix).")
    if isinstance(weights, type) or not hasattr(weights, "numbers"):
        raise ValueError(
            f"The weights are {weights!r}: use an object such as roundelay.Lazy(), or roundelay.OwnWeights(matrix)."
        )


def constant_weights(network: Network, epsilon: float) -> MixingNumbers:
    """I − εL."""
    weights = np.full(len(network.neighbours), epsilon)
    return mixing_numbers(
        network.neighbour_starts, network.neighbours, weights, np.asarray(1.0 - epsilon * network.degrees, np.float64)
    )


def laplacian_spectrum(network: Network) -> Vector:
    """The eigenvalues of L, the smallest first."""
    matrix = np.diag(network.degrees.astype(np.float64))
    matrix[np.repeat(np.arange(network.agents), network.degrees), network.neighbours] = -1.0
    return np.asarray(np.linalg.eigvalsh(matrix), np.float64)


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
