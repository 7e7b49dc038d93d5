"""A blind post office: both ends of a link dial it, and it hands the bytes of the one to the other.

It knows no ring and no member. Two ends that give the same name are paired, and the name is a hash of what only members
know. What passes is TLS from end to end, each end trusting the other's certificate alone; so a relay, or whoever sits in
its place, can refuse its service and nothing else. It guards itself by quotas, since it can't tell who its guests are.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address, ip_network
from typing import Any, NamedTuple

from roundelay.agents.agreement.names import host_and_port

MAGIC = b"roundelay relay 1\n"
NAME_BYTES = 32
# What the relay says to both ends when they are paired. From then on every byte is the other end's.
PAIRED = b"\x01"
# Seconds: to give a name; to wait for the other end, before one asks again; to be paired without a byte from either side, which
# is longer than two live agents are ever silent; to take what was sent before the end.
HELLO_WITHIN, WAIT, SILENCE, PARTING = 10.0, 60.0, 120.0, 5.0
CHUNK = 65_536


class Role(Enum):
    """Which end of a link it is."""

    WAITS = b"W"
    DIALS = b"D"


class Stream(NamedTuple):
    """Both directions of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


HELLO_BYTES = len(MAGIC) + 1 + NAME_BYTES


def meeting_name(run: bytes, members: Sequence[str]) -> bytes:
    """Under what name two members meet: who does not know the run's id learns nothing from it, and can't guess it."""
    parts = (MAGIC, run, *(member.encode() for member in sorted(members)))
    return hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


def hello(role: Role, name: bytes) -> bytes:
    """What an end says to the relay."""
    return MAGIC + role.value + name


async def splice(one: Stream, other: Stream, silence: float | None = None) -> None:
    """Hand the bytes of each to the other, until either ends, or nothing has moved for so many seconds."""
    ways = [asyncio.create_task(_pass_on(a.reader, b.writer, silence)) for a, b in ((one, other), (other, one))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, hang_up(one.writer), hang_up(other.writer), return_exceptions=True)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection; who does not read what was sent to him loses it, rather than keep the connection open."""
    writer.close()
    try:
        await asyncio.wait({asyncio.gather(writer.wait_closed(), return_exceptions=True)}, timeout=PARTING)
    finally:
        writer.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence: float | None) -> None:
    with suppress(OSError):  # also TimeoutError
        while True:
            async with asyncio.timeout(silence):
                data = await reader.read(CHUNK)
                if not data:
                    return
                writer.write(data)
                await writer.drain()


@dataclass(eq=False)
class _Guest:
    """An end that has given its name; the one that came second is `met` by the first, which sees to both until it is `over`."""

    stream: Stream
    met: asyncio.Future[_Guest] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Relay:
    """The post office: at most so many connections, and at most so many from one address."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most, self._most_per_address = most, most_per_address
        self._open: Counter[str] = Counter()
        self._waiting: dict[tuple[bytes, Role], _Guest] = {}
        self._guests: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listen: str) -> str:
        """Listen at host:port; the address that was taken."""
        host, port = host_and_port(listen)
        self._server = await asyncio.start_server(self._receive, host, port, limit=CHUNK)
        return "{}:{}".format(*self._server.sockets[0].getsockname()[:2])

    async def stop(self) -> None:
        """Send everybody away."""
        if self._server is not None:
            self._server.close()
        for guest in self._guests:
            guest.cancel()
        await asyncio.gather(*self._guests, return_exceptions=True)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._guests.add(task)
        address = _address_of(writer)
        try:
            if self._open.total() < self._most and self._open[address] < self._most_per_address:
                self._open[address] += 1
                try:
                    await self._serve(Stream(reader, writer))
                finally:
                    await hang_up(writer)
                    self._open[address] -= 1
        except (OSError, asyncio.IncompleteReadError):  # also TimeoutError: he is not from here, or has gone
            pass
        finally:
            self._guests.discard(task)
            self._open += Counter()  # forgets those who have none
            writer.close()

    async def _serve(self, stream: Stream) -> None:
        async with asyncio.timeout(HELLO_WITHIN):
            said = await stream.reader.readexactly(HELLO_BYTES)
        if not said.startswith(MAGIC) or said[len(MAGIC) : len(MAGIC) + 1] not in _ROLES:
            return
        await self._meet(stream, _ROLES[said[len(MAGIC) : len(MAGIC) + 1]], said[-NAME_BYTES:])

    async def _meet(self, stream: Stream, role: Role, name: bytes) -> None:
        """Until a guest has gone, or has been sent off."""
        guest = _Guest(stream)
        other = self._waiting.pop((name, _OTHER[role]), None)
        if other is not None:
            other.met.set_result(guest)
            await guest.over.wait()
            return
        older = self._waiting.pop((name, role), None)
        if older is not None:  # it is the same one, whose connection broke unnoticed
            older.met.cancel()
        self._waiting[name, role] = guest
        try:
            await self._wait(guest)
        finally:
            if self._waiting.get((name, role)) is guest:
                del self._waiting[name, role]

    async def _wait(self, guest: _Guest) -> None:
        """Wait for the other end, and see to both; an end that goes away or speaks too early is sent off."""
        early: asyncio.Future[Any] = asyncio.create_task(guest.stream.reader.read(1))
        met: asyncio.Future[Any] = guest.met
        try:
            await asyncio.wait({early, met}, timeout=WAIT, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone = early.done()
            early.cancel()
            await asyncio.gather(early, return_exceptions=True)
        if not guest.met.done() or guest.met.cancelled():
            return
        other = guest.met.result()
        try:
            if not gone:
                for one in (guest, other):
                    one.stream.writer.write(PAIRED)
                await splice(guest.stream, other.stream, SILENCE)
        finally:
            other.over.set()


_ROLES = {role.value: role for role in Role}
_OTHER = {Role.WAITS: Role.DIALS, Role.DIALS: Role.WAITS}


def _address_of(writer: asyncio.StreamWriter) -> str:
    """Where a guest comes from: of IPv6 the network, since whoever has one address there has 2⁶⁴ of them."""
    host = str(writer.get_extra_info("peername", ("",))[0]).partition("%")[0]
    with suppress(ValueError):
        address = ip_address(host)
        if address.version == 6 and address.ipv4_mapped is None:
            return str(ip_network((address, 64), strict=False))
    return host
