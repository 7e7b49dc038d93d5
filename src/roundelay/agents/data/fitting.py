"""A fit to rows of data: what the sites sum before it, each site's own function, and the model that the solution stands for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from roundelay.agents.agreement.plan import CUSTOM, Task
from roundelay.agents.agreement.policy import Breach, Policy, refused_numbers, refused_unknowns
from roundelay.agents.data.marks import Marked, mark_rows
from roundelay.agents.data.models import Model, load_model
from roundelay.agents.data.objectives import WithoutLooks
from roundelay.agents.data.own_fit import OwnFit, compare_rows
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.data.regressing import own_sums, sums_before
from roundelay.agents.data.statistics import (
    Standard,
    first_moments,
    means_of,
    refuse_large,
    second_moments,
    standard_of,
)
from roundelay.algorithms.sealed.questions import OwnSums
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import whole_number
from roundelay.problems import OwnProblem, Regulariser
from roundelay.problems.carriers import Watched
from roundelay.problems.row_problem import RowProblem
from roundelay.regression.singled_out import others
from roundelay.tables import harmless

# More rows are no whole numbers any more. Sums of squares are rounded once, and to the grid.
MOST_ROWS, LEAST_ROUNDING, GRID = 2.0**53, 1e-9, 2.0**-50


@dataclass(frozen=True, eq=False)
class FitOfRows(WithoutLooks, ABC):
    """What follows for a fit to rows from what all sites sum under masks, first the moments, then the spreads."""

    task: Task

    @property
    def columns(self) -> list[str]:
        """The features and the target, as a header has them."""
        return [str(column) for column in (*self.task.features, self.task.target)]

    def breaches(self, policy: Policy, told: tuple[Vector, ...]) -> tuple[Breach, ...]:
        """Columns that are about few rows, or more unknowns than all rows say; under a promise no row counts more than it may."""
        if self.task.promise is not None:
            return ()
        if told:
            return refused_unknowns(policy, self.task.dim, self.all_rows(told) or 0)
        return refused_numbers(policy, dict(zip(self.columns, self.beside_most, strict=True)))

    @property
    @abstractmethod
    def beside_most(self) -> Sequence[int]:
        """Of each column how many rows have another number than most."""

    @property
    def sums(self) -> tuple[int, ...]:
        """How many numbers each sum has."""
        return sums_of(self.task)

    @abstractmethod
    def summand(self, told: tuple[Vector, ...], sites: int) -> Vector:
        """This site's part of the next sum."""

    def check_told(self, told: tuple[Vector, ...], sites: int) -> None:
        """There can't be fewer rows than this site has and one for each other, nor less spread than within this site."""
        total, own = told[-1][1:], self.summand(told[:-1], sites)
        if len(told) == 1:
            if not (own[0] + sites - 1 <= total[0] <= MOST_ROWS and total[0].is_integer()):
                raise ValueError(f"All {sites} sites can't have {total[0]:,g} rows together.")
        elif not (total >= own * (1.0 - LEAST_ROUNDING) - GRID).all():
            short = self.columns[int(np.argmin(total - own))]
            raise ValueError(f'All sites together can\'t differ so little in "{short}".')

    def no_minimiser(self, told: tuple[Vector, ...]) -> tuple[float, str]:
        """Where the losses of all n rows add up to less than log 2, each label is on its own side: labels can be separated.

        Then every larger model fits better still. Σf_i = (N/n)·Σ loss.
        """
        if not (self.task.problem.needs_labels and self.task.ridge == 0.0 and self.task.promise is None):
            return -math.inf, ""
        least = round(told[0][0]) / told[0][1] * math.log(2.0)
        return least, separable(self.task)

    def all_rows(self, told: tuple[Vector, ...]) -> int | None:
        """The first number of the first sum, behind that of the sites."""
        return round(told[0][1]) if told else None

    def standard(self, told: tuple[Vector, ...]) -> Standard | None:
        """The statistics of all rows of all sites; under a promise nobody knows them."""
        return standard_of_all(self.task, told)


