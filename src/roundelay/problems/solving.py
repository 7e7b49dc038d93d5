"""The general ways to a proximal step and to the minimiser of the sum, for problems that know no better one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.kernels import Matrix, Vector

if TYPE_CHECKING:
    from roundelay.problems.problem import Problem

Slope = Callable[[Vector], Vector]
Bend = Callable[[Vector], Any]

# A residual of the proximal equation above this, relative to its terms, is reported as a failure.
PROX_TOLERANCE = 1e-8
# Powell's hybrid method keeps a dense Jacobian; beyond some hundred unknowns Krylov's needs none, and other short cuts pay too.
MOST_DENSE = 300
# Of a curvature with more unknowns no matrix is made: steps are found by conjugate gradients.
MOST_FACTORED = 4000
# Proximal points with a penalty that falls to this part of the curvature.
LEAST_PENALTY, MOST_POINTS = 1e-12, 100


def prox_by_root(problem: Problem, agent: int, v: Vector, penalty: float, start: Vector) -> Vector:
    """argmin_x f_i(x) + penalty/2 ‖x − v‖², as scipy's root of the gradient."""
    from scipy.optimize import root  # late: it takes half a second, which other problems need not wait for

    def slope(x: Vector) -> Vector:
        return problem.gradient(agent, x) + penalty * (x - v)

    bend: Bend | None = None
    if problem.has_hessians:

        def bend(x: Vector) -> Matrix:
            return problem.hessian(agent, x) + penalty * np.eye(problem.dim)

    first = np.array(start, np.float64)
    if problem.dim <= MOST_DENSE:
        x = root(slope, first, jac=bend, method="hybr", options={"xtol": 1e-15}).x
    else:
        x = root(slope, first, method="krylov", options={"fatol": 1e-12}).x
    scale = penalty * (np.linalg.norm(x) + np.linalg.norm(v)) + np.linalg.norm(problem.gradient(agent, x))
    if not np.linalg.norm(slope(x)) <= PROX_TOLERANCE * scale:
        raise ValueError(
            f"SciPy could not solve the proximal step of agent {agent} from its gradient (residual "
            f"{np.linalg.norm(slope(x)):.1e}): check that the function is convex and the gradient right, "
            "or give the proximal step itself."
        )
    return np.asarray(x, np.float64)


def optimum_by_root(problem: Problem) -> Vector:
    """Where Σ ∇f_i(x) = 0, by scipy."""
    from scipy.optimize import minimize, root

    def everywhere(x: Vector) -> Matrix:
        return np.tile(x, (problem.agents, 1))

    def slope(x: Vector) -> Vector:
        return problem.gradients(everywhere(x)).sum(axis=0)

    x = np.zeros(problem.dim)
    if problem.has_values:
        total = lambda x: problem.values(everywhere(x)).sum()  # noqa: E731
        x = minimize(total, x, jac=slope, method="BFGS", options={"gtol": 1e-10}).x
    answer = root(slope, x, method="hybr" if problem.dim <= MOST_DENSE else "krylov", tol=1e-14).x
    x = answer if np.linalg.norm(slope(answer)) <= np.linalg.norm(slope(x)) else x
    if not np.linalg.norm(slope(x)) <= 1e-7 * (1.0 + np.linalg.norm(problem.gradients(everywhere(x)))):
        raise ValueError(
            f"SciPy did not find the minimiser of the sum (‖Σ∇f_i‖ is still {np.linalg.norm(slope(x)):.1e}): "
            "check the gradients, or that a minimiser exists."
        )
    check_minimum(problem, slope, x)
    return np.asarray(x, np.float64)


# How far beside a point one looks for whether it is a minimum, in sizes of the point.
BESIDE = 1e-3
# Slopes below these parts of the agents' own are taken for none, and for rounding.
LEVEL, ROUNDING = 1e-7, 1e-12


def check_minimum(problem: Problem, slope: Slope, x: Vector) -> None:
    """Refuse a point beside which the sum goes down: a maximum, a saddle, or no stationary point at all.

    Along the direction of least curvature, and along the gradient where there is one, the sum must go up on both sides. That of a
    convex sum never falls by more than the slope at x itself, so that none is refused.
    """
    if problem.mu > 0.0:
        return
    here, along = slope(x), least_curved(slope, x)
    steep = float(np.linalg.norm(here))
    sizes = float(np.linalg.norm(problem.gradients(np.tile(x, (problem.agents, 1)))))
    beside = BESIDE * max(1.0, float(np.linalg.norm(x)))
    directions = [(along, steep)]
    if steep > LEVEL * (1.0 + sizes):
        directions.append((here / steep, 0.0))
    for direction, allowed in directions:
        ahead = float(slope(x + beside * direction) @ direction)
        behind = -float(slope(x - beside * direction) @ direction)
        if min(ahead, behind) < -(allowed + ROUNDING * max(abs(ahead), abs(behind), sizes)):
            raise ValueError(
                f"Σf_i has no minimum near {_some(x)}: beside it the sum goes down, as at a maximum or a saddle of functions that are "
                "not convex. Give the minimiser that you mean as optimum=…, or optimum=None to do without one."
            )


