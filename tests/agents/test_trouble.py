"""What goes wrong at one site: it stops with a sentence, nothing is lost, and afterwards the run goes on to its end."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Column, Stopping, Task
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.objectives import Known
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.links import agent_loop
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.links.transport import MemorySwitch, MemoryTransport
from roundelay.agents.protocol import wire
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Journal, JournalError
from roundelay.agents.protocol.station import Station
from roundelay.agents.site.taking_part import Site
from roundelay.masks import SeededPairs
from tests.agents.likeness import check_every_hand_over_once, check_same, simulated
from tests.agents.processes import ProcessRing, make_ring, own_functions, wait_until
from tests.agents.test_misbehaviour import packed, scene
from tests.agents.world import RUN, ring_plan

SITES, HOPS, SEED, ILL = 4, 400, 6, 1
ALGORITHM = rl.PIADMM1(start=rl.SealedStart())
PROBLEM = rl.paper_least_squares(agents=SITES, samples=6, dim=3, seed=SEED)
ROOM = 200_000  # bytes, which a journal fills before the run is over


def new_ring(folder: Path, wrap: Callable[[Site, int], None] = lambda site, number: None) -> ProcessRing:
    return make_ring(folder, own_functions(PROBLEM), ALGORITHM, Stopping(None, HOPS), seed=SEED, wrap=wrap)


def until_the_ill_one_stops(ring: ProcessRing, sentence: str) -> None:
    """Start all; the one that is ill ends with a code and a sentence, the others wait."""
    for number in range(SITES):
        ring.start(number)
    ended: dict[int, int] = {}
    wait_until(lambda: bool(ended.update(ring.reap()) or ended), "the one that is ill ends")
    assert list(ended) == [ILL] and ended[ILL] > 0
    assert sentence in ring.log_of(ILL)


def check_whole(ring: ProcessRing) -> None:
    check_same(ring, simulated(ALGORITHM, PROBLEM, rl.ring(SITES), HOPS, SEED))
    check_every_hand_over_once(ring)


# ------------------------------------------------------------ the disk


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system with little room."""
    folder.mkdir(parents=True)
    options = f"size={ROOM},mode=700"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a small disk can't be mounted here ({done.stderr.strip()})")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_the_agent_and_nothing_else(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    ring = new_ring(tmp_path)
    disk = ring.site_folder(ILL) / "runs" / ring.plan.run
    with small_disk(disk):
        try:
            until_the_ill_one_stops(ring, "nothing was acknowledged and nothing is lost: make room")
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            ring.start(ILL)
            ring.wait()
        finally:
            ring.stop()
        check_whole(ring)


def test_a_limit_on_files_stops_the_agent_and_nothing_else(tmp_path: Path) -> None:
    def limit(site: Site, number: int) -> None:
        if number == ILL and not (tmp_path / "raised").exists():
            resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))

    ring = new_ring(tmp_path, limit)
    try:
        until_the_ill_one_stops(ring, "nothing was acknowledged and nothing is lost: make room")
        (tmp_path / "raised").touch()
        ring.start(ILL)
        ring.wait()
    finally:
        ring.stop()
    check_whole(ring)