@dataclass(frozen=True, eq=False)
class RowsFit(FitOfRows):
    """The rows of one site."""

    rows: OwnRows
    repeatable: bool = True

    @cached_property
    def digest(self) -> str:
        """A hash of all rows."""
        cells = np.column_stack([self.rows.features, self.rows.target])
        return sha256(repr(cells.shape).encode() + cells.astype("<f8").tobytes()).hexdigest()

    def marked(self, key: bytes) -> Marked:
        """What the ledger keeps of the rows."""
        return mark_rows(self.columns, np.column_stack([self.rows.features, self.rows.target]), self.digest, key)

    @property
    def slope(self) -> float:
        """The slopes of the loss at 0 times the features: their sizes multiplied, which bounds the mean of the products."""
        target = self.rows.target
        centred = target - target.mean() if self.task.problem.centres and self.task.intercept else target
        one = self.task.problem.of_site(np.ones((len(target), 1)), centred, 1.0, 0.0)
        slopes = one.loss.slope(one.own, np.zeros(len(target)), centred)
        scaled = self.task.standardise or self.task.promise is not None
        largest = 1.0 if scaled else float(np.sqrt((self.rows.features**2).mean(axis=0)).max())
        return largest * float(np.sqrt(np.mean(slopes**2)))

    @property
    def beside_most(self) -> list[int]:
        """By counting."""
        return [others(column) for column in (*self.rows.features.T, self.rows.target)]

    def summand(self, told: tuple[Vector, ...], sites: int) -> Vector:
        """This site's part of the next sum."""
        names = self.columns if told else ["the rows", *self.columns]
        numbers = second_moments(self.rows, means_of(told[0][1:])) if told else first_moments(self.rows)
        refuse_large(numbers, names, sites)
        return numbers

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The site's own function: a common factor keeps the curvature near 1, that of the sites that were summed."""
        standard = self.standard(told)
        if standard is None:
            return bounded_problem(self.task, self.rows)
        return own_problem(self.task, self.rows, standard, agents=round(told[0][0]))

    def watched(self, told: tuple[Vector, ...], folds: bool) -> tuple[Watched, ...]:
        """All rows, but for squares."""
        problem = self.problem(told)
        assert isinstance(problem, RowProblem)
        return () if problem.is_quadratic else (partial(problem.rows_at, 0),)

    def own_fit(
        self, fitted: Vector, model: Model, regulariser: Regulariser, told: tuple[Vector, ...]
    ) -> OwnFit | None:
        """How the ring's model does on these rows, against a fit to them alone."""
        return compare_rows(self.task, self.rows, model, regulariser)

    @property
    def beyond(self) -> int:
        """How many cells lie beyond the bounds of a promise and are moved to them: for the site's own eyes."""
        return int((within_bounds(self.task, self.rows) != bounded_cells(self.task, self.rows)).sum())


def standard_of_all(task: Task, told: tuple[Vector, ...]) -> Standard | None:
    """The statistics that the sums before the fit tell; None where there are none."""
    if task.regression is not None or not sums_of(task):
        return None
    return standard_of(told[0][1:], told[1][1:], [str(column) for column in task.features], task.standardise)


def sums_of(task: Task) -> tuple[int, ...]:
    """n, Σx of each feature and Σt; then Σ(x − mean)² of each feature and of the target. Without columns, or under a promise, none.

    A regression has its own.
    """
    if task.regression is not None:
        return sums_before(task.regression)
    features = len(task.features)
    return () if task.kind == CUSTOM or task.promise is not None else (features + 2, features + 1)


def own_sums_of(task: Task) -> OwnSums:
    """How many numbers each of the sums has that are a regression's own."""
    return OwnSums() if task.regression is None else own_sums(task.regression)


def separable(task: Task) -> str:
    """Why a fit to labels has no minimiser."""
    return (
        f'The features separate the two labels of "{task.target}" without an error, so that no finite coefficients are the best: '
        "plan the ring with a ridge, for instance --ridge 1e-4, or with fewer features."
    )


@dataclass(frozen=True, eq=False)
class Scaling:
    """Features are fitted as (x − shift)/scale, and the target as t − target_shift."""

    shift: Vector
    scale: Vector
    target_shift: float


