"""How strongly coefficients are drawn towards 0, chosen by what the rows that were left out say.

Each site deals its rows into folds. One question tells a point for each fold, and the answer has, for each, what the rows outside the
fold say there (weight, value, gradient, Hessian) and what all rows say: so the fold itself says what is left. The penalty is public and is
added afterwards. From the strongest penalty on, under which nothing but constants is left, each fit starts where the last one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.sealed.optimisers import Asking, Found, Goal, Newton
from roundelay.algorithms.sealed.questions import Asked, Place, Question, Total
from roundelay.kernels import Matrix, Vector
from roundelay.regression.likelihood import Likelihood
from roundelay.regression.result import Strength

# The path goes down from the least penalty that leaves nothing, in so many steps to this part of it.
STRENGTHS, WEAKEST = 30, 1e-3
# Without a lasso: in parts of the mean curvature.
RIDGE_ENDS = (1e2, 1e-5)
# Keys the dealing: the same rows are always dealt alike.
DEALING = 0x0F01D
# The fits on the path need not be as close as the last one.
CLOSE = 1e-9


def dealt(rows: int, folds: int) -> NDArray[np.int64]:
    """The fold of each row: as many in each as can be, whatever the order of the rows means."""
    return np.random.Generator(np.random.Philox(key=[DEALING, rows])).permutation(rows) % folds


# ---------------------------------------------------------------- one site


def numbers_of_folds(folds: int, dim: int) -> int:
    """How many numbers a site answers."""
    return folds * (3 + dim + dim * (dim + 1) // 2)


def answer_of_folds(
    outside: Sequence[Likelihood], weights: Sequence[float], whole: Likelihood, points: Matrix
) -> Vector:
    """What a site says at a point for each fold: of the rows `outside` it, and the value of the `whole`."""
    upper, parts = np.triu_indices(whole.dim), []
    for likelihood, weight, point in zip(outside, weights, points, strict=True):
        numbers = [weight, likelihood.value(point), whole.value(point)]
        parts.append(np.concatenate([numbers, likelihood.gradient(point), likelihood.hessian(point)[upper]]))
    return np.concatenate(parts)


# ---------------------------------------------------------------- what all know


class Fold(NamedTuple):
    """What all sites' rows say at the point of a fold: those outside it, and the mean loss of those in it."""

    total: Total
    left_out: float


def folds_of(numbers: Vector, folds: int, dim: int, sites: int) -> list[Fold]:
    """A total, in folds; the losses are means over rows, times the number of sites, as a goal has them."""
    found, upper = [], np.triu_indices(dim)
    each = numbers.reshape(folds, -1)
    weight = float(each[:, 0].sum()) / (folds - 1)  # each row stands outside of all folds but one
    for one in each:
        share = sites / one[0]
        hessian = np.zeros((dim, dim))
        hessian[upper] = share * one[3 + dim :]
        total = Total(share * one[1], share * one[3 : 3 + dim], hessian + np.triu(hessian, 1).T)
        found.append(Fold(total, float((one[2] - one[1]) / max(weight - one[0], 1e-300))))
    return found


@dataclass(frozen=True)
class Chosen:
    """The path, strongest first, and the strength with the least loss of rows that were left out."""

    path: tuple[Strength, ...]

    @property
    def best(self) -> Strength:
        """The first with the least loss."""
        return min(self.path, key=lambda one: one.loss)


# The goal and the quadratic penalty at a strength.
AtStrength = Callable[[float], tuple[Goal, Matrix]]


@dataclass(frozen=True, eq=False)
class FoundByFolds(Found):
    """Where a fit ended whose penalty was chosen."""

    chosen: Chosen | None = None


def strengths(first: Sequence[Fold], sites: int, lasso: float, ridge: float, spared: tuple[int, ...]) -> Vector:
    """By what the planned penalty is multiplied, going by what the folds say where nothing but constants counts.

    A lasso begins where it leaves no slope. A ridge alone leaves some at any strength: it goes by the curvature, from where it
    leaves about a hundredth of a slope to where it takes next to nothing.
    """
    # Each row stands outside of all folds but one.
    gradient = np.mean([one.total.gradient for one in first], axis=0) / sites
    if lasso:
        most = float(np.abs(np.delete(gradient, list(spared))).max(initial=0.0)) / lasso
        return np.asarray(max(most, 1e-12) * np.geomspace(1.0, WEAKEST, STRENGTHS), np.float64)
    bends = np.mean([np.diag(np.asarray(one.total.hessian)) for one in first], axis=0) / sites
    middle = float(np.delete(bends, list(spared)).mean()) / ridge
    return np.asarray(max(middle, 1e-12) * np.geomspace(*RIDGE_ENDS, STRENGTHS), np.float64)


def choosing(
    at_strength: AtStrength, factors: Vector, start: Vector, folds: int, spared: tuple[int, ...]
) -> Generator[Matrix, list[Fold], Chosen]:
    """Ask at a point for each fold, until all fits of a strength have ended; then with the next one, from there on."""
    points, path = np.tile(start, (folds, 1)), []
    for factor in factors.tolist():
        goal, penalty = at_strength(factor)
        losses: dict[int, float] = {}
        asking = [
            penalised(Newton().questions(replace(goal, start=point, tolerance=CLOSE)), penalty, point)
            for point in points
        ]
        questions: list[Question | None] = [next(one) for one in asking]
        while any(question is not None for question in questions):
            told = yield points
            for number, (fold, one) in enumerate(zip(told, asking, strict=True)):
                if questions[number] is None:
                    continue
                losses[number] = fold.left_out
                try:
                    following = one.send(fold.total)
                except StopIteration as end:
                    found: Found = end.value
                    assert np.array_equal(found.point, points[number])
                    questions[number] = None
                else:
                    assert following.point is not None
                    questions[number], points = following, _moved(points, number, following.point)
        each = np.array([losses[number] for number in range(folds)])
        left = np.mean([np.count_nonzero(np.delete(point, list(spared))) for point in points])
        path.append(Strength(factor, float(each.mean()), float(each.std(ddof=1) / np.sqrt(folds)), float(left)))
    return Chosen(tuple(path))


def _moved(points: Matrix, number: int, point: Vector) -> Matrix:
    moved = points.copy()
    moved[number] = point
    return moved


def with_penalty(total: Total, penalty: Matrix, place: Place, asked: Asked) -> Total:
    """A total with ½ w'Pw in it, as far as it was asked for."""
    if asked == Asked.NOTHING:
        return total
    added = penalty @ (place.direction if asked == Asked.HESSIAN_TIMES_DIRECTION else place.point)
    hessian = None if total.hessian is None else total.hessian + penalty
    return Total(total.value + 0.5 * float(place.point @ added), total.gradient + added, hessian)


def penalised(asking: Asking, penalty: Matrix, start: Vector) -> Asking:
    """Questions whose totals lack a penalty, which is public."""
    place = Place(start, np.zeros(0))
    question = next(asking)
    while True:
        place = question.moved(place)
        total = yield question
        try:
            question = asking.send(with_penalty(total, penalty, place, question.asked))
        except StopIteration as end:
            return end.value
