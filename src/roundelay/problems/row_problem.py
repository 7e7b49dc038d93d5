"""Problems of rows: every agent has records, and a loss says how far a record is from what x predicts for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from roundelay.kernels import Matrix, Numbers, Part, Vector
from roundelay.problems import sparse_kernel
from roundelay.problems.carriers import RowsAt, ends_of
from roundelay.problems.problem import ProblemBase, check_agent, check_matrix, check_penalty
from roundelay.problems.row_kernel import FUNCTIONS, PER_AGENT, RowNumbers, curvature_of_row, slope_of_row
from roundelay.problems.rows import (
    AT_ONCE,
    Rows,
    SparseRows,
    Weights,
    check_labels,
    check_ridge,
    check_sizes,
    read_rows,
    read_weights,
)
from roundelay.problems.solving import MOST_DENSE, MOST_FACTORED, newton, optimum_by_points
from roundelay.registry import registered

# A reciprocal condition above this makes no difference that anybody sees.
INDEPENDENT = 1e-4


class Loss(NamedTuple):
    """ℓ, ℓ' and ℓ'' as functions of the loss's own numbers, a prediction u and a target t.

    They take numbers and arrays alike, so that the engines, the optimum and the tests all use this one text. `all_three` of many rows
    at once is for a loss that has them in less time together.
    """

    value: Callable[[Any, Any, Any], Any]
    slope: Callable[[Any, Any, Any], Any]
    curvature: Callable[[Any, Any, Any], Any]
    all_three: Callable[[Any, Vector, Vector], tuple[Vector, Vector, Vector]] | None = None

    def of_rows(self, own: Any, predictions: Vector, targets: Vector) -> tuple[Vector, Vector, Vector]:
        """ℓ, ℓ' and ℓ'' of many rows."""
        if self.all_three is not None:
            return self.all_three(own, predictions, targets)
        return (
            self.value(own, predictions, targets),
            self.slope(own, predictions, targets),
            self.curvature(own, predictions, targets),
        )


