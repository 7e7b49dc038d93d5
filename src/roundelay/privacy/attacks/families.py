"""Which functions an attack takes f_i to be one of: its gradient by parameters θ, with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.privacy.attacks.solving import minimise_squares, solve_squares, split, times

Cube = NDArray[np.float64]

# Two fits whose costs differ by less than this part are one.
SAME = 1e-4


class Slopes(NamedTuple):
    """∇f at several points (R, p), its derivative by θ (R, p, q), and that by x, the Hessian (R, p, p)."""

    value: Matrix
    by_theta: Cube
    by_x: Cube


class Family(Protocol):
    """A family of functions."""

    def size(self, dim: int) -> int:
        """How many parameters θ has."""

    def gradients(self, theta: Vector, points: Matrix) -> Matrix:
        """∇f_θ at the points."""

    def slopes(self, theta: Vector, points: Matrix) -> Slopes:
        """The same with derivatives."""

    def starts(self, points: Matrix, gradients: Matrix, weights: Vector) -> Iterator[Vector]:
        """Guesses of θ from points and approximate gradients there, the best first; as many as one likes."""


@dataclass(frozen=True)
class Quadratics:
    """f = ½x'Hx + g'x, θ = (vech H, g)."""

    def size(self, dim: int) -> int:
        """p(p + 3)/2."""
        return dim * (dim + 3) // 2

    def gradients(self, theta: Vector, points: Matrix) -> Matrix:
        """Hx + g."""
        hessian, slope = split(theta, points.shape[1])
        return points @ hessian + slope

    def slopes(self, theta: Vector, points: Matrix) -> Slopes:
        """The same with derivatives."""
        dim = points.shape[1]
        hessian, slope = split(theta, dim)
        identity = np.broadcast_to(np.eye(dim), (len(points), dim, dim))
        by_theta = np.concatenate([times(points), identity], axis=2)
        return Slopes(points @ hessian + slope, by_theta, np.broadcast_to(hessian, identity.shape))

    def starts(self, points: Matrix, gradients: Matrix, weights: Vector) -> Iterator[Vector]:
        """Linear least squares, with these weights and with other ones."""
        design = self.slopes(np.zeros(self.size(points.shape[1])), points).by_theta
        for power in (1.0, 0.5, 0.0, 1.5):
            weight = weights**power
            flat = (design * weight[:, None, None]).reshape(-1, design.shape[2])
            yield solve_squares(flat, (gradients * weight[:, None]).ravel())


@dataclass(frozen=True)
class LogisticRecords:
    """f = (1/b)Σ log(1 + exp(−a_j'x)) + ridge/2 ‖x‖² over b = `samples` records a_j = label·features, θ = all a_j.

    `tries` is how many random starts are made, from the features' distribution N(0, I).
    """

    samples: int
    ridge: float = 0.0
    tries: int = 60

    def __post_init__(self) -> None:
        whole_number("samples", self.samples, least=1)
        finite_number("ridge", self.ridge, least=0.0)
        whole_number("tries", self.tries, least=1)

    def size(self, dim: int) -> int:
        """B·p."""
        return self.samples * dim

    def gradients(self, theta: Vector, points: Matrix) -> Matrix:
        """−(1/b)Σ a_j σ(−a_j'x) + ridge·x."""
        records = theta.reshape(self.samples, -1)
        chance = 1.0 / (1.0 + np.exp(np.minimum(points @ records.T, 700.0)))
        return chance @ records / -self.samples + self.ridge * points

    def slopes(self, theta: Vector, points: Matrix) -> Slopes:
        """The same with derivatives."""
        dim = points.shape[1]
        records = theta.reshape(self.samples, dim)
        chance = 1.0 / (1.0 + np.exp(np.minimum(points @ records.T, 700.0)))  # σ(−a'x), (R, b)
        bend = chance * (1.0 - chance)
        identity = np.eye(dim)
        value = -chance @ records / self.samples + self.ridge * points
        by_x = np.einsum("rj,ja,jc->rac", bend, records, records) / self.samples + self.ridge * identity
        # ∂/∂a_jc of −a_ja σ(−a_j'x): −δ_ac σ + a_ja σ(1 − σ) x_c
        by_records = np.einsum("rj,ja,rc->rajc", bend, records, points) - np.einsum("rj,ac->rajc", chance, identity)
        return Slopes(value, by_records.reshape(len(points), dim, theta.size) / self.samples, by_x)

    def starts(self, points: Matrix, gradients: Matrix, weights: Vector) -> Iterator[Vector]:
        """Fits to the points from many random starts, the best first, each only once."""
        generator = np.random.default_rng(0)  # the attack's own draws

        def residuals(theta: Vector) -> tuple[Vector, Matrix]:
            found = self.slopes(theta, points)
            gap = weights[:, None] * (found.value - gradients)
            return gap.ravel(), (weights[:, None, None] * found.by_theta).reshape(gap.size, theta.size)

        size = self.size(points.shape[1])
        fits = [minimise_squares(residuals, generator.standard_normal(size), limit=40) for _ in range(self.tries)]
        last = np.inf
        for fit in sorted(fits, key=lambda fit: fit.cost):
            # The same minimum in another order of the records costs the same.
            if abs(fit.cost - last) > SAME * fit.cost:
                yield fit.theta
            last = fit.cost


def gradient_in(family: Family, theta: Vector) -> Callable[[Vector], Vector]:
    """∇f_θ as a function of one point, or of several rows."""

    def gradient(x: Vector) -> Vector:
        points = np.atleast_2d(np.asarray(x, np.float64))
        return family.gradients(theta, points).reshape(np.shape(x))

    return gradient
