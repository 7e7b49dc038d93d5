"""Counts: rates and their ratios."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
import scipy

from roundelay.kernels import Vector
from roundelay.registry import register
from roundelay.regression.families.family import Family, exponential, exponential_curvature, exponential_slope


@register(Family, "poisson")
@dataclass(frozen=True)
class Poisson:
    """y ~ Poisson(e^η)."""

    links: ClassVar[tuple[str, ...]] = ("log",)
    dispersed: ClassVar[bool] = False
    ends: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    ratio: ClassVar[str] = "rate ratio"
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
        """μ."""
        return mean

    def half_deviance(self, eta: Vector, y: Vector) -> Vector:
        """y log(y/μ) − (y − μ)."""
        return scipy.special.xlogy(y, y) - y - y * eta + exponential(eta)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        """μ − y."""
        return exponential_slope(eta) - y

    def curvature(self, eta: Vector, y: Vector) -> Vector:
        """μ."""
        return exponential_curvature(eta)

    def weight(self, eta: Vector) -> Vector:
        """μ."""
        return exponential_curvature(eta)

    def log_likelihood(self, y: Vector, mean: Vector, weight: Vector, dispersion: float) -> Vector:
        """weight·log P(y)."""
        return weight * (scipy.special.xlogy(y, mean) - mean - scipy.special.gammaln(y + 1.0))

    def refusal(self, y: Vector) -> tuple[int, str] | None:
        """A count is 0 or more; it need not be whole, as where it was divided."""
        bad = y < 0.0
        return (int(np.argmax(bad)), "counts from 0 on") if bad.any() else None
