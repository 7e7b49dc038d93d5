"""A ring of real processes on this machine: each site a process of its own, with its folder, its port and its keys.

They are forked, so that a new one is there in milliseconds: nothing of gRPC has run yet in the process that forks.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.disk import write_whole
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity, make_identity, save_identity
from roundelay.agents.agreement.plan import Member, RingPlan, Stopping, Task
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import write_ring
from roundelay.agents.data.objectives import Known, Local
from roundelay.agents.protocol.journal import Journal, Passage
from roundelay.agents.protocol.station import Point
from roundelay.agents.site.taking_part import Site, SiteOptions
from roundelay.problems import OwnProblem
from roundelay.transcripts import Transcript
from tests.agents.killing import Killer

RUN = "00112233445566778899aabbccddeeff"
# Seconds after which something counts as hanging: a loaded machine is slow, and nobody waits for so long where all is well.
PATIENCE = 300.0


def wait_until(so: Callable[[], bool], what: str) -> None:
    """Wait for something that is sure to come; where it does not, fail with words."""
    deadline = time.monotonic() + PATIENCE
    while not so():
        assert time.monotonic() < deadline, f"It was waited for {PATIENCE:g} seconds in vain: {what}."
        time.sleep(0.01)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, below those from which the system takes the near end of a connection.

    From there another ring's connection could take one before it is listened on, while its agent is dead for instance.
    Processes that run side by side start in different places.
    """
    global _next_port
    ports: list[int] = []
    while len(ports) < count:
        _next_port = LOWEST + (_next_port + 1 - LOWEST) % (HIGHEST - LOWEST)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", _next_port))
            except OSError:
                continue
            ports.append(_next_port)
    return ports


LOWEST, HIGHEST = 12_000, 32_000
_next_port = LOWEST + os.getpid() * 997 % (HIGHEST - LOWEST)