def scaling_of(task: Task, standard: Standard) -> Scaling:
    """The units in which a task is fitted.

    Without an intercept nothing may be centred, or the model would have one in raw units. A problem that
    centres is always centred where there is an intercept: that is how it does without a column of ones.
    """
    if len(standard.mean) != len(task.features):
        raise ValueError(
            f"There are statistics of {len(standard.mean)} features, but the task has {len(task.features)}: ask the ring again."
        )
    centred = task.intercept and (task.problem.centres or task.standardise)
    if task.standardise and not standard.deviation.all():
        still = task.features[int(np.argmin(standard.deviation))]
        raise ValueError(f'The feature "{still}" is the same in all rows of all sites: leave it out of the fit.')
    return Scaling(
        standard.mean if centred else np.zeros(len(task.features)),
        standard.deviation if task.standardise else np.ones(len(task.features)),
        standard.target_mean if task.problem.centres and centred else 0.0,
    )


def bounded_cells(task: Task, rows: OwnRows) -> Matrix:
    """The cells that have bounds: the features, and the target where it is no label."""
    return rows.features if len(task.bounded) == len(task.features) else np.column_stack([rows.features, rows.target])


def within_bounds(task: Task, rows: OwnRows) -> Matrix:
    """The same cells, those beyond a bound moved to it."""
    assert task.promise is not None
    return np.clip(bounded_cells(task, rows), task.promise.low, task.promise.high)


def bounded_problem(task: Task, rows: OwnRows) -> OwnProblem:
    """Σ_j loss over this site's rows, features scaled by the public bounds to [−1, 1], with a column of ones for the intercept."""
    scaling, cells = _scaling_by_bounds(task), within_bounds(task, rows)
    features = (cells[:, : len(task.features)] - scaling.shift) / scaling.scale
    targets = rows.target if task.problem.needs_labels else cells[:, -1]
    if task.has_constant:
        features = np.column_stack([features, np.ones(rows.count)])
    return task.problem.of_site(features, targets - scaling.target_shift, 1.0, 0.0)


def half_range(task: Task) -> float:
    """How far the target may be from the middle of its bounds: the steepest slope of squares. That of a label's loss is taken as 1."""
    if task.promise is None or task.problem.needs_labels:
        return 1.0
    low, high = task.promise.low[-1], task.promise.high[-1]
    return (high - low) / 2.0 if task.intercept else max(abs(low), abs(high))


def _scaling_by_bounds(task: Task) -> Scaling:
    """Without an intercept nothing may be centred, or the model would have one: then features are only made smaller."""
    assert task.promise is not None
    low, high = (np.array(ends) for ends in (task.promise.low, task.promise.high))
    shift = (low + high) / 2.0 if task.intercept else np.zeros(len(low))
    scale = np.maximum(high - shift, shift - low)
    count = len(task.features)
    return Scaling(shift[:count], scale[:count], float(shift[-1]) if len(shift) > count else 0.0)


def own_problem(task: Task, rows: OwnRows, standard: Standard, agents: int) -> OwnProblem:
    """f_i of this site, such that Σf_i over the N = `agents` sites is N times the pooled objective.

    The pooled objective is (1/n)·Σ loss + ridge/2 ‖w‖² over the n rows of all sites, so that

        f_i(w) = (N/n)·Σ_j loss(x_j'w, t_j) + ridge/2 ‖w‖².

    With an intercept a problem that centres has centred x and t, such as least squares, and with any other a column of
    ones is the last. The ridge then shrinks the intercept too.
    """
    share = share_of(task, rows.count, standard, agents)
    if rows.features.shape[1] != len(task.features):
        raise ValueError(f"The rows have {rows.features.shape[1]} features, but the task has {len(task.features)}.")
    scaling = scaling_of(task, standard)
    features = (rows.features - scaling.shift) / scaling.scale
    if task.has_constant:
        features = np.column_stack([features, np.ones(rows.count)])
    return task.problem.of_site(features, rows.target - scaling.target_shift, share, task.ridge)


