"""Losses with a corner, which have no gradient and are known by their proximal step: the hinge, and the quantiles' pinball."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.kernels import Integers, Matrix, Part, Vector, dot, each, norm
from roundelay.kernels.checks import finite_number
from roundelay.problems.problem import check_agent, check_penalty, total_value
from roundelay.problems.row_problem import Loss, RowProblem
from roundelay.problems.rows import Rows, Weights, read_rows
from roundelay.registry import register


def no_slope(own: Any, prediction: Any, target: Any) -> NoReturn:
    """There is none in a corner."""
    raise ValueError(
        "A loss with a corner has no gradient: use a method with exact proximal steps, such as roundelay.IADMM(), or a smooth "
        "problem, such as roundelay.SmoothedHinge or roundelay.Huber."
    )


class CornerProblem(RowProblem):
    """f_i(x) = scale_i Σ_j max over l ≤ a ≤ h of a(r_ij − x'q_ij) + ridge/2 ‖x‖², with l ≤ 0 ≤ h: convex, straight on both sides of a corner.

    There are values and exact proximal steps, no gradients and no L. Without a ridge there may be several minimisers: then
    there is no `optimum` to measure a run by, and its history has the objective alone.
    """

    most_curvature: ClassVar[float] = float("inf")
    not_on_rings: ClassVar[str] = "it has no gradient, and a ring's sums are of gradients"
    has_gradients: ClassVar[bool] = False
    has_hessians: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows.is_sparse:
            raise ValueError(
                f"The features of a {type(self).__name__} are sparse, and its proximal steps take full rows: give them by .toarray(), where that "
                "fits into memory, or use a smooth loss, such as roundelay.Logistic, SmoothedHinge or Huber."
            )

    @property
    @abstractmethod
    def slopes(self) -> tuple[float, float]:
        """l and h."""

    @property
    @abstractmethod
    def facing(self) -> tuple[Matrix, Vector]:
        """q and r of all rows."""

    @property
    def L(self) -> float:  # noqa: N802
        """Infinite: there is no gradient."""
        return float("inf")

    @cached_property
    def numbers(self) -> CornerNumbers:
        """What the kernel reads."""
        return self._numbers(self.rows.starts, float(self.ridge))

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖², by the kernel itself."""
        check_agent(agent, self.agents)
        check_penalty(penalty)
        return _step(self.numbers, agent, np.asarray(v, np.float64), penalty)

    def kernel(self) -> Part:
        """What the engines run: a proximal step and no gradient."""
        return Part((("minimise", minimise),), self.numbers, per_agent=("row_starts",))

    @cached_property
    def optimum(self) -> Vector:
        """x*, the minimiser of Σ f_i; not a number where there are several."""
        x = self.minimiser()
        if self.ridge == 0.0 and not self._is_alone(x):
            x = np.full(self.dim, np.nan)
        x.setflags(write=False)
        return x

    def minimiser(self) -> Vector:
        """The minimiser of Σ f_i, of least norm where there are several."""
        return self.nearest_minimiser(np.zeros(self.dim))

    def nearest_minimiser(self, point: Vector) -> Vector:
        """Of all minimisers of Σ f_i the one that is nearest to a point.

        With a ridge there is one alone: the proximal step of the whole from 0, with the ridge for a penalty. Without, functions are
        straight between corners, and the proximal step from a point ends at the nearest minimiser once the penalty is
        small enough: what it is then does not move by another step.
        """
        whole, x = self._whole, np.array(point, np.float64)
        if self.ridge > 0.0:
            return _step(whole, 0, np.zeros(self.dim), self.agents * self.ridge)
        steep = float(np.maximum(-whole.low, whole.high) @ whole.lengths) / (1.0 + float(np.linalg.norm(point))) or 1.0
        for penalty in steep * np.logspace(-1, -6, 6):
            x = _step(whole, 0, point, penalty, x)
            if _is_near(_step(whole, 0, x, penalty), x):
                return x
        for _ in range(MOST_STEPS):
            before, x = x, _step(whole, 0, x, penalty)
            if _is_near(before, x):
                return x
        raise ValueError(
            "The minimiser of the sum was not found by proximal steps: bring the features to similar units, or add a ridge, for instance "
            "ridge=1e-3."
        )

    def with_optimum(self, optimum: ArrayLike | None) -> Self:
        """The same problem with the minimiser that you mean, or with None without one."""
        other = super().with_optimum(optimum)
        if np.isfinite(other.optimum).all():
            mine, least = total_value(self, other.optimum), total_value(self, self.minimiser())
            if mine > least + 1e-9 * (abs(least) + 1.0):
                raise ValueError(
                    f"The optimum is none: Σf_i is {mine:.10g} there, and elsewhere {least:.10g}. Give a minimiser, or optimum=None to do "
                    "without one."
                )
        return other

    @cached_property
    def _whole(self) -> CornerNumbers:
        """All rows as those of one agent, without the ridge."""
        return self._numbers(np.array([0, len(self.rows.targets)]), 0.0)

    def _numbers(self, starts: NDArray[np.int64], ridge: float) -> CornerNumbers:
        rows, targets = self.facing
        scales, (low, high) = self.scales[self.rows.owners], self.slopes
        return CornerNumbers(rows, targets, np.linalg.norm(rows, axis=1), scales * low, scales * high, starts, ridge)

    def _is_alone(self, x: Vector) -> bool:
        """Whether x is the only minimiser: then it is the nearest one from anywhere, so also from two sides that nobody has chosen."""
        aside = np.random.default_rng(len(x)).standard_normal(len(x))
        aside *= (1.0 + np.linalg.norm(x)) / np.linalg.norm(aside)
        return all(
            np.linalg.norm(self.nearest_minimiser(x + side) - x) <= ALONE * (1.0 + np.linalg.norm(x))
            for side in (aside, -aside)
        )


# How many proximal steps are taken from where small penalties have led, what counts as not moved by one, and as one minimiser.
MOST_STEPS = 200
NEAR, ALONE = 1e-10, 1e-7


def _is_near(one: Vector, other: Vector) -> bool:
    return bool(np.linalg.norm(one - other) <= NEAR * (1.0 + np.linalg.norm(other)))


def _step(numbers: CornerNumbers, agent: int, v: Vector, penalty: float, start: Vector | None = None) -> Vector:
    """argmin f_i(x) + penalty/2 ‖x − v‖²."""
    out = np.empty(len(v))
    minimise(numbers, agent, penalty * v, penalty, v if start is None else start, out)
    return out


class QuantileLevel(NamedTuple):
    """τ."""

    level: float


def pinball(own: QuantileLevel, prediction: Any, target: Any) -> Any:
    """ℓ(u, t): τ(t − u) where the target is above, (τ − 1)(t − u) where it is below."""
    return np.maximum(own.level * (target - prediction), (own.level - 1.0) * (target - prediction))


@register(RowProblem, "quantile")
@dataclass(frozen=True, eq=False, repr=False)
class Quantile(CornerProblem):
    """f_i(x) = (1/b_i) Σ_j ρ_τ(t_ij − x'o_ij) + ridge/2 ‖x‖², with ρ_τ(r) = τr for r ≥ 0 and (τ − 1)r below: quantile regression.

    With `level` τ = 0.5 it is half the least sum of absolute residuals.
    """

    features: Sequence[ArrayLike] | ArrayLike
    targets: Sequence[ArrayLike] | ArrayLike
    level: float = 0.5
    ridge: float = 0.0
    weights: Weights = "equal"

    loss: ClassVar[Loss] = Loss(pinball, no_slope, no_slope)
    model: ClassVar[str] = "a linear model of a quantile"

    def __post_init__(self) -> None:
        if not finite_number("level", self.level, above=0.0) < 1.0:
            raise ValueError(f"The level is {self.level}: a quantile lies between 0 and 1, such as 0.5 for the median.")
        super().__post_init__()

    @property
    def own(self) -> QuantileLevel:
        """τ, as the loss reads it."""
        return QuantileLevel(float(self.level))

    @property
    def slopes(self) -> tuple[float, float]:
        """τ − 1 and τ."""
        return self.level - 1.0, float(self.level)

    @property
    def facing(self) -> tuple[Matrix, Vector]:
        """The rows as they are."""
        return self.rows.features, self.rows.targets


def hinge(own: Any, prediction: Any, label: Any) -> Any:
    """ℓ(u, t) = max(0, 1 − tu)."""
    return np.maximum(1.0 - label * prediction, 0.0)


@register(RowProblem, "hinge")
@dataclass(frozen=True, eq=False, repr=False)
class Hinge(CornerProblem):
    """f_i(x) = (1/b_i) Σ_j max(0, 1 − t_ij x'o_ij) + ridge/2 ‖x‖², with labels t_ij in {−1, 1}: a support vector machine."""

    features: Sequence[ArrayLike] | ArrayLike
    labels: Sequence[ArrayLike] | ArrayLike
    ridge: float = 0.0
    weights: Weights = "equal"

    loss: ClassVar[Loss] = Loss(hinge, no_slope, no_slope)
    model: ClassVar[str] = "a support vector machine"
    needs_labels: ClassVar[bool] = True

    @cached_property
    def rows(self) -> Rows:
        """The data, checked, end to end."""
        return read_rows(self.features, self.labels)

    @property
    def slopes(self) -> tuple[float, float]:
        """0 and 1."""
        return 0.0, 1.0

    @cached_property
    def facing(self) -> tuple[Matrix, Vector]:
        """The rows t·o, which are to reach 1."""
        return np.ascontiguousarray(self.rows.features * self.rows.targets[:, None]), np.ones(len(self.rows.targets))


# ---------------------------------------------------------------- as the engines run it


class CornerNumbers(NamedTuple):
    """f_i(x) = Σ_j max over low_j ≤ a ≤ high_j of a(t_j − o_j'x), plus ridge/2 ‖x‖²; the lengths of the rows o_j beside them."""

    rows: Matrix
    targets: Vector
    lengths: Vector
    low: Vector
    high: Vector
    row_starts: Integers
    ridge: float


# Beside this part of the numbers in it, a residual is rounding; a row that lies so nearly in a span lies in it; and a row whose
# residual was below this part of them where the step starts will likely have none at the end.
ROUNDED: float = 1e-13
DEPENDENT: float = 1e-11
LIKELY: float = 1e-9
# So much more urgent is a row that will likely be free; and what lengths of 0 are divided by.
FIRST: float = 1e30
TINY: float = 1e-300
# Where a move stops besides at the place of a free row: at the row's own other bound, or where it has no residual any more.
STAYS: int = -1
JOINS: int = -2
EPSILON: float = 2.3e-16


def residuals_of(rows: Matrix, targets: Vector, x: Vector, out: Vector) -> None:
    """t_j − o_j'x of every row, coordinate after coordinate, so that both engines round alike."""
    for j in each(out.shape[0]):
        out[j] = targets[j]
    for d in range(x.shape[0]):
        for j in each(out.shape[0]):
            out[j] = out[j] - rows[j, d] * x[d]


def split_row(basis: Matrix, size: int, row: Vector, along: Vector, rest: Vector) -> None:
    """row = Σ_l along_l·basis_l + rest, twice, since the first time leaves rounding along the basis."""
    for d in each(row.shape[0]):
        rest[d] = row[d]
    for pull in range(size):
        along[pull] = 0.0
    for _ in range(2):
        for pull in range(size):
            share = dot(basis[pull], rest)
            along[pull] += share
            for d in each(row.shape[0]):
                rest[d] = rest[d] - share * basis[pull, d]


def take_in(basis: Matrix, triangle: Matrix, place: int, along: Vector, rest: Vector) -> None:
    """The row that `split_row` has split is the next of the free ones."""
    length = norm(rest)
    for pull in range(place):
        triangle[place, pull] = along[pull]
    triangle[place, place] = length
    for d in each(rest.shape[0]):
        basis[place, d] = rest[d] / length


def settle(
    basis: Matrix, triangle: Matrix, free: Integers, size: int, rows: Matrix, targets: Vector,
    x: Vector,
) -> None:  # fmt: skip
    """Move x by the shortest way to where no free row has a residual; twice, since the first time leaves rounding."""
    lengths = np.empty(size)
    for _ in range(2):
        for place in range(size):
            lengths[place] = targets[free[place]] - dot(rows[free[place]], x)
        for place in range(size):
            for pull in range(place):
                lengths[place] -= triangle[place, pull] * lengths[pull]
            lengths[place] /= triangle[place, place]
        for place in range(size):
            for d in each(x.shape[0]):
                x[d] = x[d] + lengths[place] * basis[place, d]


def shares_of(triangle: Matrix, size: int, along: Vector, shares: Vector) -> None:
    """Σ_l along_l·basis_l as Σ_m shares_m·(free row m)."""
    for back in range(size):
        place = size - 1 - back
        share = along[place]
        for other in range(place + 1, size):
            share -= triangle[other, place] * shares[other]
        shares[place] = share / triangle[place, place]


def minimise(problem: CornerNumbers, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin f_i(x) + penalty/2 ‖x‖² − w'x, through its dual.

    With c = penalty + ridge the minimiser is x = (w + Σ a_j o_j)/c, where a solves the dual, a quadratic program in a box:
    a_j = high_j where the residual e_j = t_j − o_j'x is positive, low_j where it is negative, and in between only where e_j = 0.

    Free rows have no residual, and are linearly independent. One row after another that violates this is moved towards its
    rule, while those that are free keep their residuals at 0: along a_j + s, a_free − s·(shares of o_j in the free rows), x moves by s/c
    times what of o_j no free row has. It stops where e_j = 0, and the row is free; where a_j is at its other bound; or where a free
    row comes to a bound, which is free no more. The dual falls by each move, so that no set of free rows ever comes back.
    """
    dim, begin, end = w.shape[0], problem.row_starts[i], problem.row_starts[i + 1]
    rows, targets, lengths = problem.rows[begin:end], problem.targets[begin:end], problem.lengths[begin:end]
    low, high, count, c = problem.low[begin:end], problem.high[begin:end], end - begin, penalty + problem.ridge
    most = min(count, dim)
    for d in each(dim):
        out[d] = w[d]  # where a run diverges there is nothing to solve: let the loop see it
    if not norm(w) < math.inf:
        return
    basis, triangle, free, size = np.empty((most, dim)), np.zeros((most, most)), np.zeros(most, np.int64), 0
    along, shares, rest = np.empty(most), np.empty(most), np.empty(dim)
    a, e, bound, waits, score = np.empty(count), np.empty(count), np.ones(count), np.empty(count), np.empty(count)
    residuals_of(rows, targets, start, e)
    reach, pulls = norm(start), norm(w)
    for j in each(count):
        waits[j] = 1.0 * (np.abs(e[j]) <= LIKELY * (np.abs(targets[j]) + lengths[j] * reach))
        score[j] = (1.0 - waits[j]) * (e[j] > 0.0) + 0.5 * waits[j]
        a[j] = (1.0 - score[j]) * low[j] + score[j] * high[j]
    for j in range(count):
        pulls += max(-low[j], high[j]) * lengths[j]

    moving, again, moved = -1, True, False
    patience = 100 + 10 * (count + dim)
    for turn in range(10 * patience):
        if again:
            # x from a itself, then onto the free rows: what was moved in small pieces has rounding in it.
            for d in each(dim):
                out[d] = w[d]
            for j in range(count):
                for d in each(dim):
                    out[d] = out[d] + a[j] * rows[j, d]
            for d in each(dim):
                out[d] = out[d] / c
            settle(basis, triangle, free, size, rows, targets, out)
            again, moved = False, False
        residuals_of(rows, targets, out, e)
        reach = norm(out)
        noise = 4.0 * EPSILON * (pulls if turn > patience and size < dim else norm(w)) / c
        for j in each(count):
            score[j] = np.maximum(e[j] * (a[j] < high[j]), -e[j] * (a[j] > low[j])) * bound[j]
            score[j] = score[j] - ROUNDED * (np.abs(targets[j]) + lengths[j] * reach) - noise * lengths[j]
        if moving < 0 or score[moving] <= 0.0:
            for j in each(count):
                score[j] = score[j] / (lengths[j] + TINY) * (1.0 + FIRST * waits[j])
            moving = int(np.argmax(score))
            if score[moving] <= 0.0:
                if not moved:
                    return
                moving, again = -1, True
                continue
            waits[moving] = 0.0

        sign = 1.0 if e[moving] > 0.0 else -1.0
        split_row(basis, size, rows[moving], along, rest)
        shares_of(triangle, size, along, shares)
        apart = size < most and norm(rest) > DEPENDENT * lengths[moving]
        step = high[moving] - a[moving] if sign > 0.0 else a[moving] - low[moving]
        stops = STAYS
        for place in range(size):
            slope, number = -sign * shares[place], free[place]
            if slope != 0.0:
                room = (high[number] - a[number] if slope > 0.0 else low[number] - a[number]) / slope
                if room < step:
                    step, stops = max(room, 0.0), place
        if apart and abs(e[moving]) * c < step * dot(rest, rest):
            step, stops = abs(e[moving]) * c / dot(rest, rest), JOINS
        a[moving] += sign * step
        for place in range(size):
            a[free[place]] -= sign * step * shares[place]
        if apart:
            for d in each(dim):
                out[d] = out[d] + sign * step / c * rest[d]
        moved = True
        if stops == JOINS:
            take_in(basis, triangle, size, along, rest)
            free[size], bound[moving] = moving, 0.0
            size, moving = size + 1, -1
        elif stops == STAYS:
            a[moving] = high[moving] if sign > 0.0 else low[moving]
            moving = -1
        else:
            number, size = free[stops], size - 1
            a[number], bound[number] = (high[number] if -sign * shares[stops] > 0.0 else low[number]), 1.0
            for place in range(stops, size):
                free[place] = free[place + 1]
                split_row(basis, place, rows[free[place]], along, rest)
                take_in(basis, triangle, place, along, rest)
