"""One modified member that ends the run at a model of its own: it was "confirmed", with coefficients of a million."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.protocol import holder as holder_module
from roundelay.agents.protocol.asking import ENDING
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.signing import SIGNATURE, placed
from roundelay.cli.app import app
from tests.adversary.signed_rings import hand_overs, members_of, played, pooled_optimum, signed_plan
from tests.agents.hospitals import QUIET, Hospitals

MILLION = 1e6
TOKEN = rl.PIADMM1(rho=2.0, start=rl.SealedStart())
METHODS = [TOKEN, rl.SealedLaps(rl.LBFGS())]


def plan_of(algorithm: object) -> RingPlan:
    return signed_plan(algorithm, Stopping(1e-8))


def false_end(ring: list[Holder]) -> tuple[int, Baton]:
    """In the middle of an honest run site 1 says that all is over, at a million; whom it tells."""
    plan, signatures = ring[0].plan, bytes(SIGNATURE * ring[0].plan.agents)
    for move in hand_overs(ring):
        asking = ring[2].asking
        if asking is None and move.receiver == 1 and ring[2].held.visits == 3:
            return 2, Baton(
                Phase.DONE, move.baton.hop + 1, 1, 1, Reason.CONTENT, 0, np.full(plan.dim, MILLION), signatures
            )
        if asking is not None and move.receiver == 1 and len(asking.held.answered) == 3:
            numbers = np.full(ENDING + plan.dim, MILLION)
            return 2, Baton(Phase.DONE, ring[2].first_hop + 3, 0, 2, Reason.CONTENT, 0, numbers, signatures)
    raise AssertionError


@pytest.mark.parametrize("algorithm", METHODS, ids=["token", "sealed laps"])
def test_an_end_that_nobody_has_signed_is_none(algorithm: object, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = members_of(plan_of(algorithm))
    receiver, done = false_end(ring)
    why = "have not signed the end|ends the run at another point"
    with pytest.raises(BatonError, match=why):
        ring[receiver].check(done, None)
    assert not ring[receiver].finished
    # The positive control: with the checks switched off the site ends, and believes it.
    monkeypatch.setattr(holder_module, "unsigned", lambda *_: [])
    monkeypatch.setattr("roundelay.agents.protocol.asking.Asking._check_end", lambda *_: None)
    ring[receiver].held.asked = done.hop
    ring[receiver].check(done, None)
    ring[receiver].act(done)
    assert ring[receiver].finished
    np.testing.assert_array_equal(ring[receiver].held.estimate, MILLION)  # type: ignore[arg-type]


def test_its_own_signature_and_old_ones_of_the_others_do_not_help() -> None:
    """Signatures are under this very end: those of another are none."""
    plan = plan_of(TOKEN)
    ring = members_of(plan)
    done = next(move.baton for move in hand_overs(ring) if move.baton.phase == Phase.DONE)
    numbers = np.full(plan.dim, MILLION)
    moved = done._replace(numbers=numbers)
    own = ring[1].signer.sign(ring[1].end_in(moved).statement)
    for forged, who in (
        (moved, "Oslo, Bergen, Tromso and Narvik have not"),
        (moved._replace(beside=placed(done.beside, 1, own)), "Oslo, Tromso and Narvik have not"),
        (done._replace(purpose=Reason.HOPS), "Oslo, Bergen, Tromso and Narvik have not"),
        (done._replace(beside=placed(done.beside, 3, bytes(SIGNATURE))), "Narvik has not"),
    ):
        with pytest.raises(BatonError, match=f"{who} signed the end"):
            ring[2]._check_signatures(forged)


def test_a_member_signs_no_end_with_which_it_is_not_content() -> None:
    """A member freezes a token of its own, signs it, and asks the others to."""
    plan = plan_of(TOKEN)
    ring = members_of(plan)
    for move in hand_overs(ring):
        if move.receiver == 1 and move.baton.phase == Phase.ITERATE and ring[1].held.visits == 5:
            break
    frozen = ring[1].freeze(Reason.CONTENT, move.baton.hop + 1, move.baton.numbers + 3.0).baton
    own = ring[1].signer.sign(ring[1].end_in(frozen).statement)
    frozen = frozen._replace(content=1 << 1, beside=placed(frozen.beside, 1, own))
    ring[2].check(frozen, None)
    passed = ring[2].act(frozen)
    assert passed is not None and passed.baton.content == 1 << 1
    assert passed.baton.beside[2 * SIGNATURE : 3 * SIGNATURE] == bytes(SIGNATURE)


def test_the_hops_are_not_used_up_because_somebody_says_so() -> None:
    plan = signed_plan(TOKEN, Stopping(None, 400))
    ring = members_of(plan)
    for move in hand_overs(ring):
        if move.receiver == 1 and move.baton.phase == Phase.ITERATE and ring[1].held.visits == 5:
            break
    frozen = ring[1].freeze(Reason.HOPS, move.baton.hop + 1, move.baton.numbers).baton
    with pytest.raises(BatonError, match="all hops were made that the ring file allows, which is not so"):
        ring[2].check(frozen, None)


def test_who_stops_the_ring_is_in_what_all_sign() -> None:
    """Any operator may end it where it is; nobody can let that look like another's wish, or like the best fit."""
    plan = plan_of(TOKEN)
    ring = members_of(plan)
    moves = hand_overs(ring)
    for move in moves:
        if move.baton.phase == Phase.ITERATE and ring[2].held.visits == 3:
            ring[2].wants_to_stop = True
        if move.baton.phase == Phase.DONE:
            break
    assert move.baton.purpose == Reason.ASKED and move.baton.origin == 2
    for forged in (move.baton._replace(origin=1), move.baton._replace(purpose=Reason.CONTENT)):
        with pytest.raises(BatonError, match="signed the end"):
            ring[0]._check_signatures(forged)
    list(moves)
    assert [one.held.ended_by for one in ring] == [2, 2, 2, 2]


