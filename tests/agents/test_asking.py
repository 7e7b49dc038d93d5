"""What a dishonest first member, or whoever forges a baton, can't make the members of sealed laps do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.asking import ENDING
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason
from roundelay.agents.protocol.holder import HandOver, Holder
from roundelay.algorithms.sealed.optimisers import Asking as Optimising, Found, Goal, NoMinimiserError
from roundelay.algorithms.sealed.questions import POINT, STEP, Asked, Question, numbers_told
from roundelay.masks import SeededPairs
from tests.agents.world import least_squares, ring_plan

SITES, DIM = 4, 3
Meddle = Callable[[Baton], Baton]


def holders(optimiser: object, questions: int = 50, wide: bool = False) -> list[Holder]:
    algorithm = rl.SealedLaps(optimiser, wide=wide)  # type: ignore[arg-type]
    plan = ring_plan([f"site{me}" for me in range(SITES)], algorithm, DIM, Stopping(1e-9, questions=questions))
    return [Holder(plan, me, Known(least_squares(me, DIM)), 1, SeededPairs(1)) for me in range(SITES)]


def hand_overs(ring: list[Holder], meddle: Meddle = lambda baton: baton) -> Iterator[HandOver]:
    """Every hand-over, checked by its receiver before it is worked on; what the first member sends may be meddled with."""
    sender, move = 0, ring[0].first()
    while move is not None:
        if sender == 0:
            move = move._replace(baton=meddle(move.baton))
        yield move
        ring[move.receiver].check(move.baton, None)
        sender, move = move.receiver, ring[move.receiver].act(move.baton)


def until(ring: list[Holder], hop: int, receiver: int) -> Baton:
    """The baton of a question as a member receives it, before it answers."""
    return next(
        move.baton
        for move in hand_overs(ring)
        if move.receiver == receiver and move.baton.phase == Phase.ASK and move.baton.hop == hop
    )


def test_all_hold_the_same_end_without_a_doubt() -> None:
    ring = holders(rl.LBFGS())
    list(hand_overs(ring))
    points = [one.held.estimate for one in ring]
    pooled = [least_squares(me, DIM) for me in range(SITES)]
    best = rl.LeastSquares([one.features[0] for one in pooled], [one.targets[0] for one in pooled]).optimum
    for one, point in zip(ring, points, strict=True):
        assert one.held.reason == Reason.CONTENT and one.asking is not None and not one.asking.held.doubt
        assert np.array_equal(point, points[0])
        np.testing.assert_allclose(point, best, atol=1e-8)


def test_a_question_is_answered_once() -> None:
    """Asked again, at another point, under the same mask: the difference of the two answers would be the member's own."""
    ring = holders(rl.LBFGS())
    baton = until(ring, hop=2, receiver=1)
    ring[1].check(baton, None)
    ring[1].act(baton)
    other = np.array(baton.numbers)
    other[:DIM] = np.ones(DIM).view(np.uint64)
    for again in (baton, baton._replace(numbers=other)):
        with pytest.raises(BatonError, match="a mask is used once"):
            ring[1].check(again, None)


def of_another_member_state(told_otherwise: bool) -> tuple[np.ndarray, np.ndarray]:
    """Site 1 answers question 2, dies before that is on disk, and is asked question 2 again: elsewhere, or the same.

    What its two neighbours see of it both times: the words that leave minus those that enter; and its two true answers.
    """
    words, answers = [], []
    for again in (False, True):
        ring = holders(rl.LBFGS())
        baton = until(ring, hop=2, receiver=1)
        if again and told_otherwise:
            numbers = np.array(baton.numbers)
            numbers[:DIM] = (numbers[:DIM].view(np.float64) + 0.25).view(np.uint64)
            baton = baton._replace(numbers=numbers)
        move = ring[1].act(baton)
        assert move is not None and ring[1].asking is not None
        words.append(move.baton.numbers[DIM:-1] - baton.numbers[DIM:-1])
        point = ring[1].asking.place.point
        answers.append(np.append(ring[1].problem.value(0, point), ring[1].problem.gradient(0, point)))
    grid = rl.SealedLaps().grid
    return grid.decode(words[1] - words[0]), answers[1] - answers[0]


