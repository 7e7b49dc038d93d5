"""The third choice: what is perturbed. Nothing, the step size, or the primal variable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from roundelay.algorithms.parts.facts import PerturbationFacts
from roundelay.kernels import DIM, PRIMAL, STEP, Numbers, Part, Vector, Visit, each, normals, uniform, vector
from roundelay.kernels.checks import finite_number


class Perturbation(Protocol):
    """What changes the plain step.

    What is public of it stands in `facts`, a `PerturbationFacts`; of one that says nothing no equation is known.
    """

    def part(self) -> Part:
        """The kernel functions `step_sizes` and `disturb`, and their numbers."""

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """The smallest tolerance at which the agents' own stopping rule can ever be met."""


def step_sizes_plain(perturbation: Numbers, rho: float, at: Visit, room: Vector) -> tuple[float, float, float]:
    """ρ for both, and no inertia."""
    return rho, rho, 0.0


def disturb_nothing(perturbation: Numbers, at: Visit, new: Vector) -> None:
    """Leave x as it is."""


@dataclass(frozen=True)
class Unperturbed:
    """Nothing is perturbed."""

    facts: ClassVar[PerturbationFacts] = PerturbationFacts("nothing", plain_steps=True)

    def part(self) -> Part:
        """The kernel functions `step_sizes` and `disturb`, and their numbers."""
        return Part((("step_sizes", step_sizes_plain), ("disturb", disturb_nothing)))

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """Any tolerance can be met."""
        return 0.0


class StepNoiseNumbers(NamedTuple):
    """γ is drawn from U(middle − width, middle + width)."""

    middle: float
    width: float


def step_sizes_noisy(perturbation: StepNoiseNumbers, rho: float, at: Visit, room: Vector) -> tuple[float, float, float]:
    """ργ for both, γ drawn anew at each visit."""
    gamma = perturbation.middle + perturbation.width * (2.0 * uniform(at.seed, at.agent, at.hop, STEP, 0) - 1.0)
    return rho * gamma, rho * gamma, 0.0


@dataclass(frozen=True)
class StepSizeNoise:
    """ρ is multiplied by γ, drawn at each visit uniformly within `spread` (relative) of `gamma`."""

    spread: float
    gamma: float = 1.0

    def __post_init__(self) -> None:
        finite_number("gamma", self.gamma, above=0.0)
        if not 0.0 <= finite_number("gamma_spread", self.spread) < 1.0:
            raise ValueError(
                f"gamma_spread is {self.spread}: use a number from 0 up to, but not including, 1, "
                "so that the step size stays positive."
            )

    def part(self) -> Part:
        """The kernel functions `step_sizes` and `disturb`, and their numbers."""
        numbers = StepNoiseNumbers(float(self.gamma), float(self.gamma * self.spread))
        return Part((("step_sizes", step_sizes_noisy), ("disturb", disturb_nothing)), numbers)

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """Any tolerance can be met: the noise is scaled by a residual that goes to 0."""
        return 0.0

    @property
    def facts(self) -> PerturbationFacts:
        """The law of γ; with γ = 1 alone the steps are plain."""
        plain = self.spread == 0.0 and self.gamma == 1.0
        return PerturbationFacts("step size", self.gamma, self.gamma * self.spread, plain_steps=plain)


class PrimalNoiseNumbers(NamedTuple):
    """The standard deviation of ω."""

    sigma: float


def disturb_primal(perturbation: PrimalNoiseNumbers, at: Visit, new: Vector) -> None:
    """x⁺ + ω, ω ~ N(0, σ²I), drawn anew at each visit."""
    omega = vector(DIM)
    normals(at.seed, at.agent, at.hop, PRIMAL, omega)
    for d in each(DIM):
        new[d] += perturbation.sigma * omega[d]


@dataclass(frozen=True)
class PrimalNoise:
    """ω ~ N(0, sigma²·I) is added to the new x at each visit."""

    sigma: float

    def __post_init__(self) -> None:
        finite_number("sigma", self.sigma, least=0.0)

    def part(self) -> Part:
        """The kernel functions `step_sizes` and `disturb`, and their numbers."""
        return Part(
            (("step_sizes", step_sizes_plain), ("disturb", disturb_primal)), PrimalNoiseNumbers(float(self.sigma))
        )

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """ω enters s⁺ = x⁺ − y⁺/ρ twice, and so does the one before: ρ‖s⁺ − s‖ ≈ ρ√8 σ ‖N(0, I)‖.

        All N agents must lie below the tolerance in a row, so the largest of N such norms counts.
        """
        return max(rho, 1.0) * math.sqrt(8.0) * self.sigma * (math.sqrt(dim) + math.sqrt(2.0 * math.log(agents + 1.0)))

    @property
    def facts(self) -> PerturbationFacts:
        """The law of ω. It moves x⁺ before y⁺ is made from it, so that the steps are plain."""
        return PerturbationFacts("x", sigma=self.sigma, plain_steps=True)


class ScheduleNumbers(NamedTuple):
    """The constants of τ_k = c_τ√k and γ_k = c_γ/√k."""

    c_tau: float
    c_gamma: float


def step_sizes_scheduled(
    perturbation: ScheduleNumbers, rho: float, at: Visit, room: Vector
) -> tuple[float, float, float]:
    """ρ, ργ_k and τ_k, where k = 1, 2, … counts the agent's visits, one a lap."""
    root = math.sqrt(at.turn + 1.0)
    return rho, rho * perturbation.c_gamma / root, perturbation.c_tau * root


@dataclass(frozen=True)
class Schedule:
    """Inertia that grows and a multiplier step that shrinks with the laps, as stochastic gradients need."""

    c_tau: float
    c_gamma: float

    def __post_init__(self) -> None:
        finite_number("c_tau", self.c_tau, least=0.0)
        finite_number("c_gamma", self.c_gamma, above=0.0)

    def part(self) -> Part:
        """The kernel functions `step_sizes` and `disturb`, and their numbers."""
        numbers = ScheduleNumbers(float(self.c_tau), float(self.c_gamma))
        return Part((("step_sizes", step_sizes_scheduled), ("disturb", disturb_nothing)), numbers)

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """Never: steps that shrink make every agent content wherever it stands."""
        return math.inf


class InertiaNumbers(NamedTuple):
    """τ, how strongly x holds on to itself."""

    tau: float


def step_sizes_inert(perturbation: InertiaNumbers, rho: float, at: Visit, room: Vector) -> tuple[float, float, float]:
    """ρ for both, and τ."""
    return rho, rho, perturbation.tau


@dataclass(frozen=True)
class Inertia:
    """A proximal term τ/2 ‖x − x_i‖² that keeps x near where it was."""

    facts: ClassVar[PerturbationFacts] = PerturbationFacts(plain_steps=True)
    tau: float

    def __post_init__(self) -> None:
        finite_number("tau", self.tau, least=0.0)

    def part(self) -> Part:
        """The kernel functions `step_sizes` and `disturb`, and their numbers."""
        return Part((("step_sizes", step_sizes_inert), ("disturb", disturb_nothing)), InertiaNumbers(float(self.tau)))

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """Any tolerance can be met."""
        return 0.0
