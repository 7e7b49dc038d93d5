"""Differencing on real rings: what two totals give away, and that a site by default does not let it come to that."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import roundelay as rl
from roundelay.agents.agreement.differencing import DifferenceError
from roundelay.agents.agreement.epochs import plan_with, plan_without
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.ledger import LEDGER, Added, Ledger, LedgerError, Told, read_ledger, spent
from roundelay.agents.agreement.plan import Promise, Task
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import half_range
from roundelay.agents.data.objectives import Known
from roundelay.agents.links import transport
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.journal import Journal, JournalError, epochs_with_sums
from roundelay.agents.protocol.wire import Kind, unpack_frame
from roundelay.agents.site.bookkeeping import Bookkeeper, lost_sums
from roundelay.agents.site.taking_part import Ending
from roundelay.algorithms.sealed.questions import asked_in, total_of
from roundelay.algorithms.sealed.shared_noise import gaussian_delta
from roundelay.cli.app import app
from roundelay.privacy.accounting.budget import sum_multiplier
from tests.agents.conftest import COLUMNS, invited, site
from tests.agents.hospitals import LAX, NAMES, QUIET, TASK, Hospitals
from tests.agents.world import least_squares

REFUSED = "Narvik takes part no more. Together with the sum of .*, in which it did, the new sum tells every member what Narvik's"


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch)


def sums_of(hospitals: Hospitals, name: str) -> tuple[Added, ...]:
    return read_ledger(hospitals.folder / name).added


def pooled_products(hospitals: Hospitals, ring: SignedPlan, ended: Ending) -> tuple[np.ndarray, np.ndarray]:
    """X'X and X't of all rows in raw units, with a column of ones, from what every member is told: the totals and the statistics."""
    plan, standard = ring.plan, ended.notes.standard
    assert standard is not None
    first = plan.members[plan.order[0]].name
    journal = Journal(hospitals.folder / first / "runs" / plan.run, plan.run, first)
    (one, *_) = journal.questions(0)
    journal.close()
    assert one.total is not None
    total = total_of(asked_in(one.kind), one.total, plan.dim)
    assert total.hessian is not None
    n, scale = standard.rows, standard.deviation
    spread = total.hessian * np.outer(scale, scale) * n / plan.agents  # Σ(x − mean)(x − mean)'
    slope = -total.gradient * scale * n / plan.agents  # Σ(x − mean)(t − mean), since the first question is at 0
    mean, centre = np.array([1.0, *standard.mean]), standard.target_mean
    squares = n * np.outer(mean, mean)
    squares[1:, 1:] += spread
    products = n * mean * centre
    products[1:] += slope
    return squares, products


def test_two_totals_that_differ_by_one_site_are_its_data_and_that_is_refused(hospitals: Hospitals) -> None:
    """The attack itself, on two real rings: it recovers X'X and X't of the site that left; by default it can't be run."""
    everybody = hospitals.accept(hospitals.plan())
    before = hospitals.finish(everybody)["Bergen"]
    fewer = hospitals.plan(*NAMES[:3])
    for name in NAMES[:3]:
        with pytest.raises(DifferenceError, match=REFUSED):
            accept_ring(hospitals.folder / name, fewer.text)
    hospitals.accept(fewer, despite_difference=True)
    after = hospitals.finish(fewer)["Bergen"]

    table = hospitals.tables["Narvik"]
    rows = np.column_stack([np.ones(len(table)), table[:, :2]])
    all_squares, all_products = pooled_products(hospitals, everybody, before)
    squares, products = pooled_products(hospitals, fewer, after)
    np.testing.assert_allclose(all_squares - squares, rows.T @ rows, rtol=1e-8)
    np.testing.assert_allclose(all_products - products, rows.T @ table[:, 2], rtol=1e-7)

    *_, last = sums_of(hospitals, "Oslo")
    assert last.run == fewer.plan.run and len(last.overruled) == 1 and "Narvik takes part no more." in last.overruled[0]


def test_an_overrule_of_one_operator_is_not_that_of_another(hospitals: Hospitals) -> None:
    hospitals.finish(hospitals.accept(hospitals.plan()))
    fewer = hospitals.plan(*NAMES[:3])
    accept_ring(hospitals.folder / "Oslo", fewer.text, despite_difference=True)
    accept_ring(hospitals.folder / "Oslo", fewer.text)  # it has been let pass
    with pytest.raises(DifferenceError):
        accept_ring(hospitals.folder / "Bergen", fewer.text)
    again = hospitals.plan(*NAMES[:3])
    with pytest.raises(DifferenceError):  # nor for another ring file
        accept_ring(hospitals.folder / "Oslo", again.text)


