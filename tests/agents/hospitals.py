"""Sites with rows of their own, and rings of them within this process: real folders, keys, journals and ledgers, links in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity, save_identity
from roundelay.agents.agreement.plan import RingPlan, Stopping, Task
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import SignedPlan, read_ring, write_ring
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.links.transport import MemorySwitch, MemoryTransport
from roundelay.agents.site import taking_part
from roundelay.agents.site.taking_part import Ending, Site, SiteOptions
from tests.agents.conftest import COLUMNS, invited, site
from tests.agents.processes import PATIENCE

NAMES = ("Oslo", "Bergen", "Tromso", "Narvik")
TASK = Task("least_squares", COLUMNS[:2], COLUMNS[2])
SEALED = rl.SealedLaps(wide=True)
QUIET = SiteOptions(meter=False)
# What is refused here is refused by the ledger.
LAX = replace(ANYTHING, least_rows=10)


def table_of(name: str, rows: int = 40) -> np.ndarray:
    """The rows of a site: age, length, outcome."""
    rng = np.random.default_rng(sum(name.encode()))
    features = rng.normal(size=(rows, 2)) * [12.0, 9.0] + [50.0, 170.0]
    return np.column_stack([features, features @ [0.3, -0.2] + rng.normal(size=rows)])


class Hospitals:
    """The sites by name, each with a folder and a table."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str] = NAMES) -> None:
        self.folder, self.names = folder, tuple(names)
        self.tables = {name: table_of(name) for name in names}
        self.switch = MemorySwitch()
        self.ended = 0
        for name in names:
            save_identity(folder / name, site(name))
            write_policy(folder / name, LAX)

        def plug(plan: RingPlan, me: int, *_: object) -> MemoryTransport:
            return MemoryTransport(self.switch, me, plan.neighbours[me])

        async def linger(agent: Agent) -> None:
            """Until all have ended: in memory no acknowledgement gets lost."""
            self.ended += 1
            while self.ended < agent.plan.agents:
                await asyncio.sleep(0.001)

        monkeypatch.setattr(taking_part, "GrpcTransport", plug)
        monkeypatch.setattr(Agent, "linger", linger)

    def plan(self, *names: str, task: Task = TASK, algorithm: object = SEALED) -> SignedPlan:
        """A new run of these sites, signed by the first."""
        members = [invited(site(name)) for name in names or self.names]
        return self.signed(plan_ring(members, None, algorithm, task, Stopping(1e-9)), (names or self.names)[0])

    def signed(self, plan: RingPlan, signer: str) -> SignedPlan:
        return read_ring(write_ring(plan, load_identity(self.folder / signer)), "the ring file")

    def accept(self, ring: SignedPlan, despite_difference: bool = False) -> SignedPlan:
        """Every member accepts."""
        for member in ring.plan.members:
            accept_ring(self.folder / member.name, ring.text, despite_difference)
        return ring

    def local(self, name: str, task: Task) -> RowsFit:
        """What a site brings to a fit of some of the columns."""
        places = [COLUMNS.index(column) for column in (*task.features, task.target)]
        cells = self.tables[name][:, places]
        return RowsFit(task, OwnRows(cells[:, :-1], cells[:, -1]))

    def site(self, ring: SignedPlan, name: str, options: SiteOptions = QUIET) -> Site:
        return Site(self.folder / name, ring.plan.run, self.local(name, ring.plan.task), options)

    def run(
        self, ring: SignedPlan, options: Mapping[str, SiteOptions] | None = None, until: str = asyncio.FIRST_EXCEPTION
    ) -> dict[str, Ending | BaseException]:
        """All members take part until all have ended, or one has failed; how it ended for each that did."""

        async def play() -> dict[str, Ending | BaseException]:
            self.ended = 0
            names = [member.name for member in ring.plan.members]
            sites = [self.site(ring, name, (options or {}).get(name, QUIET)) for name in names]
            tasks = [asyncio.create_task(one.run()) for one in sites]
            await asyncio.wait(tasks, return_when=until, timeout=PATIENCE)
            ended = {name: task for name, task in zip(names, tasks, strict=True) if task.done()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return {name: task.exception() or task.result() for name, task in ended.items()}

        return asyncio.run(play())

    def finish(self, ring: SignedPlan) -> dict[str, Ending]:
        """All members take part, and all end well."""
        ended = self.run(ring)
        failed = [one for one in ended.values() if isinstance(one, BaseException)]
        assert not failed and len(ended) == ring.plan.agents, failed
        return {name: one for name, one in ended.items() if isinstance(one, Ending)}
