"""Batons that no honest neighbour sends now: before the keys and sums that they follow from, again, or of an end that was gone on from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason
from roundelay.agents.protocol.holder import STATISTICS, HandOver, Holder
from roundelay.agents.protocol.signing import SIGNATURE, MaskKey, Unproven, placed, told_statement
from roundelay.masks import SeededPairs, new_private_key
from tests.agents.test_told_otherwise import TASK, own_rows
from tests.agents.world import least_squares, ring_plan

VICTIM, BEFORE = 2, 1
NAMES = [f"site{me}" for me in range(4)]
TOKEN = ring_plan(NAMES, rl.IADMM(rho=2.0, start=rl.SealedStart()), 2, Stopping(1e-9))
ROWS = replace(ring_plan(NAMES, rl.SealedLaps(wide=True), 2, Stopping(1e-9)), task=TASK)


def members(plan: RingPlan, with_keys: bool = False) -> list[Holder]:
    """With rows where the plan has a task of rows, else with functions."""
    parts = [
        RowsFit(plan.task, own_rows(me)) if plan.task.kind != "custom" else Known(least_squares(me, 2))
        for me in range(plan.agents)
    ]
    secrets = [MaskKey(new_private_key()) if with_keys else SeededPairs(1) for _ in parts]
    return [Holder(plan, me, part, 1, secrets[me]) for me, part in enumerate(parts)]


def played(ring: list[Holder], until: Phase, move: HandOver | None = None) -> HandOver:
    """Up to the first baton of a phase."""
    move = move or ring[0].first()
    while move is not None and move.baton.phase != until:
        ring[move.receiver].check(move.baton, None)
        move = ring[move.receiver].act(move.baton)
    assert move is not None
    return move


def frozen(victim: Holder, hop: int, point: np.ndarray) -> Baton:
    """What the neighbour before the victim can make: it says that it wishes to stop there, and signs that."""
    beside = bytes(SIGNATURE * victim.plan.agents + 8 * victim.largest_layout.shares)
    baton = Baton(Phase.FROZEN, hop, BEFORE, 1, int(Reason.ASKED), 0, point, beside)
    signature = Unproven(BEFORE).sign(victim.end_in(baton).statement)
    return baton._replace(beside=placed(baton.beside, BEFORE, signature))


def masked_share(victim: Holder, baton: Baton) -> np.ndarray:
    """What both neighbours together see of the victim's share in the sum."""
    victim.check(baton, None)
    moved = victim.act(baton)
    assert moved is not None
    return np.frombuffer(moved.baton.beside[SIGNATURE * victim.plan.agents :], np.uint64)


def test_the_mask_of_a_share_is_not_had_before_there_is_a_share() -> None:
    """Frozen before the opening sum it would be of nothing, and the bare mask; the sealed start hid the share from both neighbours."""
    ring = members(TOKEN)
    victim, point, hop = ring[VICTIM], np.array([0.3, 0.4]), 2
    before = masked_share(victim, frozen(victim, hop, point))
    seen = []
    try:
        played(ring, Phase.ITERATE)
        after = masked_share(victim, frozen(victim, hop, point))
        seen.append(STATISTICS.decode(STATISTICS.add(after, STATISTICS.negative(before))))
    except BatonError:
        pass
    assert not any(np.abs(one).max() > 1e-9 for one in seen), "the difference is the share itself"


