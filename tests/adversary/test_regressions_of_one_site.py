"""Whoever plans a regression chooses units and levels, which may make a sum over all sites that of one: each attack works on the totals, and
is refused by the usual policy of the site that it is aimed at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from roundelay.agents.agreement.policy import Policy, refused_counts, refused_rows
from roundelay.regression.columns import Column, Conversion
from roundelay.regression.regression import Regression
from roundelay.regression.rows import SiteRows
from roundelay.regression.study import Study
from roundelay.regression.sums import Known

SITES, VICTIM = 5, 2
AGE, ILL = Column("age", "years"), Column("ill")
AREA = Column("area", values="levels", levels=("North", "South", "West"))


def frames() -> list[pd.DataFrame]:
    """People of 18 to 90 years; only at the victim some live in the West."""
    rng = np.random.default_rng(11)
    found = []
    for site in range(SITES):
        age = rng.integers(18, 90, 60).astype(float)
        areas = rng.choice(["North", "South"] + ["West"] * (site == VICTIM), 60)
        found.append(
            pd.DataFrame(
                {"age": age, "ill": rng.integers(0, 2, 60).astype(float), "area": pd.Categorical(areas, AREA.levels)}
            )
        )
    return found


def known_of(sites: list[SiteRows], until: str) -> Known:
    """What everybody knows after the sums up to one of a name."""
    study = Study(sites[0].regression)
    known = study.known((), len(sites))
    while not known.has(until):
        total: Any = np.sum([study.summand(one, known) for one in sites], axis=0)
        known = study.known((*known.totals, total), len(sites))
    return known


def test_a_false_factor_lifts_one_site_out_of_the_sum() -> None:
    """The victim alone has months: by the factor that is planned its sum is told to many digits, whatever the others add."""
    data, factor = frames(), 1e9
    planned = replace(AGE, conversions=(Conversion("months", factor),))
    regression = Regression("ill ~ age", (planned, ILL), "gaussian")
    in_months = data[VICTIM].assign(age=data[VICTIM]["age"] * 12.0)
    sites = [SiteRows(regression, frame[["age", "ill"]]) for frame in data]
    sites[VICTIM] = SiteRows(
        regression, in_months.assign(age=in_months["age"] * factor)[["age", "ill"]], converted=("age [years] from months by 1e+09·x",)
    )  # fmt: skip
    told = known_of(sites, "sums").told("sums")["age"].sum()
    assert round(told / factor) == in_months["age"].sum()
    (found,) = refused_rows(Policy(), sites[VICTIM])
    assert "by 1e+09·x at this site" in found and "stand out of every sum" in found
    assert not any(refused_rows(Policy(), one) for site, one in enumerate(sites) if site != VICTIM)


def test_a_level_that_one_site_has_tells_its_sums() -> None:
    data = frames()
    regression = Regression("ill ~ age + area", (AGE, ILL, AREA), "gaussian")
    sites = [SiteRows(regression, frame) for frame in data]
    place = regression.design_names.index("area[T.West]")
    known = known_of(sites, "moments")
    own = data[VICTIM]
    assert known.told("moments")["explained"][place] == own.loc[own["area"] == "West", "ill"].sum()
    counted = known_of(sites, "counts")  # when this much is told, nothing else is
    assert not counted.has("sums") and not counted.has("moments")
    found = [refused_counts(Policy(), counted, one) for one in sites]
    assert [bool(said) for said in found] == [site == VICTIM for site in range(SITES)]
    assert "the level 'West' of area" in found[VICTIM][0]
