"""The file of a model is anybody's to change: what it says must follow from what all members have signed, and what they wrote must pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.plan import Promise, Task
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data import models
from roundelay.agents.data.objectives import Known
from roundelay.agents.site.verification import verify_model
from roundelay.cli.app import app
from roundelay.regression.pooled import glm
from roundelay.regression.shown.printed import printed
from tests.agents.hospitals import QUIET, SEALED, TASK, Hospitals
from tests.agents.regression_rings import Drawn
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


def test_an_entry_that_stands_there_twice(hospitals: Hospitals) -> None:
    """Readers differ in which of the two they take: some the first, which nobody has signed."""
    ring = hospitals.plan()
    file = fitted(hospitals, ring)
    honest = file.read_text()
    for forged in (
        honest.replace('"model": {', '"model": {"coefficients": [["age [years]", 1000000.0]],', 1),
        honest.replace('"model": {', '"coefficients": [["age [years]", 1000000.0]], "model": {', 1),
    ):
        first = json.loads(forged, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
        assert "1000000.0" in str(first)
        file.write_text(forged)
        with pytest.raises(ValueError, match="an entry stands there twice, or one that nobody has signed"):
            verify_model(file, ring)
    file.write_text(honest)
    verify_model(file, ring)


def test_numbers_beyond_all_bounds_are_refused_in_a_sentence(hospitals: Hospitals) -> None:
    ring = hospitals.plan()
    file = fitted(hospitals, ring)
    honest = file.read_text()
    for name in ("hop", "reason", "by"):
        changed(file, lambda content: content["about"]["end"].update({name: 10**30}))  # noqa: B023
        with pytest.raises(ValueError, match="beyond all that are signed"):
            verify_model(file, ring)
        file.write_text(honest)


def test_a_doubt_does_not_move_the_cursor(hospitals: Hospitals) -> None:
    """It is the word of the site that wrote the file, and of whoever changed it since."""
    ring = hospitals.plan()
    file = fitted(hospitals, ring)
    stored = models.load_model(file)
    doubt = "\x1b[2J\x1b[H\u202eAll 4 sites have signed"
    models.write_model(file, stored.model, replace(stored.about, doubt=doubt))
    (hospitals.folder / "ring.toml").write_bytes(ring.text)
    said = CliRunner().invoke(app, ["model", "verify", str(file), "--ring", str(hospitals.folder / "ring.toml")])
    assert said.exit_code == 0 and "NOT AS AGREED" in said.output
    assert all(letter.isprintable() or letter == "\n" for letter in said.output)


@pytest.mark.parametrize("name", ["fit_name", "response", "formula", "family", "link", "errors", "notes", "sites"])
def test_no_words_of_a_result_move_the_cursor(name: str) -> None:
    """A file that nobody has verified yet is printed, too."""
    result = glm("length ~ age", Drawn().frames()).result
    words = "\x1b[2J\x1b[H\u202eAll sites have signed"
    forged = replace(result, **{name: (words,) if isinstance(getattr(result, name), tuple) else words})
    said = printed(forged)
    assert "All sites have signed" in said or name in ("family", "link")
    assert all(letter.isprintable() or letter == "\n" for letter in said)
