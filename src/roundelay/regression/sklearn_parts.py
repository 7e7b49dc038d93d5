"""The parts of which a fitted model is made as one of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.regression.columns import Column
from roundelay.regression.regression import INTERCEPT, Regression
from roundelay.regression.result import Result

try:
    from sklearn import linear_model
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.pipeline import Pipeline
except ImportError:
    raise ImportError(
        "An estimator of scikit-learn needs the package scikit-learn: install it by pip install scikit-learn."
    ) from None

if TYPE_CHECKING:
    import pandas as pd


class DesignOf(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The columns of a regression's design but the constant, from a data frame with its predictors."""

    def __init__(self, regression: Regression, result: Result) -> None:
        self.regression = regression
        self.result = result

    def fit(self, X: pd.DataFrame, y: Any = None) -> DesignOf:  # noqa: N803
        """There is nothing to learn: levels and knots were agreed on."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: pd.DataFrame) -> Matrix:  # noqa: N803
        """A column for each coefficient."""
        from roundelay.regression.predicting import design_of, prepared

        kept = [place for place, name in enumerate(self.regression.design_names) if name != INTERCEPT]
        return design_of(self.regression, self.result, prepared(self.regression, X))[:, kept]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the coefficients."""
        return np.array([name for name in self.regression.design_names if name != INTERCEPT], dtype=object)


class Chosen(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Some columns of a data frame, by name and unit."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def fit(self, X: pd.DataFrame, y: Any = None) -> Chosen:  # noqa: N803
        """There is nothing to learn."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: pd.DataFrame) -> Matrix:  # noqa: N803
        """The columns, in the model's order."""
        from roundelay.regression.predicting import numbers_of

        return numbers_of(X, self.columns)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The columns with their units."""
        return np.array([str(column) for column in self.columns], dtype=object)


def fitted(kind: str, slopes: Matrix, constants: Vector, classes: Sequence[Any] = ()) -> Any:
    """An estimator with these coefficients, one row of `slopes` for each level but the reference."""
    width = slopes.shape[1]
    if width == 0:
        raise ValueError("scikit-learn has no model of a constant alone: use predict.")
    model = getattr(linear_model, kind)()
    labels = np.array(classes or (0, 1))
    is_classifier = kind == "LogisticRegression"
    # What a fit leaves beside the coefficients follows from how many columns and classes there are.
    count = len(labels) if is_classifier else 2
    model.fit(np.eye(count, width), labels if is_classifier else np.ones(count))
    if is_classifier:
        model.classes_ = labels
        many = len(labels) > 2
        model.coef_ = np.vstack([np.zeros((1, width)), slopes]) if many else slopes.copy()
        model.intercept_ = np.concatenate([[0.0], constants]) if many else constants.copy()
    else:
        model.coef_, model.intercept_ = slopes[0].copy(), float(constants[0])
    return model


def piped(columns: Any, model: Any) -> Any:
    """The columns, and the model on them."""
    return Pipeline([("columns", columns), ("model", model)])
