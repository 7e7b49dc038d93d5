"""What the parametric attacks solve with: least squares, symmetric matrices as vectors, and a number to eliminate in each equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector

# What is left of the equations, and its Jacobian.
Residuals = Callable[[Vector], tuple[Vector, Matrix]]
# A step or a gain smaller than this part is rounding.
DIGITS = 1e-15


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the solver ended: `cost` is ‖r‖²; `settled` where no step makes it smaller any more."""

    theta: Vector
    cost: float
    settled: bool


def minimise_squares(residuals: Residuals, start: Vector, limit: int = 60) -> Minimum:
    """Minimise ‖r(θ)‖² from `start` by Levenberg and Marquardt's method; `residuals` returns r and its Jacobian.

    The unknowns are scaled by the Jacobian, so that their units make no difference.
    """

    @lru_cache(maxsize=1)  # the solver asks for r and for the Jacobian, one after the other
    def at(theta: bytes) -> tuple[Vector, Matrix]:
        return residuals(np.frombuffer(theta))

    def gaps(theta: Vector) -> Vector:
        return at(theta.tobytes())[0]

    def slopes(theta: Vector) -> Matrix:
        return at(theta.tobytes())[1]

    begin = np.array(start, np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        r, jacobian = at(begin.tobytes())
        if not (np.isfinite(r).all() and np.isfinite(jacobian).all()):
            return Minimum(begin, np.inf, False)
        answer = scipy.optimize.least_squares(
            gaps,
            begin,
            slopes,
            method="lm" if len(r) >= len(begin) else "trf",  # MINPACK's wants as many equations as unknowns
            x_scale="jac",
            ftol=DIGITS,
            xtol=DIGITS,
            gtol=DIGITS,
            max_nfev=limit,
        )
    return Minimum(answer.x, 2.0 * float(answer.cost), answer.status > 0)


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
    """What is left of equations e_r = a_r + t_r u_r, with an unknown number t_r in each, when every t_r is chosen best.

    `hold` ties t_r to its mean, 0 leaves it free. Minimising ‖a + tu‖² + hold·‖u‖²(t − t̄)² over t shrinks what lies along u by √(hold/(1 + hold)), and leaves the
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
