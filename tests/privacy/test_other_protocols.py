"""Other federated protocols: that the simulated sites fit what they should, that every total and row follows as derived, and where nothing follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy
import statsmodels.api as sm
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import roundelay as rl
from roundelay.cli.app import app
from roundelay.privacy.protocols import sites as simulated
from roundelay.privacy.protocols.attacks import rows as find_rows, totals as find_totals
from roundelay.privacy.protocols.audit import held_against
from roundelay.privacy.protocols.known import Known, SumsAt, descended, sums_at
from roundelay.privacy.protocols.sites import DATASHIELD, VANTAGE6, Played, Site

FAMILIES = ("binomial", "gaussian")


def drawn(counts: list[int], columns: int, family: str, seed: int = 0, binary: bool = False) -> list[Site]:
    random, found = np.random.default_rng([seed, columns]), []
    for name, count in zip("ABCDEFGH", counts, strict=False):
        free = random.standard_normal((count, columns - 1))
        X = np.column_stack([np.ones(count), free > 0.3 if binary else free])
        predictor = X @ np.r_[0.3, 0.8 * np.ones(columns - 1)]
        chance = 1.0 / (1.0 + np.exp(-predictor))
        y = (random.random(count) < chance) if family == "binomial" else predictor + random.standard_normal(count)
        found.append(Site(name, X, y.astype(float)))
    return found


def records(site: Site) -> np.ndarray:
    return np.column_stack([site.X[:, 1:], site.y])


def known(played: Played, site: str = "A") -> Known:
    return played.recorded.protocol.known(played.recorded, site)


def audited(played: Played, asked: Any = None) -> Any:
    sites = played.recorded.sites
    return rl.audit_protocol(played.recorded, "A" if "A" in sites else sites[0], asked).sites[0]


def pooled(sites: list[Site], family: str) -> np.ndarray:
    kind = sm.families.Binomial() if family == "binomial" else sm.families.Gaussian()
    X, y = np.vstack([one.X for one in sites]), np.concatenate([one.y for one in sites])
    return sm.GLM(y, X, kind).fit(tol=1e-14, maxiter=100).params


# ---------------------------------------------------------------- the simulated sites fit what they should


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fit", [simulated.datashield_glm, simulated.vantage6_glm, simulated.sealed_laps])
def test_what_is_exact_is_the_pooled_fit(fit: Callable[..., Played], family: str) -> None:
    sites = drawn([12, 40, 60, 50], 3, family)
    np.testing.assert_allclose(fit(sites, family).coefficients, pooled(sites, family), rtol=1e-8, atol=1e-9)


def test_odal_is_the_maximum_of_its_own_surrogate_and_nearer_to_the_pooled_fit() -> None:
    sites = drawn([150, 300, 300], 3, "binomial")
    played = simulated.pda_odal(sites)
    lead, count = sites[0], sum(len(one.y) for one in sites)
    common = next(one.values["bbar"] for one in played.recorded.messages if "bbar" in one.values)

    def likelihood(site: Site, at: np.ndarray) -> float:
        return float(-sums_at("binomial", site.X, site.y, at)[2] / 2.0)

    def slope_and_curvature(members: list[Site]) -> tuple[np.ndarray, np.ndarray]:
        sums = [sums_at("binomial", one.X, one.y, common) for one in members]
        size = sum(len(one.y) for one in members)
        return sum(s for s, _, _ in sums) / size, -sum(i for _, i, _ in sums) / size

    (slope, curvature), (own_slope, own_curvature) = slope_and_curvature(sites), slope_and_curvature([lead])

    def surrogate(at: np.ndarray) -> float:
        step = at - common
        more = (slope - own_slope) @ at + step @ (curvature - own_curvature) @ step / 2.0
        return likelihood(lead, at) / len(lead.y) + float(more)

    best = scipy.optimize.minimize(lambda at: -surrogate(at), common, tol=1e-12).x
    np.testing.assert_allclose(played.coefficients, best, atol=1e-5)
    truth, own = pooled(sites, "binomial"), pooled([lead], "binomial")
    assert np.linalg.norm(played.coefficients - truth) < 0.1 * np.linalg.norm(own - truth)
    assert count == 750


@pytest.mark.parametrize("family", FAMILIES)
def test_averaging_after_one_local_step_is_gradient_descent(family: str) -> None:
    sites = drawn([5, 20, 30], 3, family)
    X, y = np.vstack([one.X for one in sites]), np.concatenate([one.y for one in sites])
    expected = descended(family, X, y, np.zeros(3), 0.3, 25)
    np.testing.assert_allclose(
        simulated.federated_averaging(sites, family, 0.3, 1, 25).coefficients, expected, atol=1e-13
    )
    several = simulated.federated_averaging(sites, family, 0.3, 5, 5).coefficients
    assert np.abs(several - expected).max() > 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_sums_are_derivatives_of_the_deviance(family: str) -> None:
    (site,) = drawn([9], 3, family)
    at, step = np.array([0.2, -0.4, 0.7]), 1e-6
    score, information, _ = sums_at(family, site.X, site.y, at)
    for place, moved in enumerate(np.eye(3) * step):
        ahead, behind = (sums_at(family, site.X, site.y, at + side * moved) for side in (1, -1))
        assert (ahead[2] - behind[2]) / (2 * step) == pytest.approx(-2.0 * score[place], abs=1e-7)
        np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * step), -information[place], atol=1e-7)


# ---------------------------------------------------------------- totals


EXACT: dict[str, Callable[[list[Site], str], Played]] = {
    "ds.glm": simulated.datashield_glm,
    "v6-glm": simulated.vantage6_glm,
    "fedavg": lambda sites, family: simulated.federated_averaging(sites, family, 0.3, 1, 12),
    "fedavg, 4 local steps": lambda sites, family: simulated.federated_averaging(sites, family, 0.1, 4, 12),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("family", FAMILIES)
def test_totals_are_exact_where_they_follow(name: str, family: str) -> None:
    sites = drawn([300, 40, 60], 3, family)
    said = known(EXACT[name](sites, family))
    if name.startswith("fedavg") and family == "binomial":
        with pytest.raises(ValueError, match="no information at β = 0 was sent"):
            find_totals(said)
        return
    found = find_totals(said).totals
    assert found is not None
    X, y = sites[0].X, sites[0].y
    np.testing.assert_allclose(found.XtX, X.T @ X, atol=1e-6)
    np.testing.assert_allclose(found.Xty, X.T @ y, atol=1e-6)
    if found.yty is not None:
        assert found.yty == pytest.approx(y @ y)


def test_too_few_rounds_of_averaging_leave_the_totals_open() -> None:
    played = simulated.federated_averaging(drawn([30, 40], 4, "gaussian"), "gaussian", 0.3, 1, 2)
    with pytest.raises(ValueError, match="too few, or too near"):
        find_totals(known(played))


# ---------------------------------------------------------------- single rows


ROWS: dict[str, tuple[Callable[[list[Site]], Played], int]] = {
    "ds.glm": (lambda sites: simulated.datashield_glm(sites, "binomial"), 5),
    "v6-glm": (lambda sites: simulated.vantage6_glm(sites, "binomial"), 5),
    "pda ODAL": (lambda sites: simulated.pda_odal(sites, lead=1), 2),
    "fedavg": (lambda sites: simulated.federated_averaging(sites, "binomial", 0.5, 1, 12), 3),
    "fedavg, 3 local steps": (lambda sites: simulated.federated_averaging(sites, "binomial", 0.3, 3, 8), 2),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_a_small_site_are_found_one_by_one_and_those_of_a_large_one_are_not(name: str) -> None:
    fit, count = ROWS[name]
    small, large = drawn([count, 50, 60], 3, "binomial"), drawn([60, 50, 60], 3, "binomial")
    found = audited(fit(small))
    assert held_against(found.single, records(small[0])) == (count, 0)
    assert len(audited(fit(large)).single) == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", [*EXACT, "pda ODAL"])
def test_one_row_follows_by_algebra_alone(name: str, family: str) -> None:
    if name == "pda ODAL" and family == "gaussian":
        return  # ODAL is for logistic regression
    for seed in range(4):
        sites = drawn([1, 50, 60], 4, family, seed)
        played = ROWS[name][0](sites) if name == "pda ODAL" else EXACT[name](sites, family)
        np.testing.assert_allclose(audited(played).single, records(sites[0]), atol=1e-8)


def test_two_gaussian_rows_are_found_and_three_are_hidden_by_every_rotation() -> None:
    two = drawn([2, 30, 30], 4, "gaussian")
    assert held_against(audited(simulated.datashield_glm(two, "gaussian")).single, records(two[0])) == (2, 0)
    three = drawn([3, 30, 30], 4, "gaussian")
    played = simulated.datashield_glm(three, "gaussian")
    with pytest.raises(ValueError, match="every rotation of three or more rows"):
        find_rows(known(played))
    # A rotation about the constant column: other rows, and the same messages.
    onto = np.linalg.qr(np.column_stack([np.ones(3), np.eye(3)[:, :2]]))[0]
    angle = 0.7
    turned = (
        onto @ scipy.linalg.block_diag(1.0, [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ onto.T
    )
    other = [Site("A", turned @ three[0].X, turned @ three[0].y), *three[1:]]
    assert np.abs(other[0].X - three[0].X).max() > 0.1
    for one, moved in zip(
        played.recorded.messages, simulated.datashield_glm(other, "gaussian").recorded.messages, strict=True
    ):
        for word, value in one.values.items():
            np.testing.assert_allclose(moved.values[word], value, atol=1e-9)


def test_at_a_single_point_several_sets_of_rows_meet_all_sums_and_none_is_vouched_for() -> None:
    """What is orthogonal to β stands in squares there: the attack finds more than one answer and says so."""
    for seed in range(3):
        sites = drawn([3, 60, 60], 3, "binomial", seed)
        found = audited(simulated.pda_odal(sites, lead=1))
        assert held_against(found.single, records(sites[0]))[1] == 0


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_who_is_alone_with_an_outcome_is_known_among_any_number_of_rows_unless_it_is_refused(outcome: float) -> None:
    first, *others = drawn([500, 40, 60], 4, "binomial")
    y = np.full(500, 1.0 - outcome)
    y[123] = outcome
    sites = [Site("A", first.X, y), *others]
    for fit in (simulated.datashield_glm, simulated.vantage6_glm):
        np.testing.assert_allclose(audited(fit(sites, "binomial")).single, records(sites[0])[[123]], atol=1e-6)
    assert "and 3 are the least" in simulated.datashield_glm(sites, "binomial", DATASHIELD).refused["A"]


def test_who_is_alone_with_a_value_is_known_in_a_gaussian_fit() -> None:
    first, *others = drawn([200, 40], 4, "gaussian")
    X = first.X.copy()
    X[:, 2] = np.arange(200) == 7
    sites = [Site("A", X, first.y), *others]
    np.testing.assert_allclose(
        audited(simulated.datashield_glm(sites, "gaussian")).single, records(sites[0])[[7]], atol=1e-6
    )


# ---------------------------------------------------------------- tables of counts


@pytest.mark.parametrize("columns", [3, 4])
@pytest.mark.parametrize("count", [30, 1000])
def test_columns_of_0_and_1_give_their_whole_table_for_any_number_of_rows(columns: int, count: int) -> None:
    sites = drawn([count, 60, 60], columns, "binomial", binary=True)
    counts = audited(simulated.datashield_glm(sites, "binomial")).learned["table of counts"].counts
    same = (sites[0].X[:, None, 1:] == counts.kinds).all(axis=2).astype(int)
    truth = np.column_stack([same.sum(axis=0), same.T @ (1 - sites[0].y), same.T @ sites[0].y])
    # The rows of each kind are exact. How many of them are cases follows from p sums alone: bounds, never false, mostly apart.
    assert (counts.least <= truth).all() and (truth <= counts.most).all()
    np.testing.assert_array_equal(counts.least[:, 0], truth[:, 0])
    np.testing.assert_array_equal(counts.most[:, 0], truth[:, 0])
    assert counts.exact[1] < 2 * len(truth)


# ---------------------------------------------------------------- membership


def test_membership_is_right_where_rows_are_few_and_undecided_where_they_are_many() -> None:
    small, large, elsewhere = (
        drawn([count, 50, 60], 3, "binomial", seed)[0] for count, seed in ((5, 0), (60, 0), (5, 9))
    )
    others = drawn([1, 50, 60], 3, "binomial")[1:]
    played = simulated.datashield_glm([small, *others], "binomial")
    assert {one.verdict for one in audited(played, records(small)).members} == {"yes"}
    assert {one.verdict for one in audited(played, records(elsewhere)).members} == {"no"}
    many = simulated.datashield_glm([large, *others], "binomial")
    assert {one.verdict for one in audited(many, records(large)[:5]).members} == {"undecided"}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30), st.sampled_from(FAMILIES))
def test_no_record_of_a_site_is_ever_denied(seed: int, count: int, family: str) -> None:
    (site,) = drawn([count], 4, family, seed)
    points = [np.zeros(4), np.array([0.3, 0.5, -0.2, 0.9])]
    sums = [SumsAt(at, *sums_at(family, site.X, site.y, at)) for at in points]
    said = Known("A", family, tuple("abcd"), count, tuple(sums))
    learned = {"totals": find_totals(said)}
    from roundelay.privacy.protocols.audit import membership

    assert all(membership(said, learned, record).verdict != "no" for record in records(site))
    far = np.r_[50.0 * np.ones(3), 1.0]
    assert membership(said, learned, far).verdict == "no"


# ---------------------------------------------------------------- sealed laps beside it


def test_sealed_laps_tell_sums_of_several_sites_and_no_site_apart() -> None:
    sites = drawn([5, 30, 40, 50], 3, "binomial")
    assert len(audited(simulated.datashield_glm(sites, "binomial")).single) == 5
    for colluders in (0, 2):
        played = simulated.sealed_laps(sites, "binomial", colluders)
        found, honest = audited(played), sites[: len(sites) - colluders]
        assert len(found.single) == 0
        totals = found.learned["totals"].totals
        np.testing.assert_allclose(totals.XtX, sum(one.X.T @ one.X for one in honest), atol=1e-6)
        assert np.linalg.norm(totals.XtX - sites[0].X.T @ sites[0].X) > 10.0
        # Whose rows are whose changes no number of what is known.
        swapped = [Site("A", sites[1].X, sites[1].y), Site("B", sites[0].X, sites[0].y), *sites[2:]]
        for one, other in zip(
            played.recorded.messages,
            simulated.sealed_laps(swapped, "binomial", colluders).recorded.messages,
            strict=True,
        ):
            for word, value in one.values.items():
                np.testing.assert_array_equal(other.values[word], value)


def test_rows_of_two_tiny_sites_are_found_in_their_sum_when_all_others_collude() -> None:
    """What sealed laps do not hide: the sum itself, where it is of few rows."""
    sites = drawn([2, 2, 40, 50], 3, "binomial", seed=3)
    found = audited(simulated.sealed_laps(sites, "binomial", 2))
    assert held_against(found.single, np.vstack([records(sites[0]), records(sites[1])])) == (4, 0)


def test_control_one_colluder_more_leaves_a_site_alone() -> None:
    sites = drawn([4, 30, 40, 50], 3, "binomial")
    played = simulated.sealed_laps(sites, "binomial", 3)
    assert played.recorded.sites == ("the sum over A",)
    assert held_against(audited(played).single, records(sites[0])) == (4, 0)


# ---------------------------------------------------------------- covariances with columns of one's own


def test_a_hidden_column_follows_from_as_many_requests_as_there_are_rows_less_one() -> None:
    (site,) = drawn([40], 3, "gaussian")
    played = simulated.datashield_covariances(site, 1, 39, controls=DATASHIELD)
    found = rl.audit_protocol(played.recorded, truth={"A": site.X[:, [1]]}).sites[0]
    assert (found.right, found.wrong) == (40, 0)
    np.testing.assert_allclose(found.single[:, 0], site.X[:, 1], atol=1e-8)
    fewer = rl.audit_protocol(simulated.datashield_covariances(site, 1, 38).recorded).sites[0]
    assert "39 independent equations in 40 values: too few" in fewer.left_out["hidden column"]
    (tiny,) = drawn([6], 3, "gaussian")
    assert "2 parameters for 6 rows" in simulated.datashield_covariances(tiny, 1, 5, controls=DATASHIELD).refused["A"]


def test_what_the_thresholds_stop() -> None:
    sites = drawn([9, 60, 60], 3, "binomial")
    assert "parameters for 9 rows" in simulated.datashield_glm(sites, "binomial", DATASHIELD).refused["A"]
    assert "10 are the least" in simulated.vantage6_glm(sites, "binomial", VANTAGE6).refused["A"]
    with pytest.raises(ValueError, match="Every site refuses"):
        simulated.vantage6_glm(sites[:1], "binomial", VANTAGE6)


# ---------------------------------------------------------------- files


def test_messages_come_back_bit_for_bit(tmp_path: Path) -> None:
    sites = drawn([5, 30], 3, "binomial")
    for fit in (
        simulated.datashield_glm(sites, "binomial"), simulated.vantage6_glm(sites, "binomial"), simulated.pda_odal(sites, 1),
        simulated.federated_averaging(sites, "binomial", 0.3, 2, 3), simulated.datashield_covariances(sites[0], 1, 4),
    ):  # fmt: skip
        again = rl.load_messages(rl.save_messages(fit.recorded, tmp_path / "messages.jsonl"))
        assert (again.protocol, again.family, again.columns) == (
            fit.recorded.protocol,
            fit.recorded.family,
            fit.recorded.columns,
        )
        for one, other in zip(fit.recorded.messages, again.messages, strict=True):
            assert (one.site, one.iteration, set(one.values)) == (other.site, other.iteration, set(other.values))
            assert all(np.array_equal(one.values[word], other.values[word]) for word in one.values)


HEAD = {
    "roundelay": "protocol messages",
    "format": 1,
    "protocol": "ds.glm",
    "family": "binomial",
    "columns": ["constant", "age"],
}
GOOD = {"site": "Oslo", "iteration": 1, "beta": [0, 0], "score.vect": [0, 1.5], "info.matrix": [[15, 9], [9, 48]], "dev": 11.1, "numsubs": 60}  # fmt: skip
HOSTILE = {
    "no JSON": ("{\n{", "Line 1 of .* is no JSON"),
    "not a number": (json.dumps(HEAD) + '\n{"site": "Oslo", "iteration": 1, "dev": NaN}', "Line 2 of .* is no JSON"),
    "deep": (json.dumps(HEAD) + "\n" + "[" * 100_000, "Line 2 of .* is no JSON"),
    "a list": (json.dumps(HEAD) + "\n[]", "one object stands in each line"),
    "nothing": (json.dumps(HEAD), "has 1 lines"),
    "another mark": (json.dumps(HEAD | {"format": 2}) + "\n{}", "must begin with"),
    "another protocol": (json.dumps(HEAD | {"protocol": "os.system"}) + "\n{}", "known are ds.glm"),
    "another family": (json.dumps(HEAD | {"family": []}) + "\n" + json.dumps(GOOD), "use binomial or gaussian"),
    "a number too many": (json.dumps(HEAD | {"learning_rate": 1}) + "\n" + json.dumps(GOOD), "look at 'learning_rate'"),
    "no columns": (json.dumps(HEAD | {"columns": "ab"}) + "\n" + json.dumps(GOOD), 'has no "columns"'),
    "a cursor": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"site": "\x1b[2J"}), 'has no "site"'),
    "a huge number": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"dev": 10**400}), "'dev' in line 2"),
    "ragged": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"info.matrix": [[1, 2], [3]]}), "'info.matrix' in line 2"),
    "a shape": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"beta": [0, 0, 0]}), "shape 3: it should be 2"),
    "an unknown name": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"gradient": 1}), "There is no 'gradient'"),
    "a word": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"dev": "11"}), "'dev' in line 2"),
    "what is missing": (json.dumps(HEAD) + "\n" + json.dumps({k: v for k, v in GOOD.items() if k != "dev"}), "has no 'dev'"),
    "half a row": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"numsubs": 7.5}), "it counts rows"),
    "no constant": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"numsubs": 61}), "its first column is not the constant 1"),
    "not symmetric": (json.dumps(HEAD) + "\n" + json.dumps(GOOD | {"info.matrix": [[15, 9], [1, 48]]}), "not symmetric"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_by_a_sentence(name: str, tmp_path: Path) -> None:
    text, words = HOSTILE[name]
    file = tmp_path / "messages.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        rl.audit_protocol(rl.load_messages(file))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whatever_stands_in_a_message_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=6,
    )
    message = GOOD | {data.draw(st.sampled_from(sorted(GOOD))): data.draw(anything)}
    file = tmp_path_factory.mktemp("hostile") / "messages.jsonl"
    file.write_text(json.dumps(HEAD) + "\n" + json.dumps(message), encoding="utf-8")
    with np.errstate(all="ignore"):
        try:
            assert rl.audit_protocol(rl.load_messages(file)).sites
        except ValueError as error:
            assert str(error).endswith((".", "!"))


def test_the_lines_of_the_page_are_such_a_file(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocols.md").read_text(encoding="utf-8")
    file = tmp_path / "messages.jsonl"
    file.write_text(page.split("```text\n")[1].split("```")[0], encoding="utf-8")
    recorded = rl.load_messages(file, "ds.glm")
    assert (recorded.sites, recorded.columns) == (("Oslo",), ("constant", "age"))
    np.testing.assert_allclose(find_totals(recorded.protocol.known(recorded, "Oslo")).totals.XtX, [[8, 36], [36, 192]])


# ---------------------------------------------------------------- the command


def test_the_command_says_what_is_known_of_each_site(tmp_path: Path) -> None:
    sites = drawn([5, 60], 3, "binomial")
    file = rl.save_messages(simulated.datashield_glm(sites, "binomial").recorded, tmp_path / "messages.jsonl")
    names = ["x1", "x2", "outcome"]
    truth = pd.concat([pd.DataFrame(records(one), columns=names).assign(site=one.name) for one in sites])
    truth.to_csv(tmp_path / "truth.csv", index=False)
    truth[names].iloc[[0, 20]].to_csv(tmp_path / "records.csv", index=False)
    told = [
        "audit",
        str(file),
        "--protocol",
        "ds.glm",
        "--truth",
        str(tmp_path / "truth.csv"),
        "--known-record",
        str(tmp_path / "records.csv"),
    ]
    runner = CliRunner()
    said = runner.invoke(app, told)
    assert said.exit_code == 0, said.output
    assert "What the analyst learned of each site by ds.glm" in said.output
    assert "5 single rows right, 0 wrong" in said.output
    found = json.loads(runner.invoke(app, [*told, "--json", "--site", "A"]).stdout)["sites"]
    assert [one["site"] for one in found] == ["A"]
    assert [one["verdict"] for one in found[0]["records"]] == ["yes", "no"]
    assert held_against(np.array(found[0]["single_rows"]), records(sites[0])) == (5, 0)
    np.testing.assert_allclose(found[0]["totals"]["XtX"], sites[0].X.T @ sites[0].X, atol=1e-9)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (["--protocol", "v6-glm"], "has messages of ds.glm, not of v6-glm"),
        (["--protocol", "none"], "There is no protocol 'none'"),
        (["--protocol", "ds.glm", "--site", "Z"], "No message is of 'Z'"),
        (["--site", "A"], "name it by --protocol"),
        (["--protocol", "ds.glm", "--records", "3"], "leave them out"),
        (["--protocol", "ds.glm", "--truth", "nowhere.csv"], "There is no file nowhere.csv"),
    ],
)
def test_the_command_refuses_by_a_sentence(told: list[str], words: str, tmp_path: Path) -> None:
    file = rl.save_messages(
        simulated.datashield_glm(drawn([5, 60], 2, "binomial"), "binomial").recorded, tmp_path / "messages.jsonl"
    )
    refused = CliRunner().invoke(app, ["audit", str(file), *told])
    assert refused.exit_code == 2
    assert words in refused.output
