"""Another model to start from, after a crash: the first answer would be there twice under one mask, at two points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.models import load_model, write_model
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import JournalError
from roundelay.kernels import Vector
from tests.adversary.signed_rings import hand_overs, members_of, signed_plan
from tests.agents.hospitals import NAMES, QUIET, Hospitals

VICTIM = 2


def test_two_starts_have_one_mask() -> None:
    """The positive control: a member that has sent its answer, and forgets it before it is on disk."""
    plan = signed_plan(rl.SealedLaps(rl.NormalEquations()), Stopping(1e-8), warm=True)
    ring = members_of(plan)
    for one in ring:
        one.warm = lambda told: np.zeros(2)
    for move in hand_overs(ring):
        if move.receiver == VICTIM and move.baton.phase == Phase.ASK:
            break

    def answered_from(start: Vector) -> Vector:
        old = ring[VICTIM]
        again = Holder(plan, VICTIM, old.local, old.seed, old.secrets, lambda told: start, signer=old.signer)
        again.ring, again.held.cards = old.ring, old.held.cards
        sent = again.act(move.baton)
        assert sent is not None and again.asking is not None
        return again.asking.algorithm.grid.decode(sent.baton.numbers - move.baton.numbers)

    one, other = np.zeros(2), np.array([1.0, 0.0])
    difference = answered_from(other) - answered_from(one)
    own = ring[VICTIM].problem
    np.testing.assert_allclose(difference[:2], own.gradient(0, other) - own.gradient(0, one), atol=1e-9)


def test_a_run_goes_on_from_the_model_with_which_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hospitals = Hospitals(tmp_path, monkeypatch)
    first = tmp_path / "first.json"
    hospitals.run(hospitals.accept(hospitals.plan()), {"Oslo": replace(QUIET, model=first)})
    plan = replace(hospitals.plan().plan, run="ab" * 16, warm=True)
    ring = hospitals.accept(hospitals.signed(plan, "Oslo"))
    warm = dict.fromkeys(NAMES, replace(QUIET, warm=first))
    assert not [one for one in hospitals.run(ring, warm).values() if isinstance(one, BaseException)]
    stored = load_model(first)
    write_model(first, replace(stored.model, intercept=stored.model.intercept + 1.0), stored.about)
    ended = hospitals.run(ring, warm)
    assert ended and all(isinstance(one, JournalError) for one in ended.values())
    assert "The model to start from is not the one with which" in str(ended.popitem()[1])
