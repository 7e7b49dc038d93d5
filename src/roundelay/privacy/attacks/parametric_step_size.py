"""What a perturbed step size does not hide: the function itself (exact step, PI-ADMM1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.recursions import forward
from roundelay.privacy.attacks.setting import (
    Attack,
    Evidence,
    Recovered,
    admm,
    evidence,
    expected_start,
    first_order,
    one_update_each,
)
from roundelay.privacy.attacks.solving import (
    Eliminated,
    eliminate,
    gradient_of,
    minimise_squares,
    solve_squares,
    split,
    times,
    unknowns,
)
from roundelay.privacy.public import Public
from roundelay.registry import register
from roundelay.transcripts import Visits

# A fit this good, relative to what moved, is none by chance: a wrong one stays above 1e-5, rounding far below.
FITS = 1e-8
# Rounds in which less than this part of the largest number moved say nothing but rounding.
TINY = 1e-11
# By which power of ‖d‖ rounds are weighted down, and how β is let go, step by step.
ROUTES = ((0.5, (0.0,)), (0.5, (1.0, 0.1, 0.01, 0.0)), (1.0, (0.0,)), (0.0, (0.0,)), (1.0, (1.0, 0.1, 0.0)))
RESTARTS = 12
# A function that fits worse than this tells less of x than the filter does.
NEARLY = 1e-2


@register(Attack, "parametric, step size")
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
    if first_order(method) or method.facts.perturbation.noise not in ("nothing", "step size"):
        raise ValueError(
            "This attack has the equations of the exact step with a perturbed step size: use parametric_first_order "
            "for first-order steps and parametric_primal for primal noise."
        )
    one_update_each(visits)
    gamma, spread = method.facts.perturbation.gamma, method.facts.perturbation.width
    equations = equations_of(known, gamma, spread)
    rounds, dim = equations.c.shape
    if not rounds:
        raise ValueError(f"Agent {visits.agent} has no second visit in which the token moved: observe more hops.")
    numbers = (dim - 1 if spread > 0.0 else dim) * rounds
    enough = numbers >= unknowns(dim)
    guided = spread > 0.0 and (prior or not enough)
    best = fit(equations, guided)
    converged = enough and not guided and best.misfit <= FITS and known.s_is_known
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
        found[:, k] = scipy.linalg.solveh_banded(normal, right, lower=True)
    x = found @ vectors.T
    start = (1.0 + gamma[0]) * x[0] - known.d[0] - gamma[0] * known.z[0]
    return np.vstack([start, x])


@dataclass(frozen=True, eq=False)
class Equations:
    """A_rθ + β_r B_rθ = c_r of the rounds that count (those `kept`), θ = (vech Q, h); β has a public mean and range."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    c: Matrix
    size: Vector
    kept: NDArray[np.bool_]
    mean: float
    low: float
    high: float

    def misfit(self, theta: Vector, beta: Vector) -> float:
        """What is left over all rounds, relative to what moved: ‖Qd‖, or the spread of c where that is less."""
        moved = self.b @ theta
        gap = float(np.linalg.norm(self.a @ theta + beta[:, None] * moved - self.c))
        size = min(float(np.linalg.norm(moved)), float(np.linalg.norm(self.c - self.c.mean(axis=0))))
        floor = 1e3 * float(np.finfo(np.float64).eps) * float(np.abs(self.c).max())
        return gap / max(size, floor, float(np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class Fit:
    """θ, the β_r in their public range that suit it best, and the misfit with them."""

    theta: Vector
    beta: Vector
    misfit: float


def equations_of(known: Evidence, gamma: float, spread: float) -> Equations:
    """Those of one agent; before its first visit y is not the gradient, so that they begin with the second."""
    size = np.linalg.norm(known.d[1:], axis=1)
    kept = size > TINY * known.scale
    d, z, c = known.d[1:][kept], known.z[1:][kept], (known.z[1:] - known.s[2:])[kept]
    identity = np.broadcast_to(np.eye(d.shape[1]), (*d.shape, d.shape[1]))
    a = np.concatenate([times(z), identity], axis=2)
    b = np.concatenate([times(d), np.zeros_like(identity)], axis=2)
    return Equations(a, b, c, size[kept], kept, 1.0 / gamma, 1.0 / (gamma + spread), 1.0 / (gamma - spread))


def fit(equations: Equations, guided: bool) -> Fit:
    """The best θ and β. Where it is `guided` by the distribution of β, they stay as near to their mean as can be."""
    if equations.low == equations.high:
        theta = _linear(equations, np.full(len(equations.c), equations.mean), 0.0)
        return _judged(equations, theta)
    if guided:
        return _held(equations)
    made: list[Fit] = []
    for attempt in _attempts(equations):
        made.append(attempt)
        if attempt.misfit <= FITS:
            break
    return min(made, key=lambda attempt: attempt.misfit)


def _linear(equations: Equations, beta: Vector, power: float) -> Vector:
    """Least squares with given β: what a wrong β leaves is proportional to ‖d‖, hence the weights."""
    weight = equations.size**-power
    design = (equations.a + beta[:, None, None] * equations.b) * weight[:, None, None]
    return solve_squares(_flat(design), (equations.c * weight[:, None]).ravel())


def _from_the_mean(equations: Equations) -> Vector:
    return _linear(equations, np.full(len(equations.c), equations.mean), 1.0)


def _without_beta(equations: Equations, theta: Vector, hold: float) -> Eliminated:
    u = equations.b @ theta
    return eliminate(equations.a @ theta - equations.c + equations.mean * u, u, equations.mean, hold)


def _release(equations: Equations, start: Vector, power: float, hold: float) -> Vector:
    """Minimise over θ and β, where `hold` ties β to its mean: 0 leaves it free."""
    weight = equations.size**-power

    def residuals(theta: Vector) -> tuple[Vector, Matrix]:
        left = _without_beta(equations, theta, hold)
        jacobian = left.jacobian(equations.a + left.factor[:, None, None] * equations.b)
        return (weight[:, None] * left.residual).ravel(), _flat(weight[:, None, None] * jacobian)

    return minimise_squares(residuals, start).theta


def _attempts(equations: Equations) -> Iterator[Fit]:
    """Fits with free β, from more and more distant starts."""
    for power, holds in ROUTES:
        theta = _from_the_mean(equations)
        for hold in holds:
            theta = _release(equations, theta, power, hold)
        yield _polished(equations, theta)
    generator = np.random.default_rng(0)  # the attack's own draws
    for _ in range(RESTARTS):
        beta = generator.uniform(equations.low, equations.high, len(equations.c))
        yield _polished(equations, _release(equations, _linear(equations, beta, 1.0), 0.5, 0.0))


def _polished(equations: Equations, theta: Vector) -> Fit:
    """Where the equations are met all rounds round alike, so that in the end all weigh the same."""
    return _judged(equations, _release(equations, theta, 0.0, 0.0))


def _held(equations: Equations) -> Fit:
    theta = _from_the_mean(equations)
    for hold in (1.0, 1e-1, 1e-2, 1e-3, 1e-4):
        theta = _release(equations, theta, 1.0, hold)
    return _judged(equations, theta)


def _judged(equations: Equations, theta: Vector) -> Fit:
    """With β out of its range a wrong θ could meet the equations too."""
    beta = np.clip(_without_beta(equations, theta, 0.0).factor, equations.low, equations.high)
    return Fit(theta, beta, equations.misfit(theta, beta))


def _flat(blocks: NDArray[np.float64]) -> Matrix:
    return blocks.reshape(-1, blocks.shape[2])
