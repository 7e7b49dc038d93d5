"""The stochastic average gradient on a walk: the token carries x and the mean of the gradients that it last saw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.lemmas import Conditions, gradient_step
from roundelay.algorithms.slots import at_token, estimate, gradient
from roundelay.algorithms.token_method import Initial, check_choice
from roundelay.kernels import DIM, Matrix, Part, Vector, each, norm, vector
from roundelay.kernels.checks import finite_number
from roundelay.networks.walks import Cycle, MetropolisWalk, Walk
from roundelay.problems import Problem, Regulariser
from roundelay.problems.regularisers import NoRegulariser
from roundelay.registry import register


class WPGNumbers(NamedTuple):
    """α, and the regulariser's numbers."""

    alpha: float
    regulariser: Any


def visit_wpg(
    problem: Any,
    method: WPGNumbers,
    seed: int,
    i: int,
    hop: int,
    turn: int,
    agents: int,
    token: Vector,
    x: Matrix,
    y: Matrix,
    share: Matrix,
    watch: bool,
) -> tuple[float, float]:
    """y_i⁺ = z − α∇f_i(z), z̄⁺ = z̄ + (y_i⁺ − y_i)/N, z = prox of αr/N at z̄; x_i keeps the z that i saw."""
    z, slope, change = vector(DIM), vector(DIM), vector(DIM)
    alpha = method.alpha
    estimate(method, agents, token, z)
    gradient(problem, i, z, slope)
    inverse_agents = 1.0 / agents
    for d in each(DIM):
        own = z[d] - alpha * slope[d]
        change[d] = own - share[i, d]
        moved = token[d] + change[d] * inverse_agents
        share[i, d] += agents * (moved - token[d])
        token[d] = moved
        x[i, d] = z[d]
        y[i, d] = own
    if watch:
        return 0.0, norm(change) / alpha
    return 0.0, 0.0


def estimate_wpg(method: WPGNumbers, agents: int, token: Vector, z: Vector) -> None:
    """Z = prox of αr/N at the token, so that Σ f_i + r is minimised."""
    at_token(method.regulariser, method.alpha / agents, token, z)


def unrest_wpg(problem: Any, method: WPGNumbers, i: int, agents: int, token: Vector, share: Vector) -> float:
    """‖∇f_i(z) + (y_i − z)/α‖: as for ADMM with ρ = 1/α."""
    z, slope = vector(DIM), vector(DIM)
    estimate(method, agents, token, z)
    gradient(problem, i, z, slope)
    rounding = 1e-15 * (norm(slope) + (norm(share) + norm(z)) / method.alpha)
    for d in each(DIM):
        slope[d] += (share[d] - z[d]) / method.alpha
    return norm(slope) + rounding


