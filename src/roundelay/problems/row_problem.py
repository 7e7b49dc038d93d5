"""Problems of rows: every agent has records, and a loss says how far a record is from what x predicts for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from roundelay.kernels import Matrix, Numbers, Part, Vector
from roundelay.problems.problem import ProblemBase, check_agent, check_penalty
from roundelay.problems.row_kernel import FUNCTIONS, PER_AGENT, RowNumbers, curvature_of_row, slope_of_row
from roundelay.problems.rows import Rows, Weights, check_ridge, check_sizes, read_rows, read_weights
from roundelay.problems.solving import MOST_DENSE, MOST_FACTORED, newton, optimum_by_points
from roundelay.registry import registered


class Loss(NamedTuple):
    """ℓ, ℓ' and ℓ'' as functions of the loss's own numbers, a prediction u and a target t.

    They take numbers and arrays alike, so that the engines, the optimum and the tests all use this one text.
    """

    value: Callable[[Any, Any, Any], Any]
    slope: Callable[[Any, Any, Any], Any]
    curvature: Callable[[Any, Any, Any], Any]


class RowProblem(ProblemBase):
    """f_i(x) = scale_i Σ_j ℓ(o_j'x, t_j) + ridge/2 ‖x‖² over agent i's rows o_j and targets t_j; ℓ is convex in o_j'x.

    A problem that takes this base is a frozen dataclass (eq=False, repr=False) with the fields `features`, `targets`,
    `ridge` and `weights`, has its `loss`, and where the loss has parameters their NamedTuple as `own`. scale_i is
    weight_i/b_i unless it says otherwise, so that the data term is the mean over the agent's b_i rows.

    Entered by @register(RowProblem, "word"), it can be asked for by its word on the command line and in ring files.

    `most_curvature` is the largest ℓ'' that there is, and `width` the change of a prediction from which on ℓ is no longer
    the parabola that it was. The rest is for rings, whose sites bring rows: `model` is what is fitted, in words;
    `needs_labels` says that a target is −1 or 1; with `centres` the intercept comes by centring features and targets,
    which is right for squares alone, and without by a column of ones.
    """

    features: Sequence[ArrayLike] | ArrayLike
    targets: Sequence[ArrayLike] | ArrayLike
    ridge: float
    weights: Weights

    loss: ClassVar[Loss]
    most_curvature: ClassVar[float] = 1.0
    model: ClassVar[str] = "a linear model"
    needs_labels: ClassVar[bool] = False
    centres: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        _ = self.scales  # reads and checks the data now, so that bad input is refused here

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

    @cached_property
    def scales(self) -> Vector:
        """What one row of each agent counts: weight_i / b_i."""
        return read_weights(self.weights, self.rows, rows_are_summed=False) / self.rows.counts

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
        return scale * (block.T * bends) @ block + self.ridge * np.eye(self.dim)

    def hessian_times(self, agent: int, x: Vector, direction: Vector) -> Vector:
        """∇²f_i(x)·direction, from the rows."""
        block, targets, scale = self._of(agent)
        bends = self.loss.curvature(self.own, block @ x, targets)
        return scale * (block.T @ (bends * (block @ direction))) + self.ridge * direction

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖², by a safeguarded Newton method."""
        block, _, _ = self._of(agent)
        check_penalty(penalty)
        centre = np.asarray(v, np.float64)
        return newton(
            lambda x: self.gradient(agent, x) + penalty * (x - centre),
            lambda x: self.hessian(agent, x) + penalty * np.eye(self.dim),
            block,
            centre,
            self.width,
        )[0]

    def values(self, points: Matrix) -> Vector:
        """f_i(x_i) of all agents, each at its own point."""
        losses = self.loss.value(self.own, self._predictions(points), self.rows.targets)
        return self.scales * self.rows.sums(losses) + 0.5 * self.ridge * (points**2).sum(axis=1)

    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(x_i) of all agents, each at its own point."""
        rows = self.rows
        slopes = self._row_scales * self.loss.slope(self.own, self._predictions(points), rows.targets)
        return np.add.reduceat(slopes[:, None] * rows.features, rows.starts[:-1]) + self.ridge * points

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
        slopes = self.loss.slope(self.own, self.rows.features @ x, self.rows.targets)
        return self.rows.features.T @ (self._row_scales * slopes) + self.agents * self.ridge * x

    def total_hessian(self, x: Vector) -> Matrix:
        """Σ ∇²f_i(x)."""
        bends = self._row_scales * self.loss.curvature(self.own, self.rows.features @ x, self.rows.targets)
        return (self.rows.features.T * bends) @ self.rows.features + self.agents * self.ridge * np.eye(self.dim)

    @cached_property
    def optimum(self) -> Vector:
        """x*, a minimiser of Σ f_i; where there are many unknowns, looked for in the span of the rows, which may be much smaller."""
        if len(self.rows.targets) < self.dim and self.dim > MOST_DENSE:
            basis, inner = self.in_the_span_of_rows()
            x = basis @ inner.minimiser()
        else:
            x = self.minimiser()
        x.setflags(write=False)
        return x

    def minimiser(self) -> Vector:
        """A minimiser of Σ f_i, found among all unknowns."""
        curvature = self.agents * self.L
        return optimum_by_points(self.total_gradient, self.curvature_at, self.rows.features, self.width, curvature)

    def in_the_span_of_rows(self) -> tuple[Matrix, Self]:
        """Q with orthonormal columns that span all rows, and the problem of w where x = Qw: as many unknowns as there are rows."""
        basis, triangle = np.linalg.qr(self.rows.features.T)
        blocks = np.split(triangle.T, self.rows.starts[1:-1])
        return np.asarray(basis), cast(Self, replace(cast(Any, self), features=blocks))

    def curvature_at(self, x: Vector) -> Any:
        """Σ ∇²f_i(x): a matrix, or where that would be too large what it makes of a vector."""
        if self.dim <= MOST_FACTORED:
            return self.total_hessian(x)
        from scipy.sparse.linalg import LinearOperator

        bends = self._row_scales * self.loss.curvature(self.own, self.rows.features @ x, self.rows.targets)
        ridge, features = self.agents * self.ridge, self.rows.features

        def times(direction: Vector) -> Vector:
            return features.T @ (bends * (features @ direction.ravel())) + ridge * direction.ravel()

        return LinearOperator((self.dim, self.dim), times, dtype=np.float64)

    @cached_property
    def L(self) -> float:  # noqa: N802
        """The smallest known L such that every ∇f_i is L-Lipschitz: the largest ℓ'' scale_i ‖O_i‖² plus the ridge."""
        rows, sizes = self.rows, np.empty(self.agents)
        for count in np.unique(rows.counts):  # agents with the same number of rows go together
            group = np.flatnonzero(rows.counts == count)
            block = rows.features[rows.starts[group, None] + np.arange(count)]
            products = (
                np.einsum("nbp,nbq->npq", block, block) if count > self.dim else np.einsum("nbp,ncp->nbc", block, block)
            )
            sizes[group] = np.linalg.eigvalsh(products)[:, -1]
        return float((self.scales * sizes).max() * self.most_curvature + self.ridge)

    @cached_property
    def mu(self) -> float:
        """The strong convexity of the mean function: the ridge, since a loss may flatten out far away."""
        return float(self.ridge)

    def kernel(self) -> Part:
        """What the engines run."""
        of_row = (("row_slope", slope_of_row), ("row_curvature", curvature_of_row))
        of_loss = (("loss_slope", self.loss.slope), ("loss_curvature", self.loss.curvature))
        return Part((*FUNCTIONS, *of_row, *of_loss), self.row_numbers(self.rows.features), per_agent=PER_AGENT)

    def row_numbers(self, rows: Matrix) -> RowNumbers:
        """The numbers of `row_kernel`, with these rows."""
        starts, targets = self.rows.starts, self.rows.targets
        return RowNumbers(rows, targets, starts, self.scales, float(self.ridge), float(self.width), self.own)

    def __repr__(self) -> str:
        """Its size: the data are private."""
        rows = self.rows
        return f"{type(self).__name__}({rows.agents} agents, {len(rows.targets)} rows, p = {rows.dim})"

    @cached_property
    def _row_scales(self) -> Vector:
        return self.scales[self.rows.owners]

    def _of(self, agent: int) -> tuple[Matrix, Vector, float]:
        """The features, the targets and the scale of an agent."""
        check_agent(agent, self.agents)
        own = self.rows.of(agent)
        return self.rows.features[own], self.rows.targets[own], self.scales[agent]

    def _predictions(self, points: Matrix) -> Vector:
        return np.einsum("rp,rp->r", self.rows.features, points[self.rows.owners])


def problem_named(word: str) -> type[RowProblem]:
    """The class that is entered under a word; least-squares is least_squares too."""
    known: Mapping[str, type[RowProblem]] = registered(RowProblem)
    kind = known.get(word.replace("-", "_"))
    if kind is None:
        raise ValueError(f"There is no problem {word!r}: use {' or '.join(known)}.")
    return kind