def test_a_question_that_is_replaced_after_a_crash_is_answered_under_another_mask() -> None:
    """Otherwise the two neighbours would have the difference of two answers, which is the member's own."""
    same, nothing = of_another_member_state(told_otherwise=False)
    assert not same.any() and not nothing.any()  # the same question has the same words
    seen, truth = of_another_member_state(told_otherwise=True)
    assert np.abs(truth).max() < 100.0
    assert np.abs(seen - truth).max() > 1000.0  # of numbers up to 2¹⁹ hardly one of four is as small by chance


def test_members_who_were_told_different_things_form_no_sum() -> None:
    """One member is asked elsewhere behind the others' backs: the masks do not cancel, and nobody learns anything."""
    for behind_their_backs in (False, True):
        ring = holders(rl.LBFGS())
        baton = until(ring, hop=2, receiver=2)
        told = baton.numbers[:DIM].view(np.float64)
        asked = at_another_point(2)(baton) if behind_their_backs else baton
        baton = ring[2].act(asked).baton  # type: ignore[union-attr]
        numbers = np.concatenate([told.view(np.uint64), baton.numbers[DIM:]])
        baton = ring[3].act(baton._replace(numbers=numbers)).baton  # type: ignore[union-attr]
        total = rl.SealedLaps().grid.decode(baton.numbers[DIM:-1])
        truth = sum(least_squares(me, DIM).gradient(0, told) for me in range(SITES))
        assert (np.abs(total[1:] - truth).max() > 100.0) == behind_their_backs


TOLD = (rl.NormalEquations(), rl.ConjugateGradients(), rl.Newton(), rl.LBFGS())


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("optimiser", TOLD, ids=lambda one: type(one).__name__)
def test_a_sum_whose_masks_do_not_cancel_is_no_sum(optimiser: object, wide: bool) -> None:
    """One member is told other things, the others the same: in any lap, also one that only tells where the point is."""
    asked = {
        move.baton.hop: move.baton.purpose
        for move in hand_overs(holders(optimiser, wide=wide))
        if move.baton.phase == Phase.ASK
    }
    with_something_told = [hop for hop, kind in asked.items() if numbers_told(kind, DIM)]
    assert len(with_something_told) >= 1
    for hop in with_something_told:
        told = numbers_told(asked[hop], DIM)

        def meddled(move: HandOver, behind: bool, hop: int = hop, told: int = told) -> HandOver:
            baton = move.baton
            if baton.phase != Phase.ASK or baton.hop != hop or move.receiver not in (2, 3) or baton.step > 3:
                return move
            numbers = np.array(baton.numbers)
            numbers[:told] = (numbers[:told].view(np.float64) + (0.25 if behind else -0.25)).view(np.uint64)
            return move._replace(baton=baton._replace(numbers=numbers))

        with pytest.raises(BatonError, match=f"masks of question {hop} did not cancel"):
            ring = holders(optimiser, wide=wide)
            move = ring[0].first()
            while move is not None:
                move = meddled(move, behind=move.receiver == 2)
                move = ring[move.receiver].act(move.baton)


@pytest.mark.parametrize("hop", [0, 1, 3, 7])
def test_questions_come_in_order(hop: int) -> None:
    ring = holders(rl.LBFGS())
    baton = until(ring, hop=2, receiver=1)
    with pytest.raises(BatonError, match="questions come in order"):
        ring[1].check(baton._replace(hop=hop), None)


def test_no_more_questions_than_were_agreed_on() -> None:
    ring = holders(rl.LBFGS(), questions=2)
    moves = list(hand_overs(ring))
    assert max(move.baton.hop for move in moves if move.baton.phase == Phase.ASK) == 1
    assert all(one.held.reason == Reason.HOPS for one in ring)
    ring = holders(rl.LBFGS(), questions=2)
    baton = until(ring, 0, 1)
    ring[1].act(baton)
    ring[1].act(baton._replace(hop=1))
    with pytest.raises(BatonError, match="the ring file allows 2"):
        ring[1].check(baton._replace(hop=2), None)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_point_must_be_finite(bad: float) -> None:
    ring = holders(rl.LBFGS())
    baton = until(ring, hop=2, receiver=1)
    numbers = np.array(baton.numbers)
    numbers[:1] = np.array([bad]).view(np.uint64)
    with pytest.raises(BatonError, match="not finite"):
        ring[1].check(baton._replace(numbers=numbers), None)


