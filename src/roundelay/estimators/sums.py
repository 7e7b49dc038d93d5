"""The rows of each site, the sums that are formed before a fit, and the units of the fit that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from roundelay.kernels import Integers, Matrix, Vector
from roundelay.masks import WideFixedPoint

# Where nobody says which rows are at which site, they are cut into so many pieces: the fewest among which a sum hides anything.
USUAL_SITES = 3
ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Communication:
    """What a fit takes between the sites, the sums before and after it among it.

    `laps` (iterations, where all sites speak at once), `hops` (transmissions), `units` (transmissions of a vector of all unknowns) and
    `bytes` of numbers and words. One site alone sends nothing.
    """

    laps: int = 0
    hops: int = 0
    units: float = 0.0
    bytes: int = 0

    def __add__(self, other: Communication) -> Communication:
        """Both."""
        return Communication(
            self.laps + other.laps, self.hops + other.hops, self.units + other.units, self.bytes + other.bytes
        )


def rows_of_sites(sites: Any, count: int, usual: int = USUAL_SITES) -> tuple[tuple[Any, ...], list[Integers]]:
    """The labels of the sites, in the order in which they first appear, and the numbers of the rows that each has.

    Without labels the rows are cut, in their order, into `usual` pieces that are as equal as can be.
    """
    if sites is None:
        pieces = np.array_split(np.arange(count, dtype=np.int64), max(1, min(usual, count)))
        return tuple(range(len(pieces))), pieces
    import pandas as pd

    labels = pd.Series(sites) if np.ndim(sites) == 1 else None
    if labels is None or len(labels) != count:
        shape = np.shape(sites)
        raise ValueError(f"sites has the shape {shape}, but there are {count} rows: give one label for each row.")
    codes, names = pd.factorize(labels)
    if (codes < 0).any():
        raise ValueError(
            f"Row {int(np.argmax(codes < 0))} has no site: give each row the label of the site that holds it."
        )
    order = np.argsort(codes, kind="stable")
    return tuple(names.tolist()), np.split(order, np.cumsum(np.bincount(codes))[:-1])


@dataclass(eq=False)
class SealedSums:
    """Sums over the sites besides those of the fit: in two words a number, exact whatever the units, and told to all with the next one."""

    sites: int
    laps: int = 0
    numbers: int = field(default=0, init=False)
    sent: int = field(default=0, init=False)

    def total(self, summands: Sequence[Vector], what: str) -> Vector:
        """The sum of what every site adds."""
        grid = WideFixedPoint()
        words = grid.encode(np.array(summands), self.sites, what)
        self.laps += 1
        self.numbers += 2 * summands[0].size
        # A sum goes round in words, and once more as numbers, when it is told.
        self.sent += words[0].size + summands[0].size
        return grid.decode(grid.total(words))

    def communication(self, dim: int) -> Communication:
        """What that took."""
        hops = self.laps * self.sites
        if self.sites == 1:
            return Communication(self.laps, hops)
        return Communication(self.laps, hops, self.sites * self.numbers / dim, 8 * self.sites * self.sent)


@dataclass(frozen=True, eq=False)
class Units:
    """A fit is in (x − shift)/scale, so that neither units nor where they begin matter. A column that does not vary counts for nothing.

    `weight` is Σ weight over all rows, of which there are `rows`.
    """

    rows: int
    weight: float
    shift: Vector
    scale: Vector
    still: Any

    def of(self, columns: Matrix) -> Matrix:
        """Columns in these units."""
        return np.where(self.still, 0.0, (columns - self.shift) / self.scale)

    def design(self, columns: Matrix, constant: bool) -> Matrix:
        """Columns in these units, and behind them one of ones, where there is a constant."""
        scaled = self.of(columns)
        return np.column_stack([scaled, np.ones(len(scaled))]) if constant else scaled

    def raw(self, unknowns: Matrix, constant: bool) -> tuple[Matrix, Vector]:
        """Slopes along the columns as they were given, and the constants there, from the unknowns of the fit; one row an equation."""
        scaled, constants = (unknowns[:, :-1], unknowns[:, -1]) if constant else (unknowns, np.zeros(len(unknowns)))
        slopes = np.where(self.still, 0.0, scaled / self.scale)
        return slopes, constants - slopes @ self.shift

    def changes(self, constant: bool, equations: int = 1) -> Matrix:
        """What a change of the unknowns changes the coefficients by, the constant of an equation first there, and last among its unknowns."""
        slopes = np.diag(np.where(self.still, 0.0, 1.0 / self.scale))
        if constant:
            slopes = np.block([[-self.shift @ slopes, np.ones(1)], [slopes, np.zeros((len(slopes), 1))]])
        return np.kron(np.eye(equations), slopes)

    def first(self, count: int) -> Units:
        """Of the first columns alone."""
        return replace(self, shift=self.shift[:count], scale=self.scale[:count], still=self.still[:count])

    def under(self, ridge: Any) -> Units:
        """Units in which the curvature of mean loss and ridge together is about 1 along each column, however little it varies."""
        return replace(self, scale=np.sqrt(self.scale**2 + ridge))


def units_of(
    columns: Matrix, weight: Vector, parts: Sequence[Integers], sums: SealedSums, centred: bool = True
) -> Units:
    """The units in which all columns have the mean 0 (where they are to be centred) and the size 1, from two sums under masks."""
    count = columns.shape[1]
    first = sums.total([_moments(columns[part], weight[part]) for part in parts], "A sum of a column")
    rows, total = round(float(first[0])), float(first[1])
    if not total > 0.0:
        raise ValueError(
            "All rows have the weight 0, so that there is nothing to fit: give some a sample_weight above 0."
        )
    mean, size = first[2 : 2 + count] / total, first[2 + count :] / total
    size = np.where(size > 0.0, size, 1.0)
    shift = mean if centred else np.zeros(count)
    # About the mean, which is known by now, and in the column's own size: nothing is lost of squares that are tiny beside it.
    squares = sums.total([weight[part] @ ((columns[part] - shift) / size) ** 2 for part in parts], "A sum of squares")
    spread = np.sqrt(squares / total)
    still = spread <= 4.0 * ROUNDING * np.abs(shift) / size
    return Units(rows, total, shift, np.where(still, 1.0, spread * size), still)


def _moments(columns: Matrix, weight: Vector) -> Vector:
    return np.concatenate([[len(weight), weight.sum()], weight @ columns, weight @ np.abs(columns)])
