"""Differential privacy of first-order PI-ADMM2 with clipped gradients: ε for a δ.

        x⁺ = z + (y − ∇f_i(x))/ρ + ω,   ω ~ N(0, σ²I)      y⁺ = y + ρ(z − x⁺)      z⁺ = z + (s⁺ − s)/N

Suppose that every x of every agent is released: more than the tokens tell, which are made from them. Then the start, which
is drawn without the data, and the x's give all y and z by arithmetic. In a visit the only new look at the data is
∇f_i(x), at an x that is public already; so the visit is a Gaussian mechanism with the deviation σ, whose sensitivity is
that of x⁺, and an agent's visits compose adaptively. A record of one agent enters the visits of that agent alone. What
others do with the result is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from roundelay.kernels.checks import finite_number, whole_number
from roundelay.privacy.accounting.composition import Bound, composed_epsilon
from roundelay.privacy.accounting.none import NoGuarantee
from roundelay.privacy.accounting.reasons import method_of, why_no_guarantee
from roundelay.privacy.accounting.sensitivities import Relation, relation_of, sensitivities
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
    multiplier, rate = float(multipliers[agent]), method.xstep.rate
    visits = whole_number("visits", visits, least=0)
    spent = composed_epsilon(multiplier, rate, visits, float(delta), bound)
    return Guarantee(spent, float(delta), visits, multiplier, relation_of(method), agent, rate, bound)


def noise_multipliers(method: Any, problem: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """σ over the sensitivity of a visit, for each agent."""
    return method.perturbation.sigma / sensitivities(method, problem)


def check_delta(delta: float) -> None:
    """δ is a probability, and with Gaussian noise it can't be 0."""
    if not 0.0 < finite_number("delta", delta) < 1.0:
        raise ValueError(f"delta is {delta}: use a number above 0 and below 1, such as 1e-5.")
