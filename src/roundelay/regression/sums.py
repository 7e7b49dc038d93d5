"""The sums over all rows of all sites of which a regression is made, before the fit and after it, and what each of them tells.

A sum is a few named parts. What a site adds to it follows from its own rows, from the totals of the sums before, which everybody knows,
and after the fit from the point at which all stand. So everything that is printed follows from totals, and from the point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.problems.carriers import RowsAt
from roundelay.regression.columns import Column
from roundelay.regression.formula import COUNTS, Knots
from roundelay.regression.likelihood import FamilyLosses, Likelihood, binned_survival
from roundelay.regression.own_estimates import own_estimate
from roundelay.regression.regression import COX, INTERCEPT, MULTINOMIAL, Regression
from roundelay.regression.rows import Scaling, SiteRows

# A column of numbers is counted in so many bins at most, within so many deviations of its mean, and a bin has so many rows on the average.
BINS, LEAST_BINS, SPREAD, ROWS_A_BIN = 32, 4, 3.0, 4
# Chances are counted in so many bins, residuals in so many, of this width; chances are compared with outcomes in ten groups of rows.
CHANCES, RESIDUALS, RESIDUAL_WIDTH, GROUPS = 100, 26, 1.0 / 3.0, 10
SURVIVAL_BINS = 30
# Both ends of a spline: beyond, it goes on as a straight line.
ENDS = (0.05, 0.95)
# With fewer sites that can fit the rows alone, what they find would be known of each.
LEAST_SITES = 4
# A column of which less than this part is left by the others follows from them.
COLLINEAR = 1e-9
# What rounding may do to a leverage, and to products of columns that follow from others.
NEARLY, LOST = 1e-6, 1e-12
Parts = Mapping[str, Any]


@dataclass(frozen=True)
class Sum:
    """A sum over all rows of all sites.

    `sizes` says how many numbers each part has, and `own` forms a site's share. The parts in `growing` (None: all) are sums of what is
    never below 0, so that a total is never less than what a site has added. `tells` says in words what everybody learns.
    """

    name: str
    tells: str
    sizes: Callable[[Regression], Mapping[str, int]]
    own: Callable[[SiteRows, Known], Parts]
    growing: tuple[str, ...] | None = ()

    def length(self, regression: Regression) -> int:
        """How many numbers it has."""
        return sum(self.sizes(regression).values())

    def packed(self, regression: Regression, parts: Parts) -> Vector:
        """The parts, one behind the other."""
        pieces = []
        for name, size in self.sizes(regression).items():
            piece = np.asarray(parts[name], np.float64).reshape(-1)
            assert len(piece) == size, (self.name, name, len(piece), size)
            pieces.append(piece)
        return np.concatenate(pieces)

    def parts(self, regression: Regression, total: Vector) -> dict[str, Vector]:
        """What `packed` has packed."""
        found, begin = {}, 0
        for name, size in self.sizes(regression).items():
            found[name] = total[begin : begin + size]
            begin += size
        return found


# ---------------------------------------------------------------- what follows from the totals


class Described(NamedTuple):
    """A column of numbers in each group and, as the last, in all rows."""

    rows: Vector
    mean: Vector
    deviation: Vector


@dataclass(frozen=True, eq=False)
class Known:
    """What everybody knows after some of the sums: `totals` in the order of `sums_of`, and the `point` once the fit is done."""

    regression: Regression
    totals: tuple[Vector, ...]
    sites: int
    point: Vector | None = None

    def told(self, name: str) -> Mapping[str, Vector]:
        """The total of a sum, in parts."""
        return self._all[name]

    def has(self, name: str) -> bool:
        """Whether a sum was told."""
        return name in self._all

    @cached_property
    def _all(self) -> Mapping[str, Mapping[str, Vector]]:
        pairs = list(zip(sums_of(self.regression), self.totals, strict=False))
        if any(len(total) != one.length(self.regression) for one, total in pairs):
            raise ValueError(
                "The sums that were told are not those of this release, which tells others: let all sites have one release, and plan anew."
            )
        return {one.name: one.parts(self.regression, total) for one, total in pairs}

    # ------------------------------------------------------------ rows and columns

    @property
    def rows(self) -> int:
        """How many rows all sites have together."""
        return round(float(self.told("rows")["rows"][0]))

    @cached_property
    def groups(self) -> Vector:
        """How many rows each group has."""
        return self.told("counts")["groups"] if self.has("counts") else np.array([float(self.rows)])

    def mean(self, column: Column) -> float:
        """The mean of a column of numbers over all rows."""
        return float(self.told("sums")[column.name].sum()) / max(self.rows, 1)

    def spread(self, column: Column) -> float:
        """Its deviation over all rows."""
        return float(np.sqrt(max(self.told("spreads")[column.name].sum(), 0.0) / max(self.rows, 1)))

    def described(self, column: Column) -> Described:
        """Count, mean and deviation in each group, and in all rows."""
        sums, squares = (self.told(name)[column.name] for name in ("sums", "spreads"))
        count = np.append(self.groups, self.groups.sum())
        some = np.maximum(count, 1.0)
        mean = np.append(sums, sums.sum()) / some
        about = np.append(squares, squares.sum()) / some - (mean - self.mean(column)) ** 2
        return Described(count, mean, np.sqrt(np.maximum(about, 0.0) * some / np.maximum(count - 1.0, 1.0)))

    @property
    def bins(self) -> int:
        """How many bins there are: fewer where there are few rows, so that a bin has several."""
        return int(np.clip(self.rows // (ROWS_A_BIN * self.regression.least), LEAST_BINS, BINS))

    def first_edges(self, column: Column) -> Vector:
        """Bounds of bins of equal width."""
        reach = SPREAD * max(self.spread(column), np.finfo(float).tiny)
        return np.linspace(self.mean(column) - reach, self.mean(column) + reach, self.bins + 1)

    def edges(self, column: Column) -> Vector:
        """Bounds of bins with about as many rows each, as the first count had it."""
        first = self.first_edges(column)
        counts = self.told("bins")[column.name].reshape(-1, BINS + 2)[:, : self.bins + 2].sum(axis=0)
        return quantiles(first, counts, np.linspace(0.0, 1.0, self.bins + 1)[1:-1])

    def quantile(self, column: Column, parts: Vector, group: int | None = None) -> Vector:
        """Quantiles of a column, in a group or in all rows: straight within a bin."""
        inner, first = self.edges(column), self.first_edges(column)
        counts = self.told("bins again")[column.name].reshape(-1, BINS + 2)[:, 1 : self.bins + 1]
        counted = counts.sum(axis=0) if group is None else counts[group]
        low, high = min(first[0], inner[0]), max(first[-1], inner[-1])
        edges = np.concatenate([[low], inner, [high]])
        return quantiles(edges, np.concatenate([[0.0], counted, [0.0]]), parts)

    @cached_property
    def knots(self) -> Knots:
        """The knots of each spline: both ends, and between them quantiles with as many rows from one to the next."""
        columns = {column.name: column for column in self.regression.columns}
        found = {}
        for written, spline in self.regression.terms.splines.items():
            knots = self.quantile(columns[spline.column], np.linspace(*ENDS, spline.inside + 2))
            if not (np.diff(knots) > 0.0).all():
                raise ValueError(
                    f"The column {spline.column!r} has too few different values for {written}: use a smaller df, or a straight line."
                )
            found[written] = tuple(knots.tolist())
        return found

    # ------------------------------------------------------------ the design

    @cached_property
    def weight(self) -> float:
        """Σ weight over all rows."""
        return float(self.told("columns")["weight"][0])

    @cached_property
    def sizes(self) -> Vector:
        """The root of Σ weight·x²/Σ weight of each column of the design: its size."""
        size = np.sqrt(self.told("columns")["squares"] / self.weight) * self.units
        return np.where(size > 0.0, size, 1.0)

    @cached_property
    def units(self) -> Vector:
        """In which squares are summed, so that they have digits however large the numbers are: by what was told of the columns of numbers before."""
        numbers = tuple((one.name, self.mean(one), self.spread(one)) for one in _numbers(self.regression))
        return np.array(_units_of(self.regression, numbers, tuple(self.knots.items())))

    def is_whole(self, column: int) -> bool:
        """Whether all rows have 0 or 1 in a column: then its squares add up to what it does, which nothing else does but by accident."""
        told = self.told("columns")
        ones, squares = float(told["columns"][column]), self.sizes[column] ** 2 * self.weight
        return ones > 0.0 and abs(squares - ones) <= COLLINEAR * ones

    @cached_property
    def shift(self) -> Vector:
        """The mean of each column, where there is a constant that takes it up; else 0."""
        regression = self.regression
        mean = self.told("columns")["columns"] / self.weight
        centred = regression.has_intercept or regression.absorbs_sites or regression.family == COX
        return np.where(self.is_constant | (not centred), 0.0, mean)

    @property
    def is_constant(self) -> Any:
        """Which column of the design is the constant."""
        return np.array([name == INTERCEPT for name in self.regression.design_names])

    @cached_property
    def products(self) -> Matrix:
        """Σ weight·xx' of the columns but the constant, about their means (those of each site, where it has its own constant), in their sizes."""
        return full(self.told("products")["products"], int((~self.is_constant).sum()))

    @cached_property
    def scaling(self) -> Scaling:
        """The units in which it is fitted."""
        scale = np.ones(len(self.regression.design_names))
        spread = np.sqrt(np.maximum(np.diag(self.products), 0.0) / self.weight)
        scale[~self.is_constant] = np.where(spread > 0.0, spread, 1.0) * self.sizes[~self.is_constant]
        return Scaling(self.shift, scale)

    @cached_property
    def collinear(self) -> tuple[str, ...]:
        """The columns of the design that the ones before them say already, with what they follow from, in words."""
        names = [name for name in self.regression.design_names if name != INTERCEPT]
        return tuple(_follow(names, self.products, self.weight))

    @cached_property
    def null_constants(self) -> Vector:
        """The best constant of each equation where nothing else explains anything; without a constant 0."""
        regression, moments = self.regression, self.told("moments")
        zero = np.zeros(regression.equations)
        if not regression.has_intercept:
            return zero
        if regression.family == MULTINOMIAL:
            counts = np.maximum(moments["classes"], 1e-300)
            return np.log(counts[1:] / counts[0])
        assert regression.distribution is not None
        mean = float(moments["response"][0]) / self.weight
        kind = (regression.family, regression.distribution.link)
        if kind[1] == "identity":
            return zero + (float(moments["response"][0]) - float(moments["offset"][0])) / self.weight
        if kind == ("poisson", "log"):
            return zero + np.log(max(float(moments["response"][0]), 1e-300) / float(moments["exposure"][0]))
        if kind == ("gamma", "log"):
            return zero + np.log(float(moments["relative"][0]) / self.weight)
        if not 0.0 < mean < 1.0 and regression.family == "binomial":
            return zero
        start = regression.distribution.predictor(mean) - float(moments["offset"][0]) / self.weight
        if not self.has_offset:
            return zero + start
        for step in range(NULL_STEPS):
            if self.has(f"{NULL} {step}"):
                start = null_step(start, self.told(f"{NULL} {step}"))
        return zero + start

    @property
    def has_offset(self) -> bool:
        """Whether something is added to the predictors."""
        return "offset" in self.regression.terms.beside

    @cached_property
    def null_point(self) -> Vector:
        """The unknowns of the model that knows nothing but constants."""
        point = np.zeros(self.regression.dim)
        point[list(self.regression.spared)] = self.null_constants if self.regression.spared else ()
        return point

    # ------------------------------------------------------------ after the fit

    @cached_property
    def information(self) -> Matrix:
        """What the curvature is expected to be at the point, over all rows."""
        return full(self.told("first look")["information"], self.regression.dim)

    @cached_property
    def inverse(self) -> Matrix:
        """Its inverse."""
        return _inverse(self.information)

    @cached_property
    def inverse_curvature(self) -> Matrix:
        """The inverse of the curvature as it is at the point, whether the model holds or not."""
        return _inverse(full(self.told("first look")["curvature"], self.regression.dim))

    @property
    def constants(self) -> int:
        """How many constants there are that are no unknowns."""
        return self.sites * self.regression.equations if self.regression.absorbs_sites else 0

    @property
    def degrees(self) -> int:
        """How many rows are left when every coefficient has taken one."""
        return self.rows - self.regression.dim - self.constants

    @cached_property
    def dispersion(self) -> float:
        """φ: by Pearson's χ², where the family does not say that it is 1."""
        family = self.regression.distribution
        if family is None or not family.dispersed:
            return 1.0
        return float(self.told("first look")["pearson"][0]) / max(self.degrees, 1)

    @property
    def sites_compared(self) -> bool:
        """Whether the sites' own estimates are told: where all have one. Of fewer, somebody could say that others have one who have not."""
        able = float(self.told("first look")["able"][0])
        return self.sites >= LEAST_SITES and able == self.sites

    @cached_property
    def chance_edges(self) -> Vector:
        """Bounds between about ten groups of rows, by the chance that is predicted for them: each where counts have one, or a group could be laid around a row."""
        counted = self.told("first look")["chances"].reshape(2, -1).sum(axis=0)
        edges = np.linspace(0.0, 1.0, CHANCES + 1)
        inside = quantiles(edges, np.concatenate([[0.0], counted, [0.0]]), np.linspace(0.0, 1.0, GROUPS + 1)[1:-1])
        return np.concatenate([[0.0], np.round(inside * CHANCES) / CHANCES, [1.0]])

    @cached_property
    def survival_edges(self) -> Vector:
        """The ends of time bins: round numbers up to about the longest time."""
        longest = float(self.told("moments")["longest"][0]) / self.weight
        step = round_step(3.0 * longest / SURVIVAL_BINS)
        return step * np.arange(1.0, SURVIVAL_BINS + 1)