def test_a_step_needs_a_direction() -> None:
    ring = holders(rl.ConjugateGradients())
    baton = next(hand_overs(ring)).baton
    kind = Asked.GRADIENT | STEP
    numbers = np.zeros(numbers_told(kind, DIM) + DIM + 1, np.uint64)
    with pytest.raises(BatonError, match="no direction has been told"):
        ring[1].check(baton._replace(purpose=kind, numbers=numbers), None)


def test_a_lap_begins_at_the_first_member() -> None:
    ring = holders(rl.LBFGS())
    baton = until(ring, hop=2, receiver=2)
    for change in ({"origin": 1}, {"step": 1}, {"step": 3}, {"step": SITES + 1}):
        with pytest.raises(BatonError):
            ring[2].check(baton._replace(**change), None)


def at_another_point(number: int) -> Meddle:
    """The first member asks one question at a point of its own choosing."""

    def meddle(baton: Baton) -> Baton:
        if baton.phase != Phase.ASK or baton.hop != number or not baton.purpose & POINT:
            return baton
        numbers = np.array(baton.numbers)
        numbers[:DIM] = (numbers[:DIM].view(np.float64) + 0.1).view(np.uint64)
        return baton._replace(numbers=numbers)

    return meddle


@dataclass(frozen=True)
class Astray:
    """An optimiser that asks one question at a point of its own choosing."""

    agreed: Any
    number: int

    def questions(self, goal: Goal) -> Optimising:
        asking = self.agreed.questions(goal)
        question = next(asking)
        for number in count():
            here = number == self.number and question.point is not None
            total = yield replace(question, point=question.point + 0.1) if here else question
            try:
                question = asking.send(total)
            except StopIteration as end:
                return end.value
        raise AssertionError


@pytest.mark.parametrize(
    "optimiser", [rl.LBFGS(), rl.Newton(), rl.NormalEquations()], ids=lambda one: type(one).__name__
)
def test_a_question_that_the_optimiser_would_not_have_asked_is_named(optimiser: object) -> None:
    ring = holders(optimiser)
    assert ring[0].asking is not None
    ring[0].asking.optimiser = Astray(optimiser, 1)
    list(hand_overs(ring))
    for one in ring[1:]:
        assert one.asking is not None
        assert "Question 2 is not one that the agreed optimiser would have asked: site0" in one.asking.held.doubt


def test_totals_that_were_made_up_do_not_explain_the_questions() -> None:
    ring = holders(rl.LBFGS())
    freeze = ring[0].freeze

    def lying(reason: Reason, hop: int, numbers: np.ndarray, wished: int = 0) -> HandOver:
        numbers[ENDING + DIM + 1] *= 1.5  # in the total of the first question
        return freeze(reason, hop, numbers, wished)

    ring[0].freeze = lying  # type: ignore[method-assign]
    list(hand_overs(ring))
    assert all(one.asking is not None and "would" in one.asking.held.doubt for one in ring[1:])


def test_the_end_is_where_all_were_asked_last() -> None:
    def meddle(baton: Baton) -> Baton:
        if baton.phase != Phase.DONE:
            return baton
        numbers = np.array(baton.numbers)
        numbers[ENDING : ENDING + DIM] = 1e6
        return baton._replace(numbers=numbers)

    with pytest.raises(BatonError, match="ends the run at another point"):
        list(hand_overs(holders(rl.LBFGS()), meddle))


class Greedy(rl.NormalEquations):
    """Has the minimiser, and asks once more elsewhere."""

    def questions(self, goal: Goal) -> Optimising:
        found = yield from super().questions(goal)
        yield Question(Asked.GRADIENT, found.point + 1.0)
        yield Question(Asked.GRADIENT, found.point)
        return found


