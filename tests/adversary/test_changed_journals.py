"""A member that did something else than its neighbours think, and shows a journal in which it did not: journals compared by consent name it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.links import agent_loop
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.holder import HandOver, Holder
from roundelay.agents.protocol.journal import Journal, Passage
from roundelay.agents.protocol.receipts import OtherHandOversError, Receipt, Receipts
from roundelay.agents.protocol.signing import Certified
from roundelay.agents.site.comparing import Comparison, compare_journals
from roundelay.cli.app import app
from tests.agents.conftest import site
from tests.agents.hospitals import NAMES, SEALED, Hospitals

TOKEN = rl.IADMM(rho=2.0, start=rl.SealedStart())
OSLO, BERGEN, TROMSO, NARVIK = NAMES


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch)


def folders(hospitals: Hospitals, ring: SignedPlan, *names: str) -> list[Path]:
    """Copies of the run's folders, as sites would show them."""
    found = []
    for name in names or NAMES:
        found.append(hospitals.folder / "shown" / name)
        if not found[-1].exists():
            shutil.copytree(hospitals.folder / name / "runs" / ring.plan.run, found[-1])
    return found


def compared(hospitals: Hospitals, ring: SignedPlan, *names: str) -> Comparison:
    return compare_journals(ring, folders(hospitals, ring, *names))


def rewrite(folder: Path, sentence: str, *values: object) -> None:
    database = sqlite3.connect(folder / "journal.db", isolation_level=None)
    assert database.execute(sentence, values).rowcount > 0
    database.close()


def ended(hospitals: Hospitals, algorithm: object) -> SignedPlan:
    """A ring that has run to its end."""
    ring = hospitals.accept(hospitals.plan(algorithm=algorithm))
    hospitals.finish(ring)
    return ring


@pytest.mark.parametrize("algorithm", [TOKEN, SEALED], ids=["token", "sealed laps"])
def test_honest_journals_fit_and_are_signed_at_both_ends(algorithm: object, hospitals: Hospitals) -> None:
    ring = ended(hospitals, algorithm)
    found = compared(hospitals, ring)
    assert found.findings == found.unsigned == ()
    assert found.hand_overs > 20 and set(found.journals) == set(NAMES)


@pytest.mark.parametrize("algorithm", [TOKEN, SEALED], ids=["token", "sealed laps"])
def test_a_journal_that_was_changed_afterwards(algorithm: object, hospitals: Hospitals) -> None:
    """Bergen shows other numbers than it sent; only without its own signature could it be Tromso that has changed them."""
    ring = ended(hospitals, algorithm)
    _, bergen, tromso, _ = folders(hospitals, ring)
    phase = Phase.ITERATE if algorithm is TOKEN else Phase.ASK
    rewrite(
        bergen,
        "update passages set sent = zeroblob(length(sent)) where k = (select min(k) from passages where sent_phase = ?)",
        phase,
    )
    found = compared(hospitals, ring)
    assert {one.sites for one in found.findings} == {(BERGEN,)}
    assert "shows another journal than the one that it has signed to Tromso" in found.findings[0].sentence
    rewrite(tromso, "delete from receipts")  # the control: then nobody can say which of the two it is
    found = compared(hospitals, ring)
    assert {one.sites for one in found.findings} == {(BERGEN, TROMSO)} and "has other numbers" in found.findings[
        0
    ].sentence


def test_a_folder_that_was_put_back(hospitals: Hospitals) -> None:
    """Hand-overs that its neighbours have signatures of are not in it any more."""
    ring = ended(hospitals, TOKEN)
    oslo, _, tromso, _ = folders(hospitals, ring)
    rewrite(tromso, "delete from passages where k > 30")
    found = compared(hospitals, ring)
    assert {one.sites for one in found.findings} == {(TROMSO,)}
    rewrite(oslo, "delete from passages where k = 8")  # and one in the middle, at another site
    assert {one.sites for one in compared(hospitals, ring).findings} == {(TROMSO,), (OSLO,)}


