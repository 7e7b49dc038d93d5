"""f_i(x) = scale_i Σ_j ℓ(o_j'x, t_j) + ridge/2 ‖x‖² as the engines run it, where the rows o_j are mostly zeros.

Only the places that some row of agent i has make f_i more than its ridge. All that is iterated stands in these alone, so that a
step costs what is not zero, and the length of x counts once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from roundelay.kernels import DIM, Integers, Vector, each
from roundelay.kernels.sparse import inner, sum_of_rows, times_rows
from roundelay.problems.row_kernel import loss_curvature, loss_slope


class SparseNumbers(NamedTuple):
    """The rows o_j and targets t_j, where each agent's begin, what one row counts, and what the loss itself needs.

    Agent i's rows have the places `places[place_starts[i]:place_starts[i + 1]]` of x, which `columns` counts from 0. A
    change of a prediction is large or small against `width`, which is infinite for squares.
    """

    values: Vector
    columns: Integers
    spans: Integers
    places: Integers
    place_starts: Integers
    targets: Vector
    row_starts: Integers
    row_scale: Vector
    record_weights: Vector
    ridge: float
    width: float
    own: Any


# Conjugate gradients end where the residual is this part of the first, squared; or of the first in all of a minimisation.
SOLVED: float = 1e-28
LOST: float = 1e-30
# A step of squares that is this part of x mends nothing.
MENDED: float = 1e-12


def slope_in_places(problem: SparseNumbers, i: int, here: Vector, predictions: Vector, out: Vector) -> None:
    """∇f_i without the ridge in agent i's places, where x is `here`; and what its rows predict."""
    begin, end = problem.row_starts[i], problem.row_starts[i + 1]
    spans, targets, scale = problem.spans[begin : end + 1], problem.targets[begin:end], problem.row_scale[i]
    times_rows(problem.values, problem.columns, spans, here, predictions)
    slopes = np.empty(end - begin)
    for j in each(end - begin):
        slopes[j] = scale * loss_slope(problem.own, predictions[j], targets[j])
    sum_of_rows(problem.values, problem.columns, spans, slopes, out)


def gradient(problem: SparseNumbers, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(x)."""
    first, last = problem.place_starts[i], problem.place_starts[i + 1]
    places, here, slope = problem.places[first:last], np.empty(last - first), np.empty(last - first)
    for m in each(last - first):
        here[m] = x[places[m]]
    slope_in_places(problem, i, here, np.empty(problem.row_starts[i + 1] - problem.row_starts[i]), slope)
    for d in each(DIM):
        out[d] = problem.ridge * x[d]
    for m in each(last - first):
        out[places[m]] = out[places[m]] + slope[m]


def row_slope(problem: SparseNumbers, i: int, j: int, x: Vector) -> float:
    """The number that row j is multiplied by in ∇f_i(x)."""
    begin, end = problem.spans[j], problem.spans[j + 1]
    places = problem.places[problem.place_starts[i] + problem.columns[begin:end]]
    prediction = inner(problem.values[begin:end], x[places])
    return problem.row_scale[i] * loss_slope(problem.own, prediction, problem.targets[j])


def add_row(problem: SparseNumbers, i: int, j: int, factor: float, out: Vector) -> None:
    """Add a multiple of agent i's row j."""
    begin, end = problem.spans[j], problem.spans[j + 1]
    values, places = problem.values[begin:end], problem.places[problem.place_starts[i] + problem.columns[begin:end]]
    for k in each(end - begin):
        out[places[k]] = out[places[k]] + factor * values[k]


def row_length(problem: SparseNumbers, j: int) -> float:
    """‖o_j‖."""
    values = problem.values[problem.spans[j] : problem.spans[j + 1]]
    return math.sqrt(inner(values, values))


def record_weight(problem: SparseNumbers, i: int) -> float:
    """What the loss of one record of agent i is multiplied by in f_i."""
    return problem.record_weights[i]


def step_by_conjugate_gradients(
    values: Vector, columns: Integers, spans: Integers, weights: Vector, shift: float, slope: Vector, floor: float, out: Vector
) -> float:  # fmt: skip
    """out = (Σ_j weights_j o_j o_j' + shift·I)⁻¹ slope, in units that make the diagonal 1, so that those of the features don't matter.

    The matrix has no more different eigenvalues than there are rows, or places, and one. It ends at the residual `floor`, too, and
    returns the one that it began with.
    """
    count, size = weights.shape[0], slope.shape[0]
    diagonal, left, scaled, ahead, turned = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size),
    )  # fmt: skip
    predicted = np.empty(count)
    sum_of_rows(values * values, columns, spans, weights, diagonal)
    for m in each(size):
        diagonal[m] = diagonal[m] + shift
    for m in each(size):
        left[m] = slope[m]
        scaled[m] = slope[m] / diagonal[m]
        out[m] = 0.0
    for m in each(size):
        ahead[m] = scaled[m]
    square = inner(left, scaled)
    first, least = square, max(SOLVED * square, floor)
    for _ in range(100 * (min(count, size) + 5)):
        if not square > least:
            return first
        times_rows(values, columns, spans, ahead, predicted)
        for j in each(count):
            predicted[j] = weights[j] * predicted[j]
        sum_of_rows(values, columns, spans, predicted, turned)
        for m in each(size):
            turned[m] = turned[m] + shift * ahead[m]
        length = square / inner(ahead, turned)
        for m in each(size):
            out[m] = out[m] + length * ahead[m]
            left[m] = left[m] - length * turned[m]
        for m in each(size):
            scaled[m] = left[m] / diagonal[m]
        before, square = square, inner(left, scaled)
        for m in each(size):
            ahead[m] = scaled[m] + square / before * ahead[m]
    return first


