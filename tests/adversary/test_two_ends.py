"""One end for all: whoever freezes a run twice at one hop had two ends signed by everybody, one site's model and another's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason
from roundelay.agents.protocol.holder import HandOver, Holder
from roundelay.agents.protocol.signing import SIGNATURE
from roundelay.agents.protocol.station import Station
from roundelay.algorithms.sealed.questions import numbers_told
from tests.adversary.signed_rings import hand_overs, members_of, signed_plan
from tests.agents.world import MemoryJournal

TOKEN, LAPS = rl.PIADMM1(rho=2.0, start=rl.SealedStart()), rl.SealedLaps(rl.LBFGS())
ONE, OTHER, LIAR = 1, 3, 0


def begun(algorithm: object) -> tuple[list[Holder], HandOver]:
    """An honest ring in the middle of its run, and the last hand-over to the first site, which has not been worked on."""
    ring = members_of(signed_plan(algorithm, Stopping(1e-8)))
    for move in hand_overs(ring):
        worked = ring[ONE].held.visits if ring[ONE].asking is None else len(ring[ONE].asking.held.answered)  # type: ignore[union-attr]
        if move.receiver == LIAR and worked == 3:
            return ring, move
    raise AssertionError


def frozen_twice(algorithm: object) -> Iterator[tuple[list[Holder], HandOver]]:
    """The first site freezes the run at two ends of one hop: at two tokens, or for two reasons and in two names."""
    ring, move = begun(algorithm)
    liar, asking = ring[LIAR], ring[LIAR].asking
    if asking is None:
        numbers, hop = np.array(move.baton.numbers), move.baton.hop + 1
        yield ring, liar.freeze(Reason.ASKED, hop, numbers)
        yield ring, liar.freeze(Reason.ASKED, hop, numbers + 0.5)
    else:
        last = asking.held.answered[-1]  # its total is known now, and no next question is asked
        words = move.baton.numbers[numbers_told(last.kind, liar.plan.dim) : -asking.algorithm.grid.words]
        asking.held.note(last._replace(total=asking.algorithm.grid.decode(words)))
        yield ring, asking._end(Reason.CONTENT)
        yield ring, asking._end(Reason.ASKED, 1 << LIAR)


def signed_by_all(ring: list[Holder], move: HandOver) -> Baton:
    """The end as it is told when it has been round."""
    while move.receiver != LIAR:
        ring[move.receiver].check(move.baton, None)
        following = ring[move.receiver].act(move.baton)
        assert following is not None
        move = following
    numbers = move.baton.numbers if ring[LIAR].asking is None else move.baton.numbers[: ring[LIAR].largest_layout.done]
    told = ring[LIAR].start_lap(
        Phase.DONE, move.baton.purpose, move.baton.hop, numbers, move.baton.beside[: 4 * SIGNATURE]
    )
    return told.baton._replace(content=move.baton.content)


@pytest.mark.parametrize("algorithm", [TOKEN, LAPS], ids=["token", "sealed laps"])
def test_a_site_signs_one_end_of_a_hop(algorithm: object) -> None:
    first, second = frozen_twice(algorithm)
    ring, move = first
    signed_by_all(ring, move)
    with pytest.raises(BatonError, match="Oslo asks this site to sign another end of the run"):
        signed_by_all(*second)


@pytest.mark.parametrize("algorithm", [TOKEN, LAPS], ids=["token", "sealed laps"])
def test_two_sites_ended_with_two_models_each_signed_by_all(algorithm: object) -> None:
    """The positive control, where sites forget that they have signed."""
    ends = []
    for ring, move in frozen_twice(algorithm):
        for one in ring:
            one.held.asked = -1
        ends.append(signed_by_all(ring, move))
    for me, end in zip((OTHER, ONE), ends, strict=True):
        ring[me].check(end._replace(step=me), None)
        ring[me].act(end._replace(step=me))
    one, other = ring[ONE].end, ring[OTHER].end
    assert one.statement != other.statement
    assert not np.array_equal(one.point, other.point) or one.reason != other.reason


def test_an_end_that_was_signed_before_the_last_is_none() -> None:
    ring, move = begun(TOKEN)
    numbers = np.array(move.baton.numbers)
    earlier = signed_by_all(ring, ring[LIAR].freeze(Reason.ASKED, move.baton.hop + 1, numbers))
    ring[ONE].held.asked += 1  # another operator wished so a hop later, and was signed too
    with pytest.raises(BatonError, match="another end of the run than the one that this site was asked to sign last"):
        ring[ONE].check(earlier._replace(step=ONE), None)


# ---------------------------------------------------------------- in whose name


def in_its_name(ring: list[Holder]) -> None:
    """Tromso says that Narvik's operator wants to stop."""
    list(
        hand_overs(ring, lambda receiver, baton: baton._replace(content=1 << OTHER) if asks(receiver, baton) else baton)
    )


def asks(receiver: int, baton: Baton) -> bool:
    return receiver == OTHER and baton.phase == Phase.ASK and baton.hop == 3


def test_nobody_ends_sealed_laps_in_the_name_of_another() -> None:
    ring = members_of(signed_plan(LAPS, Stopping(1e-8)))
    with pytest.raises(BatonError, match="says that Narvik asked the ring to stop, which it did not"):
        in_its_name(ring)
    assert not any(one.finished for one in ring)


def test_who_has_wished_so_signs_it() -> None:
    """The positive control, and the honest case."""
    ring = members_of(signed_plan(LAPS, Stopping(1e-8)))
    ring[OTHER].held.wished = True
    in_its_name(ring)
    assert [one.end.by for one in ring] == [OTHER] * 4 and ring[0].end.reason == Reason.ASKED


def test_a_wish_is_on_disk_before_it_is_told() -> None:
    """It waits after a start: what was told without it would be another baton under the counter of the one with it."""
    ring = members_of(signed_plan(LAPS, Stopping(1e-8)))
    stations = [Station(one, MemoryJournal()) for one in ring]  # type: ignore[arg-type]
    moves = hand_overs(ring)
    for move in moves:
        if move.receiver == ONE and move.baton.phase == Phase.ASK and move.baton.hop == 1:
            break
    for wants in (False, True):
        ring[ONE].wants_to_stop, stations[ONE]._hopped = wants, True
        assert stations[ONE].sends_first is not wants
    next(moves)
    assert ring[ONE].held.wished
