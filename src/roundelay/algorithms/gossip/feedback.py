"""Gradient steps that are compressed, with what was left out added the next time: error feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.gossip.gossip_method import Gossip
from roundelay.algorithms.gossip.mixing import Everyone
from roundelay.algorithms.lemmas import Conditions
from roundelay.algorithms.slots import gradient
from roundelay.kernels import DIM, Exchange, Matrix, each, vector
from roundelay.links import Compressor, channel_of
from roundelay.links.channel import Channel
from roundelay.links.compressors import Signs, TopShare
from roundelay.problems import Problem
from roundelay.registry import register


class FeedbackNumbers(NamedTuple):
    """α."""

    alpha: float


class FeedbackStates(NamedTuple):
    """x, and what of its steps an agent has not yet sent."""

    x: Matrix
    rest: Matrix


def send_step(
    problem: Any, method: FeedbackNumbers, at: Exchange, states: FeedbackStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """The message is α∇F(x) with what was left out before."""
    i = at.agent
    slope = vector(DIM)
    gradient(problem, i, states.x[i], slope)
    for d in each(DIM):
        states.rest[i, d] += method.alpha * slope[d]
        out[0, d] = states.rest[i, d]


def receive_steps(
    problem: Any,
    method: FeedbackNumbers,
    at: Exchange,
    states: FeedbackStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    """x −= the mean of what all have sent; what was left out of the own message is kept."""
    i = at.agent
    for d in each(DIM):
        states.rest[i, d] -= own[0, d]
        states.x[i, d] -= inbox[0, d]


def error_feedback(algorithm: Any, channel: Channel | Compressor) -> Gossip:
    """Compressed steps of all agents, averaged, with error feedback."""
    numbers = FeedbackNumbers(known_step(algorithm, "alpha"))
    return Gossip(
        (("send", send_step), ("receive", receive_steps)), lambda network: numbers, FeedbackStates, Everyone(),
        channel_of(channel), sends_increments=True,
    )  # fmt: skip


@register(Algorithm)
@dataclass(frozen=True)
class EFSignSGD:
    """EF-SignSGD with full gradients (Karimireddy, Rebjock, Stich, Jaggi 2019).

        p_i = α∇f_i(x) + e_i    Δ_i = (‖p_i‖₁/p)·sign(p_i)    e_i = p_i − Δ_i    x −= (1/N)Σ_j Δ_j

    `alpha` is α, left out it is 0.1/L of the problem. The mean is that of all agents, so every message must reach all
    others: N(N − 1) messages an iteration, of one bit a coordinate. It ends at a floor that falls with α.
    """

    name: ClassVar[str] = "EF-SignSGD"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float | None = None

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)

    def resolved(self, problem: Problem) -> EFSignSGD:
        """With the step size set."""
        return with_step(self, "alpha", 0.1, problem)

    def parts(self) -> Gossip:
        """Error feedback with signs."""
        return error_feedback(self, Signs())

    def conditions(self, problem: Problem) -> Conditions:
        """No theorem with checkable numbers is known here."""
        return Conditions()


@register(Algorithm)
@dataclass(frozen=True)
class SparseDropping:
    """Sparse gradient dropping (Aji, Heafield 2017).

        p_i = α∇f_i(x) + e_i    Δ_i = the largest `share` of p_i    e_i = p_i − Δ_i    x −= (1/N)Σ_j Δ_j

    `alpha` is α, left out it is 0.1/L of the problem; `share` is 1 % by default, and at least one coordinate. The mean
    is that of all agents: N(N − 1) messages an iteration. With a constant step it ends at a floor, unless every
    coordinate is sent.
    """

    name: ClassVar[str] = "sparse dropping"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float | None = None
    share: float = 0.01

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)
        TopShare(self.share)

    def resolved(self, problem: Problem) -> SparseDropping:
        """With the step size set."""
        return with_step(self, "alpha", 0.1, problem)

    def parts(self) -> Gossip:
        """Error feedback with the largest coordinates."""
        return error_feedback(self, TopShare(self.share))

    def conditions(self, problem: Problem) -> Conditions:
        """No theorem with checkable numbers is known here."""
        return Conditions()