def quantiles(edges: Vector, counts: Vector, parts: Vector) -> Vector:
    """Where these parts of the rows lie below, of rows counted between edges; before the first and behind the last is one bin each.

    Of an open bin only the end is known, which stands for all of it.
    """
    below = np.cumsum(counts[:-1])
    wanted = np.asarray(parts) * counts.sum()
    # A straight line between what lies below each edge, which never stands still.
    rising = below + np.arange(len(below)) * 1e-9 * max(float(counts.sum()), 1.0)
    return np.interp(wanted, rising, edges)


def over(numbers: Vector, sizes: Vector) -> Vector:
    """Numbers by sizes; 0 where both are, as where a site has one outcome alone and a constant of its own."""
    return np.divide(numbers, sizes, out=np.zeros_like(numbers), where=sizes > 0.0)


def round_step(size: float) -> float:
    """1, 2 or 5 times a power of ten: the first that is at least so large."""
    power = 10.0 ** np.floor(np.log10(max(size, 1e-12)))
    return float(next(one * power for one in (1.0, 2.0, 5.0, 10.0) if one * power >= size * (1.0 - 1e-12)))


def full(triangle: Vector, dim: int) -> Matrix:
    """A symmetric matrix from its upper triangle."""
    matrix = np.zeros((dim, dim))
    matrix[np.triu_indices(dim)] = triangle
    return matrix + np.triu(matrix, 1).T


