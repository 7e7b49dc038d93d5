"""The third choice: what is perturbed. Nothing, the step size, or the primal variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

from roundelay.algorithms.parts.facts import PerturbationFacts
from roundelay.algorithms.slots import solve
from roundelay.kernels import DIM, PRIMAL, STEP, Numbers, Part, Vector, Visit, each, normals, uniform, uniforms, vector
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


# ---------------------------------------------------------------- in each coordinate for itself: a warning, no defence


class VectorStepNumbers(NamedTuple):
    """γ_d is drawn from U(middle − width, middle + width); so many rounds solve an x-step to the last digit."""

    middle: float
    width: float
    rounds: int


def step_sizes_by_coordinates(
    perturbation: VectorStepNumbers, rho: float, at: Visit, room: Vector
) -> tuple[Vector, Vector, float]:
    """ργ_d in each coordinate for both, γ_d drawn anew at each visit."""
    draws = vector(DIM)
    uniforms(at.seed, at.agent, at.hop, STEP, draws)
    for d in each(DIM):
        room[d] = rho * (perturbation.middle + perturbation.width * (2.0 * draws[d] - 1.0))
    return room, room, 0.0


def along_each(size: Vector, d: int) -> float:
    """The step size in its coordinate."""
    return size[d]


def step_in_rounds(
    problem: Any, method: Any, at: Visit, w: Vector, pull: Vector, inertia: float, x: Vector, new: Vector
) -> None:
    """New = argmin f_i(x) + ½x'ρΓx − w'x, Γ = diag γ.

    No problem offers a proximal step with a vector of penalties. So the step is made with the middle one, β, and
    again from where it led: x ← argmin f_i(x) + β/2 ‖x‖² − (w + (β − ρΓ)x)'x. Each round shrinks the error at
    least by the spread of γ.
    """
    shifted = vector(DIM)
    middle = method.rho * method.perturbation.middle
    for d in each(DIM):
        new[d] = x[d]
    for _ in range(method.perturbation.rounds):
        for d in each(DIM):
            shifted[d] = w[d] + (middle - pull[d]) * new[d]
        solve(problem, method.xstep, at, shifted, middle, x, new)


@dataclass(frozen=True)
class VectorStepSizeNoise(StepSizeNoise):
    """ρ is multiplied by γ_d, drawn anew at each visit and for each coordinate, within `spread` (relative) of `gamma`.

    **This is a warning, not a defence.** It hides H_i and g_i from everyone who sees the token only as far as γ
    spreads: each equation of the parametric attack has an unknown of its own, so that they are no longer found to the
    last digit. But γ is near its mean, and `privacy.attacks.vector_gamma` finds them to about spread/√R after R
    visits. It does not hide y_i, x_i and ∇f_i(x*) at all: the forward filter forgets its errors as before. One
    observer is enough; no colluders are needed.
    """

    @property
    def facts(self) -> PerturbationFacts:
        """The law of each γ_d."""
        return replace(super().facts, by_coordinate=True)

    def part(self) -> Part:
        """The kernel functions `step_sizes`, `along`, `x_step` and `disturb`, and their numbers."""
        rounds = 1 if self.spread == 0.0 else math.ceil(math.log(1e-18) / math.log(self.spread))
        numbers = VectorStepNumbers(float(self.gamma), float(self.gamma * self.spread), rounds)
        functions: tuple[tuple[str, Callable[..., Any]], ...] = (
            ("step_sizes", step_sizes_by_coordinates),
            ("along", along_each),
            ("x_step", step_in_rounds),
            ("disturb", disturb_nothing),
        )
        return Part(functions, numbers)