@pytest.mark.parametrize("algorithm", METHODS, ids=["token", "sealed laps"])
def test_an_honest_end_is_signed_by_all_and_right(algorithm: object) -> None:
    plan = plan_of(algorithm)
    ring = members_of(plan)
    played(ring)
    for one in ring:
        np.testing.assert_allclose(one.held.estimate, pooled_optimum(plan), atol=1e-6)  # type: ignore[arg-type]
        assert one.end.statement == ring[0].end.statement and one.held.signatures == ring[0].held.signatures


def test_totals_that_a_first_member_tells_each_in_another_way_end_nothing() -> None:
    """The first member tells one site totals that explain its questions, and the others the true ones."""
    ring = members_of(plan_of(rl.SealedLaps(rl.LBFGS())))
    liar = ring[0]

    def lied_to(receiver: int, baton: Baton) -> Baton:
        if baton.phase != Phase.FROZEN or receiver not in (2, 3):
            return baton
        numbers = np.array(baton.numbers)
        numbers[-1] += 1.0 if receiver == 2 else -1.0
        moved = baton._replace(numbers=numbers)
        return moved._replace(beside=placed(baton.beside, 0, liar.signer.sign(ring[receiver].end_in(moved).statement)))

    with pytest.raises(BatonError, match="Tromso has signed another end than this site"):
        played(ring, lied_to)
    assert not any(one.finished for one in ring)


# ---------------------------------------------------------------- the file of a model


@pytest.fixture
def fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A model that a ring of real sites has written, and its ring file."""
    hospitals = Hospitals(tmp_path, monkeypatch)
    ring = hospitals.accept(hospitals.plan())
    path = tmp_path / "model.json"
    hospitals.run(ring, {"Bergen": replace(QUIET, model=path)})
    (tmp_path / "ring.toml").write_bytes(ring.text)
    return path, tmp_path / "ring.toml"


def verified(model: Path, ring: Path) -> tuple[int, str]:
    said = CliRunner().invoke(app, ["model", "verify", str(model), "--ring", str(ring)])
    return said.exit_code, said.output + said.stderr


def test_whoever_has_a_model_and_the_ring_file_sees_that_all_have_signed_it(fitted: tuple[Path, Path]) -> None:
    code, said = verified(*fitted)
    assert code == 0 and "All 4 sites have signed this model: Oslo, Bergen, Tromso, Narvik." in said


def test_a_model_that_was_changed_is_named(fitted: tuple[Path, Path], tmp_path: Path) -> None:
    model, ring = fitted
    content = json.loads(model.read_text())
    end = content["about"]["end"]

    def changed(place: list[object], value: object) -> tuple[int, str]:
        other = json.loads(model.read_text())
        inner = other
        for step in place[:-1]:
            inner = inner[step]  # type: ignore[index]
        inner[place[-1]] = value  # type: ignore[index]
        (tmp_path / "changed.json").write_text(json.dumps(other))
        return verified(tmp_path / "changed.json", ring)

    coefficients = content["model"]["coefficients"]
    for place, value, why in (
        (["model", "coefficients", 0, 1], coefficients[0][1] + 1e-9, "are not those that the members have signed"),
        (["model", "intercept"], 0.0, "are not those that the members have signed"),
        (["about", "end", "point", 0], end["point"][0] + 1e-9, "have not signed what"),
        (["about", "end", "told", 0, 1], 10.0, "have not signed what"),
        (["about", "end", "hop"], end["hop"] + 1, "have not signed what"),
        (["about", "end", "signatures", 2], "00" * 64, "Tromso has not signed what"),
        (["about", "end", "signatures"], end["signatures"][:3], "has 3 signatures, but the ring has 4 members"),
        (["about", "end", "signatures", 2], "no digits", "can't be read as it was signed"),
        (["about", "ring_digest"], "0" * 64, "is of another ring file"),
        (["about", "end"], None, "has no signatures"),
    ):
        code, said = changed(place, value)
        assert code == 2 and why in said, (place, said)
