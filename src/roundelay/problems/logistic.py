"""Logistic regression with labels −1 and 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from roundelay.kernels import Cube, Matrix, Numbers, Part, Vector, dot
from roundelay.problems.problem import LogisticRows
from roundelay.problems.row_kernel import FUNCTIONS, PER_AGENT, RowNumbers
from roundelay.problems.row_problem import Loss, RowProblem
from roundelay.problems.rows import Rows, SparseRows, Weights, check_sizes, read_rows
from roundelay.problems.solving import MOST_FACTORED, newton, widths_of
from roundelay.registry import register


def row_slope(problem: RowNumbers, i: int, j: int, x: Vector) -> float:
    """The number that row j is multiplied by in ∇f_i(x): −scale·t·σ(−margin)."""
    label = problem.targets[j]
    return -problem.row_scale[i] * label / (1.0 + math.exp(min(label * dot(problem.rows[j], x), 700.0)))


def row_curvature(problem: RowNumbers, i: int, j: int, x: Vector) -> float:
    """scale·σ(−margin)·σ(margin)."""
    likelihood = 1.0 / (1.0 + math.exp(min(problem.targets[j] * dot(problem.rows[j], x), 700.0)))
    return problem.row_scale[i] * likelihood * (1.0 - likelihood)


def logistic_loss(own: Numbers, prediction: Vector, label: Vector) -> Vector:
    """ℓ(u, t) = log(1 + exp(−tu))."""
    return np.logaddexp(0.0, -label * prediction)


def logistic_slope(own: Numbers, prediction: Vector, label: Vector) -> Vector:
    """ℓ'(u, t) = −tσ(−tu)."""
    return -label * _sigmoid(-label * prediction)


def logistic_curvature(own: Numbers, prediction: Vector, label: Vector) -> Vector:
    """ℓ''(u, t) = σ(tu)(1 − σ(tu))."""
    chance = _sigmoid(label * prediction)
    return chance * (1.0 - chance)


# So steep that a margin below 0 of which exp is not 1 reaches 1 by it.
STEEP: float = 1e20


def logistic_all_three(own: Numbers, prediction: Vector, label: Vector) -> tuple[Vector, Vector, Vector]:
    """The same by one exponential: with e = exp(−|m|) of the margin m, σ(−m) is e/(1 + e) or 1/(1 + e), and ℓ'' is e/(1 + e)²."""
    margin = label * prediction
    below = np.minimum(margin, 0.0)
    small = np.exp(-np.abs(margin))
    likely = 1.0 / (1.0 + small)
    # e, and 1 at negative margins: without a branch on the sign, which no processor could foresee.
    missed = np.minimum(small - STEEP * below, 1.0) * likely
    return np.log1p(small) - below, -label * missed, small * likely * likely


