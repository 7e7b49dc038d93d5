"""What one site's rows say of the unknowns: half of their deviance, or −log of their likelihood, as a sum over rows.

Everything that is asked of a site before, during and after a fit is formed from here. Unknowns are w; a row has a predictor η = x'w for
each equation, of which there is one but for a response of many levels. What a row adds is a function of its predictors, so that

    gradient = Σ slopes ⊗ x        hessian = Σ curvatures ⊗ xx'        information = Σ expected curvatures ⊗ xx'

Where each site has a constant of its own (`Absorbed`), it is the one that suits its rows best at w, and nobody else sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.problems.carriers import RowsAt, ends_of
from roundelay.regression.families import Family

# The constant that suits a site's own rows best is found by at most so many steps, to this part of its size.
MOST_STEPS, SMALL_STEP = 200, 1e-15
# How much of what its slope promises a step must keep.
DECREASE = 1e-4


class Likelihood(Protocol):
    """A smooth function of w, a sum over one site's rows."""

    @property
    def dim(self) -> int:
        """How many unknowns there are."""

    def value(self, w: Vector) -> float:
        """Half of the deviance, or −log of the likelihood."""

    def gradient(self, w: Vector) -> Vector:
        """Its slope."""

    def hessian(self, w: Vector) -> Matrix:
        """Its curvature."""

    def information(self, w: Vector) -> Matrix:
        """What the curvature is expected to be, had the responses been drawn at w: whose inverse is the variance of an estimate."""

    def scores(self, w: Vector) -> Matrix:
        """What each row adds to the gradient, one row a row: for variances that hold where the family does not."""

    def rows_at(self, w: Vector) -> RowsAt:
        """What each row adds, by its predictors: how many carry what is told at w."""


# ---------------------------------------------------------------- what a row adds, by its predictors

# Of rows and pairs of equations.
Curvatures = NDArray[np.float64]


class Losses(Protocol):
    """What rows add, as a function of their predictors η: a row a row, a column an equation."""

    @property
    def equations(self) -> int:
        """How many predictors each row has."""

    def each(self, eta: Matrix) -> Vector:
        """What each row adds."""

    def slopes(self, eta: Matrix) -> Matrix:
        """The derivative by each predictor."""

    def curvatures(self, eta: Matrix) -> Curvatures:
        """The second derivatives."""

    def expected(self, eta: Matrix) -> Curvatures:
        """What they are expected to be."""

    def rows_at(self, eta: Matrix) -> RowsAt:
        """The same of each row, where a level is an equation too."""

    @property
    def free(self) -> NDArray[np.bool_]:
        """For which equations these rows alone have a finite best constant."""

    def without_the_unseen(self) -> Losses | None:
        """The limit for constants that have no finite best value; None where nothing is left of the losses then."""


@dataclass(frozen=True, eq=False)
class FamilyLosses:
    """Half of the deviance of a family, each row times its weight."""

    family: Family
    response: Vector
    weight: Vector
    offset: Vector
    equations: int = 1

    def _at(self, eta: Matrix) -> Vector:
        return eta[:, 0] + self.offset

    def each(self, eta: Matrix) -> Vector:
        """Half of its deviance."""
        return self.weight * self.family.half_deviance(self._at(eta), self.response)

    def slopes(self, eta: Matrix) -> Matrix:
        """Its derivative."""
        return (self.weight * self.family.slope(self._at(eta), self.response))[:, None]

    def curvatures(self, eta: Matrix) -> Curvatures:
        """Its second derivative."""
        return (self.weight * self.family.curvature(self._at(eta), self.response))[:, None, None]

    def expected(self, eta: Matrix) -> Curvatures:
        """μ'²/V."""
        return (self.weight * self.family.weight(self._at(eta)))[:, None, None]

    def rows_at(self, eta: Matrix) -> RowsAt:
        """By the one equation; where the fit is looked at the expected curvature is told, too."""
        bends = np.column_stack([self.curvatures(eta)[:, :, 0], self.expected(eta)[:, :, 0]])
        ends = ends_of(self.slopes, eta.shape)
        return RowsAt(eta, self.slopes(eta), bends, ends, self.weight, float(self.each(eta).sum()))

    @property
    def free(self) -> NDArray[np.bool_]:
        """Not where all rows are at one end of what the family can explain."""
        total, some = float(self.weight.sum()), float(self.weight @ self.response)
        low, high = self.family.ends
        return np.array([total > 0.0 and (low is None or some > low * total) and (high is None or some < high * total)])

    def without_the_unseen(self) -> FamilyLosses | None:
        """The deviance falls to 0 as the constant goes to its end."""
        return self if self.free[0] else None


