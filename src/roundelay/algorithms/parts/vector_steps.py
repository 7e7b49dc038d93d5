"""A step size perturbed in each coordinate for itself. A warning: it is no defence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from roundelay.algorithms.parts.facts import PerturbationFacts
from roundelay.algorithms.parts.perturbations import StepSizeNoise, disturb_nothing
from roundelay.algorithms.slots import disturb, estimate, solve
from roundelay.algorithms.update import ADMMNumbers, hand_over
from roundelay.kernels import DIM, STEP, Matrix, Part, Vector, each, uniforms, vector


class VectorStepNumbers(NamedTuple):
    """γ_d is drawn from U(middle − width, middle + width); so many rounds solve an x-step to the last digit."""

    middle: float
    width: float
    rounds: int


def visit_by_coordinates(
    problem: Any,
    method: ADMMNumbers,
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
    """`visit` of `update.py` with a factor γ_d for each coordinate.

        x⁺ = argmin f_i(x) + ½x'ρΓx − (ρΓz + y)'x      y⁺ = y + ρΓ(z − x⁺)      Γ = diag γ

    No problem offers a proximal step with a vector of penalties. So the step is made with the middle one, β, and
    again from where it led: x ← argmin f_i(x) + β/2 ‖x‖² − (ρΓz + y + (β − ρΓ)x)'x. Each round shrinks the error at
    least by the spread of γ.
    """
    z, w, new = vector(DIM), vector(DIM), vector(DIM)
    factor, pull = vector(DIM), vector(DIM)
    rho, middle = method.rho, method.rho * method.perturbation.middle
    estimate(method, agents, token, z)
    uniforms(seed, i, hop, STEP, pull)
    for d in each(DIM):
        factor[d] = rho * (method.perturbation.middle + method.perturbation.width * (2.0 * pull[d] - 1.0))
        new[d] = x[i, d]
    for d in each(DIM):
        pull[d] = factor[d] * z[d] + y[i, d]
    for _ in range(method.perturbation.rounds):
        for d in each(DIM):
            w[d] = pull[d] + (middle - factor[d]) * new[d]
        solve(problem, method.xstep, seed, i, hop, w, middle, x[i], new)
    disturb(method.perturbation, seed, i, hop, new)
    for d in each(DIM):
        y[i, d] += factor[d] * (z[d] - new[d])
    return hand_over(method, seed, i, hop, turn, agents, token, z, new, x, y, share, watch)


@dataclass(frozen=True)
class VectorStepSizeNoise(StepSizeNoise):
    """ρ is multiplied by γ_d, drawn anew at each visit and for each coordinate, within `spread` (relative) of `gamma`.

    **This is a warning, not a defence.** It hides H_i and g_i from everyone who sees the token only as far as γ
    spreads: each equation of the parametric attack has an unknown of its own, so that they are no longer found to the
    last digit. But γ is near its mean, and `privacy.attacks.vector_gamma` finds them to about spread/√R after R
    visits. It does not hide y_i, x_i and ∇f_i(x*) at all: the forward filter forgets its errors as before. One
    observer is enough; no colluders are needed.
    """

    visit = staticmethod(visit_by_coordinates)

    @property
    def facts(self) -> PerturbationFacts:
        """The law of each γ_d."""
        return replace(super().facts, by_coordinate=True)

    def part(self) -> Part:
        """The kernel function `disturb`, and the numbers of the visit."""
        rounds = 1 if self.spread == 0.0 else math.ceil(math.log(1e-18) / math.log(self.spread))
        numbers = VectorStepNumbers(float(self.gamma), float(self.gamma * self.spread), rounds)
        return Part((("disturb", disturb_nothing),), numbers)
