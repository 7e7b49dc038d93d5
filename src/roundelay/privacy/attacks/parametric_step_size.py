"""What a perturbed step size does not hide: the function itself (exact step, PI-ADMM1)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solveh_banded

from roundelay.algorithms.perturbations import StepSizeNoise, Unperturbed
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.quadratic import gradient_of, split, unknowns
from roundelay.privacy.attacks.recursion import forward
from roundelay.privacy.attacks.result import Recovered
from roundelay.privacy.attacks.setting import (
    Evidence,
    admm,
    evidence,
    expected_start,
    first_order,
    middle_gamma,
    one_update_each,
    starts_balanced,
)
from roundelay.privacy.attacks.step_size_equations import FITS, equations_of, fit
from roundelay.privacy.public import Public
from roundelay.transcripts import Visits

# A function that fits worse than this tells less of x than the filter does.
NEARLY = 1e-2


def parametric_step_size(visits: Visits, public: Public, prior: bool = False) -> Recovered:
    """H, g and every x and y of an agent with a quadratic f = ½x'Hx + g'x that takes exact steps under PI-ADMM1.

        Q(β_r d_r + z_r) + h = z_r − s_{r+1},    Q = H/ρ, h = g/ρ, β_r = 1/γ_r, r ≥ 1

    γ is one number for all p coordinates, so that every visit has p equations and one unknown besides Q and h: exact
    once (p − 1)(R − 1) ≥ p(p + 3)/2, for I-ADMM and Algorithm 2 at once. It starts from the linear least squares with
    β = 1 and ends with Levenberg and Marquardt's method on (vech Q, h), β_r eliminated in closed form; other weights,
    a gradual release of β, and other starts are tried until the equations are met to rounding. With `prior`, or where
    there are too few equations (always at p = 1), the β_r are kept as near to their mean as the equations allow; then
    H and g are estimates only.

    Only x⁰, which is drawn and not computed, stays unknown along a line: its row has γ_0 at its mean.
    """
    method, known = admm(public), evidence(visits, public)
    if first_order(method) or not isinstance(method.perturbation, (StepSizeNoise, Unperturbed)):
        raise ValueError(
            "This attack has the equations of the exact step with a perturbed step size: use parametric_first_order "
            "for first-order steps and parametric_primal for primal noise."
        )
    one_update_each(visits)
    gamma, spread = middle_gamma(method)
    equations = equations_of(known, gamma, spread)
    rounds, dim = equations.c.shape
    if not rounds:
        raise ValueError(f"Agent {visits.agent} has no second visit in which the token moved: observe more hops.")
    numbers = (dim - 1 if spread > 0.0 else dim) * rounds
    enough = numbers >= unknowns(dim)
    guided = spread > 0.0 and (prior or not enough)
    best = fit(equations, guided)
    converged = enough and not guided and best.misfit <= FITS and starts_balanced(method)
    q, h = split(best.theta, dim)
    factors = np.full(len(visits), gamma)
    factors[np.flatnonzero(equations.kept) + 1] = 1.0 / best.beta
    nearly = best.misfit <= NEARLY
    x = _states(known, q, h, factors) if nearly else forward(known, visits, expected_start(method, dim), gamma)
    y = known.rho * (x - known.s)
    words = f"{rounds} of {len(visits)} visits of agent {visits.agent} count; " + (
        f"there are too few equations for {unknowns(dim)} unknowns, and only the distribution of γ limits H and g."
        if not enough
        else f"the equations are met to {best.misfit:.1g}" + (", so that H and g are exact." if converged else " only.")
    )
    hessian, slope = known.rho * q, known.rho * h
    return Recovered(
        x, y, best.misfit, converged, words, hessian, slope, gradient_of(hessian, slope), gamma=factors[:, None]
    )


def _states(known: Evidence, q: Matrix, h: Vector, gamma: Vector) -> Matrix:
    """Every x from (I − Q)x_r = s_r + h and (1 + γ_r)x_{r+1} − x_r = d_r + γ_r z_r, along each eigenvector of Q.

    The first fails along an eigenvalue near 1, where H = ρ, and the second then stands in for it. The normal
    equations are tridiagonal.
    """
    values, vectors = np.linalg.eigh(q)
    rounds, later = len(known.z), gamma[1:]
    pull = (known.d[1:] + later[:, None] * known.z[1:]) @ vectors
    place = (known.s[1:] + h) @ vectors
    found = np.empty((rounds, len(h)))
    for k, value in enumerate(values):
        normal = np.zeros((2, rounds))  # the diagonal, and the one below it
        normal[0] = (1.0 - value) ** 2
        normal[0, 1:] += (1.0 + later) ** 2
        normal[0, :-1] += 1.0
        normal[1, :-1] = -(1.0 + later)
        right = (1.0 - value) * place[:, k]
        right[1:] += (1.0 + later) * pull[:, k]
        right[:-1] -= pull[:, k]
        found[:, k] = solveh_banded(normal, right, lower=True)
    x = found @ vectors.T
    start = (1.0 + gamma[0]) * x[0] - known.d[0] - gamma[0] * known.z[0]
    return np.vstack([start, x])
