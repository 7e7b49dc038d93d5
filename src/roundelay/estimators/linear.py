"""Linear regressions, without a penalty, with a ridge, with a lasso, and with both; and those of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import block_diag
from sklearn.base import RegressorMixin

from roundelay.algorithms.sealed.optimisers import NormalEquations
from roundelay.engine import Run
from roundelay.estimators.estimator import Penalty, RingEstimator, elastic
from roundelay.estimators.summary import Look, look_at
from roundelay.estimators.sums import ROUNDING, SealedSums, units_of
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number
from roundelay.regression.families import family_named
from roundelay.regression.likelihood import FamilyLosses, Linear
from roundelay.regression.regression import MOST_UNKNOWNS

# A direction along which the rows differ less than this, relative to that along which they differ most, is no direction.
FLAT = 8.0 * ROUNDING


class RingLinear(RegressorMixin, RingEstimator):  # type: ignore[misc]
    """Squares and a penalty. The constant follows from the means, so that nothing but slopes is asked for."""

    fit_intercept: bool

    def _penalty(self, weight: float) -> Penalty:
        """Beside the mean of half the squares, where the rows weigh so much together."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sites: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of all sites; `sites` has a label for each row. Without it the rows are cut into three sites, in their order."""
        rows = self._rows(X, y, sites, sample_weight)
        sums, columns = SealedSums(len(rows.parts)), np.column_stack([rows.features, rows.target])
        units = units_of(columns, rows.weight, rows.parts, sums, bool(self.fit_intercept))
        penalty = self._penalty(units.weight)
        units = units.under(np.append(np.full(len(units.scale) - 1, penalty.ridge), 0.0))
        scaled, scale, unit = units.of(columns), units.scale[:-1], float(units.scale[-1])
        likelihoods = [
            Linear(
                scaled[part, :-1],
                FamilyLosses(family_named("gaussian"), scaled[part, -1], rows.weight[part], np.zeros(len(part))),
            )
            for part in rows.parts
        ]
        ridges, lassos = penalty.spread(scale, constant=False)
        # In these units everything is divided by the square of the target's.
        fitted = self._minimised(likelihoods, units.weight, np.diag(ridges), lassos / unit, squares=True)
        slopes, constant, look = fitted.run.estimate * unit / scale, bool(self.fit_intercept), None
        if penalty == Penalty() and len(scale) <= MOST_UNKNOWNS:
            logs = [float(np.log(rows.weight[part][rows.weight[part] > 0.0]).sum()) for part in rows.parts]
            points = fitted.run.estimate, np.zeros(len(scale))
            look = look_at(sums, likelihoods, points, logs, _told(fitted.run, likelihoods))
            slopes = _shortest(slopes, look.information, scale)
        self._keep(fitted, sums)
        self.coef_ = slopes = np.where(units.still[:-1], 0.0, slopes)
        self.intercept_ = float(units.shift[-1] - units.shift[:-1] @ slopes) if constant else 0.0
        if look is not None:
            information = block_diag(look.information, units.weight * np.eye(int(constant)))
            look = Look(information, look.value * unit**2, look.null * unit**2, look.beside)
            self._explain(
                "gaussian", look, units.first(rows.features.shape[1]).changes(constant), rows, fitted, constant
            )
        return self

    def predict(self, X: Any) -> Vector:
        """What is expected of each row."""
        return self._predictors(X)


def _told(run: Run, likelihoods: Sequence[Linear]) -> Matrix | None:
    """The curvature, where it was told in the lap that found the minimum: it is the same everywhere."""
    if getattr(run.algorithm, "optimiser", None) != NormalEquations():
        return None
    return np.array(np.sum([one.hessian(run.estimate) for one in likelihoods], axis=0))


def _shortest(slopes: Vector, curvature: Matrix, scale: Vector) -> Vector:
    """The shortest slopes that predict the same, where the columns of all rows follow from each other."""
    curvatures, directions = np.linalg.eigh(curvature)
    flat = directions[:, curvatures <= FLAT * len(scale) * curvatures.max(initial=0.0)]
    if not flat.size:
        return slopes
    useless, _ = np.linalg.qr(flat / scale[:, None])
    return slopes - useless @ (useless.T @ slopes)


class RingLinearRegression(RingLinear):
    """Least squares, as scikit-learn's LinearRegression: min Σ s(y − x'w − b)², and of several minima the one with the shortest w."""

    def __init__(
        self, *, fit_intercept: bool = True, algorithm: Any = None, tol: float = 1e-8, max_laps: int = 10_000
    ) -> None:  # fmt: skip
        super().__init__(algorithm=algorithm, tol=tol, max_laps=max_laps)
        self.fit_intercept = fit_intercept

    def _penalty(self, weight: float) -> Penalty:
        return Penalty()


