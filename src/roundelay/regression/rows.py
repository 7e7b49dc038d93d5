"""One site's rows, as the numbers that a regression takes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.regression.formula import COUNTS, Knots
from roundelay.regression.likelihood import Absorbed, Cox, FamilyLosses, Likelihood, Linear, Losses, SoftmaxLosses
from roundelay.regression.regression import COX, INTERCEPT, Regression

if TYPE_CHECKING:
    import pandas as pd


class Scaling(NamedTuple):
    """The columns of the design are fitted as (x − shift)/scale; the constant, where there is one, has the shift 0 and the scale 1."""

    shift: Vector
    scale: Vector


class Written(NamedTuple):
    """A column as a site's file has it: in which unit, and what."""

    unit: str
    values: Vector


@dataclass(frozen=True, eq=False)
class SiteRows:
    """The rows of a site without an empty cell in a column of the regression; `dropped` rows had one, `dropped_by` column each.

    `converted` says in words which columns were in another unit, and how they were converted; `as_written` has them by name as they were.
    """

    regression: Regression
    frame: pd.DataFrame
    dropped: int = 0
    dropped_by: tuple[int, ...] = ()
    converted: tuple[str, ...] = ()
    as_written: Mapping[str, Written] = field(default_factory=dict)
    _designs: dict[tuple[tuple[str, tuple[float, ...]], ...], Matrix] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        if not self.dropped_by:
            object.__setattr__(self, "dropped_by", (0,) * len(self.regression.columns))
        _ = self.response  # what it can't be is said now

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.frame)

    def without(self, left_out: NDArray[np.bool_]) -> SiteRows:
        """The rows but for some."""
        as_written = {name: one._replace(values=one.values[~left_out]) for name, one in self.as_written.items()}
        return replace(self, frame=self.frame[~left_out], as_written=as_written)

    def in_units_of(self, other: Regression) -> pd.DataFrame:
        """The same rows in the units of another regression; without the columns of which it takes no such unit."""
        frame, there = self.frame.copy(), {column.name: column for column in other.columns}
        for column in self.regression.columns:
            if column.values != "number" or (column.name not in self.as_written and column.name not in there):
                continue
            written = self.as_written.get(
                column.name, Written(column.unit, self.frame[column.name].to_numpy(np.float64))
            )
            agreed = there.get(column.name, column)
            one = next((one for one in agreed.conversions if one.unit == written.unit), None)
            if agreed.unit == written.unit or agreed.values != "number":
                frame[column.name] = written.values
            elif one is not None:
                frame[column.name] = one.factor * written.values + one.offset
            else:
                frame = frame.drop(columns=column.name)
        return frame

    # ------------------------------------------------------------ beside the predictors

    @cached_property
    def _parts(self) -> tuple[Vector, ...]:
        """The numbers of the response: one vector, or two of counts or of survival."""
        terms = self.regression.terms
        return tuple(terms.numbers(part, self.frame) for part in terms.response[1])

    @cached_property
    def response(self) -> Vector:
        """Y: a number, the part of the trials that were a success, the number of a level, or the time."""
        regression = self.regression
        first, *rest = self._parts
        if regression.terms.response[0] == COUNTS:
            trials = first + rest[0]
            self._refuse(
                (first < 0.0) | (rest[0] < 0.0) | (trials == 0.0), "no counts of which at least one is above 0"
            )
            return first / trials
        if regression.family == COX:
            self._refuse(first <= 0.0, "a time that is not above 0")
            self._refuse(~np.isin(rest[0], (0.0, 1.0)), "an event that is neither 0 nor 1")
            return first
        if regression.distribution is not None:
            refused = regression.distribution.refusal(first)
            if refused is not None:
                bad = np.zeros(self.count, bool)
                bad[refused[0]] = True
                self._refuse(
                    bad, f"a response that the family {regression.family} does not explain, which takes {refused[1]}"
                )
        return first

    @property
    def event(self) -> Vector:
        """Whether the row ended with an event."""
        return self._parts[1]

    @cached_property
    def weight(self) -> Vector:
        """What each row counts: its weight, times its trials."""
        regression = self.regression
        weight = np.ones(self.count)
        if "weights" in regression.terms.beside:
            weight = regression.terms.numbers(regression.terms.beside["weights"], self.frame)
            self._refuse(weight < 0.0, "a weight below 0")
        if regression.terms.response[0] == COUNTS:
            weight = weight * (self._parts[0] + self._parts[1])
        return weight

    @cached_property
    def offset(self) -> Vector:
        """What is added to each row's predictor."""
        beside = self.regression.terms.beside
        return (
            self.regression.terms.numbers(beside["offset"], self.frame) if "offset" in beside else np.zeros(self.count)
        )

    def _refuse(self, bad: object, what: str) -> None:
        wrong = np.flatnonzero(np.asarray(bad))
        if len(wrong):
            place = self.frame.index[wrong[0]]
            raise ValueError(
                f"The row on line {place} of this site's data has {what} ({len(wrong):,} such row{'s' * (len(wrong) > 1)}): correct the data, or plan "
                f"another family. The formula is {self.regression.formula}."
            )

    # ------------------------------------------------------------ predictors

    def design(self, knots: Knots) -> Matrix:
        """A column for each coefficient of an equation, in raw units, the constant first where there is one."""
        at = tuple(sorted((written, tuple(ends)) for written, ends in knots.items()))
        if at not in self._designs:
            names, matrix = self.regression.terms.design(self.frame, knots)
            kept = [names.index(name) for name in self.regression.design_names]
            made = np.ascontiguousarray(matrix[:, kept])
            made.setflags(write=False)
            self._designs.clear()  # of many rows one is enough to hold
            self._designs[at] = made
        return self._designs[at]

    def own_scaling(self, knots: Knots) -> Scaling:
        """The units in which these rows by themselves are standardised."""
        design, regression = self.design(knots), self.regression
        is_constant = np.array([name == INTERCEPT for name in regression.design_names])
        spread = design.std(axis=0)
        centred = regression.has_intercept or regression.absorbs_sites
        shift = np.where(is_constant | (not centred), 0.0, design.mean(axis=0))
        return Scaling(shift, np.where(is_constant | ~(spread > 0.0), 1.0, spread))

    def likelihood(self, knots: Knots, scaling: Scaling) -> Likelihood:
        """What these rows say of the unknowns, in standardised units."""
        regression = self.regression
        return likelihood_of(regression, (self.design(knots) - scaling.shift) / scaling.scale, self)


def likelihood_of(regression: Regression, design: Matrix, rows: SiteRows) -> Likelihood:
    """What rows with this design say of the unknowns."""
    if regression.family == COX:
        return Cox(design, rows.response, rows.event, rows.weight, rows.offset)
    linear = Linear(design, _losses(regression, rows))
    return Absorbed(linear) if regression.absorbs_sites else linear


def _losses(regression: Regression, rows: SiteRows) -> Losses:
    if regression.distribution is None:
        return SoftmaxLosses(rows.response.astype(np.int64), len(regression.classes), rows.weight)
    return FamilyLosses(regression.distribution, rows.response, rows.weight, rows.offset)


__all__ = ["INTERCEPT", "Scaling", "SiteRows", "likelihood_of"]