def triangle(matrix: Matrix) -> Vector:
    """The upper triangle of a symmetric matrix."""
    return matrix[np.triu_indices(len(matrix))]


def _inverse(matrix: Matrix) -> Matrix:
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), np.float64)


def half(dim: int) -> int:
    """How many numbers a symmetric matrix has."""
    return dim * (dim + 1) // 2


def _follow(names: list[str], products: Matrix, weight: float) -> list[str]:
    """By Gram and Schmidt, one column after another: what is left of each by those before it."""
    kept: list[int] = []
    found = []
    for column in range(len(names)):
        size = products[column, column]
        if not size > COLLINEAR**2 * weight:
            found.append(f"{names[column]} is the same in all rows")
            continue
        said = np.linalg.lstsq(_correlated(products, kept), _beside(products, kept, column), rcond=None)[0]
        left = 1.0 - float(_beside(products, kept, column) @ said)
        if left <= COLLINEAR:
            partners = [names[other] for other, much in zip(kept, said, strict=True) if abs(much) > 1e-4]
            found.append(f"{names[column]} follows from {', '.join(partners)}")
        else:
            kept.append(column)
    return found


def _correlated(products: Matrix, kept: list[int]) -> Matrix:
    width = np.sqrt(np.diag(products)[kept])
    return products[np.ix_(kept, kept)] / np.outer(width, width)