class RingRidge(RingLinear):
    """Least squares with a ridge, as scikit-learn's Ridge: min Σ s(y − x'w − b)² + alpha ‖w‖²."""

    def __init__(
        self, alpha: float = 1.0, *, fit_intercept: bool = True, algorithm: Any = None, tol: float = 1e-8, max_laps: int = 10_000,
    ) -> None:  # fmt: skip
        super().__init__(algorithm=algorithm, tol=tol, max_laps=max_laps)
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _penalty(self, weight: float) -> Penalty:
        return Penalty(ridge=finite_number("alpha", self.alpha, least=0.0) / weight)


class RingElasticNet(RingLinear):
    """Least squares that keeps few columns, as scikit-learn's ElasticNet.

    min Σ s(y − x'w − b)²/(2Σs) + alpha·l1_ratio ‖w‖₁ + ½ alpha·(1 − l1_ratio) ‖w‖²
    """

    def __init__(
        self, alpha: float = 1.0, *, l1_ratio: float = 0.5, fit_intercept: bool = True, algorithm: Any = None, tol: float = 1e-8,
        max_laps: int = 10_000,
    ) -> None:  # fmt: skip
        super().__init__(algorithm=algorithm, tol=tol, max_laps=max_laps)
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept

    def _penalty(self, weight: float) -> Penalty:
        return elastic(finite_number("alpha", self.alpha, least=0.0), self.l1_ratio)


class RingLasso(RingElasticNet):
    """Least squares that keeps few columns, as scikit-learn's Lasso: min Σ s(y − x'w − b)²/(2Σs) + alpha ‖w‖₁."""

    def __init__(
        self, alpha: float = 1.0, *, fit_intercept: bool = True, algorithm: Any = None, tol: float = 1e-8, max_laps: int = 10_000,
    ) -> None:  # fmt: skip
        RingEstimator.__init__(self, algorithm=algorithm, tol=tol, max_laps=max_laps)
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _penalty(self, weight: float) -> Penalty:
        return elastic(finite_number("alpha", self.alpha, least=0.0), 1.0)


# ---------------------------------------------------------------- counts


class RingPoissonRegressor(RegressorMixin, RingEstimator):  # type: ignore[misc]
    """Counts whose mean is exp(x'w + b), as scikit-learn's PoissonRegressor: min Σ s·deviance/(2Σs) + ½ alpha ‖w‖²."""

    def __init__(
        self, *, alpha: float = 1.0, fit_intercept: bool = True, algorithm: Any = None, tol: float = 1e-8, max_laps: int = 10_000,
    ) -> None:  # fmt: skip
        super().__init__(algorithm=algorithm, tol=tol, max_laps=max_laps)
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sites: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of all sites; `sites` has a label for each row. Without it the rows are cut into three sites, in their order."""
        rows = self._rows(X, y, sites, sample_weight)
        if (rows.target < 0.0).any():
            raise ValueError(f"Row {int(np.argmax(rows.target < 0.0))} has a target below 0: counts are 0 or more.")
        sums, constant = SealedSums(len(rows.parts)), bool(self.fit_intercept)
        both = units_of(np.column_stack([rows.features, rows.target]), rows.weight, rows.parts, sums, constant)
        units, mean = both.first(rows.features.shape[1]), float(both.shift[-1])
        if constant and not mean > 0.0:
            raise ValueError("The target is 0 in all rows of all sites: there is nothing to explain.")
        penalty = Penalty(ridge=finite_number("alpha", self.alpha, least=0.0))
        # From the mean of all rows on, where the first step is a good one.
        start = np.log(mean) if constant else 0.0
        units = units.under(penalty.ridge / (mean if constant else 1.0))
        design = units.design(rows.features, constant)
        family = family_named("poisson")
        likelihoods = [
            Linear(design[part], FamilyLosses(family, rows.target[part], rows.weight[part], np.full(len(part), start)))
            for part in rows.parts
        ]
        ridges, lassos = penalty.spread(units.scale, constant)
        fitted = self._minimised(likelihoods, units.weight, np.diag(ridges), lassos)
        look, point = None, fitted.run.estimate
        if penalty == Penalty() and len(point) <= MOST_UNKNOWNS:
            means = [family.mean(design[part] @ point + start) for part in rows.parts]
            logs = [
                float(family.log_likelihood(rows.target[part], mean, rows.weight[part], 1.0).sum())
                for part, mean in zip(rows.parts, means, strict=True)
            ]
            look = look_at(sums, likelihoods, (point, np.zeros(len(point))), logs)
        self._keep(fitted, sums)
        slopes, constants = units.raw(point[None], constant)
        self.coef_, self.intercept_ = slopes[0], float(constants[0] + start)
        if look is not None:
            self._explain("poisson", look, units.changes(constant), rows, fitted, constant)
        return self

    def predict(self, X: Any) -> Vector:
        """The mean count that is expected of each row."""
        return np.exp(self._predictors(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the part of the deviance that is explained."""
        from sklearn.metrics import d2_tweedie_score

        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        """A count is not below 0."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
