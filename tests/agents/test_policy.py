"""The policy of a site as a file: what it says, what is refused in it, and that there is one place for each limit."""

from __future__ import annotations

import math
import stat
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping, Task
from roundelay.agents.agreement.policy import (
    ANYTHING,
    POLICY,
    OwnData,
    Policy,
    PolicyError,
    breaches,
    check_policy,
    masks_of,
    read_policy,
    refused_counts,
    refused_rows,
    refused_task,
    sides,
    text_of,
    write_policy,
)
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.beginning import BITS, grid_of
from roundelay.agents.site.taking_part import Ending
from roundelay.algorithms.parts.starts import SealedStart
from roundelay.cli.app import app
from roundelay.regression.columns import Column
from roundelay.regression.regression import Regression
from roundelay.regression.rows import SiteRows
from roundelay.regression.study import Study
from roundelay.regression.sums import Known as Counted
from tests.agents.hospitals import QUIET, TASK, Hospitals
from tests.agents.world import least_squares, ring_plan

NAMES = [f"site{number}" for number in range(6)]


def plan_of(algorithm: Any = None, agents: int = 5, **changes: Any) -> RingPlan:
    plan = ring_plan(NAMES[:agents], algorithm or rl.SealedLaps(wide=True), 3, Stopping())
    return replace(plan, **changes)


NAMED = st.lists(st.text("aä \"'\\#[]*,=", max_size=100), max_size=9).map(tuple)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(
    policy=st.builds(
        Policy, st.integers(2, 99), st.integers(1, 99), st.integers(2, 9), st.integers(1, 999),
        st.sampled_from([math.inf, 0.0, 0.5, 3.0]), st.floats(0.0, 1e6), st.integers(0, 50), st.booleans(), NAMED, NAMED, NAMED,
        st.integers(1, 99), st.booleans(), st.booleans(), st.floats(0.0, 1e6),
    )
)  # fmt: skip
def test_what_is_written_is_read(policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("site")
    write_policy(folder, policy)
    assert read_policy(folder) == policy


def test_an_entry_that_is_left_out_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert read_policy(tmp_path) == Policy()
    (tmp_path / POLICY).write_text("least_members = 3\n")
    assert read_policy(tmp_path) == Policy(least_members=3)
    write_policy(tmp_path)  # what the operator has written stays
    assert read_policy(tmp_path) == Policy(least_members=3)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("least_member = 3", "has the field 'least_member', which is not known: it may have least_members,"),
        ("least_members = 1", "The field least_members of the policy .* is 1: use a whole number from 2 to"),
        ("least_members = 3.5", "use a whole number from 2 to"),
        ("least_change = 1", "use a whole number from 2 to"),
        ("least_rows = 0", "use a whole number from 1 to"),
        ("least_cover = -1", "least_cover of the policy .* is -1: use a number from 0 on"),
        ("least_cover = nan", "use a number"),
        ("most_epsilon = 'all'", "use a number"),
        ("hub_beside_me = 0", "use true or false"),
        ("least_rows_a_level = 0", "use a whole number from 1 to"),
        ("allowed_columns = 'age'", "use a list of names in quotes"),
        ("allowed_families = [1]", "use a list of names in quotes"),
        ("most_parameters_per_row = -0.1", "use a number from 0 on"),
        ("least_members 4", "can't be read as TOML"),
        ("#" * 70_000, "has more than 65536 bytes"),
    ],
)
def test_a_file_that_says_nothing_clear_is_refused(line: str, words: str, tmp_path: Path) -> None:
    (tmp_path / POLICY).write_text(f"{line}\n")
    with pytest.raises(ValueError, match=words):
        read_policy(tmp_path)


