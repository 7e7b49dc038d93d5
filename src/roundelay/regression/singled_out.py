"""Whether a formula singles out a few rows of a site, by what it calculates: for the site's own eyes.

A level that few rows have is found by counting. A formula can make as much of numbers: (age > 82) * (bmi > 40) is 1 for one person, whose
outcome is then a coefficient; and exp(-100 * (age - 83) ** 2) very nearly so. How many rows a column v is about is (Σd²)²/Σd⁴ with
d = v − median: of k ones among zeros, or zeros among ones, it is k.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.regression.formula import LEVELS, SPLINE
from roundelay.regression.regression import Regression
from roundelay.regression.rows import SiteRows
from roundelay.regression.sums import ENDS

# What rounding may do to a number of rows.
NEARLY = 1e-6


def singled_out(rows: SiteRows, least: int) -> tuple[str, ...]:
    """What of a regression is about fewer rows of this site than `least`, each in a few words; nothing of how many."""
    if rows.count < least:
        return ()  # whatever is told is
    return tuple(dict.fromkeys([*_by_columns(rows, least), *_by_limits(rows, least)]))


def _is_about_few(column: Vector, least: int) -> bool:
    """Of numbers that are drawn from a bell it is about a third of the rows, and half of that is left to those with longer tails."""
    two = len(np.unique(column)) == 2
    return 0.0 < about(column) < (least if two else min(least, len(column) / 6.0)) - NEARLY


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
    levels = tuple(
        f"{word}[" for one in regression.columns if one.values == "levels" for word in (one.name, f"C({one.name})")
    )
    for name, column in zip(regression.design_names, _design(rows).T, strict=True):
        if name.startswith(levels) and ":" not in name:
            continue  # whose rows are counted
        if ":" not in name and any(name.startswith(spline) for spline in regression.terms.splines):
            continue  # with many unknowns, which are counted where all rows are
        others = int((column != np.median(column)).sum())
        if 0 < others < least if name in plain else _is_about_few(column, least):
            yield name
    parts = [node for node in regression.terms.response[1] if not isinstance(node, ast.Name)]
    for node in [*regression.terms.beside.values(), *parts]:
        if _is_about_few(regression.terms.numbers(node, rows.frame), least):
            yield regression.terms.spoken(ast.unparse(node))


def _design(rows: SiteRows) -> Matrix:
    """Splines have the knots that these rows alone would give them."""
    splines = rows.regression.terms.splines.items()
    return rows.design(
        {written: _own_knots(rows.frame[one.column].to_numpy(np.float64), one.inside + 2) for written, one in splines}
    )


def _own_knots(values: Vector, count: int) -> tuple[float, ...]:
    """Quantiles, each a little above the one before."""
    knots = np.quantile(values, np.linspace(*ENDS, count))
    return tuple((knots + np.arange(count) * NEARLY * max(1.0, float(np.abs(knots).max()))).tolist())


# Comparisons by how they are written, for each set of columns that they are of.
Limits = Mapping[frozenset[str], Mapping[str, Vector]]


def between(rows: SiteRows, least: int, earlier: Iterable[Regression]) -> tuple[str, ...]:
    """What of the limits of earlier regressions and of this one has fewer rows of this site between them than `least`, in a few words.

    The difference of two sums, each about many rows, is then about these.
    """
    new, said = _limits(rows.regression, rows), []
    for one in earlier:
        old = _limits(one, rows)
        for names in new.keys() & old.keys():
            parts = [_cells(limits[names]) for limits in (new, old)]
            known = {cell for part in parts for cell in part.values()}
            both = _cells({**new[names], **{f"before: {text}": sides for text, sides in old[names].items()}})
            if any(len(cell) < least for cell in both.values() if cell not in known):
                said.append(", ".join(dict.fromkeys((*old[names], *new[names]))))
        before, after = _curves(one, rows), _curves(rows.regression, rows)
        for names in after.keys() & before.keys():
            for text, curve in after[names].items():
                said += [
                    f"{other}, {text}" for other, was in before[names].items() if _is_about_few(curve - was, least)
                ]
    return tuple(dict.fromkeys(said))


def _by_limits(rows: SiteRows, least: int) -> Iterator[str]:
    """What lies between all limits that are set to the same columns: two columns of many rows each may differ in one of them."""
    for comparisons in _limits(rows.regression, rows).values():
        if min(map(len, _cells(comparisons).values())) < least:
            yield ", ".join(comparisons)


def _cells(comparisons: Mapping[str, Vector]) -> dict[tuple[float, ...], frozenset[int]]:
    """The rows for which all comparisons come out alike."""
    cells: dict[tuple[float, ...], set[int]] = defaultdict(set)
    for row, sides in enumerate(np.column_stack([*comparisons.values()]).tolist()):
        cells[tuple(sides)].add(row)
    return {sides: frozenset(cell) for sides, cell in cells.items()}


def _limits(regression: Regression, rows: SiteRows) -> Limits:
    """All comparisons that a regression makes, as far as these rows have the columns."""
    nodes = _written(regression)
    return _by_names(
        regression, rows, [one for whole in nodes for one in ast.walk(whole) if isinstance(one, ast.Compare)]
    )


def _curves(regression: Regression, rows: SiteRows) -> Limits:
    """All that a regression calculates for a factor, or beside them; not columns as they are, their levels and splines."""
    plain = [node for node in _written(regression) if not isinstance(node, ast.Name | ast.Constant)]
    return _by_names(regression, rows, [node for node in plain if not _is_of_a_kind(node)])


def _is_of_a_kind(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (LEVELS, SPLINE)


def _written(regression: Regression) -> list[ast.expr]:
    terms = regression.terms
    factors = [factor.expr.strip() for term in terms.terms for factor in term.factors]
    return [*terms.response[1], *terms.beside.values(), *(ast.parse(one, mode="eval").body for one in factors)]


def _by_names(regression: Regression, rows: SiteRows, nodes: Iterable[ast.expr]) -> Limits:
    terms = regression.terms
    frame = rows.frame if regression is rows.regression else rows.in_units_of(regression)
    limits: dict[frozenset[str], dict[str, Vector]] = defaultdict(dict)
    for node in nodes:
        called = {id(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
        names = frozenset(
            terms.named(one.id) for one in ast.walk(node) if isinstance(one, ast.Name) and id(one) not in called
        )
        if names <= set(frame.columns):
            with suppress(ValueError):  # an earlier regression's logarithm, say, of what are other rows now
                limits[names][terms.spoken(ast.unparse(node))] = terms.numbers(node, frame)
    return limits