@register(RowProblem, "logistic")
@dataclass(frozen=True, eq=False, repr=False)
class Logistic(RowProblem):
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

    loss: ClassVar[Loss] = Loss(logistic_loss, logistic_slope, logistic_curvature, logistic_all_three)
    most_curvature: ClassVar[float] = 0.25
    model: ClassVar[str] = "a logistic model"
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.separable and self.ridge == 0.0:
            _ = self.optimum  # finds out now whether there is one

    @classmethod
    def of_site(cls, features: Matrix, targets: Vector, row_weight: float, ridge: float) -> Self:
        """The function of one agent of a ring, whose own labels may be separable."""
        return cls([features], [targets], ridge, [row_weight * len(targets)], separable=True)

    @classmethod
    def drawn(cls, agents: int, samples: int, dim: int, seed: int) -> Self:
        """The paper's synthetic data: o ~ N(0, I), labels by one x ~ N(0, I)."""
        return cls(*_paper_rows(agents, samples, dim, seed))

    @cached_property
    def rows(self) -> Rows:
        """The data, checked, end to end."""
        return read_rows(self.features, self.labels)

    @property
    def signed(self) -> Matrix:
        """The rows t_ij·o_ij."""
        return self.rows.multiplied(self.rows.targets)

    @property
    def logistic_rows(self) -> LogisticRows | None:
        """The rows t_ij·o_ij, which an attack may find one by one; sparse ones are not held against what it finds."""
        if self.rows.is_sparse:
            return None
        return LogisticRows(self.signed, self.rows.starts, self.ridge)

    def minimiser(self) -> Vector:
        """x*, the minimiser of Σ f_i (that of least norm, where there are several)."""

        def slope(x: Vector) -> Vector:
            margins = self.rows.targets * (self.rows.features @ x)
            if self.ridge == 0.0 and (margins >= 0.0).all() and (margins > 0.0).any():
                raise ValueError(self._separable())
            return self.total_gradient(x)

        x, converged = newton(slope, self.curvature_at, self.rows.features, np.zeros(self.dim))
        # Where the loss is flat in some direction, that may be a minimiser at infinity.
        flat = False
        if self.ridge == 0.0 and self.dim <= MOST_FACTORED:
            hessian = self.total_hessian(x)
            widths = widths_of(hessian)
            flat = bool(np.linalg.cond(hessian / np.outer(widths, widths)) > 1e10)
        if self.ridge == 0.0 and (flat or not converged) and _can_be_separated(self.signed):
            raise ValueError(self._separable())
        if not converged:
            raise ValueError(
                "Newton's method did not find the minimiser of the logistic loss: bring the features to similar units, "
                "or add a ridge, for instance ridge=1e-3."
            )
        if flat:  # of all minimisers, the one of least norm
            x = np.asarray(np.linalg.lstsq(self.rows.features, self.rows.features @ x, rcond=None)[0], np.float64)
        return x

    def kernel(self) -> Part:
        """What the engines run."""
        if isinstance(self.rows, SparseRows):
            return self.sparse_part(self.rows)
        of_row = (("row_slope", row_slope), ("row_curvature", row_curvature))
        return Part((*FUNCTIONS, *of_row), self.row_numbers(self.rows.features), per_agent=PER_AGENT)

    def _separable(self) -> str:
        return (
            f"The labels of the agents 0 to {self.agents - 1} together can be separated by a plane, so that the logistic loss "
            "has no finite minimiser: add a ridge, for instance ridge=1e-3."
        )


def paper_logistic(agents: int = 100, samples: int = 30, dim: int = 2, seed: int = 0, ridge: float = 0.0) -> Logistic:
    """Logistic regression: o ~ N(0, I), and the label is 1 with probability 1/(1 + exp(−x'o)) for one x ~ N(0, I)."""
    return Logistic(*_paper_rows(agents, samples, dim, seed), ridge)


def _paper_rows(agents: int, samples: int, dim: int, seed: int) -> tuple[Cube, Matrix]:
    check_sizes(agents, samples, dim, seed)
    generator = np.random.default_rng([seed, 2])
    truth = generator.standard_normal(dim)
    features = generator.standard_normal((agents, samples, dim))
    chance = 1.0 / (1.0 + np.exp(-features @ truth))
    rows = features, np.where(generator.random((agents, samples)) <= chance, 1.0, -1.0)
    for array in rows:
        array.setflags(write=False)  # so that the problem does not copy it
    return rows


def _sigmoid(u: Vector) -> Vector:
    return np.exp(-np.logaddexp(0.0, -u))


def _can_be_separated(signed: Any) -> bool:
    """Whether some plane has every row, full or sparse, on its right side or on it, and at least one truly beside it."""
    from scipy.optimize import linprog  # late: it takes half a second and is hardly ever needed

    # Neither the units of a feature nor the length of a row make a difference, and zeros say nothing.
    rows = _scaled(_scaled(signed, axis=0), axis=1)
    if 0 in rows.shape:
        return False
    answer = linprog(
        -rows.sum(axis=0),
        A_ub=-rows,
        b_ub=np.zeros(rows.shape[0]),
        bounds=[(-1.0, 1.0)] * rows.shape[1],
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return answer.status == 0 and bool((rows @ answer.x).max() > 1e-6)


def _scaled(rows: Any, axis: int) -> Any:
    """Those columns (axis 0) or rows (axis 1) that are not all zeros, their largest number 1."""
    sizes = abs(rows).max(axis=axis) if 0 not in rows.shape else np.zeros(rows.shape[1 - axis])
    sizes = sizes.toarray().ravel() if hasattr(sizes, "toarray") else sizes
    kept = sizes > 0.0
    factors = 1.0 / sizes[kept]
    scaled = rows[:, kept] * factors if axis == 0 else rows[kept] * factors[:, None]
    return scaled.tocsr() if hasattr(scaled, "tocsr") else scaled