def test_init_writes_it_for_the_operator_alone(tmp_path: Path) -> None:
    folder = tmp_path / "oslo"
    said = CliRunner().invoke(app, ["ring", "init", "--folder", str(folder), "--name", "Oslo"])
    assert said.exit_code == 0 and f"What this site takes part in stands in {folder / POLICY}" in said.stdout
    assert (folder / POLICY).read_text() == text_of(Policy())
    assert stat.S_IMODE((folder / POLICY).stat().st_mode) == 0o600
    for name in asdict(Policy()):
        assert f"\n{name} = " in text_of(Policy())


def test_the_sentence_says_where_to_change_it(tmp_path: Path) -> None:
    plan = plan_of(agents=3)
    with pytest.raises(
        PolicyError,
        match=rf"Only 3 members .* \(least_members\).* site0 does not take part.* in {tmp_path}/{POLICY}, which is not there yet",
    ):
        check_policy(tmp_path, read_policy(tmp_path), plan, "site0")
    write_policy(tmp_path)
    with pytest.raises(PolicyError, match=rf"in {tmp_path}/{POLICY}\.$"):
        check_policy(tmp_path, read_policy(tmp_path), plan, "site0")
    (tmp_path / POLICY).write_text("least_members = 3\n")
    check_policy(tmp_path, read_policy(tmp_path), plan, "site0")


def test_everything_that_is_wrong_is_said_at_once() -> None:
    plan = plan_of(rl.IADMM(), 2)
    found = breaches(Policy(), plan, 0, OwnData(3, 1.0))
    assert [one.partition("(")[2].partition(")")[0] for one in found] == [
        "least_members",
        "least_rows",
        "hub_beside_me",
        "least_cover",
    ]
    assert not breaches(ANYTHING, plan, 0, OwnData(1, 1.0))


# ---------------------------------------------------------------- regressions

AREA = Column("area", values="levels", levels=("North", "South", "East", "West"))
SEX = Column("sex", values="levels", levels=("female", "male"))
REGRESSION = Regression("dead ~ age + area", (Column("dead"), Column("age"), AREA, SEX), "binomial", by="sex")
FORMULA = Task("regression", regression=REGRESSION)


def rows_with(areas: str, sexes: str) -> SiteRows:
    frame = pd.DataFrame(
        {
            "dead": np.arange(len(areas)) % 2.0,
            "age": np.arange(len(areas)) + 40.0,
            "area": pd.Categorical([one for letter in areas for one in AREA.levels if one[0] == letter], AREA.levels),
            "sex": pd.Categorical([{"f": "female", "m": "male"}[letter] for letter in sexes], SEX.levels),
        }
    )
    return SiteRows(REGRESSION, frame)


def test_a_regression_keeps_to_the_columns_and_families_that_are_allowed() -> None:
    assert refused_task(Policy(), FORMULA) == ()
    assert refused_task(Policy(allowed_columns=("sex", "dead", "age", "area")), FORMULA) == ()
    assert refused_task(Policy(allowed_families=("cox", "binomial")), FORMULA) == ()
    found = refused_task(Policy(allowed_columns=("dead", "age"), allowed_families=("gaussian",)), FORMULA)
    assert "The plan uses area and sex" in found[0] and "(allowed_columns)" in found[0]
    assert "of the family binomial" in found[1] and "allows gaussian (allowed_families)" in found[1]
    assert "allows none" in refused_task(Policy(allowed_families=()), FORMULA)[0]


def test_levels_that_few_rows_of_a_site_have_are_refused_and_those_that_none_has_are_not() -> None:
    assert refused_rows(Policy(), rows_with("NNNNNSSSSS", "fffffmmmmm")) == ()
    (found,) = refused_rows(Policy(), rows_with("NNNNNSSSSE", "ffffffffff"))
    assert "4 rows with the level 'South' of area and 1 row with the level 'East' of area" in found
    assert "wants 5 of each level that it has (least_rows_a_level)" in found
    (found,) = refused_rows(Policy(least_rows_a_level=6), rows_with("NSEW", "ffmm"))
    assert "and 3 more such levels" in found
    (found,) = refused_rows(Policy(), rows_with("NNNNNNNNNNSSSSSS", "ffffffffmmmmmmmm"))
    assert "has 2 rows with the level 'North' of area among those with the level 'male' of sex, and its" in found
    assert refused_rows(Policy(least_rows_a_level=1), rows_with("NSEW", "ffmm")) == ()
    assert refused_rows(ANYTHING, rows_with("NSEW", "ffmm")) == ()


