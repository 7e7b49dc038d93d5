"""Totals that a first member makes up to go with its questions: whatever they are, the replay says a sentence, and no agent dies of it."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.protocol import asking as asking_module
from roundelay.agents.protocol.asking import Answered, Asking
from roundelay.agents.protocol.baton import BatonError, Reason
from roundelay.algorithms.sealed.optimisers import Asking as Optimising, Goal
from roundelay.algorithms.sealed.questions import numbers_asked, total_of
from roundelay.kernels import Vector
from tests.agents.test_asking import DIM, hand_overs, holders

SIZES = (-300, -160, -9, 0, 150, 300)
# Among the first of these sequences are some at which L-BFGS or Newton's method divides by 0.
SEQUENCES, LONGEST = 800, 12


def invented(asking: Asking, seed: int) -> list[Vector]:
    """Totals of any size, and as many questions as the optimiser asks when it is told them; both end where it can't go on."""
    rng, totals = np.random.default_rng(seed), []
    optimising = asking.optimiser.questions(asking.goal(None))
    asking.held.answered = []
    try:
        question = next(optimising)
        while len(totals) < LONGEST:
            count = numbers_asked(question.asked, DIM)
            totals.append(rng.normal(size=count) * 10.0 ** rng.choice(SIZES, size=count))
            told = np.array(question.told)
            asking.held.answered.append(Answered(len(totals) - 1, question.kind, told, None))
            question = optimising.send(total_of(question.asked, totals[-1], DIM))
    except (StopIteration, ValueError, ArithmeticError):
        pass
    finally:
        optimising.close()
    return totals


@pytest.mark.parametrize("optimiser", [rl.LBFGS(), rl.Newton(), rl.NormalEquations(), rl.ConjugateGradients()])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_replay_of_invented_totals_ends_in_words(optimiser: object) -> None:
    asking = holders(optimiser)[1].asking
    assert asking is not None
    said = {asking.replayed_doubt(invented(asking, seed), Reason.CONTENT) for seed in range(SEQUENCES)}
    assert any("can't be those that were formed" in one for one in said) or not isinstance(optimiser, rl.LBFGS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_they_made_agents_die_of_a_division_by_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: as it was, when only a ValueError was expected."""
    monkeypatch.setattr(asking_module, "UNUSABLE", (ValueError,))
    asking = holders(rl.LBFGS())[1].asking
    assert asking is not None
    with pytest.raises(ZeroDivisionError):
        for seed in range(SEQUENCES):
            asking.replayed_doubt(invented(asking, seed), Reason.CONTENT)


class Overtaxed(rl.NormalEquations):
    """Divides by zero at its end."""

    def questions(self, goal: Goal) -> Optimising:
        yield from super().questions(goal)
        raise ZeroDivisionError("float division by zero")


def test_what_the_optimiser_of_the_first_member_can_not_use_is_said_too() -> None:
    """Any member's answer is in the total."""
    ring = holders(rl.NormalEquations())
    assert ring[0].asking is not None
    ring[0].asking.optimiser = Overtaxed()
    with pytest.raises(BatonError, match="the optimiser can't go on"):
        list(hand_overs(ring))
