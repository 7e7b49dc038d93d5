"""Totals of the sums before the fit that are told otherwise: a thousandfold to one site, or such that no data can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.protocol import holder
from roundelay.agents.protocol.baton import Baton, BatonError, Phase
from roundelay.agents.protocol.holder import DeceivedError, Holder
from roundelay.agents.protocol.signing import told_statement
from tests.adversary.signed_rings import RING, TASK, hand_overs, members_of, played, rows_of, signed_plan

TELLER, VICTIM = 0, 2
TOKEN = rl.PIADMM1(rho=2.0, start=rl.SealedStart())


def plan_of(algorithm: object) -> RingPlan:
    return signed_plan(algorithm, Stopping(1e-8, 200), TASK)


def told_to_the_victim(
    ring: list[Holder], change: Callable[[np.ndarray], np.ndarray], purpose: int, sign: bool
) -> Callable[[int, Baton], Baton]:
    """A meddler that changes a total on its way to the victim and back after it; the teller may sign what it changes."""
    honest: dict[int, Baton] = {}

    def meddle(receiver: int, baton: Baton) -> Baton:
        if baton.phase != Phase.TELL or baton.purpose != purpose:
            return baton
        if receiver == VICTIM:
            honest[0] = baton
            numbers = change(np.array(baton.numbers))
            signature = ring[TELLER].signer.sign(told_statement(bytes.fromhex(RING), 0, purpose, numbers))
            return baton._replace(numbers=numbers, beside=signature if sign else baton.beside)
        return baton._replace(numbers=honest[0].numbers, beside=honest[0].beside) if honest else baton

    return meddle


def tenthousandfold(numbers: np.ndarray) -> np.ndarray:
    """All but the count of the sites."""
    return np.concatenate([numbers[:1], 1e4 * numbers[1:]])


@pytest.mark.parametrize("algorithm", [TOKEN, rl.SealedLaps(wide=True)], ids=["token", "sealed laps"])
def test_what_was_changed_on_the_way_is_not_what_the_teller_has_signed(algorithm: object) -> None:
    ring = members_of(plan_of(algorithm))
    with pytest.raises(
        BatonError, match="What is told of the sums is not what Oslo has signed: somebody between Oslo and this site"
    ):
        played(ring, told_to_the_victim(ring, tenthousandfold, 1, sign=False))
    assert len(ring[VICTIM].held.told) == 1


def test_a_teller_that_signs_two_totals_gets_no_model_of_a_token() -> None:
    """The fit would be the victim's alone, with the largest weight; no member signs an end after other sums than its own."""
    ring = members_of(plan_of(TOKEN))
    with pytest.raises(BatonError, match=r"The end that the baton tells is not what .* has signed|signed another end"):
        played(ring, told_to_the_victim(ring, tenthousandfold, 1, sign=True))
    assert not any(one.finished for one in ring)


def test_without_the_checks_all_end_with_a_model_of_other_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: one site fits in other units than the others, and all end with what comes of it."""
    honest = members_of(plan_of(TOKEN))
    played(honest)
    ring = members_of(plan_of(TOKEN))
    for check in ("_check_told", "_check_signatures", "_check_balance"):
        monkeypatch.setattr(Holder, check, lambda *_: None)
    monkeypatch.setattr(holder, "unsigned", lambda *_: [])
    played(ring, told_to_the_victim(ring, tenthousandfold, 1, sign=False))
    for one, other in zip(honest, ring, strict=True):
        assert one.held.estimate is not None and other.held.estimate is not None
        apart = np.linalg.norm(one.held.estimate - other.held.estimate)
        assert apart > 0.1 * np.linalg.norm(one.held.estimate)


def test_a_teller_that_signs_two_totals_gets_no_sum_of_sealed_laps() -> None:
    for purpose in (0, 1):
        ring = members_of(plan_of(rl.SealedLaps(wide=True)))
        with pytest.raises(BatonError, match=r"did not come out|did not cancel"):
            played(ring, told_to_the_victim(ring, tenthousandfold, purpose, sign=True))


def with_count(count: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda numbers: np.concatenate([numbers[:1], [count], numbers[2:]])


@pytest.mark.parametrize(
    ("purpose", "change", "why"),
    [
        (0, with_count(-5.0), "All 4 sites can't have -5 rows together"),
        (0, with_count(42.0), "All 4 sites can't have 42 rows together"),
        (0, with_count(165.5), "can't have 165.5 rows"),
        (0, with_count(1e300), "rows together"),
        (1, lambda numbers: np.concatenate([numbers[:1], 0.1 * numbers[1:]]), "can't differ so little"),
        (1, lambda numbers: np.concatenate([numbers[:1], -numbers[1:]]), "can't differ so little"),
    ],
)
def test_totals_that_no_data_have_stop_the_agent(
    purpose: int, change: Callable[[np.ndarray], np.ndarray], why: str
) -> None:
    """It stops, and does not say no and wait: asked again and again it would tell how many rows it has, and how far apart they are."""
    ring = members_of(plan_of(TOKEN))
    with pytest.raises(DeceivedError, match=why) as said:
        played(ring, told_to_the_victim(ring, change, purpose, sign=True))
    assert str(len(rows_of("Tromso").target)) not in str(said.value)
    assert len(ring[VICTIM].held.told) == purpose


def test_without_the_check_a_count_of_minus_five_is_kept_and_fails_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control."""
    monkeypatch.setattr(Holder, "_check_told", lambda *_: None)
    ring = members_of(plan_of(TOKEN))
    with pytest.raises(ValueError, match="The number of rows of all sites"):
        played(ring, told_to_the_victim(ring, with_count(-5.0), 0, sign=True))
    assert ring[VICTIM].held.told[0][1] == -5.0