def test_an_operator_looks_at_conversions_first() -> None:
    rows = replace(rows_with("N" * 20, "f" * 20), converted=("age [years] from months by 0.0833·x",))
    (found,) = refused_rows(Policy(), rows)
    assert "converts age [years] from months by 0.0833·x at this site" in found and "(conversions)" in found
    assert refused_rows(Policy(conversions=True), rows) == ()


def test_all_rows_are_enough_for_the_unknowns_and_for_each_level() -> None:
    def known(*sites: SiteRows) -> Counted:
        study = Study(REGRESSION)
        totals: tuple[np.ndarray, ...] = ()
        for _ in range(2):
            before = Counted(REGRESSION, totals, len(sites))
            following = study.sums[len(totals)]
            own = [following.packed(REGRESSION, following.own(site, before)) for site in sites]
            totals = (*totals, np.sum(own, axis=0))
        return study.known(totals, len(sites))

    # Five unknowns: the constant, the age and three levels.
    full = [rows_with("NNNNNSSSSSEEEEEWWWWW", "f" * 10 + "m" * 10)]
    assert REGRESSION.dim == 5 and refused_counts(Policy(), known(*full, *full, rows_with("N" * 10, "f" * 10))) == ()
    (found,) = refused_counts(Policy(), known(*full, *full, rows_with("N" * 9, "f" * 9)))
    assert "5 unknowns and all sites together 49 rows" in found and "0.1 unknowns for each row" in found
    assert refused_counts(Policy(most_parameters_per_row=math.inf), known(*full)) == ()
    many = rows_with("N" * 60, "f" * 60)
    (found,) = refused_counts(Policy(), known(many, rows_with("SSSS", "ffmm"), rows_with("EE", "fm")))
    assert (
        "4 rows with the level 'South' of area, 2 rows with the level 'East' of area" in found and "'West'" not in found
    )
    # Few at one site are enough where others have more of them.
    assert refused_counts(Policy(), known(many, rows_with("SSS", "mmm"), rows_with("SS", "mm"))) == ()
    # A level that no other site has tells of this one alone.
    mine = rows_with("N" * 20 + "E" * 20, "fm" * 20)
    (found,) = refused_counts(Policy(), known(many, mine), mine)
    assert (
        "No other site has rows with the level 'East' of area and the level 'male' of sex" in found
        and "(lone_levels)" in found
    )
    assert (
        refused_counts(Policy(), known(many, mine), many)
        == refused_counts(Policy(lone_levels=True), known(many, mine), mine)
        == ()
    )
    # Constants of the sites count.
    own = replace(REGRESSION, formula="dead ~ age + site", columns=(Column("dead"), Column("age"), SEX))
    counts = Study(own).known((np.concatenate([[30.0], np.zeros(Study(own).lengths[0] - 1)]),), 3)
    assert "4 unknowns and all sites together 30 rows" in refused_counts(Policy(), counts)[0]


# ---------------------------------------------------------------- masks


@pytest.mark.parametrize("bits", [10, 40])
@pytest.mark.parametrize("rho", [0.01, 1.0, 100.0])
def test_a_sealed_start_hides_bits_above_its_grid(rho: float, bits: int) -> None:
    masks = masks_of(plan_of(rl.PIADMM1(rho=rho, start=rl.SealedStart(bits=bits))))
    assert masks.size == math.inf and masks.bits_of(1.0) == pytest.approx(bits - math.log2(rho))