def test_where_nobody_looks_at_the_order_the_difference_is_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: the sum of the shares is begun before the share is, and once more at the same hop and token."""
    ring = members(TOKEN)
    victim, point, hop = ring[VICTIM], np.array([0.3, 0.4]), 2
    with monkeypatch.context() as early:
        early.setattr(Holder, "_begin", lambda self: None)
        before = masked_share(victim, frozen(victim, hop, point))
    for check in ("_check_order", "_check_place", "_check_signatures"):
        monkeypatch.setattr(Holder, check, lambda *_: None)
    played(ring, Phase.ITERATE)
    share = victim.held.share[VICTIM].copy()
    after = masked_share(victim, frozen(victim, hop, point))
    seen = STATISTICS.decode(STATISTICS.add(after, STATISTICS.negative(before)))
    np.testing.assert_allclose(seen, share, rtol=1e-9)
    assert np.abs(share).max() > 1.0


def test_no_hop_is_left_out_on_a_lap() -> None:
    """The token made and frozen far ahead would end the run as if all hops were used up, and a hop made again would be behind the end."""
    ring = members(TOKEN)
    move = played(ring, Phase.ITERATE)
    victim = ring[VICTIM]
    for baton in (frozen(victim, 1002, np.array([0.3, 0.4])), move.baton._replace(hop=1002)):
        with pytest.raises(BatonError, match="hops were left out"):
            victim.check(baton, None)
    victim.check(move.baton._replace(hop=2), None)


def test_an_end_that_was_gone_on_from_is_none() -> None:
    """All have signed it: whoever froze it could let the run go on, and give some members this end and others the next."""
    ring = members(TOKEN)
    move = played(ring, Phase.ITERATE)
    for _ in range(7):
        move = ring[move.receiver].act(move.baton)  # type: ignore[assignment]
    asks = ring[move.receiver]
    asks.wants_to_stop = True
    move = played(ring, Phase.DONE, asks.act(move.baton))
    assert asks.me != VICTIM
    # The victim is at the same hop in a run that was gone on with.
    victim = ring[VICTIM]
    assert victim.held.reason is None
    order = victim.lap_of(Phase.DONE, move.baton.origin, move.baton.hop).order
    done = move.baton._replace(step=int(np.flatnonzero(order == VICTIM)[0]))
    victim.check(done, None)
    onward = Baton(Phase.ITERATE, move.baton.hop + (VICTIM - move.baton.hop) % 4, 1, 0, 0, 0, np.array(done.numbers))
    victim.check(onward, None)
    victim.act(onward)
    with pytest.raises(BatonError, match="would go back"):
        victim.check(done, None)


def test_a_total_is_told_once() -> None:
    """A smaller number of rows each time: the first that is refused would be one below what this site has."""
    ring = members(ROWS)
    tell, victim = played(ring, Phase.TELL), ring[BEFORE]
    taken = []
    for rows in range(int(tell.baton.numbers[1]), 0, -1):
        numbers = np.array(tell.baton.numbers)
        numbers[1] = rows
        told = told_statement(victim.ring, 0, 0, numbers)
        baton = tell.baton._replace(numbers=numbers, beside=Unproven(0).sign(told))
        try:
            victim.check(baton, None)
        except (BatonError, RuntimeError):
            break
        victim.act(baton)
        taken.append(rows)
    assert taken == [int(tell.baton.numbers[1])], f"this site has {min(taken) - 3} rows"


@pytest.mark.parametrize(("plan", "phase"), [(TOKEN, Phase.ITERATE), (TOKEN, Phase.FROZEN), (ROWS, Phase.ASK)])
def test_nothing_comes_before_the_keys(plan: RingPlan, phase: Phase) -> None:
    victim = members(plan, with_keys=True)[VICTIM]
    numbers = np.zeros(plan.dim)
    with pytest.raises(BatonError, match="keys for masks"):
        victim.check(Baton(phase, 2, 0, 2, 0, 0, numbers, b""), None)


@pytest.mark.parametrize("phase", [Phase.ASK, Phase.ITERATE, Phase.FROZEN, Phase.SUM, Phase.TELL])
def test_nothing_comes_before_the_sums_that_it_follows_from(phase: Phase) -> None:
    """The second sum without the first one, or the fit without any: the agent would have ended with an error of its own."""
    plan = ROWS if phase == Phase.ASK else replace(TOKEN, task=TASK)
    victim = members(plan)[VICTIM]
    with pytest.raises(BatonError, match="from which it follows"):
        victim.check(Baton(phase, 2, 0, 2, 1, 0, np.zeros(6), b""), None)


def test_a_stop_before_all_have_begun(  # the shares of a start that are not 0 must be there to be summed
) -> None:
    plan = replace(TOKEN, algorithm=rl.IADMM(rho=2.0, start=rl.ZeroSumStart()))
    ring = members(plan)
    move = ring[0].first()
    while move is not None:
        ring[move.receiver].wants_to_stop = True
        ring[move.receiver].check(move.baton, None)
        move = ring[move.receiver].act(move.baton)
    assert all(one.held.reason == Reason.ASKED for one in ring)


def test_on_a_random_walk_hops_can_be_left_out() -> None:
    """What remains: nobody knows who made the hops between, so that one neighbour ends the run as if all were made."""
    links = tuple((a, b) for a in range(4) for b in range(a + 1, 4))
    walk = replace(
        TOKEN, algorithm=rl.WADMM(rho=2.0, start=rl.SealedStart()), links=links, stopping=Stopping(1e-9, 500)
    )
    ring = members(walk)
    move = played(ring, Phase.ITERATE)
    last = move._replace(baton=move.baton._replace(hop=499))
    end = played(ring, Phase.DONE, last)
    assert end.baton.purpose == Reason.HOPS and end.baton.hop == 500
    assert sum(one.held.visits for one in ring) < 20
