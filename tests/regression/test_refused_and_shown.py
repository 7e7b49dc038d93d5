"""What no fit could make sense of is named before it is tried; what few rows would tell is not shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import roundelay as rl
from roundelay.regression.columns import Column
from roundelay.regression.regression import Regression
from roundelay.regression.results import hidden_cells
from roundelay.regression.study import StudyError


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(
        {
            "age": rng.normal(50.0, 12.0, rows), "bmi": rng.gamma(20.0, 1.3, rows), "sex": rng.choice(["male", "female"], rows),
            "clinic": rng.choice(["north", "south", "east"], rows, p=[0.5, 0.48, 0.02]),
        }
    )  # fmt: skip
    made["ill"] = (rng.random(rows) < 1.0 / (1.0 + np.exp(-(made.age - 50.0) / 8.0))).astype(int)
    made["days"] = rng.exponential(30.0, rows).round(1) + 0.1
    return made


def sites(rows: pd.DataFrame, count: int = 3) -> dict[str, pd.DataFrame]:
    return {f"site {number}": rows[np.arange(len(rows)) % count == number] for number in range(count)}


# ---------------------------------------------------------------- named before the fit


@pytest.mark.parametrize(
    ("change", "formula", "family", "sentence"),
    [
        ({"half": lambda d: d.age / 2.0}, "bmi ~ age + half", "gaussian", "half follows from age: leave it out"),
        ({"sum": lambda d: d.age + d.bmi}, "days ~ age + bmi + sum", "gaussian", "sum follows from age, bmi"),
        ({"one": lambda d: 1.0}, "bmi ~ age + one", "gaussian", "one is the same in all rows"),
        ({"one": lambda d: 1e9}, "bmi ~ age + one", "gaussian", "one is the same in all rows"),
        ({"ill": lambda d: 1}, "ill ~ age", "binomial", "The outcome ill is the same in all rows of all sites"),
        ({"count": lambda d: 0}, "count ~ age", "poisson", "count is 0 in all rows of all sites"),
        (
            {"ill": lambda d: d.ill.where(d.sex == "female", 0)},
            "ill ~ sex + age",
            "binomial",
            "No row of any site with sex.T.male. has an outcome other than 0",
        ),
        (
            {"ill": lambda d: d.ill.where(d.sex == "female", 1)},
            "ill ~ age + sex",
            "binomial",
            "Every row of all sites with sex.T.male. has the outcome 1",
        ),
        (
            {"ill": lambda d: (d.age > 50.0).astype(int)},
            "ill ~ age",
            "binomial",
            "tell the outcomes of ill apart without an error",
        ),
        ({"event": lambda d: 0}, "Surv(days, event) ~ age", "cox", "ended with an event"),
        ({}, "ill ~ age + bs(ill, df=4)", "binomial", "bs.ill, df=4.... follows from"),
    ],
)
def test_what_can_not_be_fitted_is_named(change, formula, family, sentence):
    rows = people().assign(**change)
    with pytest.raises(ValueError, match=sentence) as refused:
        rl.glm(formula, sites(rows), family)
    assert str(refused.value).endswith(".")


def test_more_unknowns_than_rows():
    with pytest.raises(StudyError, match="have 4 complete rows, but the formula has 4 unknowns"):
        rl.glm("bmi ~ age + ill + days", sites(people(4), 2))


def test_with_a_ridge_none_of_it_matters():
    rows = people().assign(half=lambda d: d.age / 2.0, sick=lambda d: (d.age > 50.0).astype(int))
    fit = rl.glm("sick ~ age + half", sites(rows), "binomial", ridge=0.01)
    assert fit.result.converged and fit.coefficients["half"] == pytest.approx(2.0 * fit.coefficients["age"], rel=1e-6)


@pytest.mark.parametrize(
    ("formula", "columns", "options", "sentence"),
    [
        ("y ~ x", [Column("y"), Column("x"), Column("z")], {}, "'z' is not named by the formula"),
        ("Surv(y, x) ~ 1", [Column("y"), Column("x")], {}, "The family cox explains Surv"),
        ("Surv(y, x) ~ 1", [Column("y"), Column("x")], {"family": "cox"}, "has no constant"),
        ("y ~ x", [Column("y"), Column("x")], {"family": "cox"}, "The family cox explains Surv"),
        ("cbind(y, x) ~ 1", [Column("y"), Column("x")], {"family": "poisson"}, "explained by the family binomial"),
        ("y ~ x", [Column("y"), Column("x")], {"family": "multinomial"}, "at least three levels"),
        ("y ~ x", [Column("y", values="levels", levels=("a", "b")), Column("x")], {}, "two levels are explained by the family binomial"),
        ("y ~ x", [Column("y"), Column("x")], {"errors": "robust"}, "use model, hc0"),
        ("y ~ x", [Column("y"), Column("x")], {"ridge": 1.0, "errors": "hc1"}, "no standard errors"),
        ("y ~ x", [Column("y"), Column("x")], {"ridge": -1.0}, "ridge"),
        ("y ~ x", [Column("y"), Column("x")], {"by": "x"}, "no column with levels"),
        ("y ~ x", [Column("y", values="levels", levels=("a", "b", "c")), Column("x")], {"family": "multinomial", "errors": "hc3"}, "kinds model, hc0"),
        ("y ~ x + offset(x)", [Column("y", values="levels", levels=("a", "b", "c")), Column("x")], {"family": "multinomial"}, "no offset"),
    ],
)  # fmt: skip
def test_a_plan_that_makes_no_sense_is_refused(formula, columns, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Regression(formula, tuple(columns), **options)


# ---------------------------------------------------------------- shown, and not shown


def test_table_one_is_that_of_the_pooled_rows():
    rows = people(4000)
    table = rl.glm("ill ~ age + bmi + clinic", sites(rows), "binomial", by="sex").result.table_one
    assert table.groups == ("female", "male", "all") and table.rows == (*rows.sex.value_counts().sort_index(), 4000)
    lines = {(line.column, line.level): line.cells for line in table.lines}
    groups = [rows[rows.sex == "female"], rows[rows.sex == "male"], rows]
    for cell, group in zip(lines["age", ""], groups, strict=True):
        assert (cell.count, cell.mean, cell.deviation) == pytest.approx(
            (len(group), group.age.mean(), group.age.std()), rel=1e-9
        )
        # Quartiles are counted in bins of about a thirtieth of the rows.
        ranks = [(group.age <= one).mean() for one in cell.quartiles]
        assert ranks == pytest.approx([0.25, 0.5, 0.75], abs=0.02)
    for cell, group in zip(lines["clinic", "east"], groups, strict=True):
        assert cell.count == (group.clinic == "east").sum() and cell.part == pytest.approx(
            (group.clinic == "east").mean()
        )
    for cell, group in zip(lines["ill", "1"], groups, strict=True):
        assert cell.count == group.ill.sum() and cell.part == pytest.approx(group.ill.mean())


def test_few_rows_are_not_shown():
    rows = people(120)
    rows["clinic"] = np.where(np.arange(120) < 3, "east", np.where(np.arange(120) % 2, "north", "south"))
    result = rl.glm("ill ~ age + clinic", sites(rows), "binomial", ridge=0.1, by="sex", missing="drop").result
    east = next(line.cells for line in result.table_one.lines if line.level == "east")
    assert all(cell.count is None for cell in east)
    few = rows.assign(ill=(np.arange(120) < 3).astype(int))
    table = rl.glm("ill ~ age", sites(few), "binomial", ridge=0.1).result.table_one
    assert all(cell.count is None for line in table.lines if line.column == "ill" for cell in line.cells)
    assert all(one.rows is None or one.rows >= 5 for one in result.calibration)
    assert all(count is None or not 0 < count < 5 for count in result.residuals.counts)


def test_rows_with_empty_cells_are_counted_by_column():
    rows = people(200)
    rows.loc[:20, "age"] = np.nan
    rows.loc[10:12, "bmi"] = np.nan
    with pytest.raises(ValueError, match="empty cells in 'age' \\(7\\)"):
        rl.glm("days ~ age + bmi", sites(rows))
    result = rl.glm("days ~ age + bmi", sites(rows), missing="drop").result
    assert {one.column: one.rows for one in result.missing} == {"age": 21, "bmi": None} and result.rows == 179
    assert "21 rows with an empty cell were left out." in result.notes


@given(
    st.integers(1, 4).flatmap(
        lambda groups: st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=groups, max_size=groups)
    )
)
def test_no_hidden_cell_follows_from_those_that_are_shown(counts):
    """All sums along both sides are known: levels add up to their group, groups to all. No single hidden cell may be determined."""
    cells = np.array(counts, float)
    cells = np.vstack([cells, cells.sum(axis=0)]) if len(cells) > 1 else cells
    hidden = hidden_cells(cells, 5)
    assert hidden[(cells > 0) & (cells < 5)].all()
    where = np.flatnonzero(hidden)
    if not len(where):
        return
    equations = []
    for group in range(len(cells)):  # levels of a group
        row = np.zeros_like(cells)
        row[group] = 1.0
        equations.append(row.reshape(-1)[where])
    for level in range(cells.shape[1] if len(cells) > 1 else 0):
        row = np.zeros_like(cells)
        row[:-1, level], row[-1, level] = 1.0, -1.0
        equations.append(row.reshape(-1)[where])
    _, sizes, turned = np.linalg.svd(np.array(equations))
    unseen = turned[(sizes > 1e-9).sum() :]
    # A cell is determined where no unseen change touches it.
    touched = np.abs(unseen).max(axis=0, initial=0.0) > 1e-9
    assert touched.all()