def test_masks_that_sum_to_0_are_as_large_as_they_say() -> None:
    masks = masks_of(plan_of(rl.PIADMM1(rho=2.0, start=rl.ZeroSumStart(scale=7.0))))
    assert masks.size == 14.0 and masks.bits_of(1.0) > 40
    for algorithm in (rl.IADMM(), rl.Algorithm2(), rl.WPG(alpha=0.1)):
        assert masks_of(plan_of(algorithm)).size == 0.0


def test_a_warm_start_is_a_sealed_one() -> None:
    """Whatever the method's own start: so ρ can round its shares away as well."""
    assert SealedStart().bits == BITS == grid_of(rl.IADMM().parts()).bits
    warm = plan_of(rl.IADMM(rho=1.0), warm=True)
    assert masks_of(warm).hide and not breaches(Policy(), warm, 0)
    (found,) = breaches(Policy(), plan_of(rl.IADMM(rho=1e13), warm=True), 0)
    assert "least_bits" in found


def test_the_size_of_the_gradient_counts() -> None:
    plan = plan_of(rl.PIADMM1(rho=1.0, start=rl.ZeroSumStart(scale=50.0)))
    assert not breaches(Policy(), plan, 0) and not breaches(Policy(), plan, 0, OwnData(40, 4.9))
    (found,) = breaches(Policy(), plan, 0, OwnData(40, 5.1))
    assert "least_cover" in found
    assert not breaches(Policy(), plan, 0, OwnData(40, 0.0))  # there is nothing to hide


def test_a_site_knows_how_large_its_gradient_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For rows it is a bound that is met to within a small factor; for an objective it is the gradient itself."""
    function = least_squares(1, 3)
    gradient = function.gradients(np.zeros((1, 3)))
    assert Known(function).slope == pytest.approx(math.sqrt((gradient**2).mean()))
    hospitals = Hospitals(tmp_path, monkeypatch)
    table = hospitals.tables["Oslo"]
    assert hospitals.local("Oslo", TASK).slope == pytest.approx(table[:, 2].std())
    raw = hospitals.local("Oslo", replace(TASK, standardise=False)).slope
    assert raw > 100.0 * table[:, 2].std()  # lengths in cm


# ---------------------------------------------------------------- who stands on both sides


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((0, 1, 2, 3), [set(), set(), set(), set()]),
        ((0, 1), [{1}, {0}]),
        ((0, 1, 0, 2, 0, 3), [set(), {0}, {0}, {0}]),
        ((0, 1, 2, 3, 2, 1), [{1}, set(), set(), {2}]),
    ],
)
def test_who_sees_the_token_before_and_after(order: tuple[int, ...], expected: list[set[int]]) -> None:
    agents = len(expected)
    steps = zip(order, (*order[1:], order[0]), strict=True)
    links = tuple(sorted({(min(pair), max(pair)) for pair in steps}))
    plan = plan_of(rl.IADMM(), agents, order=order, links=links)
    assert [set(sides(plan, me)) for me in range(agents)] == expected


def test_on_a_random_walk_any_neighbour_may_get_it_back() -> None:
    assert sides(plan_of(rl.WADMM()), 0) == {1, 4}


# ---------------------------------------------------------------- one place for each limit


def test_what_the_agent_is_told_overrules_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hospitals = Hospitals(tmp_path, monkeypatch)
    ring = hospitals.accept(hospitals.plan())
    path = hospitals.folder / "Oslo" / POLICY
    path.write_text(text_of(replace(ANYTHING, least_rows=41)))
    refused = hospitals.run(ring)["Oslo"]
    assert isinstance(refused, PolicyError) and "This site has 40 rows, and its policy wants 41" in str(refused)
    path.write_text(text_of(replace(ANYTHING, most_epsilon=1.0)))
    assert "most_epsilon" in str(hospitals.run(ring)["Oslo"])
    path.write_text(text_of(replace(ANYTHING, least_rows=41, most_epsilon=1.0)))
    options = {"Oslo": replace(QUIET, least_rows=10, most_epsilon=math.inf)}
    assert all(isinstance(one, Ending) for one in hospitals.run(ring, options).values())
