"""Statistics of all rows of all sites, from sums in which no site shows its own summand.

A summand is a vector of numbers in words modulo 2¹²⁸ (`masks.WideFixedPoint`), which are added under masks: so the total is exact,
and tells nothing besides the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roundelay.agents.data.reading import OwnRows
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.masks.fixed_point import WIDEST

# Below this a sum of squares is too coarse on that grid to be a scale.
LEAST_SPREAD = math.ldexp(1.0, -44)
ROUNDING = float(np.finfo(np.float64).eps)


def refuse_large(values: Vector, names: Sequence[str], sites: int) -> None:
    """Refuse sums of which so many sites might have too large a total, by name; the number itself is the site's own."""
    for name, value in zip(names, values.tolist(), strict=True):
        if not abs(value) * sites <= WIDEST:
            raise ValueError(
                f"This site's sum for {name} is too large to be added up exactly: give it in a larger unit at all sites."
            )


@dataclass(frozen=True, eq=False)
class Standard:
    """What all rows of all sites have in common: how many `rows` there are, and `mean` and `deviation` of each feature
    and of the target. Deviations are over all n rows, with 1/n.
    """

    rows: int
    mean: Vector
    deviation: Vector
    target_mean: float
    target_deviation: float

    def __post_init__(self) -> None:
        whole_number("The number of rows", self.rows, least=1)
        finite_number("The mean of the target", self.target_mean)
        finite_number("The deviation of the target", self.target_deviation, least=0.0)
        for name in ("mean", "deviation"):
            values = np.array(getattr(self, name), np.float64)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise ValueError(f"The {name} of the features must be one finite number for each: ask the ring again.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if len(self.mean) != len(self.deviation) or (self.deviation < 0.0).any():
            raise ValueError("The features need a mean and a deviation each, and none below 0: ask the ring again.")


def first_moments(rows: OwnRows) -> Vector:
    """A site's summand of the first sum: (n, Σx of each feature, Σt)."""
    return np.array([float(rows.count), *_column_sums(_columns(rows))])


def means_of(first: Vector) -> Vector:
    """The means of the features and of the target, from the total of all sites' first moments."""
    totals = np.asarray(first, np.float64)
    rows = whole_number("The number of rows of all sites", totals[0], least=1)
    return totals[1:] / rows


def second_moments(rows: OwnRows, means: Vector) -> Vector:
    """A site's summand of the second sum: Σ(x − mean)² of each feature and of the target.

    About the mean of all sites, which is known by then: Σx² − n·mean² would lose the digits that matter.
    """
    columns = _columns(rows)
    if columns.shape[1] != len(means):
        raise ValueError(f"There are {len(means)} means for {columns.shape[1]} columns, the target among them.")
    return _column_sums((columns - means) ** 2)


def standard_of(first: Vector, second: Vector, names: Sequence[str], scaled: bool = True) -> Standard:
    """What follows from the totals of both sums; a feature that does not vary has no scale and is refused by name.

    With `scaled=False` nothing is divided by a deviation, and such a feature is let through.
    """
    means = means_of(first)
    rows, squares = int(first[0]), np.asarray(second, np.float64)
    if not len(means) == len(squares) == len(names) + 1:
        raise ValueError(
            f"There are {len(means)} means and {len(squares)} deviations for {len(names)} features and the target."
        )
    # The squares of one and the same number about its rounded mean are rounding.
    still = squares <= np.maximum(rows * (4.0 * ROUNDING * means) ** 2, LEAST_SPREAD)
    constant = [f'"{name}"' for name, is_still in zip(names, still[:-1], strict=True) if is_still]
    if scaled and constant:
        one = len(constant) == 1
        raise ValueError(
            f"The feature{'' if one else 's'} {', '.join(constant)} {'is' if one else 'are'} the same in all rows of all sites, or "
            f"var{'ies' if one else 'y'} too little to be seen: leave {'it' if one else 'them'} out of the fit, or choose a smaller unit."
        )
    deviations = np.where(still, 0.0, np.sqrt(np.maximum(squares, 0.0) / rows))
    return Standard(rows, means[:-1], deviations[:-1], float(means[-1]), float(deviations[-1]))


def pack(standard: Standard) -> Vector:
    """As it is told to everybody: (n, mean and deviation of the target, means, deviations)."""
    head = [float(standard.rows), standard.target_mean, standard.target_deviation]
    return np.concatenate([head, standard.mean, standard.deviation])


def unpack(vector: Vector) -> Standard:
    """What `pack` has packed; anything else is refused."""
    told = np.asarray(vector, np.float64)
    if told.ndim != 1 or len(told) < 5 or len(told) % 2 == 0:
        raise ValueError(
            f"Statistics of the ring can't have the shape {told.shape}: all sites need the same release of roundelay."
        )
    mean, deviation = np.split(told[3:], 2)
    rows = whole_number("The number of rows of all sites", told[0], least=1)
    return Standard(rows, mean, deviation, float(told[1]), float(told[2]))


def _columns(rows: OwnRows) -> Matrix:
    return np.column_stack([rows.features, rows.target])


def _column_sums(columns: Matrix) -> Vector:
    return np.array([math.fsum(column) for column in columns.T.tolist()])  # exact, then rounded once
