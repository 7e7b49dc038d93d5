"""What a regression over the rows of all sites came to: numbers alone, as people print them. Tables, files, reports and pages show this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Term:
    """A coefficient, in the units of the data: its standard error, its z or t, how likely so much is by chance, and its interval.

    `ratio` is e^coefficient with its interval, where the family has a name for it. `inflation` is how many times as large the variance is
    as it would be if no other predictor explained this one. What is not known, as the error of a coefficient that was shrunk, is None.
    """

    name: str
    estimate: float
    std_error: float | None = None
    statistic: float | None = None
    p_value: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    inflation: float | None = None


@dataclass(frozen=True)
class Missing:
    """How many rows of all sites lacked a column; None where they are fewer than are shown."""

    column: str
    rows: int | None


# ---------------------------------------------------------------- how well it fits


@dataclass(frozen=True)
class Bin:
    """Rows whose prediction lies between two bounds: how many (weights count), the mean prediction and the mean of what was observed.

    Groups of few rows with the outcome or without it are joined with the next. In models before format 7 all three are None where the rows are few.
    """

    low: float
    high: float
    rows: float | None
    predicted: float | None
    observed: float | None


@dataclass(frozen=True)
class Roc:
    """True against false positives, from rows counted in bins of their score, which are joined where they have few rows with the outcome or without.

    `area` is that of all bins, to three decimals; where hardly any are joined, that of this curve.
    """

    false_positive: tuple[float, ...]
    true_positive: tuple[float, ...]
    area: float


@dataclass(frozen=True)
class Histogram:
    """How many rows lie between neighbouring edges; None where they are fewer than are shown, or where such a number would follow. The first and the last bin are open."""

    edges: tuple[float, ...]
    counts: tuple[int | None, ...]


@dataclass(frozen=True)
class Heterogeneity:
    """Whether the sites' own estimates of a coefficient differ by more than chance: Cochran's Q of `sites` sites, its p, and I² in parts of 1."""

    term: str
    sites: int
    q: float
    p_value: float
    i_squared: float


@dataclass(frozen=True)
class SurvivalPoint:
    """The end of a time bin: rows at risk when it began, events in it, and what part survives it, with its interval.

    Bins of few events are joined with the next. In models before format 7 the numbers of such bins are None.
    """

    time: float
    at_risk: float | None
    events: float | None
    survival: float
    low: float
    high: float


@dataclass(frozen=True)
class Strength:
    """A point of the path on which a penalty was chosen: by what the planned one was multiplied, and the mean loss of rows left out.

    `error` is the standard error of that mean over the folds, `slopes` how many coefficients were not 0 on the average.
    """

    factor: float
    loss: float
    error: float
    slopes: float


# ---------------------------------------------------------------- who was looked at


@dataclass(frozen=True)
class Cell:
    """What Table 1 has for one group: a count and its part of the group, or mean, deviation and three quartiles. None where too few."""

    count: int | None
    part: float | None = None
    mean: float | None = None
    deviation: float | None = None
    quartiles: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class TableOneRow:
    """A line of Table 1: a column of numbers, or one level of a column of levels; a cell for each group, the last for all rows."""

    column: str
    level: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class TableOne:
    """Who was looked at: `groups` names the groups, the last of which is everybody; `rows` has how many rows each has."""

    by: str
    groups: tuple[str, ...]
    rows: tuple[int | None, ...]
    lines: tuple[TableOneRow, ...]
    least: int


# ---------------------------------------------------------------- all of it


@dataclass(frozen=True)
class Result:
    """A regression as it is published.

    `family` and `link` are words such as "binomial" and "logit"; `response` and `formula` are as they were planned. `letter` says whether the
    statistics are z or t, `errors` how the standard errors were formed, in words, and `ratio` what e^coefficient is ("odds ratio"; empty
    where it is nothing). `rows` counts rows, `events` those with the outcome (None where that is no count). `fit_name` says what
    `fit` is: "R²" or "McFadden's R²". `notes` are sentences that a reader must know, such as that an outcome is separated. Where the strength of a penalty was chosen
    by rows left out, `path` has all that were tried and `strength` the one that was taken. `knots` has those of each spline, as it is written in the formula, and `covariance` that of the coefficients, where they have errors and are not too many. `slopes` says how large
    the mean gradient was at each question.
    """

    formula: str
    response: str
    family: str
    link: str
    terms: tuple[Term, ...]
    letter: Literal["z", "t"]
    errors: str
    ratio: str
    level: float
    rows: int
    events: int | None
    sites: tuple[str, ...]
    degrees: int
    log_likelihood: float
    deviance: float | None
    null_deviance: float | None
    dispersion: float
    aic: float
    bic: float
    fit: float | None
    fit_name: str
    questions: int
    converged: bool
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    table_one: TableOne | None = None
    calibration: tuple[Bin, ...] = ()
    roc: Roc | None = None
    residuals: Histogram | None = None
    heterogeneity: tuple[Heterogeneity, ...] = ()
    survival: tuple[SurvivalPoint, ...] = ()
    path: tuple[Strength, ...] = ()
    strength: float | None = None
    knots: tuple[tuple[str, tuple[float, ...]], ...] = ()
    covariance: tuple[tuple[float, ...], ...] = ()
    slopes: tuple[float, ...] = ()
