"""Batons that fit in form and come at the wrong time or with numbers beyond all measure: an agent refuses them in words, and dies of none."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.protocol.baton import TOLD, Baton, BatonError, Layout, Phase
from roundelay.agents.protocol.holder import STATISTICS, HandOver, Holder, SolverError
from roundelay.algorithms.sealed.questions import POINT, Asked
from tests.adversary.signed_rings import TASK, hand_overs, members_of, signed_plan

FIRST, LAST, VICTIM = 0, 3, 2


def laps(optimiser: object) -> list[Holder]:
    return members_of(signed_plan(rl.SealedLaps(optimiser), Stopping(1e-8)))  # type: ignore[arg-type]


def closing(ring: list[Holder], hop: int) -> HandOver:
    """The lap of a question as it comes back to the first member, who has not taken it."""
    return next(
        move
        for move in hand_overs(ring)
        if move.receiver == FIRST and move.baton.phase == Phase.ASK and move.baton.hop == hop
    )


def test_a_ring_without_sums_is_told_none() -> None:
    """A baton without numbers passed for one, and the agent looked for the first of them."""
    plan = signed_plan(rl.IADMM(rho=2.0, start=rl.SealedStart()), Stopping(1e-8))
    layout = members_of(plan)[VICTIM].layout
    assert layout.numbers(Phase.TELL, 0) is None and layout.numbers(Phase.SUM, 0) == plan.dim
    assert Layout(4, 2, 2, (2,), (0,)).numbers(Phase.TELL, 0) == 0  # the positive control: as it was


def test_a_lap_does_not_come_back_as_another_one() -> None:
    """Its numbers would be taken for those of another kind of question."""
    ring = laps(rl.LBFGS())
    move = closing(ring, 1)
    for kind in (Asked.GRADIENT, Asked.GRADIENT | POINT):
        with pytest.raises(BatonError, match="comes back as another one"):
            ring[FIRST].check(move.baton._replace(purpose=int(kind)), None)
    ring[FIRST].check(move.baton, None)


def test_a_lap_is_closed_once() -> None:
    """After the last one the first member has signed the end: told the same total again it would ask on, or has nobody to tell it to."""
    ring = laps(rl.NormalEquations())
    for move in hand_overs(ring):
        if move.receiver == FIRST and move.baton.phase == Phase.ASK:
            last = move
        if move.baton.phase == Phase.FROZEN:
            break
    with pytest.raises(BatonError, match="once more after it was closed"):
        ring[FIRST].check(last.baton, None)
    with pytest.raises(AttributeError):  # the positive control
        ring[FIRST].act(last.baton)


def summed() -> tuple[list[Holder], Baton, Baton]:
    """A ring whose first sum was told to all, as it came back to the first member, and with another total as its neighbour makes it then."""
    ring = members_of(signed_plan(rl.SealedLaps(wide=True), Stopping(1e-8), TASK))
    for move in hand_overs(ring):
        if move.receiver == FIRST and move.baton.phase == Phase.SUM:
            last = move.baton
        if move.receiver == FIRST and move.baton.phase == Phase.TELL:
            break
    words = np.array(last.numbers)
    words[STATISTICS.words :] = STATISTICS.add(words[STATISTICS.words :], STATISTICS.encode(np.full(4, 7.0)))
    return ring, last, last._replace(numbers=words)


def test_a_sum_is_closed_once() -> None:
    """Where it came back with another total, the first member would tell that, too, and be named for it by all who were told the first."""
    ring, last, other = summed()
    for baton in (last, other):
        with pytest.raises(
            BatonError, match=r"sum 0 comes back once more after it was closed .* Narvik has sent it again"
        ):
            ring[FIRST].check(baton, None)


def test_without_that_an_honest_member_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control."""
    monkeypatch.setattr(Holder, "_check_closed", lambda self, baton: None)
    ring, _, other = summed()
    ring[FIRST].check(other, None)
    move = ring[FIRST].act(other)
    assert move is not None and move.baton.phase == Phase.TELL
    with pytest.raises(BatonError, match="Oslo tells other sums than those that this site was told before"):
        ring[move.receiver].check(move.baton, None)


def test_keys_that_were_gathered_do_not_come_back_as_told() -> None:
    """The first member would go on without any, and end of it: there is no agent 0."""
    ring = laps(rl.LBFGS())
    move = next(move for move in hand_overs(ring) if move.receiver == FIRST and move.baton.phase == Phase.KEYS)
    stray = move.baton._replace(purpose=TOLD)
    with pytest.raises(BatonError, match="keys for masks comes back as another one, from Narvik"):
        ring[FIRST].check(stray, None)
    ring[FIRST].check(move.baton, None)
    with pytest.raises(ValueError, match="There is no agent 0"):  # the positive control
        ring[FIRST].act(stray)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("far", [1e30, 1e300])
def test_who_asks_far_from_any_model_is_named(far: float) -> None:
    """A site was told to check its own data."""
    ring = laps(rl.LBFGS())
    closing(ring, 1)
    plan, sizes = ring[VICTIM].plan, ring[VICTIM].layout.questions
    kind = int(Asked.VALUE_AND_GRADIENT | POINT)
    numbers = np.zeros(sizes[kind], np.uint64)
    numbers[: plan.dim] = np.full(plan.dim, far).view(np.uint64)
    baton = Baton(Phase.ASK, 2, FIRST, VICTIM, kind, 0, numbers)
    ring[VICTIM].check(baton, None)
    with pytest.raises(SolverError, match="Oslo, who asks, has asked far from any model"):
        ring[VICTIM].act(baton)
    assert ring[VICTIM].asking is not None and len(ring[VICTIM].asking.held.answered) == 2


def test_before_the_first_question_none_comes_back() -> None:
    later = signed_plan(rl.SealedLaps(rl.LBFGS()), Stopping(1e-8), epoch=1, previous="0" * 64)
    ring = members_of(later)
    ring[FIRST].held.cards = bytes(1)
    kind = next(iter(ring[FIRST].layout.questions))
    numbers = np.zeros(ring[FIRST].layout.questions[kind], np.uint64)
    with pytest.raises(BatonError, match="this member has answered 0"):
        ring[FIRST].check(Baton(Phase.ASK, ring[FIRST].first_hop - 1, FIRST, 4, kind, 0, numbers), None)
