"""A real ring in one process, in a thread with an event loop of its own: agents, journals on disk, links that take time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.links.transport import Connected, Deliver, MemorySwitch, MemoryTransport
from roundelay.agents.page import PageServer
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Journal
from roundelay.agents.protocol.station import Station
from roundelay.agents.protocol.wire import Kind, pack_frame
from roundelay.agents.site.status import Watch
from roundelay.masks import SeededPairs
from tests.agents.processes import PATIENCE
from tests.agents.world import least_squares, ring_plan

NAMES = ("Aarau", "Basel", "Chur", "Davos", "Emmental")
DIM = 3
TOKEN = "open-sesame"
T = TypeVar("T")


@dataclass(eq=False)
class Cable(MemoryTransport):
    """A link that takes `latency` seconds, and can be pulled out and put back."""

    latency: float = 0.0
    reason: str = ""
    plugged: bool = True
    calls: tuple[Deliver, Connected] | None = None

    async def start(self, deliver: Deliver, connected: Connected) -> None:
        self.calls = (deliver, connected)
        await super().start(deliver, connected)

    async def send(self, peer: int, data: bytes) -> bool:
        await asyncio.sleep(self.latency)
        return self.plugged and await super().send(peer, data)

    def trouble(self, peer: int) -> str:
        return self.reason

    async def pull(self) -> None:
        self.plugged = False
        await self.stop()

    async def plug(self) -> None:
        assert self.calls is not None
        self.plugged = True
        await self.start(*self.calls)


@dataclass(eq=False)
class LiveRing:
    """The sites by number; the page is that of site 0."""

    loop: asyncio.AbstractEventLoop
    agents: list[Agent] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    cables: list[Cable] = field(default_factory=list)
    functions: list[rl.LeastSquares] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    address: str = ""
    page: PageServer | None = None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the ring's loop do something, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the ring's loop."""

        async def called() -> T:
            return function()

        return self.wait(called())

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is so."""

        async def waiting() -> None:
            while not true():
                await asyncio.sleep(0.01)

        self.wait(waiting())

    async def build(self, folder: Path, latency: float, tolerance: float, rho: float) -> None:
        plan = ring_plan(list(NAMES), rl.PIADMM1(rho=rho), DIM, Stopping(tolerance=tolerance))
        switch = MemorySwitch()
        for me, name in enumerate(NAMES):
            function = least_squares(me + 1, DIM)
            holder = Holder(plan, me, Known(function), 100 + me, SeededPairs(7))
            station = Station(holder, Journal(folder / name, plan.run, name))
            cable = Cable(switch, me, plan.neighbours[me], latency=latency)
            agent = Agent(station, cable)
            watch = Watch(agent)
            agent.on_visit = watch.visited
            self.functions.append(function)
            self.cables.append(cable)
            self.agents.append(agent)
            self.watches.append(watch)
        await self.serve()

    async def serve(self, port: int = 0, token: str = TOKEN) -> None:
        """Serve the page of site 0."""
        self.page = PageServer(self.watches[0].status, port, token, lambda: self.watches[0].model)
        self.address = await self.page.start()

    async def close_page(self) -> None:
        assert self.page is not None
        await self.page.stop()

    async def begin(self) -> None:
        """Let all agents run."""
        for agent, watch in zip(self.agents, self.watches, strict=True):
            self.tasks.append(asyncio.create_task(_run(agent, watch)))
        while any(agent.station.standing.k < 0 for agent in self.agents):
            await asyncio.sleep(0.01)

    def forge_a_baton(self) -> None:
        """Let a neighbour of site 0 send a baton with a counter that is far ahead, and wait until it is refused."""
        plan = self.agents[0].plan
        forged = pack_frame(Kind.BATON, plan.run_bytes, plan.epoch, 10**6)
        self.wait(self.cables[-1].send(0, forged))
        self.until(lambda: self.agents[0].counts.refused == 1)

    async def end(self) -> None:
        await self.close_page()
        for task in self.tasks:
            task.cancel()
        for cable in self.cables:
            await cable.pull()
        everything = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        for agent in self.agents:
            agent.station.journal.close()


async def _run(agent: Agent, watch: Watch) -> None:
    with suppress(asyncio.CancelledError):
        await agent.run()
        watch.outcome = "Every site is content within the tolerance."


@contextmanager
def live_ring(
    folder: Path, latency: float = 0.01, tolerance: float = 1e-10, rho: float = 200.0, begin: bool = True
) -> Iterator[LiveRing]:
    """A ring that runs while the block does; with the large penalty it takes thousands of hops."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    ring = LiveRing(loop)
    try:
        ring.wait(ring.build(folder, latency, tolerance, rho))
        if begin:
            ring.wait(ring.begin())
        yield ring
    finally:
        ring.wait(ring.end())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
