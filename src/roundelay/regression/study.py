"""A regression from its first sum to its result: what a site adds to each sum, the function that is minimised between, and what follows.

sums before the fit → known to all → each site's function → its minimum, by Newton's method on sums → sums at that point → the result
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.sealed.optimisers import Asking, Goal, Optimiser
from roundelay.algorithms.sealed.questions import Asked, Question, Total
from roundelay.kernels import Matrix, Vector
from roundelay.problems import Regulariser
from roundelay.problems.callables import CallableProblem
from roundelay.problems.regularisers import NoRegulariser, WeightedL1
from roundelay.regression.choosing import (
    AtStrength,
    Chosen,
    Fold,
    FoundByFolds,
    answer_of_folds,
    choosing,
    dealt,
    folds_of,
    penalised,
    strengths,
)
from roundelay.regression.likelihood import Likelihood
from roundelay.regression.regression import INTERCEPT, MULTINOMIAL, Regression
from roundelay.regression.rows import SiteRows
from roundelay.regression.sums import AFTER, Known, Sum, sums_of

# Sums are rounded once, and to the grid.
ROUNDING, GRID = 1e-9, 2.0**-50
# Beyond this rows are no whole numbers any more.
MOST_ROWS = 2.0**53


class StudyError(ValueError):
    """The rows of all sites can't be fitted as planned, for the reason that the sentence gives."""


@dataclass(frozen=True, eq=False)
class Study:
    """A regression, as everybody knows it."""

    regression: Regression

    @cached_property
    def sums(self) -> tuple[Sum, ...]:
        """All sums, in order."""
        return sums_of(self.regression)

    @property
    def before(self) -> int:
        """How many of them come before the fit."""
        return len(self.sums) - len(AFTER)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many numbers each sum has."""
        return tuple(one.length(self.regression) for one in self.sums)

    def known(self, totals: tuple[Vector, ...], sites: int, point: Vector | None = None) -> Known:
        """What everybody knows."""
        return Known(self.regression, totals, sites, point)

    # ------------------------------------------------------------ one site

    def summand(self, rows: SiteRows, known: Known) -> Vector:
        """What a site adds to the sum that comes next."""
        following = self.sums[len(known.totals)]
        if len(known.totals) >= 2:
            check_totals(known)
        return following.packed(self.regression, following.own(rows, known))

    def check_told(self, own: Vector, total: Vector, number: int, sites: int) -> None:
        """Refuse a total that lacks what this site has added."""
        one = self.sums[number]
        growing = one.sizes(self.regression) if one.growing is None else one.growing
        mine, theirs = one.parts(self.regression, own), one.parts(self.regression, total)
        for part in (part for part in growing if part in mine):
            if not (theirs[part] >= mine[part] * (1.0 - ROUNDING) - GRID).all():
                raise ValueError(f"In the sum of {one.tells} there is less than this site has added.")
        if one.name == "rows":
            rows = float(theirs["rows"][0])
            if not (mine["rows"][0] <= rows <= MOST_ROWS and rows.is_integer()):
                raise ValueError(f"All {sites} sites can't have {rows:,g} rows together.")

    def function(self, rows: SiteRows, known: Known) -> SiteFunction:
        """The site's own function of the unknowns, such that the sum over N sites is N times the mean loss of a row, with the ridge.

        A ridge whose strength is chosen is added in public.
        """
        check_totals(known)
        share, own = known.sites / known.weight, 0.0 if self.regression.folds else 1.0
        return SiteFunction(rows.likelihood(known.knots, known.scaling), share, own * self.penalty)

    def regulariser(self, sites: int, factor: float = 1.0) -> Regulariser:
        """What is added in public to the sum of the functions of so many sites."""
        if not self.regression.lasso:
            return NoRegulariser()
        # So many functions have N times the mean.
        weights = np.full(self.regression.dim, sites * factor * self.regression.lasso)
        weights[list(self.regression.spared)] = 0.0
        return WeightedL1(weights)

    # ------------------------------------------------------------ choosing a penalty

    def folds(self, rows: SiteRows, known: Known) -> Callable[[Vector], Vector]:
        """What a site answers at a point for each fold, one behind the other."""
        check_totals(known)
        count, outside = self.regression.folds, self.outside(rows)
        likelihoods = [one.likelihood(known.knots, known.scaling) for one in outside]
        weights, whole = [float(one.weight.sum()) for one in outside], rows.likelihood(known.knots, known.scaling)
        return lambda points: answer_of_folds(likelihoods, weights, whole, points.reshape(count, -1))

    def outside(self, rows: SiteRows) -> list[SiteRows]:
        """A site's rows outside of each fold."""
        return [rows.without(fold) for fold in self.folded(rows)]

    def folded(self, rows: SiteRows) -> list[NDArray[np.bool_]]:
        """Which of them are in each fold."""
        fold = dealt(rows.count, self.regression.folds)
        return [fold == number for number in range(self.regression.folds)]

    def optimiser(self, then: Optimiser) -> Optimiser:
        """By which the sites are asked: where a penalty's strength is open, folds come first."""
        return ByFolds(self.regression, then) if self.regression.folds else then

    @cached_property
    def penalty(self) -> Matrix:
        """λ‖coefficients‖² is w'Pw; that of a response of many levels is of their distances from their mean, so that no level counts less."""
        regression = self.regression
        one = np.diag([0.0 if name == INTERCEPT else regression.ridge for name in regression.design_names])
        levels = regression.equations + 1 if regression.family == MULTINOMIAL else math.inf
        return np.kron(np.eye(regression.equations) - 1.0 / levels, one).astype(np.float64)

    # ------------------------------------------------------------ what all know

    def start(self, known: Known) -> Vector:
        """Where the fit begins: the model that knows nothing but constants."""
        return known.null_point

    def raw(self, known: Known, point: Vector | None = None) -> tuple[Vector, Matrix]:
        """The coefficients in the units of the data, and the matrix that makes them of the unknowns."""
        shift, scale = known.scaling
        one = np.diag(1.0 / scale)
        if self.regression.has_intercept:
            constant = self.regression.design_names.index(INTERCEPT)
            slopes = np.arange(len(scale)) != constant
            one[constant, slopes] = -(shift / scale)[slopes]
        whole = np.kron(np.eye(self.regression.equations), one).astype(np.float64)
        at = known.point if point is None else point
        assert at is not None
        return whole @ at, whole


