"""Whether a formula singles out a few rows of a site, by what it calculates: for the site's own eyes.

A level that few rows have is found by counting. A formula can make as much of numbers: (age > 82) * (bmi > 40) is 1 for one person, whose
outcome is then a coefficient; and exp(-100 * (age - 83) ** 2) very nearly so. How many rows a column v is about is (Σd²)²/Σd⁴ with
d = v − median: of k ones among zeros, or zeros among ones, it is k.

What is told are sums of products of two columns, and of both with a weight. So two columns of many rows each tell of one person as well, where
they have one row in common, or differ in one: whatever a formula calculates that has two values, wherever it stands in it and however it
is written, is held against every other such column, cell by cell. And sums can be taken together with factors: with the products of two columns
that are summed as columns of V, a combination of sums is about row i alone as far as the leverage h_ii = e_i'V(V'V)⁻¹V'e_i is near 1, the
largest part of (Vc)² that row i can have. That a row stands apart by its own numbers is nobody's doing; it is what is calculated that
must not bring it about.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.problems.carriers import about as carried_by, wanted_of
from roundelay.regression.formula import LEVELS, SPLINE, Knots, inside
from roundelay.regression.regression import INTERCEPT, Regression
from roundelay.regression.rows import SiteRows
from roundelay.regression.sums import (
    ENDS,
    Known,
    by_null_step,
    by_offset,
    half,
    leverages_among_all,
    outcome_cells,
    outcomes,
)

# What rounding may do to a number of rows.
NEARLY = 1e-6


# A column has two values where so many of its rows lie as near to its ends, in parts of its range: steep curves are steps.
TWO_VALUES, END = 0.9, 0.02
# A row has a combination for itself from this leverage on, of columns and of their products, and has not by its own numbers up to that. The rows
# of other sites are not among these: by powers of a number, and by theirs, the youngest may come near to it here, and to nothing among all.
ALONE, ALONE_IN_PRODUCTS, AMONG_OTHERS = 0.999, 1.0 - 1e-5, 0.99
# Of what is multiplied, and not calculated, a row has a combination for itself where it has it but for rounding.
ALONE_WITH_OTHERS = 1.0 - 1e-6
# Among the rows of all sites no row has so much of a combination: what is told of a yes or no would be right 997 times in 1,000.
ALONE_AMONG_ALL = 0.9
# Two columns are alike where they differ in fewer rows than one in so many of those that have another number than most.
ALIKE = 4
# They are not where they are not in so many rows.
SOME = 1000
# So many rows more than columns there are at least, so that none is alone by accident.
SPARE = 12
# What is left of a column by the others, over its own size, below which it is rounding.
ROUNDING = 1e-13
# Where the leverage of products would take more multiplications than this, a few seconds, that of the columns must do.
MOST_WORK = 2 * 10**9


def singled_out(rows: SiteRows, least: int) -> tuple[str, ...]:
    """What of a regression is about fewer rows of this site than `least`, each in a few words; nothing of how many."""
    if rows.count < least:
        return ()  # whatever is told is
    looks = [
        _by_columns(rows, least), _by_values(rows, least), _by_cells(rows, least), _by_combinations(rows), _by_splines(rows, least),
    ]  # fmt: skip
    parts = counting_alike(rows).values()
    looks += [_by_sides(part, least) for part in parts]
    looks += [_alike(part, least) for part in (rows, *parts)]
    return tuple(dict.fromkeys(one for look in looks for one in look))


def counting_alike(rows: SiteRows) -> dict[float, SiteRows]:
    """The rows of each weight, where there are two; else those that count at all, where some do not: these are told of by themselves.

    Weights that are calculated are looked at as all that is.
    """
    terms = rows.regression.terms
    node = terms.beside.get("weights")
    if node is None or terms.spoken(ast.unparse(inside(node))) in terms.calculations:
        return {}
    weights = terms.numbers(node, rows.frame)
    values = np.unique(weights)
    if len(values) == 2:
        return {float(one): rows.without(weights != one) for one in values}
    return {float(values[-1]): rows.without(weights == 0.0)} if (weights == 0.0).any() and len(values) > 2 else {}


def _is_about_few(column: Vector, least: int) -> bool:
    """Of numbers that are drawn from a bell it is about a third of the rows, and half of that is left to those with longer tails."""
    two = len(np.unique(column)) == 2
    return 0.0 < about(column) < (least if two else min(least, len(column) / 6.0)) - NEARLY


def others(column: Vector) -> int:
    """How many rows have another number than most."""
    return int((column != np.median(column)).sum())


def about(column: Vector) -> float:
    """How many rows a column is about; 0 where it is the same in all."""
    apart = np.abs(column - np.median(column))
    largest = float(apart.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    squares = (apart / largest) ** 2  # so that no square is beyond all numbers
    return float(squares.sum() ** 2 / (squares**2).sum())


def _by_columns(rows: SiteRows, least: int) -> Iterator[str]:
    """Columns of the design, and what stands beside it. As they are in the data they may have long tails; then they are counted alone."""
    regression = rows.regression
    plain = {column.name for column in regression.columns}
    levels = _words_of_levels(regression)
    for name, column in zip(regression.design_names, _design(rows).T, strict=True):
        if name.startswith(levels) and ":" not in name:
            continue  # whose rows are counted
        splines = tuple(regression.terms.splines)
        curves = [part for part in name.split(":") if splines and part.startswith(splines)]
        if len(curves) == 1 and all(part.startswith(levels) for part in name.split(":") if part not in curves):
            continue  # with many unknowns, which are counted where all rows are
        if 0 < others(column) < least if name in plain else _is_about_few(column, least):
            yield name
    terms = regression.terms
    for node in terms.response[1]:
        numbers, name = terms.numbers(node, rows.frame), terms.named(getattr(node, "id", ""))
        of_levels = any(column.name == name and column.values == "levels" for column in regression.columns)
        # As it is in the data: where few had an outcome, its sums with the predictors are what these few are like. Levels are counted.
        if 0 < others(numbers) < least and not of_levels if name in plain else _is_about_few(numbers, least):
            yield terms.spoken(ast.unparse(node))
    for node in terms.beside.values():
        if _is_about_few(terms.numbers(node, rows.frame), least):
            yield terms.spoken(ast.unparse(node))
    if "offset" in terms.beside and any(
        carried_by(each[:, None])[0] < wanted_of(rows.count, False, least) for each in by_offset(rows).values()
    ):
        yield terms.spoken(ast.unparse(terms.beside["offset"]))


def _design(rows: SiteRows, ends: tuple[float, float] = ENDS) -> Matrix:
    """Splines have the knots that these rows alone would give them."""
    return rows.design(
        {
            written: _own_knots(rows.frame[one.column].to_numpy(np.float64), np.linspace(*ends, one.inside + 2))
            for written, one in rows.regression.terms.splines.items()
        }
    )


def _own_knots(values: Vector, parts: Vector) -> tuple[float, ...]:
    """Quantiles, each a little above the one before."""
    knots = np.quantile(values, parts)
    return tuple((knots + np.arange(len(parts)) * NEARLY * max(1.0, float(np.abs(knots).max()))).tolist())


def _by_values(rows: SiteRows, least: int) -> Iterator[str]:
    """Numbers of few values, some of which few rows have, and of which anything is calculated: with as many curves as values each value is a level.

    A column of the design is a curve over a number where it is the same in all rows in which the number is. Several runs have the curves of all.
    """
    # Beyond the ends of a spline, where it is straight, are as many rows of all sites as there are, if hardly a value of this one.
    design, terms = _design(rows, (0.0, 1.0)), rows.regression.terms
    beside = {
        terms.named(one.id) for part in terms.beside.values() for one in ast.walk(part) if isinstance(one, ast.Name)
    }
    for column in rows.regression.columns:
        if column.values == "levels":
            continue
        values, place, count = np.unique(
            rows.frame[column.name].to_numpy(np.float64), return_inverse=True, return_counts=True
        )
        if not 2 < len(values) <= rows.count - SPARE or count.min() >= least:
            continue
        first = np.zeros(len(values), np.int64)
        first[place] = np.arange(rows.count)
        over = design[first][:, (design[first][place] == design).all(axis=0)]
        curves = _independent([np.ones(len(values)), values, *over.T])
        few = len(values) <= min(FEW_VALUES, rows.count / 2) and (len(curves) > 2 or column.name in beside)
        alone = _leverage(np.column_stack(_products(curves))) > ALONE_AMONG_VALUES
        if few or (len(curves) > 2 and (alone & (count < least)).any()):
            yield column.name


# Beyond its last knot a spline goes far, so that the oldest are nearly alone in it at one site, and not among all: what counts is who is alone exactly.
ALONE_AMONG_VALUES = 1.0 - 1e-9
# A number with more values than this takes more curves than a few formulas have: then those of one count, and their products, which are summed.
FEW_VALUES = 20


def _by_sides(rows: SiteRows, least: int) -> Iterator[str]:
    """Columns of two values of which one is that of few rows."""
    for name, column in zip(rows.regression.design_names, _design(rows).T, strict=True):
        if len(np.unique(column)) == 2 and _fewest(column) < least:
            yield name


def _alike(rows: SiteRows, least: int) -> Iterator[str]:
    """Two columns as they are in the data that differ, but for a factor and a constant, in few rows: the difference of two sums is about these."""
    names: list[str] = []
    sides: list[NDArray[np.bool_]] = []  # on which of two each row lies
    numbers: list[tuple[str, Vector]] = []
    for column in rows.regression.columns:
        cells = rows.frame[column.name]
        values = np.asarray(cells.cat.codes if column.values == "levels" else cells, np.float64)
        two = column.values != "levels" and len(np.unique(values)) == 2
        if column.values != "levels":
            numbers.append((column.name, values))
        sides += [values == values.max()] if two else [values == code for code in range(len(column.levels))]
        names += [column.name] * (len(sides) - len(names))
    whole = np.array(sides, np.float64).reshape(len(sides), rows.count)
    counts, both = whole.sum(axis=1), whole @ whole.T
    apart = counts[:, None] + counts - 2.0 * both
    apart, rarer = np.minimum(apart, rows.count - apart), np.minimum(counts, rows.count - counts)
    few = (apart > 0.0) & (apart < _few_apart(np.minimum(rarer[:, None], rarer), least))
    pairs = [(names[one], names[other]) for one, other in np.argwhere(np.triu(few, 1))]
    if len(numbers) ** 2 * min(rows.count, SOME) <= MOST_WORK / ALIKE:
        pairs += [
            (name, another)
            for (name, one), (another, other) in combinations(numbers, 2)
            if 0 < (off := _off_line(one, other, least)) < least
            and off < _few_apart(min(others(one), others(other)), least)
        ]
    yield from dict.fromkeys(f"{one} beside {other}" for one, other in pairs if one != other)


def _few_apart(rarer: Any, least: int) -> Any:
    """How many rows are few between two columns of which the rarer side has so many: at a small site, two may be alike by accident."""
    return np.minimum(least, rarer / ALIKE)


def _off_line(one: Vector, other: Vector, least: int) -> int:
    """In how many rows one column is not what it is of the other in most rows: so many times as much, and a constant; or `least` and more."""
    if len(one) > 2 * SOME:  # where it is so of few, it is of few of some
        step = len(one) // SOME
        off = _off_line(one[::step], other[::step], least)
        if off >= least:
            return off
    order = np.lexsort((one, other))
    values, first, count = np.unique(other[order], return_index=True, return_counts=True)
    if len(values) < 2:
        return 0
    usual = one[order][first + count // 2]  # of the rows with a value, the median
    left = one - np.median(np.diff(usual) / np.diff(values)) * other
    return int((np.abs(left - np.median(left)) > NEARLY * np.ptp(one)).sum())


# ---------------------------------------------------------------- cells

# Columns by how they are written.
Columns = Mapping[str, Vector]


def _by_cells(rows: SiteRows, least: int) -> Iterator[str]:
    """What two columns have in common, or what tells them apart, where the formula has calculated one of them.

    Products of columns are columns. Rows that count nothing, or by a weight of two values, are looked at by themselves.
    """
    steps = _steps(rows.regression, rows, least)
    for name, column in zip(rows.regression.design_names, _design(rows).T, strict=True):
        if ":" in name and steps and (sides := _sides(column)) is not None:
            steps[name] = sides
    others_than = steps | _given(rows)
    weight = rows.regression.terms.beside.get("weights")
    kinds = [np.zeros(rows.count)]
    if weight is not None:
        weights = rows.regression.terms.numbers(weight, rows.frame)
        sides = _sides(weights)
        kinds.append((weights != 0.0).astype(np.float64) if sides is None else sides)
    for one, step in steps.items():
        if _fewest(step) < least:
            yield one
        del others_than[one]
        for other, values in others_than.items():
            if any(_fewest(step, values, kind) < least for kind in kinds):
                yield f"{one}, {other}"


def _fewest(*columns: Vector) -> int:
    """How many rows the smallest cell has of those that have any."""
    return int(np.unique(np.column_stack(columns), axis=0, return_counts=True)[1].min())


def _given(rows: SiteRows) -> dict[str, Vector]:
    """Columns of the data that have two values, or levels."""
    found = {}
    for column in rows.regression.columns:
        cells = rows.frame[column.name]
        if column.values == "levels":
            found[column.name] = np.asarray(cells.cat.codes, np.float64)
        elif len(np.unique(values := cells.to_numpy(np.float64))) == 2:
            found[column.name] = values
    return found


def _steps(regression: Regression, rows: SiteRows, least: int) -> dict[str, Vector]:
    """What of all that a regression calculates has two values, as 0 and 1.

    What something else is made of may have long tails, which are no step: there, two values are two values, or many rows lie at both ends.
    """
    told, found = _calculated(regression, rows), {}
    for name, column in _calculated(regression, rows, parts=True).items():
        sides = _sides(column)
        if sides is not None and (name in told or len(np.unique(column)) == 2 or _fewest(sides) >= least):
            found[name] = sides
    return found


def _sides(column: Vector) -> Vector | None:
    """On which of two sides each row lies; None where there are no two."""
    low, high = column.min(), column.max()
    if not high > low:
        return None
    where = (column - low) / (high - low)
    near = (where <= END) | (where >= 1.0 - END)
    return np.round(where) if near.mean() >= TWO_VALUES else None


def _calculated(regression: Regression, rows: SiteRows, parts: bool = False) -> dict[str, Vector]:
    """The columns that a regression calculates, as far as these rows have what they are made of; with the `parts` of which they are made.

    Columns as they are, their levels and splines are not calculated.
    """
    terms = regression.terms
    frame = rows.frame if regression is rows.regression else rows.in_units_of(regression)
    found = {}
    for whole in _written(regression):
        for node in () if _is_of_a_kind(whole) else ast.walk(whole) if parts else (whole,):
            if not isinstance(node, ast.expr) or isinstance(node, ast.Name | ast.Constant):
                continue
            called = {id(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and id(one) not in called}
            if names and {terms.named(name) for name in names} <= set(frame.columns):
                with suppress(ValueError):  # an earlier regression's logarithm, say, of what are other rows now
                    found[terms.spoken(ast.unparse(node))] = terms.numbers(node, frame)
    return found


def _is_of_a_kind(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (LEVELS, SPLINE)


def _written(regression: Regression) -> list[ast.expr]:
    terms = regression.terms
    factors = [ast.parse(factor.expr.strip(), mode="eval").body for term in terms.terms for factor in term.factors]
    return [*terms.response[1], *terms.beside.values(), *map(inside, factors)]


# ---------------------------------------------------------------- combinations


def _by_combinations(rows: SiteRows) -> Iterator[str]:
    """Whether what is calculated leaves a combination of sums to one row, or powers and products of numbers do: these are cells of few values."""
    if rows.regression.terms.calculations:  # else there is no bend in it but where a column has one
        calculated = _calculated(rows.regression, rows)
        if _alone(rows, calculated, products=True).any():
            yield ", ".join(calculated)
    words = _words_of_levels(rows.regression)
    made = {
        name: column
        for name, column in zip(rows.regression.design_names, _design(rows).T, strict=True)
        if not any(part.startswith(words) for part in name.split(":"))
    }
    bent = made.keys() - {INTERCEPT, *(column.name for column in rows.regression.columns)}
    # Beside levels few rows here may be many at all sites: that is looked at once their products are told, as is what takes long here.
    if not bent or len(made) ** 2 * rows.count > MOST_WORK:
        return
    if _left_to_one(_plain(rows), [np.ones(rows.count), *made.values()], ALONE_WITH_OTHERS).any():
        yield ", ".join(name for name in made if name in bent)


def _words_of_levels(regression: Regression) -> tuple[str, ...]:
    """How the names of columns begin that are those of a level."""
    return tuple(
        f"{word}[" for one in regression.columns if one.values == "levels" for word in (one.name, f"C({one.name})")
    )


def _alone(rows: SiteRows, calculated: Columns, products: bool = False) -> NDArray[np.bool_]:
    """The rows that have a combination of columns for themselves, or of their products, by what is calculated; none where there are hardly more
    rows than of these."""
    plain = _plain(rows)
    whole = [*plain, *calculated.values()]
    found = np.zeros(rows.count, bool)
    if calculated:
        found |= _left_to_one(plain, whole, ALONE)
        plain, whole = _independent(plain), _independent(whole)
        if products and half(len(whole)) ** 2 * rows.count <= MOST_WORK:
            found |= _left_to_one(_products(plain), _products(whole), ALONE_IN_PRODUCTS)
    return found


def _plain(rows: SiteRows) -> list[Vector]:
    """A constant, the columns of numbers, and a column for each level but the first."""
    plain = [np.ones(rows.count)]
    for column in rows.regression.columns:
        cells = rows.frame[column.name]
        if column.values == "levels":
            plain += [np.asarray(cells.cat.codes == code, np.float64) for code in range(1, len(column.levels))]
        else:
            plain.append(cells.to_numpy(np.float64))
    return plain


def _left_to_one(plain: Sequence[Vector], whole: Sequence[Vector], alone: float) -> NDArray[np.bool_]:
    """The rows that have a combination of all columns for themselves, and none of the plain ones."""
    leverage = _leverage(np.column_stack(whole))
    if len(leverage) < leverage.sum() + SPARE:  # which is the rank
        return np.zeros(len(leverage), bool)
    return (leverage > alone) & (_leverage(np.column_stack(plain)) < AMONG_OTHERS)


def _products(columns: Sequence[Vector]) -> list[Vector]:
    """All products of two columns: with a constant among them these are the columns, too."""
    sized = [column / (np.abs(column).max() or 1.0) for column in columns]
    return [one * other for one, other in combinations_with_replacement(sized, 2)]


def _leverage(columns: Matrix) -> Vector:
    """h_ii of each row."""
    turned, rank, _ = _turned(columns)
    return np.asarray((turned[:, :rank] ** 2).sum(axis=1))


def _independent(columns: Sequence[Vector]) -> list[Vector]:
    """Of some columns those that do not follow from the others."""
    _, rank, order = _turned(np.column_stack(columns))
    return [columns[place] for place in sorted(order[:rank])]


def _turned(columns: Matrix) -> tuple[Matrix, int, list[int]]:
    """Q and the rank of columns of length 1, without what is left of them by rounding, and in which order they were taken."""
    from scipy.linalg import qr  # late: an import of a tenth of a second

    sizes = np.linalg.norm(columns, axis=0)
    some = np.flatnonzero(sizes > 0.0)
    turned, left, order = qr(columns[:, some] / sizes[some], mode="economic", pivoting=True)
    return turned, int((np.abs(np.diag(left)) > ROUNDING).sum()), some[order].tolist()


# ---------------------------------------------------------------- several regressions


def between(rows: SiteRows, least: int, earlier: Iterable[Regression]) -> tuple[str, ...]:
    """What an earlier regression and this one have calculated that differs in fewer rows of this site than `least`, in a few words.

    The difference of two sums, each about many rows, is then about these.
    """
    new, steps, said = _calculated(rows.regression, rows), _steps(rows.regression, rows, least), []
    alone = _alone(rows, new)
    for one in earlier:
        old = _calculated(one, rows)
        for text, sides in steps.items():
            said += [
                f"{other}, {text}" for other, was in _steps(one, rows, least).items() if 0 < _apart(sides, was) < least
            ]
        if (_alone(rows, old | new) & ~alone & ~_alone(rows, old)).any():
            said.append(", ".join(dict.fromkeys((*old, *new))))
    return tuple(dict.fromkeys(said))


def _apart(one: Vector, other: Vector) -> int:
    """In how many rows two columns of zeros and ones differ, or one from what the other is not."""
    differ = int((one != other).sum())
    return min(differ, len(one) - differ)


# ---------------------------------------------------------------- knots


def narrow_knots(rows: SiteRows, knots: Knots, least: int) -> tuple[str, ...]:
    """The splines that have fewer rows of this site than `least` between two knots where a good many were to be expected.

    Knots follow from counts that any site can have made up, and between two that lie close together a spline singles out who is there.
    """
    found = []
    for written, cell in _with_cells(rows):
        at, column = knots[written], rows.regression.terms.splines[written].column
        counts, _ = np.histogram(rows.frame[column].to_numpy(np.float64)[cell], at)
        if ((counts > 0) & (counts < min(least, _rows_between(int(cell.sum()), len(at)) / RARER))).any():
            found.append(written)
    return tuple(dict.fromkeys(found))


def narrow_step(rows: SiteRows, known: Known, least: int) -> bool:
    """Whether the next sum before the fit, at a constant beside an offset, is about fewer rows of this site than `least`."""
    at = by_null_step(rows, known) if least > 1 else None
    return at is not None and not at.carriers((), True) >= wanted_of(rows.count, False, least)


def alone_among_all(rows: SiteRows, known: Known, least: int) -> bool:
    """Whether sums with what is explained would tell, in some combination, hardly more than what it is in one row of this site."""
    return least > 1 and known.has("products") and bool((leverages_among_all(rows, known) > ALONE_AMONG_ALL).any())


def rare_outcomes(rows: SiteRows, known: Known, least: int) -> tuple[str, ...]:
    """The terms that multiply a number with a level of which few rows of all sites have an outcome: sums of these are what the few are like."""
    found, begin, told = [], 0, known.told("products")["outcomes"]
    levels = {one.name for one in rows.regression.columns if one.values == "levels"}
    for cells in outcome_cells(rows.regression):
        shape = (outcomes(rows.regression), *cells.sizes)
        counts = told[begin : begin + int(np.prod(shape))].reshape(shape)
        begin += counts.size
        for axis, name in enumerate(cells.columns, 1):
            if (
                name not in levels and len(np.unique(rows.frame[name])) > 2
            ):  # of many values none is a level, but that it is 0 for most
                counts = np.take(counts, [1, 2], axis).sum(axis=axis, keepdims=True)
        if ((counts > 0.0) & (counts < least)).any():
            found.append(cells.term)
    return tuple(found)


# So many times fewer rows than at all sites on the average are no accident.
RARER = 5.0


def _by_splines(rows: SiteRows, least: int) -> Iterator[str]:
    """Splines with so many knots that nobody could tell whether this site has one row between two by accident."""
    splines = rows.regression.terms.splines
    for written, cell in _with_cells(rows):
        if least > 1 and _rows_between(int(cell.sum()), splines[written].inside + 2) <= RARER:
            yield written


def _with_cells(rows: SiteRows) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each spline, and the rows of which it is one: those of each combination of levels by which it is multiplied, or all."""
    terms, levels = rows.regression.terms, {one.name for one in rows.regression.columns if one.values == "levels"}
    for term in terms.terms:
        factors = [factor.expr for factor in term.factors]
        beside = [name for name in terms.names_in(*factors) if name in levels]
        codes = np.array([rows.frame[name].cat.codes for name in beside], np.int64).reshape(len(beside), rows.count)
        _, place = np.unique(codes, axis=1, return_inverse=True) if beside else (None, np.zeros(rows.count, np.int64))
        for written in (one for one in factors if one in terms.splines):
            yield from ((written, place.reshape(-1) == number) for number in range(place.max(initial=0) + 1))


