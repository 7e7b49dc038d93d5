"""Decentralised gradient descent, and its two exact successors EXTRA and NIDS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.gossip.gossip_method import Gossip, Single, gradient_step
from roundelay.algorithms.gossip.mixing import Metropolis, Mixing, check_weights
from roundelay.algorithms.lemmas import Conditions, step_below, step_for_network
from roundelay.algorithms.slots import gradient
from roundelay.kernels import DIM, Exchange, Matrix, each, vector
from roundelay.kernels.checks import finite_number
from roundelay.links import Compressor, channel_of
from roundelay.links.channel import Channel
from roundelay.links.compressors import Plain
from roundelay.problems import Problem
from roundelay.registry import register


class StepNumbers(NamedTuple):
    """α_k = α/(k + 1)^decay."""

    alpha: float
    decay: float


def send_x(problem: Any, method: Any, at: Exchange, states: Any, own: Matrix, inbox: Matrix, out: Matrix) -> None:
    """The message is x_i."""
    i = at.agent
    for d in each(DIM):
        out[0, d] = states.x[i, d]


def combine_then_adapt(
    problem: Any, method: StepNumbers, at: Exchange, states: Single, own: Matrix, inbox: Matrix, talked: bool
) -> None:
    """x⁺ = (Wx)_i − α∇f_i(x_i), where (Wx)_i is x_i + Σ_j w_ij(x̂_j − x̂_i): the mean survives any channel."""
    i, k = at.agent, at.iteration
    slope = vector(DIM)
    gradient(problem, i, states.x[i], slope)
    alpha = method.alpha / (k + 1.0) ** method.decay
    for d in each(DIM):
        states.x[i, d] = states.x[i, d] - own[0, d] + inbox[0, d] - alpha * slope[d]


def send_adapted(
    problem: Any, method: StepNumbers, at: Exchange, states: Single, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """The message is x_i − α∇f_i(x_i)."""
    i, k = at.agent, at.iteration
    gradient_step(problem, i, method.alpha / (k + 1.0) ** method.decay, states.x[i])
    for d in each(DIM):
        out[0, d] = states.x[i, d]


def combine(problem: Any, method: Any, at: Exchange, states: Any, own: Matrix, inbox: Matrix, talked: bool) -> None:
    """x⁺ = W of what was sent."""
    i = at.agent
    for d in each(DIM):
        states.x[i, d] = states.x[i, d] - own[0, d] + inbox[0, d]


@register(Algorithm)
@dataclass(frozen=True)
class DGD:
    """Decentralised gradient descent (Nedić, Ozdaglar 2009).

        x⁺ = Wx − α_k∇F(x)    α_k = α/(k + 1)^decay

    `alpha` is α, below (1 + λ_min(W))/L; left out, it is 0.5/L of the problem, too long where W has an eigenvalue near −1,
    as on dense bipartite networks. With a constant step it ends at a floor that is
    proportional to α; `decay` above 0.5 and up to 1 makes it converge, slowly. `adapt_then_combine` mixes after
    the step, x⁺ = W(x − α∇F(x)). W holds `weights`. `channel` is what messages pass through.
    """

    name: ClassVar[str] = "DGD"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float | None = None
    decay: float = 0.0
    adapt_then_combine: bool = False
    channel: Channel | Compressor = Plain()
    weights: Mixing = Metropolis()

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)
        finite_number("decay", self.decay, least=0.0)
        channel_of(self.channel)
        check_weights(self.weights)

    def resolved(self, problem: Problem) -> DGD:
        """With the step size set."""
        return with_step(self, "alpha", 0.5, problem)

    def parts(self) -> Gossip:
        """A gradient step, and the mean with the neighbours."""
        first, second = (send_adapted, combine) if self.adapt_then_combine else (send_x, combine_then_adapt)
        numbers = StepNumbers(known_step(self, "alpha"), float(self.decay))
        return Gossip(
            (("send", first), ("receive", second)),
            lambda network: numbers,
            mixing=self.weights,
            channel=channel_of(self.channel),
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough, as far as that can be said without the network."""
        return step_for_network("DGD (Yuan, Ling, Yin 2016)", self.resolved(problem).alpha, problem)


class EXTRAStates(NamedTuple):
    """x, and of the iteration before: x, Wx and ∇F."""

    x: Matrix
    before: Matrix
    mixed: Matrix
    slope: Matrix


def receive_extra(
    problem: Any, method: StepNumbers, at: Exchange, states: EXTRAStates, own: Matrix, inbox: Matrix, talked: bool
) -> None:
    """x^{k+2} = (I + W)x^{k+1} − ½(I + W)x^k − α(∇F(x^{k+1}) − ∇F(x^k)); the first step is DGD's."""
    i, k = at.agent, at.iteration
    slope, new = vector(DIM), vector(DIM)
    gradient(problem, i, states.x[i], slope)
    alpha = method.alpha
    for d in each(DIM):
        mixed = states.x[i, d] - own[0, d] + inbox[0, d]
        if k == 0:
            new[d] = mixed - alpha * slope[d]
        else:
            past = 0.5 * (states.before[i, d] + states.mixed[i, d])
            new[d] = states.x[i, d] + mixed - past - alpha * (slope[d] - states.slope[i, d])
        states.mixed[i, d] = mixed
    for d in each(DIM):
        states.before[i, d] = states.x[i, d]
        states.slope[i, d] = slope[d]
        states.x[i, d] = new[d]


