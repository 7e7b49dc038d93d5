"""Recursions over an agent's visits, which ask nothing of its function: forwards, backwards, by sums alone, and as a filter.

    x⁺ = ½(d + z + x)    y = ρ(x − s)    s = Σd

Run forwards it halves an error at each visit, so that a wrong guess of the start is forgotten by itself; run backwards it
doubles one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roundelay.algorithms.token_method import TokenADMM
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.setting import (
    Attack,
    Evidence,
    Recovered,
    admm,
    evidence,
    expected_start,
)
from roundelay.privacy.public import Public
from roundelay.registry import register
from roundelay.transcripts import Visits

# The start counts as forgotten when less than this part of ‖z‖ can be left of it.
FORGOTTEN = 1e-3


@register(Attack, "recursion")
def recursion(visits: Visits, public: Public) -> Recovered:
    """x and y after every visit, from x = y = 0 by the paper's equation (12).

        x⁺ = ½(d + z + x)    y⁺ = y + ρ/2 (z − d − x)    d = N(z' − z)

    It assumes a public start at zero, or x = 0 and a share that is known, and y⁺ = y + ρ(z − x⁺), whatever x⁺ is. So it is exact for I-ADMM and W-ADMM,
    with the exact and with the first-order step, and also for PW-ADMM with its inertia. The gradient follows: ∇f(x⁺)
    = y⁺ where the step is exact, ∇f(x) = y⁺ where it is first order. With a random start υ the errors of x and y are
    2^{−r}υ and ρ2^{−r}υ.
    """
    method, known = admm(public), evidence(visits, public)
    x = forward(known, visits, np.zeros(public.dim), 1.0)
    y = known.rho * (x - known.s)
    assumptions = {
        "the start is not at zero": not (known.s_is_known and _starts_at_zero(method)),
        "the step size is not ρ itself": not method.facts.perturbation.plain_steps,
        f"agent {visits.agent} kept the token in {int((visits.updates > 1).sum())} of its visits, and "
        "nobody saw it in between": bool((visits.updates > 1).any()),
    }
    broken = [words for words, holds in assumptions.items() if holds]
    words = f"The recursion ran over {len(visits)} visits of agent {visits.agent}; " + (
        f"it is not exact, because {', and '.join(broken)}." if broken else "it is exact."
    )
    return Recovered(x, y, distance_from_token(x, known), not broken, words)


def _starts_at_zero(method: TokenADMM) -> bool:
    """Whether x_i⁰ = 0 is public."""
    return method.facts.start.middle == method.facts.start.width == 0.0


@register(Attack, "share at the start")
def share_at_the_start(visits: Visits, public: Public) -> Recovered:
    """∇f_i(0) = −ρc_i of an agent whose start is sealed, for those who know its share c_i: who are all the others.

    They know the sum that the lap of the start gave, and what they added to it themselves; so what is left is its part, to the grid
    of the sum. It asks nothing of f_i, nor of any visit. `g` is ∇f_i(0), whatever f_i is; x and y are those of the forward filter.
    """
    method = admm(public)
    if method.facts.start.share != "sealed" or visits.share is None:
        raise ValueError(
            "This attack is on the gradient in a sealed start, and is for those who are all the other agents together."
        )
    found = forward_filter(visits, public)
    words = f"Agent {visits.agent} brought −∇f(0)/ρ into the sealed sum, and all others know their own part of it."
    return replace(found, residual=0.0, converged=_starts_at_zero(method), words=words, g=-method.rho * visits.share)


@register(Attack, "backward recursion")
def backward_recursion(visits: Visits, public: Public, last: Vector | None = None) -> Recovered:
    """x and y after every visit, from x ≈ z' after the last one.

        x = 2x⁺ − d − z    y = ρ(x − s)

    Nothing is assumed of the start but x⁰ − y⁰/ρ = 0. Where x_R is off by ε, x_{R−n} is off by exactly 2ⁿε and y_{R−n}
    by ρ2ⁿε, for Algorithm 2 and PI-ADMM2 (and for I-ADMM, where the recursion forwards is better). `last` is another
    guess of x_R. `residual` is 2^R‖d_{R−1}‖, a guess of the error at the start: ‖d‖ is what the last visit changed.
    """
    method, known = admm(public), evidence(visits, public)
    x = np.empty((len(visits) + 1, public.dim))
    x[-1] = visits.sent[-1] if last is None else last
    for r in range(len(visits) - 1, -1, -1):
        x[r] = 2.0 * x[r + 1] - known.d[r] - known.z[r]
    y = known.rho * (x - known.s)
    exact = method.facts.perturbation.plain_steps and known.s_is_known and bool((visits.updates == 1).all())
    with np.errstate(over="ignore"):
        residual = float(np.linalg.norm(known.d[-1]) * np.exp2(float(len(visits))))
    words = (
        f"The recursion ran back over {len(visits)} visits of agent {visits.agent} from the token it sent last; every visit doubles the error."
        if exact
        else f"The recursion ran back over {len(visits)} visits of agent {visits.agent}, although its equation does not hold for this method."
    )
    return Recovered(x, y, residual, exact, words)


@register(Attack, "telescope")
def telescope(visits: Visits, public: Public) -> Recovered:
    """ŷ = ρ(x̂ − s) with s_r = Σ_{j<r} d_j, and the token that the agent sent for x̂.

    All it assumes is that the start has x⁰ − y⁰/ρ = 0; then s is exact in I-ADMM, Algorithm 2, PI-ADMM1 and PI-ADMM2,
    with either step. What is left is ρ‖x − z'‖, which goes to 0 as the agents agree: in the end ŷ = ρ(z* − s) is
    ∇f_i(x*). `residual` is ‖d‖/‖s‖ of the last visit, how far s still moves.
    """
    method, known = admm(public), evidence(visits, public)
    x = np.vstack([expected_start(method, public.dim), visits.sent])
    y = known.rho * (x - known.s)
    size = float(np.linalg.norm(known.s[-1]))
    residual = float(np.linalg.norm(known.d[-1])) / (size if size > 0.0 else 1.0)
    words = (
        f"s = x − y/ρ of agent {visits.agent} is exact after each of its {len(visits)} visits; y is as good as x ≈ z is."
        if known.s_is_known
        else "The start need not have x − y/ρ = 0, so that s is known only up to a constant."
    )
    return Recovered(x, y, residual, known.s_is_known, words)


@register(Attack, "forward filter")
def forward_filter(visits: Visits, public: Public, guess: Vector | None = None) -> Recovered:
    """x and y after every visit, from any `guess` of x⁰ (default: the mean of its public distribution).

        x̂⁺ = (d + γ̄z + x̂)/(1 + γ̄)    ŷ = ρ(x̂ − s)

    with γ̄ the middle of γ's distribution, 1 where there is none. For Algorithm 2 and PI-ADMM2 the error of x̂ is
    exactly 2^{−r} times that of the guess, with either step: the random start hides nothing for long. For PI-ADMM1 it
    settles near half the spread of γ times ‖z − x‖, which goes to 0 as well.
    """
    method, known = admm(public), evidence(visits, public)
    gamma, spread = method.facts.perturbation.gamma, method.facts.perturbation.width
    start = expected_start(method, public.dim) if guess is None else np.asarray(guess, np.float64)
    x = forward(known, visits, start, gamma)
    y = known.rho * (x - known.s)
    left = method.facts.start.width * float(public.dim) ** 0.5 / (1.0 + gamma) ** len(visits)
    forgotten = left <= FORGOTTEN * float(np.linalg.norm(known.z[-1]))
    converged = forgotten and known.s_is_known and bool((visits.updates == 1).all())
    words = (
        f"After {len(visits)} visits at most {left:.1g} is left of the start of agent {visits.agent}"
        + (f"; the unknown γ leaves up to {0.5 * spread:.1g} of ‖z − x‖ in each visit" if spread > 0.0 else "")
        + "."
    )
    return Recovered(x, y, distance_from_token(x, known), converged, words)


def forward(known: Evidence, visits: Visits, start: Vector, gamma: float) -> Matrix:
    """x_{r+1} = (d_r + γz_r + x_r)/(1 + γ) from x_0 = `start`, R + 1 rows.

    Where the agent kept the token for several updates, what it added is taken to have come in equal parts.
    """
    x = np.empty((len(visits) + 1, len(start)))
    x[0] = start
    share = (visits.sent - visits.received) / visits.updates[:, None]
    for r, updates in enumerate(visits.updates):
        now = x[r]
        for turn in range(updates):
            now = (known.d[r] / updates + gamma * (known.z[r] + turn * share[r]) + now) / (1.0 + gamma)
        x[r + 1] = now
    return x


def distance_from_token(x: Matrix, known: Evidence) -> float:
    """‖x̂ − z‖/‖z‖ at the last visit: where the method has converged, a right x̂ makes it small."""
    size = float(np.linalg.norm(known.z[-1]))
    return float(np.linalg.norm(x[-1] - known.z[-1])) / (size if size > 0.0 else 1.0)