def crossed_splines(rows: SiteRows, known: Known, least: int) -> tuple[str, ...]:
    """Splines of which hardly a row of all sites with some level lies between two knots, or none between two of another spline.

    Products are told of any two columns, also of those that no term multiplies. A number of two values is a level, of which other sites have
    as many as this one.
    """
    splines, sides = rows.regression.terms.splines, {}
    for column in rows.regression.columns if splines and least > 1 else ():
        if column.values == "levels":
            counts = known.told("counts")[column.name].reshape(-1, len(column.levels)).sum(axis=0)
        else:
            found, counts = np.unique(rows.frame[column.name], return_counts=True)
            counts = counts * known.rows / rows.count if len(found) == 2 else np.zeros(0)
        sides[column.name] = float(counts[counts > 0.0].min(initial=np.inf))
    said = [
        f"{written} beside {name}"
        for written, one in splines.items()
        for name, count in sides.items()
        if _rows_between(count, one.inside + 2) <= RARER
    ]
    for (written, one), (another, other) in combinations(splines.items() if sides else (), 2):
        between_both = _rows_between(_rows_between(known.rows, one.inside + 2), other.inside + 2)
        if one.column != other.column and between_both <= RARER:
            said.append(f"{written} beside {another}")
    return tuple(rows.regression.terms.spoken(one) for one in said)


def _rows_between(count: float, knots: int) -> float:
    """How many of so many rows there would be between two of so many knots, if all sites were as one."""
    return count * (ENDS[1] - ENDS[0]) / (knots - 1)