def least_curved(slope: Slope, x: Vector) -> Vector:
    """The direction of the least curvature at x, from differences of gradients."""
    widths = np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(x))
    if len(x) <= MOST_DENSE:
        hessian = np.array([slope(x + step) - slope(x - step) for step in np.diag(widths)]) / (2.0 * widths[:, None])
        return np.asarray(np.linalg.eigh(0.5 * (hessian + hessian.T))[1][:, 0])
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def bent(direction: Vector) -> Vector:
        step = widths.max() * direction.ravel()
        return (slope(x + step) - slope(x - step)) / (2.0 * widths.max())

    anywhere = np.ones(len(x)) / np.sqrt(len(x))
    try:
        return np.asarray(eigsh(LinearOperator((len(x), len(x)), bent), 1, which="SA", tol=1e-3, v0=anywhere)[1][:, 0])
    except ArpackNoConvergence as error:
        return np.asarray(error.eigenvectors[:, 0]) if error.eigenvectors.size else anywhere


def _some(x: Vector, shown: int = 4) -> str:
    more = ", …" if len(x) > shown else ""
    return f"x = ({', '.join(f'{value:.4g}' for value in x[:shown])}{more})"


def optimum_by_points(slope: Slope, bend: Bend, rows: Matrix, width: float, curvature: float) -> Vector:
    """Where slope(x) = 0, by proximal points whose penalty fades: each is a Newton method with enough curvature.

    `curvature` is about the largest that there is.
    """
    x, penalty = np.zeros(rows.shape[1]), curvature
    for _ in range(MOST_POINTS if curvature > 0.0 else 0):
        centre, bent = x, multiple_of_identity(penalty, len(x))
        x, _ = newton(
            lambda x: slope(x) + penalty * (x - centre), lambda x: bend(x) + bent, rows, centre, width  # noqa: B023
        )  # fmt: skip
        if penalty == LEAST_PENALTY * curvature and np.linalg.norm(x - centre) <= 1e-12 * np.linalg.norm(x):
            return x
        penalty = max(0.1 * penalty, LEAST_PENALTY * curvature)
    if curvature > 0.0:
        raise ValueError(
            f"Newton's method did not find the minimiser of the sum (‖Σ∇f_i‖ is still {np.linalg.norm(slope(x)):.1e}): "
            "bring the features to similar units, or add a ridge, for instance ridge=1e-3."
        )
    return x


def newton(slope: Slope, bend: Bend, rows: Matrix, start: Vector, width: float = 1.0) -> tuple[Vector, bool]:
    """Solve slope(x) = 0 for a loss over `rows`, in the way of `row_kernel.minimise`; also whether it got there."""
    x = np.array(start, np.float64)
    g, before = slope(x), 1.0
    for _ in range(1000):
        step = newton_step(bend(x), g)
        if not np.isfinite(step).all():  # where there is no curvature left to go by
            return x, False
        change = np.abs(rows @ step).max() / width
        shorter, longer, length = 0.0, 0.0, 1.0
        for _trial in range(60):
            trial = x - length * step
            trial_slope = slope(trial)
            ahead, decrease = step @ trial_slope, step @ g
            if ahead < -0.5 * decrease:
                longer = length
            elif ahead > 0.5 * decrease and longer > 0.0:
                shorter = length
            else:
                break
            length = 0.5 * (shorter + longer)
        x, g = trial, trial_slope
        if np.linalg.norm(step) <= np.linalg.norm(x) and (change <= 1e-8 or 0.5 * before < change <= 1e-3):
            return x, True
        before = change
    return x, False


def newton_step(hessian: Any, g: Vector) -> Vector:
    """H⁻¹g, of least norm in units that make the diagonal 1, so that a small curvature is not taken for none."""
    if not isinstance(hessian, np.ndarray):
        from scipy.sparse.linalg import cg

        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(cg(hessian, g, rtol=1e-12, maxiter=10 * len(g))[0], np.float64)
    widths = widths_of(hessian)
    scaled = hessian / np.outer(widths, widths)
    if len(g) > MOST_DENSE:  # a tenth of the time, where there is a factor
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        try:
            return np.asarray(cho_solve(cho_factor(scaled), g / widths) / widths, np.float64)
        except LinAlgError:
            pass
    return np.asarray(np.linalg.lstsq(scaled, g / widths, rcond=None)[0] / widths, np.float64)


def solver_of_triangle(triangle: Matrix) -> Callable[[Vector], Vector]:
    """Solve R'Rx = g: x of least norm, and by substitution, in a fraction of the time, where R is large and far from singular."""
    if len(triangle) > MOST_DENSE:
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dtrcon

        if dtrcon(triangle)[0] > 1e-12:
            return lambda g: np.asarray(
                solve_triangular(triangle, solve_triangular(triangle, g, trans="T")), np.float64
            )

    def solve(g: Vector) -> Vector:
        half = np.linalg.lstsq(triangle.T, g, rcond=None)[0]
        return np.asarray(np.linalg.lstsq(triangle, half, rcond=None)[0], np.float64)

    return solve


def multiple_of_identity(factor: float, dim: int) -> Any:
    """factor·I, as a matrix where it is small enough."""
    if dim <= MOST_FACTORED:
        return factor * np.eye(dim)
    from scipy.sparse.linalg import LinearOperator

    return LinearOperator((dim, dim), lambda direction: factor * direction, dtype=np.float64)


def widths_of(hessian: Matrix) -> Vector:
    """The units that make the diagonal of a Hessian 1."""
    widths = np.sqrt(np.diag(hessian))
    return np.where(widths > 0.0, widths, 1.0)
