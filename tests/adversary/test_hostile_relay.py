"""A relay in hostile hands flips, cuts, delays, repeats, replays and pairs the wrong ends: it can refuse its service, nothing else."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.links import relay
from roundelay.agents.links.relay import PAIRED, Relay, Role, Stream
from roundelay.agents.protocol.wire import MAGIC
from tests.agents.likeness import check_every_hand_over_once, check_same, simulated
from tests.agents.processes import ProcessRing, free_ports, make_ring, own_functions, wait_until

SITES, HOPS, SEED = 4, 100, 7
ALGORITHM = rl.PIADMM1(start=rl.SealedStart())
PROBLEM = rl.paper_least_squares(agents=SITES, samples=6, dim=3, seed=SEED)
HARMS = ("flip", "cut", "delay", "repeat")
# So often it does harm; a link on which nothing ever arrives whole can't be used by anybody.
HARMED, MISPAIRED = 24, 10


class HostileRelay(Relay):
    """It has read the source. What it did is counted, and what it saw is kept."""

    def __init__(self, hostile: bool) -> None:
        super().__init__(1000, 1000)
        self.rng, self.done, self.seen = random.Random(SEED), Counter[str](), bytearray()
        self.sessions: list[bytearray] = []
        self.hostile = hostile

    async def _meet(self, stream: Stream, role: Role, name: bytes) -> None:
        mispaired = self.done["swap"] + self.done["replay"]
        if self.hostile and mispaired < MISPAIRED and self.rng.random() < 0.5:
            if self.sessions and mispaired % 2:
                self.done["replay"] += 1
                await self._replay(stream)
                return
            self.done["swap"] += 1  # with whoever comes next, of another link or of the same end of this one
            role, name = self.rng.choice([*Role]), bytes(32)
        await super()._meet(stream, role, name)

    async def _replay(self, stream: Stream) -> None:
        """What an end said on another day, or on another link, is said again."""
        stream.writer.write(PAIRED + bytes(self.rng.choice(self.sessions)))
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                while await stream.reader.read(65_536):
                    pass

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence: float | None) -> None:
        session = bytearray()
        self.sessions.append(session)
        with suppress(OSError):
            while data := await reader.read(65_536):
                self.seen += data
                session += data
                harm = self._harm()
                if harm == "cut":
                    return
                place = self.rng.randrange(len(data))
                if harm == "delay":
                    await asyncio.sleep(self.rng.uniform(0.0, 0.2))
                elif harm == "repeat":
                    data += data[place:]
                elif harm == "flip":
                    data = data[:place] + bytes([data[place] ^ 1 << self.rng.randrange(8)]) + data[place + 1 :]
                writer.write(data)
                await writer.drain()

    def _harm(self) -> str:
        harmed = sum(self.done[harm] for harm in HARMS)
        if not self.hostile or harmed >= HARMED or self.rng.random() < 0.8:
            return ""
        harm = HARMS[harmed % len(HARMS)]
        self.done[harm] += 1
        return harm


@contextmanager
def hostile_relay(folder: Path, address: str, hostile: bool = True) -> Iterator[None]:
    """In a process of its own; `done` and `seen` are in the folder when it has ended."""
    child = os.fork()
    if not child:
        made = HostileRelay(hostile)
        relay._pass_on = made.pass_on  # type: ignore[assignment]

        def tell(*_: object) -> None:
            (folder / "done").write_text(" ".join(made.done.elements()))
            (folder / "seen").write_bytes(made.seen)
            os._exit(0)

        async def serve() -> None:
            await made.start(address)
            (folder / "listens").touch()
            await asyncio.Event().wait()

        signal.signal(signal.SIGTERM, tell)
        try:
            asyncio.run(serve())
        finally:
            os._exit(1)
    try:
        wait_until((folder / "listens").exists, "the relay listens")
        yield
    finally:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)


def ring_by(folder: Path, address: str, **more: Any) -> ProcessRing:
    """Every link is by the relay."""
    return make_ring(
        folder / "ring", own_functions(PROBLEM), ALGORITHM, Stopping(None, HOPS), addresses=[f"relay://{address}"] * SITES,
        seed=SEED, **more,
    )  # fmt: skip


def test_whatever_a_relay_does_nothing_comes_of_it_but_lost_time(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    ring = ring_by(tmp_path, address)
    with hostile_relay(tmp_path, address):
        ring.run()
    check_same(ring, simulated(ALGORITHM, PROBLEM, rl.ring(SITES), HOPS, SEED))
    check_every_hand_over_once(ring)
    done = Counter((tmp_path / "done").read_text().split())
    print(f"\n{dict(done)}")
    assert all(done[harm] for harm in (*HARMS, "swap", "replay"))


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_relay_is_blind(encrypted: bool, tmp_path: Path) -> None:
    """It finds no name, no certificate, no run and no frame in what passes; without TLS it finds all frames."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    ring = ring_by(tmp_path, address, encrypted=encrypted)
    with hostile_relay(tmp_path, address, hostile=False):
        ring.run()
    seen = (tmp_path / "seen").read_bytes()
    assert len(seen) > 10_000
    secrets = [
        ring.plan.run.encode(),
        ring.plan.run_bytes,
        *(member.name.encode() for member in ring.plan.members),
        MAGIC,
    ]
    found = [secret for secret in secrets if secret in seen]
    assert found == [] if encrypted else set(found) >= {ring.plan.run_bytes, MAGIC}