def share_of(task: Task, rows: int, standard: Standard, agents: int) -> float:
    """N/n, what a row of one of the N = `agents` sites counts, of which one has so many of the n rows."""
    whole_number("agents", agents, least=1)
    if not task.has_rows:
        raise ValueError(
            f"A task of the kind {task.kind} is not fitted to rows of features and a target: load what it is fitted to instead."
        )
    if rows > standard.rows:
        raise ValueError(
            f"This site has {rows} rows, but all sites together have {standard.rows}: let the ring count anew."
        )
    if task.problem.needs_labels and standard.target_deviation == 0.0 and task.ridge == 0.0:
        raise ValueError(
            f'All rows of all sites have the same label in "{task.target}", so that the loss has no minimiser: '
            "bring in rows with the other label, or agree on a ridge."
        )
    return agents / standard.rows


def model_of(task: Task, standard: Standard | None, w: Vector) -> Model:
    """The model in raw units that the unknowns w stand for, the same to the last digit on every computer.

    `standard` is None for a custom objective.
    """
    w = np.asarray(w, np.float64)
    if w.shape != (task.dim,):
        raise ValueError(f"The solution has the shape {w.shape}, but the task has {task.dim} unknowns.")
    if task.kind == CUSTOM:
        return Model(tuple((str(number), value) for number, value in enumerate(w.tolist())), 0.0, task.kind, "")
    scaling = _known_scaling(task, standard)
    slopes = w[: len(task.features)] / scaling.scale
    constant = scaling.target_shift + (w[-1] if task.has_constant else 0.0)
    names = [str(column) for column in task.features]
    coefficients = tuple(zip(names, slopes.tolist(), strict=True))
    return Model(coefficients, float(constant) - math.fsum(slopes * scaling.shift), task.kind, str(task.target))


def noise_of(task: Task, covariance: Matrix) -> tuple[Vector, float]:
    """The standard deviations of the coefficients and of the intercept in raw units, from the covariance of the unknowns."""
    scaling, count = _known_scaling(task, None), len(task.features)
    slopes = np.sqrt(np.diag(covariance)[:count]) / scaling.scale
    of_intercept = np.concatenate([-scaling.shift / scaling.scale, np.ones(int(task.has_constant))])
    return slopes, float(np.sqrt(max(of_intercept @ covariance @ of_intercept, 0.0)))


def weights_of(task: Task, standard: Standard | None, model: Model) -> Vector:
    """The unknowns that stand for a model: the inverse of `model_of`, where the model fits the task.

    The intercept of least squares is no unknown and follows from the means.
    """
    if (model.kind, model.target) != (task.kind, "" if task.target is None else str(task.target)):
        raise ValueError(
            f'The model is a fit of the kind {model.kind} to "{harmless(model.target)}", but the task is {task.kind} with the target '
            f'"{task.target or ""}": start from another model, or from none.'
        )
    custom = task.kind == CUSTOM
    names = [str(number) for number in range(task.dim)] if custom else [str(column) for column in task.features]
    values = dict(model.coefficients)
    for name in names:
        if name not in values:
            raise ValueError(
                f'The model has no feature "{name}", but the task has: start from another model, or from none.'
            )
    for name in values:
        if name not in names:
            raise ValueError(
                f'The model has the feature "{harmless(name)}", but the task has not: start from another model, or from none.'
            )
    if len(model.coefficients) != len(names):
        raise ValueError("The model has a feature twice: start from another model, or from none.")
    slopes = np.array([values[name] for name in names])
    if custom:
        return slopes
    scaling = _known_scaling(task, standard)
    w = slopes * scaling.scale
    constant = model.intercept + slopes @ scaling.shift - scaling.target_shift
    return np.append(w, constant) if task.has_constant else w


def read_model(path: str | Path, task: Task, standard: Standard | None) -> Vector:
    """The unknowns to start from, from the file of a model with the same features, in the units of the new rows."""
    try:
        return weights_of(task, standard, load_model(path).model)
    except ValueError as error:
        raise ValueError(f"There can be no warm start from {path}. {error}") from None


def _known_scaling(task: Task, standard: Standard | None) -> Scaling:
    if task.promise is not None:
        return _scaling_by_bounds(task)
    if standard is None:
        raise ValueError("A fit to data needs the statistics of all rows: give the standard.")
    return scaling_of(task, standard)
