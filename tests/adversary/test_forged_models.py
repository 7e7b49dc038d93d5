"""The file of a model is anybody's to change: what it says must follow from what all members have signed, and what they wrote must pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Promise, Task
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data import models
from roundelay.agents.data.objectives import Known
from roundelay.agents.site.verification import verify_model
from tests.agents.hospitals import QUIET, SEALED, TASK, Hospitals
from tests.agents.test_private_ring import plan_of
from tests.agents.world import least_squares

TOKEN = rl.IADMM(rho=2.0, start=rl.SealedStart())
LASSO = rl.IADMM(rho=2.0, start=rl.SealedStart(), regulariser=rl.L1(0.1))
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch)


def fitted(hospitals: Hospitals, ring: SignedPlan) -> Path:
    """A model's file, as a site has written it; it is verified."""
    file = hospitals.folder / "models" / "Oslo.json"
    hospitals.accept(ring)
    ended = hospitals.run(ring, {"Oslo": replace(QUIET, model=file)})
    assert not [one for one in ended.values() if isinstance(one, BaseException)]
    verify_model(file, ring)
    return file


def changed(file: Path, change: Change) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def test_coefficients_next_to_a_signed_point_of_no_use(hospitals: Hospitals) -> None:
    """As if there were too many unknowns: the signed point moves to a file beside, and the file says what it likes."""
    ring = hospitals.plan()
    file = fitted(hospitals, ring)

    def forge(content: dict[str, Any]) -> None:
        end = content["about"]["end"]
        np.save(file.with_suffix(".npy"), np.array(end["point"]))
        end["point"] = []
        content["model"]["coefficients"][0][1] = 1e6

    changed(file, forge)
    with pytest.raises(ValueError, match="have not signed"):
        verify_model(file, ring)


NOTES = {
    "why": ("why the ring stopped", lambda notes: notes.update(reason="All 4 sites were content, and confirmed it.")),
    "run": ("the run", lambda notes: notes.update(run="0" * 32)),
    "epoch": ("the run", lambda notes: notes.update(epoch=3)),
    "members": ("the members", lambda notes: notes["members"].append("Ullevål")),
    "hops": ("the hops", lambda notes: notes.update(hops=7)),
    "questions": ("the hops", lambda notes: notes.update(questions=7)),
    "rows": ("all rows", lambda notes: notes["standard"].update(rows=10**6)),
    "means": ("all rows", lambda notes: notes["standard"]["mean"].reverse()),
    "privacy": (
        "the promise",
        lambda notes: notes.update(privacy={"epsilon": 0.1, "delta": 1e-9, "rho": 0.1, "leave_out": 1}),
    ),
}


@pytest.mark.parametrize(("what", "change"), NOTES.values(), ids=list(NOTES))
def test_what_the_file_says_beside_the_model(what: str, change: Change, hospitals: Hospitals) -> None:
    ring = hospitals.plan()
    file = fitted(hospitals, ring)
    changed(file, lambda content: change(content["about"]))
    with pytest.raises(ValueError, match=f"says of {what} does not follow"):
        verify_model(file, ring)


def test_a_smaller_epsilon_than_was_promised(hospitals: Hospitals) -> None:
    bounds = Promise(3.0, 1e-6, (0.0, 100.0, -100.0), (100.0, 250.0, 100.0))
    task = replace(TASK, promise=bounds)
    ring = hospitals.plan(task=task, algorithm=plan_of(task, 4).algorithm)
    file = fitted(hospitals, ring)
    changed(file, lambda content: content["about"]["privacy"].update(epsilon=0.1))
    with pytest.raises(ValueError, match="the promise"):
        verify_model(file, ring)


@pytest.mark.parametrize("algorithm", [TOKEN, LASSO, SEALED], ids=["token", "lasso", "sealed laps"])
def test_many_unknowns_beside_the_file(
    algorithm: object, hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Honest ones pass, of every algorithm; changed ones do not."""
    monkeypatch.setattr(models, "MOST_COEFFICIENTS", 2)
    monkeypatch.setattr(Hospitals, "local", lambda self, name, task: Known(least_squares(sum(name.encode()), 3)))
    ring = hospitals.plan(task=Task("custom", dim=3), algorithm=algorithm)
    file = fitted(hospitals, ring)
    beside = file.with_suffix(".npy")
    honest = np.load(beside)
    np.save(beside, honest + 1e6)
    with pytest.raises(ValueError, match="signed"):
        verify_model(file, ring)
    np.save(beside, honest)
    verify_model(file, ring)
    changed(file, lambda content: content["model"].update(intercept=5.0))
    with pytest.raises(ValueError, match="signed"):
        verify_model(file, ring)
