"""A neighbour answers in another's place: it acknowledges, or refuses, what was never handed to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from roundelay.agents.links.agent_loop import Agent, RefusedError
from roundelay.agents.protocol.wire import Kind, pack_frame, pack_sentence
from tests.agents.test_misbehaviour import RUN_BYTES, SENDER, Scene, packed, scene

RECEIVER = 2


async def answered(folder: Path, peer: int, kind: Kind, body: bytes = b"") -> Scene:
    """An agent that has handed its baton to the receiver, and hears an answer to it."""
    made = await scene(folder)
    assert made.baton is not None
    await made.agent._deliver(SENDER, packed(made.baton, made.k))
    sent_k = made.agent.station.standing.sent_k
    await made.agent._deliver(peer, pack_frame(kind, RUN_BYTES, 0, sent_k, body))
    made.journal.close()
    return made


def believe_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Agent, "_was_sent_to", lambda agent, peer, frame: True)


@pytest.mark.parametrize("checked", [True, False])
def test_an_acknowledgement_by_another_is_none(checked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check the hand-over counts as safe where nobody has it, and is not sent again when it is lost."""
    if not checked:
        believe_anybody(monkeypatch)

    async def play() -> None:
        made = await answered(tmp_path, SENDER, Kind.ACK)
        assert (made.agent.station.outgoing is not None) == checked

    asyncio.run(play())


@pytest.mark.parametrize("checked", [True, False])
def test_a_refusal_by_another_stops_nobody(checked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not checked:
        believe_anybody(monkeypatch)

    async def play() -> None:
        made = await answered(tmp_path, SENDER, Kind.REFUSAL, pack_sentence("It is forged."))
        if not checked:
            with pytest.raises(RefusedError):
                await made.agent._over
            return
        assert not made.agent._over.done() and made.agent.station.outgoing is not None
        assert not made.agent.links[SENDER].refused
        (about,) = [about for event, about in made.log if event == "refused what was not sent to it"]
        assert about["peer"] == "site0"

    asyncio.run(play())


def test_the_receiver_is_believed(tmp_path: Path) -> None:
    """What it was handed it may acknowledge, and it may refuse it in words, which name it."""

    async def play() -> None:
        made = await answered(tmp_path / "acknowledged", RECEIVER, Kind.ACK)
        assert made.agent.station.outgoing is None
        made = await answered(tmp_path / "refused", RECEIVER, Kind.REFUSAL, pack_sentence("The point is not a number."))
        with pytest.raises(RefusedError, match=r"site2 refuses what this agent sent: The point is not a number\."):
            await made.agent._over

    asyncio.run(play())
