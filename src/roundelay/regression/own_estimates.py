"""What a site's own rows would come to alone: for whether the sites differ by more than chance, and whether the common model is one for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Vector
from roundelay.regression.likelihood import Absorbed, Likelihood, Linear

MOST_STEPS = 50
# With a condition number beyond this, or a coefficient of so many deviations, the rows alone do not say.
WORST_CONDITION, FARTHEST = 1e8, 20.0


class OwnEstimate(NamedTuple):
    """A site's own coefficients, in the units of the fit, and their variances where φ is 1."""

    point: Vector
    variance: Vector


def own_estimate(likelihood: Likelihood, constants: tuple[int, ...]) -> OwnEstimate | None:
    """The coefficients that these rows alone give; None where they don't say them all."""
    w = _minimiser(likelihood, np.arange(likelihood.dim), constants)
    if w is None:
        return None
    information = likelihood.information(w)
    if not np.linalg.cond(information) < WORST_CONDITION:
        return None
    return OwnEstimate(w, np.diag(np.linalg.inv(information)))


def _minimiser(likelihood: Likelihood, free: NDArray[np.int64], constants: Sequence[int]) -> Vector | None:
    """By Newton's method in the coordinates that are free, the others at 0; None where there is none."""
    w = np.zeros(likelihood.dim)
    value = likelihood.value(w)
    for _ in range(MOST_STEPS if len(free) else 0):
        gradient, hessian = likelihood.gradient(w)[free], likelihood.hessian(w)[np.ix_(free, free)]
        if not np.linalg.cond(hessian) < WORST_CONDITION:
            return None
        step, length = np.zeros(likelihood.dim), 1.0
        step[free] = -np.linalg.solve(hessian, gradient)
        while not (after := likelihood.value(w + length * step)) <= value + 1e-4 * length * float(
            gradient @ step[free]
        ):
            length *= 0.5
            if length < 1e-10:
                break
        w, value = w + length * step, min(value, after)
        if np.abs(np.delete(w, list(constants))).max(initial=0.0) > FARTHEST:
            return None
        if np.abs(length * step).max() <= 1e-9 * (1.0 + np.abs(w).max()):
            return w
    return None if len(free) else w


class OwnLosses(NamedTuple):
    """What each row loses: under the common model, under a fit to rows of this site of which it is none, and under constants alone."""

    model: Vector
    alone: Vector | None
    nothing: Vector


def own_losses(
    likelihood: Likelihood,
    part: Callable[[NDArray[np.bool_]], Likelihood],
    w: Vector,
    constants: tuple[int, ...],
    folds: int,
) -> OwnLosses | None:
    """The rows' losses, a part of them tried at a time; None for rows that have none of their own, as those of survival.

    `part` gives the likelihood of some of the rows. A constant of the site's own is always the best for the rows that are tried.
    """
    if not isinstance(likelihood, Linear | Absorbed):
        return None
    model = likelihood.each(w)
    every, found = np.arange(likelihood.dim), []
    for free in (every, np.array(constants, np.int64)):
        losses: Vector | None = np.empty(len(model))
        for number in range(folds):
            hidden = np.arange(len(model)) % folds == number
            point = _minimiser(part(~hidden), free, constants)
            tried = part(hidden)
            if point is None or not isinstance(tried, Linear | Absorbed):
                losses = None
                break
            assert losses is not None
            losses[hidden] = tried.each(point)
        found.append(losses)
    alone, nothing = found
    return None if nothing is None else OwnLosses(model, alone, nothing)