def test_questions_that_went_on_after_the_end_are_named() -> None:
    ring = holders(rl.NormalEquations())
    assert ring[0].asking is not None
    ring[0].asking.optimiser = Greedy()
    list(hand_overs(ring))
    for one in ring[1:]:
        assert one.asking is not None
        assert "More was asked than the agreed optimiser needs: site0" in one.asking.held.doubt


def test_an_objective_of_the_sites_own_takes_part() -> None:
    """A value and a gradient are enough; without a value it is said what is missing."""
    plan = ring_plan(["a", "b", "c"], rl.SealedLaps(), 2, Stopping(1e-9))
    centres = (np.array([1.0, 2.0]), np.array([-3.0, 0.5]), np.array([4.0, 1.0]))

    def quartic(centre: np.ndarray, with_value: bool = True) -> Known:
        gradient = [lambda x: (x - centre) * (1.0 + (x - centre) @ (x - centre))]
        value = [lambda x: 0.5 * (x - centre) @ (x - centre) + 0.25 * ((x - centre) @ (x - centre)) ** 2]
        return Known(rl.CallableProblem(gradient, 2, value if with_value else None))

    ring = [Holder(plan, me, quartic(centre), 1, SeededPairs(1)) for me, centre in enumerate(centres)]
    list(hand_overs(ring))
    for one in ring:
        assert one.held.estimate is not None and one.held.reason == Reason.CONTENT
        slopes = sum((x := one.held.estimate - centre) * (1.0 + x @ x) for centre in centres)
        np.testing.assert_allclose(slopes, 0.0, atol=1e-8)
    bare = Holder(plan, 1, quartic(centres[1], with_value=False), 1, SeededPairs(1))
    with pytest.raises(ValueError, match=r"has no value\(x\)"):
        _ = bare.problem


class EndsEarly:
    """An optimiser that has enough after the first total, whatever it says."""

    def __init__(self, end: BaseException) -> None:
        self.end = end

    def send(self, total: object) -> Question:
        raise self.end


def with_an_early_end(end: BaseException) -> list[Holder]:
    """The first member ends after one question, and tells a residual of 0."""
    ring = holders(rl.LBFGS())
    asking = ring[0].asking
    assert asking is not None
    asking._replayed = lambda: EndsEarly(end)  # type: ignore[method-assign, assignment, return-value]
    freeze = ring[0].freeze

    def lying(reason: Reason, hop: int, numbers: np.ndarray, wished: int = 0) -> HandOver:
        numbers[0] = 0.0
        return freeze(reason, hop, numbers, wished)

    ring[0].freeze = lying  # type: ignore[method-assign]
    list(hand_overs(ring))
    return ring


@pytest.mark.parametrize("end", [StopIteration(Found(np.zeros(DIM), 0.0, True)), NoMinimiserError()])
def test_who_asks_does_not_end_before_the_optimiser_does(end: BaseException) -> None:
    """Else all would sign where the lap began, and say that it is the best fit, and that the sum of all slopes is 0 there; or that there is none."""
    for one in with_an_early_end(end)[1:]:
        assert one.asking is not None and "would not have ended here" in one.asking.held.doubt
        assert one.asking.held.residual > 0.01


def test_the_residual_is_not_as_the_last_lap_tells_it() -> None:
    def meddle(baton: Baton) -> Baton:
        if baton.phase != Phase.DONE:
            return baton
        return baton._replace(numbers=np.concatenate([[1e9], baton.numbers[1:]]))

    ring = holders(rl.LBFGS())
    list(hand_overs(ring, meddle))
    assert all(one.asking is not None and one.asking.held.residual < 1.0 for one in ring)


def test_nothing_is_answered_after_the_end() -> None:
    """The totals were told and replayed: of a question after that nobody would say that it was not agreed on."""
    ring = holders(rl.LBFGS())
    last = [move for move in hand_overs(ring) if move.baton.phase == Phase.ASK and move.receiver == 1][-1].baton
    victim = ring[1]
    assert victim.finished and victim.asking is not None
    with pytest.raises(BatonError, match="is over"):
        victim.check(last._replace(hop=len(victim.asking.held.answered)), None)
