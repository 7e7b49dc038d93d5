"""Positive responses whose spread grows with their mean: costs, times, concentrations."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
import scipy

from roundelay.kernels import Vector
from roundelay.registry import register
from roundelay.regression.families.family import (
    Family,
    exponential,
    exponential_curvature,
    exponential_slope,
)


@register(Family, "gamma")
@dataclass(frozen=True)
class Gamma:
    """A gamma distribution with the mean e^η and the variance φμ²."""

    links: ClassVar[tuple[str, ...]] = ("log",)
    dispersed: ClassVar[bool] = True
    ends: ClassVar[tuple[float | None, float | None]] = (None, None)
    ratio: ClassVar[str] = "ratio of means"
    link: str = "log"

    def predictor(self, mean: float) -> float:
        """log μ."""
        return log(mean)

    def mean(self, eta: Vector) -> Vector:
        """μ = e^η."""
        return exponential(eta)

    def mean_slope(self, eta: Vector) -> Vector:
        """e^η."""
        return exponential_slope(eta)

    def variance(self, mean: Vector) -> Vector:
        """μ²."""
        return mean**2

    def half_deviance(self, eta: Vector, y: Vector) -> Vector:
        """y/μ − 1 − log(y/μ)."""
        over = np.log(y) - eta
        return exponential(over) - 1.0 - over

    def slope(self, eta: Vector, y: Vector) -> Vector:
        """1 − y/μ."""
        return 1.0 - exponential_slope(np.log(y) - eta)

    def curvature(self, eta: Vector, y: Vector) -> Vector:
        """y/μ."""
        return exponential_curvature(np.log(y) - eta)

    def weight(self, eta: Vector) -> Vector:
        """1."""
        return np.ones_like(eta)

    def log_likelihood(self, y: Vector, mean: Vector, weight: Vector, dispersion: float) -> Vector:
        """Of a gamma distribution with the shape weight/φ."""
        shape = weight / dispersion
        return shape * np.log(shape * y / mean) - shape * y / mean - scipy.special.gammaln(shape) - np.log(y)

    def refusal(self, y: Vector) -> tuple[int, str] | None:
        """A time or a cost is above 0."""
        bad = y <= 0.0
        return (int(np.argmax(bad)), "numbers above 0") if bad.any() else None
