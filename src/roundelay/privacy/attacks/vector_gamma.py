"""What a step size perturbed in each coordinate for itself does not hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.setting import (
    Attack,
    Evidence,
    Recovered,
    admm,
    evidence,
    first_order,
    one_update_each,
)
from roundelay.privacy.attacks.solving import gradient_of, solve_squares, split, times, unknowns
from roundelay.privacy.public import Public
from roundelay.registry import register
from roundelay.transcripts import Visits

# Rounds in which less than this part of the largest number moved say nothing but rounding.
TINY = 1e-11
ROUNDS = 50
# Below this part of ‖d‖ the sign of an estimated v is not sure; with better estimates it is.
SURE = (0.2, 0.1, 0.05, 0.02)


@register(Attack, "vector γ")
def vector_gamma(visits: Visits, public: Public, solver: Literal["reweighted", "range"] = "reweighted") -> Recovered:
    """H, g and every x and y of an agent with a quadratic f whose exact steps have one γ for each coordinate.

        γ_rj·v_rj = M_j'd_r − d_rj,    v_r = z_r − M s_{r+1} − m,    M = (I − Q)⁻¹, m = Mh, r ≥ 1

    Now every equation has an unknown of its own and H is no longer determined. But γ is near its mean: with γ = γ̄
    the equations are linear in (M, m), and what they miss, (γ − γ̄)v, is known up to its factor. "reweighted" solves
    them by least squares with the weights 1/|v|, over and over. "range" asks instead for the middle of all (M, m)
    with every γ in its public range, a linear program; that pays with many visits. Both recover H and g to about the
    spread of γ over √R. y and ∇f(x*) are no safer than before: x̂ forgets its errors as the forward filter does. It
    assumes that ρ is no eigenvalue of H.
    """
    method, known = admm(public), evidence(visits, public)
    if first_order(method):
        raise ValueError("This attack has the equations of exact steps: use the forward filter for first-order steps.")
    if solver not in ("reweighted", "range"):
        raise ValueError(f'The solver is {solver!r}: use "reweighted" or "range".')
    one_update_each(visits)
    rounds = _rounds(known)
    if len(rounds.d) * public.dim < unknowns(public.dim):
        raise ValueError(
            f"{len(visits)} visits of agent {visits.agent} have {len(rounds.d) * public.dim} equations in "
            f"{unknowns(public.dim)} unknowns: observe more hops."
        )
    gamma, spread = method.facts.perturbation.gamma, method.facts.perturbation.width
    inverse, shift = _reweighted(rounds, gamma)
    if solver == "range" and spread > 0.0:
        inverse, shift = _in_range(rounds, gamma, spread, inverse, shift)
    q = np.eye(public.dim) - np.linalg.pinv(inverse)
    q, h = 0.5 * (q + q.T), np.linalg.pinv(inverse) @ shift
    factors, x = _states(known, inverse, shift, gamma, spread)
    y = known.rho * (x - known.s)
    residual = rounds.deviation(inverse, shift, gamma) / gamma
    # A uniform γ has the deviation spread/√3; the fit takes some of it away, and never adds.
    converged = residual <= 1.2 * spread / gamma + 1e-6 and known.s_is_known
    words = (
        f"{len(rounds.d)} visits of agent {visits.agent} ask for γ that deviate by {residual:.2g} from their mean, "
        f"where the public range is ±{spread / gamma:.2g}; H and g are estimates, y and the states are not protected."
    )
    hessian, slope = known.rho * q, known.rho * h
    return Recovered(x, y, residual, converged, words, hessian, slope, gradient_of(hessian, slope), gamma=factors)


@dataclass(frozen=True, eq=False)
class _Rounds:
    """d_r, z_r and s_{r+1} of the rounds that count."""

    d: Matrix
    z: Matrix
    s: Matrix

    def off(self, inverse: Matrix, shift: Vector) -> Matrix:
        """v = z − x⁺, by what M and m say of x⁺."""
        return self.z - self.s @ inverse - shift

    def deviation(self, inverse: Matrix, shift: Vector, gamma: float) -> float:
        """The deviation of γ from its mean that M and m ask for; a small v counts little, since its γ is not sure."""
        off, size = self.off(inverse, shift), np.linalg.norm(self.d, axis=1, keepdims=True)
        gap = self.d @ inverse - self.d - gamma * off
        return float(np.linalg.norm(gap / size) / np.linalg.norm(off / size))

    def outside(self, inverse: Matrix, shift: Vector, gamma: float, spread: float) -> float:
        """By how much the γ that M and m ask for leave their range."""
        off, size = self.off(inverse, shift), np.linalg.norm(self.d, axis=1, keepdims=True)
        gap = np.abs(self.d @ inverse - self.d - gamma * off)
        return float(np.linalg.norm(np.maximum(gap - spread * np.abs(off), 0.0) / size))


def _rounds(known: Evidence) -> _Rounds:
    kept = np.linalg.norm(known.d[1:], axis=1) > TINY * known.scale
    return _Rounds(known.d[1:][kept], known.z[1:][kept], known.s[2:][kept])


def _reweighted(rounds: _Rounds, gamma: float) -> tuple[Matrix, Vector]:
    """M(d + γ̄s⁺) + γ̄m = γ̄z + d, with weights 1/|v| from the solution before."""
    count, dim = rounds.d.shape
    identity = np.broadcast_to(np.eye(dim), (count, dim, dim))
    design = np.concatenate([times(rounds.d + gamma * rounds.s), gamma * identity], axis=2).reshape(count * dim, -1)
    right = (gamma * rounds.z + rounds.d).ravel()
    size = np.linalg.norm(rounds.d, axis=1)
    weight = np.repeat(1.0 / size, dim)
    theta = np.zeros(design.shape[1])
    for _ in range(ROUNDS):
        before = theta
        theta = solve_squares(weight[:, None] * design, weight * right)
        if np.linalg.norm(theta - before) <= 1e-12 * np.linalg.norm(theta):
            break
        # A v that is small by chance must not take all the weight.
        off = np.abs(rounds.off(*split(theta, dim)))
        weight = (1.0 / np.maximum(off, 0.05 * size[:, None])).ravel()
    return split(theta, dim)


def _in_range(rounds: _Rounds, gamma: float, spread: float, inverse: Matrix, shift: Vector) -> tuple[Matrix, Vector]:
    """The middle of all (M, m) with every γ in its range; where no point has that, the one that comes nearest.

    On which side of 0 a v lies comes from the solution before; where it is too small to tell, nothing is asked at
    first.
    """
    best, least = (inverse, shift), rounds.outside(inverse, shift, gamma, spread)
    for sure in SURE:
        for _ in range(3):
            centre = _middle(rounds, gamma, spread, inverse, shift, sure)
            if centre is None:
                break
            inverse, shift = centre
            outside = rounds.outside(inverse, shift, gamma, spread)
            if outside < least:
                best, least = centre, outside
    return best


def _middle(
    rounds: _Rounds, gamma: float, spread: float, inverse: Matrix, shift: Vector, sure: float
) -> tuple[Matrix, Vector] | None:
    """(γ̄ − spread)·v ≤ M_j'd − d_j ≤ (γ̄ + spread)·v with the largest margin where v > 0, the reverse where v < 0."""
    count, dim = rounds.d.shape
    identity = np.broadcast_to(np.eye(dim), (count, dim, dim))

    def difference(factor: float) -> tuple[Matrix, Vector]:
        """M_j'd − d_j − factor·v_j: coefficients of (vech M, m), and the constant on the other side."""
        columns = np.concatenate([times(rounds.d + factor * rounds.s), factor * identity], axis=2)
        return columns.reshape(count * dim, -1), (rounds.d + factor * rounds.z).ravel()

    low, low_right = difference(gamma - spread)
    high, high_right = difference(gamma + spread)
    off = rounds.off(inverse, shift)
    asked = (np.abs(off) > sure * np.linalg.norm(rounds.d, axis=1, keepdims=True)).ravel()
    unit = (1.0 / off.ravel()[asked])[:, None]  # in units of v, with its sign
    margin = np.ones((len(unit), 1))
    answer = scipy.optimize.linprog(
        np.append(np.zeros(low.shape[1]), -1.0),
        A_ub=np.vstack([np.hstack([-low[asked] * unit, margin]), np.hstack([high[asked] * unit, margin])]),
        b_ub=np.concatenate([-low_right[asked] * unit[:, 0], high_right[asked] * unit[:, 0]]),
        bounds=[(None, None)] * low.shape[1] + [(None, spread)],
    )
    return split(answer.x[:-1], dim) if answer.status == 0 and answer.x is not None else None


def _states(known: Evidence, inverse: Matrix, shift: Vector, gamma: float, spread: float) -> tuple[Matrix, Matrix]:
    """γ and every x: the model says which γ, within its range, and the recursion with it forgets its errors."""
    x = np.empty((len(known.d) + 1, len(shift)))
    factors = np.full_like(known.d, gamma)
    x[1] = inverse @ known.s[1] + shift
    x[0] = (1.0 + gamma) * x[1] - known.d[0] - gamma * known.z[0]
    for r in range(1, len(known.d)):
        off = known.z[r] - inverse @ known.s[r + 1] - shift
        asked = (inverse @ known.d[r] - known.d[r]) / np.where(off == 0.0, 1.0, off)
        factors[r] = np.where(off == 0.0, gamma, np.clip(asked, gamma - spread, gamma + spread))
        x[r + 1] = (known.d[r] + factors[r] * known.z[r] + x[r]) / (1.0 + factors[r])
    return factors, x
