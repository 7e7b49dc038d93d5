"""The other way round: the noise that a wanted ε asks for."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from roundelay.kernels.checks import finite_number, whole_number
from roundelay.privacy.accounting.composition import multiplier_for
from roundelay.privacy.accounting.guarantee import check_delta
from roundelay.privacy.accounting.reasons import method_of, why_no_sensitivity
from roundelay.privacy.accounting.sensitivities import sensitivities
from roundelay.problems import Problem
from roundelay.problems.problem import check_agent


def sigma_for(
    epsilon: float,
    delta: float,
    visits: int,
    clip: float,
    rho: float,
    records: int,
    scale: Literal["mean", "half_sum"] = "mean",
    rate: float | None = None,
) -> float:
    """The σ with which `visits` visits cost ε, for an agent with `records` records in a mean or a (half) sum.

    Without a `rate` of sampling neighbouring means to replace a record, with one to add or remove it.
    """
    if scale not in ("mean", "half_sum"):
        raise ValueError(f'scale is {scale!r}: use "mean" or "half_sum".')
    clip, rho = finite_number("clip", clip, above=0.0), finite_number("rho", rho, above=0.0)
    weight = 1.0 / whole_number("records", records, least=1) if scale == "mean" else 1.0
    if rate is not None and not 0.0 < finite_number("rate", rate) <= 1.0:
        raise ValueError(f"rate is {rate}: it is a chance, so use a number above 0 and at most 1.")
    moved = 2.0 * clip * weight / rho if rate is None else clip * weight / (rate * rho)
    return moved * _multiplier(epsilon, delta, visits, rate)


def sigma_for_problem(
    algorithm: Any, problem: Problem, epsilon: float, visits: int, delta: float = 1e-5, agent: int | None = None
) -> float:
    """The σ, as a standard deviation, with which `visits` visits of this algorithm cost ε; its own sigma plays no part.

    For the records of `agent`, by default those of the agent that need most.
    """
    method = method_of(algorithm)
    reason = why_no_sensitivity(method, problem)
    if reason:
        raise ValueError(f"No noise is enough here: {reason}.")
    moved = sensitivities(method, problem)
    if agent is None:
        agent = int(np.argmax(moved))
    check_agent(agent, problem.agents)
    return float(moved[agent]) * _multiplier(epsilon, delta, visits, method.xstep.rate)


def _multiplier(epsilon: float, delta: float, visits: int, rate: float | None) -> float:
    check_delta(delta)
    return multiplier_for(
        finite_number("epsilon", epsilon, above=0.0), rate, whole_number("visits", visits, least=1), float(delta)
    )
