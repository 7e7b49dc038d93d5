"""A member that sends what no honest one can: it is refused before anything is touched, named, and the run goes on."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.links.transport import MemorySwitch, MemoryTransport
from roundelay.agents.protocol.baton import Baton, Phase, pack_baton, unpack_baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Journal
from roundelay.agents.protocol.signing import SIGNATURE
from roundelay.agents.protocol.station import PATIENT, Station
from roundelay.agents.protocol.wire import VERSION, Kind, pack_frame, unpack_frame
from roundelay.masks import SeededPairs
from tests.agents.world import RUN, least_squares, ring_plan

PLAN = ring_plan(["site0", "site1", "site2"], rl.IADMM(rho=2.0), 2, Stopping(None, 60))
RUN_BYTES = bytes.fromhex(RUN)
ME, SENDER = 1, 0
Tamper = Callable[[Baton, int], bytes]


def packed(baton: Baton, k: int, run: bytes = RUN_BYTES) -> bytes:
    return pack_frame(Kind.BATON, run, 0, k, *pack_baton(baton, PLAN.agents))


def of_another_version(baton: Baton, k: int) -> bytes:
    data = bytearray(packed(baton, k))
    data[4] += 1
    return bytes(data)


def with_a_huge_length(baton: Baton, k: int) -> bytes:
    data = bytearray(packed(baton, k))
    data[36:44] = struct.pack("<Q", 2**60)
    return bytes(data)


def with_phase(baton: Baton, k: int) -> bytes:
    head, numbers = pack_baton(baton, PLAN.agents)
    return pack_frame(Kind.BATON, RUN_BYTES, 0, k, bytes([9]) + head[1:], numbers)


def numbers(*values: float) -> Tamper:
    return lambda baton, k: packed(baton._replace(numbers=np.array(values)), k)


# What is sent, and a word of the sentence in which it is refused.
REFUSED: dict[str, tuple[Tamper, str]] = {
    "NaN": (numbers(float("nan"), 1.0), "not finite"),
    "infinity": (numbers(1.0, float("inf")), "not finite"),
    "another dimension": (numbers(1.0, 2.0, 3.0), "another dimension"),
    "no numbers": (numbers(), "another dimension"),
    "an absurd jump": (numbers(1e9, 1e9), "has moved by"),
    "a forged counter": (lambda baton, k: packed(baton, k + 6), "counter"),
    "another one's counter": (lambda baton, k: packed(baton, k + 1), "counter"),
    "an unknown phase": (with_phase, "unknown phase"),
    "a hop of another member": (lambda baton, k: packed(baton._replace(hop=baton.hop + 1), k), "which it is not"),
    "a hop that was made": (lambda baton, k: packed(baton._replace(hop=baton.hop - 6), k), "go back"),
    "a hop beyond the end": (lambda baton, k: packed(baton._replace(hop=baton.hop + 3000), k), "which it is not"),
    "a sum after the start": (
        lambda baton, k: packed(Baton(Phase.SUM, 0, 0, 1, 0, 0, np.ones(2, np.uint64)), k), "go back",
    ),
    "a step that is not its own": (
        lambda baton, k: packed(baton._replace(phase=Phase.DONE, origin=0, step=2, beside=bytes(3 * SIGNATURE)), k), "which it is not",
    ),
    "a member that does not exist": (lambda baton, k: packed(baton._replace(origin=7), k), "there are 3"),
    "content members that do not exist": (lambda baton, k: packed(baton._replace(content=1 << 5), k), "do not exist"),
}  # fmt: skip

# What is no frame of this run at all: dropped with a line in the log.
DAMAGED: dict[str, tuple[Tamper, str]] = {
    "another run": (lambda baton, k: packed(baton, k, bytes(16)), "another run"),
    "another version": (of_another_version, f"version {VERSION + 1}"),
    "a huge length": (with_a_huge_length, "claims"),
    "half a frame": (lambda baton, k: packed(baton, k)[:-9], "claims"),
    "a damaged frame": (lambda baton, k: packed(baton, k)[:-1] + bytes([packed(baton, k)[-1] ^ 1]), "checksum"),
    "nothing": (lambda baton, k: b"", "shorter"),
}


@dataclass
class Scene:
    """One real agent, and two neighbours whose words are given by the test."""

    agent: Agent
    journal: Journal
    log: list[tuple[str, dict[str, Any]]]
    k: int = 1
    refused: str = ""
    baton: Baton | None = None

    async def step(self) -> None:
        """An honest lap: the agent takes a baton, and its neighbours make the next ones."""
        assert self.baton is not None
        taken = self.agent.counts.taken
        await self.agent._deliver(SENDER, packed(self.baton, self.k))
        assert self.agent.counts.taken == taken + 1
        outgoing = self.agent.station.outgoing
        assert outgoing is not None
        frame = unpack_frame(outgoing[1], RUN_BYTES)
        after = unpack_baton(frame.body, self.agent.station.holder.layout)
        self.agent.station.acknowledge(0, frame.k)
        # The others leave the token as it is, which is no worse than any function they might have.
        self.k += 3
        self.baton = after._replace(hop=after.hop + 2, numbers=after.numbers + 0.1)


def greeted(agent: Agent) -> None:
    """Both neighbours have said what they know of their links."""
    for health in agent.links.values():
        health.greeted = True


async def scene(folder: Path) -> Scene:
    """An agent after a few laps."""
    functions = [least_squares(number, 2) for number in range(3)]
    holder = Holder(PLAN, ME, Known(functions[ME]), 1, SeededPairs(1))
    journal = Journal(folder, RUN, "site1")
    switch = MemorySwitch()
    transport = MemoryTransport(switch, ME, frozenset({0, 2}))
    log: list[tuple[str, dict[str, Any]]] = []
    agent = Agent(Station(holder, journal), transport, lambda event, **about: log.append((event, about)))
    greeted(agent)
    made = Scene(agent, journal, log)
    made.baton = Baton(Phase.ITERATE, 1, 0, 0, 0, 0, np.array([0.3, -0.2]))
    for _ in range(4):
        await made.step()
    return made


def state_of(made: Scene) -> tuple[Any, ...]:
    held = made.agent.station.holder.held
    standing = made.journal.standing()
    assert standing is not None and standing.state is not None
    return (
        held.x.tobytes(), held.y.tobytes(), held.share.tobytes(), held.visits, held.hop, held.largest_jump,
        standing.k, standing.outgoing, b"".join(standing.state.pieces()), len(made.journal.passages()),
        made.journal.inbox(),
    )  # fmt: skip


def misbehave(folder: Path, tamper: Tamper, paused: bool) -> Scene:
    """Send it once, see that nothing has changed, and go on."""

    async def play() -> Scene:
        made = await scene(folder)
        assert made.baton is not None
        before = state_of(made)
        if paused:  # a baton is then kept and acknowledged before it is worked on
            made.agent.pause()
        await made.agent._deliver(SENDER, tamper(made.baton, made.k))
        made.agent.resume()
        assert state_of(made) == before
        assert not made.agent._over.done()
        made.refused = made.agent.links[SENDER].refused
        await made.step()
        made.journal.close()
        return made

    return asyncio.run(play())


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("what", REFUSED)
def test_what_no_honest_member_sends_is_refused_and_named(what: str, paused: bool, tmp_path: Path) -> None:
    tamper, word = REFUSED[what]
    made = misbehave(tmp_path, tamper, paused)
    assert word in made.refused
    assert made.agent.counts.refused == 1
    (line,) = [about for event, about in made.log if event == "refused"]
    assert line["peer"] == "site0" and word in line["why"]
    assert made.agent.links[SENDER].refused == ""  # an honest baton came afterwards


@pytest.mark.parametrize("what", DAMAGED)
def test_what_is_no_frame_of_this_run_is_dropped(what: str, tmp_path: Path) -> None:
    tamper, word = DAMAGED[what]
    made = misbehave(tmp_path, tamper, False)
    assert made.agent.counts.damaged == 1
    (line,) = [about for event, about in made.log if event == "damaged frame"]
    assert line["peer"] == "site0" and word in line["why"]
    assert ("version" in word) == bool(made.refused)


def test_two_batons_with_one_counter_are_refused(tmp_path: Path) -> None:
    """A sender that went back to an older state and made another baton of it."""

    async def play() -> None:
        made = await scene(tmp_path)
        assert made.baton is not None
        before = state_of(made)
        await made.agent._deliver(SENDER, packed(made.baton._replace(numbers=made.baton.numbers + 1.0), made.k - 3))
        assert state_of(made) == before
        assert "two different batons" in made.agent.links[SENDER].refused
        await made.step()
        made.journal.close()

    asyncio.run(play())


def test_a_baton_of_the_next_lap_is_left_until_the_missing_one_comes(tmp_path: Path) -> None:
    """An honest neighbour sends it where this agent died before its disk had what it had sent on; not for ever."""

    async def play() -> None:
        made = await scene(tmp_path)
        assert made.baton is not None
        before, ahead = state_of(made), packed(made.baton, made.k + 3)
        for _ in range(PATIENT):
            await made.agent._deliver(SENDER, ahead)
        assert state_of(made) == before and not made.agent.links[SENDER].refused
        await made.step()
        before, ahead = state_of(made), packed(made.baton, made.k + 3)
        for _ in range(PATIENT + 1):
            await made.agent._deliver(SENDER, ahead)
        assert state_of(made) == before and "counter" in made.agent.links[SENDER].refused
        await made.step()
        made.journal.close()

    asyncio.run(play())


def test_a_baton_from_the_wrong_side_is_refused(tmp_path: Path) -> None:
    async def play() -> None:
        made = await scene(tmp_path)
        assert made.baton is not None
        before = state_of(made)
        await made.agent._deliver(2, packed(made.baton, made.k))
        assert state_of(made) == before
        assert "counter" in made.agent.links[2].refused and not made.agent.links[SENDER].refused
        await made.step()
        made.journal.close()

    asyncio.run(play())


def test_a_member_adds_to_a_sum_once(tmp_path: Path) -> None:
    """The mask of a sum is one for all: the difference of two sums under it would be what a site adds, in the open."""
    plan = replace(PLAN, algorithm=rl.IADMM(rho=2.0, start=rl.SealedStart()))
    baton = Baton(Phase.SUM, 0, 0, 1, 0, 0, np.array([5, 7], np.uint64))

    async def play() -> None:
        journal = Journal(tmp_path, RUN, "site1")
        for k in (1, 4, 4):
            # Started anew each time: it must not depend on what a process remembers.
            holder = Holder(plan, ME, Known(least_squares(1, 2)), 1, SeededPairs(1))
            transport = MemoryTransport(MemorySwitch(), ME, frozenset({0, 2}))
            agent = Agent(Station(holder, journal), transport)
            greeted(agent)
            await agent._deliver(SENDER, packed(baton, k))
            assert agent.counts.taken == (k == 1)
            assert ("added to sum 0 already" in agent.links[SENDER].refused) == (k > 1)
        assert len(journal.passages()) == 1
        journal.close()

    asyncio.run(play())
