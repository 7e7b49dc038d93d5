"""Token methods that come from finite sums, where an agent is a term: Point-SAGA, Prox-DFinito, and an accelerated one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from roundelay.algorithms.algorithm import Algorithm, Tunable, check_step, known_step, with_step
from roundelay.algorithms.lemmas import Condition, Conditions, gradient_step
from roundelay.algorithms.slots import Agents, at_token, estimate, gradient, minimise
from roundelay.algorithms.token_method import OwnVisit, check_choice
from roundelay.kernels import DIM, Vector, Visit, each, vector
from roundelay.kernels.checks import finite_number
from roundelay.networks.walks import Cycle, MetropolisWalk, Walk
from roundelay.problems import Problem, Regulariser
from roundelay.problems.regularisers import NoRegulariser
from roundelay.registry import register


def check_bounds(algorithm: Any, what: str, *, L: float, mu: float) -> None:  # noqa: N803
    """Refuse to set what follows from L and μ where they are not known."""
    if not (mu > 0.0 and 0.0 < L < math.inf):
        raise ValueError(
            f"{algorithm.name} takes {what} from L and from the strong convexity mu of the mean function, and here L = {L:g}, mu = {mu:g}: "
            f"give {what} to {type(algorithm).__name__}."
        )


# ---------------------------------------------------------------- Point-SAGA


class PointSAGANumbers(NamedTuple):
    """γ."""

    gamma: float


def visit_point_saga(
    problem: Any, method: PointSAGANumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """x⁺ = prox of γf_i at x + γ(g_i − ḡ), g_i⁺ = g_i − ḡ + (x − x⁺)/γ = ∇f_i(x⁺). ḡ travels with the token."""
    pull, new = vector(DIM), vector(DIM)
    i, mean, rho = at.agent, states.share[at.agents], 1.0 / method.gamma
    inverse_agents = 1.0 / at.agents
    for d in each(DIM):
        pull[d] = rho * token[d] + (states.y[i, d] - mean[d])
    minimise(problem, i, pull, rho, states.x[i], new)
    for d in each(DIM):
        slope = pull[d] - rho * new[d]
        mean[d] += (slope - states.y[i, d]) * inverse_agents
        states.y[i, d] = slope
        token[d] = new[d]
        states.x[i, d] = new[d]
    return 0.0, 0.0


@register(Algorithm)
@dataclass(frozen=True)
class PointSAGA:
    """Point-SAGA (Defazio, "A simple practical accelerated method for finite sums", NeurIPS 2016), as a token.

        x⁺ = prox_{γf_i}(x + γ(g_i − ḡ))    g_i⁺ = g_i − ḡ + (x − x⁺)/γ    ḡ⁺ = ḡ + (g_i⁺ − g_i)/N

    The token carries x and ḡ, so every hop costs 2 units. `gamma` is γ; left out, it is the author's, from L and μ, with which the squared error falls by
    1 + μγ a hop where all f_i curve by at least μ and agents are drawn independently: that is `MetropolisWalk()` on a complete graph. On other walks it has no theorem.
    """

    name: ClassVar[str] = "Point-SAGA"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("gamma"),)
    gamma: float | None = None
    walk: Walk = MetropolisWalk()

    def __post_init__(self) -> None:
        check_step("gamma", self.gamma)
        self.parts()  # refuses bad options now

    def resolved(self, problem: Problem) -> PointSAGA:
        """With γ = (√((N − 1)² + 4NL/μ) − (N − 1))/(2NL)."""
        if self.gamma is not None:
            return self
        L, mu, N = problem.L, problem.mu, problem.agents  # noqa: N806
        check_bounds(self, "gamma", L=L, mu=mu)
        return replace(self, gamma=(math.sqrt((N - 1.0) ** 2 + 4.0 * N * L / mu) - (N - 1.0)) / (2.0 * N * L))

    def parts(self) -> OwnVisit:
        """A proximal step from where the agent's own gradient is put in place of the mean."""
        numbers = PointSAGANumbers(known_step(self, "gamma"))
        return OwnVisit(visit_point_saga, numbers, self.walk, needs=("minimise",), vectors=2)

    def conditions(self, problem: Problem) -> Conditions:
        """It converges with any step where every f_i is convex and agents are drawn independently."""
        return Conditions()


