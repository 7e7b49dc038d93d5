"""By how much one record can move the x that a visit releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from roundelay.kernels import Vector
from roundelay.privacy.accounting.reasons import NoGuarantee, method_of, why_no_sensitivity
from roundelay.problems import Problem
from roundelay.problems.problem import check_agent

Relation = Literal["replace one record", "add or remove one record"]


@dataclass(frozen=True)
class Sensitivity:
    """The most by which one record of `agent` can move x⁺ in one visit, as a norm, under the `relation`; and why."""

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
    """
    method = method_of(algorithm)
    reason = why_no_sensitivity(method, problem)
    if reason:
        return NoGuarantee(reason)
    check_agent(agent, problem.agents)
    size, weight = float(sensitivities(method, problem)[agent]), float(record_weights(problem)[agent])
    clip, rate = method.facts.xstep.clip, method.facts.xstep.rate
    how = f"2·{weight:g}·{clip:g}/{method.rho:g}" if rate is None else f"{weight:g}·{clip:g}/({rate:g}·{method.rho:g})"
    words = (
        f"A record of agent {agent} counts {weight:.4g} in f_{agent}, and its gradient is clipped to {clip:g}; to {relation_of(method)} "
        f"moves x by at most {how} = {size:.4g} in a visit."
    )
    return Sensitivity(size, agent, relation_of(method), words)


def relation_of(method: Any) -> Relation:
    """What counts as neighbouring data: Poisson sampling is reckoned by adding or removing, all else by replacing."""
    return "replace one record" if method.facts.xstep.rate is None else "add or remove one record"


def sensitivities(method: Any, problem: Any) -> Vector:
    """The sensitivity of x⁺ for each agent, of a method and a problem that have one."""
    weights = record_weights(problem)
    clip, rate = method.facts.xstep.clip, method.facts.xstep.rate
    return 2.0 * clip * weights / method.rho if rate is None else clip * weights / (rate * method.rho)


def record_weights(problem: Any) -> Vector:
    """What one record of each agent counts in f_i."""
    return np.asarray(problem.record_weights, np.float64)