def _beside(products: Matrix, kept: list[int], column: int) -> Vector:
    return products[kept, column] / np.sqrt(np.diag(products)[kept] * products[column, column])


# ---------------------------------------------------------------- who was looked at


def _group_of(rows: SiteRows) -> NDArray[np.int64]:
    by = rows.regression.by
    return np.asarray(rows.frame[by].cat.codes, np.int64) if by else np.zeros(rows.count, np.int64)


def group_names(regression: Regression) -> tuple[str, ...]:
    """The groups of Table 1."""
    return next((column.levels for column in regression.columns if column.name == regression.by), ("all",))


def _is_number(column: Column) -> bool:
    return column.values != "levels"


def _numbers(regression: Regression) -> tuple[Column, ...]:
    """The columns of numbers that are described: all of them, or those of splines alone."""
    splined = {spline.column for spline in regression.terms.splines.values()}
    return tuple(one for one in regression.columns if _is_number(one) and (regression.table_one or one.name in splined))


@lru_cache(maxsize=64)
def _units_of(
    regression: Regression,
    numbers: tuple[tuple[str, float, float], ...],
    knots: tuple[tuple[str, tuple[float, ...]], ...],
) -> tuple[float, ...]:
    sizes = regression.terms.typical_sizes({name: (mean, spread) for name, mean, spread in numbers}, dict(knots))
    return tuple(sizes[name] for name in regression.design_names)


def _values(rows: SiteRows, column: Column) -> Vector:
    return rows.frame[column.name].to_numpy(np.float64)


def _by_group(rows: SiteRows, values: Vector) -> Vector:
    return np.bincount(_group_of(rows), values, len(group_names(rows.regression))).astype(np.float64)


def _rows_sizes(regression: Regression) -> dict[str, int]:
    return {"rows": 1, "dropped": 1, "dropped by": len(regression.columns)}


def _rows_own(rows: SiteRows, known: Known) -> Parts:
    return {"rows": rows.count, "dropped": rows.dropped, "dropped by": rows.dropped_by}


def _levels(regression: Regression) -> tuple[Column, ...]:
    return tuple(column for column in regression.columns if not _is_number(column))


def _counts_sizes(regression: Regression) -> dict[str, int]:
    groups = len(group_names(regression))
    return {"groups": groups} | {column.name: groups * len(column.levels) for column in _levels(regression)}


def _counts_own(rows: SiteRows, known: Known) -> Parts:
    groups = len(group_names(rows.regression))
    parts: dict[str, Any] = {"groups": _by_group(rows, np.ones(rows.count))}
    for column in _levels(rows.regression):
        codes, levels = rows.frame[column.name].cat.codes.to_numpy(), len(column.levels)
        parts[column.name] = np.bincount(_group_of(rows) * levels + codes, minlength=groups * levels)
    return parts


def _sums_own(rows: SiteRows, known: Known) -> Parts:
    return {column.name: _by_group(rows, _values(rows, column)) for column in _numbers(rows.regression)}


def _spreads_sizes(regression: Regression) -> dict[str, int]:
    return {column.name: len(group_names(regression)) for column in _numbers(regression)}


def _spreads_own(rows: SiteRows, known: Known) -> Parts:
    columns = _numbers(rows.regression)
    return {one.name: _by_group(rows, (_values(rows, one) - known.mean(one)) ** 2) for one in columns}


def _bins_sizes(regression: Regression) -> dict[str, int]:
    return {column.name: len(group_names(regression)) * (BINS + 2) for column in _numbers(regression)}


def _binned(rows: SiteRows, column: Column, edges: Vector) -> NDArray[np.int64]:
    places = np.searchsorted(edges, _values(rows, column), side="left")
    groups = len(group_names(rows.regression))
    return np.bincount(_group_of(rows) * (BINS + 2) + places, minlength=groups * (BINS + 2))


