"""A model from its file, with what people do with one: read it, print it, predict with it, hand it to scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from roundelay.agents.agreement.plan import CUSTOM
from roundelay.agents.data.models import StoredModel, load_model as read_stored
from roundelay.problems.row_problem import problem_named
from roundelay.regression import predicting
from roundelay.regression.columns import Column, column_of
from roundelay.regression.predicting import PREDICTED, numbers_of
from roundelay.regression.regression import INTERCEPT, Regression
from roundelay.regression.result import Result, Term
from roundelay.regression.shown.broom import Value, glance, tidy
from roundelay.regression.shown.printed import printed
from roundelay.regression.shown.report import Origin, Signed, report
from roundelay.regression.shown.tables import plain_coefficients, tables_of
from roundelay.shown.notebook import View
from roundelay.shown.numbers import printable
from roundelay.shown.show import Shown
from roundelay.shown.table import printed_table

if TYPE_CHECKING:
    import pandas as pd

# What models of rows are in scikit-learn, by the word of their problem.
AS_SKLEARN = {"least_squares": "LinearRegression", "logistic": "LogisticRegression"}

NOT_OF_A_FIT = (
    "The tables in this file are none that a fit comes to: they were changed, or written by another release. roundelay model verify says "
    "whether they are what the sites have signed."
)


def load_model(path: str | Path) -> LoadedModel:
    """Read the file of a model that a ring has fitted."""
    return LoadedModel(read_stored(path))


@dataclass(frozen=True, eq=False)
class LoadedModel(Shown):
    """A fitted model: of a formula with its `result`, of features with coefficients alone."""

    stored: StoredModel

    @property
    def result(self) -> Result | None:
        """The tables of a regression; None of a model without a formula."""
        return self.stored.result

    @property
    def regression(self) -> Regression | None:
        """What was planned, where there was a formula."""
        return self.stored.regression

    @property
    def pairs(self) -> tuple[tuple[str, float], ...]:
        """Each coefficient with its name, the constant last where there is one."""
        model = self.stored.model
        has_constant = model.kind != CUSTOM and bool(model.intercept)
        return (*model.coefficients, *(((INTERCEPT, model.intercept),) if has_constant else ()))

    @property
    def terms(self) -> tuple[Term, ...]:
        """The same as a result has them."""
        return self.result.terms if self.result is not None else tuple(Term(name, value) for name, value in self.pairs)

    # ------------------------------------------------------------ to be read

    def __repr__(self) -> str:
        return f"LoadedModel({len(self.terms)} coefficients, {len(self.stored.about.members)} sites)"

    def view(self) -> View:
        """Its tables."""
        tables = (plain_coefficients(self.pairs),) if self.result is None else tables_of(self.result)
        return View(self.stored.about.reason, tables)

    def summary(self) -> str:
        """All that there is to know of it, as text."""
        if self.result is not None:
            return _if_possible(lambda: printed(self._result))
        model, about = self.stored.model, self.stored.about
        what = f"A model of {model.target}, by" if model.target else "A model of"
        privacy = [] if about.privacy is None else [f"It keeps {about.privacy.words}"]
        head = f"{what} {len(about.members)} sites: {', '.join(about.members)}."
        return (
            "\n".join(
                [*map(printable, (head, about.reason, *privacy)), "", printed_table(plain_coefficients(self.pairs))]
            )
            + "\n"
        )

    def tidy(self) -> list[dict[str, Value]]:
        """A row for each coefficient, in broom's columns."""
        if self.result is not None:
            return tidy(self.result)
        return [{"term": name, "estimate": value} for name, value in self.pairs]

    def glance(self) -> dict[str, Value]:
        """The fit as a whole, in broom's columns."""
        if self.result is not None:
            return glance(self.result)
        return {
            "nobs": None if self.stored.about.standard is None else self.stored.about.standard.rows,
            "nsites": len(self.stored.about.members),
        }

    def report(self, signed: Signed | None = None) -> str:
        """One file of HTML; `signed` says what is known of the signatures of the sites."""
        if self.regression is None and self.result is None:
            raise ValueError(
                "This model was fitted without a formula, so that there is nothing to report but its coefficients: roundelay model show prints "
                "them. Plan a ring with --formula for tables and pictures."
            )
        result, about = self._result, self.stored.about
        known: Signed = signed or ("none" if about.end is None else "not checked")
        origin = Origin(about.run, about.epoch, about.ring_digest, about.reason, about.doubt, known)
        return _if_possible(lambda: report(result, self.regression, origin))

    # ------------------------------------------------------------ to be used

    def predict(self, frame: pd.DataFrame, link: bool = False) -> pd.DataFrame:
        """For each row what is predicted, and the interval of the mean where it is known; with `link` the linear predictor."""
        import pandas as pd

        if self.regression is not None:
            return predicting.predictions(self.regression, self._result, frame, link)
        self.check_predicts()
        model = self.stored.model
        eta = numbers_of(frame, self.features) @ np.array([value for _, value in model.coefficients]) + model.intercept
        chances = problem_named(model.kind).needs_labels and not link
        return pd.DataFrame({PREDICTED: scipy.special.expit(eta) if chances else eta}, index=frame.index)

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns that rows must have to be predicted."""
        if self.regression is not None:
            return predicting.predictors(self.regression)
        return tuple(column_of(name) for name, _ in self.stored.model.coefficients)

    def to_sklearn(self) -> Any:
        """A fitted pipeline of scikit-learn, which takes data frames with these columns."""
        if self.regression is not None:
            return predicting.as_sklearn(self.regression, self._result)
        self.check_predicts()
        from roundelay.regression.sklearn_parts import Chosen, fitted, piped

        model = self.stored.model
        if model.kind not in AS_SKLEARN:
            raise ValueError(f"scikit-learn has no model of the kind {model.kind}: use predict.")
        slopes = np.array([[value for _, value in model.coefficients]])
        return piped(Chosen(self.features), fitted(AS_SKLEARN[model.kind], slopes, np.array([model.intercept])))

    @property
    def _result(self) -> Result:
        if self.result is None:
            raise ValueError(
                "This fit was stopped before it was looked at, so that the file has no result: fit it to its end."
            )
        if self.regression is not None and not _belongs(self.result, self.regression):
            raise ValueError(NOT_OF_A_FIT)
        return self.result

    def check_predicts(self) -> None:
        """Refuse a model that says nothing of rows."""
        if self.stored.model.kind == CUSTOM:
            raise ValueError("This model is of an objective of the sites' own, which alone know what it predicts.")
        if self.regression is not None:
            if self.stored.format < 6 and self.regression.terms.splines:
                raise ValueError(
                    "This model has splines of an earlier release, which went on otherwise beyond their ends: predict by that release, or fit anew."
                )
            _ = self._result
            predicting.check_can_predict(self.regression)


def _if_possible(made: Callable[[], str]) -> str:
    """What is made of a result, where its numbers are of a kind that a fit can come to: a file may say anything."""
    try:
        return made()
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        raise ValueError(NOT_OF_A_FIT) from None


def _belongs(result: Result, regression: Regression) -> bool:
    """Whether a result has a coefficient for each unknown, and the knots of each spline."""
    knots, splines = dict(result.knots), regression.terms.splines
    return (
        tuple(term.name for term in result.terms) == regression.unknowns
        and {len(row) for row in (result.covariance, *result.covariance)} <= {0, regression.dim}
        and {name: len(ends) for name, ends in knots.items()} == {name: one.inside + 2 for name, one in splines.items()}
        and all(bool((np.diff(ends) > 0.0).all()) for ends in knots.values())
    )