def minimise(problem: SparseNumbers, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin φ(x) = f_i(x) + penalty/2 ‖x‖² − w'x: w/(penalty + ridge) where no row has anything, and Newton's method elsewhere.

    It is that of `row_kernel`, with its safeguard and its end, but for the steps: they come by conjugate gradients.
    """
    begin, end, first, last = (
        problem.row_starts[i], problem.row_starts[i + 1], problem.place_starts[i], problem.place_starts[i + 1],
    )  # fmt: skip
    count, size, shift, places = end - begin, last - first, penalty + problem.ridge, problem.places[first:last]
    start_of_all = problem.spans[begin]
    values = problem.values[start_of_all : problem.spans[end]]
    columns = problem.columns[start_of_all : problem.spans[end]]
    spans, targets, scale = (
        problem.spans[begin : end + 1] - start_of_all,
        problem.targets[begin:end],
        problem.row_scale[i],
    )
    x, pull, slope, step, trial, trial_slope = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size),
    )  # fmt: skip
    predictions, weights, changes = np.empty(count), np.empty(count), np.empty(count)
    for m in each(size):
        x[m] = start[places[m]]
        pull[m] = w[places[m]]
    for d in each(DIM):
        out[d] = w[d] / shift
    slope_in_places(problem, i, x, predictions, slope)
    for m in each(size):
        slope[m] = slope[m] + shift * x[m] - pull[m]
    before, floor = math.inf if problem.width == math.inf else 1.0, 0.0
    for _ in range(200):
        for j in each(count):
            weights[j] = scale * loss_curvature(problem.own, predictions[j], targets[j])
        residual = step_by_conjugate_gradients(values, columns, spans, weights, shift, slope, floor, step)
        floor = max(floor, LOST * residual)
        decrease = inner(step, slope)
        shorter, longer, length = 0.0, 0.0, 1.0
        for _trial in range(60):
            for m in each(size):
                trial[m] = x[m] - length * step[m]
            slope_in_places(problem, i, trial, predictions, trial_slope)
            for m in each(size):
                trial_slope[m] = trial_slope[m] + shift * trial[m] - pull[m]
            ahead = inner(step, trial_slope)
            if ahead < -0.5 * decrease:
                longer = length
            elif ahead > 0.5 * decrease and longer > 0.0:
                shorter = length
            else:
                break
            length = 0.5 * (shorter + longer)
        for m in each(size):
            x[m] = trial[m]
            slope[m] = trial_slope[m]
        # A small step that is not much smaller than the one before is rounding. Squares are solved by the first, and the others mend it.
        moved, size_of_x = math.sqrt(inner(step, step)), math.sqrt(inner(x, x))
        if problem.width == math.inf:
            change, unfinished = moved, MENDED * size_of_x < moved <= 0.5 * before
        else:
            times_rows(values, columns, spans, step, changes)
            for j in each(count):
                changes[j] = np.abs(changes[j])
            change = np.max(changes) / problem.width
            unfinished = moved > size_of_x or change > 1e-3 or 1e-8 < change <= 0.5 * before
        if not unfinished:
            break
        before = change
    for m in each(size):
        out[places[m]] = x[m]


FUNCTIONS = (
    ("minimise", minimise),
    ("gradient", gradient),
    ("slope_in_places", slope_in_places),
    ("row_slope", row_slope),
    ("add_row", add_row),
    ("row_length", row_length),
    ("record_weight", record_weight),
)
PER_AGENT = ("row_starts", "place_starts", "row_scale", "record_weights")
