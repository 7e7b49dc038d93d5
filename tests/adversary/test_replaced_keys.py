"""A planner, or whoever stands between the others, that gives each site keys for masks of its own making, or another ring file."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.protocol import holder as holder_module
from roundelay.agents.protocol.baton import TOLD, Baton, BatonError, Phase
from roundelay.agents.protocol.holder import STATISTICS, Holder
from roundelay.agents.protocol.signing import CARD, SIGNATURE, MaskKey, pieces_of, placed
from roundelay.kernels import Integers
from roundelay.kernels.random import Words
from roundelay.masks import AgreedPairs, my_seal, new_private_key, public_key_of
from tests.adversary.signed_rings import (
    OTHER_RING,
    RING,
    TASK,
    hand_overs,
    member_of,
    members_of,
    played,
    rows_of,
    signed_plan,
)

# Oslo, who planned the ring, stands between all others.
STAR = (0, 1, 0, 2, 0, 3)
PLANNER, VICTIM = 0, 1


def star() -> RingPlan:
    return signed_plan(rl.SealedLaps(wide=True), Stopping(1e-9), TASK, STAR)


class Planner:
    """Tells the victim that all other members have keys which are the planner's own."""

    def __init__(self, plan: RingPlan) -> None:
        self.plan = plan
        self.private = {me: new_private_key() for me in range(plan.agents) if me != VICTIM}
        self.cards = b""
        self.seen: list[Words] = []

    def meddle(self, receiver: int, baton: Baton) -> Baton:
        if baton.phase == Phase.KEYS and baton.purpose == TOLD:
            if receiver == VICTIM:
                cards = baton.beside
                for me, private in self.private.items():
                    cards = placed(cards, me, public_key_of(private) + list(pieces_of(cards, CARD))[me][-SIGNATURE:])
                self.cards, self.honest = cards, baton.beside
                return baton._replace(beside=cards)
            return baton._replace(beside=self.honest) if self.cards else baton
        return baton

    def words(
        self, first: Integers, second: Integers, purpose: int, turns: Integers, count: int, about: bytes = b""
    ) -> Words:
        """The words of the victim's pairs, which the planner knows from the other side."""
        keys = tuple(card[:32] for card in pieces_of(self.cards, CARD))
        bound = sha256(bytes.fromhex(RING) + b"".join(keys)).digest()
        rows = []
        for other, turn in zip(second.tolist(), turns.tolist(), strict=True):
            pair = AgreedPairs(other, self.private[other], keys, self.plan.run, self.plan.epoch, bound)
            rows.append(pair.words(np.array([VICTIM]), np.array([other]), purpose, np.array([turn]), count, about)[0])
        return np.array(rows)


def first_sum_of_the_victim(plan: RingPlan) -> np.ndarray:
    """What the planner reads of the victim's first words: those that leave it minus those that enter it, without the masks."""
    planner, ring = Planner(plan), members_of(plan)
    entered: Words | None = None
    for move in hand_overs(ring, planner.meddle):
        if move.baton.phase != Phase.SUM:
            continue
        if entered is not None:
            count = len(entered) // STATISTICS.words
            mask = my_seal(planner, VICTIM, plan.agents, count, 1, STATISTICS)
            left = STATISTICS.add(move.baton.numbers, STATISTICS.negative(entered))
            return STATISTICS.decode(STATISTICS.add(left, STATISTICS.negative(mask)))
        if move.receiver == VICTIM:
            entered = move.baton.numbers
    raise AssertionError


def test_without_the_signatures_the_planner_reads_the_rows_of_a_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: with the check switched off it prints what Bergen alone has."""
    monkeypatch.setattr(holder_module, "without_a_good_card", lambda *_: [])
    rows = rows_of("Bergen")
    found = first_sum_of_the_victim(star())
    np.testing.assert_allclose(found, [1.0, 45.0, *rows.features.sum(axis=0), rows.target.sum()], rtol=1e-12)


def test_keys_that_their_members_have_not_signed_are_refused_by_name() -> None:
    with pytest.raises(
        BatonError, match="The key for masks of Oslo, Tromso and Narvik is not signed for this site's ring file"
    ):
        first_sum_of_the_victim(star())


@pytest.mark.parametrize("other", [1, 2, 3])
def test_who_has_accepted_another_ring_file_is_named_before_anything_is_summed(other: int) -> None:
    plan = signed_plan(rl.SealedLaps(wide=True), Stopping(1e-9), TASK)
    ring = members_of(plan)
    ring[other] = member_of(plan, other, OTHER_RING)
    phases = []
    with pytest.raises(BatonError, match=f"The key for masks of {plan.members[other].name} is not signed for this"):
        for move in hand_overs(ring):
            phases.append(move.baton.phase)
    assert set(phases) == {Phase.KEYS}


def test_two_cards_of_one_member_give_no_sum() -> None:
    """Each is signed; but masks are bound to the keys of all, so that members who were told different ones share none."""
    plan = signed_plan(rl.SealedLaps(wide=True), Stopping(1e-9), TASK)
    ring = members_of(plan)
    liar = ring[0]
    second = MaskKey(new_private_key())
    other = second.card(liar.signer, liar.ring, plan.epoch, plan.members[0].name)
    own: dict[str, bytes] = {}

    def meddle(receiver: int, baton: Baton) -> Baton:
        if baton.phase != Phase.KEYS or baton.purpose != TOLD:
            return baton
        own.setdefault("card", baton.beside[:CARD])
        return baton._replace(beside=placed(baton.beside, 0, other if receiver == 2 else own["card"]))

    with pytest.raises(BatonError, match="did not come out: the masks did not cancel"):
        played(ring, meddle)


def test_a_key_of_low_order_is_refused() -> None:
    """With such a key the secret of every pair would be 0, which everybody knows."""
    plan = signed_plan(rl.SealedLaps(wide=True), Stopping(1e-9), TASK)
    ring = members_of(plan)

    class Weak(MaskKey):
        @property
        def public(self) -> bytes:
            return bytes(32)

    ring[3]._key = Weak(new_private_key())
    with pytest.raises(BatonError, match="With the key for masks of Narvik no secret can be agreed on"):
        played(ring)


def test_an_honest_ring_of_these_members_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for plan in (star(), signed_plan(rl.SealedLaps(wide=True), Stopping(1e-9), TASK)):
        ring: list[Holder] = members_of(plan)
        played(ring)
        assert all(one.finished and np.array_equal(one.held.estimate, ring[0].held.estimate) for one in ring)  # type: ignore[arg-type]


def test_who_signs_the_key_of_another_as_its_own_is_named() -> None:
    plan = signed_plan(rl.SealedLaps(), Stopping(1e-9))
    ring = members_of(plan)

    class Copied(MaskKey):
        @property
        def public(self) -> bytes:
            assert ring[1]._key is not None
            return ring[1]._key.public

    ring[3]._key = Copied(new_private_key())
    with pytest.raises(BatonError, match="With the key for masks of Bergen and Narvik no secret can be agreed on"):
        played(ring)
