"""Token methods that step along a gradient at the token: WPG, incremental gradient with noise and without, and MC-SAG, each a visit of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.lemmas import Conditions, gradient_step
from roundelay.algorithms.parts.facts import NoisyStep
from roundelay.algorithms.parts.xsteps import add_row, row_length
from roundelay.algorithms.slots import Agents, at_token, estimate, gradient, record_weight, row_slope
from roundelay.algorithms.token_method import OwnVisit, check_choice
from roundelay.kernels import DIM, PRIMAL, Vector, Visit, each, norm, normals, vector
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
    problem: Any, method: WPGNumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """y_i⁺ = z − α∇f_i(z), z̄⁺ = z̄ + (y_i⁺ − y_i)/N, z = prox of αr/N at z̄; x_i keeps the z that i saw."""
    z, slope, change = vector(DIM), vector(DIM), vector(DIM)
    i, agents, alpha = at.agent, at.agents, method.alpha
    estimate(method, agents, token, z)
    gradient(problem, i, z, slope)
    inverse_agents = 1.0 / agents
    for d in each(DIM):
        own = z[d] - alpha * slope[d]
        change[d] = own - states.share[i, d]
        moved = token[d] + change[d] * inverse_agents
        states.share[i, d] += agents * (moved - token[d])
        token[d] = moved
        states.x[i, d] = z[d]
        states.y[i, d] = own
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


@register(Algorithm)
@dataclass(frozen=True)
class WPG:
    """Walk proximal gradient (Mao, Gu, Yin 2018).

        y_i⁺ = z − α∇f_i(z)    z̄⁺ = z̄ + (y_i⁺ − y_i)/N    z = prox_{αr/N}(z̄)

    `alpha` is α; from 1/L to 2/(L+μ) it does well. The agent's x_i is the z that it last received. It is
    what PI-ADMM1 becomes as γ → ∞, with α = 1/ρ. On the cycle and without r it is DIAG (Mokhtari, Gürbüzbalaban, Ribeiro, SIAM J. Optim. 2018), which is
    Finito (Defazio, Domke, Caetano, ICML 2014) in cyclic order; damped once a lap it is `ProxDFinito`. `regulariser` is r.
    """

    name: ClassVar[str] = "WPG"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float = 0.1
    walk: Walk = Cycle()
    regulariser: Regulariser = NoRegulariser()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> OwnVisit:
        """A gradient step at the token, averaged over the agents."""
        alpha = finite_number("alpha", self.alpha, above=0.0)
        check_choice("regulariser", self.regulariser)
        return OwnVisit(
            visit_wpg,
            WPGNumbers(alpha, self.regulariser.part().numbers),
            self.walk,
            estimate=estimate_wpg,
            unrest=unrest_wpg,
            mean_token=lambda x, y: np.mean(y, axis=0),  # z̄ = (1/N) Σ y_i
            token_scale=lambda agents: alpha / agents,
            regulariser=self.regulariser,
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough."""
        return gradient_step(self.alpha, problem)


class DescentNumbers(NamedTuple):
    """α_k = α/(k + 1)^decay at the agent's visit k."""

    alpha: float
    decay: float


