"""Whether a formula singles out a few rows of a site, by what it calculates: for the site's own eyes.

A level that few rows have is found by counting. A formula can make as much of numbers: (age > 82) * (bmi > 40) is 1 for one person, whose
outcome is then a coefficient; and exp(-100 * (age - 83) ** 2) very nearly so. How many rows a column v is about is (Σd²)²/Σd⁴ with
d = v − median: of k ones among zeros, or zeros among ones, it is k.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.regression.rows import SiteRows

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
        if any(name.startswith(spline) for spline in regression.terms.splines):
            continue  # with many unknowns, which are counted where all rows are
        others = int((column != np.median(column)).sum())
        if 0 < others < least if name in plain else _is_about_few(column, least):
            yield name
    parts = [node for node in regression.terms.response[1] if not isinstance(node, ast.Name)]
    for node in [*regression.terms.beside.values(), *parts]:
        if _is_about_few(regression.terms.numbers(node, rows.frame), least):
            yield regression.terms.spoken(ast.unparse(node))


def _design(rows: SiteRows) -> Matrix:
    """Splines have some knots, which do not matter here."""
    splines = rows.regression.terms.splines
    return rows.design({written: np.linspace(0.0, 1.0, one.inside + 2).tolist() for written, one in splines.items()})


def _by_limits(rows: SiteRows, least: int) -> Iterator[str]:
    """What lies between all limits that are set to the same columns: two columns of many rows each may differ in one of them."""
    terms = rows.regression.terms
    limits: dict[frozenset[str], dict[str, ast.expr]] = defaultdict(dict)
    for node in _comparisons(rows):
        names = frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        limits[names][ast.unparse(node)] = node
    for comparisons in limits.values():
        sides = np.column_stack([terms.numbers(node, rows.frame) for node in comparisons.values()])
        if min(Counter(map(tuple, sides.tolist())).values(), default=least) < least:
            yield terms.spoken(", ".join(comparisons))


def _comparisons(rows: SiteRows) -> Iterator[ast.expr]:
    terms = rows.regression.terms
    written = [factor.expr for term in terms.terms for factor in term.factors]
    nodes = [*terms.response[1], *terms.beside.values(), *(ast.parse(one.strip(), mode="eval").body for one in written)]
    for node in nodes:
        yield from (one for one in ast.walk(node) if isinstance(one, ast.Compare))