@dataclass(eq=False)
class ProcessRing:
    """The sites of one ring, and their processes."""

    folder: Path
    plan: RingPlan
    functions: Sequence[OwnProblem | Local]
    seed: int | None = 1
    encrypted: bool = True
    listen: dict[int, str] = field(default_factory=dict)
    children: dict[int, int] = field(default_factory=dict)
    wrap: Callable[[Site, int], None] = field(default=lambda site, number: None)
    options: SiteOptions = SiteOptions(meter=False)

    def site_folder(self, number: int) -> Path:
        return self.folder / self.plan.members[number].name

    def start(self, number: int, kill_at: tuple[Point, int] | None = None) -> None:
        """Start a site; it kills itself with −9 when it reaches a point for the given time."""
        child = os.fork()
        if child:
            self.children[number] = child
            return
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            log = os.open(self.folder / f"{number}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.stdout = sys.stderr = os.fdopen(log, "w", buffering=1)
            code = self._be(number, kill_at)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _be(self, number: int, kill_at: tuple[Point, int] | None) -> int:
        options = replace(
            self.options, seed=self.seed, encrypted=self.encrypted, listen=self.listen.get(number, ""),
            model=self.site_folder(number) / "model.json",
        )  # fmt: skip
        function = self.functions[number]
        local: Any = function if hasattr(type(function), "sums") else Known(function)  # type: ignore[arg-type]
        killer, noted = (
            Killer(self.folder, kill_at),
            os.open(self._points(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        )

        def reached(point: Point) -> None:
            os.write(noted, b".")
            killer(point)

        site = Site(self.site_folder(number), self.plan.run, local, options, _log, reached)
        self.wrap(site, number)
        asyncio.run(site.run())
        return 0

    def _points(self, number: int) -> Path:
        return self.folder / f"{self.plan.members[number].name}.points"

    def points(self, number: int) -> int:
        """How many points a site has passed in the handling of batons, up to seven for each, over all its processes."""
        path = self._points(number)
        return path.stat().st_size if path.exists() else 0

    def wait_until_busy(self, more: int = 20) -> None:
        """Until every site has passed so many points more."""
        before = [self.points(number) for number in range(self.plan.agents)]
        for number, passed in enumerate(before):
            wait_until(lambda n=number, p=passed: self.points(n) >= p + more, f"site {number} takes part")  # type: ignore[misc]

    def kill(self, number: int) -> None:
        os.kill(self.children[number], signal.SIGKILL)

    def reap(self) -> dict[int, int]:
        """Those that have ended since the last look: by number, the exit code, −9 where killed."""
        ended = {}
        for number, child in list(self.children.items()):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                ended[number] = os.waitstatus_to_exitcode(status)
                del self.children[number]
        return ended

    def wait(self, seconds: float = PATIENCE, again: bool = False) -> None:
        """Until all have ended well; those that were killed are started again where asked for."""
        deadline = time.monotonic() + seconds
        while self.children:
            for number, code in self.reap().items():
                if code == -signal.SIGKILL and again:
                    self.start(number)
                elif code:
                    raise AssertionError(f"site {number} ended with {code}: {self.log_of(number)}")
            if time.monotonic() > deadline:
                raise AssertionError(f"the ring hangs: {[self.log_of(number)[-600:] for number in self.children]}")
            time.sleep(0.01)

    def stop(self) -> None:
        """Kill whatever is left."""
        for child in self.children.values():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.children.clear()

    def log_of(self, number: int) -> str:
        path = self.folder / f"{number}.log"
        return path.read_text() if path.exists() else ""

    def run(self, seconds: float = PATIENCE) -> None:
        """Start all and wait."""
        try:
            for number in range(self.plan.agents):
                self.start(number)
            self.wait(seconds)
        finally:
            self.stop()

    # ------------------------------------------------------------ afterwards

    def journal(self, number: int) -> Journal:
        name = self.plan.members[number].name
        return Journal(self.site_folder(number) / "runs" / self.plan.run, self.plan.run, name)

    def visits(self, number: int) -> list[Passage]:
        journal = self.journal(number)
        rows = journal.passages()
        journal.close()
        return rows

    def states(self) -> list[tuple[np.ndarray, ...]]:
        """x, y, c and the estimate of every site, from the journals."""
        found = []
        for number in range(self.plan.agents):
            journal = self.journal(number)
            standing = journal.standing()
            journal.close()
            assert standing is not None and standing.state is not None
            found.append(standing.state.vectors[:4])
        return found

    def transcript(self) -> Transcript:
        """The hops as they crossed the links, put together from all journals."""
        rows = [
            (row.sent_k, row.hop, number, row.receiver, np.frombuffer(row.sent or b""))
            for number in range(self.plan.agents)
            for row in self.visits(number)
            if row.sent_phase == 2
        ]
        rows.sort(key=lambda row: row[0])
        return Transcript(
            np.array([row[1] for row in rows]), np.array([row[2] for row in rows]), np.array([row[3] for row in rows]),
            np.zeros(len(rows), bool), np.array([row[4] for row in rows]),
        )  # fmt: skip


def _log(event: str, **about: Any) -> None:
    print(f"{time.monotonic():.3f}", event, about, flush=True)


def make_ring(
    folder: Path,
    functions: Sequence[OwnProblem | Local],
    algorithm: Any,
    stopping: Stopping,
    network: rl.Network | None = None,
    first: int = 0,
    addresses: Sequence[str] = (),
    task: Task | None = None,
    days: int = 730,
    **more: Any,
) -> ProcessRing:
    """Identities, a ring file that everybody has accepted, and no process yet."""
    agents = len(functions)
    network = network or rl.ring(agents)
    order = [int(agent) for agent in network.tour().order]
    place = order.index(first)
    order = order[place:] + order[:place]
    names = [f"site{number}" for number in range(agents)]
    ports = free_ports(agents)
    members = []
    for number, name in enumerate(names):
        folder.mkdir(parents=True, exist_ok=True)
        save_identity(folder / name, make_identity(name, days))
        write_policy(folder / name, ANYTHING)
        identity = load_identity(folder / name)
        address = addresses[number] if addresses else f"127.0.0.1:{ports[number]}"
        members.append(Member(name, identity.certificate, address))
    links = tuple((int(a), int(b)) for a, b in network.edges)
    task = Task("custom", dim=functions[0].dim) if task is None else task  # type: ignore[union-attr]
    plan = RingPlan(RUN, 0, tuple(members), tuple(order), links, algorithm, task, stopping)
    text = write_ring(plan, load_identity(folder / names[0]))
    write_whole(folder / "ring.toml", text)
    for name in names:
        accept_ring(folder / name, text)
    return ProcessRing(folder, plan, functions, **more)


def own_functions(problem: rl.LeastSquares | rl.Logistic) -> list[OwnProblem]:
    """Each site's own part of a problem."""
    parts: list[OwnProblem] = []
    for agent in range(problem.agents):
        rows = problem.rows.of(agent)
        features, targets = problem.rows.features[rows], problem.rows.targets[rows]
        if isinstance(problem, rl.LeastSquares):
            parts.append(rl.LeastSquares([features], [targets], problem.scale, problem.ridge))
        else:
            parts.append(rl.Logistic([features], [targets], problem.ridge, separable=True))
    return parts