def visit_descent(
    problem: Any, method: DescentNumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """z⁺ = z − α_k∇f_i(z); x_i keeps the token that i sent."""
    slope = vector(DIM)
    gradient(problem, at.agent, token, slope)
    step = method.alpha / (at.turn + 1.0) ** method.decay
    for d in each(DIM):
        moved = token[d] - step * slope[d]
        token[d] = moved
        states.x[at.agent, d] = moved
    return 0.0, 0.0


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

    def parts(self) -> OwnVisit:
        """A gradient step of the token itself."""
        finite_number("alpha", self.alpha, above=0.0)
        finite_number("decay", self.decay)
        return OwnVisit(visit_descent, DescentNumbers(float(self.alpha), float(self.decay)), self.walk)

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough."""
        return gradient_step(self.alpha, problem)


class NoisyDescentNumbers(NamedTuple):
    """α_k = α/(k + 1)^decay, σ, and how far a record's row and slope count."""

    alpha: float
    decay: float
    sigma: float
    clip_row: float
    clip_slope: float


def visit_noisy_descent(
    problem: Any, method: NoisyDescentNumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """z⁺ = z − α_k(g_i(z) + ω), g_i with rows scaled down to B and slopes cut at ±C; x_i keeps the token that i sent."""
    slope, seen, omega = vector(DIM), vector(DIM), vector(DIM)
    i = at.agent
    for d in each(DIM):
        slope[d] = problem.ridge * token[d]
    limit = method.clip_slope * record_weight(problem, i)
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        # A row that is cut to s·o predicts (s·o)'z = o'(s·z).
        shrink = method.clip_row / max(row_length(problem, j), method.clip_row)
        for d in each(DIM):
            seen[d] = shrink * token[d]
        factor = min(max(row_slope(problem, i, j, seen), -limit), limit)
        add_row(problem, i, j, shrink * factor, slope)
    normals(at.seed, i, at.hop, PRIMAL, omega)
    step = method.alpha / (at.turn + 1.0) ** method.decay
    for d in each(DIM):
        moved = token[d] - step * (slope[d] + method.sigma * omega[d])
        token[d] = moved
        states.x[i, d] = moved
    return 0.0, 0.0


@register(Algorithm)
@dataclass(frozen=True)
class PrivateIncrementalGradient:
    """Incremental gradient with every record clipped and noise at every visit; on a random walk, private random-walk gradient.

        z⁺ = z − α_k(g_i(z) + ω),   ω ~ N(0, σ²I),   α_k = α/(k + 1)^decay at the agent's visit k = 0, 1, …

    g_i is ∇f_i with every row scaled down to the norm `clip_row` and every slope ℓ' cut at ±`clip_slope`, so that it is the
    gradient of a convex function too. `sigma` is σ, the deviation of the noise on the gradient. As in Cyffers and Bellet (AISTATS
    2022) and Cyffers, Bellet and Upadhyay (ICML 2024) the agents keep nothing between visits, so that what comes after hides
    what came before: `rl.network_privacy` says how much, from whom. It ends at a floor that α and σ set.
    """

    name: ClassVar[str] = "private incremental gradient"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"),)
    alpha: float = 0.01
    sigma: float = 1.0
    clip_row: float = 1.0
    clip_slope: float = 1.0
    decay: float = 0.0
    walk: Walk = Cycle()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> OwnVisit:
        """A noisy gradient step of the token itself."""
        numbers = NoisyDescentNumbers(
            float(finite_number("alpha", self.alpha, above=0.0)),
            float(finite_number("decay", self.decay, least=0.0)),
            float(finite_number("sigma", self.sigma, least=0.0)),
            float(finite_number("clip_row", self.clip_row, above=0.0)),
            float(finite_number("clip_slope", self.clip_slope, above=0.0)),
        )
        return OwnVisit(
            visit_noisy_descent,
            numbers,
            self.walk,
            needs=("row_slope", "record_weight"),
            noisy_step=NoisyStep(*numbers),
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough."""
        return gradient_step(self.alpha, problem)


class SAGNumbers(NamedTuple):
    """γ."""

    gamma: float


def visit_sag(
    problem: Any, method: SAGNumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """ḡ += (∇f_i(x) − h_i)/N, h_i = ∇f_i(x), x −= γḡ. ḡ travels with the token, in the row below the agents'."""
    slope = vector(DIM)
    i, mean = at.agent, states.share[at.agents]
    gradient(problem, i, token, slope)
    inverse_agents = 1.0 / at.agents
    for d in each(DIM):
        mean[d] += (slope[d] - states.y[i, d]) * inverse_agents
        states.y[i, d] = slope[d]
        token[d] -= method.gamma * mean[d]
        states.x[i, d] = token[d]
    return 0.0, 0.0


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
        self.parts()  # refuses bad options now

    def resolved(self, problem: Problem) -> MCSAG:
        """With the step size set."""
        return with_step(self, "gamma", 1.0 / 30.0, problem)

    def parts(self) -> OwnVisit:
        """A step along the mean of the last gradients."""
        return OwnVisit(visit_sag, SAGNumbers(known_step(self, "gamma")), self.walk, vectors=2)

    def conditions(self, problem: Problem) -> Conditions:
        """Its bounds depend on the walk's mixing; none is checked here."""
        return Conditions()
