"""Losses besides squares and the logistic one: Huber's, counts with a log link, and a hinge whose corner is rounded off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from roundelay.kernels import Numbers, Vector
from roundelay.kernels.checks import finite_number
from roundelay.problems.row_problem import Loss, RowProblem
from roundelay.problems.rows import Rows, Weights, check_sizes, read_rows
from roundelay.problems.solving import optimum_by_points
from roundelay.registry import register


class HuberNumbers(NamedTuple):
    """From which residual on the loss is a straight line."""

    delta: float


def huber(own: HuberNumbers, prediction: Any, target: Any) -> Any:
    """ℓ(u, t): ½r² of the residual r = u − t up to δ, and δ|r| − ½δ² beyond."""
    size = np.abs(prediction - target)
    within = np.minimum(size, own.delta)
    return 0.5 * within**2 + own.delta * (size - within)


def huber_slope(own: HuberNumbers, prediction: Any, target: Any) -> Any:
    """ℓ'(u, t): the residual, cut off at ±δ."""
    return np.minimum(np.maximum(prediction - target, -own.delta), own.delta)


def huber_curvature(own: HuberNumbers, prediction: Any, target: Any) -> Any:
    """ℓ''(u, t): 1 within δ, 0 beyond."""
    return 1.0 * (np.abs(prediction - target) <= own.delta)


@register(RowProblem, "huber")
@dataclass(frozen=True, eq=False, repr=False)
class Huber(RowProblem):
    """f_i(x) = (1/b_i) Σ_j h(x'o_ij − t_ij) + ridge/2 ‖x‖², where h(r) = ½r² up to δ = `delta` and δ|r| − ½δ² beyond.

    A few wild records can't pull it away. With a large δ it is least squares, by a small one nearly the least sum of residuals.
    """

    features: Sequence[ArrayLike] | ArrayLike
    targets: Sequence[ArrayLike] | ArrayLike
    delta: float = 1.0
    ridge: float = 0.0
    weights: Weights = "equal"

    loss: ClassVar[Loss] = Loss(huber, huber_slope, huber_curvature)
    jumps: ClassVar[bool] = True
    model: ClassVar[str] = "a linear model, by Huber's loss,"

    def __post_init__(self) -> None:
        finite_number("delta", self.delta, above=0.0)
        super().__post_init__()

    @property
    def own(self) -> HuberNumbers:
        """δ, as the kernel functions read it."""
        return HuberNumbers(float(self.delta))

    @property
    def width(self) -> float:
        """δ: where the loss changes from one form to the other."""
        return float(self.delta)


# Beyond this prediction e^u goes on as a straight line, so that a step that overshoots is told by how far, and not by an infinity.
HIGHEST: float = 300.0


def poisson_loss(own: Numbers, prediction: Any, count: Any) -> Any:
    """ℓ(u, t) = e^u − tu, the negative logarithm of the chance of t where e^u is expected, less what only t says."""
    low = np.minimum(prediction, HIGHEST)
    return np.exp(low) * (1.0 + prediction - low) - count * prediction


def poisson_slope(own: Numbers, prediction: Any, count: Any) -> Any:
    """ℓ'(u, t) = e^u − t."""
    return np.exp(np.minimum(prediction, HIGHEST)) - count


def poisson_curvature(own: Numbers, prediction: Any, count: Any) -> Any:
    """ℓ''(u, t) = e^u."""
    return np.exp(np.minimum(prediction, HIGHEST))