def test_totals_before_the_keys_and_sums_in_another_order_are_refused() -> None:
    ring = members_of(plan_of(TOKEN))
    batons = [move.baton for move in hand_overs(ring)]
    fresh = members_of(plan_of(TOKEN))
    summed = next(one for one in batons if one.phase == Phase.SUM)
    with pytest.raises(BatonError, match="of the phase SUM, came before all members have told their keys"):
        fresh[1].check(summed._replace(step=1), None)
    for purpose, why in ((1, "came before sum 0 was told"), (0, "Sum 0 is told before this member has added to it")):
        own = members_of(plan_of(TOKEN))
        own[1].held.cards = bytes(1)
        told = next(one for one in batons if one.phase == Phase.TELL and one.purpose == purpose)
        signature = own[TELLER].signer.sign(told_statement(bytes.fromhex(RING), 0, purpose, np.array(told.numbers)))
        with pytest.raises(BatonError, match=why):
            own[1].check(told._replace(step=1, beside=signature), None)


def test_a_newcomer_is_told_what_was_summed_when_the_run_began() -> None:
    """In a later epoch of a token the statistics are told anew; a member that knows them takes no others."""
    later = replace(plan_of(TOKEN), epoch=1, previous="0" * 64)
    members = members_of(later)
    told = (np.array([4.0, 165.0, 1.0, 2.0, 3.0]), np.array([4.0, 10.0, 10.0, 10.0]))
    for one in members:
        one.held.told = told
    for move in hand_overs(members):
        if move.baton.phase == Phase.TELL and move.receiver == 1:
            break
    others = np.array(move.baton.numbers) + 1.0
    signature = members[0].signer.sign(told_statement(bytes.fromhex(RING), 1, 0, others))
    with pytest.raises(BatonError, match="Oslo tells other sums than those that this site was told before"):
        members[1].check(move.baton._replace(numbers=others, beside=signature), None)
    anew = Baton(Phase.SUM, move.baton.hop, 0, 1, 0, 0, np.zeros(10, np.uint64))
    with pytest.raises(BatonError, match="are not summed again over other members"):
        members[1].check(anew, None)


@pytest.mark.parametrize("change", [with_count(-5.0), with_count(165.5), with_count(0.0), lambda told: -1e300 * told])
def test_a_newcomer_keeps_no_totals_from_which_nothing_follows(
    change: Callable[[np.ndarray], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not added to them, and can't hold its own rows against them; once kept, they would fail at every start."""
    later = replace(plan_of(TOKEN), epoch=1, previous="0" * 64)
    told = (np.array([4.0, 165.0, 1.0, 2.0, 3.0]), np.array([4.0, 10.0, 10.0, 10.0]))

    def newcomer() -> Holder:
        members = members_of(later)
        for one in members[:3]:
            one.held.told = (change(told[0]), told[1])
        for move in hand_overs(members):
            if move.receiver == 3 and move.baton.phase == Phase.TELL:
                members[3].check(move.baton, None)
                members[3].act(move.baton)
                break
        return members[3]

    with pytest.raises(DeceivedError, match="What Oslo tells of the sums can't be right"):
        newcomer()
    monkeypatch.setattr(Holder, "_check_heard", lambda *_: None)  # the positive control
    assert len(newcomer().held.told) == 1
