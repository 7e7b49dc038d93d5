"""What all estimators have in common: how rows are divided among sites, what is known after a fit, and a linear predictor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundelay.engine import Run
from roundelay.estimators.fitting import Fitted, minimised, problem_of_sites
from roundelay.estimators.sums import USUAL_SITES, Communication, SealedSums, rows_of_sites
from roundelay.kernels import Integers, Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.regression.likelihood import Likelihood
from roundelay.regression.study import SiteFunction

try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "The estimators are scikit-learn's kind, which is not installed or is older than 1.6: pip install 'roundelay[estimators]'."
    ) from error


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

    def spread(self, scale: Vector, constant: bool, equations: int = 1) -> tuple[Vector, Vector]:
        """Ridge and lasso of each unknown of a fit whose coefficients are those of the data times the scale."""
        ridge, lasso = self.ridge / scale**2, self.lasso / scale
        return tuple(np.tile(np.append(one, [0.0] * constant), equations) for one in (ridge, lasso))  # type: ignore[return-value]


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

    def __init__(
        self, *, algorithm: Any = None, tol: float = 1e-8, max_laps: int = 10_000, random_state: int = 0
    ) -> None:
        self.algorithm = algorithm
        self.tol = tol
        self.max_laps = max_laps
        self.random_state = random_state

    def _rows(
        self, X: Any, y: Any, sites: Any, sample_weight: Any, read: Callable[[Any], Vector] | None = None, usual: int = USUAL_SITES,
    ) -> Rows:  # fmt: skip
        """The rows, checked; `read` makes numbers of the targets, where they need not be numbers."""
        if read is None:
            features, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        else:
            features, target = validate_data(self, X, y, dtype=np.float64)
            target = read(target)
        weight = _check_sample_weight(sample_weight, features, dtype=np.float64, ensure_non_negative=True)
        labels, parts = rows_of_sites(sites, len(features), usual)
        return Rows(features, np.asarray(target, np.float64), weight, labels, parts)

    def _minimised(
        self, likelihoods: Sequence[Likelihood], weight: float, ridges: Vector, lassos: Vector, squares: bool = False
    ) -> Fitted:
        """The minimum of the mean loss of a row with a penalty, in the units of the fit."""
        share = len(likelihoods) / weight
        problem = problem_of_sites([SiteFunction(one, share, ridges) for one in likelihoods], squares)
        fitted = minimised(
            problem, lassos, self.algorithm, finite_number("tol", self.tol, above=0.0),
            whole_number("max_laps", self.max_laps, least=1), whole_number("random_state", self.random_state, least=0),
        )  # fmt: skip
        if not fitted.residual <= self.tol:
            warnings.warn(
                f"{fitted.run.outcome} The mean gradient is still {fitted.residual:.1e}, above tol={self.tol:g}: allow more by max_laps, or "
                "choose another algorithm; sealed laps need nothing to be chosen.", ConvergenceWarning, stacklevel=4,
            )  # fmt: skip
        return fitted

    def _keep(self, fitted: Fitted, sums: SealedSums) -> None:
        self.run_ = fitted.run
        self.n_iter_ = fitted.laps
        self.communication_ = fitted.communication + sums.communication(len(fitted.run.estimate))

    def _predictors(self, X: Any) -> Matrix:
        """X'w + b of each row, for each equation where there are several."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        return features @ self.coef_.T + self.intercept_
