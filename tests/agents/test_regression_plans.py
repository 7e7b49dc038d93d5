"""A regression as it is planned: by `roundelay ring plan`, in the ring file, and what hostile files and wrong words come to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.epochs import changes
from roundelay.agents.agreement.identity import load_identity, make_identity, save_identity
from roundelay.agents.agreement.plan import RingPlan, Stopping, Task
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from roundelay.agents.agreement.signed_text import parsed, signed_text, split_signature
from roundelay.agents.data.reading import read_site_rows
from roundelay.agents.site.rehearsal import prepare_ring
from roundelay.cli.app import app
from roundelay.cli.ring.regressing import Asked
from roundelay.regression.columns import Column, Conversion
from roundelay.regression.regression import Regression
from tests.agents.hospitals import SEALED

ROWS = """age [years],sex,grade,weight [kg],outcome,died
40,f,low,60,no,0
50,m,high,80,yes,0
60,f,middle,70,no,1
70,m,high,90,yes,1
"""
SITES = ("oslo", "bergen", "tromso")
Ring = Callable[..., Any]


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ring:
    """`roundelay ring …` in a folder where three sites have offered the same columns."""
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(ROWS + ROWS.split("\n", 1)[1] * 4)

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, ["ring", *words])

    for name in SITES:
        made = run("init", "--folder", name, "--name", name, "--address", "host.example.org:7443", "--data", "data.csv")
        assert made.exit_code == 0, made.output
    return run


def plan(ring: Ring, *more: str) -> Any:
    return ring(
        "plan", *(f"{name}/{name}.invitation.toml" for name in SITES), "--folder", "oslo", "--out", "ring.toml", *more
    )


def planned(ring: Ring, *more: str) -> RingPlan:
    made = plan(ring, *more)
    assert made.exit_code == 0, made.output
    return read_ring(Path("ring.toml").read_bytes(), "ring.toml").plan


def regressed(ring: Ring, *more: str) -> Regression:
    regression = planned(ring, *more).task.regression
    assert regression is not None
    return regression


# ---------------------------------------------------------------- the command


def test_a_formula_makes_a_regression_over_what_the_sites_offer(ring: Ring) -> None:
    one = regressed(
        ring, "--formula", "outcome  ~ age + C(grade)", "--reference", "grade=low", "--by", "sex", "--least", "7", "--ridge", "0.5",
    )  # fmt: skip
    assert (one.formula, one.family, one.by, one.least, one.ridge) == (
        "outcome ~ age + C(grade)",
        "binomial",
        "sex",
        7,
        0.5,
    )
    assert one.columns == (Column("age", "years"), Column("sex"), Column("grade"), Column("outcome"))
    assert [column.levels for column in one.columns] == [(), ("f", "m"), ("low", "high", "middle"), ("no", "yes")]


def test_what_the_response_looks_like_says_the_family(ring: Ring) -> None:
    for response, family in (
        ("weight", "gaussian"), ("outcome", "binomial"), ("grade", "multinomial"), ("died", "binomial"), ("I(died + 1)", "gaussian"),
    ):  # fmt: skip
        assert regressed(ring, "--formula", f"{response} ~ age").family == family
    assert regressed(ring, "--formula", "weight ~ age", "--family", "gamma").family == "gamma"
    assert regressed(ring, "--formula", "weight ~ age", "--lasso", "1", "--folds", "5").folds == 5


def test_columns_make_a_formula(ring: Ring) -> None:
    assert regressed(ring, "--target", "outcome").formula == "outcome ~ age + sex + grade + weight + died"
    assert regressed(ring, "--target", "outcome", "--features", "age, sex").formula == "outcome ~ age + sex"


def test_all_that_is_told_stands_in_what_is_printed(ring: Ring) -> None:
    from roundelay.regression.sums import sums_of

    one = regressed(ring, "--formula", "outcome ~ age", "--no-diagnostics", "--no-table-one")
    shown = ring("show", "ring.toml").output
    assert all(each.tells in shown for each in sums_of(one))
    assert "at which site these rows are" in shown


def refused(said: Any, words: str) -> None:
    assert said.exit_code == 2 and words in said.output, said.output


def test_wrong_words_are_refused_in_sentences(ring: Ring) -> None:
    for more, words in (
        ((), "Nothing says what is to be fitted"),
        (("--formula", "outcome"), "needs one ~"),
        (("--formula", "outcome ~ bmi"), "'bmi', which is no column: the columns are outcome"),
        (("--formula", "outcome ~ age", "--family", "guess"), "There is no family 'guess'"),
        (("--formula", "outcome ~ age", "--errors", "hc9"), "errors is 'hc9'"),
        (("--formula", "outcome ~ age", "--reference", "sex=x"), "Something is said of the column 'sex'"),
        (("--formula", "outcome ~ sex", "--reference", "sex=x"), "The column 'sex' has no level 'x'"),
        (("--formula", "outcome ~ sex", "--reference", "sex"), "write COLUMN=…"),
        (("--formula", "outcome ~ age", "--convert", "age"), "The conversion 'age' can't be read"),
        (("--formula", "outcome ~ age", "--epsilon", "1"), "exact sums, which promise no ε"),
        (("--formula", "outcome ~ age", "--no-intercept"), "write - 1 behind it"),
        (("--formula", "outcome ~ age", "--warm"), "not from an earlier model"),
        (("--formula", "outcome ~ age", "--algorithm", "piadmm1"), "sealed laps whose sums are exact"),
        (("--formula", "outcome ~ age", "--set", "regulariser=l1:1"), "use --ridge and --lasso"),
        (("--formula", "outcome ~ age", "--set", "wide=false"), "sealed laps whose sums are exact"),
        (("--formula", "outcome ~ age", "--task", "logistic"), "A --task has a --target"),
    ):
        refused(plan(ring, *more), words)
    assert not Path("ring.toml").exists()


def test_a_site_does_not_accept_what_its_policy_does_not_allow(ring: Ring) -> None:
    planned(ring, "--formula", "outcome ~ age + C(sex)")
    policy = Path("bergen/policy.toml")
    policy.write_text(policy.read_text().replace('allowed_families = ["*"]', 'allowed_families = ["cox"]'))
    said = ring("accept", "ring.toml", "--folder", "bergen", "--yes")
    assert said.exit_code != 0 and "of the family binomial, and this site's policy allows cox" in said.output


# ---------------------------------------------------------------- the ring file


COLUMNS = (
    Column("y", "", "levels", ("no", "yes")),
    Column("age at entry", "years", conversions=(Conversion("months", 1.0 / 12.0),)),
    Column("arm", "", "levels", ("placebo", 'dose "A"', "ü [b]")),
    Column("seen", "", "date"),
)
REGRESSION = Regression(
    "y ~ `age at entry` + C(arm) + seen", COLUMNS, "binomial", "probit", errors="hc0", by="arm", diagnostics=False, heterogeneity=True, least=3,
)  # fmt: skip


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RingPlan]:
    """A plan of two sites, and the folder of the first."""
    from tests.agents.regression_rings import plan_of

    folder = tmp_path_factory.mktemp("plans")
    for name in SITES:
        save_identity(folder / name, make_identity(name))
    bare = plan_of(SITES, REGRESSION)
    members = tuple(replace(one, certificate=load_identity(folder / one.name).certificate) for one in bare.members)
    return folder / SITES[0], replace(bare, members=members)


def test_every_field_comes_back_from_the_ring_file(signed: tuple[Path, RingPlan]) -> None:
    folder, one = signed
    long = replace(REGRESSION, formula=REGRESSION.formula + " + seen:seen" * 100)
    for regression in (REGRESSION, replace(REGRESSION, lasso=0.25, ridge=0.5, errors="model"), long):
        task = Task("regression", missing="drop", regression=regression)
        back = read_ring(write_ring(replace(one, task=task), load_identity(folder)), "ring.toml").plan.task
        assert back == task and back.regression is not None
        for column, other in zip(back.regression.columns, COLUMNS, strict=True):
            assert (column.values, column.levels, column.conversions) == (other.values, other.levels, other.conversions)


def test_other_levels_are_another_fit(signed: tuple[Path, RingPlan]) -> None:
    """Two columns of one name are the same column; who accepts an epoch is told that their levels are others."""
    _, one = signed
    turned = replace(REGRESSION, columns=(replace(COLUMNS[0], levels=("yes", "no")), *COLUMNS[1:]))
    after = replace(one, task=Task("regression", missing="drop", regression=turned))
    assert changes(one, one) == () and changes(one, after) == ("What is fitted is another.",)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("formula",), "y ~ __import__('os').system('x')", "can't be read|is not understood|no column"),
        (("formula",), "y ~ " + "arm * " * 12 + "seen", "multiplies too much out"),
        (("formula",), "y ~ 1", "is not named by the formula"),
        (("formula",), 3, "use a text in quotes"),
        (("family",), "guess", "There is no family 'guess'"),
        (("link",), "log2", "link"),
        (("errors",), "hc7", "errors is 'hc7'"),
        (("ridge",), -1.0, "ridge is -1"),
        (("lasso",), float("inf"), "lasso is inf"),
        (("least",), 0, "least is 0"),
        (("least",), 2**40, "The field least"),
        (("by",), "seen", "no column with levels"),
        (("table_one",), 1, "use true or false"),
        (("more",), 1, "has the field 'more', which is not known"),
        (("columns",), [], "no column"),
        (("columns", 0, "levels"), ["no", "no"], "name every level once"),
        (("columns", 0, "levels"), [], "name the levels of a column that has levels"),
        (("columns", 0, "levels"), ["no", "\x1b[2J"], "letters that can be printed"),
        (("columns", 0, "values"), "guess", "use number, levels, date"),
        (("columns", 1, "name"), "y", "The column 'y' is twice"),
        (("columns", 1, "conversions", 0, "factor"), 0.0, "a factor other than 0"),
    ],
)
def test_a_hostile_ring_file_is_refused_in_a_sentence(
    signed: tuple[Path, RingPlan], place: tuple[Any, ...], value: Any, words: str
) -> None:
    folder, one = signed
    signer = load_identity(folder)
    body, _ = split_signature(write_ring(one, signer), "ring.toml")
    tables: Any = json.loads(json.dumps(parsed(body, "ring.toml")))
    inner = tables["task"]["regression"]
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=words):
        read_ring(signed_text(tables, signer), "ring.toml")


def test_a_formula_and_another_kind_of_fit_exclude_each_other(signed: tuple[Path, RingPlan]) -> None:
    _, one = signed
    with pytest.raises(ValueError, match="A formula makes a fit of the kind regression"):
        Task("least_squares", (Column("a"),), Column("b"), regression=REGRESSION)
    with pytest.raises(ValueError, match="A formula makes a fit of the kind regression"):
        Task("regression")
    for algorithm in (rl.PIADMM1(), rl.SealedLaps(), rl.SealedLaps(wide=True, regulariser=rl.L1(1.0))):
        with pytest.raises(ValueError, match=r"sealed laps whose sums are exact|use --ridge and --lasso"):
            replace(one, algorithm=algorithm)
    with pytest.raises(ValueError, match="leave --warm out"):
        replace(one, warm=True)
    assert replace(one, stopping=Stopping(1e-9)).choice is not None


def test_a_rehearsal_plans_by_what_its_sites_offer(tmp_path: Path) -> None:
    """As `roundelay ring up --formula` does, with one file of which every site gets some rows."""
    rows = [line.split(",") for line in ROWS.splitlines()]
    asked = Asked("died ~ weight + C(grade)", None, None, None, ("grade=low",), (), (), "", {})
    sites = {"oslo": rows[1:3] * 5, "bergen": rows[3:] * 5}
    found = prepare_ring(tmp_path, rows[0], sites, lambda offers: asked.task(offers, "drop"), SEALED, Stopping())
    one = found.plan.task.regression
    assert one is not None and one.family == "binomial"
    assert [column.levels for column in one.columns] == [("low", "high", "middle"), (), ()]
    assert [read_site_rows(seat.data, one).count for seat in found.seats] == [10, 10]


def test_a_rehearsal_takes_a_formula_or_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(ROWS)
    for more, words in (
        ((), "Nothing says what is to be fitted"),
        (("--formula", "died ~ age", "--epsilon", "1"), "leave out --target, --algorithm"),
        (("--formula", "died ~ agee"), "'agee', which is no column"),
    ):
        refused(CliRunner().invoke(app, ["ring", "up", "--agents", "2", "--data", "data.csv", *more]), words)
        assert not Path("out").exists() or not any(Path("out").iterdir())
