"""A step size perturbed in each coordinate for itself. A warning: it is no defence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from roundelay.algorithms.parts.facts import PerturbationFacts
from roundelay.algorithms.parts.perturbations import StepSizeNoise, disturb_nothing
from roundelay.algorithms.slots import solve
from roundelay.kernels import DIM, STEP, Part, Vector, Visit, each, uniforms, vector


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
