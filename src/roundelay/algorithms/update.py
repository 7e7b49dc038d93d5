"""The update: one visit of the token to agent i, for the whole ADMM family."""

from __future__ import annotations

from typing import Any, NamedTuple

from roundelay.algorithms.slots import (
    Agents,
    along,
    as_sent,
    at_token,
    conceal,
    disturb,
    gradient,
    solve,
    step_sizes,
    x_step,
)
from roundelay.kernels import DIM, TOKENS, Vector, Visit, distance, each, norm, vector


class ADMMNumbers(NamedTuple):
    """ρ, and the numbers of the x-step, the perturbation, the regulariser and the defence."""

    rho: float
    xstep: Any
    perturbation: Any
    regulariser: Any
    defence: Any


def visit(
    problem: Any, method: ADMMNumbers, at: Visit, token: Vector, states: Agents, watch: bool
) -> tuple[float, float]:
    """Agent i receives the token, updates its x_i and y_i, and adds its share to the token.

        z  = token                                    (its prox, where the token carries a regulariser)
        x⁺ = argmin f_i(x) + (β+τ)/2 ‖x‖² − (βz + y + τx_i)'x  + ω
        y⁺ = y + δ(z − x⁺)
        s⁺ = x⁺ − y⁺/ρ
        z⁺ = z + M/N (s⁺ − c),   c⁺ = c + N/M (z⁺ − z)

    β, δ, τ come from `step_sizes` (ρ, ρ, 0 for I-ADMM; ργ, ργ, 0 for PI-ADMM1), ω from `disturb`. With τ = 0 the
    x-step is prox_i(z + y/β, β). Where β and δ differ from coordinate to coordinate they are diagonal matrices. `share`
    holds c_i: agent i's part of Nz as it actually stands. It equals s_i up to rounding, and because the rounding of one
    visit is repaid at the next, the token never drifts. A defence may add noise to s⁺ − c (`conceal`) or round z⁺
    (`as_sent`): then c differs from s by that much, and it too is repaid at the next visit. M is the number of tokens.
    Returns ‖x⁺ − z‖ and ρ‖s⁺ − s‖ where asked to `watch`.
    """
    z, w, new, change, room = vector(DIM), vector(DIM), vector(DIM), vector(DIM), vector(DIM)
    i, rho, x, y, share = at.agent, method.rho, states.x, states.y, states.share
    inverse_rho, fraction, whole = 1.0 / rho, TOKENS / at.agents, at.agents / TOKENS
    estimate(method, at.agents, token, z)
    pull, step, inertia = step_sizes(method.perturbation, rho, at, room)
    for d in each(DIM):
        w[d] = along(pull, d) * z[d] + (y[i, d] + inertia * x[i, d])
    x_step(problem, method, at, w, pull, inertia, x[i], new)
    disturb(method.perturbation, at, new)
    for d in each(DIM):
        y[i, d] += along(step, d) * (z[d] - new[d])
    for d in each(DIM):
        change[d] = new[d] - y[i, d] * inverse_rho - share[i, d]
        x[i, d] = new[d]
    conceal(method.defence, at, change)
    for d in each(DIM):
        moved = as_sent(method.defence, token[d] + fraction * change[d])
        share[i, d] += whole * (moved - token[d])
        token[d] = moved
    if watch:
        return distance(new, z), rho * norm(change)
    return 0.0, 0.0


def along_all(size: float, d: int) -> float:
    """Fills `along` where the step size is one number for all coordinates."""
    return size


def step_once(
    problem: Any, method: ADMMNumbers, at: Visit, w: Vector, pull: float, inertia: float, x: Vector, new: Vector
) -> None:
    """Fills `x_step` there: the x-step itself."""
    solve(problem, method.xstep, at, w, pull + inertia, x, new)


def estimate(method: ADMMNumbers, agents: int, token: Vector, z: Vector) -> None:
    """Z = prox of r/(Nρ) at the token, so that Σ f_i + r is minimised: the token itself without a regulariser."""
    at_token(method.regulariser, 1.0 / (agents * method.rho), token, z)


def unrest(problem: Any, method: ADMMNumbers, i: int, agents: int, token: Vector, share: Vector) -> float:
    """‖∇f_i(z) + ρ(c_i − z)‖: how far agent i is from balance with the token.

    Because Σc_i = N·token, the mean of these vectors over the agents is the gradient of (1/N)Σf_i at z, plus
    ρ(token − z), which is the regulariser's subgradient there. So where all are at most tol, z is stationary
    within tol. An allowance for rounding is added, so that this holds to the last digit.
    """
    z, slope = vector(DIM), vector(DIM)
    estimate(method, agents, token, z)
    gradient(problem, i, z, slope)
    rounding = 1e-15 * (norm(slope) + method.rho * (norm(share) + norm(z)))
    for d in each(DIM):
        slope[d] += method.rho * (share[d] - z[d])
    return norm(slope) + rounding
