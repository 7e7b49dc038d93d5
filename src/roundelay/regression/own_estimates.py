"""What a site's own rows would come to alone: for the question whether the sites differ by more than chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roundelay.kernels import Vector
from roundelay.regression.likelihood import Likelihood

MOST_STEPS = 50
# With a condition number beyond this, or a coefficient of so many deviations, the rows alone do not say.
WORST_CONDITION, FARTHEST = 1e8, 20.0


class OwnEstimate(NamedTuple):
    """A site's own coefficients, in the units of the fit, and their variances where φ is 1."""

    point: Vector
    variance: Vector


def own_estimate(likelihood: Likelihood, constants: tuple[int, ...]) -> OwnEstimate | None:
    """The coefficients that these rows alone give; None where they don't say them all."""
    w = np.zeros(likelihood.dim)
    value = likelihood.value(w)
    for _ in range(MOST_STEPS):
        gradient, hessian = likelihood.gradient(w), likelihood.hessian(w)
        if not np.linalg.cond(hessian) < WORST_CONDITION:
            return None
        step, length = -np.linalg.solve(hessian, gradient), 1.0
        while not (after := likelihood.value(w + length * step)) <= value + 1e-4 * length * float(gradient @ step):
            length *= 0.5
            if length < 1e-10:
                break
        w, value = w + length * step, min(value, after)
        slopes = np.delete(w, list(constants))
        if np.abs(slopes).max(initial=0.0) > FARTHEST:
            return None
        if np.abs(length * step).max() <= 1e-9 * (1.0 + np.abs(w).max()):
            information = likelihood.information(w)
            if not np.linalg.cond(information) < WORST_CONDITION:
                return None
            return OwnEstimate(w, np.diag(np.linalg.inv(information)))
    return None
