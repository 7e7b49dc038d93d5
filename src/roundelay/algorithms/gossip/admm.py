"""Decentralised ADMM: D-ADMM, COCA, weighted and quantised ADMM by one update; coloured D-ADMM, in which neighbours take turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from roundelay.algorithms.algorithm import Algorithm, Tunable
from roundelay.algorithms.gossip.admm_update import ADMMGossipStates, Linearised, LocalStep, SolvedExactly, gossip_admm
from roundelay.algorithms.gossip.gossip_method import Gossip
from roundelay.algorithms.gossip.mixing import Penalties
from roundelay.algorithms.lemmas import Condition, Conditions
from roundelay.algorithms.slots import minimise
from roundelay.kernels import DIM, Exchange, Integers, Matrix, Vector, each, vector
from roundelay.kernels.checks import finite_number
from roundelay.links import Compressor, channel_of
from roundelay.links.channel import Censoring, Channel
from roundelay.links.compressors import Plain, Rounded
from roundelay.networks import Network
from roundelay.problems import Problem
from roundelay.registry import register


def local_step(first_order: bool, inertia: float, cola: bool = False) -> LocalStep:
    """The exact x-step, or one of the first-order ones."""
    if not first_order and (inertia or cola):
        raise ValueError("inertia and cola belong to the first-order step: set first_order=True, or leave them out.")
    return Linearised(inertia, cola) if first_order else SolvedExactly()


def any_penalty(c: float, exact: bool) -> Conditions:
    """D-ADMM converges for every penalty, where it is solved exactly and its messages arrive as they are."""
    if not exact:
        return Conditions()
    return Conditions([Condition("D-ADMM (Shi et al. 2014)", "c > 0", f"c = {c:.4g}", True)])


@register(Algorithm)
@dataclass(frozen=True)
class DADMM:
    """Decentralised ADMM (Shi, Ling, Yuan, Wu, Yin 2014).

        x_i⁺ = prox_i((c d_i x_i + cΣ_j x_j − λ_i)/(2c d_i), 2c d_i)    λ_i⁺ = λ_i + cΣ_j(x_i⁺ − x_j⁺)

    `c` is the penalty. `first_order` replaces f_i by its tangent, x_i⁺ = (c d_i x_i + cΣ_j x_j − λ_i + ρ_l x_i −
    ∇f_i(x_i))/(2c d_i + ρ_l), where `inertia` is ρ_l. `channel` is what messages pass through; the sender, too, uses
    what came out of it.
    """

    name: ClassVar[str] = "D-ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("c"),)
    c: float = 1.0
    first_order: bool = False
    inertia: float = 0.0
    channel: Channel | Compressor = Plain()

    def __post_init__(self) -> None:
        finite_number("c", self.c, above=0.0)
        self.parts()  # refuses bad options now

    def parts(self) -> Gossip:
        """One penalty for all links."""
        return gossip_admm(self.c, local_step(self.first_order, self.inertia), channel_of(self.channel))

    def conditions(self, problem: Problem) -> Conditions:
        """Any penalty will do, if the messages arrive as they are."""
        return any_penalty(self.c, not self.first_order and self.channel == Plain())


@register(Algorithm)
@dataclass(frozen=True)
class COCA:
    """Communication-censored ADMM (Liu, Xu, Wu, Ling, Tian 2019).

        x_i as D-ADMM;  it is sent, x̂_i ← x_i, only if ‖x_i − x̂_i‖ ≥ αρᵏ;  λ_i⁺ = λ_i + cΣ_j(x̂_i − x̂_j)

    `c` is the penalty, `alpha` α and `rho` ρ of the threshold, in iteration k = 1, 2, …; with `alpha=0` it is D-ADMM.
    `first_order` replaces f_i by its tangent, with `inertia` ρ_l: from x̂_i, or with `cola=True` from x_i as COLA has
    it, x_i⁺ = x_i − (∇f_i(x_i) + λ_i + cΣ_j(x̂_i − x̂_j))/(2c d_i + ρ_l).
    """

    name: ClassVar[str] = "COCA"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("c"), Tunable("rho", "below one"), Tunable("alpha"))
    c: float = 1.0
    alpha: float = 1.0
    rho: float = 0.85
    first_order: bool = False
    inertia: float = 0.0
    cola: bool = False
    compressor: Compressor = Plain()

    def __post_init__(self) -> None:
        finite_number("c", self.c, above=0.0)
        self.parts()  # refuses bad options now

    def parts(self) -> Gossip:
        """D-ADMM through a censored channel."""
        channel = Channel(self.compressor, Censoring(self.alpha, self.rho))
        return gossip_admm(self.c, local_step(self.first_order, self.inertia, self.cola), channel)

    def conditions(self, problem: Problem) -> Conditions:
        """Any penalty will do, with a threshold that vanishes."""
        conditions = any_penalty(self.c, not self.first_order and self.compressor == Plain())
        vanishes = self.alpha == 0.0 or self.rho < 1.0
        return Conditions([*conditions, Condition("COCA (Liu et al. 2019)", "ρ < 1", f"ρ = {self.rho:.4g}", vanishes)])


@register(Algorithm)
@dataclass(frozen=True)
class WeightedADMM:
    """Weighted ADMM (Ling, Liu, Shi, Ribeiro 2016): D-ADMM with a penalty of its own on every link.

        x_i⁺ = prox_i(v_i/(2Σ_j c_ij), 2Σ_j c_ij)    v_i = Σ_j c_ij(x_i + x_j) − λ_i    λ_i⁺ = λ_i + Σ_j c_ij(x_i⁺ − x_j⁺)

    `penalties` has one number for each link, in the order of `network.edges`; 0 deletes the link, which then costs
    nothing. One number alone is for all links.
    """

    name: ClassVar[str] = "weighted ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = ()
    penalties: float | Sequence[float] = 1.0
    first_order: bool = False
    inertia: float = 0.0
    channel: Channel | Compressor = Plain()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now
        if np.ndim(self.penalties) == 1:  # as a tuple, which can be compared and saved
            object.__setattr__(self, "penalties", tuple(np.asarray(self.penalties, np.float64).tolist()))

    def parts(self) -> Gossip:
        """A penalty for each link."""
        return gossip_admm(self.penalties, local_step(self.first_order, self.inertia), channel_of(self.channel))

    def conditions(self, problem: Problem) -> Conditions:
        """The links that are kept must connect all agents, which is checked when it runs."""
        return Conditions()


@register(Algorithm)
@dataclass(frozen=True)
class QuantisedADMM:
    """Quantised ADMM (Zhu, Hong, Chen 2016): D-ADMM whose messages are multiples of Δ.

        x̂_i = Δ·round(x_i/Δ), or dithered Δ·floor(x_i/Δ + u);  D-ADMM with x̂ in every exchange and reuse

    `c` is the penalty, `step` Δ. It ends at a floor of about Δ.
    """

    name: ClassVar[str] = "quantised ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("c"),)
    c: float = 1.0
    step: float = 1e-3
    dithered: bool = False
    first_order: bool = False
    inertia: float = 0.0

    def __post_init__(self) -> None:
        finite_number("c", self.c, above=0.0)
        self.parts()  # refuses bad options now

    def parts(self) -> Gossip:
        """D-ADMM through a channel that rounds."""
        channel = Channel(Rounded(self.step, self.dithered))
        return gossip_admm(self.c, local_step(self.first_order, self.inertia), channel)

    def conditions(self, problem: Problem) -> Conditions:
        """It does not converge, but to a floor."""
        return Conditions()


# ---------------------------------------------------------------- coloured: each with the latest that it has heard


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
    at: Exchange,
    states: ADMMGossipStates,
    own: Matrix,
    inbox: Matrix,
    out: Matrix,
) -> None:
    """x_i⁺ = prox_i((ρΣ_j x_j − γ_i)/(ρd_i), ρd_i) with the latest x_j; its message."""
    i = at.agent
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
    at: Exchange,
    states: ADMMGossipStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    """When all have spoken: γ_i⁺ = γ_i + ρΣ_j(x_i − x_j)."""
    i = at.agent
    if at.exchange == method.colours - 1:
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


@register(Algorithm)
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