# ---------------------------------------------------------------- Prox-DFinito


class DFinitoNumbers(NamedTuple):
    """α, θ, who begins a lap, and the regulariser's numbers."""

    alpha: float
    theta: float
    first: int
    regulariser: Any


def visit_dfinito(
    problem: Any, method: DFinitoNumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """z̄⁺ = z̄ + (x − α∇f_i(x) − z_i)/N within a lap; after it only θ of what the lap has moved z̄ and every z_i remains.

    z_i stands in y, the x that i saw in x. Who begins a lap keeps the z̄ of that moment in its row of `share`.
    """
    x, slope = vector(DIM), vector(DIM)
    i, inverse_agents = at.agent, 1.0 / at.agents
    if i == method.first:
        for d in each(DIM):
            if at.turn > 0:
                token[d] = states.share[i, d] + method.theta * (token[d] - states.share[i, d])
            states.share[i, d] = token[d]
    estimate(method, at.agents, token, x)
    gradient(problem, i, x, slope)
    for d in each(DIM):
        change = x[d] - method.alpha * slope[d] - states.y[i, d]
        token[d] += change * inverse_agents
        states.y[i, d] += method.theta * change
        states.x[i, d] = x[d]
    return 0.0, 0.0


def estimate_dfinito(method: DFinitoNumbers, agents: int, token: Vector, z: Vector) -> None:
    """X = prox of αr/N at the token, so that Σ f_i + r is minimised."""
    at_token(method.regulariser, method.alpha / agents, token, z)


@register(Algorithm)
@dataclass(frozen=True)
class ProxDFinito:
    """Prox-DFinito, damped Finito (Huang, Yuan, Mao, Yin, "Improved analysis and rates for variance reduction under without-replacement sampling orders", NeurIPS 2021).

        within a lap   x = prox_{αr/N}(z̄)    z̄⁺ = z̄ + (x − α∇f_i(x) − z_i)/N    z_i⁺ = x − α∇f_i(x)
        after it       z̄ ← z̄' + θ(z̄ − z̄')    z_i ← z_i' + θ(z_i − z_i'),  where ' is as the lap began

    `alpha` is α, at most 2/(L + μ); left out, it is 1/L. `theta` is θ, the damping, below 1 in their theorems. With θ = 1 it is `WPG` on the cycle. Every
    agent damps its own z_i, and who begins a lap damps z̄, so a hop costs one unit. `regulariser` is r.
    """

    name: ClassVar[str] = "Prox-DFinito"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"), Tunable("theta", "below one"))
    alpha: float | None = None
    theta: float = 0.9
    regulariser: Regulariser = NoRegulariser()

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)
        if not 0.0 < finite_number("theta", self.theta) <= 1.0:
            raise ValueError(f"theta is {self.theta}: use a number above 0 and at most 1.")
        self.parts()  # refuses bad options now

    def resolved(self, problem: Problem) -> ProxDFinito:
        """With the step size set."""
        return with_step(self, "alpha", 1.0, problem)

    def parts(self) -> OwnVisit:
        """A gradient step at the token, averaged over the agents and damped once a lap."""
        check_choice("regulariser", self.regulariser)
        alpha, theta, regulariser = known_step(self, "alpha"), float(self.theta), self.regulariser.part().numbers
        return OwnVisit(
            visit_dfinito,
            lambda first: DFinitoNumbers(alpha, theta, first, regulariser),
            Cycle(),
            estimate=estimate_dfinito,
            token_scale=lambda agents: alpha / agents,
            regulariser=self.regulariser,
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Whether the step is short enough."""
        return gradient_step(known_step(self.resolved(problem), "alpha"), problem)


# ---------------------------------------------------------------- accelerated


class AcceleratedNumbers(NamedTuple):
    """μ, and κ = (L − μ)/μ."""

    mu: float
    kappa: float


def visit_accelerated(
    problem: Any, method: AcceleratedNumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """v_i⁺ = (x + τv_i)/(1 + τ), g_i⁺ = ∇f_i(v_i⁺) − μv_i⁺, and x⁺ = (ηx − ḡ⁺ − α(g_i⁺ − g_i))/(μ + η). ḡ travels with the token.

    v_i stands in the agent's row of `share`, g_i in y, the x that i sends in x.
    """
    slope = vector(DIM)
    i, agents, mean = at.agent, at.agents, states.share[at.agents]
    rest = 1.0 / (agents + math.sqrt(agents * (agents + 16.0 * method.kappa)))
    alpha, weight = 1.0 - rest, agents * rest  # which is 1/(1 + τ)
    eta = alpha * method.mu / rest
    inverse_agents, shrink = 1.0 / agents, 1.0 / (method.mu + eta)
    for d in each(DIM):
        states.share[i, d] += weight * (token[d] - states.share[i, d])
    gradient(problem, i, states.share[i], slope)
    for d in each(DIM):
        own = slope[d] - method.mu * states.share[i, d]
        change = own - states.y[i, d]
        mean[d] += change * inverse_agents
        states.y[i, d] = own
        token[d] = (eta * token[d] - mean[d] - alpha * change) * shrink
        states.x[i, d] = token[d]
    return 0.0, 0.0


@register(Algorithm)
@dataclass(frozen=True)
class AcceleratedToken:
    """An accelerated token: random gradient extrapolation (Lan, Zhou, SIAM J. Optim. 2018), sent round as Hendrikx (arXiv 2205.15015) sends tokens.

        v_i⁺ = (x + τv_i)/(1 + τ)    g_i⁺ = ∇f_i(v_i⁺) − μv_i⁺    ḡ⁺ = ḡ + (g_i⁺ − g_i)/N    x⁺ = (ηx − ḡ⁺ − α(g_i⁺ − g_i))/(μ + η)

    α = 1 − 1/(N + √(N² + 16N(L − μ)/μ)), τ = 1/(N(1 − α)) − 1, η = αμ/(1 − α): the squared error falls by α a hop where agents are drawn
    independently, so N + √(NL/μ) hops do what plain tokens need N + L/μ for. That is `MetropolisWalk()` on a complete graph; elsewhere
    `MixedWalk(steps)` lets the token walk between two visits until where it was is forgotten. Each update is a step along one edge of the star
    whose centre is the token, of the dual, with Lan and Zhou's dual-free distance; Hendrikx's own accelerated form takes proximal steps there instead.
    The token carries x and ḡ, so every hop costs 2 units. `mu` is μ and `L` is L; left out, they are those of the problem.
    """

    name: ClassVar[str] = "accelerated token"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("mu"), Tunable("L"))
    mu: float | None = None
    L: float | None = None
    walk: Walk = MetropolisWalk()

    def __post_init__(self) -> None:
        check_step("mu", self.mu)
        check_step("L", self.L)
        self.parts()  # refuses bad options now

    def resolved(self, problem: Problem) -> AcceleratedToken:
        """With μ and L set."""
        mu = problem.mu if self.mu is None else self.mu
        largest = problem.L if self.L is None else self.L
        check_bounds(self, "mu and L", L=largest, mu=mu)
        return replace(self, mu=float(mu), L=float(largest))

    def parts(self) -> OwnVisit:
        """A step along the mean of the last gradients, extrapolated by the newest."""
        mu, largest = known_step(self, "mu"), known_step(self, "L")
        return OwnVisit(visit_accelerated, AcceleratedNumbers(mu, max((largest - mu) / mu, 0.0)), self.walk, vectors=2)

    def conditions(self, problem: Problem) -> Conditions:
        """Whether every f_i, and not only their mean, curves at least by μ: that can't be seen from the mean."""
        mu = known_step(self.resolved(problem), "mu")
        numbers = f"mu = {mu:.4g}, {problem.mu:.4g} of the mean"
        return Conditions(
            [
                Condition(
                    "Random gradient extrapolation (Lan, Zhou 2018)", "every f_i curves by at least mu", numbers, None
                )
            ]
        )
