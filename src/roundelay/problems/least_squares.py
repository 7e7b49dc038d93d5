"""Least squares: the paper's "ridge regression"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.kernels import DIM, Cube, Matrix, Numbers, Part, Vector, dot, each, prefetch, vector
from roundelay.problems.problem import check_agent, check_penalty
from roundelay.problems.row_problem import Loss, RowProblem
from roundelay.problems.rows import AT_ONCE, SparseRows, Weights, check_sizes, read_weights
from roundelay.problems.solving import MOST_FACTORED, solver_of_triangle
from roundelay.registry import register
from roundelay.shown.watched import Bar

# A hint that `LeastSquares.kernel` gives: the rank of every H_i where they all have the same and none is taken by its rows, or 0.
RANK: int = 0
# An agent with this many times as many unknowns as rows is taken by its rows: V_i would be as large as they are, and saves nothing.
FEW_ROWS = 8
# How many columns of a triangle are made at once: all work on a panel is of vectors, all beyond it of matrices.
PANEL = 48


class Quadratics(NamedTuple):
    """f_i(x) = ½ x'(V_i' Λ_i V_i + ridge·I)x − a_i'V_i x + constant, the rows of V_i orthonormal; and the data.

    An agent with few rows has no V_i: from `rotation_starts` on stands Q_i, the eigenvectors of scale_i·O_i O_i' one after another, and beside its
    rows their eigenvalues (`lengths`) and Q_i't_i (`turned`).
    """

    vectors: Matrix
    curvatures: Vector
    along: Vector
    starts: NDArray[np.int64]
    ridge: float
    rows: Matrix
    targets: Vector
    row_starts: NDArray[np.int64]
    row_scale: Vector
    record_weights: Vector
    rotations: Vector
    rotation_starts: NDArray[np.int64]
    lengths: Vector
    turned: Vector


def minimise(problem: Quadratics, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin f_i(x) + penalty/2 ‖x‖² − w'x = (H_i + penalty·I)⁻¹(V_i'a_i + w).

    From the thin eigendecomposition of H_i, so that a penalty that changes at every hop costs nothing.
    """
    if not RANK and problem.starts[i] == problem.starts[i + 1]:
        minimise_by_rows(problem, i, w, penalty, out)
        return
    shift = penalty + problem.ridge
    begin = i * RANK if RANK else problem.starts[i]
    end = i * RANK + RANK if RANK else problem.starts[i + 1]
    full = end - begin == DIM
    for d in each(DIM):
        out[d] = 0.0 if full else w[d]
    for j in range(begin, end):
        pull = dot(problem.vectors[j], w)
        curvature = problem.curvatures[j]
        # Full rank: V'(Λ + shift)⁻¹(a + Vw). Otherwise what of w lies outside the span of V is divided by the
        # shift; a is not, or its rounding would be too. The reciprocal does not wait for the token, so the
        # processor has it ready.
        reciprocal = 1.0 / (curvature + shift)
        known = problem.along[j]
        coefficient = (known + pull if full else known * shift - pull * curvature) * reciprocal
        for d in each(DIM):
            out[d] += coefficient * problem.vectors[j, d]
    if not full:
        inverse = 1.0 / shift
        for d in each(DIM):
            out[d] *= inverse


def minimise_by_rows(problem: Quadratics, i: int, w: Vector, penalty: float, out: Vector) -> None:
    """The same from the rows: (w + O_i'Q_i c)/σ with c = scale·(σ·Q_i't_i − Q_i'O_i w)/(λ + σ), σ = penalty + ridge, λ the lengths."""
    shift, scale = penalty + problem.ridge, problem.row_scale[i]
    begin, count, first = (
        problem.row_starts[i],
        problem.row_starts[i + 1] - problem.row_starts[i],
        problem.rotation_starts[i],
    )
    heard, told = vector(DIM), vector(DIM)  # there are fewer rows than unknowns
    for k in range(count):
        heard[k] = dot(problem.rows[begin + k], w)
        told[k] = 0.0
    for j in range(count):
        pull = 0.0
        for k in range(count):
            pull += problem.rotations[first + j * count + k] * heard[k]
        coefficient = scale * (shift * problem.turned[begin + j] - pull) / (problem.lengths[begin + j] + shift)
        for k in range(count):
            told[k] += problem.rotations[first + j * count + k] * coefficient
    for d in each(DIM):
        out[d] = w[d]
    for k in range(count):
        for d in each(DIM):
            out[d] += told[k] * problem.rows[begin + k, d]
    inverse = 1.0 / shift
    for d in each(DIM):
        out[d] *= inverse