def _bins_own(rows: SiteRows, known: Known) -> Parts:
    return {one.name: _binned(rows, one, known.first_edges(one)) for one in _numbers(rows.regression)}


def _bins_again_own(rows: SiteRows, known: Known) -> Parts:
    """The first place stays free, so that what lies below the first edge is a bin as all others."""
    return {
        one.name: _binned(rows, one, np.concatenate([[-np.inf], known.edges(one)])) for one in _numbers(rows.regression)
    }


# ---------------------------------------------------------------- the design


def _columns_sizes(regression: Regression) -> dict[str, int]:
    width = len(regression.design_names)
    return {"weight": 1, "columns": width, "squares": width, "log weight": 1}


def _columns_own(rows: SiteRows, known: Known) -> Parts:
    design, weight = rows.design(known.knots), rows.weight
    # Squares, which the products tell as well: of what bends, such as |x − 50|, three sums were one patient's, and of what is cut off a site's.
    with np.errstate(over="ignore"):
        squares = weight @ (design / known.units) ** 2
    return {
        "weight": weight.sum(), "columns": weight @ design, "squares": squares,
        "log weight": np.log(np.where(weight > 0.0, weight, 1.0)).sum(),
    }  # fmt: skip


def _moments_sizes(regression: Regression) -> dict[str, int]:
    width, moments = (
        len(regression.design_names),
        {"response": 1, "events": 1, "offset": 1, "exposure": 1, "relative": 1},
    )
    if regression.family == COX:
        return moments | {"longest": 1}
    if regression.family == MULTINOMIAL:
        return moments | {"classes": len(regression.classes), "explained": len(regression.classes) * width}
    return moments | {"explained": width}


def _moments_own(rows: SiteRows, known: Known) -> Parts:
    regression, design, weight, y = rows.regression, rows.design(known.knots), rows.weight, rows.response
    parts: dict[str, Any] = {"response": weight @ y, "offset": weight @ rows.offset, "exposure": 0.0, "relative": 0.0}
    parts |= {name: each.sum() for name, each in by_offset(rows).items()}
    if regression.family == COX:
        # Twice the mean time of an exponential law is beyond six rows in seven.
        return parts | {"events": rows.event.sum(), "longest": weight @ y}
    if regression.family == MULTINOMIAL:
        classes = weight[:, None] * (y[:, None] == np.arange(len(regression.classes)))
        return parts | {"events": 0.0, "classes": classes.sum(axis=0), "explained": classes.T @ design}
    return parts | {
        "events": (y > 0.0).sum() if regression.family == "binomial" else 0.0,
        "explained": (weight * y) @ design,
    }


def by_offset(rows: SiteRows) -> dict[str, Vector]:
    """What each row adds to the sum by which the constant beside an offset is found: of a family that needs one, and no other.

    It is e to the power of what somebody has written, and so may be about a single row.
    """
    family, weight = rows.regression.distribution, rows.weight
    kind = ("", "") if family is None else (rows.regression.family, family.link)
    with np.errstate(over="ignore"):
        if kind == ("poisson", "log"):
            return {"exposure": weight * np.exp(np.minimum(rows.offset, 40.0))}
        if kind == ("gamma", "log"):
            return {"relative": weight * rows.response * np.exp(np.minimum(-rows.offset, 40.0))}
    return {}


def by_null_step(rows: SiteRows, known: Known) -> RowsAt | None:
    """The rows at the constant beside an offset that is tried next; None where none is."""
    family, following = rows.regression.distribution, sums_of(rows.regression)[len(known.totals)]
    if family is None or not following.name.startswith(NULL):
        return None
    losses = FamilyLosses(family, rows.response, rows.weight, rows.offset)
    return losses.rows_at(np.full((rows.count, 1), known.null_constants[0]))


def _products_sizes(regression: Regression) -> dict[str, int]:
    slopes = len([name for name in regression.design_names if name != INTERCEPT])
    cells = sum(int(np.prod(one.sizes)) for one in outcome_cells(regression))
    return {"products": half(slopes), "outcomes": outcomes(regression) * cells}


def _slopes(rows: SiteRows, known: Known) -> Matrix:
    """The columns but the constant, about the means of all rows or, where sites have constants, of this one, in the sizes of all."""
    design = (rows.design(known.knots) - known.shift) / known.sizes
    slopes, weight = design[:, ~known.is_constant], rows.weight
    if rows.regression.absorbs_sites and weight.sum() > 0.0:
        slopes = slopes - weight @ slopes / weight.sum()
    return slopes


def _products_own(rows: SiteRows, known: Known) -> Parts:
    slopes = _slopes(rows, known)
    return {"products": triangle((slopes.T * rows.weight) @ slopes), "outcomes": _outcome_counts(rows)}


class Cells(NamedTuple):
    """A term that multiplies numbers: of each level of its `columns` it has a cell, and of each number three, where it is 0, 1 and neither.

    So yes and no are told apart where they are written as 0 and 1, or as 1 and 2.
    """

    term: str
    columns: tuple[str, ...]
    sizes: tuple[int, ...]