@register(RowProblem, "poisson")
@dataclass(frozen=True, eq=False, repr=False)
class Poisson(RowProblem):
    """f_i(x) = (1/b_i) Σ_j (exp(x'o_ij) − t_ij x'o_ij) + ridge/2 ‖x‖²: counts t_ij, whose expectation is exp(x'o_ij).

    The curvature grows with what is expected, without a bound: there is no L, so that no lemma that asks for one holds, and a
    method takes no step size from it.
    """

    features: Sequence[ArrayLike] | ArrayLike
    targets: Sequence[ArrayLike] | ArrayLike
    ridge: float = 0.0
    weights: Weights = "equal"

    loss: ClassVar[Loss] = Loss(poisson_loss, poisson_slope, poisson_curvature)
    most_curvature: ClassVar[float] = float("inf")
    model: ClassVar[str] = "a model of counts"
    not_on_rings: ClassVar[str] = "counts are fitted by a formula and the family poisson"

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = self.rows
        for row in np.flatnonzero(rows.targets < 0.0)[:1]:
            agent = int(rows.owners[row])
            raise ValueError(
                f"Agent {agent} has the count {rows.targets[row]:g} in row {row - rows.starts[agent]}: counts are not negative."
            )

    @classmethod
    def drawn(cls, agents: int, samples: int, dim: int, seed: int) -> Self:
        """Synthetic data: features from N(0, 1), counts by one x ~ N(0, I/p), about one a row."""
        check_sizes(agents, samples, dim, seed)
        generator = np.random.default_rng([seed, 4])
        truth, features = generator.standard_normal(dim), generator.standard_normal((agents, samples, dim))
        return cls(features, generator.poisson(np.exp(features @ truth / np.sqrt(dim))).astype(np.float64))

    @property
    def L(self) -> float:  # noqa: N802
        """Infinite: no constant bounds the curvature."""
        return float("inf")

    def minimiser(self) -> Vector:
        """The minimiser of Σ f_i; where no count speaks against ever smaller expectations there is none."""
        at_zero = float(self.scales[self.rows.owners] @ self.rows.squares()) + self.agents * self.ridge
        try:
            return optimum_by_points(self.total_gradient, self.curvature_at, self.rows.features, self.width, at_zero)
        except ValueError as error:
            raise ValueError(
                f"{error} Where all counts are 0 on one side of a plane and none lies beyond it, the best expectation is 0 there, which "
                "no finite x gives: then a ridge is what helps."
            ) from None


class HingeWidth(NamedTuple):
    """Over which margins the corner is rounded off."""

    smoothing: float


def smoothed_hinge(own: HingeWidth, prediction: Any, label: Any) -> Any:
    """ℓ(u, t): with s = 1 − tu cut to between 0 and w, s²/(2w) + (1 − tu − s where that is positive)."""
    short = np.maximum(1.0 - label * prediction, 0.0)
    within = np.minimum(short, own.smoothing)
    return 0.5 * within**2 / own.smoothing + (short - within)


def smoothed_hinge_slope(own: HingeWidth, prediction: Any, label: Any) -> Any:
    """ℓ'(u, t): from −t at margins below 1 − w to 0 at margins above 1."""
    return -label * np.minimum(np.maximum((1.0 - label * prediction) / own.smoothing, 0.0), 1.0)


def smoothed_hinge_curvature(own: HingeWidth, prediction: Any, label: Any) -> Any:
    """ℓ''(u, t): 1/w at margins between 1 − w and 1, and 0 elsewhere."""
    short = 1.0 - label * prediction
    return (short >= 0.0) * (short <= own.smoothing) / own.smoothing


@register(RowProblem, "smoothed_hinge")
@dataclass(frozen=True, eq=False, repr=False)
class SmoothedHinge(RowProblem):
    """f_i(x) = (1/b_i) Σ_j h(t_ij x'o_ij) + ridge/2 ‖x‖², with labels t_ij in {−1, 1}: a support vector machine whose corner is rounded off.

    h(m) is 0 for margins m above 1, falls with slope −1 below 1 − w, where w is `smoothing`, and is (1 − m)²/(2w) in between: so it is
    at most w/2 below the hinge, and never above. `rl.Hinge` is the machine itself.
    """

    features: Sequence[ArrayLike] | ArrayLike
    labels: Sequence[ArrayLike] | ArrayLike
    smoothing: float = 0.5
    ridge: float = 0.0
    weights: Weights = "equal"

    loss: ClassVar[Loss] = Loss(smoothed_hinge, smoothed_hinge_slope, smoothed_hinge_curvature)
    model: ClassVar[str] = "a smoothed support vector machine"
    needs_labels: ClassVar[bool] = True
    not_on_rings: ClassVar[str] = "its predictions are no chances, which a ring's model of labels gives"

    def __post_init__(self) -> None:
        finite_number("smoothing", self.smoothing, above=0.0)
        super().__post_init__()

    @cached_property
    def rows(self) -> Rows:
        """The data, checked, end to end."""
        return read_rows(self.features, self.labels)

    @property
    def own(self) -> HingeWidth:
        """w, as the kernel functions read it."""
        return HingeWidth(float(self.smoothing))

    @property
    def width(self) -> float:
        """w: the margins between one form and the other."""
        return float(self.smoothing)

    @property
    def most_curvature(self) -> float:  # type: ignore[override]
        """1/w."""
        return 1.0 / self.smoothing
