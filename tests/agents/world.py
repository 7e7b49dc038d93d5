"""A ring in one place: real stations, links that lose, repeat and reorder, members that die, come back, join and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.plan import Member as Site, RingPlan, Stopping, Task
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.asking import Answered
from roundelay.agents.protocol.baton import BatonError
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage, Record, Standing
from roundelay.agents.protocol.station import Point, Reached, Station, Verdict, nothing_happens
from roundelay.agents.protocol.wire import Kind, pack_frame, unpack_frame
from roundelay.masks import SeededPairs

RUN = "0123456789abcdef" * 2


class CrashError(Exception):
    """The process dies here."""


class MemoryJournal:
    """A journal that outlives its agent, and nothing else."""

    def __init__(self) -> None:
        self.row: Standing | None = None
        self.kept: list[tuple[int, int, int, bytes]] = []
        self.rows: list[Passage] = []
        self.asked: dict[tuple[int, int], Answered] = {}
        self.told: dict[int, bytes] = {}
        self.signed: dict[tuple[int, int], bytes] = {}

    def questions(self, epoch: int) -> list[Answered]:
        return [one for (own, _), one in sorted(self.asked.items()) if own == epoch]

    def totals(self, epoch: int) -> Iterator[np.ndarray]:
        return (one.total for one in self.questions(epoch) if one.total is not None)

    def standing(self) -> Standing | None:
        if self.row is None:
            return None
        state = self.row.state
        assert state is not None
        return self.row._replace(state=Record.read(b"".join(state.pieces())))

    def last_on_links(self, epoch: int, k: int) -> tuple[dict[int, int], dict[int, int]]:
        rows = [row for row in self.rows if row.epoch == epoch]
        taken = {row.sender: row.k for row in rows if row.sender >= 0}
        return taken, {row.receiver: row.sent_k for row in rows if row.receiver >= 0 and row.k < k}

    def inbox(self) -> list[tuple[int, bytes]]:
        last = (-1, -1) if self.row is None else (self.row.epoch, self.row.k)
        return [(sender, data) for epoch, k, sender, data in sorted(self.kept) if (epoch, k) > last]

    def keep_inbox(self, epoch: int, k: int, sender: int, frame: bytes) -> None:
        self.kept = [*(one for one in self.kept if one[:2] != (epoch, k)), (epoch, k, sender, frame)][-20:]

    def passages_after(self, epoch: int, k: int) -> list[Passage]:
        return [row for row in self.rows if row.epoch == epoch and row.k > k]

    def keep_receipt(self, epoch: int, peer: int, receipt: bytes) -> None:
        self.signed[epoch, peer] = receipt

    def receipts(self, epoch: int) -> dict[int, bytes]:
        return {peer: one for (own, peer), one in self.signed.items() if own == epoch}

    def cards(self, epoch: int) -> bytes:
        return self.told.get(epoch, b"")

    def settle(
        self, standing: Standing, visits: Sequence[Passage], questions: Sequence[Answered] = (), cards: bytes = b""
    ) -> None:
        state = standing.state
        assert state is not None
        copied = Record(state.about, tuple(vector.copy() for vector in state.vectors))
        taken = {(row.epoch, row.k) for row in self.rows[-30:]}
        assert not taken & {(visit.epoch, visit.k) for visit in visits}, "taken twice"
        self.rows += visits
        if cards:
            self.told[standing.epoch] = cards
        self.asked |= {(standing.epoch, one.number): one for one in questions}
        self.row = standing._replace(state=copied)


def least_squares(seed: int, dim: int) -> rl.LeastSquares:
    """A function of one site."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(dim + 2, dim))
    return rl.LeastSquares([features], [features @ np.ones(dim) + rng.normal(size=dim + 2)])


def ring_plan(names: list[str], algorithm: object, dim: int, stopping: Stopping, epoch: int = 0) -> RingPlan:
    """A plain ring of these members."""
    agents = len(names)
    links = {(min(i, (i + 1) % agents), max(i, (i + 1) % agents)) for i in range(agents)}
    members = tuple(Site(name, "", "127.0.0.1:1") for name in names)
    return RingPlan(
        RUN, epoch, members, tuple(range(agents)), tuple(sorted(links)), algorithm, Task("custom", dim=dim), stopping
    )


