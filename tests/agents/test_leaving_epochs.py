"""A newer ring file is accepted while a member works on a baton in a thread: what is begun is ended first."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import roundelay as rl
from roundelay.agents.agreement.epochs import plan_without
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from roundelay.agents.data.objectives import Known
from roundelay.agents.links.transport import MemorySwitch, MemoryTransport
from roundelay.agents.protocol import station as station_module
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Journal
from roundelay.agents.protocol.station import Station
from roundelay.agents.site import taking_part
from roundelay.agents.site.taking_part import Site, SiteOptions
from tests.agents.processes import RUN, make_ring
from tests.agents.world import least_squares

SLOW, DIM = 1, 3


@pytest.mark.parametrize("large", [True, False])
def test_what_is_worked_on_is_ended_before_the_epoch_is_left(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state is half-way to the next one meanwhile, and must not be written."""
    functions = [least_squares(number, DIM) for number in range(3)]
    ring = make_ring(tmp_path, functions, rl.IADMM(rho=2.0), Stopping(None, 10**6), seed=1)
    text = (tmp_path / "ring.toml").read_bytes()
    if large:
        monkeypatch.setattr(station_module, "BESIDE", 10)
    switch, working, closed_meanwhile = MemorySwitch(), [0], []
    visit, close = Holder.visit, Station.close

    def slowly(self: Holder, baton: Baton) -> Any:
        if self.me != SLOW or self.plan.epoch:
            return visit(self, baton)
        working[0] += 1
        made = visit(self, baton)
        time.sleep(0.3)
        working[0] -= 1
        return made

    def closing(self: Station) -> None:
        if self.me == SLOW and not self.plan.epoch:
            closed_meanwhile.append(working[0])
        close(self)

    def plug(plan: RingPlan, me: int, *_: object) -> MemoryTransport:
        return MemoryTransport(switch, me, plan.neighbours[me])

    monkeypatch.setattr(Holder, "visit", slowly)
    monkeypatch.setattr(Station, "close", closing)
    monkeypatch.setattr(taking_part, "GrpcTransport", plug)

    async def play() -> None:
        options = SiteOptions(seed=1, meter=False)
        sites = [Site(ring.site_folder(number), RUN, Known(functions[number]), options) for number in range(3)]
        running = [asyncio.create_task(site.run()) for site in sites]
        before = read_ring(text, "the ring file")
        newer = write_ring(
            plan_without(before.plan, ["site2"], None, previous=before.digest), load_identity(tmp_path / "site0")
        )
        while not working[0]:
            assert not running[SLOW].done(), running[SLOW].exception()
            await asyncio.sleep(0.01)
        accept_ring(ring.site_folder(SLOW), newer, despite_difference=True)
        while not (running[SLOW].done() or (sites[SLOW].watch and sites[SLOW].watch.agent.plan.epoch)):
            await asyncio.sleep(0.01)
        ended = [task.done() for task in running]
        for task in running:
            task.cancel()
        results = await asyncio.gather(*running, return_exceptions=True)
        assert not any(ended), results
        assert closed_meanwhile and not any(closed_meanwhile)

    asyncio.run(play())


def test_whoever_is_in_a_hurry_waits_for_what_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended once, and once more while it ends: a thread that still keeps a baton would write to a journal that is closed."""
    ring = make_ring(
        tmp_path, [least_squares(number, DIM) for number in range(3)], rl.IADMM(rho=2.0), Stopping(None, 10**6), seed=1
    )
    monkeypatch.setattr(station_module, "BESIDE", 10)
    switch, keeping, closed_meanwhile = MemorySwitch(), set(), []
    keep, close = Station.keep, Journal.close

    def slowly(self: Station, *baton: Any) -> None:
        keeping.add(self.journal)
        time.sleep(0.5)
        keep(self, *baton)
        keeping.remove(self.journal)

    def closing(self: Journal) -> None:
        closed_meanwhile.append(self in keeping)
        close(self)

    monkeypatch.setattr(Station, "keep", slowly)
    monkeypatch.setattr(Journal, "close", closing)
    monkeypatch.setattr(
        taking_part, "GrpcTransport", lambda plan, me, *_: MemoryTransport(switch, me, plan.neighbours[me])
    )

    async def play() -> None:
        options = SiteOptions(seed=1, meter=False)
        functions = [least_squares(number, DIM) for number in range(3)]
        sites = [Site(ring.site_folder(number), RUN, Known(functions[number]), options) for number in range(3)]
        running = [asyncio.create_task(site.run()) for site in sites]
        while not keeping:
            await asyncio.sleep(0.01)
        for _ in range(3):
            for task in running:
                task.cancel()
            await asyncio.sleep(0.01)
        await asyncio.gather(*running, return_exceptions=True)
        assert closed_meanwhile == [False, False, False]

    asyncio.run(play())