def test_rings_accepted_before_either_has_run_are_refused_by_the_agent(hospitals: Hospitals) -> None:
    """At accept there was nothing to be said: what the second one tells is found before it adds a word."""
    everybody, fewer = hospitals.accept(hospitals.plan()), hospitals.accept(hospitals.plan(*NAMES[:3]))
    books = [_books(hospitals, fewer, name) for name in NAMES[:3]]
    for one in books:
        one.check()  # both agents are up and wait for their neighbours
    hospitals.finish(everybody)
    for one in books:
        with pytest.raises(DifferenceError, match=REFUSED):
            one.before_adding(())
    ended = hospitals.run(fewer)
    assert ended and all(isinstance(one, DifferenceError) for one in ended.values())
    assert len(sums_of(hospitals, "Oslo")) == 1
    despite = {name: replace(QUIET, despite_difference=True) for name in NAMES}
    assert all(isinstance(one, Ending) for one in hospitals.run(fewer, despite).values())
    assert "Narvik takes part no more." in sums_of(hospitals, "Oslo")[-1].overruled[0]


def _books(hospitals: Hospitals, ring: SignedPlan, name: str, least: int = 10) -> Bookkeeper:
    return Bookkeeper(
        hospitals.folder / name, ring, hospitals.local(name, ring.plan.task), replace(LAX, least_rows=least)
    )


def test_the_entry_is_there_before_a_word_leaves(hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch) -> None:
    send, seen = transport.MemoryTransport.send, []
    ring = hospitals.accept(hospitals.plan())

    async def watched(self: transport.MemoryTransport, peer: int, data: bytes) -> bool:
        frame = unpack_frame(data, ring.plan.run_bytes)
        if frame.kind == Kind.BATON and frame.body[0] != Phase.KEYS:
            seen.append(len(sums_of(hospitals, ring.plan.members[self.me].name)))
        return await send(self, peer, data)

    monkeypatch.setattr(transport.MemoryTransport, "send", watched)
    hospitals.finish(ring)
    assert seen and set(seen) == {1}
    for name in NAMES:
        assert [type(one) for one in read_ledger(hospitals.folder / name).entries] == [Added, Told]
        (one,) = sums_of(hospitals, name)
        assert one.names == set(NAMES) and one.data.rows == 40 and one.data.digest == hospitals.local(name, TASK).digest
        assert read_ledger(hospitals.folder / name).rows_told(one) == 160 and one.how == "sealed laps"


@pytest.mark.parametrize(
    "algorithm", [rl.PIADMM1(rho=1.0, start=rl.SealedStart()), rl.IADMM(rho=1.0)], ids=["piadmm1", "iadmm"]
)
def test_a_token_is_in_the_ledger_too(algorithm: object, hospitals: Hospitals) -> None:
    hospitals.finish(hospitals.accept(hospitals.plan(algorithm=algorithm)))
    (one,) = sums_of(hospitals, "Bergen")
    assert one.how == algorithm.name and one.questions == 0  # type: ignore[attr-defined]
    with pytest.raises(DifferenceError, match=REFUSED):
        hospitals.accept(hospitals.plan(*NAMES[:3]))


def test_a_change_of_members_in_a_run(hospitals: Hospitals) -> None:
    """Two that leave together hide each other; one alone is refused; who comes is told that it can't know."""
    first = hospitals.accept(hospitals.plan())
    hospitals.finish(first)
    alone = hospitals.signed(plan_without(first.plan, ["Narvik"], previous=first.digest), "Oslo")
    with pytest.raises(DifferenceError, match=REFUSED):
        accept_ring(hospitals.folder / "Oslo", alone.text)
    both = hospitals.signed(plan_without(first.plan, ["Narvik", "Tromso"], previous=first.digest), "Oslo")
    accept_ring(hospitals.folder / "Oslo", both.text)


def test_a_newcomer(hospitals: Hospitals) -> None:
    first = hospitals.accept(hospitals.plan(*NAMES[:3]))
    hospitals.finish(first)
    joined = hospitals.signed(plan_with(first.plan, [invited(site("Narvik"))], previous=first.digest), "Oslo")
    with pytest.raises(DifferenceError, match=r"Narvik is new\. Together with the sum of"):
        accept_ring(hospitals.folder / "Oslo", joined.text)
    with pytest.raises(DifferenceError, match="This ring has run before Narvik came"):
        accept_ring(hospitals.folder / "Narvik", joined.text)
    hospitals.accept(joined, despite_difference=True)
    hospitals.finish(joined)
    assert [one.epoch for one in sums_of(hospitals, "Oslo")] == [0, 1]
    assert [one.epoch for one in sums_of(hospitals, "Narvik")] == [1]


