"""What a fitted regression predicts for other rows, how sure it is of the mean, and the same as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.special import expit, softmax

from roundelay.kernels import Matrix, Vector
from roundelay.regression.columns import Column, column_of
from roundelay.regression.pooled import words_of
from roundelay.regression.regression import COX, INTERCEPT, MULTINOMIAL, Regression
from roundelay.regression.result import Result

if TYPE_CHECKING:
    import pandas as pd

# A column of predictions, and the ends of its interval.
PREDICTED, LOW, HIGH = "predicted", "low", "high"
HAZARD = "hazard ratio"
# So many levels are named.
NAMED = 12


def predictors(regression: Regression) -> tuple[Column, ...]:
    """The columns that rows must have to be predicted."""
    return tuple(column for column in regression.columns if column.name in regression.terms.predictors)


def predictions(regression: Regression, result: Result, frame: pd.DataFrame, link: bool = False) -> pd.DataFrame:
    """For each row of a data frame what is predicted, with the interval of the mean where the errors of the coefficients are known.

    The columns are "predicted", "low" and "high"; of a multinomial response there is one for each level, as "predicted yes". Of
    survival it is the "hazard ratio", against a row whose numbers are all 0 and whose levels are the references. With `link` it is the
    linear predictor.
    """
    import pandas as pd

    check_can_predict(regression)
    rows = prepared(regression, frame)
    design = design_of(regression, result, rows)
    covariance = np.array(result.covariance) if result.covariance else None
    coefficients = np.array([term.estimate for term in result.terms]).reshape(regression.equations, -1)
    offset = (
        regression.terms.numbers(regression.terms.beside["offset"], rows)
        if "offset" in regression.terms.beside
        else 0.0
    )
    eta = design @ coefficients.T + np.reshape(offset, (-1, 1))
    far = _quantile(result)
    if regression.family == MULTINOMIAL:
        return pd.DataFrame(_of_levels(regression, design, eta, covariance, far, link), index=frame.index)
    columns = [eta[:, 0]]
    if covariance is not None:
        half = far * np.sqrt(np.maximum(_spread(design, covariance), 0.0))
        columns += [eta[:, 0] - half, eta[:, 0] + half]
    name = PREDICTED if link or regression.family != COX else HAZARD
    if not link:
        distribution = regression.distribution
        mean = np.exp if distribution is None else distribution.mean
        columns = [mean(one) for one in columns]
        if len(columns) == 3:  # where the mean falls with the predictor the ends change places
            columns[1:] = [np.minimum(*columns[1:]), np.maximum(*columns[1:])]
    return pd.DataFrame(dict(zip((name, LOW, HIGH), columns, strict=False)), index=frame.index)


def check_can_predict(regression: Regression) -> None:
    """Refuse a model that lacks what only its sites know."""
    if regression.absorbs_sites:
        raise ValueError(
            "This model has a constant for each site, which that site alone knows: nothing can be predicted without it. Plan it without site "
            "in the formula where predictions are wanted."
        )


def _spread(rows: Matrix, covariance: Matrix) -> Vector:
    """X'ΣX of each row."""
    return np.asarray(((rows @ covariance) * rows).sum(axis=1))


def _quantile(result: Result) -> float:
    law = stats.t(result.degrees) if result.letter == "t" else stats.norm()
    return float(law.ppf(0.5 + result.level / 2.0))


def _of_levels(
    regression: Regression, design: Matrix, eta: Matrix, covariance: Matrix | None, far: float, link: bool
) -> dict[str, Vector]:
    """The chance of each level; its interval is one of its log-odds."""
    whole = np.column_stack([np.zeros(len(eta)), eta])
    levels, found = regression.classes, {}
    if link:
        return {f"{PREDICTED} {level}": one for level, one in zip(levels, whole.T, strict=True)}
    chances = softmax(whole, axis=1)
    width = design.shape[1]
    for number, level in enumerate(levels):
        chance = chances[:, number]
        found[f"{PREDICTED} {level}"] = chance
        if covariance is None:
            continue
        # ∂ log(p/(1 − p))/∂η_j = (1 where j is the level, less p_j)/(1 − p)
        slopes = ((np.arange(1, len(levels)) == number) - chances[:, 1:]) / np.maximum(1.0 - chance, 1e-300)[:, None]
        along = np.einsum("rj,ri->rji", slopes, design).reshape(len(design), -1)
        assert along.shape[1] == width * regression.equations
        half = far * np.sqrt(np.maximum(_spread(along, covariance), 0.0))
        odds = np.log(np.maximum(chance, 1e-300)) - np.log(np.maximum(1.0 - chance, 1e-300))
        found |= {f"{LOW} {level}": expit(odds - half), f"{HIGH} {level}": expit(odds + half)}
    return found


# ---------------------------------------------------------------- rows