@dataclass(frozen=True, eq=False)
class SiteFunction:
    """share·L(w) + ½ w'Pw with the penalty P: one site's part of what is minimised."""

    likelihood: Likelihood
    share: float
    penalty: Matrix

    def value(self, w: Vector) -> float:
        """f(w)."""
        return self.share * self.likelihood.value(w) + 0.5 * float(w @ self.penalty @ w)

    def gradient(self, w: Vector) -> Vector:
        """∇f(w)."""
        return self.share * self.likelihood.gradient(w) + self.penalty @ w

    def hessian(self, w: Vector) -> Matrix:
        """∇²f(w)."""
        return self.share * self.likelihood.hessian(w) + self.penalty


@dataclass(frozen=True)
class ByFolds:
    """The strength of a penalty is chosen by folds; then another optimiser finds the point."""

    regression: Regression
    then: Optimiser

    @property
    def name(self) -> str:
        """That of the other."""
        return str(getattr(self.then, "name", type(self.then).__name__))

    @property
    def asks(self) -> tuple[Asked, ...]:
        """What the other may ask for, and folds."""
        return (*self.then.asks, Asked.FOLDS)

    def questions(self, goal: Goal) -> Asking:
        """Ask for folds until the strength is chosen, and then until the goal is reached."""
        study, sites = Study(self.regression), goal.agents

        def at_strength(factor: float) -> tuple[Goal, Matrix]:
            return Goal(goal.dim, sites, study.regulariser(sites, factor)), sites * factor * study.penalty

        chosen = yield from self._choosing(goal, at_strength)
        at, penalty = at_strength(chosen.best.factor)
        last = replace(goal, regulariser=at.regulariser)
        found = yield from penalised(self.then.questions(last), penalty, goal.origin)
        return FoundByFolds(found.point, found.residual, found.converged, None, chosen)

    def _choosing(self, goal: Goal, at_strength: AtStrength) -> Generator[Question, Total, Chosen]:
        regression, folds = self.regression, self.regression.folds

        def asked_at(points: Matrix) -> Generator[Question, Total, list[Fold]]:
            total = yield Question(Asked.FOLDS, beside=points.reshape(-1))
            return folds_of(total.gradient, folds, goal.dim, goal.agents)

        start = np.tile(goal.origin, (folds, 1))
        first = yield from asked_at(start)
        factors = strengths(first, goal.agents, regression.lasso, regression.ridge, regression.spared)
        choice = choosing(at_strength, factors, goal.origin, folds, regression.spared)
        next(choice)  # that is where all have been asked
        told = first
        while True:
            try:
                points = choice.send(told)
            except StopIteration as end:
                return end.value
            told = yield from asked_at(points)