def gradient(problem: Quadratics, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(x) = V_i'(Λ_i V_i x − a_i) + ridge·x, or from the rows."""
    for d in each(DIM):
        out[d] = problem.ridge * x[d]
    if not RANK and problem.starts[i] == problem.starts[i + 1]:
        for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
            pulled = row_slope(problem, i, j, x)
            for d in each(DIM):
                out[d] += pulled * problem.rows[j, d]
    begin = i * RANK if RANK else problem.starts[i]
    end = i * RANK + RANK if RANK else problem.starts[i + 1]
    for j in range(begin, end):
        slope = problem.curvatures[j] * dot(problem.vectors[j], x) - problem.along[j]
        for d in each(DIM):
            out[d] += slope * problem.vectors[j, d]


def fetch(problem: Quadratics, i: int) -> None:
    """Ask for what `minimise` and `gradient` will read of agent i."""
    first = i * RANK if RANK else problem.starts[i]
    prefetch(problem.vectors, first)
    prefetch(problem.curvatures, first)
    prefetch(problem.along, first)


def row_slope(problem: Quadratics, i: int, j: int, x: Vector) -> float:
    """The number that row j is multiplied by in ∇f_i(x)."""
    return problem.row_scale[i] * (dot(problem.rows[j], x) - problem.targets[j])


def record_weight(problem: Quadratics, i: int) -> float:
    """What the loss of one record of agent i is multiplied by in f_i."""
    return problem.record_weights[i]


def half_square(own: Numbers, prediction: Vector, target: Vector) -> Vector:
    """ℓ(u, t) = ½(u − t)²."""
    return 0.5 * (prediction - target) ** 2


def residual(own: Numbers, prediction: Vector, target: Vector) -> Vector:
    """ℓ'(u, t) = u − t."""
    return prediction - target


def one(own: Numbers, prediction: Vector, target: Vector) -> Vector:
    """ℓ''(u, t) = 1."""
    return 1.0 * (prediction == prediction)


@register(RowProblem, "least_squares")
@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares(RowProblem):
    """f_i(x) = (scale) ‖O_i x − t_i‖² + ridge/2 ‖x‖², with one block of rows O_i, t_i an agent.

    `features` is one array (rows, features) for each agent and `targets` one array (rows,), of any row
    counts. `scale` is "half_sum" for ½‖O_i x − t_i‖², whose sum over the agents is the pooled fit, or
    "mean" for (1/b_i)‖O_i x − t_i‖², as the paper prints it. `ridge` ≥ 0 counts once for every agent.
    `weights` multiplies the agents' data terms: "equal" (the paper), "rows" (in proportion to b_i, which
    makes the mean a pooled fit too), or one number an agent.
    """

    features: Sequence[ArrayLike] | ArrayLike
    targets: Sequence[ArrayLike] | ArrayLike
    scale: Literal["half_sum", "mean"] = "half_sum"
    ridge: float = 0.0
    weights: Weights = "equal"

    loss: ClassVar[Loss] = Loss(half_square, residual, one)
    is_quadratic: ClassVar[bool] = True
    centres: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.scale not in ("half_sum", "mean"):
            raise ValueError(
                f'The scale is {self.scale!r}: use "half_sum" for ½‖Ox − t‖² or "mean" for (1/b)‖Ox − t‖².'
            )
        super().__post_init__()

    @classmethod
    def of_site(cls, features: Matrix, targets: Vector, row_weight: float, ridge: float) -> Self:
        """The function of one agent of a ring: row_weight·½‖Ox − t‖² + ridge/2 ‖x‖²."""
        return cls([features], [targets], ridge=ridge, weights=[row_weight])

    @classmethod
    def drawn(cls, agents: int, samples: int, dim: int, seed: int) -> Self:
        """The paper's synthetic data: all entries of features and targets from U(0, 1)."""
        return cls(*_paper_rows(agents, samples, dim, seed))

    @cached_property
    def scales(self) -> Vector:
        """a_i such that f_i = a_i/2 ‖O_i x − t_i‖² + ridge/2 ‖x‖²."""
        weights = read_weights(self.weights, self.rows.counts, rows_are_summed=self.scale == "half_sum")
        return weights if self.scale == "half_sum" else 2.0 * weights / self.rows.counts

    @property
    def width(self) -> float:
        """Infinite: a square is the same parabola everywhere."""
        return float("inf")

    @cached_property
    def record_weights(self) -> Vector:
        """What one record of each agent counts: its loss is ½(x'o − t)² in the half-sum and (x'o − t)² in the mean."""
        return self.scales if self.scale == "half_sum" else 0.5 * self.scales

    @cached_property
    def quadratics(self) -> Quadratics:
        """Every f_i by the thin eigendecomposition of its Hessian, or of its rows' products, which serves all penalties."""
        rows, dim = self.rows, self.dim
        few = rows.counts * FEW_ROWS <= dim
        starts = _places(np.where(few, 0, np.minimum(rows.counts, dim)))
        vectors, curvatures, along = np.empty((starts[-1], dim)), np.empty(starts[-1]), np.empty(starts[-1])
        rotation_starts = _places(np.where(few, rows.counts**2, 0))
        by_rows = int(few.any()) * len(rows.targets)
        rotations, lengths, turned = np.empty(rotation_starts[-1]), np.zeros(by_rows), np.zeros(by_rows)
        for count, group in self._alike():
            places = rows.starts[group, None] + np.arange(count)
            block, answers, scale = rows.features[places], rows.targets[places], self.scales[group, None]
            if few[group[0]]:
                products = scale[:, :, None] * np.einsum("nbp,ncp->nbc", block, block)
                eigenvalues, basis = np.linalg.eigh(products)
                lengths[places] = np.maximum(eigenvalues, 0.0)
                turned[places] = np.einsum("nbk,nb->nk", basis, answers)
                rotations[rotation_starts[group, None] + np.arange(count**2)] = basis.transpose(0, 2, 1).reshape(
                    len(group), -1
                )
                continue
            linear = np.einsum("nbp,nb->np", block, answers)
            if count >= dim:
                eigenvalues, basis = np.linalg.eigh(np.einsum("nbp,nbq->npq", block, block))
                squares, directions = np.maximum(eigenvalues, 0.0), basis.transpose(0, 2, 1)
            else:
                _, singular, directions = np.linalg.svd(block, full_matrices=False)
                squares = singular**2
            places = starts[group, None] + np.arange(min(count, dim))
            vectors[places] = directions
            curvatures[places] = scale * squares
            along[places] = scale * np.einsum("nkp,np->nk", directions, linear)
        return Quadratics(
            vectors, curvatures, along, starts, float(self.ridge),
            rows.features, rows.targets, rows.starts, self.scales, self.record_weights,
            rotations, rotation_starts, lengths, turned,
        )  # fmt: skip

    def _alike(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Agents with the same number of rows, which go together, some MB at once."""
        for count in np.unique(self.rows.counts):
            group = np.flatnonzero(self.rows.counts == count)
            together = max(1, AT_ONCE // (int(count) * self.dim))
            for first in range(0, len(group), together):
                yield int(count), group[first : first + together]

    def hessian(self, agent: int, x: Vector | None = None) -> Matrix:
        """∇²f_i, the same at every x."""
        check_agent(agent, self.agents)
        if self.rows.is_sparse:
            return super().hessian(agent, np.zeros(self.dim))
        block = self.rows.features[self.rows.of(agent)]
        return self.scales[agent] * (block.T @ block) + self.ridge * np.eye(self.dim)

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖²."""
        if self.rows.is_sparse:
            return super().prox(agent, v, penalty)
        check_agent(agent, self.agents)
        check_penalty(penalty)
        q, shift = self.quadratics, penalty + self.ridge
        w = penalty * np.asarray(v, np.float64)
        if q.starts[agent] == q.starts[agent + 1]:
            block, rows = self.rows.features[self.rows.of(agent)], self.rows.of(agent)
            rotation = q.rotations[q.rotation_starts[agent] : q.rotation_starts[agent + 1]].reshape(len(block), -1)
            coefficients = (shift * q.turned[rows] - rotation @ (block @ w)) / (q.lengths[rows] + shift)
            return (w + block.T @ (rotation.T @ (self.scales[agent] * coefficients))) / shift
        own = slice(q.starts[agent], q.starts[agent + 1])
        basis, curvatures, along = q.vectors[own], q.curvatures[own], q.along[own]
        if len(curvatures) == self.dim:
            return basis.T @ ((along + basis @ w) / (curvatures + shift))
        return (w + basis.T @ ((along * shift - basis @ w * curvatures) / (curvatures + shift))) / shift

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i(x) − Σ f_i(x*) = ½(x − x*)'H(x − x*): no cancellation however close x is."""
        offsets = points - self.optimum
        if self.rows.is_sparse or self.dim > min(
            len(self.rows.targets), MOST_FACTORED
        ):  # H would be larger than the rows
            ridges = self.agents * self.ridge * (offsets**2).sum(axis=1)
            return 0.5 * ((self.rows.features @ offsets.T) ** 2).T @ self.scales[self.rows.owners] + 0.5 * ridges
        return 0.5 * np.einsum("kp,pq,kq->k", offsets, self._total_hessian, offsets)

    @cached_property
    def _total_hessian(self) -> Matrix:
        """∇² Σ f_i."""
        rows, weights = self.rows, self.scales[self.rows.owners]
        data = rows.curvature(weights) if rows.is_sparse else rows.features.T @ rows.multiplied(weights)
        return data + self.agents * self.ridge * np.eye(self.dim)

    def minimiser(self) -> Vector:
        """x*, the minimiser of Σ f_i (that of least norm, where there are several)."""
        if self.rows.is_sparse or self.dim > MOST_FACTORED:
            return self._minimiser_by_iterations()
        # R'R = H by a QR decomposition of the rows, which halves the digits that H itself would lose. Each batch is worked into the triangle of
        # those before it, which costs no more than all at once would.
        from scipy.linalg.lapack import dtpqrt

        triangle = np.sqrt(self.agents * self.ridge) * np.eye(self.dim)
        for features, _, owners in self.rows.batches():
            weighted = features * np.sqrt(self.scales[owners])[:, None]
            triangle = dtpqrt(0, min(PANEL, self.dim), triangle, weighted)[0]
        solve = solver_of_triangle(triangle)
        x = np.zeros(self.dim)
        for _ in range(3):  # the first pass solves, the others refine by the residual of the data itself
            x = x + solve(-self.total_gradient(x))
        return x

    def _minimiser_by_iterations(self) -> Vector:
        """The same by LSMR, which asks for nothing but products with the rows; twice more for what the first pass leaves."""
        from scipy.sparse.linalg import LinearOperator, lsmr

        root, damp = np.sqrt(self.scales[self.rows.owners]), np.sqrt(self.agents * self.ridge)
        rows, count, u = self.rows.multiplied(root), len(root), np.zeros(self.dim)
        # In units that make the diagonal of H about 1, where they don't change which minimiser it is.
        widths = (
            1.0 / np.sqrt(self.scales.max() * self.rows.squares(axis=0) + damp**2) if damp > 0.0 else np.ones(self.dim)
        )

        bar, most, products = Bar("Looking for x*, iterations"), 20 * self.dim, itertools.count()

        def forth(u: Vector) -> Vector:
            bar(next(products) % most, most)  # of each pass
            x = widths * u.ravel()
            return np.concatenate([rows @ x, damp * x])

        def back(residuals: Vector) -> Vector:
            return widths * (rows.T @ residuals.ravel()[:count] + damp * residuals.ravel()[count:])

        operator = LinearOperator((count + self.dim, self.dim), forth, back, dtype=np.float64)
        right = np.append(root * self.rows.targets, np.zeros(self.dim))
        try:
            for _ in range(3):
                u = u + lsmr(operator, right - forth(u), 0.0, 1e-15, 1e-15, 0.0, most)[0]
        finally:
            bar.close()
        return widths * u

    @cached_property
    def L(self) -> float:  # noqa: N802
        """The smallest L such that every ∇f_i is L-Lipschitz: the largest eigenvalue of any H_i."""
        if self.rows.is_sparse:
            return super().L
        q = self.quadratics
        return float(max(q.curvatures.max(initial=0.0), q.lengths.max(initial=0.0)) + self.ridge)

    @cached_property
    def mu(self) -> float:
        """The strong convexity of the mean function (1/N) Σ f_i; no number where nobody knows it, of many unknowns in sparse rows."""
        rows = self.rows
        if len(rows.targets) < self.dim or (isinstance(rows, SparseRows) and len(rows.columns) < self.dim):
            return float(self.ridge)
        if rows.is_sparse and self.dim > MOST_FACTORED:
            return float("nan")
        return float(max(np.linalg.eigvalsh(self._total_hessian)[0] / self.agents, self.ridge))

    def kernel(self) -> Part:
        """What the engines run."""
        if isinstance(self.rows, SparseRows):
            return self.sparse_part(self.rows)
        ranks = np.diff(self.quadratics.starts)
        # One agent alone may answer to any number, so that its own don't stand at its number times the rank.
        uniform = int(ranks[0]) if self.agents > 1 and (ranks == ranks[0]).all() else 0
        return Part(
            (
                ("minimise", minimise),
                ("minimise_by_rows", minimise_by_rows),
                ("gradient", gradient),
                ("row_slope", row_slope),
                ("record_weight", record_weight),
                ("fetch", fetch),
            ),
            self.quadratics,
            hints=(("RANK", uniform),),
            per_agent=("starts", "row_starts", "row_scale", "record_weights", "rotation_starts"),
        )


def paper_least_squares(
    agents: int = 100,
    samples: int = 30,
    dim: int = 2,
    seed: int = 0,
    scale: Literal["half_sum", "mean"] = "half_sum",
) -> LeastSquares:
    """Least squares with all entries of features and targets drawn from U(0, 1)."""
    return LeastSquares(*_paper_rows(agents, samples, dim, seed), scale)


def _places(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each agent's own begin, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _paper_rows(agents: int, samples: int, dim: int, seed: int) -> tuple[Cube, Matrix]:
    check_sizes(agents, samples, dim, seed)
    generator = np.random.default_rng([seed, 1])
    rows = generator.random((agents, samples, dim)), generator.random((agents, samples))
    for array in rows:
        array.setflags(write=False)  # so that the problem does not copy it
    return rows
