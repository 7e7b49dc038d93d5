"""Methods made for compressed messages: LEAD, which stays exact, and CHOCO, which does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.gossip.descent import talks_after_first
from roundelay.algorithms.gossip.gossip_method import Gossip, gradient_step
from roundelay.algorithms.gossip.mixing import Metropolis, Mixing, check_weights
from roundelay.algorithms.lemmas import Conditions, step_below
from roundelay.algorithms.slots import gradient
from roundelay.kernels import DIM, Exchange, Matrix, each
from roundelay.kernels.checks import finite_number
from roundelay.links import Compressor, channel_of
from roundelay.links.channel import Channel
from roundelay.links.compressors import Quantised
from roundelay.problems import Problem
from roundelay.registry import register


class LEADNumbers(NamedTuple):
    """η, γ and α."""

    eta: float
    gamma: float
    alpha: float


class LEADStates(NamedTuple):
    """x, what both ends remember of Y and of WY, the dual D, and ∇F(x)."""

    x: Matrix
    memory: Matrix
    mixed: Matrix
    dual: Matrix
    slope: Matrix


def send_lead(
    problem: Any, method: LEADNumbers, at: Exchange, states: LEADStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """The message is Y − H, Y = x − η∇F(x) − ηD; the first step, x⁰ − η∇F(x⁰), is not sent."""
    i = at.agent
    gradient(problem, i, states.x[i], states.slope[i])
    for d in each(DIM):
        ahead = states.x[i, d] - method.eta * states.slope[i, d] - method.eta * states.dual[i, d]
        out[0, d] = ahead - states.memory[i, d]


def receive_lead(
    problem: Any, method: LEADNumbers, at: Exchange, states: LEADStates, own: Matrix, inbox: Matrix, talked: bool
) -> None:
    """D += γ/(2η)(Ŷ − Ŷ_w), H and H_w move to Ŷ and Ŷ_w by α, x −= η(∇F(x) + D)."""
    i = at.agent
    factor = method.gamma / (2.0 * method.eta)
    for d in each(DIM):
        if talked:
            # Ŷ = H + q and Ŷ_w = H_w + Wq
            gap = (states.memory[i, d] + own[0, d]) - (states.mixed[i, d] + inbox[0, d])
            states.dual[i, d] += factor * gap
            states.memory[i, d] += method.alpha * own[0, d]
            states.mixed[i, d] += method.alpha * inbox[0, d]
        states.x[i, d] -= method.eta * (states.slope[i, d] + states.dual[i, d])


@register(Algorithm)
@dataclass(frozen=True)
class LEAD:
    """LEAD, linear convergence with compressed messages (Liu, Li, Wang, Tang, Yan 2021).

        Y = x − η∇F(x) − ηD    q = Q(Y − H)    Ŷ = H + q    Ŷ_w = H_w + Wq    D += γ/(2η)(Ŷ − Ŷ_w)
        H += αq    H_w += αWq    x −= η(∇F(x) + D)

    `eta` is η, left out it is 1/L of the problem; `gamma` is γ, `alpha` α, and `channel` the compressor Q: by default
    two bits and a sign for each coordinate. With `channel=Plain()` it is NIDS. The first iteration sends nothing.
    """

    name: ClassVar[str] = "LEAD"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("eta"), Tunable("gamma"))
    eta: float | None = None
    gamma: float = 1.0
    alpha: float = 0.5
    channel: Channel | Compressor = Quantised(2)
    weights: Mixing = Metropolis()

    def __post_init__(self) -> None:
        check_step("eta", self.eta)
        finite_number("gamma", self.gamma, above=0.0)
        finite_number("alpha", self.alpha, above=0.0)
        channel_of(self.channel)
        check_weights(self.weights)

    def resolved(self, problem: Problem) -> LEAD:
        """With the step size set."""
        return with_step(self, "eta", 1.0, problem)

    def parts(self) -> Gossip:
        """Compressed differences to a memory that both ends keep."""
        numbers = LEADNumbers(known_step(self, "eta"), float(self.gamma), float(self.alpha))
        functions = (("send", send_lead), ("receive", receive_lead), ("talks", talks_after_first))
        channel = channel_of(self.channel)
        return Gossip(functions, lambda network: numbers, LEADStates, self.weights, channel, sends_increments=True)

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough without compression."""
        return step_below(
            "LEAD (Liu et al. 2021), without compression", self.resolved(problem).eta, "2/L", 2.0, problem, "η"
        )


class CHOCONumbers(NamedTuple):
    """η and γ."""

    eta: float
    gamma: float


class CHOCOStates(NamedTuple):
    """x, its copy x̂ that the neighbours hold, and Σ_j w_ij x̂_j."""

    x: Matrix
    copy: Matrix
    heard: Matrix


def send_choco(
    problem: Any, method: CHOCONumbers, at: Exchange, states: CHOCOStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """x −= η∇F(x); the message is x − x̂."""
    i = at.agent
    gradient_step(problem, i, method.eta, states.x[i])
    for d in each(DIM):
        out[0, d] = states.x[i, d] - states.copy[i, d]


def receive_choco(
    problem: Any, method: CHOCONumbers, at: Exchange, states: CHOCOStates, own: Matrix, inbox: Matrix, talked: bool
) -> None:
    """x̂ += q, x += γΣ_j w_ij(x̂_j − x̂_i)."""
    i = at.agent
    for d in each(DIM):
        states.copy[i, d] += own[0, d]
        states.heard[i, d] += inbox[0, d]
        states.x[i, d] += method.gamma * (states.heard[i, d] - states.copy[i, d])


@register(Algorithm)
@dataclass(frozen=True)
class CHOCO:
    """CHOCO-SGD with full gradients (Koloskova, Stich, Jaggi 2019).

        x −= η∇F(x)    q = Q(x − x̂)    x̂ += q    x_i += γΣ_j w_ij(x̂_j − x̂_i)

    `eta` is η, left out it is 0.1/L of the problem; `gamma` is γ, smaller for a coarser `channel` Q. With a constant
    step it ends at a floor, as DGD does.
    """

    name: ClassVar[str] = "CHOCO"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("eta"), Tunable("gamma"))
    eta: float | None = None
    gamma: float = 0.5
    channel: Channel | Compressor = Quantised(2)
    weights: Mixing = Metropolis()

    def __post_init__(self) -> None:
        check_step("eta", self.eta)
        finite_number("gamma", self.gamma, above=0.0)
        channel_of(self.channel)
        check_weights(self.weights)

    def resolved(self, problem: Problem) -> CHOCO:
        """With the step size set."""
        return with_step(self, "eta", 0.1, problem)

    def parts(self) -> Gossip:
        """Compressed differences to a copy that the neighbours hold."""
        numbers, channel = CHOCONumbers(known_step(self, "eta"), float(self.gamma)), channel_of(self.channel)
        functions = (("send", send_choco), ("receive", receive_choco))
        return Gossip(functions, lambda network: numbers, CHOCOStates, self.weights, channel, sends_increments=True)

    def conditions(self, problem: Problem) -> Conditions:
        """Its bounds depend on the network's spectrum; none is checked here."""
        return Conditions()
