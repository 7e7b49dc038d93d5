"""Another release in the middle of a run: it goes on with what an earlier one has left on disk, or says that it can't."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.ringfile import read_ring
from roundelay.agents.protocol import journal, migrations
from roundelay.agents.protocol.journal import BESIDE, Journal, JournalError, Record, Standing
from roundelay.agents.protocol.migrations import Migration
from roundelay.agents.site.comparing import compare_journals
from roundelay.agents.site.verification import verify_model
from tests.agents.likeness import check_every_hand_over_once
from tests.agents.processes import ProcessRing
from tests.agents.releases import LAPS, RINGS, SITES, formats, functions_of, kept, rows_of, unpacked


def optimum_of(name: str) -> np.ndarray:
    """What all sites together should find, in their own units: slopes, and the intercept where there is one."""
    if name == LAPS:
        rows = [rows_of(number) for number in range(SITES)]
        features = np.vstack([one.features for one in rows])
        whole = rl.Logistic(
            [np.column_stack([features, np.ones(len(features))])], [np.hstack([one.target for one in rows])]
        )
        return whole.optimum
    parts = functions_of(name)
    return rl.LeastSquares([one.features[0] for one in parts], [one.targets[0] for one in parts]).optimum


def test_folders_are_kept_of_the_formats_of_now() -> None:
    assert formats() in kept(), (
        f"What a run leaves on disk or on the wire has another format now ({formats()}). A run that is going on must survive it: write a step "
        "into protocol/migrations.py that brings a journal of the format before to this one (frames in it have the wire's version, which "
        "the step must change too), see that test_a_run_goes_on passes with it on what is kept, then keep folders of this release by "
        "python -m tests.agents.releases."
    )


@pytest.mark.parametrize("name", RINGS)
@pytest.mark.parametrize("written", kept())
def test_a_run_goes_on(written: str, name: str, tmp_path: Path) -> None:
    """Real agents, from the folders of a release, to a model that all sign; nothing that was handed over before is lost or done again."""
    ring = unpacked(kept()[written], tmp_path)[name]
    before = [ring.visits(number) for number in range(SITES)]
    assert all(before)
    ring.run()
    for number in range(SITES):
        after = ring.visits(number)
        assert after[: len(before[number])] == before[number]
        assert len(after) > len(before[number])
    check_every_hand_over_once(ring)
    signed = read_ring((ring.folder / "ring.toml").read_bytes(), "ring.toml")
    found = compare_journals(signed, [ring.site_folder(number) / "runs" / ring.plan.run for number in range(SITES)])
    assert found.findings == found.unsigned == ()
    for number in range(SITES):
        model = verify_model(ring.site_folder(number) / "model.json", signed).model
        found = [*(coefficient for _, coefficient in model.coefficients), *([model.intercept] if name == LAPS else [])]
        np.testing.assert_allclose(found, optimum_of(name), rtol=1e-6)


def journals(ring: ProcessRing) -> Path:
    return ring.site_folder(0) / "runs" / ring.plan.run


@pytest.fixture
def ring(tmp_path: Path) -> ProcessRing:
    """A ring in the middle of its run, as this release leaves it."""
    return unpacked(kept()[formats()], tmp_path)[LAPS]


def written_as(ring: ProcessRing, written: str) -> None:
    with sqlite3.connect(journals(ring) / "journal.db") as database:
        database.execute("update about set value = ? where key = 'format'", (written,))
    database.close()


def about_of(ring: ProcessRing) -> bytes:
    """What stands before the vectors of the first site's state."""
    opened = ring.journal(0)
    standing = opened.standing()
    opened.close()
    assert standing is not None and standing.state is not None
    return standing.state.about


def plain(ring: ProcessRing) -> dict[str, str]:
    with sqlite3.connect(journals(ring) / "journal.db") as database:
        found = dict(database.execute("select key, value from about").fetchall())
    database.close()
    return found


@pytest.mark.parametrize("written", ["1", str(journal.FORMAT + 1), "four", ""])
def test_a_format_that_is_not_known(written: str, ring: ProcessRing) -> None:
    written_as(ring, written)
    with pytest.raises(
        JournalError, match=f"has the format {written}, which this release does not know.*release that began the run"
    ):
        ring.journal(0)
    assert plain(ring)["format"] == written
    written_as(ring, str(journal.FORMAT))  # and nothing was changed
    assert ring.visits(0)


def test_each_step_is_taken_once_and_in_order(ring: ProcessRing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two formats on: the journal goes through both steps, and is of the new format then."""
    now, before = journal.FORMAT, about_of(ring)
    monkeypatch.setattr(journal, "FORMAT", now + 2)
    steps = {
        now: Migration(lambda about, frame: about + b"one"),
        now + 1: Migration(lambda about, frame: about + b"two"),
    }
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    for _ in range(2):
        assert about_of(ring) == before + b"onetwo"
        assert plain(ring)["format"] == str(now + 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", {now + 1: steps[now + 1]})
    written_as(ring, str(now))
    with pytest.raises(JournalError, match="does not know"):
        ring.journal(0)


def test_a_step_that_is_cut_short_has_changed_nothing(ring: ProcessRing, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a kill: the release before can still go on with the journal."""
    before, now = (ring.visits(0), about_of(ring)), journal.FORMAT

    def cut_short(about: bytes, frame: bytes) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as later:
        later.setattr(journal, "FORMAT", now + 1)
        later.setattr(migrations, "MIGRATIONS", {now: Migration(cut_short, ("delete from passages",))})
        with pytest.raises(KeyboardInterrupt):
            ring.journal(0)
    assert (ring.visits(0), about_of(ring)) == before


def test_a_large_state_stands_in_a_file_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written into the other of the two files, so that a kill at any time leaves one that is whole."""
    state = Record(b"before", (np.arange(BESIDE / 8 + 1),))
    opened = Journal(tmp_path, "f" * 32, "Oslo")
    opened.settle(Standing(0, 3, 7, 1, 4, b"to send", b"", state), ())
    opened.close()
    monkeypatch.setattr(migrations, "MIGRATIONS", {journal.FORMAT: Migration(lambda about, frame: about + frame)})
    monkeypatch.setattr(journal, "FORMAT", journal.FORMAT + 1)
    for _ in range(2):
        opened = Journal(tmp_path, "f" * 32, "Oslo")
        standing = opened.standing()
        opened.close()
        assert standing is not None and standing.state is not None
        assert standing.state.about == b"beforeto send" and standing.outgoing == b"to send"
        np.testing.assert_array_equal(standing.state.vectors[0], state.vectors[0])
