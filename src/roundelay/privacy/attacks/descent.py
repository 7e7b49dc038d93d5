"""Least squares, linear and by Levenberg and Marquardt's method, for the small dense problems that the attacks pose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