def outcome_cells(regression: Regression) -> tuple[Cells, ...]:
    """Of each of these it is counted how many rows have which outcome, before anything is told of their numbers."""
    terms, levels = regression.terms, {one.name: len(one.levels) for one in _levels(regression)}
    found = []
    for term in terms.terms:
        columns = terms.names_in(*(factor.expr for factor in term.factors))
        if len(columns) > 1 and not levels.keys() >= {*columns}:
            found.append(Cells(terms.spoken(str(term)), columns, tuple(levels.get(name, 3) for name in columns)))
    return tuple(found)


def outcomes(regression: Regression) -> int:
    """How many there are: each level, an event, or another number than 0, and than 1."""
    return len(regression.classes) if regression.family == MULTINOMIAL else 1 if regression.family == COX else 2


def _outcome_counts(rows: SiteRows) -> Vector:
    regression, found = rows.regression, []
    of_levels = {one.name for one in _levels(regression)}
    sides = (
        [rows.event > 0.0]
        if regression.family == COX
        else [rows.response == one for one in range(len(regression.classes))]
        if regression.family == MULTINOMIAL
        else [rows.response != 0.0, rows.response != 1.0]
    )
    for cells in outcome_cells(regression):
        codes = [
            np.asarray(rows.frame[name].cat.codes, np.int64)
            if name in of_levels
            else np.select([rows.frame[name] == 0.0, rows.frame[name] == 1.0], [0, 1], 2)
            for name in cells.columns
        ]
        place = np.ravel_multi_index(codes, cells.sizes)
        found += [np.bincount(place[side & (rows.weight > 0.0)], minlength=int(np.prod(cells.sizes))) for side in sides]
    return np.concatenate(found).astype(np.float64) if found else np.zeros(0)


def leverages_among_all(rows: SiteRows, known: Known) -> Vector:
    """h of each row of a site among those of all sites, of a constant and the columns: how much of what it adds can be told by itself.

    Of all sums with a response y, c picks Σ y_j·x_j'c. No choice of c leaves more of row i than h_i of Σ(x_j'c)².
    """
    return np.asarray((_beside_all(rows, known) ** 2).sum(axis=1), np.float64)


def left_to_others(rows: SiteRows, known: Known) -> float:
    """Of Σ(x_j'c)² over all rows the least part that is others', for any c, by the part that they have of the rows: 0 where some sum is this site's alone."""
    beside, others = _beside_all(rows, known), 1.0 - rows.weight.sum() / known.weight
    if rows.regression.absorbs_sites:  # its constant is in no sum, and its columns are about their means
        beside = beside - np.outer(np.sqrt(rows.weight), np.sqrt(rows.weight) @ beside) / max(
            rows.weight.sum(), np.finfo(float).tiny
        )
    mine = float(np.linalg.eigvalsh(beside.T @ beside)[-1]) if len(beside) else 0.0
    return (1.0 - mine) / others if others > 0.0 else 0.0


def _beside_all(rows: SiteRows, known: Known) -> Matrix:
    """A constant and the columns, weighed, and turned so that Σxx' over the rows of all sites is I."""
    slopes, weight = _slopes(rows, known), rows.weight
    beside = known.told("columns")["columns"] / known.sizes - known.weight * known.shift / known.sizes
    constant, cross = (
        (weight.sum(), 0.0) if rows.regression.absorbs_sites else (known.weight, beside[~known.is_constant])
    )
    whole = np.zeros((slopes.shape[1] + 1,) * 2)
    whole[0, 0], whole[0, 1:], whole[1:, 0], whole[1:, 1:] = constant, cross, cross, known.products
    widths = np.sqrt(np.maximum(np.diag(whole), 0.0))
    widths = np.where(widths > 0.0, widths, 1.0)
    curvatures, directions = np.linalg.eigh(whole / np.outer(widths, widths))
    kept = curvatures > LOST
    turned = np.column_stack([np.ones(rows.count), slopes]) / widths @ directions[:, kept]
    return np.asarray(np.sqrt(weight)[:, None] * turned / np.sqrt(curvatures[kept]), np.float64)


NULL, NULL_STEPS = "null", 6


def null_step(constant: float, told: Parts) -> float:
    """A step of Newton's method for the best constant, from the slope and the curvature there; never farther than 2."""
    slope, curvature = float(told["slope"][0]), float(told["curvature"][0])
    return constant - float(np.clip(slope / curvature, -2.0, 2.0)) if curvature > 0.0 else constant


def needs_null_steps(regression: Regression) -> bool:
    """Whether the best constant is found by steps: beside an offset, where it can't be written down."""
    family = regression.distribution
    plain = family is None or family.link == "identity" or regression.family in ("poisson", "gamma")
    return "offset" in regression.terms.beside and regression.has_intercept and not plain


def _null_own(rows: SiteRows, known: Known) -> Parts:
    family = rows.regression.distribution
    assert family is not None
    eta = known.null_constants[0] + rows.offset
    return {
        "slope": rows.weight @ family.slope(eta, rows.response),
        "curvature": rows.weight @ family.curvature(eta, rows.response),
    }


