"""Products with rows that are mostly zeros, as both engines run them: kernel functions, each in a form for either.

Row j has `values[spans[j]:spans[j + 1]]` in the places `columns[spans[j]:spans[j + 1]]`, each place once. Both forms add in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from roundelay.kernels.primitives import Integers, Vector


def times_rows(values: Vector, columns: Integers, spans: Integers, x: Vector, out: Vector) -> None:
    """out_j = o_j'x for the rows whose spans these are."""
    begin, end = spans[0], spans[-1]
    owners = np.repeat(np.arange(len(out)), np.diff(spans))
    out[:] = np.bincount(owners, values[begin:end] * x[columns[begin:end]], len(out))


def compiled_times_rows(values: Vector, columns: Integers, spans: Integers, x: Vector, out: Vector) -> None:
    """`times_rows` for the compiled engine."""
    for j in range(out.shape[0]):
        total = 0.0
        for k in range(spans[j], spans[j + 1]):
            total += values[k] * x[columns[k]]
        out[j] = total


def sum_of_rows(values: Vector, columns: Integers, spans: Integers, factors: Vector, out: Vector) -> None:
    """out = Σ_j factors_j·o_j over the rows whose spans these are."""
    begin, end = spans[0], spans[-1]
    out[:] = np.bincount(columns[begin:end], values[begin:end] * np.repeat(factors, np.diff(spans)), len(out))


def compiled_sum_of_rows(values: Vector, columns: Integers, spans: Integers, factors: Vector, out: Vector) -> None:
    """`sum_of_rows` for the compiled engine."""
    for m in range(out.shape[0]):
        out[m] = 0.0
    for j in range(factors.shape[0]):
        for k in range(spans[j], spans[j + 1]):
            out[columns[k]] += values[k] * factors[j]


def inner(a: Vector, b: Vector) -> float:
    """The inner product of two vectors of any one length, where `dot` is of those of length DIM. (BLAS would wait for all its threads.)"""
    return float(np.einsum("k,k->", a, b))


def compiled_inner(a: Vector, b: Vector) -> float:
    """`inner` for the compiled engine: four sums, so that none waits for the one before."""
    one, two, three, four, whole = 0.0, 0.0, 0.0, 0.0, 4 * (a.shape[0] // 4)
    for k in range(0, whole, 4):
        one += a[k] * b[k]
        two += a[k + 1] * b[k + 1]
        three += a[k + 2] * b[k + 2]
        four += a[k + 3] * b[k + 3]
    for k in range(whole, a.shape[0]):
        one += a[k] * b[k]
    return (one + two) + (three + four)


COMPILED: Mapping[str, Callable[..., Any]] = {
    "times_rows": compiled_times_rows,
    "sum_of_rows": compiled_sum_of_rows,
    "inner": compiled_inner,
}