@dataclass(frozen=True, eq=False)
class SoftmaxLosses:
    """−log of the chance of each row's level, times its weight; the first of `count` levels is the reference, with the predictor 0.

    A row can have the levels that are `possible`, by default all.
    """

    levels: NDArray[np.int64]
    count: int
    weight: Vector
    possible: tuple[bool, ...] = ()

    @property
    def equations(self) -> int:
        """One for each level but the reference."""
        return self.count - 1

    def _all(self, eta: Matrix) -> Matrix:
        whole = np.column_stack([np.zeros(len(eta)), eta])
        if self.possible:
            whole[:, ~np.array(self.possible)] = -np.inf
        return whole

    def chances(self, eta: Matrix) -> Matrix:
        """Of each level in each row."""
        return scipy.special.softmax(self._all(eta), axis=1)

    def each(self, eta: Matrix) -> Vector:
        """−log of the chance of its level."""
        whole = self._all(eta)
        highest = whole.max(axis=1)
        logs = highest + np.log(np.exp(whole - highest[:, None]).sum(axis=1))
        return self.weight * (logs - whole[np.arange(len(eta)), self.levels])

    def slopes(self, eta: Matrix) -> Matrix:
        """Chance less what was seen."""
        seen = self.levels[:, None] == np.arange(self.count)
        return self.weight[:, None] * (self.chances(eta) - seen)[:, 1:]

    def curvatures(self, eta: Matrix) -> Curvatures:
        """δ_ab P_a − P_a P_b."""
        chance = self.chances(eta)[:, 1:]
        between = -chance[:, :, None] * chance[:, None, :]
        each = np.arange(self.equations)
        between[:, each, each] += chance
        return self.weight[:, None, None] * between

    def expected(self, eta: Matrix) -> Curvatures:
        """The same, since they do not depend on the responses."""
        return self.curvatures(eta)

    def rows_at(self, eta: Matrix) -> RowsAt:
        """Far out a row has a level for certain, or not at all."""
        weight, chance = self.weight[:, None], self.chances(eta)
        seen = (self.levels[:, None] == np.arange(self.count)).astype(np.float64)
        return RowsAt(
            np.column_stack([np.zeros(len(eta)), eta]), weight * (chance - seen), weight * chance * (1.0 - chance),
            (-weight * seen, weight * (1.0 - seen)), self.weight, float(self.each(eta).sum()),
        )  # fmt: skip

    @cached_property
    def _seen(self) -> NDArray[np.bool_]:
        return np.bincount(self.levels, self.weight, self.count) > 0.0

    @property
    def free(self) -> NDArray[np.bool_]:
        """The levels that these rows have, but for the first of them."""
        free = self._seen.copy()
        if free.any():
            free[np.argmax(free)] = False
        return free[1:]

    def without_the_unseen(self) -> SoftmaxLosses | None:
        """Without the levels that no row has; nothing is left where all rows have one."""
        if not self.free.any():
            return None
        return SoftmaxLosses(self.levels, self.count, self.weight, tuple(self._seen.tolist()))


# ---------------------------------------------------------------- by predictors


