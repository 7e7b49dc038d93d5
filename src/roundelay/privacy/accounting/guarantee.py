"""ε after so many visits, and the other way round: the noise that a wanted ε asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from roundelay.kernels.checks import finite_number, whole_number
from roundelay.privacy.accounting.composition import Bound, composed_epsilon, multiplier_for
from roundelay.privacy.accounting.sensitivities import (
    NoGuarantee,
    Relation,
    method_of,
    rate_of,
    relation_of,
    sensitivities,
    sigma_of,
    why_no_guarantee,
    why_no_sensitivity,
)
from roundelay.problems import Problem
from roundelay.problems.problem import check_agent


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy of a record of `agent`, after so many visits of a token to it.

    `noise_multiplier` is σ over the sensitivity of one visit; `rate` that of Poisson sampling, None without; `bound`
    is "exact", or "rdp" for the looser one by Rényi divergences.
    """

    epsilon: float
    delta: float
    visits: int
    noise_multiplier: float
    relation: Relation
    agent: int
    rate: float | None = None
    bound: Bound = "exact"

    @property
    def words(self) -> str:
        """The guarantee in words, with what it rests on."""
        sampling = (
            "That the token comes round in a fixed order, or at random, gives no amplification: who is visited is public"
            if self.rate is None
            else f"Records are drawn with the chance {self.rate:g}, which counts as long as nobody learns which were drawn"
        )
        return (
            f"ε = {self.epsilon:.4g} at δ = {self.delta:g} for a record of agent {self.agent} after {self.visits} visits, where "
            f"neighbouring means to {self.relation}; the noise multiplier of a visit is {self.noise_multiplier:.4g}. It holds "
            "against all who see every x of every agent, and so against every observer of the token, provided that the seed "
            f"is secret and the numbers of records are public. {sampling}."
        )


def epsilon(
    algorithm: Any, problem: Problem, visits: int, delta: float = 1e-5, agent: int | None = None, bound: Bound = "exact"
) -> Guarantee | NoGuarantee:
    """What `visits` visits of a token cost a record of `agent`, by default of the agent whose records move x most.

    Where nothing can be promised, for want of clipping or noise or because the method is another, a `NoGuarantee` says why.
    """
    method = method_of(algorithm)
    reason = why_no_guarantee(method, problem)
    if reason:
        return NoGuarantee(reason)
    check_delta(delta)
    multipliers = noise_multipliers(method, problem)
    if agent is None:
        agent = int(np.argmin(multipliers))
    check_agent(agent, problem.agents)
    multiplier, rate = float(multipliers[agent]), rate_of(method)
    visits = whole_number("visits", visits, least=0)
    spent = composed_epsilon(multiplier, rate, visits, float(delta), bound)
    return Guarantee(spent, float(delta), visits, multiplier, relation_of(method), agent, rate, bound)


def noise_multipliers(method: Any, problem: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """σ over the sensitivity of a visit, for each agent."""
    return sigma_of(method) / sensitivities(method, problem)


def check_delta(delta: float) -> None:
    """δ is a probability, and with Gaussian noise it can't be 0."""
    if not 0.0 < finite_number("delta", delta) < 1.0:
        raise ValueError(f"delta is {delta}: use a number above 0 and below 1, such as 1e-5.")


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
    return float(moved[agent]) * _multiplier(epsilon, delta, visits, rate_of(method))


def _multiplier(epsilon: float, delta: float, visits: int, rate: float | None) -> float:
    check_delta(delta)
    return multiplier_for(
        finite_number("epsilon", epsilon, above=0.0), rate, whole_number("visits", visits, least=1), float(delta)
    )