# ---------------------------------------------------------------- after the fit


def is_yes_or_no(regression: Regression) -> bool:
    """Whether a row has an outcome or has it not, so that it can be counted by that: of counts of many it would be told how many."""
    return regression.family == "binomial" and regression.terms.response[0] != COUNTS


def _yes(rows: SiteRows) -> Vector:
    """Whether a row has the outcome: a part between 0 and 1 is rounded, or a bin with one row would tell it."""
    return np.where(rows.response > 0.5, 1.0, 0.0)


def _counted(rows: SiteRows) -> Vector:
    """What a row counts in bins: one, whatever its weight, or a bin with one row would tell it; none where its weight is 0."""
    return np.where(rows.weight > 0.0, 1.0, 0.0)


def _first_look_sizes(regression: Regression) -> dict[str, int]:
    sizes = {"information": half(regression.dim), "value": 1, "null": 1, "pearson": 1}
    if regression.errors != "model":
        sizes["curvature"] = half(regression.dim)
    if regression.heterogeneity:
        sizes["able"] = 1
    if regression.diagnostics and is_yes_or_no(regression):
        sizes["chances"] = 2 * CHANCES
    if regression.diagnostics and regression.family == COX:
        sizes |= {"at risk": SURVIVAL_BINS, "ended": SURVIVAL_BINS}
    return sizes


def _first_look_own(rows: SiteRows, known: Known) -> Parts:
    regression, w = rows.regression, _point(known)
    likelihood = rows.likelihood(known.knots, known.scaling)
    parts: dict[str, Any] = {
        "information": triangle(likelihood.information(w)), "value": likelihood.value(w),
        "null": likelihood.value(known.null_point), "pearson": 0.0,
    }  # fmt: skip
    family = regression.distribution
    if family is not None:
        mean = family.mean(_predictors(rows, likelihood, w))
        parts["pearson"] = rows.weight @ over((rows.response - mean) ** 2, family.variance(mean))
        if regression.diagnostics and is_yes_or_no(regression):
            place = np.minimum((mean * CHANCES).astype(np.int64), CHANCES - 1)
            sides = (_counted(rows) * (1.0 - _yes(rows)), _counted(rows) * _yes(rows))
            parts["chances"] = np.concatenate([np.bincount(place, side, CHANCES) for side in sides])
    if regression.errors != "model":
        parts["curvature"] = triangle(likelihood.hessian(w))
    if regression.heterogeneity:
        parts["able"] = own_estimate(likelihood, regression.spared) is not None
    if regression.diagnostics and regression.family == COX:
        at_risk, ended = binned_survival(rows.response, rows.event, _counted(rows), known.survival_edges)
        parts |= {"at risk": at_risk, "ended": ended}
    return parts


def _second_look_sizes(regression: Regression) -> dict[str, int]:
    sizes = {"log likelihood": 1}
    if regression.errors != "model":
        sizes["scores"] = half(regression.dim)
    if regression.diagnostics and is_yes_or_no(regression):
        sizes["calibration"] = 4 * GROUPS
    if regression.diagnostics and regression.distribution is not None:
        sizes["residuals"] = RESIDUALS
    if regression.heterogeneity:
        sizes["own estimates"] = 4 * regression.dim
    return sizes


def _second_look_own(rows: SiteRows, known: Known) -> Parts:
    regression, w = rows.regression, _point(known)
    likelihood = rows.likelihood(known.knots, known.scaling)
    family, weight, y = regression.distribution, rows.weight, rows.response
    parts: dict[str, Any] = {"log likelihood": 0.0}
    if family is not None:
        mean = family.mean(_predictors(rows, likelihood, w))
        counted = weight > 0.0
        parts["log likelihood"] = family.log_likelihood(
            y[counted], mean[counted], weight[counted], known.dispersion
        ).sum()
        if regression.diagnostics and is_yes_or_no(regression):
            place = np.clip(np.searchsorted(known.chance_edges, mean, side="right") - 1, 0, GROUPS - 1)
            sums = (np.ones(rows.count), _counted(rows), _counted(rows) * mean, _counted(rows) * _yes(rows))
            parts["calibration"] = np.concatenate([np.bincount(place, one, GROUPS) for one in sums])
        if regression.diagnostics:
            scale = np.sqrt(known.dispersion * family.variance(mean) / np.where(counted, weight, 1.0))
            place = np.floor(over(y - mean, scale) / RESIDUAL_WIDTH) + RESIDUALS // 2
            parts["residuals"] = np.bincount(np.clip(place, 0, RESIDUALS - 1).astype(np.int64), minlength=RESIDUALS)
    if regression.errors != "model":
        parts["scores"] = triangle(_score_products(likelihood, known, w))
    if regression.heterogeneity:
        parts["own estimates"] = _beside_the_others(likelihood, known, w)
    return parts


# Robust errors by which of them scores are divided, squared: so many times 1 less the leverage.
POWERS = {"hc2": 1.0, "hc3": 2.0}


