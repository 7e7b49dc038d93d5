"""The optimisers once more, as a textbook has them and without questions: what the real ones are held against."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundelay.kernels import Vector
from tests.sealed.support import pooled_gradient, pooled_hessian, pooled_value


def krylov(problem: Any, start: Vector, count: int) -> list[Vector]:
    """argmin of a quadratic over start + span{r, Hr, …, H^(k−1) r}, k = 1, 2, …, from an orthonormal basis of it."""
    hessian, right = pooled_hessian(problem, start), -pooled_gradient(problem, start)
    basis, found = np.zeros((len(start), 0)), []
    following = right
    for _ in range(count):
        for _again in range(2):  # once more, for rounding
            following = following - basis @ (basis.T @ following)
        basis = np.column_stack([basis, following / np.linalg.norm(following)])
        found.append(start + basis @ np.linalg.solve(basis.T @ hessian @ basis, basis.T @ right))
        following = hessian @ basis[:, -1]
    return found


def newton(problem: Any, start: Vector, count: int) -> list[Vector]:
    """Every point at which a damped Newton method with Chebyshev's correction asks, first the start."""
    z, asked = np.array(start), [np.array(start)]
    before: tuple[Vector, Any] | None = None
    while len(asked) < count:
        gradient, hessian = pooled_gradient(problem, z), pooled_hessian(problem, z)
        plain = -np.linalg.solve(hessian, gradient)
        ahead = plain
        if before is not None:
            step, old = before
            share = (plain @ hessian @ step) / (step @ hessian @ step)
            third = share * (hessian - old) @ plain
            extra = -np.linalg.solve(hessian, 0.5 * third)
            ratio = np.sqrt((extra @ hessian @ extra) / (plain @ hessian @ plain))
            ahead = plain + extra / max(1.0, 2.0 * ratio)
        here, length = pooled_value(problem, z), 1.0
        while True:
            trial = z + length * ahead
            asked.append(trial)
            slope, there = length * (gradient @ ahead), pooled_value(problem, trial)
            if there - here <= 1e-4 * slope or len(asked) >= count:
                break
            # The parabola with this value and slope at 0 and that value at 1 has its minimum here.
            length *= float(np.clip(slope / (2.0 * (slope - (there - here))), 0.1, 0.5))
        before, z = (trial - z, hessian), trial
    return asked[:count]
