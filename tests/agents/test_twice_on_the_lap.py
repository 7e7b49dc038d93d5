"""Members that a lap meets twice: at the end they hand it on once more, though they have it already, and also when they come back."""

from __future__ import annotations

from dataclasses import replace

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.station import Station
from roundelay.agents.protocol.wire import Kind, pack_frame, unpack_frame
from roundelay.masks import SeededPairs
from tests.agents.world import RUN, MemoryJournal, least_squares, ring_plan

# A path: the one in the middle is met twice.
MIDDLE, END = 1, 2
PLAN_RUN = bytes.fromhex(RUN)


def path(algorithm: object) -> RingPlan:
    plan = ring_plan(["a", "b", "c"], algorithm, 2, Stopping(1e-9, hops=10_000))
    return replace(plan, order=(0, MIDDLE, END, MIDDLE), links=((0, 1), (1, 2)))


def opened(plan: RingPlan, me: int, journal: MemoryJournal) -> Station:
    return Station(Holder(plan, me, Known(least_squares(me, 2)), 1, SeededPairs(1)), journal)  # type: ignore[arg-type]


def handed_over(ring: list[Station], who: int) -> int:
    """One hand-over, acknowledged; who has it then."""
    assert ring[who].outgoing is not None
    receiver, data = ring[who].outgoing
    frame = unpack_frame(data, PLAN_RUN)
    ring[receiver].work(who, frame, ring[receiver].read(frame))
    ring[receiver].secure()
    ring[who].acknowledge(0, frame.k)
    return receiver


@pytest.mark.parametrize("algorithm", [rl.IADMM(rho=2.0), rl.WADMM(rho=2.0)], ids=["lap", "random walk"])
@pytest.mark.parametrize("restarts", [False, True])
def test_the_end_is_handed_on_by_who_has_it(restarts: bool, algorithm: object) -> None:
    plan = path(algorithm)
    journals = [MemoryJournal() for _ in range(3)]
    ring = [opened(plan, me, journal) for me, journal in enumerate(journals)]
    ring[0].start()
    who = 0
    while not ring[MIDDLE].holder.finished:
        ring[MIDDLE].holder.wants_to_stop = ring[MIDDLE].holder.held.visits > 0
        who = handed_over(ring, who)
        if who == 0 and ring[0].holder.held.visits > 1000:
            raise AssertionError("it does not end")
    outer = [ring[me].holder for me in (0, END)]
    while not any(one.finished for one in outer):
        who = handed_over(ring, who)
    if restarts:
        ring[MIDDLE] = opened(plan, MIDDLE, journals[MIDDLE])
    # The member at the other end has it from the one in the middle alone, which must wait for it, and be known by its neighbours.
    assert not all(one.finished for one in outer) and not ring[MIDDLE].finished
    for one, other in ((MIDDLE, who), (who, MIDDLE)):
        hello = pack_frame(Kind.HELLO, PLAN_RUN, 0, 0, ring[one].greeting(other))
        ring[other].check_greeting(one, unpack_frame(hello, PLAN_RUN))
    while ring[who].outgoing is not None:
        who = handed_over(ring, who)
    assert all(one.finished for one in ring)
