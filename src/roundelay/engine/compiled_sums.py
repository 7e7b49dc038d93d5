"""The primitives that sum over a vector, as the compiled engine assembles them: kernel functions over DIM."""

from __future__ import annotations

import math

from roundelay.kernels import DIM, INCREMENTS, Cube, Flags, Integers, Matrix, Vector
from roundelay.kernels import vector as eight_lanes  # on the stack, whatever DIM is


def dot(a: Vector, b: Vector) -> float:
    """The inner product, in eight partial sums where that lets it use the vector unit without reordering."""
    total = a[0] * b[0]
    if DIM < 16:
        for d in range(1, DIM):
            total += a[d] * b[d]
        return total
    total = 0.0
    lanes = eight_lanes(8)
    for lane in range(8):
        lanes[lane] = 0.0
    for block in range(DIM // 8):
        for lane in range(8):
            lanes[lane] += a[8 * block + lane] * b[8 * block + lane]
    for d in range(8 * (DIM // 8), DIM):
        total += a[d] * b[d]
    for lane in range(8):
        total += lanes[lane]
    return total


def norm(a: Vector) -> float:
    """The Euclidean norm."""
    return math.sqrt(dot(a, a))


def distance(a: Vector, b: Vector) -> float:
    """The Euclidean distance between two points."""
    total = 0.0
    for d in range(DIM):
        gap = a[d] - b[d]
        total += gap * gap
    return math.sqrt(total)


def solve_positive(a: Matrix, b: Vector) -> None:
    """Cholesky's method in place: a becomes its factor, b the solution."""
    for j in range(DIM):
        for k in range(j):
            for i in range(j, DIM):
                a[i, j] -= a[i, k] * a[j, k]
        pivot = math.sqrt(a[j, j])
        for i in range(j, DIM):
            a[i, j] /= pivot
        b[j] /= pivot
        for i in range(j + 1, DIM):
            b[i] -= a[i, j] * b[j]
    for j in range(DIM - 1, -1, -1):
        for i in range(j + 1, DIM):
            b[j] -= a[i, j] * b[i]
        b[j] /= a[j, j]


def gather(weights: Vector, neighbours: Integers, begin: int, end: int, rows: Cube, lane: int, out: Vector) -> None:
    """Arc after arc."""
    for a in range(begin, end):
        j = neighbours[a]
        weight = weights[a]
        for d in range(DIM):
            out[d] += weight * rows[j, lane, d]


def gather_arrived(
    weights: Vector,
    neighbours: Integers,
    begin: int,
    end: int,
    rows: Cube,
    lane: int,
    lost: Flags,
    sent: Flags,
    held: Cube,
    increments: int,
    out: Vector,
) -> float:
    """Arc after arc, without a branch that depends on chance."""
    square = 0.0
    for a in range(begin, end):
        j = neighbours[a]
        weight = weights[a]
        arrived = lost[a] == 0 and sent[j] == 1
        for d in range(DIM):
            fresh = rows[j, lane, d]
            last = 0.0 if INCREMENTS else held[a, lane, d]
            value = fresh if arrived else last
            held[a, lane, d] = value
            out[d] += weight * value
        square += weight * weight if arrived or not INCREMENTS else 0.0
    return square


def latest(times: Vector, delays: Vector, neighbours: Integers, begin: int, end: int) -> float:
    """Arc after arc."""
    last = 0.0
    for a in range(begin, end):
        last = max(last, times[neighbours[a]] + delays[a])
    return last
