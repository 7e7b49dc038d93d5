"""Regression of counts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from roundelay.estimators.estimator import Penalty, RingEstimator
from roundelay.estimators.summary import look_at
from roundelay.estimators.sums import SealedSums, units_of
from roundelay.kernels import Vector
from roundelay.kernels.checks import finite_number
from roundelay.regression.families import family_named
from roundelay.regression.likelihood import FamilyLosses, Linear
from roundelay.regression.regression import MOST_UNKNOWNS


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
