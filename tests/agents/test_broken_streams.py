"""A stream that breaks ends whoever reads from it; the baton that came over it is worked on once, to the end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from roundelay.agents.links.agent_loop import LONG
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import Holder
from tests.agents.test_misbehaviour import SENDER, packed, scene, state_of


def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = Holder.visit

    def slowly(self: Holder, baton: Baton) -> Any:
        time.sleep(4.0 * LONG)
        return visit(self, baton)

    monkeypatch.setattr(Holder, "visit", slowly)


def test_what_was_sent_on_is_on_disk_though_the_stream_breaks_meanwhile(tmp_path: Path) -> None:
    """A hop is sent before it is on disk; a stream that breaks just then ends the handling of the baton."""

    async def play() -> None:
        made = await scene(tmp_path)
        assert made.baton is not None
        agent = made.agent

        async def stuck(peer: int, data: bytes) -> bool:
            await asyncio.sleep(3600.0)
            return True

        agent.transport.send = stuck  # type: ignore[method-assign]
        data = packed(made.baton, made.k)
        stream = asyncio.create_task(agent._deliver(SENDER, data))
        await asyncio.sleep(0.05)
        assert agent.station.sends_first and agent.station.standing.k == made.k
        before = made.journal.standing()
        assert before is not None and before.k == made.k - 3
        stream.cancel()
        await asyncio.gather(stream, return_exceptions=True)
        after = made.journal.standing()
        assert after is not None and after.k == made.k and after.outgoing == agent.station.standing.outgoing
        made.journal.close()

    asyncio.run(play())


def test_a_baton_is_worked_on_once_though_its_stream_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes again over the next stream while the work on it is still under way."""

    async def calm() -> tuple[Any, ...]:
        made = await scene(tmp_path / "calm")
        assert made.baton is not None
        await made.agent._deliver(SENDER, packed(made.baton, made.k))
        found = state_of(made)[:-1]
        made.journal.close()
        return found

    async def wild() -> tuple[Any, ...]:
        made = await scene(tmp_path / "wild")
        assert made.baton is not None
        slow(monkeypatch)
        made.agent.counts.working_seconds = 100.0  # its work is known to take long
        taken, data = made.agent.counts.taken, packed(made.baton, made.k)
        for _ in range(3):
            stream = asyncio.create_task(made.agent._deliver(SENDER, data))
            await asyncio.sleep(LONG / 2)
            stream.cancel()
            await asyncio.gather(stream, return_exceptions=True)
        await made.agent._deliver(SENDER, data)
        assert not made.agent._over.done()
        assert made.agent.counts.taken == taken + 1 and made.agent.counts.duplicates == 3
        found = state_of(made)[:-1]
        made.journal.close()
        return found

    assert asyncio.run(calm()) == asyncio.run(wild())