@dataclass(frozen=True, eq=False)
class Linear:
    """Rows whose predictors are linear in w: the unknowns of one equation after those of another."""

    design: Matrix
    losses: Losses

    @property
    def dim(self) -> int:
        """A coefficient for each column and equation."""
        return self.design.shape[1] * self.losses.equations

    def predictors(self, w: Vector) -> Matrix:
        """η."""
        return self.design @ w.reshape(self.losses.equations, -1).T

    def value(self, w: Vector) -> float:
        """What all rows add."""
        return float(self.each(w).sum())

    def each(self, w: Vector) -> Vector:
        """What each row adds."""
        return self.losses.each(self.predictors(w))

    def gradient(self, w: Vector) -> Vector:
        """Σ slopes ⊗ x."""
        return (self.losses.slopes(self.predictors(w)).T @ self.design).reshape(-1)

    def hessian(self, w: Vector) -> Matrix:
        """Σ curvatures ⊗ xx'."""
        return products(self.design, self.losses.curvatures(self.predictors(w)))

    def information(self, w: Vector) -> Matrix:
        """X'WX."""
        return products(self.design, self.losses.expected(self.predictors(w)))

    def scores(self, w: Vector) -> Matrix:
        """Slopes ⊗ x."""
        return _rowwise(self.losses.slopes(self.predictors(w)), self.design)

    def leverages(self, w: Vector, inverse: Matrix) -> Vector:
        """How far each row pulls its own prediction: W x'(X'WX)⁻¹x, with the inverse over all sites' rows."""
        weight = self.losses.expected(self.predictors(w))[:, 0, 0]
        return weight * np.einsum("ni,ij,nj->n", self.design, inverse, self.design)

    def rows_at(self, w: Vector) -> RowsAt:
        """By the losses."""
        return self.losses.rows_at(self.predictors(w))._replace(null=self._null)

    @cached_property
    def _null(self) -> float:
        """With the constants that suit these rows best; where none is finite, with those of no predictor at all."""
        eta, losses = np.zeros((len(self.design), self.losses.equations)), self.losses.without_the_unseen()
        found = self.losses.each(eta) if losses is None else losses.each(eta + _best_constants(losses, eta))
        return float(found.sum())


def products(design: Matrix, curvatures: Curvatures) -> Matrix:
    """Σ curvatures ⊗ xx'."""
    equations = curvatures.shape[1]
    blocks = [[(design.T * curvatures[:, one, two]) @ design for two in range(equations)] for one in range(equations)]
    return np.block(blocks)


def _rowwise(slopes: Matrix, design: Matrix) -> Matrix:
    return (slopes[:, :, None] * design[:, None, :]).reshape(len(design), -1)


class _Best(NamedTuple):
    """The rows at w and at their own best constants: predictors, and which losses are left."""

    eta: Matrix
    losses: Losses | None


