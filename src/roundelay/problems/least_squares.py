"""Least squares: the paper's "ridge regression"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.kernels import DIM, Cube, Matrix, Numbers, Part, Vector, dot, each, prefetch
from roundelay.problems.problem import check_agent, check_penalty, total_gradient
from roundelay.problems.row_problem import Loss, RowProblem
from roundelay.problems.rows import Weights, check_sizes, read_weights
from roundelay.problems.solving import MOST_FACTORED, solver_of_triangle
from roundelay.registry import register

# A literal that `LeastSquares.kernel` sets: the rank of every H_i where they all have the same, or 0.
RANK: int = 0


class Quadratics(NamedTuple):
    """f_i(x) = ½ x'(V_i' Λ_i V_i + ridge·I)x − a_i'V_i x + constant, the rows of V_i orthonormal; and the data."""

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


def minimise(problem: Quadratics, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin f_i(x) + penalty/2 ‖x‖² − w'x = (H_i + penalty·I)⁻¹(V_i'a_i + w).

    From the thin eigendecomposition of H_i, so that a penalty that changes at every hop costs nothing.
    """
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


def gradient(problem: Quadratics, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(x) = V_i'(Λ_i V_i x − a_i) + ridge·x."""
    for d in each(DIM):
        out[d] = problem.ridge * x[d]
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
    return np.ones_like(prediction)


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
        weights = read_weights(self.weights, self.rows, rows_are_summed=self.scale == "half_sum")
        return weights if self.scale == "half_sum" else 2.0 * weights / self.rows.counts

    @cached_property
    def record_weights(self) -> Vector:
        """What one record of each agent counts: its loss is ½(x'o − t)² in the half-sum and (x'o − t)² in the mean."""
        return self.scales if self.scale == "half_sum" else 0.5 * self.scales

    @cached_property
    def quadratics(self) -> Quadratics:
        """Every f_i by the thin eigendecomposition of its Hessian, which serves all penalties."""
        rows, dim = self.rows, self.dim
        ranks = np.minimum(rows.counts, dim)
        starts = np.concatenate([[0], np.cumsum(ranks)]).astype(np.int64)
        vectors, curvatures, along = np.empty((starts[-1], dim)), np.empty(starts[-1]), np.empty(starts[-1])
        for count in np.unique(rows.counts):  # agents with the same number of rows go together
            group = np.flatnonzero(rows.counts == count)
            block = rows.features[rows.starts[group, None] + np.arange(count)]
            answers = rows.targets[rows.starts[group, None] + np.arange(count)]
            linear = np.einsum("nbp,nb->np", block, answers)
            if count >= dim:
                eigenvalues, basis = np.linalg.eigh(np.einsum("nbp,nbq->npq", block, block))
                lengths, directions = np.maximum(eigenvalues, 0.0), basis.transpose(0, 2, 1)
            else:
                _, singular, directions = np.linalg.svd(block, full_matrices=False)
                lengths = singular**2
            places = starts[group, None] + np.arange(min(count, dim))
            vectors[places] = directions
            curvatures[places] = self.scales[group, None] * lengths
            along[places] = self.scales[group, None] * np.einsum("nkp,np->nk", directions, linear)
        return Quadratics(
            vectors, curvatures, along, starts, float(self.ridge),
            rows.features, rows.targets, rows.starts, self.scales, self.record_weights,
        )  # fmt: skip

    def hessian(self, agent: int, x: Vector | None = None) -> Matrix:
        """∇²f_i, the same at every x."""
        check_agent(agent, self.agents)
        block = self.rows.features[self.rows.of(agent)]
        return self.scales[agent] * (block.T @ block) + self.ridge * np.eye(self.dim)

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖²."""
        check_agent(agent, self.agents)
        check_penalty(penalty)
        q, shift = self.quadratics, penalty + self.ridge
        own = slice(q.starts[agent], q.starts[agent + 1])
        basis, curvatures, along = q.vectors[own], q.curvatures[own], q.along[own]
        w = penalty * np.asarray(v, np.float64)
        if len(curvatures) == self.dim:
            return basis.T @ ((along + basis @ w) / (curvatures + shift))
        return (w + basis.T @ ((along * shift - basis @ w * curvatures) / (curvatures + shift))) / shift

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i(x) − Σ f_i(x*) = ½(x − x*)'H(x − x*): no cancellation however close x is."""
        offsets = points - self.optimum
        if self.dim > min(len(self.rows.targets), MOST_FACTORED):  # H would be larger than the rows
            ridges = self.agents * self.ridge * (offsets**2).sum(axis=1)
            return 0.5 * ((self.rows.features @ offsets.T) ** 2).T @ self.scales[self.rows.owners] + 0.5 * ridges
        return 0.5 * np.einsum("kp,pq,kq->k", offsets, self._total_hessian, offsets)

    @cached_property
    def _total_hessian(self) -> Matrix:
        """∇² Σ f_i."""
        rows = self.rows
        weighted = rows.features * self.scales[rows.owners][:, None]
        return rows.features.T @ weighted + self.agents * self.ridge * np.eye(self.dim)

    def minimiser(self) -> Vector:
        """x*, the minimiser of Σ f_i (that of least norm, where there are several)."""
        rows, root = self.rows, np.sqrt(self.scales[self.rows.owners])
        if self.dim > MOST_FACTORED:
            return self._minimiser_by_iterations()
        # R'R = H by a QR decomposition of the rows, which halves the digits that H itself would lose.
        triangle = np.asarray(np.linalg.qr(rows.features * root[:, None], mode="r"))
        ridge = np.sqrt(self.agents * self.ridge) * np.eye(self.dim)
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, ridge]), mode="r"))
        solve = solver_of_triangle(triangle)
        x = np.zeros(self.dim)
        for _ in range(3):  # the first pass solves, the others refine by the residual of the data itself
            x = x + solve(-total_gradient(self, x))
        return x

    def _minimiser_by_iterations(self) -> Vector:
        """The same by LSMR, which asks for nothing but products with the rows."""
        from scipy.sparse.linalg import lsmr

        root, damp = np.sqrt(self.scales[self.rows.owners]), np.sqrt(self.agents * self.ridge)
        rows, right = self.rows.features * root[:, None], root * self.rows.targets
        return np.asarray(lsmr(rows, right, damp, 1e-15, 1e-15, 0.0, 20 * self.dim)[0], np.float64)

    @cached_property
    def L(self) -> float:  # noqa: N802
        """The smallest L such that every ∇f_i is L-Lipschitz: the largest eigenvalue of any H_i."""
        return float(self.quadratics.curvatures.max() + self.ridge)

    @cached_property
    def mu(self) -> float:
        """The strong convexity of the mean function (1/N) Σ f_i."""
        if len(self.rows.targets) < self.dim:
            return float(self.ridge)
        return float(max(np.linalg.eigvalsh(self._total_hessian)[0] / self.agents, self.ridge))

    def kernel(self) -> Part:
        """What the engines run."""
        ranks = np.diff(self.quadratics.starts)
        # One agent alone may answer to any number, so that its own don't stand at its number times the rank.
        uniform = int(ranks[0]) if self.agents > 1 and (ranks == ranks[0]).all() else 0
        return Part(
            (
                ("minimise", minimise),
                ("gradient", gradient),
                ("row_slope", row_slope),
                ("record_weight", record_weight),
                ("fetch", fetch),
            ),
            self.quadratics,
            (("RANK", uniform),),
            per_agent=("starts", "row_starts", "row_scale", "record_weights"),
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


def _paper_rows(agents: int, samples: int, dim: int, seed: int) -> tuple[Cube, Matrix]:
    check_sizes(agents, samples, dim, seed)
    generator = np.random.default_rng([seed, 1])
    return generator.random((agents, samples, dim)), generator.random((agents, samples))
