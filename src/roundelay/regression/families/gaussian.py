"""Responses on a line, spread alike about their mean: linear regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from roundelay.kernels import Vector
from roundelay.registry import register
from roundelay.regression.families.family import Family


@register(Family, "gaussian")
@dataclass(frozen=True)
class Gaussian:
    """y ~ N(η, φ)."""

    links: ClassVar[tuple[str, ...]] = ("identity",)
    dispersed: ClassVar[bool] = True
    ends: ClassVar[tuple[float | None, float | None]] = (None, None)
    ratio: ClassVar[str] = ""
    link: str = "identity"

    def predictor(self, mean: float) -> float:
        """The η of a mean."""
        return mean

    def mean(self, eta: Vector) -> Vector:
        """μ = η."""
        return eta

    def mean_slope(self, eta: Vector) -> Vector:
        """1."""
        return np.ones_like(eta)

    def variance(self, mean: Vector) -> Vector:
        """1."""
        return np.ones_like(mean)

    def half_deviance(self, eta: Vector, y: Vector) -> Vector:
        """(y − η)²/2."""
        return 0.5 * (y - eta) ** 2

    def slope(self, eta: Vector, y: Vector) -> Vector:
        """η − y."""
        return eta - y

    def curvature(self, eta: Vector, y: Vector) -> Vector:
        """1."""
        return np.ones_like(eta)

    def weight(self, eta: Vector) -> Vector:
        """1."""
        return np.ones_like(eta)

    def log_likelihood(self, y: Vector, mean: Vector, weight: Vector, dispersion: float) -> Vector:
        """Of a normal distribution with the variance φ/weight."""
        return 0.5 * (np.log(weight / (2.0 * np.pi * dispersion)) - weight * (y - mean) ** 2 / dispersion)

    def refusal(self, y: Vector) -> tuple[int, str] | None:
        """Any number will do."""
        return None