# ---------------------------------------------------------------- rows


def test_few_rows_of_ones_own_that_changed_stop_the_agent(hospitals: Hospitals) -> None:
    hospitals.finish(hospitals.accept(hospitals.plan()))
    again = hospitals.accept(hospitals.plan())
    table = hospitals.tables["Oslo"]
    hospitals.tables["Oslo"] = table[::-1]  # only in another order
    _books(hospitals, again, "Oslo").check()
    hospitals.tables["Oslo"] = np.vstack([table[:-2], table[:2] + 1.0])  # two are others now
    with pytest.raises(DifferenceError, match=r"data have changed since the sum of .*, by 4 rows .* floor is 10"):
        _books(hospitals, again, "Oslo").check()
    _books(hospitals, again, "Oslo", least=4).check()
    hospitals.tables["Oslo"] = np.vstack([table, table[:12] + 1.0])
    _books(hospitals, again, "Oslo").check()


def test_a_site_that_lost_its_journal_does_not_answer_again_with_other_data(hospitals: Hospitals) -> None:
    ring = hospitals.accept(hospitals.plan())
    hospitals.finish(ring)
    shutil.rmtree(hospitals.folder / "Oslo" / "runs")
    _books(hospitals, ring, "Oslo").check()  # the same words under the same masks
    hospitals.tables["Oslo"] = hospitals.tables["Oslo"][1:]
    refused = hospitals.run(ring)["Oslo"]
    assert isinstance(refused, LedgerError) and "with other data, and a mask is never used for two answers" in str(
        refused
    )


def test_the_same_table_with_other_columns_is_the_same_data(hospitals: Hospitals) -> None:
    """Other columns, another digest: yet the column that both have tells of the site that left."""
    hospitals.finish(hospitals.accept(hospitals.plan()))
    fewer = hospitals.plan(*NAMES[:3], task=Task("least_squares", (COLUMNS[0],), COLUMNS[2]))
    assert hospitals.local("Oslo", fewer.plan.task).digest != hospitals.local("Oslo", TASK).digest
    with pytest.raises(DifferenceError, match=r"the sums, squares and products of age \[years\] and outcome"):
        _books(hospitals, fewer, "Oslo").check()
    same = hospitals.plan(task=Task("least_squares", (COLUMNS[0],), COLUMNS[2]))
    _books(hospitals, same, "Oslo").check()


def test_one_row_more_at_another_site_stops_the_others_before_they_answer(hospitals: Hospitals) -> None:
    """Nobody knows whose row it is, but the count of all rows gives it away, and the agent stops there."""
    hospitals.finish(hospitals.accept(hospitals.plan()))
    again = hospitals.accept(hospitals.plan())
    hospitals.tables["Narvik"] = np.vstack([hospitals.tables["Narvik"], [60.0, 180.0, -20.0]])
    careless = {"Narvik": replace(QUIET, least_rows=1)}
    ended = hospitals.run(again, careless)
    stopped = [one for one in ended.values() if isinstance(one, DifferenceError)]
    assert stopped and not any(isinstance(one, Ending) for one in ended.values())
    assert all("All sites together have 161 rows, and had 160 in the sum of" in str(one) for one in stopped)
    for name in NAMES:
        home = hospitals.folder / name / "runs" / again.plan.run
        journal = Journal(home, again.plan.run, name)
        assert not journal.questions(0)
        journal.close()
    despite = {
        name: replace(QUIET, despite_difference=True, least_rows=1 if name == "Narvik" else 10) for name in NAMES
    }
    assert all(isinstance(one, Ending) for one in hospitals.run(again, despite).values())
    passed = [one for one in read_ledger(hospitals.folder / "Oslo").overruled(again.digest) if one.what == "all rows"]
    assert len(passed) == 1


def test_custom_objectives_have_no_digest_and_are_compared_by_members(hospitals: Hospitals) -> None:
    ring = hospitals.plan(task=Task("custom", dim=3))
    Bookkeeper(hospitals.folder / "Oslo", ring, Known(least_squares(1, 3)), LAX).before_adding(())
    (one,) = sums_of(hospitals, "Oslo")
    assert one.data.digest == "" and one.columns == frozenset()
    fewer = hospitals.plan(*NAMES[:3], task=Task("custom", dim=3))
    with pytest.raises(DifferenceError, match=REFUSED):
        accept_ring(hospitals.folder / "Oslo", fewer.text)


# ---------------------------------------------------------------- a ledger that was put back


