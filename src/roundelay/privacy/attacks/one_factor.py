"""Equations e_r = a_r + t_r u_r with one unknown number t_r in each: it is eliminated in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector


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
