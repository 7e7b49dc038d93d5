"""Methods that work alone for several iterations before they speak: Scaffnew and PQASGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.gossip.gossip_method import Gossip, gradient_step
from roundelay.algorithms.gossip.mixing import Everyone, Metropolis, Mixing, check_weights
from roundelay.algorithms.lemmas import Conditions
from roundelay.algorithms.slots import gradient
from roundelay.kernels import COIN, DIM, Exchange, Matrix, each, uniform, vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.links import Compressor, channel_of
from roundelay.links.channel import Channel
from roundelay.links.compressors import Plain, Quantised
from roundelay.problems import Problem
from roundelay.registry import register


class ScaffnewNumbers(NamedTuple):
    """γ, q and γτ/q, how far x goes to the mean with the neighbours."""

    gamma: float
    q: float
    weight: float


class ScaffnewStates(NamedTuple):
    """x and the control variate h."""

    x: Matrix
    h: Matrix


def coin(method: ScaffnewNumbers, seed: int, k: int) -> bool:
    """All agents toss the same coin."""
    return uniform(seed, 0, k, COIN, 0) < method.q


def send_scaffnew(
    problem: Any, method: ScaffnewNumbers, at: Exchange, states: ScaffnewStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """x̂ = x − γ(∇F(x) − h), which is the message."""
    i = at.agent
    slope = vector(DIM)
    gradient(problem, i, states.x[i], slope)
    for d in each(DIM):
        states.x[i, d] -= method.gamma * (slope[d] - states.h[i, d])
        out[0, d] = states.x[i, d]


def receive_scaffnew(
    problem: Any,
    method: ScaffnewNumbers,
    at: Exchange,
    states: ScaffnewStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    """x = x̂ + (γτ/q)(Wx̂ − x̂), h += (q/γ)(x − x̂) where the coin says so; else x = x̂."""
    i = at.agent
    if talked:
        for d in each(DIM):
            change = method.weight * (inbox[0, d] - own[0, d])
            states.x[i, d] += change
            states.h[i, d] += method.q / method.gamma * change


@register(Algorithm)
@dataclass(frozen=True)
class Scaffnew:
    """Decentralised Scaffnew, or ProxSkip (Mishchenko, Malinovsky, Stich, Richtárik 2022).

        x̂ = x − γ(∇F(x) − h)    with probability q: x = x̂ + (γτ/q)(Wx̂ − x̂), h += (q/γ)(x − x̂);  else x = x̂

    `gamma` is γ, left out it is 1/L of the problem; `q` is the chance that the agents speak. `tau` is τ, left out it
    is q/(2γ); τ = q/γ is right only where W is positive semidefinite. With q = 1 and τ = 1/(2γ) it is NIDS's
    recursion. W holds `weights`.
    """

    name: ClassVar[str] = "Scaffnew"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("gamma"), Tunable("q", "share", 0.5))
    gamma: float | None = None
    q: float = 0.5
    tau: float | None = None
    channel: Channel | Compressor = Plain()
    weights: Mixing = Metropolis()

    def __post_init__(self) -> None:
        check_step("gamma", self.gamma)
        check_step("tau", self.tau)
        if not 0.0 < finite_number("q", self.q) <= 1.0:
            raise ValueError(f"q is {self.q}: a chance of speaking is above 0 and at most 1.")
        channel_of(self.channel)
        check_weights(self.weights)

    def resolved(self, problem: Problem) -> Scaffnew:
        """With the step size set."""
        return with_step(self, "gamma", 1.0, problem)

    def parts(self) -> Gossip:
        """A corrected gradient step, and now and then the mean with the neighbours."""
        gamma = known_step(self, "gamma")
        weight = 0.5 if self.tau is None else gamma * self.tau / self.q
        numbers = ScaffnewNumbers(gamma, float(self.q), weight)
        functions = (("send", send_scaffnew), ("receive", receive_scaffnew), ("talks", coin))
        channel = channel_of(self.channel)
        return Gossip(
            functions, lambda network: numbers, ScaffnewStates, self.weights, channel, talking_share=float(self.q)
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Its theorems are about a server; none is checked here."""
        return Conditions()


class PQASGDNumbers(NamedTuple):
    """α and how many local steps are made."""

    alpha: float
    local_steps: int


class PQASGDStates(NamedTuple):
    """x, and where the agents last were together."""

    x: Matrix
    together: Matrix


def every_so_often(method: PQASGDNumbers, seed: int, k: int) -> bool:
    """After so many local steps."""
    return (k + 1) % method.local_steps == 0


def send_pqasgd(
    problem: Any, method: PQASGDNumbers, at: Exchange, states: PQASGDStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """A local step; the message is how far x has come since the agents were together."""
    i = at.agent
    gradient_step(problem, i, method.alpha, states.x[i])
    for d in each(DIM):
        out[0, d] = states.x[i, d] - states.together[i, d]


def receive_pqasgd(
    problem: Any, method: PQASGDNumbers, at: Exchange, states: PQASGDStates, own: Matrix, inbox: Matrix, talked: bool
) -> None:
    """x = the last common point plus the mean of what all have sent."""
    i = at.agent
    if talked:
        for d in each(DIM):
            states.together[i, d] += inbox[0, d]
            states.x[i, d] = states.together[i, d]


@register(Algorithm)
@dataclass(frozen=True)
class PQASGD:
    """Periodic quantised averaging of gradient descent.

        `local_steps` times x_i −= α∇f_i(x_i);  then x_i = x_sync + (1/N)Σ_j Q(x_j − x_sync)

    `alpha` is α, left out it is 0.1/L of the problem; `channel` is Q. One iteration is one local step. The mean is that
    of all agents, so every message must reach all others: N(N − 1) messages each time. With more than one local
    step, or a constant quantiser, it ends at a floor.
    """

    name: ClassVar[str] = "PQASGD"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float | None = None
    local_steps: int = 5
    channel: Channel | Compressor = Quantised(4)

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)
        whole_number("local_steps", self.local_steps, least=1)
        channel_of(self.channel)

    def resolved(self, problem: Problem) -> PQASGD:
        """With the step size set."""
        return with_step(self, "alpha", 0.1, problem)

    def parts(self) -> Gossip:
        """Local steps, then the mean of all."""
        numbers = PQASGDNumbers(known_step(self, "alpha"), int(self.local_steps))
        functions = (("send", send_pqasgd), ("receive", receive_pqasgd), ("talks", every_so_often))
        return Gossip(
            functions, lambda network: numbers, PQASGDStates, Everyone(), channel_of(self.channel),
            sends_increments=True, talking_share=1.0 / self.local_steps,
        )  # fmt: skip

    def conditions(self, problem: Problem) -> Conditions:
        """No theorem with checkable numbers is known here."""
        return Conditions()
