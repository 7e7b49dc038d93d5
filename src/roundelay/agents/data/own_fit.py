"""How the ring's model does on a site's own data, against a fit to those data alone and against knowing nothing.

Under masks nobody can see that a member lies about its data. But a lie that moves the model moves it away from the rows of the others, and
each of them can see that by itself. What is found here is about one site's data: it stays there, and is no part of the model's file.

A fit to a site's own rows does well on those rows by chance alone. So it is tried on rows that it has not seen, a fifth of them at
a time, as is knowing nothing but their mean. Three standard errors of the rows' differences are taken for more than chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.agents.agreement.plan import Task
from roundelay.agents.data.models import Model
from roundelay.agents.data.reading import OwnRows
from roundelay.kernels import Matrix, Vector
from roundelay.problems import Problem, Regulariser
from roundelay.problems.regularisers import NoRegulariser, composite_optimum
from roundelay.regression.own_estimates import OwnLosses

FOLDS, CERTAIN = 5, 3.0
# With fewer rows nothing can be told from chance, and with more unknowns a fit would take long.
LEAST_ROWS, MOST_UNKNOWNS = 10, 1000
# Beyond this a prediction is as wrong as can be; the squares of such numbers are still finite.
FARTHEST = 1e70
WORST = FARTHEST**2
NOTHING = NoRegulariser()


@dataclass(frozen=True)
class OwnFit:
    """The loss of a row on the average: under the ring's `model`, a fit to this site's rows `alone`, and knowing `nothing`.

    For an objective of the site's own, which has no `rows`, they are its values: at the model, and at 0. `bad` says that the model does
    less than half of what a fit to these rows alone does over knowing nothing, by more than chance; or for an objective, less than 0 does.
    """

    rows: int
    model: float
    alone: float | None
    nothing: float
    bad: bool

    def in_words(self, run: str) -> str:
        """What the operator is told; loudly where it is bad."""
        if self.rows:
            alone = "" if self.alone is None else f"that of a fit to these rows alone is {self.alone:.3g}, and "
            found = (
                f"On {self.rows:,} rows of this site the loss of the model of run {run} is {self.model:.3g}; {alone}that of knowing nothing but "
                f"their mean is {self.nothing:.3g}."
            )
        else:
            found = (
                f"This site's objective is {self.model:.6g} at the solution of run {run}, and {self.nothing:.6g} at 0."
            )
        if not self.bad:
            return found
        return (
            f"THE MODEL DOES NOT FIT THIS SITE'S DATA. {found} Either this site's data are unlike those of the others, or a member has given "
            "false ones, which nobody can see under masks: before anybody uses the model, ask the others how it fits theirs."
        )


def compare_values(function: Problem, fitted: Vector) -> OwnFit | None:
    """By the values of an objective of the site's own."""
    try:
        at_model, at_zero = (float(function.values(point[None])[0]) for point in (fitted, np.zeros(function.dim)))
    except Exception:  # the site's own code, which the fit may never have asked for a value
        return None
    if not (np.isfinite(at_model) and np.isfinite(at_zero)):
        return None
    rounding = 1e-9 * (abs(at_model) + abs(at_zero))
    return OwnFit(0, at_model, None, at_zero, at_model > at_zero + rounding)


def compare_rows(task: Task, rows: OwnRows, model: Model, regulariser: Regulariser = NOTHING) -> OwnFit | None:
    """By a site's own rows; None where they are too few, or have one target alone. `regulariser` is that of the fit of one site."""
    target, features = rows.target, rows.features
    if rows.count < LEAST_ROWS or target.min() == target.max():
        return None
    slopes = np.array([value for _, value in model.coefficients])
    with np.errstate(over="ignore", invalid="ignore"):
        by_model = _losses(task, np.nan_to_num(model.intercept + features @ slopes, nan=FARTHEST), target)
    by_nothing = _tried(task, features[:, :0], target, NOTHING)
    by_rows = None if task.dim > MOST_UNKNOWNS else _tried(task, features, target, regulariser)
    return None if by_nothing is None else judged(OwnLosses(by_model, by_rows, by_nothing))


def judged(losses: OwnLosses) -> OwnFit:
    """Whether the model does less than half of what the rows alone could give, by more than chance.

    Where one row loses more than all others together, no mean is more than chance. So the rows are tried once more with a bound on how
    much worse one of them counts: that makes the mean smaller, and never raises a false alarm.
    """
    _, alone, nothing = losses
    model = np.clip(np.nan_to_num(losses.model, nan=WORST), -WORST, WORST)
    best = alone if alone is not None and alone.mean() < nothing.mean() else nothing
    worse = model - 0.5 * (best + nothing)
    bound = float(nothing.max() - min(nothing.min(), 0.0))
    bad = any(_is_more_than_chance(one) for one in (worse, np.minimum(worse, bound)))
    mean = None if alone is None else float(alone.mean())
    return OwnFit(len(model), float(model.mean()), mean, float(nothing.mean()), bad)


def _is_more_than_chance(worse: Vector) -> bool:
    return bool(worse.mean() > CERTAIN * float(worse.std(ddof=1)) / np.sqrt(len(worse)) and worse.mean() > 0.0)


def _tried(task: Task, features: Matrix, target: Vector, regulariser: Regulariser) -> Vector | None:
    """The loss of each row under a fit to rows of which it is none; None where there is no fit."""
    losses, fold = np.empty(len(target)), np.arange(len(target)) % FOLDS
    for number in range(FOLDS):
        hidden = fold == number
        try:
            predicted = _predicted(task, features[~hidden], target[~hidden], features[hidden], regulariser)
        except ValueError:  # the minimiser was not found
            return None
        losses[hidden] = _losses(task, predicted, target[hidden])
    return losses


def _predicted(task: Task, features: Matrix, target: Vector, others: Matrix, regulariser: Regulariser) -> Vector:
    """What a fit to some rows says of others. One row's worth of ridge more keeps it from infinity where labels can be separated."""
    scaled = task.standardise or task.promise is not None
    shift = features.mean(axis=0) if task.intercept else np.zeros(features.shape[1])
    deviation = features.std(axis=0)
    scale = np.where(deviation > 0.0, deviation, 1.0) if scaled else np.ones(len(deviation))
    centre = float(target.mean()) if task.intercept and task.problem.centres else 0.0
    known, asked = (_columns(task, (one - shift) / scale) for one in (features, others))
    if not known.shape[1]:
        return np.full(len(others), centre)
    ridge = task.ridge + float((known**2).mean()) / len(target)
    problem = task.problem.of_site(known, target - centre, 1.0 / len(target), ridge)
    return centre + asked @ composite_optimum(problem, regulariser)


def _columns(task: Task, scaled: Matrix) -> Matrix:
    """With a column of ones where the intercept is not had by centring."""
    if not task.intercept or task.problem.centres:
        return np.ascontiguousarray(scaled)
    return np.column_stack([scaled, np.ones(len(scaled))])


def _losses(task: Task, predicted: Vector, target: Vector) -> Vector:
    one = task.problem.of_site(np.ones((len(target), 1)), target, 1.0, 0.0)
    return np.asarray(one.loss.value(one.own, np.clip(predicted, -FARTHEST, FARTHEST), target), np.float64)
