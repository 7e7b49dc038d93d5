"""Cox's regression of survival, each site with a baseline hazard of its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from roundelay.estimators.estimator import Penalty, RingEstimator
from roundelay.estimators.summary import look_at
from roundelay.estimators.sums import SealedSums, units_of
from roundelay.kernels import Vector
from roundelay.kernels.checks import finite_number
from roundelay.regression.likelihood import Cox
from roundelay.regression.regression import COX, MOST_UNKNOWNS


class RingCox(RingEstimator):
    """Proportional hazards: min −log(partial likelihood)/n + ½ alpha ‖w‖², stratified by site, ties by Efron's method.

    Without `sites` all rows are at one site. The target has a time and an event for each row: as two columns in this order, as a structured array
    with a boolean field (the event) and a number (the time), or as one number, which is the time of an event, and below 0 a time after
    which nothing is known.
    """

    def __init__(
        self, *, alpha: float = 0.0, algorithm: Any = None, tol: float = 1e-8, max_laps: int = 10_000
    ) -> None:  # fmt: skip
        super().__init__(algorithm=algorithm, tol=tol, max_laps=max_laps)
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sites: Any = None) -> Self:
        """Fit to the rows of all sites; `sites` has a label for each row, and rows are compared with those of their own site alone."""
        rows = self._rows(X, None if y is None else signed_times(y), sites, None, usual=1)
        sums, (times, events) = SealedSums(len(rows.parts)), times_and_events(rows.target)
        units = units_of(rows.features, rows.weight, rows.parts, sums)
        penalty = Penalty(ridge=finite_number("alpha", self.alpha, least=0.0))
        design = units.of(rows.features)
        likelihoods = [
            Cox(design[part], times[part], events[part], rows.weight[part], np.zeros(len(part))) for part in rows.parts
        ]
        ridges, lassos = penalty.spread(units.scale, constant=False)
        fitted = self._minimised(likelihoods, units.weight, np.diag(ridges), lassos)
        look, point = None, fitted.run.estimate
        if penalty == Penalty() and len(point) <= MOST_UNKNOWNS:
            ended = [float(events[part].sum()) for part in rows.parts]
            look = look_at(sums, likelihoods, (point, np.zeros(len(point))), ended)
            self._warn_of_separation(look.value, rows.weight, "an alpha above 0")
        self._keep(fitted, sums)
        self.coef_ = units.raw(point[None], constant=False)[0][0]
        self.intercept_ = 0.0
        if look is not None:
            self._response = "Surv(time, event)"
            self._explain(COX, look, units.changes(constant=False), rows, fitted, constant=False)
        return self

    def predict(self, X: Any) -> Vector:
        """The logarithm of each row's hazard, but for a constant: the higher, the sooner."""
        return self._predictors(X)

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance: of the pairs of rows of which it is known who lived longer, the part that is predicted so; ties are halves."""
        return concordance(*times_and_events(signed_times(y)), self.predict(X))

    def __sklearn_tags__(self) -> Any:
        """It needs to know who died when."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def signed_times(y: Any) -> Any:
    """Time and event as one number, whose sign says that nothing is known of what came after."""
    values = np.asarray(y)
    if values.dtype.names is not None:
        flags = [name for name in values.dtype.names if values.dtype[name].kind == "b"]
        numbers = [name for name in values.dtype.names if values.dtype[name].kind in "iuf"]
        if len(flags) != 1 or len(numbers) != 1:
            raise ValueError(
                "The target has the fields "
                + ", ".join(values.dtype.names)
                + ": use a boolean one for the event and a number for the time."
            )
        events, times = values[flags[0]], values[numbers[0]].astype(np.float64)
    elif values.ndim == 2 and values.shape[1] == 2:
        times, events = values.astype(np.float64).T
        if not np.isin(events, (0.0, 1.0)).all():
            raise ValueError(
                f"The event of row {int(np.argmin(np.isin(events, (0.0, 1.0))))} is neither 0 nor 1: give the columns time and event."
            )
    else:
        return y
    if not (times >= 0.0).all():
        raise ValueError(f"The time of row {int(np.argmin(times >= 0.0))} is below 0, or no number.")
    return np.where(events, times, -times)


def times_and_events(signed: Vector) -> tuple[Vector, Vector]:
    """The other way round."""
    return np.abs(signed), (~np.signbit(signed)).astype(np.float64)


def concordance(times: Vector, events: Vector, risk: Vector) -> float:
    """A row that ended with an event is compared with all that were longer under observation."""
    right, known = 0.0, 0
    for row in np.flatnonzero(events):
        later = (times > times[row]) | ((times == times[row]) & (events == 0.0))
        right += float((risk[row] > risk[later]).sum() + 0.5 * (risk[row] == risk[later]).sum())
        known += int(later.sum())
    if not known:
        raise ValueError("No two rows can be compared: of none is it known that another lived longer.")
    return right / known
