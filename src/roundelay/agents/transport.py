"""What the agent asks of whatever carries its frames."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

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
