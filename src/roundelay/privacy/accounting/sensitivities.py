"""By how much one record can move what a visit adds noise to; or, in words, why there is no bound, and then no number."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NoReturn

import numpy as np

from roundelay.algorithms import OwnVisit, TokenADMM
from roundelay.algorithms.parts.facts import NoisyStep
from roundelay.kernels import Vector
from roundelay.problems import Problem
from roundelay.problems.problem import check_agent

Relation = Literal["replace one record", "add or remove one record"]


@dataclass(frozen=True)
class NoGuarantee:
    """There is no guarantee of differential privacy; `reason` says why. It has no ε, not even an infinite one."""

    reason: str

    @property
    def words(self) -> str:
        """The reason as a sentence."""
        return f"There is no guarantee of differential privacy: {self.reason}."

    @property
    def epsilon(self) -> NoReturn:
        """There is none."""
        raise AttributeError(f"There is no epsilon to read. {self.words}")

    @property
    def x(self) -> NoReturn:
        """There is no sensitivity either."""
        raise AttributeError(f"There is no sensitivity to read. {self.words}")


@dataclass(frozen=True)
class Sensitivity:
    """The most by which one record of `agent` can move what noise is added to in one visit, as a norm, under the `relation`; and why.

    That is x⁺, or the gradient where the noise is added to it.
    """

    x: float
    agent: int
    relation: Relation
    words: str


def sensitivity(algorithm: Any, problem: Problem, agent: int) -> Sensitivity | NoGuarantee:
    """The sensitivity of a visit to `agent`, or why there is none.

        f_i(x) = weight_i Σ_j ℓ_j(x) + ridge/2 ‖x‖²      x⁺ = z + (y − ∇f_i(x))/ρ + ω

    With ‖∇ℓ_j‖ clipped to C, one record adds at most weight_i·C to ∇f_i: replacing it moves x⁺ by up to 2·weight_i·C/ρ.
    weight_i is 1/b_i for a mean, 1 for a sum, times the agent's weight; the ridge does not depend on the data. Where a
    record is drawn with the chance q and the sum divided by q, adding or removing one moves x⁺ by up to weight_i·C/(qρ).
    Of a noisy step along a gradient with rows up to B and slopes up to C, replacing one moves the gradient by up to 2·weight_i·BC.
    """
    method = method_of(algorithm)
    reason = why_no_sensitivity(method, problem)
    if reason:
        return NoGuarantee(reason)
    check_agent(agent, problem.agents)
    size, weight = float(sensitivities(method, problem)[agent]), float(record_weights(problem)[agent])
    step, rate = noisy_step(method), rate_of(method)
    clip = method.facts.xstep.clip if step is None else step.clip
    if step is not None:
        what, how = "the gradient", f"2·{weight:g}·{clip:g}"
    elif rate is None:
        what, how = "x", f"2·{weight:g}·{clip:g}/{method.rho:g}"
    else:
        what, how = "x", f"{weight:g}·{clip:g}/({rate:g}·{method.rho:g})"
    words = (
        f"A record of agent {agent} counts {weight:.4g} in f_{agent}, and its gradient is clipped to {clip:g}; to {relation_of(method)} "
        f"moves {what} by at most {how} = {size:.4g} in a visit."
    )
    return Sensitivity(size, agent, relation_of(method), words)


def relation_of(method: Any) -> Relation:
    """What counts as neighbouring data: Poisson sampling is reckoned by adding or removing, all else by replacing."""
    return "replace one record" if rate_of(method) is None else "add or remove one record"


def noisy_step(method: Any) -> NoisyStep | None:
    """What a method says of its steps where each is along a clipped gradient with noise."""
    return getattr(method, "noisy_step", None)


def rate_of(method: Any) -> float | None:
    """The chance with which a record is drawn at a visit, None where all are used."""
    return None if noisy_step(method) is not None else method.facts.xstep.rate


def sigma_of(method: Any) -> float:
    """The deviation of the noise of a visit."""
    step = noisy_step(method)
    return float(method.facts.perturbation.sigma if step is None else step.sigma)


def sensitivities(method: Any, problem: Any) -> Vector:
    """The sensitivity of a visit to each agent, of a method and a problem that have one."""
    weights, step = record_weights(problem), noisy_step(method)
    if step is not None:
        return 2.0 * step.clip * weights
    clip, rate = method.facts.xstep.clip, method.facts.xstep.rate
    return 2.0 * clip * weights / method.rho if rate is None else clip * weights / (rate * method.rho)


def record_weights(problem: Any) -> Vector:
    """What one record of each agent counts in f_i."""
    return np.asarray(problem.record_weights, np.float64)


# ---------------------------------------------------------------- why there is none

# The choices that the derivation covers; a choice that it does not know of is not assumed to be harmless.
COVERED = ("rho", "walk", "xstep", "perturbation", "start", "regulariser", "tokens")


def method_of(algorithm: Any) -> Any:
    """The parts of an algorithm; a method stands for itself."""
    return algorithm.parts() if hasattr(algorithm, "parts") else algorithm


def why_no_sensitivity(method: Any, problem: Any = None) -> str:
    """Why one record can change a visit by any amount, or by an amount that nobody has worked out; empty where neither."""
    # The very class: the derivation is that of its update, and one derived from it may have another.
    if type(method) is OwnVisit and method.noisy_step is not None:
        return _why_no_sensitivity_of_step(method, problem)
    if type(method) is not TokenADMM:
        return "the accounting is that of incremental ADMM with noise on x, and of noisy gradient steps, and this is another method"
    for field in fields(method):
        if field.name not in COVERED and getattr(method, field.name) != field.default:
            return f"the accounting does not cover its {field.name}"
    start, perturbation, xstep = method.facts
    if perturbation.noise not in ("nothing", "x"):
        return "its step size changes from visit to visit, and the accounting is that of noise which is added to x"
    if xstep.step == "exact":
        return "its steps are exact, and one record can move the minimiser of f_i by any amount: use first_order=True and clip"
    if xstep.clip is None:
        return "the gradients of single records are not clipped, so that one record can move x by any amount: set clip"
    if start.uses_data:
        return "its start is not known to be made without the data"
    return _why_no_records(problem)


def _why_no_sensitivity_of_step(method: OwnVisit, problem: Any) -> str:
    for field in fields(method):
        if field.name in ("vectors", "start", "regulariser", "tokens") and getattr(method, field.name) != field.default:
            return f"the accounting of noisy steps does not cover its {field.name}"
    return _why_no_records(problem)


def _why_no_records(problem: Any) -> str:
    if problem is not None and not hasattr(problem, "record_weights"):
        return f"a {type(problem).__name__} does not say what a single record counts"
    return ""


def why_no_guarantee(method: Any, problem: Any = None) -> str:
    """Why there is no guarantee of differential privacy; empty where there is one."""
    if type(method) is TokenADMM and method.facts.perturbation.noise == "nothing":
        return "nothing random is added to x"
    reason = why_no_sensitivity(method, problem)
    if reason:
        return reason
    if not sigma_of(method) > 0.0:
        return f"sigma is 0, so that nothing random is added to {'x' if noisy_step(method) is None else 'the gradient'}"
    return ""
