"""What the messages of a site make known of its rows, whatever the protocol: sums over the rows at points that all know.

A site has n rows x_r with a constant 1 in front and an outcome y_r. With the mean μ(η) of the model (η itself, or the chance
1/(1 + e^−η)), w = μ'(η), and η_r = x_r'β, nearly everything that federated regressions send is

    score        S(β) = Σ (y_r − μ(η_r)) x_r
    information  I(β) = Σ w(η_r) x_r x_r'
    deviance     D(β) = Σ (y_r − η_r)², or −2 Σ (y_r η_r − log(1 + e^η_r))

So a protocol says once how its messages are read as such sums, and every attack is written once, on these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector


@dataclass(frozen=True, eq=False)
class SumsAt:
    """Sums over a site's rows at one point β; None for what was not sent."""

    point: Vector
    score: Vector | None = None
    information: Matrix | None = None
    deviance: float | None = None


@dataclass(frozen=True, eq=False)
class Descent:
    """Steps of gradient descent that a site made by itself: w ← w + rate·S(w)/n, so many times, from each point received."""

    rate: float
    steps: int
    received: Matrix
    returned: Matrix


@dataclass(frozen=True, eq=False)
class Products:
    """Products of a hidden column with columns that the observer has himself: known (k, n), and k numbers."""

    known: Matrix
    products: Vector


@dataclass(frozen=True, eq=False)
class Known:
    """All that is known of the rows of a site, or of the sum over several sites.

    `variances` is the diagonal of the inverse of the information at a point, where that alone was sent. `rounding` is what the
    numbers that were sent are right to, relative to the largest of their kind. `site` is a name for people.
    """

    site: str
    family: str
    columns: tuple[str, ...]
    rows: int
    sums: tuple[SumsAt, ...] = ()
    variances: tuple[Vector, Vector] | None = None
    descent: Descent | None = None
    products: Products | None = None
    rounding: float = 1e-13

    @property
    def dim(self) -> int:
        """How many columns X has, the constant among them."""
        return len(self.columns)


# Real, or complex where a derivative is taken.
Numbers = NDArray[Any]


def mean(family: str, predictor: Numbers) -> Numbers:
    """μ(η)."""
    if family == "gaussian":
        return predictor
    # e^−η of the larger side overflows nowhere, and the quotient is the same.
    small = np.exp(np.where(predictor.real >= 0.0, -predictor, predictor))
    return np.where(predictor.real >= 0.0, 1.0, small) / (1.0 + small)


def sums_at(family: str, X: Numbers, y: Numbers, point: Vector) -> tuple[Numbers, Numbers, Numbers]:
    """Score, information and deviance of rows X (…, n, p) at a point: what a site that follows a protocol computes."""
    predictor = X @ point
    expected = mean(family, predictor)
    weights = np.ones_like(predictor) if family == "gaussian" else expected * (1.0 - expected)
    score = ((y - expected)[..., None] * X).sum(axis=-2)
    information = np.swapaxes(X, -1, -2) @ (weights[..., None] * X)
    if family == "gaussian":
        return score, information, ((y - predictor) ** 2).sum(axis=-1)
    larger = np.where(predictor.real >= 0.0, predictor, 0.0)
    small = np.exp(np.where(predictor.real >= 0.0, -predictor, predictor))
    return score, information, -2.0 * (y * predictor - larger - np.log(1.0 + small)).sum(axis=-1)


def descended(family: str, X: Numbers, y: Numbers, start: Vector, rate: float, steps: int) -> Numbers:
    """Where so many steps of gradient descent on the mean loss of these rows lead."""
    at = np.broadcast_to(start, (*X.shape[:-2], X.shape[-1])).astype(X.dtype)
    for _ in range(steps):
        residual = y - mean(family, (X @ at[..., None])[..., 0])
        at = at + rate / X.shape[-2] * (residual[..., None] * X).sum(axis=-2)
    return at