@register(Algorithm)
@dataclass(frozen=True)
class EXTRA:
    """EXTRA, the exact first-order algorithm (Shi, Ling, Wu, Yin 2015).

        x¹ = Wx⁰ − α∇F(x⁰)    x^{k+2} = (I + W)x^{k+1} − W̃x^k − α(∇F(x^{k+1}) − ∇F(x^k))    W̃ = (I + W)/2

    `alpha` is α, below (1 + λ_min(W))/L; left out, it is 0.7/L of the problem, too long where W has an eigenvalue near −1, as
    on dense bipartite networks. W holds `weights`.
    """

    name: ClassVar[str] = "EXTRA"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float | None = None
    channel: Channel | Compressor = Plain()
    weights: Mixing = Metropolis()

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)
        channel_of(self.channel)
        check_weights(self.weights)

    def resolved(self, problem: Problem) -> EXTRA:
        """With the step size set."""
        return with_step(self, "alpha", 0.7, problem)

    def parts(self) -> Gossip:
        """x is sent, and corrected by what was wrong in the iteration before."""
        numbers = StepNumbers(known_step(self, "alpha"), 0.0)
        functions = (("send", send_x), ("receive", receive_extra))
        return Gossip(functions, lambda network: numbers, EXTRAStates, self.weights, channel_of(self.channel))

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough, as far as that can be said without the network."""
        return step_for_network("EXTRA (Shi et al. 2015)", self.resolved(problem).alpha, problem)


class NIDSStates(NamedTuple):
    """x, the iteration before's x and ∇F, and the message."""

    x: Matrix
    before: Matrix
    slope: Matrix
    message: Matrix


def send_nids(
    problem: Any, method: StepNumbers, at: Exchange, states: NIDSStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """The message is 2x^{k+1} − x^k − α(∇F(x^{k+1}) − ∇F(x^k)); the first step, x⁰ − α∇F(x⁰), is not sent."""
    i, k = at.agent, at.iteration
    slope = vector(DIM)
    gradient(problem, i, states.x[i], slope)
    alpha = method.alpha
    for d in each(DIM):
        if k == 0:
            out[0, d] = states.x[i, d] - alpha * slope[d]
        else:
            out[0, d] = 2.0 * states.x[i, d] - states.before[i, d] - alpha * (slope[d] - states.slope[i, d])
        states.before[i, d] = states.x[i, d]
        states.slope[i, d] = slope[d]
        states.message[i, d] = out[0, d]


def receive_nids(
    problem: Any, method: StepNumbers, at: Exchange, states: NIDSStates, own: Matrix, inbox: Matrix, talked: bool
) -> None:
    """x⁺ = W̃ of the messages."""
    i = at.agent
    for d in each(DIM):
        states.x[i, d] = states.message[i, d] + (0.5 * (inbox[0, d] - own[0, d]) if talked else 0.0)


def talks_after_first(method: Any, seed: int, k: int) -> bool:
    """The first step is made alone."""
    return k > 0


@register(Algorithm)
@dataclass(frozen=True)
class NIDS:
    """NIDS, the network-independent step size method (Li, Shi, Yan 2019).

        x¹ = x⁰ − α∇F(x⁰)    x^{k+2} = W̃(2x^{k+1} − x^k − α(∇F(x^{k+1}) − ∇F(x^k)))    W̃ = (I + W)/2

    `alpha` is α, below 2/L whatever the network; left out, it is 1/L of the problem. The first iteration
    sends nothing. W holds `weights`.
    """

    name: ClassVar[str] = "NIDS"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float | None = None
    channel: Channel | Compressor = Plain()
    weights: Mixing = Metropolis()

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)
        channel_of(self.channel)
        check_weights(self.weights)

    def resolved(self, problem: Problem) -> NIDS:
        """With the step size set."""
        return with_step(self, "alpha", 1.0, problem)

    def parts(self) -> Gossip:
        """What would be the next x is sent, and averaged with the neighbours'."""
        numbers = StepNumbers(known_step(self, "alpha"), 0.0)
        functions = (("send", send_nids), ("receive", receive_nids), ("talks", talks_after_first))
        return Gossip(functions, lambda network: numbers, NIDSStates, self.weights, channel_of(self.channel))

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough, whatever the network."""
        return step_below("NIDS (Li, Shi, Yan 2019)", self.resolved(problem).alpha, "2/L", 2.0, problem)
