"""Data that ship with scikit-learn, statsmodels and lifelines, the regressions that are fitted to them, and what those libraries find."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

SPLITS = ("evenly", "by label", "90/10")


@dataclass(frozen=True)
class Pooled:
    """What another library finds in all rows: estimates, errors and p values by the names of the terms, deviance and log-likelihood."""

    estimate: pd.Series
    std_error: pd.Series
    p_value: pd.Series
    log_likelihood: float
    deviance: float | None = None


@dataclass(frozen=True)
class StudyCase:
    """A data set, a formula, and the other library's fit; `label` is the column by which rows are split."""

    name: str
    rows: Callable[[], pd.DataFrame]
    formula: str
    label: str
    pooled: Callable[[str, pd.DataFrame], Pooled]
    planned: Mapping[str, Any] = field(default_factory=dict)
    sites: int = 4


def split(rows: pd.DataFrame, how: str, label: str, sites: int) -> dict[str, pd.DataFrame]:
    """Which site has which rows."""
    rng, count = np.random.default_rng(0), len(rows)
    if how == "evenly":
        where = rng.permutation(count) % sites
    elif how == "by label":
        where = np.argsort(np.argsort(rows[label].to_numpy(), kind="stable"), kind="stable") * sites // count
    else:
        where = np.where(rng.random(count) < 0.9, 0, rng.integers(1, sites, count))
    return {f"site {number}": rows[where == number] for number in range(sites)}


# ---------------------------------------------------------------- data


def _sklearn(name: str) -> pd.DataFrame:
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    return frame.rename(columns=lambda column: column.replace(" ", "_").replace("/", "_"))


def _statsmodels(name: str) -> pd.DataFrame:
    from statsmodels import datasets

    return getattr(datasets, name).load_pandas().data


def diabetes() -> pd.DataFrame:
    return _sklearn("diabetes")


def breast_cancer() -> pd.DataFrame:
    return _sklearn("breast_cancer")


def wine() -> pd.DataFrame:
    rows = _sklearn("wine")
    return rows.assign(grape=rows.target.map({0: "barolo", 1: "grignolino", 2: "barbera"}))


def digits() -> pd.DataFrame:
    """Three digits that are not told apart by a few points of the grid."""
    rows = _sklearn("digits")
    rows = rows[rows.target.isin([3, 8, 9])]
    return rows.assign(digit=rows.target.map({3: "three", 8: "eight", 9: "nine"}))


def star98() -> pd.DataFrame:
    return _statsmodels("star98")


def fair() -> pd.DataFrame:
    rows = _statsmodels("fair")
    return rows.assign(any=(rows.affairs > 0.0).astype(int))


def randhie() -> pd.DataFrame:
    return _statsmodels("randhie")


def scotland() -> pd.DataFrame:
    return _statsmodels("scotland")


def rossi() -> pd.DataFrame:
    from lifelines.datasets import load_rossi

    return load_rossi()


# ---------------------------------------------------------------- other libraries


def _named(numbers: pd.Series) -> pd.Series:
    """With our names: a whole number as a level has no point."""
    return numbers.rename(lambda name: re.sub(r"\.0\]", "]", name))


def ols(formula: str, rows: pd.DataFrame, **errors: Any) -> Pooled:
    import statsmodels.formula.api as smf

    found = smf.ols(formula, rows).fit(**errors)
    return Pooled(_named(found.params), _named(found.bse), _named(found.pvalues), found.llf, found.ssr)


def glm_of(family: str, link: str = "") -> Callable[..., Pooled]:
    """Statsmodels with its tolerance at the end of its digits, since its errors are those of the step before."""

    def fitted(formula: str, rows: pd.DataFrame, **errors: Any) -> Pooled:
        import statsmodels.api as sm
        import statsmodels.formula.api as smf

        counts = re.fullmatch(r"cbind\((\w+), (\w+)\) ~ (.*)", formula)
        kind = getattr(sm.families, family)(getattr(sm.families.links, link)() if link else None)
        options = {"tol": 1e-14, "tol_criterion": "params", "maxiter": 200, **errors}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = f"{counts[1]} + {counts[2]} ~ {counts[3]}" if counts else formula
            found = smf.glm(plain, rows, family=kind).fit(**options)
        return Pooled(_named(found.params), _named(found.bse), _named(found.pvalues), found.llf, found.deviance)

    return fitted


