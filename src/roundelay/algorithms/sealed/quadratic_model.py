"""The quadratic model of Σf_i at a point, with r: its minimiser, and what the change of a Hessian says. All of it public."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.problems import Regulariser
from roundelay.problems.regularisers import SimpleShape, simple_shape
from roundelay.problems.solving import widths_of

ROUNDING = float(np.finfo(np.float64).eps)


def model_minimiser(hessian: Matrix, gradient: Vector, centre: Vector, regulariser: Regulariser) -> Vector:
    """argmin_z ½(z − c)'H(z − c) + g'(z − c) + r(z): of least distance from c where there are several."""
    if regulariser.is_zero:
        return centre - _solved(hessian, gradient)
    shape = simple_shape(regulariser)
    z = _by_coordinates(hessian, gradient, centre, shape)
    return _on_free(hessian, gradient, centre, shape, z)


def _solved(hessian: Matrix, right: Vector) -> Vector:
    """H⁻¹g in units that make the diagonal 1; along a direction without curvature nothing, along a negative one its size."""
    widths = widths_of(np.abs(hessian))
    curvatures, directions = np.linalg.eigh(hessian / np.outer(widths, widths))
    size = np.abs(curvatures)
    kept = size > len(right) * ROUNDING * size.max(initial=0.0)
    along = np.where(kept, directions.T @ (right / widths) / np.where(kept, size, 1.0), 0.0)
    return directions @ along / widths


def _by_coordinates(hessian: Matrix, gradient: Vector, centre: Vector, shape: SimpleShape) -> Vector:
    """Coordinate descent: each coordinate in turn to its own minimum."""
    z = np.clip(centre, shape.lower, shape.upper)
    slope = gradient + hessian @ (z - centre)
    bends, weights = np.diag(hessian), np.broadcast_to(shape.weight, len(z))
    for _ in range(1000):
        largest = 0.0
        for d in np.flatnonzero(bends > 0.0):
            wanted = z[d] - slope[d] / bends[d]
            wanted = np.sign(wanted) * max(abs(wanted) - weights[d] / bends[d], 0.0)
            change = min(max(wanted, shape.lower), shape.upper) - z[d]
            if change != 0.0:
                z[d] += change
                slope += change * hessian[d]
                largest = max(largest, abs(change))
        if largest <= 1e-9 * np.abs(z).max(initial=1e-300):
            break
    return z


def _on_free(hessian: Matrix, gradient: Vector, centre: Vector, shape: SimpleShape, z: Vector) -> Vector:
    """With the coordinates at a kink held fixed the rest is a linear system; what it leaves the shape by is held next."""
    weights = np.broadcast_to(shape.weight, len(z))
    free = (z > shape.lower) & (z < shape.upper) & ((z != 0.0) | (weights == 0.0))
    signs = np.sign(z)
    for _ in range(len(z)):
        if not free.any():
            return z
        slope = gradient + hessian @ (z - centre) + weights * signs
        moved = z.copy()
        moved[free] -= _solved(hessian[np.ix_(free, free)], slope[free])
        left = free & ((moved < shape.lower) | (moved > shape.upper) | ((moved * signs < 0.0) & (weights > 0.0)))
        if not left.any():
            return moved
        z = np.clip(np.where(left & (weights > 0.0), 0.0, moved), shape.lower, shape.upper)
        free &= ~left
    return z


class Change(NamedTuple):
    """A step, and by how much it changed the Hessian."""

    step: Vector
    hessian: Matrix


def corrected(
    hessian: Matrix, gradient: Vector, z: Vector, regulariser: Regulariser, ahead: Vector, changed: Change
) -> Vector:
    """Newton's step n, with Chebyshev's correction: half of ∇³f·n·n is added to the gradient, at most half of the step in the norm of H.

    ∇³f·n is taken for the last change of H, as far as n goes along the step that made it. A step that is changed by no more than its
    half still goes down.
    """
    size, bend = float(ahead @ hessian @ ahead), float(changed.step @ hessian @ changed.step)
    if not (size > 0.0 and bend > 0.0):
        return ahead
    along = float(ahead @ hessian @ changed.step) / bend
    bent = gradient + 0.5 * along * (changed.hessian @ ahead)
    correction = model_minimiser(hessian, bent, z, regulariser) - z - ahead
    excess = float(np.sqrt(correction @ hessian @ correction / size))
    return ahead + correction * min(1.0, 0.5 / excess) if excess > 0.0 else ahead


def drift_over(hessian: Matrix, ahead: Vector, changed: Change) -> float:
    """By what part of itself the Hessian will have changed at the end of a step n, going by its last change ΔH over the step s.

    That is ‖ΔH·n‖/‖s‖ in the norms of H⁻¹ and H; infinite where there is no curvature to go by. Newton's step leaves at most half of
    this part of the error, and a step from there by the old Hessian this part of that.
    """
    turned = changed.hessian @ ahead
    bend = float(changed.step @ hessian @ changed.step)
    return float(np.sqrt(abs(turned @ _solved(hessian, turned)) / bend)) if bend > 0.0 else np.inf
