"""Regularisers r of the token, and the minimiser of Σ f_i + r, against which runs with one are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import DIM, Numbers, Part, Vector, each
from roundelay.problems.problem import Problem, has_optimum, total_gradient
from roundelay.registry import register


class Regulariser(Protocol):
    """A convex function of x that acts on every coordinate by itself."""

    @property
    def is_zero(self) -> bool:
        """Whether r = 0 everywhere, so that there is none."""

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


class SimpleShape(NamedTuple):
    """r(x) = weight·‖x‖₁ between the bounds, and infinite outside of them; or Σ weight_d·|x_d|, with a weight for each coordinate."""

    weight: float | Vector = 0.0
    lower: float = -np.inf
    upper: float = np.inf


def simple_shape(regulariser: Regulariser) -> SimpleShape:
    """What a regulariser says of itself, for methods that need more than its proximal step."""
    shape = getattr(regulariser, "shape", None)
    if shape is None:
        raise ValueError(
            f"{type(regulariser).__name__} is known by its proximal step alone: let it have a shape (SimpleShape), or use a "
            "method with a token."
        )
    return SimpleShape(*shape)


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


class WeightedL1Numbers(NamedTuple):
    """The weight of each coordinate's size."""

    weights: Vector


def soft_thresholds(regulariser: WeightedL1Numbers, scale: float, token: Vector, z: Vector) -> None:
    """Each coordinate moves towards 0 by its weight, and stops there."""
    for d in each(DIM):
        z[d] = np.sign(token[d]) * np.maximum(np.abs(token[d]) - scale * regulariser.weights[d], 0.0)


class BoxNumbers(NamedTuple):
    """The bounds of every coordinate."""

    lower: float
    upper: float


def clip(regulariser: BoxNumbers, scale: float, token: Vector, z: Vector) -> None:
    """Each coordinate moves to the nearest point between the bounds."""
    for d in each(DIM):
        z[d] = np.minimum(np.maximum(token[d], regulariser.lower), regulariser.upper)


@register(Regulariser, "none")
@dataclass(frozen=True)
class NoRegulariser:
    """r = 0."""

    is_zero: ClassVar[bool] = True
    shape: ClassVar[SimpleShape] = SimpleShape()

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


@register(Regulariser, "l1")
@dataclass(frozen=True)
class L1:
    """r(x) = weight·‖x‖₁: few coordinates stay away from 0."""

    weight: float
    is_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weight) and self.weight >= 0.0):
            raise ValueError(f"The weight of ‖x‖₁ is {self.weight}: use a finite number that is not negative.")

    def part(self) -> Part:
        """The kernel function `at_token` and its numbers."""
        return Part((("at_token", soft_threshold),), L1Numbers(float(self.weight)))

    @property
    def shape(self) -> SimpleShape:
        """The weight, and no bounds."""
        return SimpleShape(float(self.weight))

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


@dataclass(frozen=True, eq=False)
class WeightedL1:
    """r(x) = Σ weights_d·|x_d|: a coordinate of weight 0 is free.

    It stands in no file: the weights follow from what is fitted.
    """

    weights: Vector
    is_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weights).all() and (self.weights >= 0.0).all()):
            raise ValueError("A weight of ‖x‖₁ is negative, or not finite: use numbers from 0 on.")

    def part(self) -> Part:
        """The kernel function `at_token` and its numbers."""
        return Part((("at_token", soft_thresholds),), WeightedL1Numbers(self.weights))

    @property
    def shape(self) -> SimpleShape:
        """The weights, and no bounds."""
        return SimpleShape(self.weights)

    def value(self, x: Vector) -> float:
        """Σ weights_d·|x_d|."""
        return float(self.weights @ np.abs(x))

    def prox(self, v: Vector, scale: float) -> Vector:
        """Soft thresholding."""
        return np.sign(v) * np.maximum(np.abs(v) - scale * self.weights, 0.0)

    def is_free(self, x: Vector) -> NDArray[np.bool_]:
        """Away from 0, and where nothing pulls."""
        return (x != 0.0) | (self.weights == 0.0)

    def slope(self, x: Vector) -> Vector:
        """weights·sign(x)."""
        return self.weights * np.sign(x)


