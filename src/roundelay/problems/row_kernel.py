"""f_i(x) = scale_i Σ_j ℓ(o_j'x, t_j) + ridge/2 ‖x‖² as the engines run it, for any loss ℓ of a row's prediction."""

from __future__ import annotations

from typing import Any, NamedTuple

from roundelay.kernels import (
    DIM,
    Integers,
    Matrix,
    Vector,
    dot,
    each,
    matrix,
    norm,
    prefetch,
    slot,
    solve_positive,
    vector,
)


class RowNumbers(NamedTuple):
    """The rows o_j and targets t_j, where each agent's begin, what one row counts, and what the loss itself needs.

    A change of a prediction is large or small against `width`.
    """

    rows: Matrix
    targets: Vector
    row_starts: Integers
    row_scale: Vector
    ridge: float
    width: float
    own: Any


@slot
def row_slope(problem: Any, i: int, j: int, x: Vector) -> float:
    """The number that row j is multiplied by in ∇f_i(x)."""
    raise NotImplementedError


@slot
def row_curvature(problem: Any, i: int, j: int, x: Vector) -> float:
    """The number that row j's square is multiplied by in ∇²f_i(x)."""
    raise NotImplementedError


@slot
def loss_slope(own: Any, prediction: float, target: float) -> float:
    """ℓ'(u, t)."""
    raise NotImplementedError


@slot
def loss_curvature(own: Any, prediction: float, target: float) -> float:
    """ℓ''(u, t)."""
    raise NotImplementedError


def slope_of_row(problem: RowNumbers, i: int, j: int, x: Vector) -> float:
    """scale_i ℓ'(o_j'x, t_j)."""
    return problem.row_scale[i] * loss_slope(problem.own, dot(problem.rows[j], x), problem.targets[j])


def curvature_of_row(problem: RowNumbers, i: int, j: int, x: Vector) -> float:
    """scale_i ℓ''(o_j'x, t_j)."""
    return problem.row_scale[i] * loss_curvature(problem.own, dot(problem.rows[j], x), problem.targets[j])


def record_weight(problem: RowNumbers, i: int) -> float:
    """What the loss of one record of agent i is multiplied by in f_i."""
    return problem.row_scale[i]


def fetch(problem: RowNumbers, i: int) -> None:
    """Ask for agent i's rows and targets, one request for each 64 bytes."""
    for j in range(problem.row_starts[i], problem.row_starts[i + 1], max(8 // DIM, 1)):
        prefetch(problem.rows, j)
    for j in range(problem.row_starts[i], problem.row_starts[i + 1], 8):
        prefetch(problem.targets, j)


def gradient(problem: RowNumbers, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(x)."""
    for d in each(DIM):
        out[d] = problem.ridge * x[d]
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        slope = row_slope(problem, i, j, x)
        for d in each(DIM):
            out[d] += slope * problem.rows[j, d]


def curvature(problem: RowNumbers, i: int, x: Vector, penalty: float, out: Matrix) -> None:
    """∇²f_i(x) + penalty·I."""
    for a in range(DIM):
        for d in each(DIM):
            out[a, d] = 0.0
        out[a, a] = penalty + problem.ridge
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        weight = row_curvature(problem, i, j, x)
        for a in range(DIM):
            height = weight * problem.rows[j, a]
            for d in each(DIM):
                out[a, d] += height * problem.rows[j, d]


def prediction_change(problem: RowNumbers, i: int, step: Vector) -> float:
    """The most by which a step changes the prediction of any row, in widths of the loss."""
    most = 0.0
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        most = max(most, abs(dot(problem.rows[j], step)))
    return most / problem.width


def minimise(problem: RowNumbers, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin φ(x) = f_i(x) + penalty/2 ‖x‖² − w'x, by Newton's method.

    Safeguard: a step that overshoots the minimum along it is shortened by bisection. Only through the
    predictions is φ not quadratic: after a step that moves none by more than 1e-8 widths, the next is below rounding.
    Neither depends on the units of the features.
    """
    slope, step, trial, trial_slope = vector(DIM), vector(DIM), vector(DIM), vector(DIM)
    hessian = matrix(DIM)
    for d in each(DIM):
        out[d] = start[d]
    gradient(problem, i, out, slope)
    for d in each(DIM):
        slope[d] += penalty * out[d] - w[d]
    before = 1.0
    for _ in range(1000):
        curvature(problem, i, out, penalty, hessian)
        for d in each(DIM):
            step[d] = slope[d]
        solve_positive(hessian, step)
        change = prediction_change(problem, i, step)
        decrease = dot(step, slope)
        shorter, longer, length = 0.0, 0.0, 1.0
        for _trial in range(60):
            for d in each(DIM):
                trial[d] = out[d] - length * step[d]
            gradient(problem, i, trial, trial_slope)
            for d in each(DIM):
                trial_slope[d] += penalty * trial[d] - w[d]
            ahead = dot(step, trial_slope)
            if ahead < -0.5 * decrease:
                longer = length
            elif ahead > 0.5 * decrease and longer > 0.0:
                shorter = length
            else:
                break
            length = 0.5 * (shorter + longer)
        for d in each(DIM):
            out[d] = trial[d]
            slope[d] = trial_slope[d]
        # A small step that is not much smaller than the one before is rounding.
        unfinished = norm(step) > norm(out) or change > 1e-3 or 1e-8 < change <= 0.5 * before
        if not unfinished:
            return
        before = change


FUNCTIONS = (
    ("minimise", minimise),
    ("gradient", gradient),
    ("curvature", curvature),
    ("prediction_change", prediction_change),
    ("record_weight", record_weight),
    ("fetch", fetch),
)
PER_AGENT = ("row_starts", "row_scale")