class RowProblem(ProblemBase):
    """f_i(x) = scale_i Σ_j ℓ(o_j'x, t_j) + ridge/2 ‖x‖² over agent i's rows o_j and targets t_j; ℓ is convex in o_j'x.

    A problem that takes this base is a frozen dataclass (eq=False, repr=False) with the fields `features`, `targets`,
    `ridge` and `weights`, has its `loss`, and where the loss has parameters their NamedTuple as `own`. scale_i is
    weight_i/b_i unless it says otherwise, so that the data term is the mean over the agent's b_i rows.

    Entered by @register(RowProblem, "word"), it can be asked for by its word on the command line and in ring files.

    `most_curvature` is the largest ℓ'' that there is, and `width` the change of a prediction from which on ℓ is no longer
    the parabola that it was; `jumps` says that ℓ'' does, so that no ring asks for it. The rest is for rings, whose sites bring rows: `model` is what is fitted, in words;
    `needs_labels` says that a target is −1 or 1; `not_on_rings` why no ring fits it, where none does; with `centres` the intercept comes by centring features and targets,
    which is right for squares alone, and without by a column of ones. A problem whose rows stand for others has none of anybody, and says
    so by `has_records`.
    """

    features: Sequence[ArrayLike] | ArrayLike
    targets: Sequence[ArrayLike] | ArrayLike
    ridge: float
    weights: Weights

    loss: ClassVar[Loss]
    most_curvature: ClassVar[float] = 1.0
    jumps: ClassVar[bool] = False
    model: ClassVar[str] = "a linear model"
    needs_labels: ClassVar[bool] = False
    not_on_rings: ClassVar[str] = ""
    centres: ClassVar[bool] = False
    has_records: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        _ = self.scales  # reads and checks the data now, so that bad input is refused here
        if self.needs_labels:
            check_labels(self.rows)

    @classmethod
    def of_site(cls, features: Matrix, targets: Vector, row_weight: float, ridge: float) -> Self:
        """The function of one agent of a ring: row_weight·Σ_j ℓ + ridge/2 ‖x‖²."""
        # A weight multiplies the mean over the site's own rows.
        return cast(Any, cls)([features], [targets], ridge=ridge, weights=[row_weight * len(targets)])

    @classmethod
    def drawn(cls, agents: int, samples: int, dim: int, seed: int) -> Self:
        """Synthetic data to try a method on: features and noise from N(0, 1), targets by one x ~ N(0, I)."""
        check_sizes(agents, samples, dim, seed)
        generator = np.random.default_rng([seed, 3])
        truth, features = generator.standard_normal(dim), generator.standard_normal((agents, samples, dim))
        targets = features @ truth + generator.standard_normal((agents, samples))
        return cast(Any, cls)(features, np.sign(targets) if cls.needs_labels else targets)

    @cached_property
    def rows(self) -> Rows:
        """The data, checked, end to end."""
        return read_rows(self.features, self.targets)

    @property
    def data_in_words(self) -> str:
        """Where the rows come from and how they were divided, as `roundelay.split` says it; empty where nobody has said."""
        return getattr(self.features, "words", "")

    @cached_property
    def scales(self) -> Vector:
        """What one row of each agent counts: weight_i / b_i."""
        return read_weights(self.weights, self.rows.counts, rows_are_summed=False) / self.rows.counts

    @property
    def record_weights(self) -> Vector:
        """What one record of each agent counts, where its loss is ℓ."""
        return self.scales

    @property
    def own(self) -> Any:
        """The parameters of the loss: none."""
        return Numbers()

    @property
    def width(self) -> float:
        """The change of a prediction from which on the loss is another."""
        return 1.0

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return self.rows.agents

    @property
    def dim(self) -> int:
        """p, the number of unknowns."""
        return self.rows.dim

    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""
        block, targets, scale = self._of(agent)
        return float(scale * self.loss.value(self.own, block @ x, targets).sum() + 0.5 * self.ridge * x @ x)

    def gradient(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x)."""
        block, targets, scale = self._of(agent)
        return scale * (block.T @ self.loss.slope(self.own, block @ x, targets)) + self.ridge * x

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """∇²f_i(x)."""
        block, targets, scale = self._of(agent)
        bends = self.loss.curvature(self.own, block @ x, targets)
        if self.rows.is_sparse:
            check_matrix(self.dim)
            return (block.T.multiply(scale * bends) @ block).toarray() + self.ridge * np.eye(self.dim)
        return scale * (block.T * bends) @ block + self.ridge * np.eye(self.dim)

    def hessian_times(self, agent: int, x: Vector, direction: Vector) -> Vector:
        """∇²f_i(x)·direction, from the rows."""
        block, targets, scale = self._of(agent)
        bends = self.loss.curvature(self.own, block @ x, targets)
        return scale * (block.T @ (bends * (block @ direction))) + self.ridge * direction

    def rows_at(self, agent: int, x: Vector) -> RowsAt:
        """What each row of an agent adds at x, but for the common factor."""
        block, targets, _ = self._of(agent)
        predictions = block @ x

        def slopes(at: Matrix) -> Matrix:
            found: Matrix = self.loss.slope(self.own, at[:, 0], targets)[:, None]
            return found

        return RowsAt(
            predictions[:, None], slopes(predictions[:, None]), self.loss.curvature(self.own, predictions, targets)[:, None],
            ends_of(slopes, (len(targets), 1)), np.ones(len(targets)), float(self.loss.value(self.own, predictions, targets).sum()),
        )  # fmt: skip

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖², by a safeguarded Newton method."""
        block, _, _ = self._of(agent)
        check_penalty(penalty)
        centre = np.asarray(v, np.float64)
        if isinstance(self.rows, SparseRows):
            return self._prox_in_places(self.rows, agent, centre, penalty)
        return newton(
            lambda x: self.gradient(agent, x) + penalty * (x - centre),
            lambda x: self.hessian(agent, x) + penalty * np.eye(self.dim),
            block,
            centre,
            self.width,
        )[0]

    def _prox_in_places(self, rows: SparseRows, agent: int, v: Vector, penalty: float) -> Vector:
        """The same where rows are sparse: in the agent's own places, outside of which f_i is its ridge alone."""
        _, targets, scale = self._of(agent)
        places, shift = rows.places_of(agent), penalty + self.ridge
        x = penalty * v / shift
        if not len(places):
            return x
        block, few = rows.features[rows.of(agent)][:, places], len(places) <= MOST_DENSE
        block = block.toarray() if few else block

        def slope(u: Vector) -> Vector:
            return scale * (block.T @ self.loss.slope(self.own, block @ u, targets)) + shift * u - penalty * v[places]

        def bend(u: Vector) -> Any:
            weights = scale * self.loss.curvature(self.own, block @ u, targets)
            return (
                (block.T * weights) @ block + shift * np.eye(len(u))
                if few
                else curvature_operator(block, weights, shift)
            )

        u = v[places]
        for _ in range(3 if self.is_quadratic else 1):  # of squares the first solves, the others mend what it leaves
            u = newton(slope, bend, block, u, self.width)[0]
        x[places] = u
        return x

    def values(self, points: Matrix) -> Vector:
        """f_i(x_i) of all agents, each at its own point."""
        losses = self.loss.value(self.own, self.rows.predictions(points), self.rows.targets)
        return self.scales * self.rows.sums(losses) + 0.5 * self.ridge * (points**2).sum(axis=1)

    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(x_i) of all agents, each at its own point."""
        rows = self.rows
        return (
            rows.pulls(self._row_scales * self.loss.slope(self.own, rows.predictions(points), rows.targets))
            + self.ridge * points
        )

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i(x) − Σ f_i(x*) at each of several points."""
        rows, gaps = self.rows, np.empty(len(points))
        least = self.loss.value(self.own, rows.features @ self.optimum, rows.targets)
        for k, x in enumerate(points):
            # Row by row, so that close to x* the difference of the sums does not cancel.
            loss = self._row_scales @ (self.loss.value(self.own, rows.features @ x, rows.targets) - least)
            gaps[k] = loss + 0.5 * self.agents * self.ridge * ((x - self.optimum) @ (x + self.optimum))
        return gaps

    def total_gradient(self, x: Vector) -> Vector:
        """Σ ∇f_i(x)."""
        total = self.agents * self.ridge * x
        for features, targets, owners in self.rows.batches():
            total = features.T @ (self.scales[owners] * self.loss.slope(self.own, features @ x, targets)) + total
        return total

    def total_hessian(self, x: Vector) -> Matrix:
        """Σ ∇²f_i(x)."""
        check_matrix(self.dim)
        if self.rows.is_sparse:
            bends = self._row_scales * self.loss.curvature(self.own, self.rows.features @ x, self.rows.targets)
            return self.rows.curvature(bends) + self.agents * self.ridge * np.eye(self.dim)
        total = self.agents * self.ridge * np.eye(self.dim)
        for features, targets, owners in self.rows.batches():
            bends = self.scales[owners] * self.loss.curvature(self.own, features @ x, targets)
            total = (features.T * bends) @ features + total
        return total

    @cached_property
    def optimum(self) -> Vector:
        """x*, a minimiser of Σ f_i; where there are many unknowns, looked for in the span of the rows, which may be much smaller."""
        if isinstance(self.rows, SparseRows):
            x = self._sparse_minimiser(self.rows)
        elif len(self.rows.targets) < self.dim and self.dim > MOST_DENSE:
            x = self._in_the_span_of_rows()
        else:
            x = self.minimiser()
        x.setflags(write=False)
        return x

    def _sparse_minimiser(self, rows: SparseRows) -> Vector:
        """In the columns that are not all zeros, as with full rows, where these would not be many numbers; elsewhere x is 0."""
        if len(rows.targets) * len(rows.columns) > MOST_FACTORED**2:
            return self.minimiser()
        x = np.zeros(self.dim)
        if len(rows.columns):
            x[rows.columns] = replace(cast(Any, self), features=rows.dense(rows.columns)).optimum
        return x

    def minimiser(self) -> Vector:
        """A minimiser of Σ f_i, found among all unknowns."""
        curvature = self.agents * self.L
        return optimum_by_points(self.total_gradient, self.curvature_at, self.rows.features, self.width, curvature)

    def _in_the_span_of_rows(self) -> Vector:
        """The minimiser x = Qw, where Q has orthonormal columns that span all rows, QR = O': as many unknowns w as there are rows.

        Rows that are far from dependent need no Q, which would be as large as they are: x = O'v with Rv = w.
        """
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dtrcon

        rows = self.rows.features
        triangle, step = np.empty((0, len(rows))), max(1, AT_ONCE // len(rows))
        for first in range(0, self.dim, step):
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, rows[:, first : first + step].T]), mode="r"))
        independent = dtrcon(triangle)[0] > INDEPENDENT
        basis: Matrix = np.empty((0, 0))
        if not independent:
            basis, triangle = np.linalg.qr(rows.T)
        blocks = np.split(triangle.T, self.rows.starts[1:-1])
        inner = cast(RowProblem, replace(cast(Any, self), features=blocks)).minimiser()
        return np.asarray(rows.T @ solve_triangular(triangle, inner) if independent else basis @ inner)

    def curvature_at(self, x: Vector) -> Any:
        """Σ ∇²f_i(x): a matrix, or where that would be too large what it makes of a vector."""
        if self.dim <= MOST_FACTORED:
            return self.total_hessian(x)
        bends = self._row_scales * self.loss.curvature(self.own, self.rows.features @ x, self.rows.targets)
        return curvature_operator(self.rows.features, bends, self.agents * self.ridge)

    @cached_property
    def L(self) -> float:  # noqa: N802
        """The smallest known L such that every ∇f_i is L-Lipschitz: the largest ℓ'' scale_i ‖O_i‖² plus the ridge."""
        return float((self.scales * self.rows.largest_curvatures()).max() * self.most_curvature + self.ridge)

    @cached_property
    def mu(self) -> float:
        """The strong convexity of the mean function: the ridge, since a loss may flatten out far away."""
        return float(self.ridge)

    def kernel(self) -> Part:
        """What the engines run."""
        if isinstance(self.rows, SparseRows):
            return self.sparse_part(self.rows)
        of_row = (("row_slope", slope_of_row), ("row_curvature", curvature_of_row))
        of_loss = (("loss_slope", self.loss.slope), ("loss_curvature", self.loss.curvature))
        return Part((*FUNCTIONS, *of_row, *of_loss), self.row_numbers(self.rows.features), per_agent=PER_AGENT)

    def row_numbers(self, rows: Matrix) -> RowNumbers:
        """The numbers of `row_kernel`, with these rows."""
        starts, targets = self.rows.starts, self.rows.targets
        return RowNumbers(rows, targets, starts, self.scales, float(self.ridge), float(self.width), self.own)

    def sparse_part(self, rows: SparseRows) -> Part:
        """What the engines run where the rows are sparse."""
        places = rows.places
        numbers = sparse_kernel.SparseNumbers(
            rows.features.data, places.columns, rows.features.indptr.astype(np.int64), places.places, places.starts, rows.targets,
            rows.starts, self.scales, self.record_weights, float(self.ridge), float(self.width), self.own,
        )  # fmt: skip
        of_loss = (("loss_slope", self.loss.slope), ("loss_curvature", self.loss.curvature))
        return Part((*sparse_kernel.FUNCTIONS, *of_loss), numbers, per_agent=sparse_kernel.PER_AGENT)

    def __repr__(self) -> str:
        """Where its rows come from, where that is known, and its size: the data are private."""
        rows = self.rows
        where = self.data_in_words or f"{rows.agents} agents, {len(rows.targets)} rows"
        return f"{type(self).__name__}({where}, p = {rows.dim}{', sparse' * rows.is_sparse})"

    @cached_property
    def _row_scales(self) -> Vector:
        return self.scales[self.rows.owners]

    def _of(self, agent: int) -> tuple[Any, Vector, float]:
        """The features, the targets and the scale of an agent."""
        check_agent(agent, self.agents)
        own = self.rows.of(agent)
        return self.rows.features[own], self.rows.targets[own], self.scales[agent]


def curvature_operator(rows: Any, weights: Vector, shift: float) -> Any:
    """What Σ_j weights_j·o_j o_j' + shift·I makes of a vector, where nobody forms it."""
    from scipy.sparse.linalg import LinearOperator

    def times(direction: Vector) -> Vector:
        return rows.T @ (weights * (rows @ direction.ravel())) + shift * direction.ravel()

    dim = rows.shape[1]
    return LinearOperator((dim, dim), times, dtype=np.float64)


def problem_named(word: str) -> type[RowProblem]:
    """The class that is entered under a word; least-squares is least_squares too."""
    known: Mapping[str, type[RowProblem]] = registered(RowProblem)
    kind = known.get(word.replace("-", "_"))
    if kind is None:
        raise ValueError(f"There is no problem {word!r}: use {' or '.join(known)}.")
    return kind
