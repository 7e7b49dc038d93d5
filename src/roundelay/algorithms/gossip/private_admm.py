"""Differentially private ADMM: D-ADMM with noise in the dual, in what is sent, or in the penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from roundelay.algorithms.algorithm import Algorithm, Tunable
from roundelay.algorithms.gossip.admm_update import (
    SolvedExactly,
    gossip_admm,
    leave_message,
    leave_pull,
    stiffness_one,
)
from roundelay.algorithms.gossip.gossip_method import Gossip
from roundelay.algorithms.lemmas import Conditions
from roundelay.kernels import DIM, PRIVACY, Exchange, Part, Vector, each, norm, normals, uniform, vector
from roundelay.kernels.checks import finite_number
from roundelay.links.channel import Channel
from roundelay.problems import Problem
from roundelay.registry import register


class NoiseNumbers(NamedTuple):
    """The scale of the noise, and by what factor the penalty grows in each iteration."""

    scale: float
    growth: float


def private_noise(scale: float, at: Exchange, out: Vector) -> None:
    """ε with density in proportion to exp(−‖ε‖/scale): a uniform direction, and ‖ε‖ from Gamma(p, scale)."""
    seed, i, k = at.seed, at.agent, at.iteration
    normals(seed, i, 2 * k, PRIVACY, out)
    radius = 0.0
    for d in range(DIM):  # a Gamma draw of whole shape is a sum of exponential ones
        radius -= math.log(1.0 - uniform(seed, i, 2 * k + 1, PRIVACY, d))
    factor = scale * radius / norm(out)
    for d in each(DIM):
        out[d] *= factor


def disturb_dual(perturbation: NoiseNumbers, at: Exchange, penalty: float, w: Vector) -> None:
    """λ_i + ε in place of λ_i (in the authors' scale, where 2λ_i'f is minimised)."""
    noise = vector(DIM)
    private_noise(perturbation.scale, at, noise)
    for d in each(DIM):
        w[d] -= 2.0 * noise[d]


def disturb_primal(perturbation: NoiseNumbers, at: Exchange, message: Vector) -> None:
    """x_i + ε is sent, and used by the sender too."""
    noise = vector(DIM)
    private_noise(perturbation.scale, at, noise)
    for d in each(DIM):
        message[d] += noise[d]


def disturb_penalty(perturbation: NoiseNumbers, at: Exchange, penalty: float, w: Vector) -> None:
    """η_i(t)Σ_j‖½(f_i + f_j) + ε − f‖²: the noise is inside the penalty."""
    noise = vector(DIM)
    private_noise(perturbation.scale, at, noise)
    for d in each(DIM):
        w[d] += penalty * noise[d]


def stiffness_grows(perturbation: NoiseNumbers, k: int) -> float:
    """η(t)/η = growth^t."""
    return perturbation.growth**k


@register(Algorithm)
@dataclass(frozen=True)
class DualPerturbedADMM:
    """DP-ADMM with dual variable perturbation (Zhang, Zhu 2017).

        f_i⁺ = argmin O_i(f) + 2(λ_i + ε_i)'f + ηΣ_j‖½(f_i + f_j) − f‖²    λ_i⁺ = λ_i + (η/2)Σ_j(f_i⁺ − f_j⁺)

    `eta` is η. ε_i has a uniform direction and ‖ε_i‖ from Gamma(p, `scale`), drawn anew in each iteration. Without
    noise it is D-ADMM with c = η; with it, the error stays at a floor in proportion to the scale.
    """

    name: ClassVar[str] = "DP-ADMM (dual)"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("eta"),)
    eta: float = 1.0
    scale: float = 1e-3

    def __post_init__(self) -> None:
        finite_number("eta", self.eta, above=0.0)
        finite_number("scale", self.scale, least=0.0)

    def parts(self) -> Gossip:
        """D-ADMM with a noisy multiplier."""
        functions = (("stiffness", stiffness_one), ("disturb_pull", disturb_dual), ("disturb_message", leave_message))
        noise = Part(functions, NoiseNumbers(float(self.scale), 1.0))
        return gossip_admm(self.eta, SolvedExactly(), Channel(), noise)

    def conditions(self, problem: Problem) -> Conditions:
        """It does not converge while there is noise."""
        return Conditions()


@register(Algorithm)
@dataclass(frozen=True)
class PrimalPerturbedADMM:
    """DP-ADMM with primal variable perturbation (Zhang, Zhu 2017).

        f_i as D-ADMM;  V_i = f_i + ε_i is sent, and stands for f_i in every exchange and reuse

    `eta` is η. ε_i has a uniform direction and ‖ε_i‖ from Gamma(p, `scale`), drawn anew in each iteration.
    """

    name: ClassVar[str] = "DP-ADMM (primal)"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("eta"),)
    eta: float = 1.0
    scale: float = 1e-3

    def __post_init__(self) -> None:
        finite_number("eta", self.eta, above=0.0)
        finite_number("scale", self.scale, least=0.0)

    def parts(self) -> Gossip:
        """D-ADMM with noisy messages."""
        functions = (("stiffness", stiffness_one), ("disturb_pull", leave_pull), ("disturb_message", disturb_primal))
        noise = Part(functions, NoiseNumbers(float(self.scale), 1.0))
        return gossip_admm(self.eta, SolvedExactly(), Channel(), noise)

    def conditions(self, problem: Problem) -> Conditions:
        """It does not converge while there is noise."""
        return Conditions()


@register(Algorithm)
@dataclass(frozen=True)
class PenaltyPerturbedADMM:
    """DP-ADMM with penalty perturbation (Zhang, Khalili, Liu 2018).

        f_i⁺ = argmin O_i(f) + 2λ_i'f + η(t)Σ_j‖½(f_i + f_j) + ε_i − f‖²    λ_i⁺ = λ_i + (η/2)Σ_j(f_i⁺ − f_j⁺)

    `eta` is η, and η(t) = η·growthᵗ in iteration t = 0, 1, …, which never falls; where it has become stiff, nothing pulls
    x back to the optimum any more, so that a long run drifts off: a growth of 1 keeps it. ε_i has a uniform direction and
    ‖ε_i‖ from Gamma(p, `scale`), drawn anew in each iteration.
    """

    name: ClassVar[str] = "DP-ADMM (penalty)"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("eta"),)
    eta: float = 1.0
    growth: float = 1.01
    scale: float = 1e-3

    def __post_init__(self) -> None:
        finite_number("eta", self.eta, above=0.0)
        finite_number("growth", self.growth, least=1.0)
        finite_number("scale", self.scale, least=0.0)

    def parts(self) -> Gossip:
        """D-ADMM with noise inside a penalty that grows."""
        functions = (
            ("stiffness", stiffness_grows), ("disturb_pull", disturb_penalty), ("disturb_message", leave_message),
        )  # fmt: skip
        return gossip_admm(
            self.eta, SolvedExactly(), Channel(), Part(functions, NoiseNumbers(float(self.scale), float(self.growth)))
        )

    def conditions(self, problem: Problem) -> Conditions:
        """It does not converge while there is noise."""
        return Conditions()
