"""Results to be shown: fits of pooled data by statsmodels and lifelines, and the same with markup in every word."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import lifelines
import numpy as np
import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf
from lifelines.datasets import load_rossi
from scipy.stats import chi2
from statsmodels.stats.outliers_influence import variance_inflation_factor

from roundelay.regression.result import (
    Bin,
    Cell,
    Heterogeneity,
    Histogram,
    Missing,
    Result,
    Roc,
    SurvivalPoint,
    TableOne,
    TableOneRow,
    Term,
)  # fmt: skip

SITES = ("Bergen", "Oslo", "Tromsø", "Trondheim", "Stavanger")
FORMULA = "arrest ~ fin + age + race + wexp + mar + paro + prio"
HOSTILE = "\"><img src=x onerror=fooled()><script>fooled()</script></style></title></svg><!-- & ' `]]> \x1b[2J\u202e"


@cache
def rossi() -> pd.DataFrame:
    return load_rossi()


@cache
def logit() -> Any:
    return smf.glm(FORMULA, rossi(), family=sm.families.Binomial()).fit()


def binomial(**changed: Any) -> Result:
    """Every part that a result of a yes-or-no outcome can have."""
    fit, frame = logit(), rossi()
    names, design = list(fit.params.index), fit.model.exog
    interval = fit.conf_int()
    inflation = {name: variance_inflation_factor(design, place) for place, name in enumerate(names) if place}
    terms = tuple(
        Term(
            name, fit.params[name], fit.bse[name], fit.tvalues[name], fit.pvalues[name], interval[0][name], interval[1][name],
            *(np.exp((fit.params[name], interval[0][name], interval[1][name])).tolist()), inflation.get(name),
        )
        for name in names
    )  # fmt: skip
    chances, outcome = fit.fittedvalues.to_numpy(), frame["arrest"].to_numpy()
    result = Result(
        formula=FORMULA, response="arrest", family="binomial", link="logit", terms=terms, letter="z", errors="of the model",
        ratio="odds ratio", level=0.95, rows=len(frame), events=int(outcome.sum()), sites=SITES, degrees=int(fit.df_resid),
        log_likelihood=fit.llf, deviance=fit.deviance, null_deviance=fit.null_deviance, dispersion=1.0, aic=fit.aic,
        bic=float(-2.0 * fit.llf + np.log(len(frame)) * len(names)), fit=1.0 - fit.llf / fit.llnull, fit_name="McFadden's R²",
        questions=6, converged=True, notes=("The level 'paro' has few rows at two sites.",),
        missing=(Missing("age", 12), Missing("prio", None)), table_one=_table_one(frame), calibration=_calibration(chances, outcome),
        roc=_roc(chances, outcome), residuals=_residuals(fit), heterogeneity=_heterogeneity(),
    )  # fmt: skip
    return dataclasses.replace(result, **changed)


def cox() -> Result:
    """A regression of survival."""
    frame = rossi()
    fit = lifelines.CoxPHFitter().fit(frame, "week", "arrest")
    table = fit.summary
    terms = tuple(
        Term(
            str(name), row["coef"], row["se(coef)"], row["z"], row["p"], row["coef lower 95%"], row["coef upper 95%"],
            row["exp(coef)"], row["exp(coef) lower 95%"], row["exp(coef) upper 95%"],
        )
        for name, row in table.iterrows()
    )  # fmt: skip
    meier = lifelines.KaplanMeierFitter().fit(frame["week"], frame["arrest"])
    points = []
    for time in range(5, 56, 5):
        low, high = meier.confidence_interval_.loc[:time].iloc[-1]
        ended = frame[(frame["week"] > time - 5) & (frame["week"] <= time)]["arrest"].sum()
        at_risk = float((frame["week"] > time - 5).sum())
        points.append(
            SurvivalPoint(
                float(time), at_risk, None if time == 20 else float(ended), float(meier.predict(time)), low, high
            )
        )
    formula = "Surv(week, arrest) ~ fin + age + race + wexp + mar + paro + prio"
    return binomial(
        formula=formula, response="Surv(week, arrest)", family="cox", link="", terms=terms, ratio="hazard ratio", deviance=None,
        null_deviance=None, fit=None, fit_name="", calibration=(), roc=None, residuals=None, heterogeneity=(), survival=tuple(points),
        log_likelihood=fit.log_likelihood_,
    )  # fmt: skip


def hostile(value: Any) -> Any:
    """The same with markup, and what moves a cursor, in every word that is another's."""
    if isinstance(value, str):
        return HOSTILE + value
    if isinstance(value, tuple):
        return tuple(map(hostile, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = ("letter", "fit_name", "ratio")
        return type(value)(
            **{
                each.name: getattr(value, each.name) if each.name in own else hostile(getattr(value, each.name))
                for each in dataclasses.fields(value)
            }
        )
    return value


def _table_one(frame: pd.DataFrame) -> TableOne:
    parts = (frame[frame["fin"] == 0], frame[frame["fin"] == 1], frame)
    quartiles = [tuple(part["age"].quantile([0.25, 0.5, 0.75])) for part in parts]
    age = tuple(
        Cell(len(part), None, part["age"].mean(), part["age"].std(), each)
        for part, each in zip(parts, quartiles, strict=True)
    )  # type: ignore[arg-type]
    married = tuple(Cell(int(part["mar"].sum()), part["mar"].mean()) for part in parts)
    lines = (
        TableOneRow("age", "", age),
        TableOneRow("mar", "yes", married),
        TableOneRow("mar", "unknown", (Cell(None), Cell(7, 0.03), Cell(None))),
    )
    return TableOne("fin", ("no", "yes", "all"), tuple(map(len, parts)), lines, 5)


def _calibration(chances: Any, outcome: Any) -> tuple[Bin, ...]:
    edges = np.quantile(chances, np.linspace(0.0, 1.0, 11))
    edges[0], edges[-1] = 0.0, 1.0
    place = np.clip(np.searchsorted(edges, chances, side="right") - 1, 0, 9)
    found = [
        Bin(edges[k], edges[k + 1], float((place == k).sum()), chances[place == k].mean(), outcome[place == k].mean())
        for k in range(9)
    ]
    return (*found, Bin(edges[9], edges[10], None, None, None))


def _roc(chances: Any, outcome: Any) -> Roc:
    cuts = np.linspace(1.0, 0.0, 101)
    false = np.array([(chances[outcome == 0] >= cut).mean() for cut in cuts])
    true = np.array([(chances[outcome == 1] >= cut).mean() for cut in cuts])
    return Roc(tuple(false), tuple(true), float(np.trapezoid(true, false)))


def _residuals(fit: Any) -> Histogram:
    edges = np.arange(-13, 14) / 3.0
    counts = np.histogram(np.clip(fit.resid_pearson, edges[0] + 1e-9, edges[-1] - 1e-9), edges)[0]
    return Histogram(tuple(edges), tuple(None if 0 < one < 5 else int(one) for one in counts))


def _heterogeneity() -> tuple[Heterogeneity, ...]:
    return tuple(
        Heterogeneity(name, 5, q, float(chi2.sf(q, 4)), max(0.0, 1.0 - 4.0 / q))
        for name, q in (("fin", 3.2), ("age", 12.8))
    )