@dataclass(frozen=True, eq=False)
class Absorbed:
    """Rows of a site that has constants of its own: at every w those that suit its rows best.

        L(w) = min_α Σ loss(Xw + α)      ∇L = ∂_w      ∇²L = ∂²_ww − ∂²_wα (∂²_αα)⁻¹ ∂²_αw

    It follows from w and the rows alone, and only its sum over all sites is ever seen. Rows for which an infinite constant is the
    best, as where no row had the outcome, add the limit: nothing.
    """

    linear: Linear

    @cached_property
    def _centred(self) -> Matrix:
        """The design about its means, which changes nothing but the constants, and keeps digits."""
        design = self.linear.design
        return design - design.mean(axis=0) if len(design) else design

    @property
    def dim(self) -> int:
        """The constants are no unknowns."""
        return self.linear.dim

    def _best(self, w: Vector) -> _Best:
        losses = self.linear.losses.without_the_unseen()
        eta = self._centred @ w.reshape(self.linear.losses.equations, -1).T
        if losses is None:
            return _Best(eta, None)
        return _Best(eta + _best_constants(losses, eta), losses)

    def predictors(self, w: Vector) -> Matrix:
        """η with the constants; infinite where they have no finite best value."""
        eta, losses = self._best(w)
        if losses is not None:
            return eta
        falls = float(self.linear.losses.slopes(np.zeros_like(eta)).sum()) > 0.0
        return np.full_like(eta, -np.inf if falls else np.inf)

    def value(self, w: Vector) -> float:
        """L(w)."""
        return float(self.each(w).sum())

    def each(self, w: Vector) -> Vector:
        """What each row adds, with the constants that suit them all best."""
        eta, losses = self._best(w)
        return np.zeros(len(eta)) if losses is None else losses.each(eta)

    def gradient(self, w: Vector) -> Vector:
        """∇L."""
        eta, losses = self._best(w)
        return np.zeros(self.dim) if losses is None else (losses.slopes(eta).T @ self._centred).reshape(-1)

    def hessian(self, w: Vector) -> Matrix:
        """∇²L."""
        eta, losses = self._best(w)
        return (
            np.zeros((self.dim, self.dim)) if losses is None else self._about_constants(losses, losses.curvatures(eta))
        )

    def information(self, w: Vector) -> Matrix:
        """What ∇²L is expected to be."""
        eta, losses = self._best(w)
        return np.zeros((self.dim, self.dim)) if losses is None else self._about_constants(losses, losses.expected(eta))

    def _about_constants(self, losses: Losses, curvatures: Curvatures) -> Matrix:
        mixed, own = self._mixed(losses, curvatures)
        return products(self._centred, curvatures) - mixed @ np.linalg.solve(own, mixed.T)

    def _mixed(self, losses: Losses, curvatures: Curvatures) -> tuple[Matrix, Matrix]:
        """∂²_wα and ∂²_αα."""
        mixed = np.einsum("nab,ni->aib", curvatures, self._centred).reshape(self.dim, -1)
        return mixed[:, losses.free], curvatures.sum(axis=0)[np.ix_(losses.free, losses.free)]

    def scores(self, w: Vector) -> Matrix:
        """What each row adds to the gradient, less what its pull on the constants takes back."""
        eta, losses = self._best(w)
        if losses is None:
            return np.zeros((len(eta), self.dim))
        slopes = losses.slopes(eta)
        mixed, own = self._mixed(losses, losses.curvatures(eta))
        return _rowwise(slopes, self._centred) - slopes[:, losses.free] @ np.linalg.solve(own, mixed.T)

    def leverages(self, w: Vector, inverse: Matrix) -> Vector:
        """How far each row pulls its own prediction, by the coefficients and by the site's constant."""
        eta, losses = self._best(w)
        if losses is None:
            return np.zeros(len(eta))
        weight = losses.expected(eta)[:, 0, 0]
        apart = self._centred - weight @ self._centred / weight.sum()
        return weight * (np.einsum("ni,ij,nj->n", apart, inverse, apart) + 1.0 / weight.sum())

    def rows_at(self, w: Vector) -> RowsAt:
        """With their own constants; rows for which an infinite one is the best add nothing."""
        eta, losses = self._best(w)
        if losses is not None:
            return losses.rows_at(eta)
        nothing = np.zeros_like(eta)
        return RowsAt(nothing, nothing, nothing, (), np.zeros(len(eta)), 0.0)


def _best_constants(losses: Losses, eta: Matrix) -> Vector:
    """By Newton's method on a convex function of a few numbers, which does not depend on where anybody was before."""
    free = losses.free
    constants = np.zeros(losses.equations)
    value = float(losses.each(eta).sum())
    for _ in range(MOST_STEPS):
        at = eta + constants
        slope = losses.slopes(at).sum(axis=0)[free]
        curvature = losses.curvatures(at).sum(axis=0)[np.ix_(free, free)]
        step = -np.linalg.lstsq(curvature, slope, rcond=None)[0]
        promised, length = float(slope @ step), 1.0
        while True:
            trial = constants.copy()
            trial[free] += length * step
            after = float(losses.each(eta + trial).sum())
            if after <= value + DECREASE * length * promised or length < 1e-12:
                break
            # So near the end values say nothing any more: slopes do.
            if (
                abs(promised) <= 1e-9 * abs(value)
                and np.abs(losses.slopes(eta + trial).sum(axis=0)[free]).max() <= np.abs(slope).max()
            ):
                break
            length *= 0.5
        constants, value = trial, after
        if np.abs(length * step).max() <= SMALL_STEP * (1.0 + np.abs(constants).max()):
            break
    return constants


# ---------------------------------------------------------------- survival


