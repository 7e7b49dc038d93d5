"""A plan in another unit asks for the same rows under another name: the ledger and the limits of two runs know them again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roundelay.agents.agreement.differencing import OwnRows, findings
from roundelay.agents.agreement.ledger import Added
from roundelay.agents.agreement.plan import Task
from roundelay.agents.data.marks import Marked
from roundelay.agents.data.reading import read_site_rows
from roundelay.agents.data.regressing import RegressionFit
from roundelay.regression.columns import Column, Conversion
from roundelay.regression.regression import Regression
from roundelay.regression.singled_out import between

POUNDS = 1.0 / 0.45359237
WEIGHT, OUTCOME = Column("weight", "kg"), Column("outcome")
IN_POUNDS = replace(WEIGHT, unit="lb", conversions=(Conversion("kg", POUNDS),))


def fit_of(file: Path, weight: Column, formula: str = "outcome ~ weight") -> RegressionFit:
    regression = Regression(formula, (weight, OUTCOME), "gaussian")
    return RegressionFit(Task("regression", regression=regression), read_site_rows(file, regression))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    path = tmp_path / "oslo.csv"
    table = pd.DataFrame({"weight [kg]": rng.integers(50, 120, 60) + 0.5, "outcome": rng.standard_normal(60)})
    table.to_csv(path, index=False)
    return path


def marked(fit: RegressionFit) -> Marked:
    return fit.marked(b"a key that stays at the site")


def sum_over(others: str, day: int, fit: RegressionFit) -> Added:
    assert fit.task.regression is not None
    weight, _ = fit.task.regression.columns
    return Added(
        datetime(2026, 3, day, tzinfo=UTC), f"{day:032x}", 0, "ab" * 32, tuple((name, name) for name in ("Oslo", *others)), fit.task.fits,
        (str(weight),), "outcome", "a fit", "sealed laps", 200, marked(fit).data,
    )  # fmt: skip


@pytest.mark.parametrize("at_accept", [True, False], ids=["at accept", "at the start"])
@pytest.mark.parametrize(("first", "then"), [(WEIGHT, IN_POUNDS), (IN_POUNDS, WEIGHT)], ids=["to pounds", "and back"])
def test_one_site_fewer_in_another_unit_is_one_site_fewer(
    first: Column, then: Column, at_accept: bool, file: Path
) -> None:
    """Whoever has both sums converts one of them, and takes the difference."""

    def unchanged(parts: object) -> int:
        raise AssertionError("no rows have changed")

    earlier, new = sum_over("abcd", 3, fit_of(file, first)), sum_over("abc", 4, fit_of(file, then))
    assert not earlier.columns <= new.columns
    found = findings("Oslo", [earlier], new, None if at_accept else OwnRows(unchanged, unchanged, 10))
    assert [one.subject for one in found if one.refuses] == ["d"]


def test_rows_are_the_same_whatever_the_unit_that_was_agreed_on(file: Path) -> None:
    """So that a person more is one row, and not other data."""
    before, after = (marked(fit_of(file, weight)).data for weight in (WEIGHT, IN_POUNDS))
    assert (before.marks, sorted(before.columns.values())) == (after.marks, sorted(after.columns.values()))
    earlier = sum_over("abcd", 3, fit_of(file, WEIGHT))
    file.write_text(file.read_text() + "81.5,0.25\n")
    new = sum_over("abcd", 4, fit_of(file, IN_POUNDS))
    found = [
        one
        for one in findings("Oslo", [earlier], new, OwnRows(lambda parts, columns: 1, lambda times, columns: None, 10))
        if one.refuses
    ]
    assert found and {one.what for one in found} == {"own rows"}


@pytest.mark.parametrize("back", [False, True], ids=["to pounds", "and back"])
def test_limits_in_two_units_have_one_person_between_them(back: bool, file: Path) -> None:
    weights = np.sort(
        read_site_rows(file, Regression("outcome ~ weight", (WEIGHT, OUTCOME), "gaussian")).frame["weight"].unique()
    )
    low, high = weights[30] - 0.25, weights[31] - 0.25
    kg = fit_of(file, WEIGHT, f"outcome ~ I(weight > {low})").rows
    for limit, few in ((high, True), (low, False), (60.0, False)):
        lb = fit_of(file, IN_POUNDS, f"outcome ~ I(weight > {limit * POUNDS:.6f})").rows
        first, then = (lb, kg) if back else (kg, lb)
        assert bool(between(then, 10, [first.regression])) == few
