"""Equations e_r = a_r + t_r u_r with one unknown number t_r in each: it is eliminated in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector

Residuals = Callable[[Vector], tuple[Vector, Matrix]]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the method ended: `cost` is ‖r‖²; `settled` where no step makes it smaller any more."""

    theta: Vector
    cost: float
    iterations: int
    settled: bool


def minimise_squares(residuals: Residuals, start: Vector, limit: int = 60, damping: float = 1e-6) -> Minimum:
    """Minimise ‖r(θ)‖² from `start`; `residuals` returns r and its Jacobian.

    Columns are scaled to length 1 in each iteration, so that the units of the unknowns make no difference, and the
    step comes from a singular value decomposition, so that a singular Jacobian does no harm.
    """
    theta = np.array(start, np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        r, jacobian = residuals(theta)
        cost = float(r @ r)
        for iteration in range(limit):
            lengths = np.linalg.norm(jacobian, axis=0)
            lengths[lengths == 0.0] = 1.0
            # Triangular first: a Jacobian has many more rows than columns.
            q, triangle = np.linalg.qr(jacobian / lengths)
            u, values, v = np.linalg.svd(triangle, full_matrices=False)
            along = u.T @ (q.T @ r)
            for _ in range(16):
                step = -(v.T @ (values / (values**2 + damping * values[0] ** 2) * along)) / lengths
                trial, trial_jacobian = residuals(theta + step)
                trial_cost = float(trial @ trial)
                if trial_cost < cost and np.isfinite(trial_jacobian).all():
                    break
                damping = max(10.0 * damping, 1e-15)
            else:
                return Minimum(theta, cost, iteration, True)
            settled = cost - trial_cost <= 1e-13 * cost
            theta, r, jacobian, cost = theta + step, trial, trial_jacobian, trial_cost
            damping = damping / 10.0 if damping > 1e-18 else 0.0
            if settled:
                return Minimum(theta, cost, iteration + 1, True)
    return Minimum(theta, cost, limit, False)


def solve_squares(design: Matrix, right: Vector) -> Vector:
    """The least-squares solution of design·θ = right, of least norm where there are several."""
    return np.asarray(np.linalg.lstsq(design, right, rcond=None)[0], np.float64)


def unknowns(dim: int) -> int:
    """How many numbers a symmetric matrix and a vector have: p(p + 3)/2."""
    return dim * (dim + 3) // 2


def times(vectors: Matrix) -> NDArray[np.float64]:
    """(R, p, p(p+1)/2): the matrices D_r for which D_r·vech(Q) = Q·v_r."""
    rounds, dim = vectors.shape
    row, column = np.triu_indices(dim)
    place = np.arange(len(row))
    design = np.zeros((rounds, dim, len(row)))
    design[:, row, place] = vectors[:, column]
    beside = row != column
    design[:, column[beside], place[beside]] = vectors[:, row[beside]]
    return design


def split(theta: Vector, dim: int) -> tuple[Matrix, Vector]:
    """The symmetric matrix and the vector that θ = (vech Q, h) holds."""
    row, column = np.triu_indices(dim)
    matrix = np.empty((dim, dim))
    matrix[row, column] = matrix[column, row] = theta[: len(row)]
    return matrix, theta[len(row) :]


def joined(matrix: Matrix, vector: Vector) -> Vector:
    """θ again."""
    return np.concatenate([matrix[np.triu_indices(len(vector))], vector])


def gradient_of(hessian: Matrix, slope: Vector) -> Callable[[Vector], Vector]:
    """∇f of f = ½x'Hx + g'x, at one point or at several rows."""
    return lambda x: np.asarray(x) @ hessian + slope


@dataclass(frozen=True, eq=False)
class Eliminated:
    """What is left of the equations when every t_r is chosen best; `hold` ties it to its mean, 0 leaves it free.

    Minimising ‖a + tu‖² + hold·‖u‖²(t − t̄)² over t shrinks what lies along u by √(hold/(1 + hold)), and leaves the
    rest as it is; so does it with a Jacobian, up to terms that vanish with e (Kaufman's form of variable projection).
    """

    residual: Matrix
    factor: Vector
    unit: Matrix
    part: float

    def jacobian(self, derivative: NDArray[np.float64]) -> NDArray[np.float64]:
        """That of the residual, from that of e at fixed t, (R, p, q)."""
        if self.part == 0.0:
            return derivative
        along = np.einsum("rp,rpk->rk", self.unit, derivative)
        return derivative - self.part * self.unit[:, :, None] * along[:, None, :]


def eliminate(at_mean: Matrix, u: Matrix, mean: float, hold: float) -> Eliminated:
    """Choose t_r; `at_mean` is e_r at t = `mean`. An infinite `hold` keeps t there."""
    length = np.maximum(np.linalg.norm(u, axis=1), 1e-150)
    unit = u / length[:, None]
    along = (unit * at_mean).sum(axis=1)
    if np.isinf(hold):
        return Eliminated(at_mean, np.full(len(u), mean), unit, 0.0)
    part = 1.0 - (hold / (1.0 + hold)) ** 0.5
    return Eliminated(at_mean - part * along[:, None] * unit, mean - along / length / (1.0 + hold), unit, part)
