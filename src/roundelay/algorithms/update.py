"""The update: one visit of the token to agent i, for the whole ADMM family."""

from __future__ import annotations

from typing import Any, NamedTuple

from roundelay.algorithms.slots import as_sent, at_token, conceal, disturb, gradient, solve, step_sizes
from roundelay.kernels import DIM, TOKENS, Matrix, Vector, distance, each, norm, vector


class ADMMNumbers(NamedTuple):
    """ρ, and the numbers of the x-step, the perturbation, the regulariser and the defence."""

    rho: float
    xstep: Any
    perturbation: Any
    regulariser: Any
    defence: Any


def visit(
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
    """Agent i receives the token, updates its x_i and y_i, and adds its share to the token.

        z  = token                                    (its prox, where the token carries a regulariser)
        x⁺ = argmin f_i(x) + (β+τ)/2 ‖x‖² − (βz + y + τx_i)'x  + ω
        y⁺ = y + δ(z − x⁺)
        s⁺ = x⁺ − y⁺/ρ
        z⁺ = z + M/N (s⁺ − c),   c⁺ = c + N/M (z⁺ − z)

    β, δ, τ come from `step_sizes` (ρ, ρ, 0 for I-ADMM; ργ, ργ, 0 for PI-ADMM1), ω from `disturb`. With τ = 0 the
    x-step is prox_i(z + y/β, β). `share` holds c_i: agent i's part of Nz as it actually stands. It equals s_i up to
    rounding, and because the rounding of one visit is repaid at the next, the token never drifts. A defence may add
    noise to s⁺ − c (`conceal`) or round z⁺ (`as_sent`): then c differs from s by that much, and it too is repaid at
    the next visit. M is the number of tokens. Returns ‖x⁺ − z‖ and ρ‖s⁺ − s‖ where asked to `watch`.
    """
    z, w, new = vector(DIM), vector(DIM), vector(DIM)
    rho = method.rho
    estimate(method, agents, token, z)
    pull, step, inertia = step_sizes(method.perturbation, rho, seed, i, hop, turn)
    for d in each(DIM):
        w[d] = pull * z[d] + (y[i, d] + inertia * x[i, d])
    solve(problem, method.xstep, seed, i, hop, w, pull + inertia, x[i], new)
    disturb(method.perturbation, seed, i, hop, new)
    for d in each(DIM):
        y[i, d] += step * (z[d] - new[d])
    return hand_over(method, seed, i, hop, turn, agents, token, z, new, x, y, share, watch)


def hand_over(
    method: ADMMNumbers,
    seed: int,
    i: int,
    hop: int,
    turn: int,
    agents: int,
    token: Vector,
    z: Vector,
    new: Vector,
    x: Matrix,
    y: Matrix,
    share: Matrix,
    watch: bool,
) -> tuple[float, float]:
    """The end of every visit, once x⁺ and y⁺ are there: x_i is kept, and s⁺ = x⁺ − y⁺/ρ goes into the token."""
    change = vector(DIM)
    rho = method.rho
    inverse_rho, fraction, whole = 1.0 / rho, TOKENS / agents, agents / TOKENS
    for d in each(DIM):
        change[d] = new[d] - y[i, d] * inverse_rho - share[i, d]
        x[i, d] = new[d]
    conceal(method.defence, seed, i, hop, turn, change)
    for d in each(DIM):
        moved = token[d] + fraction * change[d]
        moved = as_sent(method.defence, moved)
        share[i, d] += whole * (moved - token[d])
        token[d] = moved
    if watch:
        return distance(new, z), rho * norm(change)
    return 0.0, 0.0


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