@dataclass(frozen=True)
class WalkGradient:
    """What the engines run for WPG."""

    alpha: float
    walk: Walk
    regulariser: Regulariser
    tokens: int = 1
    needs: tuple[str, ...] = ("gradient",)

    def update(self) -> Part:
        """The kernel function `visit` with all that it calls, and its numbers."""
        part = self.regulariser.part()
        return Part(
            (("visit", visit_wpg), ("estimate", estimate_wpg), ("unrest", unrest_wpg), *part.functions),
            WPGNumbers(float(self.alpha), part.numbers),
        )

    def start_states(self, seed: int, problem: Problem) -> Initial:
        """y_i⁰ = z⁰ = 0."""
        shape = (problem.agents, problem.dim)
        return Initial(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def mean_token(self, x: Matrix, y: Matrix) -> Vector:
        """z̄ = (1/N) Σ y_i."""
        return np.mean(y, axis=0)

    def token_scale(self, agents: int) -> float:
        """z = prox of αr/N, so that Σ f_i + r is minimised."""
        return self.alpha / agents

    def no_contentment(self, content: float, dim: int, agents: int) -> str:
        """The agents' own stopping rule works."""
        return ""


@register(Algorithm)
@dataclass(frozen=True)
class WPG:
    """Walk proximal gradient (Mao, Gu, Yin 2018).

        y_i⁺ = z − α∇f_i(z)    z̄⁺ = z̄ + (y_i⁺ − y_i)/N    z = prox_{αr/N}(z̄)

    `alpha` is α; from 1/L to 2/(L+μ) it does well. The agent's x_i is the z that it last received. It is
    what PI-ADMM1 becomes as γ → ∞, with α = 1/ρ. `regulariser` is r.
    """

    name: ClassVar[str] = "WPG"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float = 0.1
    walk: Walk = Cycle()
    regulariser: Regulariser = NoRegulariser()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> WalkGradient:
        """A gradient step at the token, averaged over the agents."""
        finite_number("alpha", self.alpha, above=0.0)
        return WalkGradient(self.alpha, self.walk, self.regulariser)

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough."""
        return gradient_step(self.alpha, problem)


class DescentNumbers(NamedTuple):
    """α_k = α/(k + 1)^decay at the agent's visit k."""

    alpha: float
    decay: float


def visit_descent(
    problem: Any,
    method: DescentNumbers,
    seed: int,
    i: int,
    hop: int,
    turn: int,
    agents: int,
    token: Vector,
    x: Matrix,
    y: Matrix,
    share: Matrix,
    watch: bool,
) -> tuple[float, float]:
    """z⁺ = z − α_k∇f_i(z); x_i keeps the token that i sent."""
    slope = vector(DIM)
    gradient(problem, i, token, slope)
    step = method.alpha / (turn + 1.0) ** method.decay
    for d in each(DIM):
        moved = token[d] - step * slope[d]
        token[d] = moved
        x[i, d] = moved
    return 0.0, 0.0


def estimate_is_token(method: DescentNumbers, agents: int, token: Vector, z: Vector) -> None:
    """Z is the token."""
    for d in each(DIM):
        z[d] = token[d]


def never_at_rest(problem: Any, method: DescentNumbers, i: int, agents: int, token: Vector, share: Vector) -> float:
    """No agent can tell."""
    return math.inf


@dataclass(frozen=True)
class Descent:
    """What the engines run for incremental gradient."""

    alpha: float
    decay: float
    walk: Walk
    tokens: int = 1
    regulariser: Regulariser = NoRegulariser()
    needs: tuple[str, ...] = ("gradient",)

    def update(self) -> Part:
        """The kernel function `visit` with all that it calls, and its numbers."""
        return Part(
            (("visit", visit_descent), ("estimate", estimate_is_token), ("unrest", never_at_rest)),
            DescentNumbers(float(self.alpha), float(self.decay)),
        )

    def start_states(self, seed: int, problem: Problem) -> Initial:
        """Everything at 0."""
        shape = (problem.agents, problem.dim)
        return Initial(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def mean_token(self, x: Matrix, y: Matrix) -> None:
        """There is no invariant."""
        return

    def token_scale(self, agents: int) -> float:
        """There is no regulariser."""
        return 1.0

    def no_contentment(self, content: float, dim: int, agents: int) -> str:
        """No agent knows its part of the token."""
        return "its steps do not tell an agent how far the sum is from its minimum"


@register(Algorithm)
@dataclass(frozen=True)
class IncrementalGradient:
    """Incremental gradient on a cycle, or random-walk gradient on a random walk.

        z⁺ = z − α_k∇f_i(z),   α_k = α/(k + 1)^decay at the agent's visit k = 0, 1, …

    `alpha` is α. With `decay=0` the step is constant and the method ends at a floor; with a decay above
    0.5 and up to 1 it converges, slowly. `walk` is `Cycle()` or any random walk.
    """

    name: ClassVar[str] = "incremental gradient"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float = 0.01
    decay: float = 0.0
    walk: Walk = Cycle()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> Descent:
        """A gradient step of the token itself."""
        finite_number("alpha", self.alpha, above=0.0)
        finite_number("decay", self.decay)
        return Descent(self.alpha, self.decay, self.walk)

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough."""
        return gradient_step(self.alpha, problem)


class SAGNumbers(NamedTuple):
    """γ."""

    gamma: float


def visit_sag(
    problem: Any,
    method: SAGNumbers,
    seed: int,
    i: int,
    hop: int,
    turn: int,
    agents: int,
    token: Vector,
    x: Matrix,
    y: Matrix,
    share: Matrix,
    watch: bool,
) -> tuple[float, float]:
    """ḡ += (∇f_i(x) − h_i)/N, h_i = ∇f_i(x), x −= γḡ. ḡ travels with the token, in the row below the agents'."""
    slope = vector(DIM)
    gradient(problem, i, token, slope)
    inverse_agents = 1.0 / agents
    for d in each(DIM):
        share[agents, d] += (slope[d] - y[i, d]) * inverse_agents
        y[i, d] = slope[d]
        token[d] -= method.gamma * share[agents, d]
        x[i, d] = token[d]
    return 0.0, 0.0


@dataclass(frozen=True)
class AveragedGradient:
    """What the engines run for MC-SAG."""

    gamma: float
    walk: Walk
    tokens: int = 1
    vectors: int = 2
    regulariser: Regulariser = NoRegulariser()
    needs: tuple[str, ...] = ("gradient",)

    def update(self) -> Part:
        """The kernel function `visit` with all that it calls, and its numbers."""
        functions = (("visit", visit_sag), ("estimate", estimate_is_token), ("unrest", never_at_rest))
        return Part(functions, SAGNumbers(float(self.gamma)))

    def start_states(self, seed: int, problem: Problem) -> Initial:
        """Everything at 0; below the agents' rows one for ḡ."""
        agents, dim = problem.agents, problem.dim
        return Initial(np.zeros((agents, dim)), np.zeros((agents, dim)), np.zeros((agents + 1, dim)))

    def mean_token(self, x: Matrix, y: Matrix) -> None:
        """The states do not tell where the token is."""
        return

    def token_scale(self, agents: int) -> float:
        """There is no regulariser."""
        return 1.0

    def no_contentment(self, content: float, dim: int, agents: int) -> str:
        """No agent knows its part of the token."""
        return "its steps do not tell an agent how far the sum is from its minimum"


@register(Algorithm)
@dataclass(frozen=True)
class MCSAG:
    """Markov-chain SAG: the stochastic average gradient on a random walk (Even 2023).

        ḡ += (∇f_i(x) − h_i)/N    h_i = ∇f_i(x)    x −= γḡ

    The token carries x and ḡ, so every hop costs 2 units. `gamma` is γ; left out, it is 1/(30·L) of the problem, which
    is safe for random walks and slow. `walk` is any walk; on `Cycle()` it is the incremental aggregated gradient.
    """

    name: ClassVar[str] = "MC-SAG"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("gamma"),)
    gamma: float | None = None
    walk: Walk = MetropolisWalk()

    def __post_init__(self) -> None:
        check_step("gamma", self.gamma)
        check_choice("walk", self.walk)

    def resolved(self, problem: Problem) -> MCSAG:
        """With the step size set."""
        return with_step(self, "gamma", 1.0 / 30.0, problem)

    def parts(self) -> AveragedGradient:
        """A step along the mean of the last gradients."""
        return AveragedGradient(known_step(self, "gamma"), self.walk)

    def conditions(self, problem: Problem) -> Conditions:
        """Its bounds depend on the walk's mixing; none is checked here."""
        return Conditions()
