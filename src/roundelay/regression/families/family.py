"""What a family of generalised linear models says of one row: how its response is spread about what is predicted for it.

With the linear predictor η, the mean μ(η) and the variance φV(μ), half of a row's deviance is a function of η and of the response y
whose slope is −(y − μ)μ'/V. Everything that is fitted, tested and drawn follows from that function and from μ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np

from roundelay.kernels import Vector
from roundelay.registry import registered

# Beyond this e^η is continued as a parabola: no count and no mean is so large, and a step that goes too far stays finite.
FARTHEST = 25.0


class Family(Protocol):
    """For one row each, of arrays of rows: the link says by which function μ follows from η.

    `dispersed` says that φ is estimated, and is not 1. `ratio` is what e^coefficient is called; empty where it is nothing. Where all
    responses are one of the `ends`, no finite constant explains them best.
    """

    links: ClassVar[tuple[str, ...]]
    dispersed: ClassVar[bool]
    ends: ClassVar[tuple[float | None, float | None]]
    link: str

    @property
    def ratio(self) -> str:
        """What e^coefficient is."""

    def predictor(self, mean: float) -> float:
        """The η of a mean."""

    def mean(self, eta: Vector) -> Vector:
        """μ."""

    def mean_slope(self, eta: Vector) -> Vector:
        """μ'."""

    def variance(self, mean: Vector) -> Vector:
        """V(μ)."""

    def half_deviance(self, eta: Vector, y: Vector) -> Vector:
        """Half of what the row adds to the deviance, where its weight is 1."""

    def slope(self, eta: Vector, y: Vector) -> Vector:
        """Its derivative by η."""

    def curvature(self, eta: Vector, y: Vector) -> Vector:
        """Its second derivative."""

    def weight(self, eta: Vector) -> Vector:
        """What the curvature is expected to be: μ'²/V."""

    def log_likelihood(self, y: Vector, mean: Vector, weight: Vector, dispersion: float) -> Vector:
        """The logarithm of the row's likelihood, with its constants; the variance is φV/weight."""

    def refusal(self, y: Vector) -> tuple[int, str] | None:
        """The first row whose response can't be one of this family, and what responses there are; None where all can."""


def family_named(word: str, link: str = "") -> Family:
    """The family that is entered under a word, with one of its links; the first is the usual one."""
    known: Mapping[str, type[Family]] = registered(Family)
    kind = known.get(word)
    if kind is None:
        raise ValueError(f"There is no family {word!r}: use {', '.join(known)}.")
    if link and link not in kind.links:
        raise ValueError(f"The family {word} has no link {link!r}: use {' or '.join(kind.links)}.")
    return kind(link or kind.links[0])  # type: ignore[call-arg]


def exponential(eta: Vector) -> Vector:
    """e^η, and beyond FARTHEST the parabola that continues it."""
    beyond = np.maximum(eta - FARTHEST, 0.0)
    return np.exp(np.minimum(eta, FARTHEST)) * (1.0 + beyond + 0.5 * beyond**2)


def exponential_slope(eta: Vector) -> Vector:
    """Its derivative."""
    return np.exp(np.minimum(eta, FARTHEST)) * (1.0 + np.maximum(eta - FARTHEST, 0.0))


def exponential_curvature(eta: Vector) -> Vector:
    """Its second derivative."""
    return np.exp(np.minimum(eta, FARTHEST))
