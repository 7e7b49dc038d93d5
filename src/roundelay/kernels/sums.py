"""The primitives that sum over a vector, as the compiled engine assembles them: kernel functions over DIM."""

from __future__ import annotations

import math

import numpy as np

from roundelay.kernels import (
    DIM,
    Cube,
    Flags,
    Integers,
    Matrix,
    Vector,
    vector,
    vector as eight_lanes,  # on the stack, whatever DIM is
)


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
    """Arc after arc, in sums that can stay in registers; in few dimensions four of them, so that none waits long."""
    total, second, third, fourth = vector(DIM), vector(DIM), vector(DIM), vector(DIM)
    for d in range(DIM):
        total[d] = out[d]
    # Unsigned numbers, because Python's negative ones would be looked for at every arc.
    one, a, last = np.uint64(1), np.uint64(begin), np.uint64(end)
    if DIM < 16:
        for d in range(DIM):
            second[d], third[d], fourth[d] = 0.0, 0.0, 0.0
        two, three, four = np.uint64(2), np.uint64(3), np.uint64(4)
        while a + four <= last:
            i, j = np.uint64(neighbours[a]), np.uint64(neighbours[a + one])
            k, m = np.uint64(neighbours[a + two]), np.uint64(neighbours[a + three])
            for d in range(DIM):
                total[d] += weights[a] * rows[i, lane, d]
            for d in range(DIM):
                second[d] += weights[a + one] * rows[j, lane, d]
            for d in range(DIM):
                third[d] += weights[a + two] * rows[k, lane, d]
            for d in range(DIM):
                fourth[d] += weights[a + three] * rows[m, lane, d]
            a += four
        for d in range(DIM):
            total[d] += second[d] + (third[d] + fourth[d])
    while a < last:
        j = np.uint64(neighbours[a])
        for d in range(DIM):
            total[d] += weights[a] * rows[j, lane, d]
        a += one
    for d in range(DIM):
        out[d] = total[d]


def flagged(flags: Flags, order: Integers) -> int:
    """Without a branch that depends on chance."""
    count = np.uint64(0)
    for place in range(flags.shape[0]):
        order[count] = place
        count += np.uint64(flags[place])
    return int(count)


def latest(times: Vector, delays: Vector, neighbours: Integers, begin: int, end: int) -> float:
    """Arc after arc."""
    last = 0.0
    for a in range(begin, end):
        last = max(last, times[neighbours[a]] + delays[a])
    return last
