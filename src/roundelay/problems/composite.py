"""The minimiser of Σ f_i + r, against which runs with a regulariser are measured."""

from __future__ import annotations

import numpy as np

from roundelay.kernels import Vector
from roundelay.problems.problem import Problem, total_gradient
from roundelay.problems.regularisers import NoRegulariser, Regulariser


def composite_optimum(problem: Problem, regulariser: Regulariser) -> Vector:
    """The minimiser of Σ f_i + r: accelerated proximal gradient steps, then Newton on the free coordinates."""
    if isinstance(regulariser, NoRegulariser):
        return problem.optimum
    x = _proximal_gradient(problem, regulariser)
    polished = _newton_on_free(problem, regulariser, x)
    step = _step(problem)
    better = _residual(problem, regulariser, polished, step) <= _residual(problem, regulariser, x, step)
    return polished if better else x


def _step(problem: Problem) -> float:
    lipschitz = problem.L
    if not np.isfinite(lipschitz):
        raise ValueError(
            "The minimiser with a regulariser needs the Lipschitz constant of the gradients: give L to the problem."
        )
    return 1.0 / (problem.agents * lipschitz)


def _residual(problem: Problem, regulariser: Regulariser, x: Vector, step: float) -> float:
    moved = regulariser.prox(x - step * total_gradient(problem, x), step)
    return float(np.linalg.norm(moved - x))


def _proximal_gradient(problem: Problem, regulariser: Regulariser) -> Vector:
    """Nesterov's accelerated form, started anew whenever it turns back."""
    step = _step(problem)
    x = regulariser.prox(np.zeros(problem.dim), step)
    ahead, momentum = x, 1.0
    for _ in range(100_000):
        moved = regulariser.prox(ahead - step * total_gradient(problem, ahead), step)
        if np.linalg.norm(moved - ahead) <= 1e-13 * (1.0 + np.linalg.norm(moved)):
            return moved
        if (ahead - moved) @ (moved - x) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = moved + (momentum - 1.0) / following * (moved - x)
        x, momentum = moved, following
    return x


def _newton_on_free(problem: Problem, regulariser: Regulariser, x: Vector) -> Vector:
    """With the coordinates at a kink held fixed the rest is smooth: two Newton steps finish it."""
    free = regulariser.is_free(x)
    if not free.any():
        return x
    for _ in range(2):
        try:
            hessian = sum(problem.hessian(agent, x) for agent in range(problem.agents))
        except ValueError:  # a problem without Hessians: the gradient steps must do
            return x
        pull = -(total_gradient(problem, x) + regulariser.slope(x))[free]
        x = x.copy()
        x[free] += np.linalg.lstsq(np.asarray(hessian)[np.ix_(free, free)], pull, rcond=None)[0]
    return x