def test_after_a_failure_nothing_more_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The baton was worked on but is not on disk; when it comes again it must not be worked on a second time."""

    async def play() -> None:
        made = await scene(tmp_path)
        assert made.baton is not None
        standing, rows = made.journal.standing(), len(made.journal.passages())
        assert standing is not None
        with monkeypatch.context() as full:
            full.setattr(Journal, "settle", _no_room)
            await made.agent._deliver(0, packed(made.baton, made.k))
        await made.agent._deliver(0, packed(made.baton, made.k))
        after = made.journal.standing()
        assert after is not None and after.k == standing.k and len(made.journal.passages()) == rows
        assert made.agent.counts.refused == 0  # the sender has done nothing wrong
        with pytest.raises(JournalError, match="There is no room"):
            await made.agent._over
        made.journal.close()

    asyncio.run(play())


def _no_room(*_: object) -> None:
    raise JournalError("There is no room.")


# ------------------------------------------------------------ the site's own function


def test_a_function_that_gives_no_number_stops_the_agent_before_it_sends(tmp_path: Path) -> None:
    def ill(site: Site, number: int) -> None:
        visit = Holder.visit

        def visit_ill(self: Holder, baton: Baton) -> Any:
            if self.held.visits == 5:
                numbers = self.functions.problem
                spoiled = {
                    name: np.full_like(value, np.nan)
                    for name, value in numbers._asdict().items()
                    if isinstance(value, np.ndarray) and value.dtype.kind == "f"
                }
                self._functions = self.functions._replace(problem=numbers._replace(**spoiled))
            return visit(self, baton)

        if number == ILL and not (tmp_path / "repaired").exists():
            Holder.visit = visit_ill  # type: ignore[method-assign]

    ring = new_ring(tmp_path, ill)
    try:
        until_the_ill_one_stops(ring, "has a number that is not finite, so nothing was sent on")
        for _ in range(2):  # as often as it is started with it
            ring.start(ILL)
            ended: dict[int, int] = {}
            wait_until(lambda ended=ended: bool(ended.update(ring.reap()) or ended), "it ends again")
            assert list(ended) == [ILL] and ended[ILL] > 0
        rows = ring.visits(ILL)
        assert sum(row.phase == 2 for row in rows) <= 5
        assert all(np.isfinite(np.frombuffer(row.sent or b"")).all() for row in rows if row.sent_phase == 2)
        (tmp_path / "repaired").touch()
        ring.start(ILL)
        ring.wait()
    finally:
        ring.stop()
    check_whole(ring)


# ------------------------------------------------------------ two of one, and another version


def test_two_agents_of_one_site_are_not_let_run(tmp_path: Path) -> None:
    ring = new_ring(tmp_path)
    try:
        ring.start(0)
        wait_until(lambda: "epoch" in ring.log_of(0), "the first agent runs")
        first = ring.children.pop(0)
        ring.start(0)
        wait_until(lambda: ring.reap() == {0: 1}, "the second agent has ended with 1")
        assert "another agent of this site is running" in ring.log_of(0)
        ring.children[0] = first
        for number in range(1, SITES):
            ring.start(number)
        ring.wait()
    finally:
        ring.stop()
    check_whole(ring)


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path, RUN, "site0")
    with pytest.raises(JournalError, match="in use: another agent of this site is running"):
        Journal(tmp_path, RUN, "site0")
    journal.close()
    Journal(tmp_path, RUN, "site0").close()


def test_a_run_does_not_go_on_with_other_data(tmp_path: Path) -> None:
    task = Task("least_squares", (Column("a"), Column("b")), Column("t"))
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(5, 2)), rng.normal(size=5)
    first = RowsFit(task, OwnRows(features, target)).digest
    assert first == RowsFit(task, OwnRows(features.copy(), target.copy())).digest
    journal = Journal(tmp_path, RUN, "site0")
    for _ in range(2):
        journal.check_data(first)
    for other in (OwnRows(features + 1e-12, target), OwnRows(features, -target), OwnRows(features[:4], target[:4])):
        with pytest.raises(JournalError, match="The data are not those with which this site began the run"):
            journal.check_data(RowsFit(task, other).digest)
    journal.close()


def test_the_journal_of_another_run_or_member_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path, RUN, "site0").close()
    with pytest.raises(JournalError, match="another run"):
        Journal(tmp_path, "f" * 32, "site0")
    with pytest.raises(JournalError, match="another member"):
        Journal(tmp_path, RUN, "site1")


def test_an_agent_of_another_version_is_named_and_the_run_waits(tmp_path: Path) -> None:
    ours, theirs = wire.VERSION, wire.VERSION + 1

    def newer(site: Site, number: int) -> None:
        if number == ILL and not (tmp_path / "updated").exists():
            wire.VERSION = theirs

    ring = new_ring(tmp_path, newer)
    try:
        for number in range(SITES):
            ring.start(number)
        told = (ILL - 1, ILL + 1)
        named = f"speaks version {theirs}"
        wait_until(lambda: all(named in ring.log_of(number) for number in told), "its neighbours say so")
        wait_until(lambda: f"speaks version {ours}" in ring.log_of(ILL), "it says so, too")
        assert not ring.reap()
        ring.kill(ILL)
        (tmp_path / "updated").touch()
        ring.wait(again=True)
    finally:
        ring.stop()
    check_whole(ring)


# ------------------------------------------------------------ the clock


def test_a_clock_that_jumps_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day forward, several times: nothing is dropped, nothing is lost, and nobody waits for a day."""
    jumped = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + jumped, perf_counter=time.perf_counter)
    monkeypatch.setattr(agent_loop, "time", clock)
    names = [f"site{number}" for number in range(SITES)]
    plan = ring_plan(names, ALGORITHM, 3, Stopping(None, HOPS))
    switch, functions = MemorySwitch(), own_functions(PROBLEM)
    events: list[str] = []

    async def play() -> list[Holder]:
        nonlocal jumped
        agents = []
        for number in range(SITES):
            holder = Holder(plan, number, Known(functions[number]), SEED, SeededPairs(SEED))
            journal = Journal(tmp_path / names[number], RUN, names[number])
            transport = MemoryTransport(switch, number, plan.neighbours[number])
            station = Station(holder, journal)
            agents.append(Agent(station, transport, lambda event, **about: events.append(event)))
        running = [asyncio.create_task(one.run()) for one in agents]
        for _ in range(5):
            await asyncio.sleep(0.12)
            jumped += 86_400.0
        await asyncio.wait_for(asyncio.gather(*running), 60.0)
        for one in agents:
            await one.transport.stop()
            one.station.journal.close()
        return [one.station.holder for one in agents]

    members = asyncio.run(play())
    run = simulated(ALGORITHM, PROBLEM, rl.ring(SITES), HOPS, SEED)
    for number, member in enumerate(members):
        assert np.array_equal(member.held.x[number], run.x[number])
        assert np.array_equal(member.held.estimate, run.estimate)
    assert "link is deaf" not in events
