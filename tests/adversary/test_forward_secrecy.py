"""Whoever takes a site's folder after a run, and has recorded the words: keys for masks lived 730 days, beside the words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.holder import STATISTICS
from roundelay.agents.protocol.journal import Journal
from roundelay.agents.protocol.signing import MaskKey
from roundelay.agents.site.taking_part import MASK_KEY, Site
from roundelay.masks import my_seal
from tests.agents.hospitals import QUIET, Hospitals

VICTIM = "Tromso"


def test_after_the_run_no_file_of_a_site_lifts_its_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the key as it was while the run went on the words in the journal are the site's rows; afterwards the key is nowhere."""
    taken: dict[str, bytes] = {}
    forget = Site._forget_mask_keys

    def taken_before(self: Site, before: int | None = None) -> None:
        for path in self.home.glob(f"{MASK_KEY}*"):
            assert path.stat().st_mode & 0o077 == 0
            taken[self.name] = path.read_bytes()
        forget(self, before)

    monkeypatch.setattr(Site, "_forget_mask_keys", taken_before)
    hospitals = Hospitals(tmp_path, monkeypatch)
    ring = hospitals.accept(hospitals.plan())
    hospitals.finish(ring)
    home = tmp_path / VICTIM / "runs" / ring.plan.run
    journal = Journal(home, ring.plan.run, VICTIM)
    me = ring.plan.number_of(VICTIM)
    secrets = MaskKey(taken[VICTIM]).agreed(me, journal.cards(0), ring.plan.run, 0, bytes.fromhex(ring.digest))
    row = next(row for row in journal.passages() if row.sent_phase == Phase.SUM)
    journal.close()
    left, entered = (np.frombuffer(words or b"", np.uint64) for words in (row.sent, row.received))
    own = STATISTICS.add(left, STATISTICS.negative(entered)) if len(entered) else left
    mask = my_seal(secrets, me, ring.plan.agents, len(own) // STATISTICS.words, 1, STATISTICS)
    found = STATISTICS.decode(STATISTICS.add(own, STATISTICS.negative(mask)))
    table = hospitals.tables[VICTIM]
    np.testing.assert_allclose(found, [1.0, len(table), *table.sum(axis=0)], rtol=1e-12)
    # What is left of the folder has no key from which that could be done again.
    files = [path for path in (tmp_path / VICTIM).rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        content = path.read_bytes()
        assert taken[VICTIM] not in content and taken[VICTIM].hex().encode() not in content, path


def test_every_epoch_and_every_run_has_a_key_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hospitals = Hospitals(tmp_path, monkeypatch)
    cards = []
    for _ in range(2):
        ring = hospitals.accept(hospitals.plan())
        hospitals.finish(ring)
        journal = Journal(tmp_path / VICTIM / "runs" / ring.plan.run, ring.plan.run, VICTIM)
        cards.append(journal.cards(0))
        journal.close()
    assert all(cards) and cards[0] != cards[1]
    site = hospitals.site(ring, VICTIM, replace(QUIET))
    keys = [site._secrets(replace(ring.plan, epoch=epoch)) for epoch in (0, 0, 1)]
    assert keys[0] == keys[1] != keys[2]  # the same again after a crash, another one for another epoch
    assert "private=" not in repr(keys[0])
