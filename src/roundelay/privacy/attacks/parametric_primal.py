"""What primal noise does not hide: a plain regression finds the function (PI-ADMM2)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle

import numpy as np

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
    Minimum,
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

# How sure one may be of a guess of x⁰, in widths of its distribution, and how many are drawn.
DOUBTS = (1.0, 0.1, 10.0, 0.01, 100.0)
DRAWS = 15


@register(Attack, "parametric, primal")
def parametric_primal(visits: Visits, public: Public) -> Recovered:
    """H, g and every x and y of an agent with a quadratic f = ½x'Hx + g'x under PI-ADMM2.

        x_{r+1} = A(y_r + ρz_r) − Ag + ω_r,  A = (H + ρI)⁻¹    (exact step)
        y_{r+1}/ρ = (Hx_r + g)/ρ − ω_r                         (first-order step)

    The noise is in x itself, so that x_{r+1} = ½(d_r + z_r + x_r) and y = ρ(x − s) hold exactly. But for x⁰ all that
    stands on the right is therefore known, and least squares over (vech A, Ag, x⁰), or (vech H, g, x⁰), is the
    maximum of the likelihood. Most of what it learns it learns from the first visits, in which a random start makes x
    move far more than σ. Exact for σ = 0. `residual` is what is left of each number, an estimate of σ; the attack has
    converged where the public σ explains it.
    """
    method, known = admm(public), evidence(visits, public)
    if method.facts.perturbation.noise != "x":
        raise ValueError(
            "This attack has the equations of primal noise, PI-ADMM2: use parametric_step_size or parametric_first_order."
        )
    one_update_each(visits)
    numbers, size = len(visits) * public.dim, unknowns(public.dim) + public.dim
    if numbers <= size:
        raise ValueError(
            f"{len(visits)} visits of agent {visits.agent} are {numbers} equations, too few for {size} unknowns: observe more hops."
        )
    # x_r = away_r + 2^{−r}·x⁰
    away, halves = forward(known, visits, np.zeros(public.dim), 1.0), 0.5 ** np.arange(len(visits) + 1.0)
    tangent = first_order(method)
    regression = _first_order(known, away, halves) if tangent else _exact(known, away, halves)
    freedom, sigma = numbers - size, method.facts.perturbation.sigma
    # What σ and rounding explain: five deviations above what is to be expected.
    limit = sigma * (1.0 + 5.0 / (2.0 * freedom) ** 0.5) + 1e-12 * known.scale
    width = min(method.facts.start.width, known.scale)
    best = regression.solve(expected_start(method, public.dim), width, limit, limit**2 * freedom)
    start = best.theta[-public.dim :]
    found, slope = split(best.theta[: -public.dim], public.dim)
    inverse = found if tangent else np.linalg.pinv(found)
    hessian = found if tangent else inverse - known.rho * np.eye(public.dim)
    g = slope if tangent else inverse @ slope
    x = away + halves[:, None] * start
    y = known.rho * (x - known.s)
    left = (best.cost / freedom) ** 0.5
    words = (
        f"{len(visits)} visits of agent {visits.agent} leave a noise of {left:.2g}, where the public σ is {sigma:.2g}."
    )
    converged = left <= limit and known.s_is_known
    return Recovered(x, y, left, converged, words, hessian, g, gradient_of(hessian, g))


@dataclass(frozen=True, eq=False)
class _Regression:
    """scale·(A(fixed_r + moving_r·x⁰) + sign·a) = target_r + target_moving_r·x⁰ in (vech A, a) and x⁰."""

    fixed: Matrix
    moving: Vector
    target: Matrix
    target_moving: Vector
    sign: float
    scale: float

    def design(self, start: Vector) -> Matrix:
        """The coefficients of (vech A, a) for a given x⁰."""
        rounds, dim = self.fixed.shape
        identity = np.broadcast_to(np.eye(dim), (rounds, dim, dim))
        blocks = [times(self.fixed + self.moving[:, None] * start), self.sign * identity]
        return self.scale * np.concatenate(blocks, axis=2).reshape(rounds * dim, -1)

    def right(self, start: Vector) -> Vector:
        """What they must give."""
        return (self.target + self.target_moving[:, None] * start).ravel()

    def residuals(self, unknown: Vector) -> tuple[Vector, Matrix]:
        """The gaps and their Jacobian."""
        dim = self.fixed.shape[1]
        theta, start = unknown[:-dim], unknown[-dim:]
        columns, (matrix, _) = self.design(start), split(theta, dim)
        by_start = (self.scale * self.moving)[:, None, None] * matrix - self.target_moving[:, None, None] * np.eye(dim)
        return columns @ theta - self.right(start), np.hstack([columns, by_start.reshape(-1, dim)])

    def guess(self, start: Vector, doubt: float, noise: float) -> Vector:
        """All unknowns where x⁰ is `start` within `doubt`: first (A, a) with less weight on the early visits, then x⁰."""
        dim = len(start)
        weight = np.repeat(1.0 / (noise + doubt * self.target_moving), dim)
        theta = solve_squares(weight[:, None] * self.design(start), weight * self.right(start))
        gap, jacobian = self.residuals(np.concatenate([theta, start]))
        return np.concatenate([theta, start - solve_squares(jacobian[:, -dim:], gap)])

    def solve(self, mean: Vector, width: float, noise: float, enough: float) -> Minimum:
        """Descend from one guess after another until the cost is `enough`."""
        generator = np.random.default_rng(0)  # the attack's own draws
        starts = [mean] * len(DOUBTS) + list(mean + width * generator.uniform(-1.0, 1.0, (DRAWS, len(mean))))
        best: Minimum | None = None
        for start, doubt in zip(starts, cycle(DOUBTS), strict=False):
            fit = minimise_squares(self.residuals, self.guess(start, doubt * width + noise, noise))
            best = fit if best is None or fit.cost < best.cost else best
            if best.cost <= enough:
                break
        assert best is not None
        return best


def _exact(known: Evidence, away: Matrix, halves: Vector) -> _Regression:
    """(vech A, Ag) and x⁰ of x_{r+1} = A(y_r + ρz_r) − Ag."""
    fixed = known.rho * (away[:-1] - known.s[:-1] + known.z)
    return _Regression(fixed, known.rho * halves[:-1], away[1:], halves[1:], -1.0, 1.0)


def _first_order(known: Evidence, away: Matrix, halves: Vector) -> _Regression:
    """(vech H, g) and x⁰ of y_{r+1}/ρ = (Hx_r + g)/ρ."""
    return _Regression(away[:-1], halves[:-1], away[1:] - known.s[1:], halves[1:], 1.0, 1.0 / known.rho)
