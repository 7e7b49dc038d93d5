"""Sums of products over the rows of a tile, Σ_j w_j z_j z_j': one half of each matrix, since the other is the same.

A BLAS forms both halves, and is slow where a matrix is small. Compiled code takes down to a third of its time, and adds in an order that
NumPy follows to the bit: so a few rows do not wait for a compiler, and nobody sees where it took over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from roundelay.engine.assemble import Allowance, compiled_module, recipe
from roundelay.kernels import Matrix, Vector, vector

# So many rows of a tile stay in the innermost cache while all their products are formed, each in so many partial sums.
ROWS_AT_ONCE: int = 512
LANES: int = 16
# Of more columns a BLAS is as fast.
NARROW = 64
# So many products are formed by NumPy in about the time that it takes to have the compiled form ready.
SOON_FORMED = 2**29

_BY_NUMPY = Allowance(SOON_FORMED)


def add_products(tile: Matrix, weights: Vector, half: Matrix) -> None:
    """Add Σ_j w_j z_j z_j' over the columns z_j of a tile to the upper half of a matrix; what is below the diagonal has no meaning."""
    if len(tile) > NARROW:
        half += (tile * weights) @ tile.T
    elif _BY_NUMPY.takes(tile.size * (len(tile) + 1) // 2):
        by_numpy(tile, weights, half)
    else:
        compiled()(tile, weights, half)


def whole_of(half: Matrix) -> Matrix:
    """The symmetric matrix of which this is the upper half."""
    upper: Matrix = np.triu(half, 1)
    return upper + upper.T + np.diag(np.diag(half))


def by_numpy(tile: Matrix, weights: Vector, half: Matrix) -> None:
    """`in_lanes`, its sums in the same order."""
    above, beside = np.triu_indices(len(tile))
    for begin in range(0, tile.shape[1], ROWS_AT_ONCE):
        rows, factors = tile[:, begin : begin + ROWS_AT_ONCE], weights[begin : begin + ROWS_AT_ONCE]
        products = (factors * rows)[above] * rows[beside]
        groups = len(factors) // LANES
        in_groups = products[:, : groups * LANES].reshape(len(products), groups, LANES)
        lanes = np.add.reduce(in_groups, axis=1)  # group after group
        for rest in products[:, groups * LANES :].T:
            lanes[:, 0] += rest
        half[above, beside] += np.add.accumulate(lanes, axis=1)[:, -1]


@cache
def compiled() -> Callable[[Matrix, Vector, Matrix], int]:
    """`in_lanes`, compiled: from disk, where it has been compiled before."""
    made = recipe((), (), (("travel", in_lanes),), (), compiled=True)
    found: Callable[[Matrix, Vector, Matrix], int] = compiled_module(made, LANES).travel
    return found


def in_lanes(tile: Matrix, weights: Vector, half: Matrix) -> int:
    """Four products at a time, so that a row is read once for them; a lane has every sixteenth row, so that the vector unit has all."""
    columns, length = tile.shape
    scaled = np.empty(ROWS_AT_ONCE)
    first, second, third, fourth = vector(LANES), vector(LANES), vector(LANES), vector(LANES)
    for begin in range(0, length, ROWS_AT_ONCE):
        factors = weights[begin : begin + ROWS_AT_ONCE]
        count = len(factors)
        in_groups = count // LANES * LANES
        for a in range(columns):
            own = tile[a, begin : begin + ROWS_AT_ONCE]
            for j in range(count):
                scaled[j] = factors[j] * own[j]
            for b in range(a, columns, 4):
                # Beyond the last column it stands again, and what comes of it is left.
                one = tile[b, begin : begin + ROWS_AT_ONCE]
                two = tile[min(b + 1, columns - 1), begin : begin + ROWS_AT_ONCE]
                three = tile[min(b + 2, columns - 1), begin : begin + ROWS_AT_ONCE]
                four = tile[min(b + 3, columns - 1), begin : begin + ROWS_AT_ONCE]
                for lane in range(LANES):
                    first[lane], second[lane], third[lane], fourth[lane] = 0.0, 0.0, 0.0, 0.0
                for group in range(count // LANES):
                    for lane in range(LANES):
                        j = LANES * group + lane
                        first[lane] += scaled[j] * one[j]
                        second[lane] += scaled[j] * two[j]
                        third[lane] += scaled[j] * three[j]
                        fourth[lane] += scaled[j] * four[j]
                for j in range(in_groups, count):
                    first[0] += scaled[j] * one[j]
                    second[0] += scaled[j] * two[j]
                    third[0] += scaled[j] * three[j]
                    fourth[0] += scaled[j] * four[j]
                sums = (0.0, 0.0, 0.0, 0.0)
                for lane in range(LANES):
                    sums = (
                        sums[0] + first[lane],
                        sums[1] + second[lane],
                        sums[2] + third[lane],
                        sums[3] + fourth[lane],
                    )
                for place in range(min(4, columns - b)):
                    half[a, b + place] += sums[place]
    return 0
