"""Logistic regression with labels −1 and 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.kernels import DIM, Matrix, Part, Vector, dot, each, matrix, norm, prefetch, solve_positive, vector
from roundelay.problems.problem import check_agent, check_penalty
from roundelay.problems.rows import Rows, Weights, check_ridge, read_rows, read_weights


class LogisticNumbers(NamedTuple):
    """The rows t_j·o_j, each multiplied by its label, and what one row counts."""

    rows: Matrix
    row_starts: NDArray[np.int64]
    row_scale: Vector
    ridge: float


def row_slope(problem: LogisticNumbers, i: int, j: int, x: Vector) -> float:
    """The number that row j is multiplied by in ∇f_i(x): −scale·σ(−margin)."""
    return -problem.row_scale[i] / (1.0 + math.exp(min(dot(problem.rows[j], x), 700.0)))


def record_weight(problem: LogisticNumbers, i: int) -> float:
    """What the loss of one record of agent i is multiplied by in f_i."""
    return problem.row_scale[i]


def fetch(problem: LogisticNumbers, i: int) -> None:
    """Ask for agent i's rows, one request for each 64 bytes."""
    for j in range(problem.row_starts[i], problem.row_starts[i + 1], max(8 // DIM, 1)):
        prefetch(problem.rows, j)


def gradient(problem: LogisticNumbers, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(x)."""
    for d in each(DIM):
        out[d] = problem.ridge * x[d]
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        slope = row_slope(problem, i, j, x)
        for d in each(DIM):
            out[d] += slope * problem.rows[j, d]


def curvature(problem: LogisticNumbers, i: int, x: Vector, penalty: float, out: Matrix) -> None:
    """∇²f_i(x) + penalty·I."""
    for a in range(DIM):
        for d in each(DIM):
            out[a, d] = 0.0
        out[a, a] = penalty + problem.ridge
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        likelihood = 1.0 / (1.0 + math.exp(min(dot(problem.rows[j], x), 700.0)))
        weight = problem.row_scale[i] * likelihood * (1.0 - likelihood)
        for a in range(DIM):
            height = weight * problem.rows[j, a]
            for d in each(DIM):
                out[a, d] += height * problem.rows[j, d]


def margin_change(problem: LogisticNumbers, i: int, step: Vector) -> float:
    """The most by which a step changes the margin of any row."""
    most = 0.0
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        most = max(most, abs(dot(problem.rows[j], step)))
    return most


def minimise(problem: LogisticNumbers, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin φ(x) = f_i(x) + penalty/2 ‖x‖² − w'x, by Newton's method.

    Safeguard: a step that overshoots the minimum along it is shortened by bisection. Only through the
    margins is φ not quadratic: after a step that moves none by more than 1e-8, the next is below rounding.
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
        change = margin_change(problem, i, step)
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


@dataclass(frozen=True, eq=False)
class Logistic:
    """f_i(x) = (1/b_i) Σ_j log(1 + exp(−t_ij x'o_ij)) + ridge/2 ‖x‖², with labels t_ij in {−1, 1}.

    `features` is one array (rows, features) for each agent and `labels` one array (rows,), of any row
    counts. `ridge` ≥ 0 counts once for every agent. `weights` multiplies the agents' data terms:
    "equal" (the paper), "rows" (in proportion to b_i: the pooled fit), or one number an agent.
    Without a ridge, labels that a plane can separate have no finite minimiser and are refused; `separable=True` leaves
    them, for one agent of a ring, whose labels may be separable where those of all together are not.
    """

    features: Sequence[ArrayLike] | ArrayLike
    labels: Sequence[ArrayLike] | ArrayLike
    ridge: float = 0.0
    weights: Weights = "equal"
    separable: bool = False

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        rows = self.rows
        strange = np.flatnonzero(np.abs(rows.targets) != 1.0)
        if len(strange):
            row = int(strange[0])
            agent = int(rows.owners[row])
            raise ValueError(
                f"Agent {agent} has the label {rows.targets[row]:g} in row {row - rows.starts[agent]}: labels must be -1 or 1 "
                "(from 0 and 1 they come by 2 * labels - 1)."
            )
        if not self.separable:
            _ = self.optimum  # finds out now whether there is one

    @cached_property
    def rows(self) -> Rows:
        """The data, checked, end to end."""
        return read_rows(self.features, self.labels)

    @cached_property
    def scales(self) -> Vector:
        """What one row of each agent counts: weight_i / b_i."""
        return read_weights(self.weights, self.rows, rows_are_summed=False) / self.rows.counts

    @property
    def record_weights(self) -> Vector:
        """What one record of each agent counts: its loss is log(1 + exp(−t x'o))."""
        return self.scales

    @cached_property
    def signed(self) -> Matrix:
        """The rows t_ij·o_ij."""
        return np.ascontiguousarray(self.rows.features * self.rows.targets[:, None])

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return self.rows.agents

    @property
    def dim(self) -> int:
        """p, the number of unknowns."""
        return self.rows.dim

    @cached_property
    def _numbers(self) -> LogisticNumbers:
        return LogisticNumbers(self.signed, self.rows.starts, self.scales, float(self.ridge))

    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""
        check_agent(agent, self.agents)
        margins = self.signed[self.rows.of(agent)] @ x
        return float(self.scales[agent] * np.logaddexp(0.0, -margins).sum() + 0.5 * self.ridge * x @ x)

    def gradient(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x)."""
        check_agent(agent, self.agents)
        block = self.signed[self.rows.of(agent)]
        return -self.scales[agent] * block.T @ _sigmoid(-(block @ x)) + self.ridge * x

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """∇²f_i(x)."""
        check_agent(agent, self.agents)
        block = self.signed[self.rows.of(agent)]
        chance = _sigmoid(block @ x)
        return self.scales[agent] * (block.T * (chance * (1.0 - chance))) @ block + self.ridge * np.eye(self.dim)

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖², by a safeguarded Newton method."""
        check_agent(agent, self.agents)
        check_penalty(penalty)
        centre = np.asarray(v, np.float64)
        return newton(
            lambda x: self.gradient(agent, x) + penalty * (x - centre),
            lambda x: self.hessian(agent, x) + penalty * np.eye(self.dim),
            self.signed[self.rows.of(agent)],
            centre,
        )[0]

    def values(self, points: Matrix) -> Vector:
        """f_i(x_i) of all agents, each at its own point."""
        losses = np.logaddexp(0.0, -self._margins(points))
        return self.scales * self.rows.sums(losses) + 0.5 * self.ridge * (points**2).sum(axis=1)

    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(x_i) of all agents, each at its own point."""
        slopes = -self.scales[self.rows.owners] * _sigmoid(-self._margins(points))
        return np.add.reduceat(slopes[:, None] * self.signed, self.rows.starts[:-1]) + self.ridge * points

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i(x) − Σ f_i(x*) at each of several points; below rounding it reads as 0."""
        scale, least = self.scales[self.rows.owners], self.signed @ self.optimum
        gaps = np.empty(len(points))
        for k, x in enumerate(points):
            margins = self.signed @ x
            # Row by row, so that close to x* the difference of the sums does not cancel.
            loss = scale @ (np.logaddexp(0.0, -margins) - np.logaddexp(0.0, -least))
            gaps[k] = loss + 0.5 * self.agents * self.ridge * ((x - self.optimum) @ (x + self.optimum))
        return np.maximum(gaps, 0.0)

    @cached_property
    def optimum(self) -> Vector:
        """x*, the minimiser of Σ f_i (that of least norm, where there are several)."""
        weights = self.scales[self.rows.owners]
        total_ridge = self.agents * self.ridge

        def slope(x: Vector) -> Vector:
            margins = self.signed @ x
            if self.ridge == 0.0 and (margins > 0.0).all():
                raise ValueError(self._separable())
            return -self.signed.T @ (weights * _sigmoid(-margins)) + total_ridge * x

        def bend(x: Vector) -> Matrix:
            chance = _sigmoid(self.signed @ x)
            return (self.signed.T * (weights * chance * (1.0 - chance))) @ self.signed + total_ridge * np.eye(self.dim)

        x, converged = newton(slope, bend, self.signed, np.zeros(self.dim))
        # Where the loss is flat in some direction, that may be a minimiser at infinity.
        hessian = bend(x)
        widths = _widths(hessian)
        flat = self.ridge == 0.0 and np.linalg.cond(hessian / np.outer(widths, widths)) > 1e10
        if self.ridge == 0.0 and (flat or not converged) and _can_be_separated(self.signed):
            raise ValueError(self._separable())
        if not converged:
            raise ValueError(
                "Newton's method did not find the minimiser of the logistic loss: bring the features to similar units, "
                "or add a ridge, for instance ridge=1e-3."
            )
        if flat:  # of all minimisers, the one of least norm
            x = np.asarray(np.linalg.lstsq(self.signed, self.signed @ x, rcond=None)[0], np.float64)
        x.setflags(write=False)
        return x

    @cached_property
    def L(self) -> float:  # noqa: N802
        """The smallest known L such that every ∇f_i is L-Lipschitz: ‖O_i‖² / (4 b_i) at its largest, plus the ridge."""
        rows, sizes = self.rows, np.empty(self.agents)
        for count in np.unique(rows.counts):  # agents with the same number of rows go together
            group = np.flatnonzero(rows.counts == count)
            block = rows.features[rows.starts[group, None] + np.arange(count)]
            products = (
                np.einsum("nbp,nbq->npq", block, block) if count > self.dim else np.einsum("nbp,ncp->nbc", block, block)
            )
            sizes[group] = np.linalg.eigvalsh(products)[:, -1]
        return float((self.scales * sizes).max() / 4.0 + self.ridge)

    @cached_property
    def mu(self) -> float:
        """The strong convexity of the mean function: the ridge, since the loss flattens out far away."""
        return float(self.ridge)

    def kernel(self) -> Part:
        """What the engines run."""
        functions = (
            ("minimise", minimise),
            ("gradient", gradient),
            ("curvature", curvature),
            ("margin_change", margin_change),
            ("row_slope", row_slope),
            ("record_weight", record_weight),
            ("fetch", fetch),
        )
        return Part(functions, self._numbers)

    def kernel_at(self, place: int, agents: int) -> Part:
        """What a ring's agent runs that has this problem of one agent: it answers to the number `place`."""
        numbers = self._numbers
        return replace(
            self.kernel(),
            numbers=numbers._replace(
                row_starts=np.where(np.arange(agents + 1) > place, numbers.row_starts[1], 0),
                row_scale=np.full(agents, numbers.row_scale[0]),
            ),
        )

    def _margins(self, points: Matrix) -> Vector:
        return np.einsum("rp,rp->r", self.signed, points[self.rows.owners])

    def _separable(self) -> str:
        return (
            f"The labels of the agents 0 to {self.agents - 1} together can be separated by a plane, so that the logistic loss "
            "has no finite minimiser: add a ridge, for instance ridge=1e-3."
        )


def newton(
    slope: Callable[[Vector], Vector], bend: Callable[[Vector], Matrix], rows: Matrix, start: Vector
) -> tuple[Vector, bool]:
    """Solve slope(x) = 0 for a logistic loss over `rows`, in the way of `minimise`; also whether it got there."""
    x = np.array(start, np.float64)
    g, before = slope(x), 1.0
    for _ in range(1000):
        hessian = bend(x)
        widths = _widths(hessian)  # in units that make the diagonal 1, a small curvature is not taken for none
        step = np.linalg.lstsq(hessian / np.outer(widths, widths), g / widths, rcond=None)[0] / widths
        change = np.abs(rows @ step).max()
        shorter, longer, length = 0.0, 0.0, 1.0
        for _trial in range(60):
            trial = x - length * step
            trial_slope = slope(trial)
            ahead, decrease = step @ trial_slope, step @ g
            if ahead < -0.5 * decrease:
                longer = length
            elif ahead > 0.5 * decrease and longer > 0.0:
                shorter = length
            else:
                break
            length = 0.5 * (shorter + longer)
        x, g = trial, trial_slope
        if np.linalg.norm(step) <= np.linalg.norm(x) and (change <= 1e-8 or 0.5 * before < change <= 1e-3):
            return x, True
        before = change
    return x, False


def _widths(hessian: Matrix) -> Vector:
    widths = np.sqrt(np.diag(hessian))
    return np.where(widths > 0.0, widths, 1.0)


def _sigmoid(u: Vector) -> Vector:
    return np.exp(-np.logaddexp(0.0, -u))


def _can_be_separated(signed: Matrix) -> bool:
    """Whether some plane has every row on its right side or on it, and at least one truly beside it."""
    from scipy.optimize import linprog  # late: it takes half a second and is hardly ever needed

    # Neither the units of a feature nor the length of a row make a difference, and zeros say nothing.
    rows = signed[:, signed.any(axis=0)]
    rows = rows / np.abs(rows).max(axis=0, initial=0.0)
    rows = rows[rows.any(axis=1)]
    if not rows.size:
        return False
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    answer = linprog(
        -rows.sum(axis=0),
        A_ub=-rows,
        b_ub=np.zeros(len(rows)),
        bounds=[(-1.0, 1.0)] * rows.shape[1],
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return answer.status == 0 and bool((rows @ answer.x).max() > 1e-6)
