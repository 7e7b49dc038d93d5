"""Strangers at a relay: they say nothing, say nonsense, come by the hundred, wait for nobody; there is room for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from roundelay.agents.links import relay
from roundelay.agents.links.relay import HELLO_BYTES, PAIRED, Relay, Role, Stream, hello, meeting_name

NAME, OTHER = meeting_name(b"run", ["Oslo", "Bergen"]), meeting_name(b"run", ["Oslo", "Alta"])
Play = Callable[["Visit"], Coroutine[Any, Any, None]]


class Visit:
    """A relay, and whoever comes to it from addresses of this machine."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self.relay = Relay(most, most_per_address)
        self.port = 0
        self.came: list[asyncio.StreamWriter] = []

    async def come(self, said: bytes = b"", number: int = 1) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(f"127.0.0.{number}", 0))
        writer.write(said)
        self.came.append(writer)
        return Stream(reader, writer)

    async def play(self, what: Play) -> None:
        address = await self.relay.start("127.0.0.1:0")
        self.port = int(address.rpartition(":")[2])
        try:
            await asyncio.wait_for(what(self), 120.0)
        finally:
            for writer in self.came:
                writer.close()
            await asyncio.gather(*(writer.wait_closed() for writer in self.came), return_exceptions=True)
            await self.relay.stop()


def play(what: Play, most: int = 100, most_per_address: int = 100) -> None:
    asyncio.run(Visit(most, most_per_address).play(what))


async def waits(stream: Stream) -> bool:
    """Whether it is still there after others have been served."""
    await asyncio.sleep(0.1)
    return not stream.reader.at_eof()


async def met(visit: Visit, name: bytes = NAME, number: int = 9) -> tuple[Stream, Stream]:
    """Two ends that meet, and hear each other."""
    one, other = (
        await visit.come(hello(Role.WAITS, name), number),
        await visit.come(hello(Role.DIALS, name), number + 1),
    )
    for stream in (one, other):
        assert await stream.reader.readexactly(1) == PAIRED
    for a, b in ((one, other), (other, one)):
        a.writer.write(b"words")
        assert await b.reader.readexactly(5) == b"words"
    return one, other


def test_two_ends_meet_and_part_together() -> None:
    async def visit(here: Visit) -> None:
        one, other = await met(here)
        one.writer.close()
        assert await other.reader.read() == b""

    play(visit)


def test_nobody_is_paired_with_another_name_nor_with_his_own_end() -> None:
    async def visit(here: Visit) -> None:
        waiting = [await here.come(hello(Role.WAITS, NAME)), await here.come(hello(Role.DIALS, OTHER))]
        await met(here, meeting_name(b"another", ["Oslo", "Bergen"]))
        assert all([await waits(stream) for stream in waiting])
        newer = await here.come(
            hello(Role.WAITS, NAME)
        )  # takes the place of the older one, whose connection broke unnoticed
        assert await waiting[0].reader.read() == b""
        dialling = await here.come(hello(Role.DIALS, NAME))
        assert await newer.reader.readexactly(1) == await dialling.reader.readexactly(1) == PAIRED

    play(visit)


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(60), b"x" * HELLO_BYTES, hello(Role.DIALS, NAME) + b"early"]
)
def test_who_speaks_another_language_is_sent_off(said: bytes) -> None:
    async def visit(here: Visit) -> None:
        assert await (await here.come(said)).reader.read() == b""
        await met(here)

    play(visit)


@pytest.mark.parametrize(
    ("limit", "said"),
    [("HELLO_WITHIN", b""), ("HELLO_WITHIN", hello(Role.DIALS, NAME)[:-1]), ("WAIT", hello(Role.DIALS, NAME))],
)
def test_who_says_nothing_or_waits_in_vain_is_sent_off(
    limit: str, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, limit, 0.2)

    async def visit(here: Visit) -> None:
        assert await (await here.come(said)).reader.read() == b""
        await met(here)

    play(visit)


def test_two_that_are_silent_are_sent_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "SILENCE", 0.2)

    async def visit(here: Visit) -> None:
        one, other = await met(here)
        assert await one.reader.read() == await other.reader.read() == b""

    play(visit)


def test_who_does_not_read_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sends without end and the other takes nothing: what is on its way to him would hold the relay's socket for ever."""
    monkeypatch.setattr(relay, "SILENCE", 0.2)
    monkeypatch.setattr(relay, "PARTING", 0.2)
    served: list[asyncio.StreamWriter] = []
    address_of = relay._address_of
    monkeypatch.setattr(relay, "_address_of", lambda writer: served.append(writer) or address_of(writer))

    async def visit(here: Visit) -> None:
        one, other = await met(here)
        other.writer.transport.pause_reading()  # type: ignore[attr-defined]
        with suppress(OSError):
            while True:
                one.writer.write(bytes(1_000_000))
                await one.writer.drain()
        while here.relay._open or any(writer.get_extra_info("socket").fileno() >= 0 for writer in served):
            await asyncio.sleep(0.01)

    play(visit)


def test_from_one_address_come_only_so_many() -> None:
    async def visit(here: Visit) -> None:
        guests = [await here.come(number=1) for _ in range(8)]
        for one in guests[5:]:
            assert await one.reader.read() == b""
        await met(here)
        assert all([await waits(one) for one in guests[:5]])
        guests[0].writer.close()
        await until_room(here, 1)

    play(visit, most_per_address=5)


async def until_room(here: Visit, number: int) -> None:
    """Where one has gone another may come."""
    while True:
        one = await here.come(number=number)
        if await waits(one):
            return


def test_in_all_come_only_so_many() -> None:
    async def visit(here: Visit) -> None:
        guests = [await here.come(number=1 + turn % 8) for turn in range(8)]
        for one in guests[6:]:
            assert await one.reader.read() == b""
        guests[0].writer.close()
        await until_room(here, 20)

    play(visit, most=6)


def test_a_name_tells_nothing_and_is_always_as_long() -> None:
    names = {
        meeting_name(run, pair)
        for run in (b"a", b"b")
        for pair in (["Oslo", "Alta"], ["Oslo", "Bergen"], ["Os", "loAlta"])
    }
    assert len(names) == 6 and {len(name) for name in names} == {32}
    assert meeting_name(b"a", ["Oslo", "Alta"]) == meeting_name(b"a", ["Alta", "Oslo"])