@register(Regulariser, "box")
@dataclass(frozen=True)
class Box:
    """r(x) = 0 where lower ≤ x ≤ upper in every coordinate, and infinite elsewhere."""

    lower: float
    upper: float
    is_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper and self.lower < np.inf and self.upper > -np.inf):
            raise ValueError(f"The box from {self.lower} to {self.upper} is empty: lower must not exceed upper.")

    def part(self) -> Part:
        """The kernel function `at_token` and its numbers."""
        return Part((("at_token", clip),), BoxNumbers(float(self.lower), float(self.upper)))

    @property
    def shape(self) -> SimpleShape:
        """The bounds."""
        return SimpleShape(0.0, float(self.lower), float(self.upper))

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


@register(Regulariser, "non-negative")
def NonNegative() -> Box:  # noqa: N802
    """r(x) = 0 where no coordinate is negative, and infinite elsewhere."""
    return Box(0.0, float("inf"))


def composite_optimum(problem: Problem, regulariser: Regulariser) -> Vector:
    """The minimiser of Σ f_i + r: accelerated proximal gradient steps, then Newton on the free coordinates.

    A problem that has it already says so by `known_optimum`; one that is to be solved without a look ahead says that it is no number.
    """
    known = getattr(problem, "known_optimum", None)
    if known is not None:
        return np.asarray(known, np.float64)
    if not has_optimum(problem):
        return np.full(problem.dim, np.nan)
    if regulariser.is_zero:
        return problem.optimum
    x = _proximal_gradient(problem, regulariser)
    polished = _newton_on_free(problem, regulariser, x)
    step = _step(problem)
    better = _residual(problem, regulariser, polished, step) <= _residual(problem, regulariser, x, step)
    return polished if better else x


def _step(problem: Problem) -> float:
    lipschitz = problem.L
    if not np.isfinite(lipschitz):
        raise ValueError(
            "The minimiser with a regulariser needs the Lipschitz constant of the gradients: give L to the problem."
        )
    return 1.0 / (problem.agents * lipschitz)


def _residual(problem: Problem, regulariser: Regulariser, x: Vector, step: float) -> float:
    moved = regulariser.prox(x - step * total_gradient(problem, x), step)
    return float(np.linalg.norm(moved - x))


def _proximal_gradient(problem: Problem, regulariser: Regulariser) -> Vector:
    """Nesterov's accelerated form, started anew whenever it turns back."""
    step = _step(problem)
    x = regulariser.prox(np.zeros(problem.dim), step)
    ahead, momentum = x, 1.0
    for _ in range(100_000):
        moved = regulariser.prox(ahead - step * total_gradient(problem, ahead), step)
        if np.linalg.norm(moved - ahead) <= 1e-13 * (1.0 + np.linalg.norm(moved)):
            return moved
        if (ahead - moved) @ (moved - x) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = moved + (momentum - 1.0) / following * (moved - x)
        x, momentum = moved, following
    return x


def _newton_on_free(problem: Problem, regulariser: Regulariser, x: Vector) -> Vector:
    """With the coordinates at a kink held fixed the rest is smooth: two Newton steps finish it."""
    free = regulariser.is_free(x)
    if not (problem.has_hessians and free.any()):  # without Hessians the gradient steps must do
        return x
    for _ in range(2):
        hessian = sum(problem.hessian(agent, x) for agent in range(problem.agents))
        pull = -(total_gradient(problem, x) + regulariser.slope(x))[free]
        x = x.copy()
        x[free] += np.linalg.lstsq(np.asarray(hessian)[np.ix_(free, free)], pull, rcond=None)[0]
    return x