def test_a_signature_that_its_owner_has_made_up_counts_for_nothing(hospitals: Hospitals) -> None:
    """Bergen would have Tromso found guilty, by a receipt that Tromso did not sign, or that Tromso signed to another."""
    ring = ended(hospitals, TOKEN)
    _, bergen, _, narvik = folders(hospitals, ring)
    with sqlite3.connect(narvik / "journal.db") as database:
        of_tromso = database.execute("select receipt from receipts where peer = 2").fetchone()[0]
    database.close()
    for forged in (Receipt.read(of_tromso)._replace(took=bytes(32)).pack(), of_tromso, b"", b"signed"):
        rewrite(bergen, "update receipts set receipt = ? where peer = 2", forged)
        found = compared(hospitals, ring)
        assert not found.findings and found.unsigned == ((TROMSO, BERGEN),)


@pytest.mark.parametrize(
    "sentence",
    [
        "update passages set received = x'0102' where k = 9",
        "update passages set sent = 'words' where k = 9",
        "update passages set sent_k = 'never' where k = 9",
        "update receipts set receipt = 7",
    ],
)
def test_a_journal_that_can_not_be_looked_at_keeps_nobody_from_looking(sentence: str, hospitals: Hospitals) -> None:
    """Whoever has lied would have the command fail instead of naming it: it is named by its folder, or its receipts count for nothing."""
    ring = ended(hospitals, TOKEN)
    shown = folders(hospitals, ring)
    rewrite(shown[1], sentence)
    if "receipts" in sentence:
        assert set(compared(hospitals, ring).unsigned) == {(OSLO, BERGEN), (TROMSO, BERGEN)}
        return
    with pytest.raises(ValueError, match="of Bergen, holds what no agent writes"):
        compare_journals(ring, shown)


ENDLESS = "as with recursive more(k) as (select 0 union all select k + 1 from more) select"


@pytest.mark.parametrize(
    ("table", "instead"),
    [
        (
            "passages",
            f"create view passages {ENDLESS} 0 as epoch, more.k as k, 0, 0, 0, 0, 0, 0, 0, x'', x'' from more",
        ),
        ("about", f"create view about {ENDLESS} 'member' as key, 'Bergen' as value from more"),
        ("receipts", f"create view receipts {ENDLESS} 0 as epoch, more.k as peer, x'' as receipt from more"),
        ("passages", "create table passages (epoch, k, a, b, c, d, e, f, g, h, sent as (zeroblob(500000000)))"),
        ("passages", "create virtual table passages using fts5(epoch, k)"),
    ],
)
def test_rows_without_end_are_no_journal(table: str, instead: str, hospitals: Hospitals) -> None:
    """A view can have them, and a column that is worked out can be as long as it likes: whoever compares would read for ever."""
    ring = ended(hospitals, TOKEN)
    shown = folders(hospitals, ring)
    with sqlite3.connect(shown[1] / "journal.db", isolation_level=None) as database:
        database.execute(f"alter table {table} rename to others")
        database.execute(instead)
        assert database.execute(f"select count(*) from (select * from {table} limit 1000)").fetchone() in [
            (0,),
            (1000,),
        ]
    database.close()
    if table == "receipts":  # what is no table of receipts has none
        assert set(compared(hospitals, ring).unsigned) == {(OSLO, BERGEN), (TROMSO, BERGEN)}
        return
    with pytest.raises(ValueError, match="no hand-overs as an agent writes them"):
        compare_journals(ring, shown)


def test_a_piece_beyond_all_measure_is_none_of_a_journal(hospitals: Hospitals) -> None:
    ring = ended(hospitals, TOKEN)
    rewrite(folders(hospitals, ring)[1], "update passages set sent = zeroblob(2000000) where k = 9")
    with pytest.raises(ValueError, match="can't be looked at: string or blob too big"):
        compare_journals(ring, folders(hospitals, ring))


def other_totals(self: Holder, purpose: int) -> HandOver:
    """One of the sums is a thousandth more than it came to, and signed as if it had."""
    told = self.held.told[purpose].copy()
    told[-1] *= 1.001
    self.held.told = (*self.held.told[:purpose], told)
    return honestly(self, purpose)


honestly = Holder._tell


