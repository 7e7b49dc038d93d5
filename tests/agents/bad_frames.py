"""A transport that drops, repeats, delays, reorders, truncates and flips frames before the real one carries them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roundelay.agents.links.grpc_transport import GrpcTransport
from roundelay.agents.links.transport import Connected, Deliver
from roundelay.agents.site import taking_part
from roundelay.agents.site.taking_part import Site

HARMS = ("drop", "repeat", "delay", "reorder", "truncate", "flip")


@dataclass(eq=False)
class BadFrames:
    """Sends through another transport, and does every kind of harm with the same chance."""

    inner: GrpcTransport
    rng: random.Random
    chance: float
    note: Callable[[Counter[str]], None]
    done: Counter[str] = field(default_factory=Counter)
    _held: dict[int, bytes] = field(default_factory=dict)
    _late: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self, deliver: Deliver, connected: Connected) -> None:
        await self.inner.start(deliver, connected)

    async def send(self, peer: int, data: bytes) -> bool:
        harm = self.rng.choice(HARMS) if self.rng.random() < self.chance else ""
        place = self.rng.randrange(len(data))
        if harm:
            self.done[harm] += 1
        if harm == "drop":
            return True
        if harm == "reorder":  # it goes after the next one
            self._held[peer] = data
            return True
        if harm == "delay":
            task = asyncio.create_task(self._later(peer, data))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return True
        if harm == "truncate":
            data = data[:place]
        elif harm == "flip":
            data = data[:place] + bytes([data[place] ^ 1 << self.rng.randrange(8)]) + data[place + 1 :]
        sent = await self.inner.send(peer, data)
        if harm == "repeat":
            await self.inner.send(peer, data)
        if peer in self._held:
            await self.inner.send(peer, self._held.pop(peer))
        return sent

    async def _later(self, peer: int, data: bytes) -> None:
        await asyncio.sleep(self.rng.uniform(0.0, 0.2))
        await self.inner.send(peer, data)

    async def stop(self) -> None:
        for task in self._late:
            task.cancel()
        self.note(self.done)
        await self.inner.stop()

    def drop(self, peer: int) -> None:
        self.inner.drop(peer)

    def trouble(self, peer: int) -> str:
        return self.inner.trouble(peer)


def bad_frames(folder: Path, chance: float, seed: int) -> Callable[[Site, int], None]:
    """For `ProcessRing.wrap`: in the process of a site, and only there, links are bad."""

    def wrap(site: Site, number: int) -> None:
        def note(done: Counter[str]) -> None:
            with open(folder / "harm", "a") as file:
                file.writelines(f"{name} {count}\n" for name, count in done.items())

        def transport(*arguments: Any) -> BadFrames:
            return BadFrames(GrpcTransport(*arguments), random.Random(seed * 1000 + number), chance, note)

        taking_part.GrpcTransport = transport  # type: ignore[assignment,misc]

    return wrap


def harm_in(folder: Path) -> Counter[str]:
    """What was done to the frames of all sites."""
    done: Counter[str] = Counter()
    for line in (folder / "harm").read_text().splitlines():
        name, count = line.split()
        done[name] += int(count)
    return done
