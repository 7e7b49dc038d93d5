"""Yes or no, or how many of several: chances, odds, risks.

With A = −log μ and B = −log(1 − μ), half of a row's deviance is yA + (1 − y)B but for a constant, so that a link is two functions of η
with their derivatives, each formed so that neither end loses digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import scipy

from roundelay.kernels import Vector
from roundelay.registry import register
from roundelay.regression.families.family import Family


class Side(NamedTuple):
    """A function of η, its slope and its curvature."""

    value: Vector
    slope: Vector
    curvature: Vector


class Link(Protocol):
    """How the chance follows from η."""

    def yes(self, eta: Vector) -> Side:
        """A = −log μ."""

    def no(self, eta: Vector) -> Side:
        """B = −log(1 − μ)."""

    def mean(self, eta: Vector) -> Vector:
        """μ."""

    def weight(self, eta: Vector) -> Vector:
        """μ'²/(μ(1 − μ))."""

    def predictor(self, mean: float) -> float:
        """The η of a chance."""


class Logit:
    """μ = 1/(1 + e^−η)."""

    def yes(self, eta: Vector) -> Side:
        """A = −log μ."""
        return Side(np.logaddexp(0.0, -eta), -scipy.special.expit(-eta), self.weight(eta))

    def no(self, eta: Vector) -> Side:
        """B = −log(1 − μ)."""
        return Side(np.logaddexp(0.0, eta), scipy.special.expit(eta), self.weight(eta))

    def mean(self, eta: Vector) -> Vector:
        """μ."""
        return scipy.special.expit(eta)

    def weight(self, eta: Vector) -> Vector:
        """μ(1 − μ)."""
        return scipy.special.expit(eta) * scipy.special.expit(-eta)

    def predictor(self, mean: float) -> float:
        """log(μ/(1 − μ))."""
        return float(scipy.special.logit(mean))


class Probit:
    """μ = Φ(η), the normal distribution."""

    def yes(self, eta: Vector) -> Side:
        """A = −log Φ."""
        steepness = _steepness(eta)
        return Side(-scipy.special.log_ndtr(eta), -steepness, steepness * np.maximum(eta + steepness, 0.0))

    def no(self, eta: Vector) -> Side:
        """B, which is A at −η."""
        value, slope, curvature = self.yes(-eta)
        return Side(value, -slope, curvature)

    def mean(self, eta: Vector) -> Vector:
        """μ."""
        return scipy.special.ndtr(eta)

    def weight(self, eta: Vector) -> Vector:
        """φ²/(Φ(1 − Φ)) with the normal density φ."""
        return _steepness(eta) * _steepness(-eta)

    def predictor(self, mean: float) -> float:
        """Φ⁻¹(μ)."""
        return float(scipy.special.ndtri(mean))


def _steepness(eta: Vector) -> Vector:
    """φ/Φ."""
    return np.exp(-0.5 * eta**2 - 0.5 * np.log(2.0 * np.pi) - scipy.special.log_ndtr(eta))


class Log:
    """μ = e^η, a risk: η must stay below 0, and from just below it on both sides are continued as parabolas that rise steeply."""

    EDGE: ClassVar[float] = -1e-6

    def yes(self, eta: Vector) -> Side:
        """A = −η."""
        beyond, steep = np.maximum(eta - self.EDGE, 0.0), 1.0 / self.EDGE**2
        return Side(-eta + 0.5 * steep * beyond**2, steep * beyond - 1.0, np.where(beyond > 0.0, steep, 0.0))

    def no(self, eta: Vector) -> Side:
        """B = −log(1 − e^η)."""
        inside, beyond = np.minimum(eta, self.EDGE), np.maximum(eta - self.EDGE, 0.0)
        slope = -np.exp(inside) / np.expm1(inside)
        curvature = slope * (1.0 + slope)
        value = -np.log(-np.expm1(inside)) + slope * beyond + 0.5 * curvature * beyond**2
        return Side(value, slope + curvature * beyond, curvature)

    def mean(self, eta: Vector) -> Vector:
        """μ."""
        return np.exp(np.minimum(eta, self.EDGE))

    def weight(self, eta: Vector) -> Vector:
        """μ/(1 − μ)."""
        inside = np.minimum(eta, self.EDGE)
        return -np.exp(inside) / np.expm1(inside)

    def predictor(self, mean: float) -> float:
        """log μ."""
        return log(mean)


LINKS: dict[str, Link] = {"logit": Logit(), "log": Log(), "probit": Probit()}
RATIOS = {"logit": "odds ratio", "log": "risk ratio"}


@register(Family, "binomial")
@dataclass(frozen=True)
class Binomial:
    """y is the part of `weight` trials that were a success; 0 or 1 where there was one trial."""

    links: ClassVar[tuple[str, ...]] = tuple(LINKS)
    dispersed: ClassVar[bool] = False
    ends: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    link: str = "logit"

    @property
    def ratio(self) -> str:
        """Of odds or of risks."""
        return RATIOS.get(self.link, "")

    @property
    def _by(self) -> Link:
        return LINKS[self.link]

    def predictor(self, mean: float) -> float:
        """The η of a chance."""
        return self._by.predictor(mean)

    def mean(self, eta: Vector) -> Vector:
        """μ."""
        return self._by.mean(eta)

    def mean_slope(self, eta: Vector) -> Vector:
        """μ' = weight·V/μ' is had from A: μ' = −μA'."""
        return -self.mean(eta) * self._by.yes(eta).slope

    def variance(self, mean: Vector) -> Vector:
        """μ(1 − μ)."""
        return mean * (1.0 - mean)

    def half_deviance(self, eta: Vector, y: Vector) -> Vector:
        """YA + (1 − y)B, less what it is at μ = y."""
        return (
            y * self._by.yes(eta).value
            + (1.0 - y) * self._by.no(eta).value
            - scipy.special.entr(y)
            - scipy.special.entr(1.0 - y)
        )

    def slope(self, eta: Vector, y: Vector) -> Vector:
        """YA' + (1 − y)B'."""
        return y * self._by.yes(eta).slope + (1.0 - y) * self._by.no(eta).slope

    def curvature(self, eta: Vector, y: Vector) -> Vector:
        """YA'' + (1 − y)B''."""
        return y * self._by.yes(eta).curvature + (1.0 - y) * self._by.no(eta).curvature

    def weight(self, eta: Vector) -> Vector:
        """μ'²/(μ(1 − μ))."""
        return self._by.weight(eta)

    def log_likelihood(self, y: Vector, mean: Vector, weight: Vector, dispersion: float) -> Vector:
        """Log of the chance of so many successes in so many trials."""
        ways = (
            scipy.special.gammaln(weight + 1.0)
            - scipy.special.gammaln(weight * y + 1.0)
            - scipy.special.gammaln(weight * (1.0 - y) + 1.0)
        )
        return ways + weight * (scipy.special.xlogy(y, mean) + scipy.special.xlog1py(1.0 - y, -mean))

    def refusal(self, y: Vector) -> tuple[int, str] | None:
        """Yes or no, or a part of several."""
        bad = (y < 0.0) | (y > 1.0)
        return (int(np.argmax(bad)), "0 and 1, or parts between them") if bad.any() else None
