"""A regulariser r that the token carries: the agents then minimise Σ f_i + r.

The token holds z̄, and whoever receives it works with z = prox of r at z̄. The kernel function
`at_token(regulariser, scale, token, z)` does that; `scale` is what the step size makes of r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import DIM, Numbers, Part, Vector, each


class Regulariser(Protocol):
    """A convex function of x that acts on every coordinate by itself."""

    def part(self) -> Part:
        """The kernel function `at_token` and its numbers."""

    def value(self, x: Vector) -> float:
        """r(x)."""

    def prox(self, v: Vector, scale: float) -> Vector:
        """argmin_x scale·r(x) + ½‖x − v‖²."""

    def is_free(self, x: Vector) -> NDArray[np.bool_]:
        """Which coordinates lie where r is smooth."""

    def slope(self, x: Vector) -> Vector:
        """∇r(x) in the free coordinates."""


def plain_token(regulariser: Numbers, scale: float, token: Vector, z: Vector) -> None:
    """No regulariser: z is the token."""
    for d in each(DIM):
        z[d] = token[d]


class L1Numbers(NamedTuple):
    """The weight of ‖x‖₁."""

    weight: float


def soft_threshold(regulariser: L1Numbers, scale: float, token: Vector, z: Vector) -> None:
    """Each coordinate moves towards 0 by the weight, and stops there."""
    threshold = scale * regulariser.weight
    for d in each(DIM):
        z[d] = np.sign(token[d]) * np.maximum(np.abs(token[d]) - threshold, 0.0)


class BoxNumbers(NamedTuple):
    """The bounds of every coordinate."""

    lower: float
    upper: float


def clip(regulariser: BoxNumbers, scale: float, token: Vector, z: Vector) -> None:
    """Each coordinate moves to the nearest point between the bounds."""
    for d in each(DIM):
        z[d] = np.minimum(np.maximum(token[d], regulariser.lower), regulariser.upper)


@dataclass(frozen=True)
class NoRegulariser:
    """r = 0."""

    def part(self) -> Part:
        """The kernel function `at_token` and its numbers."""
        return Part((("at_token", plain_token),))

    def value(self, x: Vector) -> float:
        """r(x) = 0."""
        return 0.0

    def prox(self, v: Vector, scale: float) -> Vector:
        """V itself."""
        return v

    def is_free(self, x: Vector) -> NDArray[np.bool_]:
        """All coordinates."""
        return np.ones(len(x), bool)

    def slope(self, x: Vector) -> Vector:
        """Zero."""
        return np.zeros(len(x))


@dataclass(frozen=True)
class L1:
    """r(x) = weight·‖x‖₁: few coordinates stay away from 0."""

    weight: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weight) and self.weight >= 0.0):
            raise ValueError(f"The weight of ‖x‖₁ is {self.weight}: use a finite number that is not negative.")

    def part(self) -> Part:
        """The kernel function `at_token` and its numbers."""
        return Part((("at_token", soft_threshold),), L1Numbers(float(self.weight)))

    def value(self, x: Vector) -> float:
        """weight·‖x‖₁."""
        return float(self.weight * np.abs(x).sum())

    def prox(self, v: Vector, scale: float) -> Vector:
        """Soft thresholding."""
        return np.sign(v) * np.maximum(np.abs(v) - scale * self.weight, 0.0)

    def is_free(self, x: Vector) -> NDArray[np.bool_]:
        """Away from 0."""
        return x != 0.0

    def slope(self, x: Vector) -> Vector:
        """weight·sign(x)."""
        return self.weight * np.sign(x)


@dataclass(frozen=True)
class Box:
    """r(x) = 0 where lower ≤ x ≤ upper in every coordinate, and infinite elsewhere."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper and self.lower < np.inf and self.upper > -np.inf):
            raise ValueError(f"The box from {self.lower} to {self.upper} is empty: lower must not exceed upper.")

    def part(self) -> Part:
        """The kernel function `at_token` and its numbers."""
        return Part((("at_token", clip),), BoxNumbers(float(self.lower), float(self.upper)))

    def value(self, x: Vector) -> float:
        """0 inside."""
        return 0.0 if ((x >= self.lower) & (x <= self.upper)).all() else float("inf")

    def prox(self, v: Vector, scale: float) -> Vector:
        """The nearest point of the box."""
        return np.clip(v, self.lower, self.upper)

    def is_free(self, x: Vector) -> NDArray[np.bool_]:
        """Strictly inside."""
        return (x > self.lower) & (x < self.upper)

    def slope(self, x: Vector) -> Vector:
        """Zero."""
        return np.zeros(len(x))


def NonNegative() -> Box:  # noqa: N802
    """r(x) = 0 where no coordinate is negative, and infinite elsewhere."""
    return Box(0.0, float("inf"))
