"""Kill −9, at every named point and at any moment from outside, until the ring is done nevertheless."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.links import agent_loop
from roundelay.agents.protocol import holder
from roundelay.agents.protocol.station import Point
from roundelay.agents.site.taking_part import Site
from tests.agents.killing import kills_in
from tests.agents.likeness import check_every_hand_over_once, check_same, simulated
from tests.agents.processes import PATIENCE, ProcessRing, make_ring, own_functions

SLOW_SITE = 1
EARLY = tuple(point for point in Point if point is not Point.AFTER_RECEIVE)
AGAIN = 2.0


@dataclass(frozen=True)
class Size:
    """How large a ring, how long a run, and how much is killed; `seconds` is when it counts as hanging.

    `at_each` counts deaths at each point, `early_each` those of them where the work was acknowledged but not done.
    """

    agents: int
    hops: int
    at_each: int
    early_each: int
    at_random: int
    seconds: float


SHORT = Size(agents=4, hops=160, at_each=2, early_each=1, at_random=5, seconds=PATIENCE)
LONG = Size(agents=8, hops=2400, at_each=22, early_each=10, at_random=60, seconds=1500.0)


@dataclass
class Kills:
    """What was killed: at each point, of these on the way of long work, and from outside."""

    at: Counter[Point]
    early: Counter[Point]
    outside: int

    @property
    def total(self) -> int:
        return self.at.total() + self.outside

    def table(self) -> str:
        rows = [f"{point.value:>15} {self.at[point]:6} {self.early[point]:12}" for point in Point]
        head = f"{'killed':>15} {'times':>6} {'acknowledged':>12}"
        return "\n".join([head, *rows, f"{'from outside':>15} {self.outside:6}", f"{'in all':>15} {self.total:6}"])


@dataclass
class Chaos:
    """Starts the sites of a ring, each with a death ahead of it, and again after each death."""

    ring: ProcessRing
    size: Size
    rng: random.Random
    outside: int = 0
    _planned: dict[int, Point] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)

    def run(self) -> Kills:
        """Until every site has ended by itself."""
        deadline = time.monotonic() + self.size.seconds
        again, next_kill = time.monotonic() + 0.5, 40.0
        try:
            for number in range(self.size.agents):
                self._start(number)
            while len(self._ended) < self.size.agents:
                now = time.monotonic()
                self._restart()
                if self._passed() > next_kill and self.outside < self.size.at_random:
                    next_kill = self._passed() + self.rng.uniform(10.0, 100.0)
                    self._kill_one()
                if now > again:
                    again = now + AGAIN
                    self._start_ended()
                assert now < deadline, [self.ring.log_of(number)[-500:] for number in self.ring.children]
                time.sleep(0.005)
        finally:
            self.ring.stop()
        return Kills(*kills_in(self.ring.folder), self.outside)

    def _passed(self) -> int:
        """How far the ring is: how many points all sites have passed."""
        return sum(map(self.ring.points, range(self.size.agents)))

    def _restart(self) -> None:
        for number, code in self.ring.reap().items():
            if code == 0:
                self._ended.add(number)
                continue
            assert code == -signal.SIGKILL, f"site {number} ended with {code}: {self.ring.log_of(number)[-2000:]}"
            self._start(number)

    def _start(self, number: int) -> None:
        """Start a site that will die at a point which was not met often enough yet."""
        done, early = kills_in(self.ring.folder)
        if number == SLOW_SITE:
            wanted = [point for point in EARLY for _ in range(self.size.early_each - early[point])]
        else:
            planned = (self._planned[other] for other in self.ring.children if other in self._planned)
            done += Counter(planned)
            wanted = [point for point in Point for _ in range(self.size.at_each - done[point])]
        if not wanted:
            self._planned.pop(number, None)
            self.ring.start(number)
            return
        point = self.rng.choice(wanted)
        if number != SLOW_SITE:
            self._planned[number] = point
        # Not the first time: whether its work takes long, a site knows only after that.
        self.ring.start(number, (point, self.rng.choice([2, 3, 4] if number == SLOW_SITE else [1, 2, 3])))

    def _kill_one(self) -> None:
        number = self.rng.choice(sorted(self.ring.children))
        alive = os.waitid(os.P_PID, self.ring.children[number], os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        if alive:
            self.ring.kill(number)
            self.outside += 1

    def _start_ended(self) -> None:
        """Who has ended is started again, as its operator would: a neighbour may still wait for its last word."""
        for number in sorted(self._ended - set(self.ring.children)):
            self.ring.start(number)


def slow_site(site: Site, number: int) -> None:
    """One site takes long over its work, so that it acknowledges before it is done."""
    if number == SLOW_SITE:
        visit = holder.Holder.visit

        def slowly(self: holder.Holder, baton: object) -> object:
            time.sleep(1.6 * agent_loop.LONG)
            return visit(self, baton)  # type: ignore[arg-type]

        holder.Holder.visit = slowly  # type: ignore[assignment,method-assign]


def chaos(folder: Path, size: Size, seed: int) -> Kills:
    """Kill and restart until the ring is done; then its states and transcript must be those of an undisturbed run."""
    problem = rl.paper_least_squares(agents=size.agents, samples=6, dim=3, seed=seed)
    algorithm, network = rl.PIADMM1(start=rl.SealedStart()), rl.ring(size.agents)
    ring = make_ring(folder, own_functions(problem), algorithm, Stopping(None, size.hops), seed=seed, wrap=slow_site)
    kills = Chaos(ring, size, random.Random(seed)).run()
    check_same(ring, simulated(algorithm, problem, network, size.hops, seed))
    check_every_hand_over_once(ring)
    return kills
