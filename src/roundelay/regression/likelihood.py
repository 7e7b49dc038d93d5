"""What one site's rows say of the unknowns: half of their deviance, or −log of their likelihood, as a sum over rows.

Everything that is asked of a site before, during and after a fit is formed from here. Unknowns are w, predictors η = Xw + offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.regression.families import Family


class Likelihood(Protocol):
    """A smooth function of w, a sum over one site's rows."""

    @property
    def dim(self) -> int:
        """How many unknowns there are."""

    def value(self, w: Vector) -> float:
        """Half of the deviance, or −log of the likelihood."""

    def gradient(self, w: Vector) -> Vector:
        """Its slope."""

    def hessian(self, w: Vector) -> Matrix:
        """Its curvature."""

    def information(self, w: Vector) -> Matrix:
        """What the curvature is expected to be, had the responses been drawn at w: whose inverse is the variance of an estimate."""

    def scores(self, w: Vector) -> Matrix:
        """What each row adds to the gradient, one row a row: for variances that hold where the family does not."""


@dataclass(frozen=True, eq=False)
class GeneralisedLinear:
    """Rows of a family: half of the deviance, each row times its weight."""

    family: Family
    design: Matrix
    response: Vector
    weight: Vector
    offset: Vector

    @property
    def dim(self) -> int:
        """A coefficient a column."""
        return self.design.shape[1]

    def predictors(self, w: Vector) -> Vector:
        """η."""
        return self.design @ w + self.offset

    def value(self, w: Vector) -> float:
        """Half of the deviance."""
        return float(self.weight @ self.family.half_deviance(self.predictors(w), self.response))

    def gradient(self, w: Vector) -> Vector:
        """Its slope."""
        return self.design.T @ (self.weight * self.family.slope(self.predictors(w), self.response))

    def hessian(self, w: Vector) -> Matrix:
        """Its curvature."""
        return _weighted(self.design, self.weight * self.family.curvature(self.predictors(w), self.response))

    def information(self, w: Vector) -> Matrix:
        """X'WX."""
        return _weighted(self.design, self.weight * self.family.weight(self.predictors(w)))

    def scores(self, w: Vector) -> Matrix:
        """What each row adds to the gradient."""
        return self.design * (self.weight * self.family.slope(self.predictors(w), self.response))[:, None]

    def leverages(self, w: Vector, inverse: Matrix) -> Vector:
        """How far each row pulls its own prediction: W x'(X'WX)⁻¹x, with the inverse over all sites' rows."""
        weight = self.weight * self.family.weight(self.predictors(w))
        return weight * np.einsum("ni,ij,nj->n", self.design, inverse, self.design)


def _weighted(design: Matrix, weight: Vector) -> Matrix:
    return (design.T * weight) @ design
