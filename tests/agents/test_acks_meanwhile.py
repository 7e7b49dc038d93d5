"""Acknowledgements and batons that come at a bad moment."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.links.transport import MemorySwitch, MemoryTransport
from roundelay.agents.protocol import station as station_module
from roundelay.agents.protocol.baton import Baton, unpack_baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Journal, Standing
from roundelay.agents.protocol.station import Station
from roundelay.agents.protocol.wire import Kind, pack_frame, unpack_frame
from roundelay.masks import SeededPairs
from tests.agents.test_misbehaviour import RUN_BYTES, SENDER, Scene, packed, scene
from tests.agents.world import RUN, least_squares, ring_plan

RECEIVER = 2


async def unacknowledged(folder: Path) -> tuple[Scene, Baton]:
    """An agent whose last hand-over has not been acknowledged by word, and the baton that comes next."""
    made = await scene(folder)
    assert made.baton is not None
    await made.agent._deliver(SENDER, packed(made.baton, made.k))
    outgoing = made.agent.station.outgoing
    assert outgoing is not None
    after = unpack_baton(unpack_frame(outgoing[1], RUN_BYTES).body, made.agent.station.holder.layout)
    return made, after._replace(hop=after.hop + 2, numbers=after.numbers + 0.1)


def test_an_ack_that_comes_while_a_thread_works_takes_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads change over while the ack of the last hand-over is noted, and the next one is made just then."""

    async def play() -> None:
        made, baton = await unacknowledged(tmp_path)
        station, loop_thread = made.agent.station, threading.current_thread()
        begun, go = threading.Event(), threading.Event()
        sent, k = station.standing.sent_k, made.k + 3
        act = station.holder.act

        def slow(baton: Baton) -> Any:
            move = act(baton)
            begun.set()
            go.wait(60.0)
            return move

        replaced = Standing._replace

        def slow_replace(one: Standing, **changes: Any) -> Any:
            after = replaced(one, **changes)
            if threading.current_thread() is loop_thread:
                go.set()
                time.sleep(0.2)
            return after

        monkeypatch.setattr(station.holder, "act", slow)
        monkeypatch.setattr(Standing, "_replace", slow_replace)
        made.agent.counts.working_seconds = 100.0  # its work is known to take long
        taking = asyncio.create_task(made.agent._deliver(SENDER, packed(baton, k)))
        assert await asyncio.to_thread(begun.wait, 60.0)
        await made.agent._deliver(RECEIVER, pack_frame(Kind.ACK, RUN_BYTES, 0, sent))
        go.set()
        await taking
        on_disk = made.journal.standing()
        assert on_disk is not None and on_disk.k == station.standing.k == k
        assert station.outgoing is not None
        made.journal.close()

    asyncio.run(play())


def test_a_token_that_is_back_ends_the_waiting(tmp_path: Path) -> None:
    """What was sent in vain before must not let an agent wait for half a minute at the next loss."""

    async def play() -> None:
        made, baton = await unacknowledged(tmp_path)
        made.agent.patience.in_vain = 9
        await made.agent._deliver(SENDER, packed(baton, made.k + 3))
        assert made.agent.patience.in_vain == 0
        made.journal.close()

    asyncio.run(play())


def test_a_baton_that_comes_before_the_agent_is_ready_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the state is large the baton stays in the inbox: it must not be taken for one that was left from before."""
    monkeypatch.setattr(station_module, "BESIDE", 10)
    plan = ring_plan(["site0", "site1"], rl.IADMM(rho=2.0), 2, Stopping(None, 30))

    async def play() -> None:
        switch, agents = MemorySwitch(), []
        for number in range(2):
            holder = Holder(plan, number, Known(least_squares(number, 2)), 1, SeededPairs(1))
            journal = Journal(tmp_path / f"site{number}", RUN, f"site{number}")
            transport = MemoryTransport(switch, number, plan.neighbours[number])
            agents.append(Agent(Station(holder, journal), transport))
        running = [asyncio.create_task(agents[0].run())]
        while agents[0].station.outgoing is None:
            await asyncio.sleep(0.001)
        running.append(asyncio.create_task(agents[1].run()))
        await asyncio.wait_for(asyncio.gather(*running), 120.0)
        for agent in agents:
            await agent.transport.stop()
            agent.station.journal.close()

    asyncio.run(play())
