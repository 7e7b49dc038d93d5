"""The end of a run: who dies there comes back, answers whoever still waits, and ends."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.protocol import station
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.station import Point
from roundelay.agents.protocol.wire import HEADER_BYTES
from roundelay.agents.site.taking_part import Site
from tests.agents.likeness import check_same, simulated
from tests.agents.processes import ProcessRing, make_ring, own_functions, wait_until

SITES, HOPS, SEED = 4, 40, 3
FIRST, LAST = (HOPS - 1) % SITES, (HOPS - 2) % SITES  # where the last lap begins and ends


def new_ring(folder: Path, wrap: object = lambda site, number: None) -> tuple[ProcessRing, rl.Run]:
    problem = rl.paper_least_squares(agents=SITES, samples=6, dim=2, seed=SEED)
    ring = make_ring(folder, own_functions(problem), rl.IADMM(), Stopping(None, HOPS), seed=SEED, wrap=wrap)
    return ring, simulated(rl.IADMM(), problem, rl.ring(SITES), HOPS, SEED)


@pytest.mark.parametrize("point", [Point.AFTER_SYNC, Point.BEFORE_ACK])
def test_the_last_acknowledgement_may_be_lost(point: Point, tmp_path: Path) -> None:
    """The last hand-over is on disk, but its sender was not told: it must not wait for ever."""
    ring, run = new_ring(tmp_path)
    try:
        for number in range(SITES):
            # Hops are acknowledged by the token itself; after them comes the lap in which all sign the end, and then the last.
            turn = 2 if point is Point.BEFORE_ACK else HOPS // SITES + 2
            ring.start(number, (point, turn) if number == LAST else None)
        ring.wait(again=True)
    finally:
        ring.stop()
    check_same(ring, run)
    assert (tmp_path / "kills").read_text().startswith(point.name)


def test_where_the_last_lap_began_nobody_waits_for_its_end(tmp_path: Path) -> None:
    """A member is down for longer than the first one stays after the end; it comes back, and all the others end."""
    ring, run = new_ring(tmp_path)
    asleep = (FIRST + 2) % SITES
    try:
        for number in range(SITES):
            ring.start(number, (Point.AFTER_RECEIVE, HOPS // SITES + 2) if number == asleep else None)
        # The first one ends, since it is known that the next one has the last word.
        wait_until_gone(ring, {FIRST, asleep}, {0, -signal.SIGKILL})
        ring.start(asleep)
        ring.wait()
    finally:
        ring.stop()
    check_same(ring, run)


def wait_until_gone(ring: ProcessRing, who: set[int], codes: set[int]) -> None:
    """Until these sites have ended, and nobody in another way than so."""

    def gone() -> bool:
        assert set(ring.reap().values()) <= codes
        return not set(ring.children) & who

    wait_until(gone, f"the sites {who} have ended")


def die_in_the_end(site: Site, number: int) -> None:
    """Everything is acknowledged everywhere, and the site dies once before it has ended."""
    mark = site.folder / "died"

    async def dying(self: Agent) -> None:
        (site.folder / "said").touch()
        while len(list(site.folder.parent.glob("*/said"))) < SITES:  # who has not got here waits for an acknowledgement
            await asyncio.sleep(0.01)
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    if not mark.exists():
        Agent.linger = dying  # type: ignore[method-assign]


def test_who_dies_when_all_is_said_does_not_wait_for_those_who_have_gone(tmp_path: Path) -> None:
    ring, run = new_ring(tmp_path, die_in_the_end)
    try:
        for number in range(SITES):
            ring.start(number)
        wait_until_gone(ring, set(range(SITES)), {-signal.SIGKILL})
        ring.start(1)  # nobody else is there
        ring.wait()
    finally:
        ring.stop()
    check_same(ring, run)


def die_after_it_has_signed(site: Site, number: int) -> None:
    """The last signature under the end has been sent on, and its site dies, once."""
    mark = site.folder / "died"

    def dying(point: Point) -> None:
        assert site.watch is not None
        sent = site.watch.agent.station.standing.outgoing
        if (
            point is Point.AFTER_SEND
            and sent[HEADER_BYTES : HEADER_BYTES + 1] == bytes([Phase.FROZEN])
            and not mark.exists()
        ):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    if number == LAST:
        site.reached = dying


@pytest.mark.parametrize("large", [False, True])
def test_who_signed_last_need_not_hear_that_it_came(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back when the next one has ended and answers nobody: that the last lap is here says enough."""
    if large:
        monkeypatch.setattr(station, "BESIDE", 10)
    ring, run = new_ring(tmp_path, die_after_it_has_signed)
    try:
        for number in range(SITES):
            ring.start(number)
        wait_until_gone(ring, {FIRST, LAST}, {0, -signal.SIGKILL})
        ring.start(LAST)
        ring.wait()
    finally:
        ring.stop()
    check_same(ring, run)