class _Terms(NamedTuple):
    """A term for each death, in order: at which distinct time it was, the part of the dead that is no longer at risk, the mean weight."""

    of: NDArray[np.int64]
    part: Vector
    weight: Vector


@dataclass(frozen=True, eq=False)
class Cox:
    """Rows of one stratum with a baseline hazard of its own: −log of the partial likelihood, with Efron's way with ties.

    For a time at which d rows die, S = Σ w e^η over those still at risk and D over the dead, it adds −Σ_dead w η and, for r = 0 to d − 1,
    w̄ log(S − r/d D), where w̄ is the mean weight of the dead. `offset` is added to each row's predictor.
    """

    design: Matrix
    time: Vector
    event: Vector
    weight: Vector
    offset: Vector

    @property
    def dim(self) -> int:
        """A coefficient a column."""
        return self.design.shape[1]

    @cached_property
    def _kept(self) -> _Sorted:
        counted = np.flatnonzero(self.weight > 0.0)
        order = counted[np.argsort(self.time[counted], kind="stable")]
        return _Sorted(order, self.time[order], self.event[order] > 0.0)

    @cached_property
    def _centred(self) -> Matrix:
        """In the order of time; a constant more in every predictor changes nothing."""
        design = self.design[self._kept.order]
        return design - design.mean(axis=0) if len(design) else design

    @cached_property
    def _weights(self) -> Vector:
        return self.weight[self._kept.order]

    @cached_property
    def _terms(self) -> _Terms:
        kept = self._kept
        dead = kept.dead_at
        counts = np.bincount(dead, minlength=len(kept.deaths))
        of = np.repeat(np.arange(len(kept.deaths)), counts)
        first = np.cumsum(counts) - counts
        part = (np.arange(len(of)) - first[of]) / counts[of]
        mean = np.bincount(dead, self._weights[kept.dead], len(kept.deaths)) / counts
        return _Terms(of, part, mean[of])

    def _risks(self, w: Vector) -> _Risks:
        kept, terms = self._kept, self._terms
        eta = self._centred @ w + self.offset[kept.order]
        highest = float(eta.max(initial=-np.inf)) if len(eta) else 0.0
        risk = self._weights * np.exp(eta - highest)
        dead = np.bincount(kept.dead_at, risk[kept.dead], len(kept.deaths))
        at_risk = _from_end(risk)[kept.first_at_risk]
        left = at_risk[terms.of] - terms.part * dead[terms.of]
        return _Risks(eta, highest, risk, left)

    def value(self, w: Vector) -> float:
        """−log of the partial likelihood."""
        kept, risks = self._kept, self._risks(w)
        logs = self._terms.weight @ (np.log(risks.left) + risks.highest)
        return float(logs - self._weights[kept.dead] @ risks.eta[kept.dead])

    def _means(self, risks: _Risks) -> Matrix:
        """The mean of x over those at risk, a row for each term."""
        kept, terms, weighted = self._kept, self._terms, risks.risk[:, None] * self._centred
        dead = np.zeros((len(kept.deaths), self.dim))
        np.add.at(dead, kept.dead_at, weighted[kept.dead])
        at_risk = _from_end(weighted)[kept.first_at_risk]
        return (at_risk[terms.of] - terms.part[:, None] * dead[terms.of]) / risks.left[:, None]

    def gradient(self, w: Vector) -> Vector:
        """Σ over deaths of the mean of those at risk, less the dead."""
        kept = self._kept
        return self._terms.weight @ self._means(self._risks(w)) - self._weights[kept.dead] @ self._centred[kept.dead]

    def hessian(self, w: Vector) -> Matrix:
        """Σ over deaths of the variance of x over those at risk."""
        risks = self._risks(w)
        means = self._means(risks)
        hazard = self._summed(risks, np.ones((len(self._terms.of), 1)))[:, 0]
        return (self._centred.T * hazard) @ self._centred - (means.T * self._terms.weight) @ means

    def information(self, w: Vector) -> Matrix:
        """Taken as it stands: what is expected depends on who was censored when."""
        return self.hessian(w)

    def _summed(self, risks: _Risks, numbers: Matrix) -> Matrix:
        """For each row w e^η Σ over the terms at whose time it was at risk of w̄·number/(what is left), less the parts that it had died of."""
        kept, terms = self._kept, self._terms
        each = (terms.weight / risks.left)[:, None] * numbers
        count = len(kept.deaths)
        at_time, died = np.zeros((count, each.shape[1])), np.zeros((count, each.shape[1]))
        np.add.at(at_time, terms.of, each)
        np.add.at(died, terms.of, terms.part[:, None] * each)
        until = np.concatenate([np.zeros((1, each.shape[1])), np.cumsum(at_time, axis=0)])
        summed = until[np.searchsorted(kept.deaths, kept.time, side="right")]
        summed[kept.dead] -= died[kept.dead_at]
        return risks.risk[:, None] * summed

    def scores(self, w: Vector) -> Matrix:
        """What each row adds to the gradient; a row adds wherever it was at risk."""
        kept, terms, risks = self._kept, self._terms, self._risks(w)
        means = self._means(risks)
        found = np.zeros((len(self.time), self.dim))
        hazard = self._summed(risks, np.ones((len(terms.of), 1)))
        ordered = hazard * self._centred - self._summed(risks, means)
        counts = np.bincount(kept.dead_at, minlength=len(kept.deaths))
        mean_at = np.zeros((len(kept.deaths), self.dim))
        np.add.at(mean_at, terms.of, means)
        own = self._centred[kept.dead] - (mean_at / counts[:, None])[kept.dead_at]
        ordered[kept.dead] -= self._weights[kept.dead][:, None] * own
        found[kept.order] = ordered
        return found

    def rows_at(self, w: Vector) -> RowsAt:
        """A row adds as many deaths as are expected of it, Σ w̄ π over its chances π of being the next; that sum bends by Σ w̄ π(1 − π)."""
        risks, terms = self._risks(w), len(self._terms.of)
        expected = self._summed(risks, np.ones((terms, 1)))
        square = risks.risk[:, None] * self._summed(risks, 1.0 / risks.left[:, None])
        numbers = np.zeros((4, len(self.time), 1))  # in the rows' own order; who was never at risk adds nothing
        numbers[:, self._kept.order] = [
            risks.eta[:, None], expected, np.maximum(expected - square, 0.0), self._weights[:, None],
        ]  # fmt: skip
        eta, slopes, bends, weight = numbers
        return RowsAt(eta, slopes, bends, (np.zeros_like(slopes),), weight[:, 0], self.value(w), follows=False)


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Rows in the order of time, and the distinct times at which some died."""

    order: NDArray[np.int64]
    time: Vector
    died: NDArray[np.bool_]

    @cached_property
    def dead(self) -> NDArray[np.int64]:
        """The places of the dead."""
        return np.flatnonzero(self.died)

    @cached_property
    def deaths(self) -> Vector:
        """The distinct times."""
        return np.unique(self.time[self.died])

    @cached_property
    def dead_at(self) -> NDArray[np.int64]:
        """The number of its time, for each of the dead."""
        return np.searchsorted(self.deaths, self.time[self.died])

    @cached_property
    def first_at_risk(self) -> NDArray[np.int64]:
        """The place of the first row that is still at risk at each of the times."""
        return np.searchsorted(self.time, self.deaths, side="left")


class _Risks(NamedTuple):
    """At a point: predictors, the highest of them, w e^(η − highest), and for each term what is left of the sum of those at risk."""

    eta: Vector
    highest: float
    risk: Vector
    left: Vector


def _from_end(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums from each place to the end."""
    return np.cumsum(numbers[::-1], axis=0)[::-1]


def binned_survival(time: Vector, event: Vector, weight: Vector, edges: Vector) -> tuple[Vector, Vector]:
    """How many rows are at risk when each time bin begins, and how many died in it: bins end at the edges, their ends within them."""
    starts = np.concatenate([[-np.inf], edges[:-1]])
    at_risk = (weight[:, None] * (time[:, None] > starts)).sum(axis=0)
    ended = (weight * event)[:, None] * ((time[:, None] > starts) & (time[:, None] <= edges))
    return at_risk, ended.sum(axis=0)
