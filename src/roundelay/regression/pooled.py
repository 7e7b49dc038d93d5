"""A regression over data frames in one process, by the very sums that a ring of sites forms: for trying out before there is a ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from roundelay.algorithms.sealed.optimisers import Found, Goal, Newton, NoMinimiserError, NormalEquations
from roundelay.algorithms.sealed.questions import GRADIENTS, Asked, Place, answers, total_of
from roundelay.kernels import Vector
from roundelay.regression.columns import Column, in_order
from roundelay.regression.formula import factors_in, names_in
from roundelay.regression.regression import Regression
from roundelay.regression.result import Result
from roundelay.regression.results import result_of
from roundelay.regression.rows import SiteRows
from roundelay.regression.study import Study, StudyError, no_minimum, problem_of
from roundelay.regression.sums import AFTER, Known
from roundelay.shown.notebook import View
from roundelay.shown.show import Shown

if TYPE_CHECKING:
    import pandas as pd

TOLERANCE = 1e-12
MOST_LAPS = 200


@dataclass(frozen=True, eq=False)
class Fit(Shown):
    """A regression that was fitted: how it was planned, all sums that everybody knows of it, and what it came to."""

    study: Study
    known: Known
    result: Result

    def __repr__(self) -> str:
        return f"Fit({self.result.formula}, {self.result.family}, {len(self.result.sites)} sites)"

    def view(self) -> View:
        """Its tables."""
        from roundelay.regression.shown.tables import tables_of

        return View(repr(self), tables_of(self.result))

    def made(self) -> dict[str, Any]:
        """The formula, and the family."""
        return {"parameters": f"{self.result.formula}, {self.result.family}"}

    @property
    def coefficients(self) -> dict[str, float]:
        """By their names, in the units of the data."""
        return {term.name: term.estimate for term in self.result.terms}

    def summary(self) -> str:
        """All tables as text."""
        from roundelay.regression.shown.printed import printed

        return printed(self.result)

    def report(self) -> str:
        """All tables and pictures as one file of HTML."""
        from roundelay.regression.shown.report import report

        return report(self.result, self.study.regression)

    def predict(self, frame: pd.DataFrame, link: bool = False) -> pd.DataFrame:
        """For each row what is predicted, and the interval of the mean where it is known; with `link` the linear predictor."""
        from roundelay.regression.predicting import predictions

        return predictions(self.study.regression, self.result, frame, link)

    def to_sklearn(self) -> Any:
        """A fitted pipeline of scikit-learn, which takes data frames with these columns."""
        from roundelay.regression.predicting import as_sklearn

        return as_sklearn(self.study.regression, self.result)


def glm(
    formula: str,
    frames: Mapping[str, pd.DataFrame],
    family: str = "gaussian",
    *,
    references: Mapping[str, str] | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
    **planned: Any,
) -> Fit:
    """Fit a formula to the rows of several sites, by their names, as a ring of them would.

    `references` names the reference level of a column, where it is not the first; `missing` says what is done with rows that have an
    empty cell. All else is as a `Regression` has it: link, errors, ridge, lasso, by, table_one, diagnostics, heterogeneity, least.
    """
    if not isinstance(frames, Mapping) or not frames:
        raise ValueError(
            'frames must be a dictionary of data frames by the names of their sites, such as {"oslo": frame, "bergen": other}.'
        )
    columns = columns_of(list(frames.values()), formula, references or {}, str(planned.get("by", "")))
    regression = Regression(formula, columns, family, **planned)
    return fit({name: rows_of(regression, frame, name, missing) for name, frame in frames.items()}, regression)


def fit(sites: Mapping[str, SiteRows], regression: Regression) -> Fit:
    """Form all sums, find the point between them, and reckon the result."""
    study, rows = Study(regression), list(sites.values())
    totals: list[Vector] = []

    def form_next(point: Vector | None = None) -> None:
        known = study.known(tuple(totals), len(rows), point)
        totals.append(np.sum([study.summand(one, known) for one in rows], axis=0))

    for _ in range(study.before):
        form_next()
    known = study.known(tuple(totals), len(rows))
    found, slopes, questions = _minimiser(study, rows, known)
    for _ in AFTER:
        form_next(found.point)
    known, chosen = study.known(tuple(totals), len(rows), found.point), getattr(found, "chosen", None)
    result = result_of(study, known, tuple(sites), questions, found.converged, chosen)
    return Fit(study, known, replace(result, slopes=slopes))


def _minimiser(study: Study, rows: Sequence[SiteRows], known: Known) -> tuple[Found, tuple[float, ...], int]:
    """The point, how far each question was from it, and how many there were."""
    problem = problem_of([study.function(one, known) for one in rows])
    least, why = no_minimum(known)
    goal = Goal(
        problem.dim, len(rows), study.regulariser(len(rows)), TOLERANCE, start=study.start(known), least=least, why_none=why, most=MOST_LAPS,
    )  # fmt: skip
    optimiser = study.optimiser(NormalEquations() if study.regression.is_quadratic else Newton())
    folds = [study.folds(one, known) for one in rows] if study.regression.folds else []
    asking, place, questions = optimiser.questions(goal), Place(goal.origin, np.zeros(problem.dim)), 0
    question, slopes = next(asking), []
    while True:
        questions += 1
        place = question.moved(place)
        if question.asked == Asked.FOLDS:
            assert question.beside is not None
            numbers = np.sum([site(question.beside) for site in folds], axis=0)
        else:
            numbers = answers(problem, question.asked, place).sum(axis=0)
        total = total_of(question.asked, numbers, problem.dim)
        if question.asked in GRADIENTS and not folds:  # those of folds are of other functions
            slopes.append(goal.residual(place.point, total.gradient))
        try:
            question = asking.send(total)
        except StopIteration as end:
            return end.value, tuple(slopes), questions
        except NoMinimiserError as error:
            raise StudyError(str(error)) from None


# ---------------------------------------------------------------- data frames


def columns_of(
    frames: Sequence[pd.DataFrame], formula: str, references: Mapping[str, str] | None = None, by: str = ""
) -> tuple[Column, ...]:
    """What kind of values the columns that a formula names have, in the order of the first frame; a level is there that any frame has."""
    import pandas as pd

    sought, as_levels = names_in(formula) | {by}, factors_in(formula) | {by}
    found = []
    for name in (name for name in frames[0].columns if name in sought):
        for number, frame in enumerate(frames):
            if name not in frame.columns:
                raise ValueError(
                    f"The data frame {number + 1} has no column {name!r}: give it to all of them, or leave it out of the formula."
                )
        columns = [frame[name] for frame in frames]
        if name not in as_levels and all(pd.api.types.is_datetime64_any_dtype(one) for one in columns):
            found.append(Column(name, values="date"))
        elif name not in as_levels and all(pd.api.types.is_numeric_dtype(one) for one in columns):
            found.append(Column(name))
        else:
            words = {word for one in columns for word in words_of(one).dropna()}
            found.append(Column(name, values="levels", levels=_with_reference(in_order(words), name, references or {})))
    return tuple(found)


def words_of(column: pd.Series) -> pd.Series:
    """The levels of a column in words: a whole number without its point."""

    def word(value: Any) -> Any:
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        return str(int(value)) if whole else str(value)

    return column.astype(object).map(word, na_action="ignore")


def _with_reference(levels: Sequence[str], name: str, references: Mapping[str, str]) -> tuple[str, ...]:
    first = references.get(name)
    if first is None:
        return tuple(levels)
    if first not in levels:
        raise ValueError(
            f"The column {name!r} has no level {first!r}, which is to be its reference: the levels are {', '.join(levels)}."
        )
    return (first, *(level for level in levels if level != first))


def rows_of(regression: Regression, frame: pd.DataFrame, name: str = "", missing: str = "refuse") -> SiteRows:
    """The rows of a data frame, as a regression takes them."""
    import pandas as pd

    made = {}
    for column in regression.columns:
        values = frame[column.name]
        if column.values == "levels":
            made[column.name] = pd.Series(pd.Categorical(words_of(values), list(column.levels)), frame.index)
        elif column.values == "date":
            made[column.name] = (values - pd.Timestamp(0)).dt.total_seconds() / 86400.0
        else:
            made[column.name] = values.astype(np.float64)
    whole = pd.DataFrame(made, index=frame.index)
    gaps = whole.isna()
    if gaps.to_numpy().any() and missing == "refuse":
        lacking = ", ".join(f"{column!r} ({count})" for column, count in gaps.sum().items() if count)
        raise ValueError(
            f'The rows of {name or "a site"} have empty cells in {lacking}: fill them in, or give missing="drop".'
        )
    kept = whole[~gaps.any(axis=1)]
    return SiteRows(
        regression, kept, len(whole) - len(kept), tuple(int(gaps[column.name].sum()) for column in regression.columns)
    )