def prepared(regression: Regression, frame: pd.DataFrame) -> pd.DataFrame:
    """The predictors of a data frame as the model takes them; refused is whatever it does not know."""
    import pandas as pd

    made = {}
    for column in predictors(regression):
        values = chosen(frame, column)
        _refuse_gaps(values, column)
        if column.values == "levels":
            words = words_of(values)
            strange = ~words.isin(column.levels)
            if strange.any():
                known = ", ".join(column.levels[:NAMED]) + (", …" if len(column.levels) > NAMED else "")
                raise ValueError(
                    f"{_place(strange)} has a level in the column {str(column)!r} that the model does not know: it knows {known}."
                )
            made[column.name] = pd.Series(pd.Categorical(words, list(column.levels)), frame.index)
        else:
            made[column.name] = _numbers(values, column)
    return pd.DataFrame(made, index=frame.index)


def numbers_of(frame: pd.DataFrame, columns: Sequence[Column]) -> Matrix:
    """Columns of numbers, none of them empty, in this order."""
    found = []
    for column in columns:
        values = chosen(frame, column)
        _refuse_gaps(values, column)
        found.append(_numbers(values, column).to_numpy())
    return np.column_stack(found)


def _refuse_gaps(values: pd.Series, column: Column) -> None:
    gaps = values.isna()
    if gaps.any():
        count = int(gaps.sum())
        raise ValueError(
            f"{_place(gaps)} has no value in the column {str(column)!r} ({count:,} such row{'s' * (count > 1)}): fill it in, or leave such rows out."
        )


def chosen(frame: pd.DataFrame, column: Column) -> pd.Series:
    """The column of a data frame that the model means; its heading may have the unit, which must be the model's."""
    found = [name for name in frame.columns if column_of(str(name)).name == column.name]
    if len(found) != 1:
        what = "has no column" if not found else "has more than one column"
        raise ValueError(
            f"The data {what} {str(column)!r}, which the model needs{'' if not found else ' once'}: the columns must have the names of its formula."
        )
    unit = column_of(str(found[0])).unit
    if unit and unit != column.unit:
        wanted = f"in {column.unit}" if column.unit else "without a unit"
        raise ValueError(f"The column {column.name!r} is given in {unit}, but the model takes it {wanted}: convert it.")
    return frame[found[0]]


def _numbers(values: pd.Series, column: Column) -> pd.Series:
    import pandas as pd

    if column.values == "date" and not pd.api.types.is_numeric_dtype(values):
        days = pd.to_datetime(values, errors="coerce", utc=True)
        if days.isna().any():
            raise ValueError(
                f"{_place(days.isna())} has no date in the column {str(column)!r}: write it as 2024-12-31."
            )
        return (days - pd.Timestamp(0, tz="UTC")).dt.total_seconds() / 86400.0
    numbers = pd.to_numeric(values, errors="coerce").astype(np.float64)
    bad = ~numbers.between(-np.inf, np.inf, inclusive="neither")
    if bad.any():
        raise ValueError(f"{_place(bad)} has no finite number in the column {str(column)!r}: write one.")
    return numbers


def _place(bad: pd.Series) -> str:
    """Where it stands: in the file, where it comes from one; otherwise by the index."""
    index = bad.index
    return f"{str(index.name or 'row').capitalize()} {index[int(np.argmax(bad.to_numpy()))]}"


def design_of(regression: Regression, result: Result, rows: pd.DataFrame) -> Matrix:
    """A column for each coefficient of an equation."""
    if not len(rows):
        return np.zeros((0, len(regression.design_names)))
    if not len(rows.columns):  # nothing but a constant
        return np.ones((len(rows), len(regression.design_names)))
    names, matrix = regression.terms.design(rows, dict(result.knots))
    return np.ascontiguousarray(matrix[:, [names.index(name) for name in regression.design_names]])


# ---------------------------------------------------------------- scikit-learn


def as_sklearn(regression: Regression, result: Result) -> Any:
    """A fitted pipeline of scikit-learn: the columns of the design from a data frame, and the model on them."""
    from roundelay.regression.sklearn_parts import DesignOf, fitted, piped

    check_can_predict(regression)
    family = regression.distribution
    kind = (regression.family, "" if family is None else family.link)
    if kind not in AS_SKLEARN or "offset" in regression.terms.beside or regression.terms.response[0]:
        raise ValueError(
            f"scikit-learn has no model for {regression.in_words}: it has linear, logistic, multinomial, Poisson and gamma regression, without "
            "an offset. Use predict."
        )
    names = regression.design_names
    slopes = [place for place, name in enumerate(names) if name != INTERCEPT]
    table = np.array([term.estimate for term in result.terms]).reshape(regression.equations, -1)
    constants = table[:, names.index(INTERCEPT)] if regression.has_intercept else np.zeros(regression.equations)
    model = fitted(AS_SKLEARN[kind], table[:, slopes], constants, regression.classes)
    return piped(DesignOf(regression, result), model)


AS_SKLEARN = {
    ("gaussian", "identity"): "LinearRegression",
    ("binomial", "logit"): "LogisticRegression",
    (MULTINOMIAL, ""): "LogisticRegression",
    ("poisson", "log"): "PoissonRegressor",
    ("gamma", "log"): "GammaRegressor",
}