def mnlogit(formula: str, rows: pd.DataFrame, **errors: Any) -> Pooled:
    import statsmodels.formula.api as smf

    response, right = formula.split(" ~ ")
    levels = sorted(rows[response].unique())
    coded = rows.assign(coded=pd.Categorical(rows[response], levels).codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = smf.mnlogit(f"coded ~ {right}", coded).fit(disp=0, method="newton", maxiter=100, tol=1e-15, **errors)

    def in_a_row(frame: pd.DataFrame) -> pd.Series:
        return pd.concat(
            [
                frame.iloc[:, one].rename(lambda name, one=one: f"{levels[one + 1]}: {name}")
                for one in range(len(levels) - 1)
            ]
        )

    return Pooled(in_a_row(found.params), in_a_row(found.bse), in_a_row(pd.DataFrame(found.pvalues)), found.llf)


def cox(formula: str, rows: pd.DataFrame) -> Pooled:
    """Strata are the sites, which the column `stratum` names."""
    from lifelines import CoxPHFitter

    time, event = re.match(r"Surv\((\w+), (\w+)\)", formula).groups()  # type: ignore[union-attr]
    found = CoxPHFitter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.fit(rows, time, event, strata=["stratum"], fit_options={"precision": 1e-13})
    return Pooled(found.params_, found.standard_errors_, found.summary["p"], found.log_likelihood_)


_STAR = "LOWINC + PERASIAN + PERBLACK + PERHISP + PERMINTE + AVYRSEXP + AVSALK + PERSPENK + PTRATIO + PCTAF + PCTCHRT + PCTYRRND"

STUDIES = (
    StudyCase("diabetes", diabetes, "target ~ age + sex + bmi + bp + s1 + s2 + s3 + s4 + s5 + s6", "target", ols),
    StudyCase(
        "breast cancer", breast_cancer, "target ~ mean_radius + mean_texture + mean_smoothness + mean_symmetry", "target",
        glm_of("Binomial"), {"family": "binomial"},
    ),
    StudyCase("wine", wine, "grape ~ alcohol + hue", "target", mnlogit, {"family": "multinomial"}, 3),
    StudyCase("digits", digits, "digit ~ pixel_2_4 + pixel_4_3 + pixel_5_5", "target", mnlogit, {"family": "multinomial"}, 3),
    StudyCase("star98", star98, f"cbind(NABOVE, NBELOW) ~ {_STAR}", "NABOVE", glm_of("Binomial"), {"family": "binomial"}),
    StudyCase(
        "fair", fair, "any ~ rate_marriage + age + yrs_married + children + religious + educ + C(occupation)", "any",
        glm_of("Binomial"), {"family": "binomial"},
    ),
    StudyCase(
        "fair, probit", fair, "any ~ rate_marriage + age * religious", "any", glm_of("Binomial", "Probit"),
        {"family": "binomial", "link": "probit"},
    ),
    StudyCase(
        "randhie", randhie, "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp", "mdvis",
        glm_of("Poisson"), {"family": "poisson"},
    ),
    StudyCase(
        "scotland", scotland, "YES ~ COUTAX + UNEMPF + MOR + ACT + GDP + AGE + COUTAX_FEMALEUNEMP", "YES", glm_of("Gamma", "Log"),
        {"family": "gamma"}, 3,
    ),
    StudyCase("rossi", rossi, "Surv(week, arrest) ~ fin + age + race + wexp + mar + paro + prio", "week", cox, {"family": "cox"}),
)  # fmt: skip


def pooled_fit(case: StudyCase, sites: Mapping[str, pd.DataFrame]) -> Pooled:
    """What the other library finds in the rows of all sites."""
    rows = pd.concat([one.assign(stratum=name) for name, one in sites.items()])
    return case.pooled(case.formula, rows if case.planned.get("family") == "cox" else rows.drop(columns="stratum"))


def farthest(result: Any, pooled: Pooled) -> dict[str, float]:
    """How far a result is from the other library's: estimates in standard errors, errors and deviance in parts of themselves."""
    names = [term.name for term in result.terms]
    estimate, error, p = (
        np.array([getattr(term, what) for term in result.terms]) for what in ("estimate", "std_error", "p_value")
    )
    found = {
        "estimate": float(np.abs((estimate - pooled.estimate[names]) / pooled.std_error[names]).max()),
        "std_error": float(np.abs(error / pooled.std_error[names] - 1.0).max()),
        "p_value": float(np.abs(p - pooled.p_value[names]).max()),
        "log_likelihood": abs(result.log_likelihood / pooled.log_likelihood - 1.0),
    }
    return found if pooled.deviance is None else found | {"deviance": abs(result.deviance / pooled.deviance - 1.0)}
