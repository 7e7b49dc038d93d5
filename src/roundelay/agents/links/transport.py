"""Links as an agent sees them; those within one process; and how long to wait, from how long it took before."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

# Seconds. Below the first nothing is gained by asking again; beyond the second a person has to look anyway.
SHORTEST, LONGEST = 0.05, 30.0

Deliver = Callable[[int, bytes], Awaitable[None]]
Connected = Callable[[int, bool], Awaitable[None]]


class Transport(Protocol):
    """Links to the neighbours: frames go either way, whoever dialled. A frame may get lost when a link breaks."""

    async def start(self, deliver: Deliver, connected: Connected) -> None:
        """Open the links; call `deliver` for every frame, and `connected` when a link comes up or breaks."""

    async def send(self, peer: int, data: bytes) -> bool:
        """Send a frame; False where the link is down."""

    async def stop(self) -> None:
        """Close the links."""

    def drop(self, peer: int) -> None:
        """Give up a stream on which nothing is heard any more; the link is opened anew."""

    def trouble(self, peer: int) -> str:
        """Why the link to a neighbour is down, in words; empty where nothing is known."""


@dataclass(eq=False)
class MemorySwitch:
    """Connects agents in one process, for tests and for trying out; the same interface as real links."""

    ports: dict[int, MemoryTransport] = field(default_factory=dict)


@dataclass(eq=False)
class MemoryTransport:
    """Links within one process."""

    switch: MemorySwitch
    me: int
    neighbours: frozenset[int]
    _inbox: asyncio.Queue[tuple[int, bytes]] = field(default_factory=asyncio.Queue)
    _task: asyncio.Task[None] | None = None
    _connected: Connected | None = None

    async def start(self, deliver: Deliver, connected: Connected) -> None:
        """Plug in."""
        self._connected = connected
        self._task = asyncio.create_task(self._pump(deliver))
        self.switch.ports[self.me] = self
        for peer in self.neighbours & self.switch.ports.keys():
            other = self.switch.ports[peer]._connected
            assert other is not None
            await connected(peer, True)
            await other(self.me, True)

    async def send(self, peer: int, data: bytes) -> bool:
        """Put a frame into the neighbour's inbox."""
        port = self.switch.ports.get(peer)
        if port is None:
            return False
        port._inbox.put_nowait((self.me, data))
        await asyncio.sleep(0)
        return True

    async def stop(self) -> None:
        """Unplug."""
        self.switch.ports.pop(self.me, None)
        if self._task is not None:
            self._task.cancel()
        for peer in self.neighbours & self.switch.ports.keys():
            other = self.switch.ports[peer]._connected
            assert other is not None
            await other(self.me, False)

    def drop(self, peer: int) -> None:
        """Nothing gets stuck here."""

    def trouble(self, peer: int) -> str:
        """Nothing is known."""
        return ""

    async def _pump(self, deliver: Deliver) -> None:
        while True:
            await deliver(*await self._inbox.get())


@dataclass
class Patience:
    """When to send again: the usual time of an answer plus four times its spread, doubled each time in vain.

    The estimate is that of TCP (Jacobson and Karels 1988): answers to what was sent twice are not counted, since nobody
    knows which one they answer.
    """

    usual: float = 0.0
    spread: float = 0.0
    in_vain: int = 0

    def answered(self, seconds: float) -> None:
        """An answer came after so long."""
        if self.usual == 0.0:
            self.usual, self.spread = seconds, seconds / 2
        else:
            self.spread += (abs(seconds - self.usual) - self.spread) / 4
            self.usual += (seconds - self.usual) / 8
        self.in_vain = 0

    def deadline(self) -> float:
        """How long to wait for the next answer."""
        first = max(self.usual + 4.0 * self.spread, SHORTEST) if self.usual else 1.0
        return min(first * 2.0 ** min(self.in_vain, 20), LONGEST)


@dataclass
class BackOff:
    """How long to wait before dialling again: longer each time, and never all at the same moment."""

    tries: int = 0

    def next(self) -> float:
        """Seconds until the next try."""
        self.tries += 1
        longest = min(SHORTEST * 2.0 ** min(self.tries, 20), LONGEST / 3)
        return random.uniform(longest / 2, longest)

    def succeeded(self) -> None:
        """Start anew."""
        self.tries = 0
