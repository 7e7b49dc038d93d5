"""Logistic regression, of two classes and of many."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import helmert
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from roundelay.estimators.estimator import Penalty, RingEstimator, Rows, elastic
from roundelay.estimators.summary import look_at
from roundelay.estimators.sums import SealedSums, units_of
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number
from roundelay.problems.carriers import RowsAt
from roundelay.regression.families import family_named
from roundelay.regression.likelihood import FamilyLosses, Likelihood, Linear, SoftmaxLosses
from roundelay.regression.regression import MOST_UNKNOWNS, MULTINOMIAL


class RingLogisticRegression(ClassifierMixin, RingEstimator):  # type: ignore[misc]
    """Logistic regression, as scikit-learn's: min C Σ s·loss + l1_ratio ‖w‖₁ + ½ (1 − l1_ratio) ‖w‖².

    Of many classes each has coefficients of its own, and its chance is their softmax. `C=numpy.inf` is no penalty.
    `class_weight` is a number for each class, or "balanced".
    """

    classes_: Any

    def __init__(
        self, *, C: float = 1.0, l1_ratio: float = 0.0, fit_intercept: bool = True, class_weight: Any = None, algorithm: Any = None,
        tol: float = 1e-8, max_laps: int = 10_000,
    ) -> None:  # fmt: skip
        super().__init__(algorithm=algorithm, tol=tol, max_laps=max_laps)
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sites: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of all sites; `sites` has a label for each row. Without it the rows are cut into three sites, in their order."""
        rows = self._rows(X, y, sites, sample_weight, self._numbered)
        sums, constant, count = SealedSums(len(rows.parts)), bool(self.fit_intercept), len(self.classes_)
        levels = rows.target[:, None] == np.arange(count)
        rows = replace(rows, weight=rows.weight * self._weights_of_classes(rows, levels, sums)[rows.target.astype(int)])
        both = units_of(np.column_stack([rows.features, levels]), rows.weight, rows.parts, sums, constant)
        penalty = self._penalty(both.weight)
        units = both.first(rows.features.shape[1]).under(penalty.ridge)
        design, basis = units.design(rows.features, constant), basis_of(count, bool(penalty.lasso))
        turn = basis[1:] - basis[0]
        plain = [_likelihood(design[part], rows.target[part], rows.weight[part], count) for part in rows.parts]
        likelihoods = plain if count == 2 else [Turned(one, turn) for one in plain]
        ridges, lassos = (np.tile(one, turn.shape[1]) for one in penalty.spread(units.scale, constant))
        fitted = self._minimised(likelihoods, units.weight, np.diag(ridges), lassos)
        look, unknowns = None, fitted.run.estimate.reshape(turn.shape[1], -1)
        if penalty == Penalty() and unknowns.size <= MOST_UNKNOWNS:
            null = np.zeros_like(unknowns)
            if constant:
                null[:, -1] = np.log(np.maximum(both.shift[-count + 1 :], 1e-300) / max(both.shift[-count], 1e-300))
            events = [float(levels[part, 1].sum()) for part in rows.parts]
            look = look_at(sums, plain, ((turn @ unknowns).reshape(-1), null.reshape(-1)), events)
            self._warn_of_separation(look.value, rows.weight, "a finite C")
        self._keep(fitted, sums)
        self.coef_, self.intercept_ = units.raw(unknowns if count == 2 else basis @ unknowns, constant)
        if count > 2:
            self.intercept_ = self.intercept_ - self.intercept_.mean()
        if look is not None:
            family = "binomial" if count == 2 else MULTINOMIAL
            self._explain(
                family, look, units.changes(constant, count - 1), rows, fitted, constant, list(map(str, self.classes_))
            )
        return self

    def _numbered(self, y: Any) -> Vector:
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "All rows of all sites have one class, so that there is nothing to tell apart: bring in rows of another class."
            )
        return numbers.astype(np.float64)

    def _weights_of_classes(self, rows: Rows, levels: Any, sums: SealedSums) -> Vector:
        """What a row counts by its class; balanced are those with which each class counts the same, which takes a sum of its own."""
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        if self.class_weight == "balanced":
            weights = sums.total([rows.weight[part] @ levels[part] for part in rows.parts], "The weight of a class")
            return weights.sum() / (len(weights) * np.where(weights > 0.0, weights, np.inf))
        return np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_), np.float64)

    def _penalty(self, weight: float) -> Penalty:
        if isinstance(self.C, float) and math.isinf(self.C) and self.C > 0.0:
            return Penalty()
        return elastic(1.0 / (finite_number("C", self.C, above=0.0) * weight), self.l1_ratio)

    def decision_function(self, X: Any) -> Matrix:
        """How far each row is on the side of each class, or of the second of two."""
        predictors = self._predictors(X)
        return predictors[:, 0] if len(self.classes_) == 2 else predictors

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row."""
        predictors = self.decision_function(X)
        return self.classes_[(predictors > 0.0).astype(int) if predictors.ndim == 1 else predictors.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Matrix:
        """The chance of each class in each row."""
        predictors = self.decision_function(X)
        if predictors.ndim > 1:
            return softmax(predictors, axis=1)
        return np.column_stack([expit(-predictors), expit(predictors)])

    def predict_log_proba(self, X: Any) -> Matrix:
        """Its logarithm."""
        predictors = self.decision_function(X)
        if predictors.ndim > 1:
            return log_softmax(predictors, axis=1)
        return np.column_stack([log_expit(-predictors), log_expit(predictors)])


# ---------------------------------------------------------------- many classes


@dataclass(frozen=True, eq=False)
class Turned:
    """A likelihood whose equations are w = turn·u in others: as many numbers of u a column of the design as `turn` has columns."""

    inner: Likelihood
    turn: Matrix

    @property
    def dim(self) -> int:
        """How many unknowns there are."""
        return self.inner.dim // self.turn.shape[0] * self.turn.shape[1]

    def _inner(self, u: Vector) -> Vector:
        return (self.turn @ u.reshape(self.turn.shape[1], -1)).reshape(-1)

    def value(self, u: Vector) -> float:
        """−log of the likelihood."""
        return self.inner.value(self._inner(u))

    def gradient(self, u: Vector) -> Vector:
        """Its slope."""
        return self._outer(self.inner.gradient(self._inner(u)))

    def hessian(self, u: Vector) -> Matrix:
        """Its curvature."""
        return self._both(self.inner.hessian(self._inner(u)))

    def information(self, u: Vector) -> Matrix:
        """What it is expected to be."""
        return self._both(self.inner.information(self._inner(u)))

    def scores(self, u: Vector) -> Matrix:
        """What each row adds to the slope."""
        return np.array([self._outer(one) for one in self.inner.scores(self._inner(u))])

    def rows_at(self, u: Vector) -> RowsAt:
        """The rows by the equations within."""
        return self.inner.rows_at(self._inner(u))

    def _outer(self, slopes: Vector) -> Vector:
        return (self.turn.T @ slopes.reshape(self.turn.shape[0], -1)).reshape(-1)

    def _both(self, curvature: Matrix) -> Matrix:
        equations, width = self.turn.shape[0], len(curvature) // self.turn.shape[0]
        blocks = curvature.reshape(equations, width, equations, width)
        turned = np.einsum("ka,kilj,lb->aibj", self.turn, blocks, self.turn, optimize=True)
        return turned.reshape(self.dim, self.dim)


def basis_of(count: int, each: bool) -> Matrix:
    """What the coefficients of all classes are made of.

    They are not determined by the chances: the same may be added to all. Under a ridge, and without a penalty in their shortest form, they
    add up to 0, so that an orthonormal basis of such coefficients is enough, whose ridge is theirs. A lasso weighs `each` by itself.
    """
    if count == 2:
        return np.array([[0.0], [1.0]])
    return np.eye(count) if each else helmert(count).T


def _likelihood(design: Matrix, numbers: Vector, weight: Vector, count: int) -> Linear:
    if count == 2:
        return Linear(design, FamilyLosses(family_named("binomial"), numbers, weight, np.zeros(len(numbers))))
    return Linear(design, SoftmaxLosses(numbers.astype(np.int64), count, weight))