def _score_products(likelihood: Likelihood, known: Known, w: Vector) -> Matrix:
    """Σ of what each row, or all rows of the site together, add to the gradient, times itself."""
    scores, errors = likelihood.scores(w), known.regression.errors
    if errors == "site":
        scores = scores.sum(axis=0)[None]
    elif errors in POWERS:
        scores = scores * np.sqrt(_weights(likelihood, known, w))[:, None]
    return scores.T @ scores


def _weights(likelihood: Any, known: Known, w: Vector) -> Vector:
    """How much more the product of each row's scores counts, since the row has pulled the fit towards itself."""
    left = 1.0 - likelihood.leverages(w, known.inverse)
    return np.asarray(np.maximum(left, 1e-12) ** -POWERS[known.regression.errors], np.float64)


def look_weights(rows: SiteRows, known: Known) -> Vector | None:
    """The same, where rows count unequally in the second look; refused where a row has pulled more than among this site's rows alone."""
    if known.regression.errors not in POWERS:
        return None
    likelihood: Any = rows.likelihood(known.knots, known.scaling)
    w = _point(known)
    pulls = [likelihood.leverages(w, one) for one in (known.inverse, _inverse(likelihood.information(w)))]
    if not (pulls[0] <= pulls[1] * (1.0 + NEARLY) + NEARLY).all():
        raise ValueError("In what all rows say of the coefficients there is less than this site has added.")
    return _weights(likelihood, known, w)


def _beside_the_others(likelihood: Likelihood, known: Known, w: Vector) -> Vector:
    """Of this site's own estimate, for each coefficient: 1, 1/v, and (b − b̂)/v and (b − b̂)²/v, where v is its variance."""
    own = own_estimate(likelihood, known.regression.spared)
    if own is None or not known.sites_compared:
        return np.zeros(4 * known.regression.dim)
    precision = 1.0 / (own.variance * known.dispersion)
    apart = own.point - w
    return np.concatenate([np.ones(len(w)), precision, precision * apart, precision * apart**2])


def _point(known: Known) -> Vector:
    assert known.point is not None
    return known.point


def _predictors(rows: SiteRows, likelihood: Any, w: Vector) -> Vector:
    """η of each row, with the site's own constant where it has one."""
    return likelihood.predictors(w)[:, 0] + rows.offset


# ---------------------------------------------------------------- all of them, in order

# Rows alone come first: where a site finds them too few, or nearly as many as before, it adds to nothing more.
ROWS = Sum("rows", "how many rows there are, and how many lack a cell", _rows_sizes, _rows_own, None)
COUNTED = Sum("counts", "how many rows have each level", _counts_sizes, _counts_own, None)
SUMMED = Sum("sums", "the sum of each column of numbers", _spreads_sizes, _sums_own)
SPREADS = Sum("spreads", "the spread of each column of numbers", _spreads_sizes, _spreads_own, None)
BINNED = Sum("bins", f"how many rows lie in up to {BINS} bins of each column of numbers", _bins_sizes, _bins_own, None)
BINNED_AGAIN = Sum("bins again", "the same for bins with about as many rows each", _bins_sizes, _bins_again_own, None)
COLUMNS = Sum(
    "columns",
    "the sums of the model's columns, and of their squares",
    _columns_sizes,
    _columns_own,
    ("weight", "squares"),
)
MOMENTS = Sum(
    "moments", "the sums of what is explained, by itself and times each of the model's columns", _moments_sizes, _moments_own, ("events",)
)  # fmt: skip
PRODUCTS = Sum(
    "products", "the products of the model's columns in pairs, and how many rows of each level in a product have an outcome",
    _products_sizes, _products_own, ("outcomes",),
)  # fmt: skip
FIRST_LOOK = Sum(
    "first look", "how precise the coefficients are, the deviance, and counts of rows by what is predicted for them",
    _first_look_sizes, _first_look_own, ("value", "pearson", "able", "chances", "at risk", "ended"),
)  # fmt: skip
SECOND_LOOK = Sum(
    "second look", "the likelihood, and what is predicted against what was observed in groups of rows",
    _second_look_sizes, _second_look_own,
)  # fmt: skip
AFTER = (FIRST_LOOK, SECOND_LOOK)


def _null(step: int) -> Sum:
    return Sum(
        f"{NULL} {step}", "the slope of the loss at a constant", lambda _: {"slope": 1, "curvature": 1}, _null_own
    )


def sums_of(regression: Regression) -> tuple[Sum, ...]:
    """All sums of a regression, in order; those of AFTER follow the fit."""
    counted = (COUNTED,) if _levels(regression) else ()
    described = (SUMMED, SPREADS, BINNED, BINNED_AGAIN) if _numbers(regression) else ()
    null = tuple(map(_null, range(NULL_STEPS))) if needs_null_steps(regression) else ()
    # What is explained comes last: by the products each site knows how much of a row of its own the sums with it can tell.
    return (ROWS, *counted, *described, COLUMNS, PRODUCTS, MOMENTS, *null, *AFTER)


__all__ = [
    "AFTER",
    "Known",
    "Sum",
    "by_null_step",
    "by_offset",
    "full",
    "group_names",
    "half",
    "left_to_others",
    "leverages_among_all",
    "look_weights",
    "outcome_cells",
    "outcomes",
    "sums_of",
    "triangle",
]
