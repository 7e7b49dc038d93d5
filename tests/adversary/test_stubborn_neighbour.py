"""A neighbour that shakes hands like any other and then does what keeps an agent busy: it reads nothing, connects again and again,
repeats itself after the end. None of it holds the agent up, or fills its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.links import agent_loop, grpc_transport
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.links.grpc_transport import METHOD, SERVICE, GrpcTransport
from roundelay.agents.links.transport import LONGEST, MemorySwitch, MemoryTransport, Patience
from roundelay.agents.protocol.baton import Baton, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Journal
from roundelay.agents.protocol.station import Station
from roundelay.agents.protocol.wire import Kind, pack_frame, unpack_frame
from roundelay.masks import SeededPairs
from tests.agents.apart import apart
from tests.agents.conftest import site
from tests.agents.test_handshake import LARGEST, NAMES, plan_of
from tests.agents.test_misbehaviour import RUN_BYTES, SENDER, greeted, packed, scene
from tests.agents.world import RUN, least_squares, ring_plan


async def pinged_by_one_who_does_not_read() -> bool:
    """Whether the agent's end gives up a stream whose other end takes nothing."""
    identities = [site(name) for name in NAMES]
    plan = plan_of(identities)
    listening = GrpcTransport(plan, 3, None, LARGEST)
    gone = asyncio.Event()

    async def deliver(peer: int, data: bytes) -> None:
        pass

    async def connected(peer: int, up: bool) -> None:
        if not up:
            gone.set()

    await listening.start(deliver, connected)
    async with grpc.aio.insecure_channel(plan.members[3].address) as channel:
        call = channel.stream_stream(f"/{SERVICE}/{METHOD}")(metadata=(("member", "0"),))
        await call.wait_for_connection()
        while 0 not in listening._streams:
            await asyncio.sleep(0.01)
        frame = pack_frame(Kind.REFUSAL, plan.run_bytes, 0, 0, bytes(900))
        while await listening.send(0, frame):
            pass
        await asyncio.wait_for(gone.wait(), 60.0)
        call.cancel()
    await listening.stop()
    return True


def test_one_who_reads_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_transport, "TAKEN_WITHIN", 1.0, raising=False)
    assert apart(tmp_path, pinged_by_one_who_does_not_read)


def play(folder: Path, work: Callable[[Any], Awaitable[None]]) -> None:
    """A real agent after a few laps, and what its neighbours do."""

    async def played() -> None:
        made = await scene(folder)
        await work(made)
        made.journal.close()

    asyncio.run(played())


async def settle() -> None:
    """Let everything go on that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_greetings_do_not_pile_up_while_the_baton_waits_here(tmp_path: Path) -> None:
    """A pause may last for days, and a neighbour whose agent is started again is asked once a second who it is."""

    async def pause(made: Any) -> None:
        agent = made.agent
        agent.pause()
        held = asyncio.create_task(agent._deliver(SENDER, packed(made.baton, made.k)))
        await settle()
        assert agent._lock.locked()
        waiting = len(agent._tasks)
        for second in range(1000):
            await agent._connected(2, True)
            await agent._ping(float(second))
        await settle()
        assert len(agent._tasks) <= waiting + 1
        sent: list[int] = []

        async def send(peer: int, data: bytes) -> bool:
            sent.append(unpack_frame(data, RUN_BYTES).kind)
            return True

        agent.transport.send = send
        agent.resume()
        await held
        await settle()
        assert sent.count(Kind.HELLO) == 1
        await agent._connected(2, True)  # and it is asked anew
        await settle()
        assert sent.count(Kind.HELLO) == 2

    play(tmp_path, pause)


def test_batons_do_not_pile_up_over_streams_that_break(tmp_path: Path) -> None:
    """A neighbour hands a baton over, hangs up and dials again, as often as it can; each may be as long as any."""

    async def flood(made: Any) -> None:
        agent = made.agent
        agent.pause()
        first = asyncio.create_task(agent._deliver(SENDER, packed(made.baton, made.k)))
        await settle()
        for _ in range(500):
            stream = asyncio.create_task(agent._deliver(2, packed(made.baton, made.k + 1)))
            await asyncio.sleep(0)
            stream.cancel()
        await settle()
        assert len(agent._tasks) < 20
        agent.resume()
        await first
        await settle()
        assert not agent._over.done()

    play(tmp_path, flood)


def test_one_who_repeats_himself_after_the_end_does_not_keep_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_loop, "LONGEST_STAY", 1.0, raising=False)

    async def repeat(made: Any) -> None:
        made.agent.patience.usual = 1e-3
        lingering = asyncio.create_task(made.agent.linger())
        for _ in range(300):
            await made.agent._deliver(SENDER, packed(made.baton, made.k - 6))
            await asyncio.sleep(0.02)
            if lingering.done():
                return
        raise AssertionError("the agent has stayed for as long as it was spoken to")

    play(tmp_path, repeat)


@pytest.mark.parametrize("what", ["a link breaks", "nothing is heard", "a frame is damaged", "a greeting is another's"])
def test_where_the_log_can_not_be_written_the_agent_ends(what: str, tmp_path: Path) -> None:
    """A disk that is full for a moment: whoever only lost the task that dials or asks again would wait for ever."""

    async def full(made: Any) -> None:
        agent = made.agent

        def log(event: str, **about: object) -> None:
            raise OSError(28, "No space left on device")

        running = asyncio.create_task(agent.run())
        await settle()
        agent.log = log
        if what == "a link breaks":
            await agent._connected(SENDER, False)
        elif what == "a frame is damaged":
            await agent._deliver(SENDER, b"")
        elif what == "a greeting is another's":
            await agent._deliver(SENDER, pack_frame(Kind.HELLO, RUN_BYTES, 0, 1))
        else:
            health = agent.links[SENDER]
            health.up, health.pinged, health.heard = True, 1e-9, -1e9
        with pytest.raises(OSError, match="No space"):
            await asyncio.wait_for(running, 20.0)

    play(tmp_path, full)


@pytest.mark.parametrize("k", [2**64 - 1, 2**63 - 1, 2**62 + 1])
def test_a_counter_beyond_all_numbers_ends_no_agent_on_a_walk(k: int, tmp_path: Path) -> None:
    """On a lap every counter has its place; on a walk it only rises, and so has to have an end."""

    async def walk() -> None:
        plan = ring_plan(["site0", "site1", "site2"], rl.WADMM(rho=2.0), 2, Stopping(None, 60))
        holder = Holder(plan, 1, Known(least_squares(1, 2)), 1, SeededPairs(1))
        journal = Journal(tmp_path, RUN, "site1")
        agent = Agent(Station(holder, journal), MemoryTransport(MemorySwitch(), 1, plan.neighbours[1]))
        greeted(agent)
        baton = Baton(Phase.ITERATE, 1, 0, 0, 0, 0, np.array([0.3, -0.2]))
        await agent._deliver(SENDER, packed(baton, k))
        assert not agent._over.done() and "was forged" in agent.links[SENDER].refused
        await agent._deliver(SENDER, packed(baton, 1))
        assert agent.counts.taken == 1
        journal.close()

    asyncio.run(walk())


def test_one_who_never_acknowledges_is_asked_for_ever() -> None:
    """Or has not accepted the newest ring file overnight: after a thousand tries, some nine hours, the wait overflowed and the agent died."""
    patience, before = Patience(), 0.0
    patience.answered(0.02)
    for patience.in_vain in range(3000):
        assert before <= patience.deadline() <= LONGEST
        before = patience.deadline()
    assert before == LONGEST