def test_other_totals_than_the_words_came_to(hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can see it while the ring runs, and all end with a model: the journals name the teller, who can't mend them behind its signature."""

    def tell(self: Holder, purpose: int) -> HandOver:
        return (other_totals if self.me == 0 else honestly)(self, purpose)

    monkeypatch.setattr(Holder, "_tell", tell)
    ring = ended(hospitals, TOKEN)
    found = compared(hospitals, ring)
    assert {one.sites for one in found.findings} == {(OSLO,)}
    assert all("has told other totals" in one.sentence for one in found.findings)
    oslo = folders(hospitals, ring)[0]
    rewrite(oslo, "delete from passages where phase = ? and sent_phase = ?", Phase.SUM, Phase.TELL)
    found = compared(hospitals, ring)
    assert {one.sites for one in found.findings} == {(OSLO,)}
    assert "another journal than the one that it has signed" in found.findings[0].sentence


def test_what_was_only_to_be_handed_on(hospitals: Hospitals) -> None:
    """Bergen and Tromso together show that other totals left Bergen than came to it: Bergen's own journal says so."""
    ring = ended(hospitals, TOKEN)
    _, bergen, tromso, _ = folders(hospitals, ring)
    for folder, column, of in ((bergen, "sent", "sent_phase"), (tromso, "received", "phase")):
        rewrite(folder, f"update passages set {column} = zeroblob(length({column})) where {of} = ?", Phase.TELL)
        rewrite(folder, "delete from receipts")
    found = compared(hospitals, ring, BERGEN, TROMSO)
    assert (BERGEN,) in {one.sites for one in found.findings}
    assert any("has handed on another" in one.sentence for one in found.findings)


def test_whose_journal_is_told_by_a_command(hospitals: Hospitals, tmp_path: Path) -> None:
    ring = ended(hospitals, TOKEN)
    file = tmp_path / "ring.toml"
    file.write_bytes(ring.text)
    places = folders(hospitals, ring)

    def said(*more: str, of: Sequence[Path] = places) -> tuple[int, str]:
        answer = CliRunner().invoke(app, ["ring", "compare", "--ring", str(file), *map(str, of), *more])
        return answer.exit_code, answer.stdout

    assert said()[0] == 0 and "All fits." in said()[1]
    assert all(
        f"{place}: the journal of {name}, as it says itself." in said()[1]
        for place, name in zip(places, NAMES, strict=True)
    )
    rewrite(places[1], "update passages set sent = zeroblob(length(sent)) where k = 29")
    code, words = said()
    assert code == 1 and "Bergen: Bergen shows another journal" in words
    assert json.loads(said("--json")[1])["findings"][0]["sites"] == [BERGEN]
    for wrong, why in (
        ([places[0]], "nothing to be held against"),
        ([places[0], places[0]], "another journal of Oslo"),
        ([tmp_path, places[0]], "no journal in"),
    ):
        answer = CliRunner().invoke(app, ["ring", "compare", "--ring", str(file), *map(str, wrong)])
        assert answer.exit_code == 2 and why in " ".join(answer.output.split())


# ---------------------------------------------------------------- while the ring runs


def passages_of(k_last: int, other: int = -1) -> list[Passage]:
    """What went to and fro between members 0 and 1; one of them has other numbers in one place."""
    rows = []
    for k in range(1, k_last, 2):
        numbers = np.full(2, 99.0 if k == other else float(k)).tobytes()
        rows.append(
            Passage(0, k, k + 1, Phase.ITERATE, Phase.ITERATE, k, 1, 1, 0, numbers, np.full(2, k + 1.0).tobytes())
        )
    return rows


def turned(rows: Sequence[Passage]) -> list[Passage]:
    """The same, as the other end has it."""
    found = [Passage(0, 0, 1, -1, Phase.ITERATE, 0, -1, 0, 0, None, rows[0].received)]
    for one, after in pairwise(rows):
        found.append(
            Passage(0, one.sent_k, after.k, Phase.ITERATE, Phase.ITERATE, 0, 0, 0, 0, one.sent, after.received)
        )
    return found


def ends(rows: Sequence[Passage], others: Sequence[Passage]) -> tuple[Receipts, Receipts]:
    """Both ends of a link, with certificates."""
    certificates = tuple(site(name).certificate for name in (OSLO, BERGEN))

    def end(me: int, own: Sequence[Passage]) -> Receipts:
        signer = Certified(certificates, site((OSLO, BERGEN)[me]))
        after: Callable[[int], list[Passage]] = lambda k: [one for one in own if one.k > k]  # noqa: E731
        return Receipts(b"r" * 32, 0, (OSLO, BERGEN), me, signer, after)

    return end(0, rows), end(1, others)


def test_receipts_go_on_from_each_other() -> None:
    """Each covers all that crossed so far, whether it was made at once or piece by piece, and is taken at the other end."""
    rows = passages_of(40)
    oslo, bergen = ends(rows, turned(rows))
    for given, taken in ((6, 5), (12, 11), (30, 31)):
        receipt = oslo.give(1, given, taken)
        assert receipt is not None and bergen.check(0, receipt)
    piecewise, (fresh, _) = oslo._signed[1].digests, ends(rows, rows)
    whole = fresh.give(1, 30, 31)
    assert whole is not None and (whole.gave, whole.took) == piecewise
    assert fresh.give(1, 30, 31) is None  # nothing new
    assert fresh.give(1, 300, 31) is None  # not on disk


def test_a_neighbour_that_signs_something_else_stops_the_agent() -> None:
    rows = passages_of(40)
    for altered in (7, 15):
        oslo, bergen = ends(passages_of(40, other=altered), turned(rows))
        receipt = oslo.give(1, 20, 21)
        assert receipt is not None
        with pytest.raises(OtherHandOversError, match="Oslo has signed that other things crossed the link"):
            bergen.check(0, receipt)
    honest, bergen = ends(rows, turned(rows))
    receipt = honest.give(1, 20, 21)
    assert receipt is not None and not bergen.check(0, receipt._replace(signature=bytes(64)))
    assert not bergen.check(0, receipt._replace(given=22)) and bergen.check(0, receipt)
    assert not bergen.check(0, receipt)  # a repeated one costs no signature


def test_an_older_receipt_does_not_take_the_place_of_a_newer_one_after_a_restart() -> None:
    """Oslo would have its neighbour, which has started anew, keep a signature of less than it has signed, and change the rest."""
    rows = passages_of(40)
    oslo, bergen = ends(rows, turned(rows))
    old, new = oslo.give(1, 6, 5), oslo.give(1, 30, 31)
    assert old is not None and new is not None and bergen.check(0, new)
    started_anew = ends(rows, turned(rows))[1]
    assert started_anew.check(0, old)  # the control: without what stands in the journal
    started_anew = replace(ends(rows, turned(rows))[1], kept={0: new})
    assert not started_anew.check(0, old) and not started_anew.check(0, new)
    newer = oslo.give(1, 34, 35)
    assert newer is not None and started_anew.check(0, newer)


def test_a_restarted_agent_knows_the_receipts_in_its_journal(hospitals: Hospitals) -> None:
    ring = ended(hospitals, TOKEN)
    folder = hospitals.folder / BERGEN / "runs" / ring.plan.run
    with sqlite3.connect(folder / "journal.db") as database:
        kept = dict(database.execute("select peer, receipt from receipts"))
    database.close()
    journal = Journal(folder, ring.plan.run, BERGEN)
    assert kept and journal.receipts(ring.plan.epoch) == kept
    journal.close()


def test_an_agent_keeps_what_convicts_its_neighbour(hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a ring: Bergen signs to Tromso that it gave zeros. Tromso stops, names it, and has the signature."""
    give = Receipts.give

    def lie(self: Receipts, peer: int, given: int, taken: int) -> Receipt | None:
        if self.me == 1 and peer == 2:
            zeros = [one._replace(sent=bytes(len(one.sent or b""))) for one in self.passages(-1)]
            return give(replace(self, passages=lambda k: zeros, _signed={}), peer, given, taken)
        return give(self, peer, given, taken)

    monkeypatch.setattr(Receipts, "give", lie)
    ring = hospitals.accept(hospitals.plan(algorithm=TOKEN))
    failed = {name: one for name, one in hospitals.run(ring).items() if isinstance(one, BaseException)}
    assert set(failed) == {TROMSO} and isinstance(failed[TROMSO], OtherHandOversError)
    assert "Bergen has signed" in str(failed[TROMSO])
    assert {one.sites for one in compared(hospitals, ring).findings} == {(BERGEN,)}


def test_receipts_are_given_while_a_ring_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not only at the end: a member that leaves before it is bound by what it signed until then."""
    monkeypatch.setattr(agent_loop, "RECEIPT_EVERY", 0.0)
    hospitals = Hospitals(tmp_path, monkeypatch)
    kept: list[Receipt] = []
    check = Receipts.check

    def note(self: Receipts, peer: int, receipt: Receipt) -> bool:
        worth = check(self, peer, receipt)
        kept.extend([receipt] * worth)
        return worth

    monkeypatch.setattr(Receipts, "check", note)
    ring = ended(hospitals, TOKEN)
    assert len(kept) > 2 * 4 and compared(hospitals, ring).findings == ()