def problem_of(functions: list[SiteFunction]) -> CallableProblem:
    """The functions of some sites, as a ring and the simulator take them."""
    return CallableProblem(
        [one.gradient for one in functions],
        functions[0].likelihood.dim,
        [one.value for one in functions],
        [one.hessian for one in functions],
    )


# ---------------------------------------------------------------- before the fit


def check_totals(known: Known) -> None:
    """Refuse, in words that name the culprit, what no fit could make sense of."""
    for problem in (_too_few(known), _small_folds(known), _nothing_to_explain(known), _collinear(known)):
        if problem:
            raise StudyError(problem)
    if not known.regression.ridge:
        separated = separated_by(known)
        if separated:
            raise StudyError(
                f"{separated[0]} No finite coefficient is the best. Leave the term out, join the level with another one, or plan with a "
                "--ridge."
            )


def _too_few(known: Known) -> str:
    rows, unknowns = known.rows, known.regression.dim + known.constants
    if rows > unknowns:
        return ""
    return f"All sites together have {rows:,} complete rows, but the formula has {unknowns:,} unknowns: leave out terms, or bring in more rows."


def _small_folds(known: Known) -> str:
    least, folds = known.regression.least, known.regression.folds
    if not folds or known.rows >= least * folds:
        return ""
    return f"All sites together have {known.rows:,} complete rows: dealt into {folds} folds, one has fewer than {least}. Use fewer --folds."


def _nothing_to_explain(known: Known) -> str:
    regression = known.regression
    if known.has("columns") and not known.weight > 0.0:
        return f"All rows of all sites have the weight 0 in {regression.formula}: correct the weights."
    if not known.has("moments"):
        return ""
    moments = known.told("moments")
    response, one = float(moments["response"][0]), "all rows of all sites"
    if regression.family == MULTINOMIAL:
        absent = [level for level, count in zip(regression.classes, moments["classes"], strict=True) if not count > 0.0]
        return (
            f"No row of any site has the level {absent[0]!r} of {regression.response}: leave it out of the plan."
            if absent
            else ""
        )
    if regression.family == "binomial" and not 0.0 < response < known.weight:
        return f"The outcome {regression.response} is the same in {one}: there is nothing to explain."
    if regression.family in ("poisson", "gamma") and not response > 0.0:
        return f"{regression.response} is 0 in {one}: there is nothing to explain."
    if regression.family == "cox" and not float(moments["events"][0]) > 0.0:
        return "No row of any site ended with an event: there is nothing to explain."
    return ""


def _collinear(known: Known) -> str:
    if not known.has("products") or known.regression.ridge:
        return ""
    found = known.collinear
    if not found:
        return ""
    within = " at each site" if known.regression.absorbs_sites else ""
    return (
        f"In all rows of all sites {'; '.join(found[:3])}{within}: leave it out of the formula, or plan with a --ridge."
    )


def separated_by(known: Known) -> list[str]:
    """The columns of zeros and ones that have an outcome of one kind alone, each in a sentence."""
    regression = known.regression
    if not known.has("moments") or regression.family not in ("binomial", "poisson", MULTINOMIAL):
        return []
    columns, found = known.told("columns"), []
    levels = regression.classes if regression.family == MULTINOMIAL else ("",)
    explained = known.told("moments")["explained"].reshape(len(levels), -1)
    for column, name in enumerate(regression.design_names):
        total = float(columns["columns"][column])
        if name == INTERCEPT or not known.is_whole(column):
            continue
        for level, some in zip(levels, explained[:, column].tolist(), strict=True):
            least = ROUNDING * total
            if some <= least:
                what = f"the level {level!r}" if level else "an outcome other than 0"
                found.append(f"No row of any site with {name} has {what} of {regression.response}.")
            elif regression.family == "binomial" and some >= total - least:
                found.append(f"Every row of all sites with {name} has the outcome 1 in {regression.response}.")
    return found


def no_minimum(known: Known) -> tuple[float, str]:
    """A value of the sum of all functions below which outcomes are separated, and why; −∞ where that can't be."""
    regression = known.regression
    if regression.family not in ("binomial", MULTINOMIAL) or regression.ridge or regression.terms.response[0]:
        return -math.inf, ""
    # Where all losses add up to less than log 2, each row is on its own side.
    return known.sites / known.weight * math.log(2.0), (
        f"The predictors tell the outcomes of {regression.response} apart without an error, so that no finite coefficients are the best: leave "
        "out terms, or plan with a --ridge, for instance --ridge 1e-4."
    )
