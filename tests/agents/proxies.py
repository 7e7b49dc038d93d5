"""A link that misbehaves: a proxy before every site that cuts, stalls, delays, truncates, repeats and flips bytes.

It runs in a process of its own, so that the tests' process stays one that can be forked, and stops misbehaving after a
while: a link on which no byte ever arrives whole can't be used by anybody.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

CHUNK = 16_384


@dataclass(frozen=True)
class Mischief:
    """How likely each kind of harm is for every piece of a stream, and how many pieces a proxy may harm before it stops."""

    cut: float = 0.01
    stall: float = 0.002
    delay: float = 0.1
    truncate: float = 0.005
    repeat: float = 0.005
    flip: float = 0.01
    pieces: int = 10**9


class Proxy:
    """Passes on what comes to one address to another, not always faithfully."""

    def __init__(self, mischief: Mischief, rng: random.Random, done: Counter[str]) -> None:
        self.mischief, self.rng, self.done = mischief, rng, done

    async def serve(self, listen: int, target: int) -> None:
        self.target = target
        await asyncio.start_server(self._answer, "127.0.0.1", listen)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        both = (writer, far_writer)
        await asyncio.gather(self._pass_on(reader, far_writer, both), self._pass_on(far_reader, writer, both))

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, both: tuple[asyncio.StreamWriter, ...]
    ) -> None:
        try:
            while data := await reader.read(CHUNK):
                harm = self._harm()
                if harm:
                    self.done[harm] += 1
                if harm == "cut":
                    break
                if harm == "stall":
                    await asyncio.sleep(3600.0)  # nothing arrives any more, and nobody says so
                if harm == "delay":
                    await asyncio.sleep(self.rng.uniform(0.0, 0.1))
                place = self.rng.randrange(len(data))
                if harm == "truncate":
                    data = data[:place]
                elif harm == "repeat":
                    data = data + data[place:]
                elif harm == "flip":
                    data = data[:place] + bytes([data[place] ^ 1 << self.rng.randrange(8)]) + data[place + 1 :]
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            for one in both:
                one.close()

    def _harm(self) -> str:
        mischief, chance = self.mischief, self.rng.random()
        self.passed += 1
        if self.passed > mischief.pieces:
            return ""
        for name in ("cut", "stall", "delay", "truncate", "repeat", "flip"):
            chance -= getattr(mischief, name)
            if chance < 0.0:
                return name
        return ""

    passed = 0


def start_proxies(folder: Path, routes: dict[int, int], mischief: Mischief, seed: int) -> int:
    """A process with a proxy on each port of `routes`, to the port beside it; its number."""
    child = os.fork()
    if child:
        return child
    done: Counter[str] = Counter()

    def tell(*_: object) -> None:
        (folder / "harm").write_text("\n".join(f"{name} {count}" for name, count in sorted(done.items())))
        os._exit(0)

    async def serve() -> None:
        for number, (listen, target) in enumerate(routes.items()):
            proxy = Proxy(mischief, random.Random(seed * 1000 + number), done)
            await proxy.serve(listen, target)
        await asyncio.Event().wait()

    signal.signal(signal.SIGTERM, tell)
    try:
        asyncio.run(serve())
    finally:
        os._exit(1)


def stop_proxies(folder: Path, child: int) -> Counter[str]:
    """End the process; what it has done."""
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    lines = (folder / "harm").read_text().split()
    return Counter(dict(zip(lines[::2], map(int, lines[1::2]), strict=True)))
