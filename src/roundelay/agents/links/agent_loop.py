"""An agent: it takes batons from its neighbours, and hands them on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from roundelay.agents.links.transport import Patience, Transport
from roundelay.agents.protocol.baton import Baton, BatonError, Phase
from roundelay.agents.protocol.station import Point, Station, Verdict
from roundelay.agents.protocol.wire import (
    Frame,
    FrameError,
    Kind,
    pack_frame,
    pack_sentence,
    unpack_frame,
    unpack_sentence,
)

# Work that takes longer than this is acknowledged before it is done, so that the sender need not wait for it.
LONG = 0.05
TICK = 0.02
# An acknowledgement waits so long for the token to make it needless; well below the shortest patience of a sender.
ACK_DELAY = 0.02
# Where the loop was away for so long, the machine slept.
SLEPT = 2.0
# A neighbour from which so many pings in a row came back in vain has a dead link.
DEAF = 4
PING_EVERY = 1.0
# So often each end of a link signs what crossed it, besides before the end of a run.
RECEIPT_EVERY = 60.0
# The counter in a greeting: whether one is wanted in return.
ASKING, ANSWERING = 0, 1
# A member that has the end waits so long for the next one to say that it has it too. Its own model is on disk by then.
FAREWELL = 600.0
# And stays no longer than this for neighbours that go on asking after the end.
LONGEST_STAY = 60.0
# So many batons of a neighbour may wait for the one that is worked on; whatever is beyond comes again.
MOST_WAITING = 8

Log = Callable[..., None]


def log_nothing(event: str, **about: Any) -> None:
    """Keep no log."""


class RefusedError(RuntimeError):
    """A neighbour has refused what this agent sent; the sentence says who and why."""


@dataclass(eq=False)
class LinkHealth:
    """What an agent knows of one link."""

    up: bool = False
    greeted: bool = False
    greeting: bool = False
    asking: bool = False
    checking: bool = False
    waiting: int = 0
    epoch: int = -1
    broken: int = 0
    refused: str = ""
    patience: Patience = field(default_factory=Patience)
    pinged: float = 0.0
    heard: float = 0.0


@dataclass(eq=False)
class Counts:
    """What an agent counts while it runs."""

    taken: int = 0
    duplicates: int = 0
    resent: int = 0
    damaged: int = 0
    refused: int = 0
    working_seconds: float = 0.0


async def until_done(work: Awaitable[Any]) -> None:
    """Wait for something however often this is cancelled meanwhile; then be cancelled."""
    working, cancelled = asyncio.ensure_future(work), False
    while not working.done():
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


class Agent:
    """One member in one epoch."""

    def __init__(self, station: Station, transport: Transport, log: Log = log_nothing) -> None:
        self.station, self.transport, self.log = station, transport, log
        self.plan, self.me = station.plan, station.me
        self.links = {peer: LinkHealth() for peer in self.plan.neighbours[self.me]}
        self.counts = Counts()
        self.patience = Patience()
        self.paused = False
        self.working = False
        self.arrived = self.sent_at = 0.0
        self.on_visit: Callable[[], None] = lambda: None
        self.finished = asyncio.Event()
        self._finished_at = 0.0
        self._resume = asyncio.Event()
        self._lock = asyncio.Lock()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tries, self._sent_k = 0, -1
        self._failed = self._ended = False
        self._owed: tuple[int, Frame, float] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------ running

    async def run(self) -> None:
        """Run until the run is over for this agent, or something keeps it from going on."""
        ticking = self._start(self._tick())
        try:
            self._start(self._begin())  # first, since a baton must not be taken before what was kept
            await self.transport.start(self._deliver, self._connected)
            await self._over
        finally:
            try:
                await self._come_to_rest()
            finally:
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)

    async def end(self) -> None:
        """Nothing is begun any more, though frames may still come, and what was begun is waited for."""
        self._ended = True
        await self._come_to_rest()

    async def _come_to_rest(self) -> None:
        """Wait for what is begun, also after a failure: a thread would write to a journal that is closed."""
        self._resume.set()
        try:
            await until_done(self._lock.acquire())
        finally:
            self._lock.release()

    async def linger(self) -> None:
        """Answer for a while after the end, so that a neighbour whose acknowledgement got lost hears it again."""
        last, began = self.arrived, time.monotonic()
        until = began + LONGEST_STAY
        while time.monotonic() < until and time.monotonic() - began < min(
            max(4.0 * self.patience.deadline(), 0.2), 5.0
        ):
            await asyncio.sleep(TICK)
            if self.arrived != last:
                last, began = self.arrived, time.monotonic()

    def pause(self) -> None:
        """Keep the token when it comes; it is journalled and acknowledged, and waits here."""
        self.paused = True
        self._resume.clear()

    def resume(self) -> None:
        """Go on."""
        self.paused = False
        self._resume.set()

    def leave_epoch(self) -> None:
        """End this epoch's part of the run: a newer ring file has been accepted."""
        if not self._over.done():
            self._over.set_result(None)

    @property
    def unconfirmed(self) -> str:
        """The neighbour that was handed the end and has not said that it came; empty where there is none."""
        outgoing = self.station.outgoing
        return self._name(outgoing[0]) if self.finished.is_set() and outgoing is not None else ""

    @property
    def holds_token(self) -> bool:
        """Whether the token is here: it is being worked on, waits for the end of a pause, or can't be sent on."""
        outgoing = self.station.outgoing
        return self._lock.locked() or (outgoing is not None and not self.links[outgoing[0]].greeted)

    async def _begin(self) -> None:
        """Go on with what was acknowledged but not done, or start the epoch."""
        try:
            async with self._lock:
                if self.station.kept():
                    if not await self._resumed():
                        return
                    self.working = True
                    try:
                        await asyncio.to_thread(self.station.catch_up)
                    finally:
                        self.working = False
                if self.station.may_start:
                    self.station.start()
                await self._send_outgoing()
                self._end_if_finished()
        except Exception as error:
            self._fail(error)

    # ------------------------------------------------------------ frames

    async def _deliver(self, peer: int, data: bytes) -> None:
        """A frame came. What is wrong here, as with a log on a full disk, ends the agent, not only the task that reads."""
        try:
            frame = self._read(peer, data)
            if frame is None:
                return
            if frame.kind == Kind.BATON:
                if not self._takes_long:
                    await self._handle(peer, data, frame, long=False)
                elif self.links[peer].waiting < MOST_WAITING:
                    # A stream that breaks ends whoever reads from it, but what is begun with a baton must not end half-way.
                    await asyncio.shield(self._start(self._handle(peer, data, frame, long=True)))
            elif frame.kind == Kind.ACK:
                if (
                    not self.working
                ):  # else the station is the thread's; what is acknowledged now is held for a lap more, or sent again
                    self._acknowledged(peer, frame)
            elif frame.kind == Kind.PING:
                await self._send(peer, Kind.PONG, frame.k)
            elif frame.kind == Kind.PONG:
                self._heard_pong(self.links[peer])
            elif frame.kind == Kind.HELLO:
                if not self.links[peer].greeting:
                    self.links[peer].greeting = True
                    self._start(self._heard_greeting(peer, frame))
            elif frame.kind == Kind.RECEIPT:
                if not self._lock.locked():
                    await self._heard_receipt(peer, frame)
                elif not self.links[peer].checking:
                    self.links[peer].checking = True
                    self._start(self._heard_receipt(peer, frame))  # a pause may last for days
            else:
                self._heard_refusal(peer, frame)
        except Exception as error:
            self._fail(error)

    def _read(self, peer: int, data: bytes) -> Frame | None:
        """The frame, where it is to be heard. Whatever is wrong with it, nothing but a log line comes of it."""
        health = self.links[peer]
        health.heard = time.monotonic()
        try:
            frame = unpack_frame(data, self.plan.run_bytes)
        except FrameError as error:
            self.counts.damaged += 1
            self.log("damaged frame", peer=self._name(peer), why=str(error))
            if "version" in str(error):
                health.refused = str(error)
            return None
        if not health.greeted and frame.kind in (Kind.BATON, Kind.ACK, Kind.REFUSAL, Kind.RECEIPT):
            return None  # it comes again
        return frame

    async def _handle(self, peer: int, data: bytes, frame: Frame, long: bool) -> None:
        """One baton after another."""
        health = self.links[peer]
        health.waiting += 1
        try:
            async with self._lock:
                if not (self._failed or self._ended):
                    await self._baton(peer, data, frame, long)
        except Exception as error:
            self._fail(error)
        finally:
            health.waiting -= 1

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of the agent's own."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        """Nothing that the agent does for itself may end unnoticed: it would wait for ever for what it no longer asks for."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def _baton(self, peer: int, data: bytes, frame: Frame, long: bool) -> None:
        try:
            verdict = self.station.judge(peer, frame)
            baton = self.station.read(frame) if verdict is Verdict.NEW else None
        except BatonError as error:
            self.counts.refused += 1
            self.links[peer].refused = str(error)
            self.log("refused", peer=self._name(peer), k=frame.k, why=str(error))
            await self._send(peer, Kind.REFUSAL, frame.k, pack_sentence(str(error)))
            return
        if verdict is Verdict.OLD_EPOCH:
            sentence = f"The ring is in epoch {self.plan.epoch}: accept its newest ring file."
            await self._send(peer, Kind.REFUSAL, frame.k, pack_sentence(sentence))
        elif verdict is Verdict.NEW_EPOCH:
            self.log("neighbour is in a later epoch", peer=self._name(peer), epoch=frame.epoch)
        elif verdict is Verdict.AHEAD:
            self.log("the baton before is missing", peer=self._name(peer), k=frame.k)
        elif verdict is Verdict.KNOWN:
            self.counts.duplicates += 1
            self.arrived = time.monotonic()
            await self._send(peer, Kind.ACK, frame.k)
        else:
            assert baton is not None
            self.arrived = time.monotonic()
            self._owed = None
            self.patience.in_vain = 0  # what was sent before has come, since the token is back
            self.links[peer].refused = ""
            self.station.reached(Point.AFTER_RECEIVE)
            if long:
                await self._take_long(peer, data, frame, baton)
            elif not self.paused:  # otherwise it came as the pause began, and is sent again
                await self._take(peer, frame, baton)
            if baton.phase == Phase.FROZEN:
                await self._give_receipts()
            self._end_if_finished()

    async def _take(self, peer: int, frame: Frame, baton: Baton) -> None:
        """Work on a baton, send it on and have it on disk; the other way round where it might not be made again the same."""
        began = time.perf_counter()
        self.station.work(peer, frame, baton)
        took = time.perf_counter() - began
        if self.station.sends_first:
            try:
                await self._send_outgoing()
            finally:  # also where the stream broke on which the baton came, and ends this
                self.station.secure()
        else:
            self.station.secure()
            await self._send_outgoing()
        if self.station.returns:
            self._owed = (peer, frame, time.monotonic() + ACK_DELAY)
        else:
            await self._acknowledge(peer, frame)
        self._worked(took)

    async def _take_long(self, peer: int, data: bytes, frame: Frame, baton: Baton) -> None:
        """Work on a baton in a thread while it is written to disk and acknowledged; neighbours are answered meanwhile."""
        keeping = self._start(self._keep(peer, data, frame))
        try:
            if not await self._resumed():
                return
            self.working, began = True, time.perf_counter()
            await asyncio.to_thread(self.station.work, peer, frame, baton)
            self._worked(time.perf_counter() - began)
        finally:
            self.working = False
            await keeping
        if not self.station.follows:
            await asyncio.to_thread(self.station.secure)
        await self._send_outgoing()
        await asyncio.to_thread(self.station.settle_some)

    async def _keep(self, peer: int, data: bytes, frame: Frame) -> None:
        await asyncio.to_thread(self.station.keep, peer, data, frame)
        await self._acknowledge(peer, frame)

    async def _resumed(self) -> bool:
        """Wait for the end of a pause; False where the agent is to end before."""
        while self.paused and not self._over.done():
            await self._resume.wait()
        return not self._over.done()

    def _worked(self, seconds: float) -> None:
        self.counts.working_seconds += seconds
        self.counts.taken += 1
        self.on_visit()

    @property
    def _takes_long(self) -> bool:
        """Whether a baton is acknowledged before it has been worked on."""
        return self.paused or self.station.heavy or self.station.holder.makes_passes or self._usual_work > LONG

    @property
    def _usual_work(self) -> float:
        return self.counts.working_seconds / self.counts.taken if self.counts.taken else 0.0

    async def _acknowledge(self, peer: int, frame: Frame) -> None:
        self.station.reached(Point.BEFORE_ACK)
        await self._send(peer, Kind.ACK, frame.k)
        self.station.reached(Point.AFTER_ACK)

    def _was_sent_to(self, peer: int, frame: Frame) -> bool:
        """Whether this neighbour is the one that was handed what the frame is about, and has not answered yet."""
        outgoing = self.station.outgoing
        return outgoing is not None and (peer, frame.k) == (outgoing[0], self.station.standing.sent_k)

    def _heard_pong(self, health: LinkHealth) -> None:
        if health.pinged:
            health.patience.answered(time.monotonic() - health.pinged)
        health.pinged = 0.0

    def _acknowledged(self, peer: int, frame: Frame) -> None:
        if self._was_sent_to(peer, frame) and self.station.acknowledge(frame.epoch, frame.k):
            if self._tries == 1:
                self.patience.answered(time.monotonic() - self.sent_at)
            self.patience.in_vain = 0
            self._end_if_finished()

    def _heard_refusal(self, peer: int, frame: Frame) -> None:
        sentence = unpack_sentence(frame.body)
        if not self._was_sent_to(peer, frame):  # nobody may refuse, nor acknowledge, what went to another
            self.log("refused what was not sent to it", peer=self._name(peer), k=frame.k, why=sentence)
            return
        self.links[peer].refused = sentence
        self.log("refused by neighbour", peer=self._name(peer), k=frame.k, why=sentence)
        if frame.epoch == self.plan.epoch:
            self._fail(
                RefusedError(
                    f"{self._name(peer)} refuses what this agent sent: {sentence} Nothing is lost; find out with its operator "
                    "why, then start the agent again."
                )
            )

    async def _send_again(self, peer: int) -> None:
        """Send what a neighbour may have missed; what is being worked on is sent when it is on disk."""
        async with self._lock:
            outgoing = self.station.outgoing
            if outgoing is not None and outgoing[0] == peer:
                await self._send_outgoing()

    async def _send_outgoing(self) -> None:
        """Send what has not been acknowledged yet."""
        outgoing = self.station.outgoing
        if outgoing is None:
            self._end_if_finished()
            return
        receiver, data = outgoing
        if not self.links[receiver].greeted:
            return
        self.station.reached(Point.BEFORE_SEND)
        last, self._sent_k = self._sent_k, self.station.standing.sent_k
        self._tries = self._tries + 1 if self._sent_k == last else 1
        self.sent_at = time.monotonic()
        self.counts.resent += self._tries > 1
        earlier = self.station.earlier
        if earlier and (self._tries > 1 or last < 0):  # also the first time after a start
            await self.transport.send(receiver, earlier)
        await self.transport.send(receiver, data)
        self.station.reached(Point.AFTER_SEND)

    async def _send(self, peer: int, kind: Kind, k: int, body: bytes = b"") -> None:
        await self.transport.send(peer, pack_frame(kind, self.plan.run_bytes, self.plan.epoch, k, body))

    # ------------------------------------------------------------ links and time

    async def _connected(self, peer: int, up: bool) -> None:
        health = self.links[peer]
        health.up, health.greeted, health.pinged = up, False, 0.0
        health.broken += not up
        try:
            self.log("link up" if up else "link down", peer=self._name(peer))
        except OSError as error:  # whoever dials must not end of it
            self._fail(error)
        if up:
            self._ask(peer)

    def _ask(self, peer: int) -> None:
        """Greet a neighbour, unless a greeting still waits for the end of what is being done: a pause may last for days."""
        health = self.links[peer]
        if not health.asking:
            health.asking = True
            self._start(self._greet(peer, ASKING))

    async def _greet(self, peer: int, k: int) -> None:
        """Say what this agent knows of the link, when nobody is changing it."""
        async with self._lock:
            if k == ASKING:
                self.links[peer].asking = False
            await self._send(peer, Kind.HELLO, k, self.station.greeting(peer))

    async def _heard_greeting(self, peer: int, frame: Frame) -> None:
        """Nothing is handed to a neighbour, or taken from it, before it has said the right thing; it is asked until it does."""
        health = self.links[peer]
        async with self._lock:
            health.greeting = False
            try:
                self.station.check_greeting(peer, frame)
                health.greeted, health.refused = True, ""
            except BatonError as error:
                health.greeted = False
                if health.refused != str(error):
                    self.log("refused", peer=self._name(peer), why=str(error))
                health.refused = str(error)
            health.epoch = frame.epoch
        if frame.epoch > self.plan.epoch:
            self.log("neighbour is in a later epoch", peer=self._name(peer), epoch=frame.epoch)
        if frame.k == ASKING:
            await self._greet(peer, ANSWERING)
        await self._send_again(peer)

    async def _give_receipts(self) -> None:
        """Sign for each neighbour what crossed the link; nobody may be changing it meanwhile."""
        for peer, health in self.links.items():
            if health.greeted and (body := self.station.receipt(peer)):
                await self._send(peer, Kind.RECEIPT, 0, body)

    async def _give_receipts_in_turn(self) -> None:
        async with self._lock:
            await self._give_receipts()

    async def _heard_receipt(self, peer: int, frame: Frame) -> None:
        """Keep what a neighbour has signed, behind what it has handed over before."""
        async with self._lock:
            self.links[peer].checking = False
            if self._failed or frame.epoch != self.plan.epoch:
                return
            try:
                self.station.keep_receipt(peer, bytes(frame.body))
            except BatonError as error:
                self.log("refused", peer=self._name(peer), why=str(error))

    async def _tick(self) -> None:
        """Send again what was not acknowledged in time, and ask neighbours whether they are there."""
        last = time.monotonic()
        next_ping, next_receipt = last + PING_EVERY, last + RECEIPT_EVERY
        while True:
            await asyncio.sleep(TICK)
            now = time.monotonic()
            if now - last > SLEPT:
                # The machine slept, or the loop was busy: what waited in vain was this agent's fault.
                self.sent_at = now
                for health in self.links.values():
                    health.pinged = 0.0
            last = now
            if self._owed is not None and now >= self._owed[2] and not self._lock.locked():
                (peer, frame, _), self._owed = self._owed, None
                await self._acknowledge(peer, frame)
            outgoing = self.station.outgoing
            late = now - self.sent_at > self.patience.deadline()
            if outgoing is not None and self.links[outgoing[0]].greeted and not self._lock.locked() and late:
                self.patience.in_vain += 1
                await self._send_outgoing()
            if self.finished.is_set() and now - self._finished_at > FAREWELL and not self._over.done():
                self._over.set_result(
                    None
                )  # what was not confirmed is in the journal, and handed over at the next start
            if now >= next_receipt and not self._lock.locked():
                next_receipt = now + RECEIPT_EVERY
                self._start(self._give_receipts_in_turn())
            if now >= next_ping:
                next_ping = now + PING_EVERY
                await self._ping(now)

    async def _ping(self, now: float) -> None:
        for peer, health in self.links.items():
            if not health.up:
                continue
            if not health.greeted:
                self._ask(peer)
            if (
                health.pinged
                and now - max(health.pinged, health.heard) > health.patience.deadline() + PING_EVERY * DEAF
            ):
                self.log("link is deaf", peer=self._name(peer))
                health.patience.in_vain += 1
                health.pinged = 0.0
                self.transport.drop(peer)
            elif not health.pinged:
                health.pinged = now
                await self._send(peer, Kind.PING, 0)

    # ------------------------------------------------------------ the end

    def _end_if_finished(self) -> None:
        if self._failed or not self.station.holder.finished:
            return
        if not self.finished.is_set():
            self._finished_at = time.monotonic()
            self.finished.set()
        if self.station.finished and not self._over.done():
            self._over.set_result(None)

    def _fail(self, error: BaseException) -> None:
        """Stop. What is held in memory is worth nothing any more, so that no baton may be worked on with it."""
        self._failed = True
        if not self._over.done():
            self._over.set_exception(error)

    def _name(self, peer: int) -> str:
        return self.plan.members[peer].name