@dataclass
class World:
    """Sites by name, each with a journal; some of them up."""

    seed: int
    dim: int
    rng: np.random.Generator
    disturbance: float = 0.2
    plans: dict[int, RingPlan] = field(default_factory=dict)
    journals: dict[str, MemoryJournal] = field(default_factory=dict)
    up: dict[str, Station] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    mail: list[tuple[str, str, bytes]] = field(default_factory=list)
    crashes: dict[Point, int] = field(default_factory=dict)
    crash_chance: float = 0.0
    power_chance: float = 0.0
    stop_chance: float = 0.0

    def function(self, name: str) -> rl.LeastSquares:
        return least_squares(sum(name.encode()), self.dim)

    def plan_of(self, name: str) -> RingPlan:
        return self.plans[self.epochs[name]]

    # ------------------------------------------------------------ life and death

    def start(self, name: str) -> None:
        """The process starts, from its journal."""
        self.up[name] = self._station(name, self._maybe_crash)
        self._guarded(name, self._begin)

    def _station(self, name: str, reached: Reached = nothing_happens) -> Station:
        plan = self.plan_of(name)
        me = plan.number_of(name)
        seed = self.seed * 1000 + sum(name.encode())
        holder = Holder(plan, me, Known(self.function(name)), seed, SeededPairs(self.seed + 7919 * plan.epoch))
        journal = self.journals.setdefault(name, MemoryJournal())
        return Station(holder, journal, reached)  # type: ignore[arg-type]

    def kill(self, name: str) -> None:
        self.up.pop(name, None)

    def adopt(self, name: str, epoch: int) -> None:
        """The operator accepts the ring file of an epoch, and the agent takes it up."""
        before = self.epochs.get(name, -1)
        if before < epoch:
            if name in self.up and self.rng.random() < 0.5:
                self.up.pop(name).close()  # it was up, and ends the epoch in order
            self.kill(name)
            if before >= 0:
                self._station(name).catch_up()
            self.epochs[name] = epoch
            self.start(name)

    def _maybe_crash(self, point: Point) -> None:
        if self.crash_chance and self.rng.random() < self.crash_chance:
            self.crashes[point] = self.crashes.get(point, 0) + 1
            raise CrashError(point)

    def _guarded(self, name: str, work: Callable[[str], None]) -> None:
        try:
            work(name)
        except CrashError:
            self.kill(name)

    # ------------------------------------------------------------ the agent's part, step by step as in agent_loop.py

    def _begin(self, name: str) -> None:
        station = self.up[name]
        station.catch_up()
        if station.may_start:
            station.start()
        self.send_outgoing(name)

    def send_again(self, name: str) -> None:
        station = self.up[name]
        if station.outgoing is not None and station.earlier:
            self.post(name, station.plan.members[station.outgoing[0]].name, station.earlier)
        self.send_outgoing(name)

    def send_outgoing(self, name: str) -> None:
        station = self.up[name]
        if station.outgoing is not None:
            receiver, data = station.outgoing
            self._maybe_crash(Point.BEFORE_SEND)
            self.post(name, station.plan.members[receiver].name, data)
            self._maybe_crash(Point.AFTER_SEND)

    def post(self, sender: str, receiver: str, data: bytes) -> None:
        chance = self.rng.random()
        if chance < self.disturbance / 3:
            return
        self.mail.append((sender, receiver, data))
        if chance < self.disturbance:
            self.mail.append((sender, receiver, data))

    def deliver(self) -> None:
        """Any message that is under way, not the oldest one first."""
        sender, receiver, data = self.mail.pop(int(self.rng.integers(len(self.mail))))
        if receiver in self.up:
            self._guarded(receiver, lambda name: self._receive(name, sender, data))

    def _receive(self, name: str, sender: str, data: bytes) -> None:
        station = self.up[name]
        plan = station.plan
        frame = unpack_frame(data, plan.run_bytes)
        if sender not in {member.name for member in plan.members}:
            return  # refused in the handshake
        if frame.kind == Kind.ACK:
            station.acknowledge(frame.epoch, frame.k)
            return
        verdict = station.judge(plan.number_of(sender), frame)
        ack = pack_frame(Kind.ACK, plan.run_bytes, plan.epoch, frame.k)
        if verdict is Verdict.KNOWN:
            self.post(name, sender, ack)
        if verdict is not Verdict.NEW:
            return
        self._maybe_crash(Point.AFTER_RECEIVE)
        baton = station.read(frame)
        number, early = plan.number_of(sender), self.rng.random() < 0.2
        if early:
            station.keep(number, data, frame)
            self._acknowledge(name, sender, ack)
        station.work(number, frame, baton)
        if early or not station.sends_first:
            station.secure()
            self.send_outgoing(name)
        else:
            self.send_outgoing(name)
            station.secure()
        station.settle_some()
        self.taken.add(station)
        if not early and not (station.returns and self.rng.random() < 0.5):
            self._acknowledge(name, sender, ack)

    def _acknowledge(self, name: str, sender: str, ack: bytes) -> None:
        self._maybe_crash(Point.BEFORE_ACK)
        self.post(name, sender, ack)
        self._maybe_crash(Point.AFTER_ACK)

    # ------------------------------------------------------------ time passes

    def step(self) -> None:
        """One event: a message arrives, or somebody sends again, or the dead come back, or the power fails everywhere."""
        if self.power_chance and self.rng.random() < self.power_chance:
            self.up.clear()
            self.mail = [] if self.rng.random() < 0.5 else self.mail
        for station in self.up.values():
            if self.stop_chance and station in self.taken and self.rng.random() < self.stop_chance:
                station.holder.wants_to_stop = True  # as in taking_part.py not before the first baton
        dead = [name for name in self.epochs if name not in self.up and name in self.living]
        choice = self.rng.random()
        if dead and choice < 0.3:
            self.start(dead[int(self.rng.integers(len(dead)))])
        elif self.mail and choice < 0.9:
            self.deliver()
        elif self.up:
            names = sorted(self.up)
            self._guarded(names[int(self.rng.integers(len(names)))], self.send_again)

    @property
    def living(self) -> set[str]:
        """Those who come back when they have died: all but the ones that were given up."""
        return set(self.epochs) - self.given_up

    given_up: set[str] = field(default_factory=set)
    taken: set[Station] = field(default_factory=set)

    def finished(self) -> bool:
        newest = max(self.plans)
        names = [member.name for member in self.plans[newest].members]
        return all(name in self.up and self.up[name].plan.epoch == newest and self.up[name].finished for name in names)

    def run(self, most: int = 200_000) -> None:
        for _ in range(most):
            if self.finished():
                return
            self.step()
        raise AssertionError("the ring stalls")

    def check_no_fork(self) -> None:
        """Every hand-over was taken by one member, once, and none was left out.

        Of an epoch that was ended in the middle, those may be missing which members had sent on but not on disk yet when
        they died: at most one each.
        """
        taken: dict[int, list[int]] = {}
        for journal in self.journals.values():
            last = (-1, -1) if journal.row is None else (journal.row.epoch, journal.row.k)
            kept = {(epoch, k) for epoch, k, _, _ in journal.kept if (epoch, k) > last}
            for epoch, k in kept | {(row.epoch, row.k) for row in journal.rows}:
                taken.setdefault(epoch, []).append(k)
        for epoch, counters in taken.items():
            assert len(set(counters)) == len(counters), f"epoch {epoch}: a hand-over was taken twice"
            missing = set(range(max(counters))) - set(counters)
            allowed = 0 if epoch == max(self.plans) else self.plans[epoch].agents
            assert len(missing) <= allowed, f"epoch {epoch}: hand-overs were lost: {sorted(missing)}"
        rows = {(row.epoch, row.k): row for journal in self.journals.values() for row in journal.rows}
        for row in rows.values():
            following = rows.get((row.epoch, row.sent_k))
            assert following is None or following.received == row.sent, "what was taken is not what was sent"


__all__ = ["BatonError", "CrashError", "World", "least_squares", "ring_plan"]
