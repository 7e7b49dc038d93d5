"""What all estimators have in common: how rows are divided among sites, what is known after a fit, and a linear predictor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from roundelay.engine import Run
from roundelay.estimators.fitting import Fitted, minimised, problem_of_sites
from roundelay.estimators.summary import Look, Outcome
from roundelay.estimators.sums import USUAL_SITES, Communication, SealedSums, rows_of_sites
from roundelay.kernels import Integers, Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.regression.likelihood import Likelihood
from roundelay.regression.regression import INTERCEPT, MOST_UNKNOWNS
from roundelay.regression.result import Result
from roundelay.regression.shown.printed import printed
from roundelay.regression.study import SiteFunction


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows, and the numbers of those that each site has; the labels of the sites."""

    features: Matrix
    target: Vector
    weight: Vector
    labels: tuple[Any, ...]
    parts: Sequence[Integers]


@dataclass(frozen=True)
class Penalty:
    """ridge/2 ‖w‖² + lasso ‖w‖₁, beside the mean loss of a row; never on a constant."""

    ridge: float = 0.0
    lasso: float = 0.0

    def spread(self, scale: Vector, constant: bool) -> tuple[Vector, Vector]:
        """Ridge and lasso of each unknown of a fit whose coefficients are those of the data times the scale."""
        free = [0.0] * constant
        return np.append(self.ridge / scale**2, free), np.append(self.lasso / scale, free)


def elastic(weight: float, l1_ratio: float) -> Penalty:
    """A penalty of this weight, of which a part is a lasso and the rest a ridge."""
    part = finite_number("l1_ratio", l1_ratio, least=0.0)
    if part > 1.0:
        raise ValueError(f"l1_ratio is {l1_ratio}: it is a part, so use a number from 0 to 1.")
    return Penalty(ridge=weight * (1.0 - part), lasso=weight * part)


class RingEstimator(BaseEstimator):  # type: ignore[misc]
    """A linear predictor that is fitted by sums over sites."""

    coef_: Any
    intercept_: Any
    n_iter_: int
    run_: Run
    communication_: Communication

    def __init__(self, *, algorithm: Any = None, tol: float = 1e-8, max_laps: int = 10_000) -> None:
        self.algorithm = algorithm
        self.tol = tol
        self.max_laps = max_laps

    def _rows(
        self, X: Any, y: Any, sites: Any, sample_weight: Any, read: Callable[[Any], Vector] | None = None, usual: int = USUAL_SITES,
    ) -> Rows:  # fmt: skip
        """The rows, checked; `read` makes numbers of the targets, where they need not be numbers."""
        self._outcome: Outcome | None = None
        self._response = str(getattr(y, "name", None) or "y")
        if read is None:
            features, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        else:
            features, target = validate_data(self, X, y, dtype=np.float64)
            target = read(target)
        weight = _check_sample_weight(sample_weight, features, dtype=np.float64, ensure_non_negative=True)
        labels, parts = rows_of_sites(sites, len(features), usual)
        return Rows(features, np.asarray(target, np.float64), weight, labels, parts)

    def _minimised(
        self, likelihoods: Sequence[Likelihood], weight: float, ridge: Matrix, lassos: Vector, squares: bool = False
    ) -> Fitted:
        """The minimum of the mean loss of a row with ½u'Ru and the lassos, in the units of the fit."""
        share = len(likelihoods) / weight
        problem = problem_of_sites([SiteFunction(one, share, ridge) for one in likelihoods], squares)
        fitted = minimised(
            problem, lassos, self.algorithm, finite_number("tol", self.tol, above=0.0),
            whole_number("max_laps", self.max_laps, least=1),
        )  # fmt: skip
        if not fitted.residual <= self.tol:
            warnings.warn(
                f"{fitted.run.outcome} The mean gradient is still {fitted.residual:.1e}, above tol={self.tol:g}: allow more by max_laps, or "
                "choose another algorithm; sealed laps need nothing to be chosen.", ConvergenceWarning, stacklevel=4,
            )  # fmt: skip
        return fitted

    def _explain(
        self, family: str, look: Look, raw: Matrix, rows: Rows, fitted: Fitted, constant: bool, levels: Sequence[str] = ("",)
    ) -> None:  # fmt: skip
        """What the table is made of; its coefficients are those of the levels but the first, less those of the first."""
        features = getattr(self, "feature_names_in_", [f"x{number}" for number in range(rows.features.shape[1])])
        one = [*[INTERCEPT] * constant, *map(str, features)]
        constants = (
            np.atleast_1d(self.intercept_)[:, None] if constant else np.zeros((len(np.atleast_2d(self.coef_)), 0))
        )
        estimate = np.column_stack([constants, np.atleast_2d(self.coef_)])
        if len(levels) > 2:
            estimate, names = estimate[1:] - estimate[0], [f"{level}: {name}" for level in levels[1:] for name in one]
        else:
            names = one
        self._outcome = Outcome(
            family, self._response, tuple(names), estimate.reshape(-1), raw, look, len(rows.target), tuple(map(str, rows.labels)),
            fitted.laps, bool(fitted.residual <= self.tol),
        )  # fmt: skip

    def result(self) -> Result:
        """The regression as it is published: coefficients with their errors, and how well it fits."""
        check_is_fitted(self)
        if self._outcome is None:
            raise ValueError(
                "There is no table: coefficients that a penalty has shrunk have no standard errors, and of more than "
                f"{MOST_UNKNOWNS:,} none are looked for. What was found is in coef_ and intercept_."
            )
        return self._outcome.result

    def summary(self) -> str:
        """The same as a table to print."""
        return printed(self.result())

    def _warn_of_separation(self, loss: float, weight: Vector, remedy: str) -> None:
        """Where all losses add up to less than log 2, each row is on its own side, and coefficients twice as large are better still."""
        if loss < math.log(2.0) * float(weight[weight > 0.0].min()):
            warnings.warn(
                f"The columns tell the outcomes apart without an error, so that no finite coefficients are the best: choose {remedy}.",
                ConvergenceWarning, stacklevel=3,
            )  # fmt: skip

    def _keep(self, fitted: Fitted, sums: SealedSums) -> None:
        self.run_ = fitted.run
        self.n_iter_ = fitted.laps
        self.communication_ = fitted.communication + sums.communication(len(fitted.run.estimate))

    def _predictors(self, X: Any) -> Matrix:
        """X'w + b of each row, for each equation where there are several."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        return features @ self.coef_.T + self.intercept_
