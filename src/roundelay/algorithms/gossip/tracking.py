"""Gradient tracking: every agent follows the mean gradient beside x, and steps along it, or by its own function as well."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.gossip.gossip_method import Gossip
from roundelay.algorithms.gossip.mixing import Metropolis, Mixing, check_weights
from roundelay.algorithms.lemmas import Conditions
from roundelay.algorithms.slots import gradient, minimise
from roundelay.kernels import DIM, Exchange, Matrix, each, vector
from roundelay.links import Compressor, channel_of
from roundelay.links.channel import Channel
from roundelay.links.compressors import Plain
from roundelay.networks import Network
from roundelay.problems import Problem
from roundelay.registry import register


class TrackingNumbers(NamedTuple):
    """α, and whether the first gradients are averaged with the neighbours' before they are used."""

    alpha: float
    mixes_first: bool = True


class TrackingStates(NamedTuple):
    """x, the tracked gradient s, and the last ∇F(x)."""

    x: Matrix
    s: Matrix
    slope: Matrix


def send_both(
    problem: Any, method: TrackingNumbers, at: Exchange, states: TrackingStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """The message is x_i and s_i; s⁰ = ∇F(x⁰)."""
    i, k = at.agent, at.iteration
    if k == 0:
        gradient(problem, i, states.x[i], states.slope[i])
        for d in each(DIM):
            states.s[i, d] = states.slope[i, d]
    for d in each(DIM):
        out[0, d] = states.x[i, d]
        out[1, d] = states.s[i, d]


def receive_both(
    problem: Any,
    method: TrackingNumbers,
    at: Exchange,
    states: TrackingStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    """x⁺ = Wx − αs, s⁺ = Ws + ∇F(x⁺) − ∇F(x)."""
    i = at.agent
    slope = vector(DIM)
    for d in each(DIM):
        states.x[i, d] = states.x[i, d] - own[0, d] + inbox[0, d] - method.alpha * states.s[i, d]
    gradient(problem, i, states.x[i], slope)
    for d in each(DIM):
        states.s[i, d] = states.s[i, d] - own[1, d] + inbox[1, d] + slope[d] - states.slope[i, d]
        states.slope[i, d] = slope[d]


def send_in_turn(
    problem: Any, method: TrackingNumbers, at: Exchange, states: TrackingStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """First s + ∇F(x) − the last ∇F, then x − αs with the new s."""
    i = at.agent
    slope = vector(DIM)
    if at.exchange == 0:
        gradient(problem, i, states.x[i], slope)
        for d in each(DIM):
            states.s[i, d] = states.s[i, d] + slope[d] - states.slope[i, d]
            states.slope[i, d] = slope[d]
            out[0, d] = states.s[i, d]
    else:
        for d in each(DIM):
            states.x[i, d] -= method.alpha * states.s[i, d]
            out[0, d] = states.x[i, d]


def receive_in_turn(
    problem: Any,
    method: TrackingNumbers,
    at: Exchange,
    states: TrackingStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    """s⁺ = W of the first messages, x⁺ = W of the second."""
    i = at.agent
    if at.exchange == 0:
        if at.iteration > 0 or method.mixes_first:
            for d in each(DIM):
                states.s[i, d] = states.s[i, d] - own[0, d] + inbox[0, d]
    else:
        for d in each(DIM):
            states.x[i, d] = states.x[i, d] - own[0, d] + inbox[0, d]


def two_exchanges(network: Network) -> int:
    """One for s, one for x."""
    return 2


@register(Algorithm)
@dataclass(frozen=True)
class GradientTracking:
    """Gradient tracking (Nedić, Olshevsky, Shi 2017; Qu, Li 2018).

        x⁺ = Wx − αs    s⁺ = Ws + ∇F(x⁺) − ∇F(x)    s⁰ = ∇F(x⁰)

    Two vectors go over every link, so an iteration costs 4E. `alpha` is α; left out, it is 0.1/L of the problem.
    `adapt_then_combine` is the form x⁺ = W(x − αs), s⁺ = W(s + ∇F(x⁺) − ∇F(x)), s⁰ = W∇F(x⁰), whose iteration has
    two exchanges, one after the other; with mixes_first=False s⁰ = ∇F(x⁰), as others begin it: what is sent first is then not used. W holds `weights`.
    """

    name: ClassVar[str] = "gradient tracking"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float | None = None
    adapt_then_combine: bool = False
    channel: Channel | Compressor = Plain()
    weights: Mixing = Metropolis()
    mixes_first: bool = True

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)
        channel = channel_of(self.channel)
        check_weights(self.weights)
        if not (self.mixes_first or self.adapt_then_combine):
            raise ValueError("Without adapt_then_combine nothing is averaged before it is used: leave mixes_first out.")
        if self.adapt_then_combine and (channel.differences or channel.censoring is not None):
            raise ValueError(
                "In the adapt-then-combine form an agent sends s and x in turn, so that a channel that compares a message "
                "with the last one would compare s with x: leave out differences and censoring, or use the other form."
            )

    def resolved(self, problem: Problem) -> GradientTracking:
        """With the step size set."""
        return with_step(self, "alpha", 0.1, problem)

    def parts(self) -> Gossip:
        """x and s are sent and mixed."""
        numbers = TrackingNumbers(known_step(self, "alpha"), self.mixes_first)
        channel = channel_of(self.channel)
        if self.adapt_then_combine:
            functions = (("send", send_in_turn), ("receive", receive_in_turn))
            return Gossip(
                functions,
                lambda network: numbers,
                TrackingStates,
                mixing=self.weights,
                channel=channel,
                speeches=2,
                exchange_count=two_exchanges,
            )
        functions = (("send", send_both), ("receive", receive_both))
        return Gossip(functions, lambda network: numbers, TrackingStates, self.weights, channel, vectors=2)

    def conditions(self, problem: Problem) -> Conditions:
        """Its bounds depend on the network's spectrum; none is checked here."""
        return Conditions()


# ---------------------------------------------------------------- by the agent's own function


class DANENumbers(NamedTuple):
    """μ, the penalty on leaving the point where gradients are compared."""

    penalty: float


class DANEStates(NamedTuple):
    """x, the point where gradients were last compared, the tracked gradient s, and ∇F there."""

    x: Matrix
    point: Matrix
    s: Matrix
    slope: Matrix


def send_dane(
    problem: Any, method: DANENumbers, at: Exchange, states: DANEStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """The message is x_i and s_i; at first the point is x⁰, and s⁰ = ∇F(x⁰)."""
    i = at.agent
    if at.iteration == 0:
        gradient(problem, i, states.x[i], states.slope[i])
        for d in each(DIM):
            states.point[i, d] = states.x[i, d]
            states.s[i, d] = states.slope[i, d]
    for d in each(DIM):
        out[0, d] = states.x[i, d]
        out[1, d] = states.s[i, d]


def receive_dane(
    problem: Any, method: DANENumbers, at: Exchange, states: DANEStates, own: Matrix, inbox: Matrix, talked: bool
) -> None:
    """y⁺ = Wx, s⁺ = Ws + ∇F(y⁺) − ∇F(y), and x_i⁺ = argmin f_i(x) − (∇f_i(y_i⁺) − s_i⁺)'x + μ/2 ‖x − y_i⁺‖²."""
    i, slope, pull, new = at.agent, vector(DIM), vector(DIM), vector(DIM)
    for d in each(DIM):
        states.point[i, d] = states.x[i, d] - own[0, d] + inbox[0, d]
    gradient(problem, i, states.point[i], slope)
    for d in each(DIM):
        states.s[i, d] = states.s[i, d] - own[1, d] + inbox[1, d] + slope[d] - states.slope[i, d]
        states.slope[i, d] = slope[d]
        pull[d] = method.penalty * states.point[i, d] + slope[d] - states.s[i, d]
    minimise(problem, i, pull, method.penalty, states.x[i], new)
    for d in each(DIM):
        states.x[i, d] = new[d]


@register(Algorithm)
@dataclass(frozen=True)
class NetworkDANE:
    """Network-DANE (Li, Cen, Chen, Chi, "Communication-efficient distributed optimization in networks with gradient tracking and variance reduction", JMLR 2020).

        y⁺ = Wx    s⁺ = Ws + ∇F(y⁺) − ∇F(y)    x_i⁺ = argmin f_i(x) − (∇f_i(y_i⁺) − s_i⁺)'x + μ/2 ‖x − y_i⁺‖²

    Two vectors go over every link, so an iteration costs 4E. `penalty` is μ; left out, it is L/10 of the problem. The more the f_i are alike, the smaller it may be
    and the quicker it is. W holds `weights`.
    """

    name: ClassVar[str] = "Network-DANE"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("penalty"),)
    penalty: float | None = None
    channel: Channel | Compressor = Plain()
    weights: Mixing = Metropolis()

    def __post_init__(self) -> None:
        check_step("penalty", self.penalty)
        channel_of(self.channel)
        check_weights(self.weights)

    def resolved(self, problem: Problem) -> NetworkDANE:
        """With the penalty set."""
        if self.penalty is not None:
            return self
        if not (math.isfinite(problem.L) and problem.L > 0.0):
            raise ValueError(
                f"{self.name} takes its penalty from L, which is not known of this problem, or not finite: "
                "give penalty to NetworkDANE, or L to the problem."
            )
        return replace(self, penalty=0.1 * problem.L)

    def parts(self) -> Gossip:
        """x and s are sent and mixed, and every agent minimises its own function beside the mean gradient."""
        numbers = DANENumbers(known_step(self, "penalty"))
        functions = (("send", send_dane), ("receive", receive_dane))
        return Gossip(
            functions,
            lambda network: numbers,
            DANEStates,
            self.weights,
            channel_of(self.channel),
            needs=("gradient", "minimise"),
            vectors=2,
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Its bounds depend on the network's spectrum and on how alike the functions are; none is checked here."""
        return Conditions()