def here(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("how", ["older copy", "torn on purpose", "deleted"])
def test_an_older_ledger_is_noticed_by_the_journals(how: str, hospitals: Hospitals) -> None:
    """A valid beginning of the ledger can't be told from the whole by itself."""
    folder = hospitals.folder / "Oslo"
    for _ in range(2):
        hospitals.finish(hospitals.accept(hospitals.plan()))
    assert here("ring", "ledger", "--folder", str(folder)).exit_code == 0
    lines = (folder / LEDGER).read_bytes().splitlines(keepends=True)
    kept = {"older copy": b"".join(lines[:2]), "torn on purpose": b"".join(lines[:2]) + lines[2][:-20], "deleted": b""}
    (folder / LEDGER).write_bytes(kept[how])
    said = here("ring", "ledger", "--folder", str(folder))
    assert said.exit_code == 2 and "that the ledger" in said.stderr and "its last lines were cut off" in said.stderr
    ring = hospitals.accept(hospitals.plan())
    refused = hospitals.run(ring)["Oslo"]
    assert isinstance(refused, DifferenceError) and "does not have" in str(refused)
    despite = {name: replace(QUIET, despite_difference=True) for name in NAMES}
    assert all(isinstance(one, Ending) for one in hospitals.run(ring, despite).values())
    assert here("ring", "ledger", "--folder", str(folder)).exit_code == 0
    assert any("its last lines were cut off" in one for one in sums_of(hospitals, "Oslo")[-1].overruled)


def test_the_ledger_can_be_looked_at_while_an_agent_runs(hospitals: Hospitals) -> None:
    ring, folder = hospitals.accept(hospitals.plan()), hospitals.folder / "Oslo"
    hospitals.finish(ring)
    journal = Journal(folder / "runs" / ring.plan.run, ring.plan.run, "Oslo")
    try:
        with pytest.raises(JournalError, match="can't be looked at now"):
            epochs_with_sums(journal.folder)
        assert journal.epochs_with_sums() == (0,) and not lost_sums(folder, read_ledger(folder), journal)
        assert lost_sums(folder, Ledger(folder / LEDGER), journal)
        assert here("ring", "ledger", "--folder", str(folder)).exit_code == 0
    finally:
        journal.close()
    assert epochs_with_sums(journal.folder) == (0,) and epochs_with_sums(folder) == ()


# ---------------------------------------------------------------- the commands


def test_the_ledger_is_printed_and_checked(hospitals: Hospitals) -> None:
    folder = str(hospitals.folder / "Oslo")
    assert "This site has added to no sum yet." in here("ring", "ledger", "--folder", folder).stdout
    hospitals.finish(hospitals.accept(hospitals.plan()))
    hospitals.finish(hospitals.accept(hospitals.plan(*NAMES[:3]), despite_difference=True))
    said = here("ring", "ledger", "--folder", folder)
    assert said.exit_code == 0, said.output
    for words in (
        "with Oslo, Bergen, Tromso, Narvik", "a linear model of outcome from age [years], length [cm]",
        "by sealed laps, at most 200 questions", "on 40 rows of this site of 160 in all", "exact sums, without noise",
        "OVERRULED: Narvik takes part no more.", "2 runs of exact sums: they promise no differential privacy.",
    ):  # fmt: skip
        assert words in said.stdout, said.stdout
    told = json.loads(here("ring", "ledger", "--folder", folder, "--json").stdout)
    assert [one["all_rows"] for one in told["sums"]] == [160, 120] and told["exact"] == 2 and told["rho"] == 0.0
    assert told["sums"][0]["overruled"] == [] and len(told["sums"][1]["overruled"]) == 1
    assert {one["name"] for one in told["sums"][1]["members"]} == set(NAMES[:3])
    path = hospitals.folder / "Oslo" / LEDGER
    path.write_bytes(path.read_bytes().replace(b'"rows":40', b'"rows":41', 1))
    said = here("ring", "ledger", "--folder", folder)
    assert said.exit_code == 2 and "Line 1 of the ledger" in said.stderr and "was changed" in said.stderr


def test_accept_says_it_and_refuses_and_the_planner_is_warned(hospitals: Hospitals, tmp_path: Path) -> None:
    first = hospitals.accept(hospitals.plan())
    hospitals.finish(first)
    ring, fewer, folder = tmp_path / "ring.toml", tmp_path / "ring-1.toml", str(hospitals.folder / "Oslo")
    ring.write_bytes(first.text)
    dropped = here("ring", "drop", str(ring), "Narvik", "--folder", folder, "--out", str(fewer))
    assert dropped.exit_code == 0 and "Narvik takes part no more." in dropped.stdout, dropped.output
    assert "each operator has to add --despite-difference" in dropped.stdout
    words = ("ring", "accept", str(fewer), "--folder", folder, "--yes")
    said = here(*words)
    assert said.exit_code == 2 and "Narvik takes part no more." in said.stderr and "is not accepted" in said.stderr
    assert len(list((hospitals.folder / "Oslo" / "accepted").iterdir())) == 1
    said = here(*words, "--despite-difference", "--json")
    assert said.exit_code == 0 and "Narvik takes part no more." in json.loads(said.stdout)["follows"][0]
    assert here(*words).exit_code == 0
    told = json.loads(
        here("ring", "drop", str(ring), "Narvik", "Bergen", "--folder", folder, "--out", str(fewer), "--json").stdout
    )
    assert told["follows"] == [
        "Only Oslo and Tromso take part. A sum of two hides nothing between them: the total less its own part is the other's."
    ]


def test_the_agent_stops_with_a_sentence(hospitals: Hospitals, tmp_path: Path) -> None:
    everybody, fewer = hospitals.accept(hospitals.plan()), hospitals.accept(hospitals.plan(*NAMES[:3]))
    hospitals.finish(everybody)
    ring, data = tmp_path / "ring.toml", tmp_path / "rows.csv"
    ring.write_bytes(fewer.text)
    header = ",".join(map(str, COLUMNS))
    np.savetxt(data, hospitals.tables["Oslo"], "%.17g", ",", header=header, comments="")
    words = ("agent", "--ring", str(ring), "--folder", str(hospitals.folder / "Oslo"), "--data", str(data), "--no-page")
    said = here(*words)
    assert said.exit_code == 4, said.output
    assert "Narvik takes part no more." in said.stderr and "adds --despite-difference" in said.stderr
    assert "Traceback" not in said.stderr and len(sums_of(hospitals, "Oslo")) == 1


def test_what_runs_with_noise_cost_on_the_same_data_adds_up(hospitals: Hospitals) -> None:
    """Two runs at ε = 1 are one Gaussian mechanism with √2 times the ratio of signal to noise; more is refused where a site says so."""
    task = replace(TASK, promise=Promise(1.0, 1e-6, (18.0, 140.0, -50.0), (90.0, 200.0, 50.0)))
    multiplier = sum_multiplier(1.0, 1e-6)
    noisy = rl.SealedLaps(
        wide=True, clip_row=float(np.sqrt(task.dim)), clip_slope=half_range(task), noise_multiplier=multiplier
    )
    for _ in range(2):
        hospitals.finish(hospitals.accept(hospitals.plan(task=task, algorithm=noisy)))
    cost = spent(read_ledger(hospitals.folder / "Oslo").entries, hospitals.local("Oslo", task).digest)
    assert cost.exact == 0 and cost.rho == pytest.approx(1.0 / multiplier**2)
    assert gaussian_delta(multiplier / np.sqrt(2.0), cost.epsilon(1e-6)) == pytest.approx(1e-6)
    assert 1.4 < cost.epsilon(1e-6) < 1.6
    third = hospitals.accept(hospitals.plan(task=task, algorithm=noisy))
    ended = hospitals.run(third, {"Oslo": replace(QUIET, most_epsilon=1.7)})
    assert "would cost ε = 1.8" in str(ended["Oslo"]) and "this site allows 1.7" in str(ended["Oslo"])
    assert isinstance(ended["Oslo"], LedgerError) and len(sums_of(hospitals, "Oslo")) == 2
    said = CliRunner().invoke(app, ["ring", "ledger", "--folder", str(hospitals.folder / "Oslo")])
    assert said.exit_code == 0 and "with noise: ε = 1 at δ = 1e-06" in said.output
    assert f"All sums with noise together have cost ε = {cost.epsilon(1e-6):.3g} at δ = 1e-06" in said.output


def test_no_epsilon_holds_after_exact_sums_on_the_same_data(hospitals: Hospitals) -> None:
    hospitals.finish(hospitals.accept(hospitals.plan()))
    task = replace(TASK, promise=Promise(1.0, 1e-6, (18.0, 140.0, -50.0), (90.0, 200.0, 50.0)))
    noisy = rl.SealedLaps(
        wide=True, clip_row=float(np.sqrt(task.dim)), clip_slope=half_range(task), noise_multiplier=sum_multiplier(1.0, 1e-6)
    )  # fmt: skip
    ring = hospitals.accept(hospitals.plan(task=task, algorithm=noisy))
    ended = hospitals.run(ring, {"Oslo": replace(QUIET, most_epsilon=3.0)})
    assert "exact sums of 1 other run" in str(ended["Oslo"])
