"""Never lost, never twice: which batons an agent takes, and what it owes the next one.

There is no link and no clock in here, so that every order of events can be tried. The agent calls `judge` for a baton that
came, `work` to do its part, and `secure` to have it on disk; only then it acknowledges, and sends on. It sends `outgoing` until
that is acknowledged, or the token is back: whoever sent it on had it on disk.

On a cycle that meets everybody once, two things are cheaper.

- A hop that can be made again bit for bit is sent on before it is on disk (`sends_first`), so that the next member works while
  the disk does. Where an agent dies in between, it is handed the same baton again, and makes the same of it, which the next
  member knows already. All else is on disk before it is sent.
- The token itself acknowledges. A member has on disk what it did before it does anything more, so that a token which has
  passed it once more proves that its last hop but one is safe. Hence a member holds what it sent last and what it sent a lap
  `earlier`, and sends both again, the older one first, to a neighbour that may have missed them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from hashlib import sha256

import numpy as np

from roundelay.agents.protocol.asking import Asking, places_of
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, pack_baton, token_in, unpack_baton
from roundelay.agents.protocol.holder import HandOver, Holder
from roundelay.agents.protocol.journal import BESIDE, SETTLE_EVERY, Journal, Passage, Standing, record_of, take_up
from roundelay.agents.protocol.receipts import OtherHandOversError, Receipt, Receipts
from roundelay.agents.protocol.wire import HEADER_BYTES, Frame, Kind, pack_frame, unpack_frame
from roundelay.kernels import Vector

# Tokens up to this many numbers are kept with every visit, for the privacy meter and for the transcript.
KEPT = 1000
# No counter of a random walk gets so far; one that is higher has no place in a journal or in the next frame.
HIGHEST = 2**62
# So many times a baton may come before the one that is missing.
PATIENT = 20


class Point(Enum):
    """Where an agent is in the handling of one baton.

    A hop on a cycle is sent, synced and acknowledged in this order. What can't be made again is synced before it is sent,
    and long work is synced and acknowledged while it is done.
    """

    AFTER_RECEIVE = "after receive"
    BEFORE_SEND = "before send"
    AFTER_SEND = "after send"
    BEFORE_SYNC = "before sync"
    AFTER_SYNC = "after sync"
    BEFORE_ACK = "before ack"
    AFTER_ACK = "after ack"


Reached = Callable[[Point], None]
_COUNTERS = struct.Struct("<qq")
# The digest of a ring file, and the counters.
GREETING_BYTES = sha256().digest_size + _COUNTERS.size


def nothing_happens(point: Point) -> None:
    """What an agent does at these points, unless a test of crashes says otherwise."""


class Verdict(Enum):
    """What is to be done with a baton."""

    NEW = "take it"
    AHEAD = "leave it: the one before it is missing, and both will be sent again"
    KNOWN = "acknowledge it again: it is in the journal"
    OLD_EPOCH = "the sender has not moved on to this epoch"
    NEW_EPOCH = "this agent has not moved on to that epoch"


class Station:
    """One member's end of the protocol in one epoch."""

    def __init__(self, holder: Holder, journal: Journal, reached: Reached = nothing_happens) -> None:
        self.holder, self.journal, self.reached = holder, journal, reached
        self.plan, self.me = holder.plan, holder.me
        self.acknowledged = False
        self.standing = Standing(self.plan.epoch, -1, 0, -1, -1, b"", b"", None)
        self._unsettled: list[Passage] = []
        self._hopped = False
        self._kept = -1
        # The last hand-over from each neighbour, and the last one to each that is on its disk for certain.
        self._taken: dict[int, int] = {}
        self._safe: dict[int, int] = {}
        order = self.plan.order
        self._places = [place for place, member in enumerate(order) if member == self.me]
        self._ahead = 0
        self._cards = b""
        names, epoch = [member.name for member in self.plan.members], self.plan.epoch
        self._receipts = Receipts(
            holder.ring, epoch, names, self.me, holder.signer, lambda k: journal.passages_after(epoch, k),
            {peer: Receipt.read(body) for peer, body in journal.receipts(epoch).items()},
        )  # fmt: skip
        # Whether the state is so large that not every one of them is written.
        self.heavy = 4 * holder.largest_layout.usual > BESIDE
        # Whether the token's return acknowledges. A large token is acknowledged by word, so that one of them is held, not two.
        self.implicit = self.plan.on_cycle and len(order) == self.plan.agents and not self.heavy
        self._open()

    def _open(self) -> None:
        """Take up what the journal has; of an earlier epoch the agent's own state, not the hand-overs."""
        before = self.journal.standing()
        if before is None:
            return
        if before.epoch > self.plan.epoch:
            raise BatonError(
                f"This agent has been in epoch {before.epoch} already, but the ring file is of epoch {self.plan.epoch}: "
                "start it with the newest ring file that was accepted."
            )
        assert before.state is not None
        take_up(self.holder, before.state)
        if self.holder.asking is not None:
            self._take_up_questions(self.holder.asking)
        self.holder.held.cards = self._cards = self.journal.cards(self.plan.epoch)
        if before.epoch == self.plan.epoch:
            self.standing = before
            if not self.plan.on_cycle:
                known = before.k + (before.receiver < 0)  # where it was acknowledged, what was made of the last one too
                self._taken, self._safe = self.journal.last_on_links(before.epoch, known)
        else:  # what was sent in an epoch before is of no use
            self.holder.held.summed = 0
            self.holder.held.signatures = b""
            self.holder.held.wished = False
            self.holder.held.reason = None
            self.holder.held.estimate = None
            if self.holder.asking is not None and self.holder.local.sums:
                # Other rows have other means and deviations, and the last point was in units of those.
                self.holder.held.told, self.holder.asking.held.place = (), None

    def _take_up_questions(self, asking: Asking) -> None:
        """The questions of this epoch, and where this member answered in earlier ones."""
        journal, epoch = self.journal, self.plan.epoch
        answered = journal.questions(epoch)
        asking.held.take_up(answered, sum(asking.asked(one.kind) for one in answered))
        asking.on_disk = lambda: journal.totals(epoch)
        asking.elsewhere = []
        for before in range(epoch):
            answered = journal.questions(before)
            start = asking.start() if answered and before == 0 else None  # later epochs tell where they begin
            asking.elsewhere += places_of(answered, self.plan, start)

    # ------------------------------------------------------------ what others see

    @property
    def outgoing(self) -> tuple[int, bytes] | None:
        """Who is to be sent what; None where there is nothing to send, or it has been acknowledged."""
        standing = self.standing
        return None if self.acknowledged or standing.receiver < 0 else (standing.receiver, standing.outgoing)

    @property
    def earlier(self) -> bytes:
        """What was sent a lap ago, where the next member may have lost it."""
        return self.standing.earlier

    @property
    def may_start(self) -> bool:
        """Whether it is for this agent to start the epoch."""
        return self.standing.k < 0 and self.plan.order[0] == self.me

    @property
    def finished(self) -> bool:
        """Whether the run is over for this agent and nobody waits for it."""
        return self.holder.finished and self.outgoing is None and not self._hands_on_again

    @property
    def _hands_on_again(self) -> bool:
        """Whether the end that was sent on passes here once more, on a lap that meets this member twice, for others to have it."""
        sent = self.standing.outgoing
        if len(self.plan.order) == self.plan.agents or not sent:
            return False
        baton = unpack_baton(memoryview(sent)[HEADER_BYTES:], self.holder.layout)
        order, works = self.holder.lap_of(baton.phase, baton.origin, baton.hop)
        last = int(np.flatnonzero(works)[-1])
        return baton.phase == Phase.DONE and self.me in order[baton.step : last]

    # ------------------------------------------------------------ greetings

    def greeting(self, peer: int) -> bytes:
        """What a neighbour is told when a link comes up: which ring file was accepted here, and what crossed the link last."""
        taken, sent = self._taken.get(peer, -1), self._safe.get(peer, -1)
        if self.standing.receiver == peer:
            sent = self.standing.sent_k
        return self.holder.ring + _COUNTERS.pack(taken, sent)

    def check_greeting(self, peer: int, frame: Frame) -> None:
        """Refuse a neighbour that has another ring file, or whose memory of the link is older than this member's, or newer."""
        if frame.epoch != self.plan.epoch:
            return  # one of the two has yet to move on
        name, own = self.plan.members[peer].name, len(self.holder.ring)
        if len(frame.body) != own + _COUNTERS.size:
            raise BatonError(f"The greeting of {name} has {len(frame.body)} bytes instead of {own + _COUNTERS.size}.")
        if frame.body[:own] != self.holder.ring:
            raise BatonError(
                f"{name} has accepted another ring file of epoch {self.plan.epoch}: compare the digests (roundelay ring show) of all "
                "sites, and find out who sent which file."
            )
        taken, sent = _COUNTERS.unpack(frame.body[own:])
        # On a cycle every counter has its place, and a journal that went back is noticed by that.
        if not self.plan.on_cycle and (taken < self._safe.get(peer, -1) or sent < self._taken.get(peer, -1)):
            raise BatonError(
                f"{name} does not remember all that crossed the link to this site: its folder was put back to an older state, and the fit "
                f"can't go on with it. Let the members drop {name}, and let it join anew."
            )

    # ------------------------------------------------------------ receipts

    def receipt(self, peer: int) -> bytes:
        """What crossed the link to a neighbour since the last time, signed, for it to keep; empty where there is nothing to sign.

        Long vectors are not kept, so that there would be little to sign.
        """
        if self.heavy:
            return b""
        receipt = self._receipts.give(peer, self._safe.get(peer, -1), self._taken.get(peer, -1))
        return b"" if receipt is None else receipt.pack()

    def keep_receipt(self, peer: int, body: bytes) -> None:
        """Keep what a neighbour has signed of the link, also where it is not what crossed it: then the agent stops."""
        receipt = Receipt.read(body)
        try:
            if self._receipts.check(peer, receipt):
                self.journal.keep_receipt(self.plan.epoch, peer, body)
        except OtherHandOversError:
            self.journal.keep_receipt(self.plan.epoch, peer, body)
            raise

    # ------------------------------------------------------------ the protocol

    def judge(self, sender: int, frame: Frame) -> Verdict:
        """Whether a baton is new. One that no honest neighbour can have sent is refused in words."""
        if frame.epoch != self.plan.epoch:
            return Verdict.OLD_EPOCH if frame.epoch < self.plan.epoch else Verdict.NEW_EPOCH
        if frame.k <= self.standing.k:
            if frame.k == self.standing.k and frame.checksum != self.standing.taken:
                raise BatonError(
                    f"There are two different batons with the counter {frame.k}: the sender went back to an older state."
                )
            return Verdict.KNOWN
        if self._is_ahead(frame.k):
            return Verdict.AHEAD
        self._check_counter(sender, frame.k)
        return Verdict.NEW

    def acknowledge(self, epoch: int, k: int) -> bool:
        """Note that the receiver has hand-over k. An ack of another epoch means nothing."""
        if epoch != self.plan.epoch or k != self.standing.sent_k or self.acknowledged:
            return False
        self.acknowledged = True
        self.standing = self.standing._replace(earlier=b"")
        if self.holder.finished:
            # After a restart it must not wait for a neighbour that has ended. What that one has is remembered.
            self._safe[self.standing.receiver] = k
            self.standing = self.standing._replace(receiver=-1)
            self._write()
        return True

    def read(self, frame: Frame) -> Baton:
        """The baton of a frame, checked before it touches anything."""
        baton = unpack_baton(frame.body, self.holder.layout)
        self.holder.check(baton, self._last_sent())
        return baton

    def keep(self, sender: int, data: bytes, frame: Frame) -> None:
        """Journal a baton before it is worked on, where that will take long."""
        self._kept = frame.k
        self.reached(Point.BEFORE_SYNC)
        self.journal.keep_inbox(frame.epoch, frame.k, sender, data)
        self.reached(Point.AFTER_SYNC)

    def kept(self) -> list[tuple[int, bytes]]:
        """Batons of this epoch that were journalled, and worked on after the last settled state, if at all."""
        run = self.plan.run_bytes
        return [one for one in self.journal.inbox() if unpack_frame(one[1], run).epoch == self.plan.epoch]

    def catch_up(self) -> None:
        """Work on all that was kept, right after opening: so an agent ends an epoch in which it died."""
        for sender, data in self.kept():
            frame = unpack_frame(data, self.plan.run_bytes)
            self._kept = frame.k
            self.work(sender, frame, self.read(frame))
        self.close()

    def close(self) -> None:
        """Write the state, where it is not the one on disk: before the agent moves on to another epoch."""
        if self._unsettled:
            self._write()

    def start(self) -> None:
        """Start the epoch; on disk when this returns."""
        self._made(self.holder.first(), 0, 0, -1, None, b"")
        self._settle()

    def work(self, sender: int, frame: Frame, baton: Baton) -> None:
        """Do this member's part. What was sent before is on the next member's disk, or is held for a lap more."""
        earlier = self.standing.outgoing if self.implicit and self.outgoing is not None else b""
        if self.heavy:  # it need not be there beside the new one
            self.standing = self.standing._replace(receiver=-1, outgoing=b"", state=None)
        self._made(self.holder.act(baton), frame.k, frame.checksum, sender, baton, earlier)

    @property
    def sends_first(self) -> bool:
        """Whether what was made of the last baton is sent on before it is on disk."""
        return self.implicit and self._hopped and self.holder.repeatable

    @property
    def returns(self) -> bool:
        """Whether the token will come back and acknowledge what was made of the last baton."""
        return self.implicit and self._hopped

    @property
    def follows(self) -> bool:
        """Whether a large state need not be written, since it follows from the baton that was kept."""
        return self.heavy and self._hopped and self.holder.repeatable and self._kept == self.standing.k

    def secure(self) -> None:
        """Have on disk what was made of a baton."""
        if not self.follows:
            self._settle()

    def settle_some(self) -> None:
        """Now and then write a large state too, so that few hops have to be made again after a crash."""
        if len(self._unsettled) >= SETTLE_EVERY:
            self._settle()

    # ------------------------------------------------------------ the rest

    def _made(
        self, move: HandOver | None, k: int, taken: int, sender: int, baton: Baton | None, earlier: bytes
    ) -> None:
        """Note what came of a baton, in memory."""
        plan, held = self.plan, self.holder.held
        if self.standing.receiver >= 0:
            self._safe[self.standing.receiver] = self.standing.sent_k  # since the baton is back
        if sender >= 0:
            self._taken[sender] = k
        receiver, sent_k, data = -1, -1, b""
        if move is not None:
            receiver, sent_k = move.receiver, k + 1
            data = pack_frame(Kind.BATON, plan.run_bytes, plan.epoch, sent_k, *pack_baton(move.baton, plan.agents))
        sent = None if move is None else move.baton
        self.standing = Standing(plan.epoch, k, taken, receiver, sent_k, data, earlier, None)
        self.acknowledged, self._ahead = False, 0
        self._hopped = _is_hop(baton, sent)
        self._unsettled.append(
            Passage(
                plan.epoch, k, sent_k, _phase(baton), _phase(sent), held.hop, sender, receiver, taken,
                _numbers(baton), _numbers(sent),
            )
        )  # fmt: skip

    def _settle(self) -> None:
        self.reached(Point.BEFORE_SYNC)
        self._write()
        self.reached(Point.AFTER_SYNC)

    def _write(self) -> None:
        asking = self.holder.asking
        changed = () if asking is None else [asking.held.answered[number] for number in sorted(asking.held.changed)]
        cards = b"" if self.holder.held.cards == self._cards else self.holder.held.cards
        self.journal.settle(self.standing._replace(state=record_of(self.holder)), self._unsettled, changed, cards)
        self._unsettled, self._cards = [], self.holder.held.cards
        if asking is not None:
            asking.held.written()

    def _check_counter(self, sender: int, k: int) -> None:
        """On a lap every hand-over has its place; on a random walk the counter only rises."""
        if sender not in self.plan.neighbours[self.me]:
            raise BatonError("It comes from a member that is not a neighbour of this one.")
        if not self.plan.on_cycle:
            if k > HIGHEST:
                raise BatonError(f"The baton has the counter {k}, to which no ring comes: it was forged.")
            return
        order, expected = self.plan.order, self._expected()
        if k != expected or order[(k - 1) % len(order)] != sender:
            raise BatonError(
                f"The baton has the counter {k}, but the next one for this member is {expected}, from "
                f"{self.plan.members[order[(expected - 1) % len(order)]].name}. A counter was forged, or a journal is older "
                "than the ring."
            )

    def _is_ahead(self, k: int) -> bool:
        """Whether the baton before this one is on its way; not for ever, where the neighbour does not have it any more."""
        if not self.implicit or k != self._expected() + len(self.plan.order):
            return False
        self._ahead += 1
        return self._ahead <= PATIENT

    def _expected(self) -> int:
        """The counter of the next hand-over for this member, on a lap."""
        following = max(self.standing.k, 0) + 1
        return following + min((place - following) % len(self.plan.order) for place in self._places)

    def _last_sent(self) -> Vector | None:
        """The token as this agent sent it on last: a view of the frame, since it may be large."""
        if not self.standing.outgoing:
            return None
        return token_in(memoryview(self.standing.outgoing)[HEADER_BYTES:], self.holder.layout)


def _is_hop(taken: Baton | None, sent: Baton | None) -> bool:
    """Whether a hop was made, or a question answered: what comes of it follows from what was taken.

    Where a question is closed and the next one asked, the optimiser has a word in it too.
    """
    if taken is None or sent is None or taken.phase != sent.phase:
        return False
    return taken.phase == Phase.ITERATE or (taken.phase == Phase.ASK and taken.hop == sent.hop)


def _phase(baton: Baton | None) -> int:
    return -1 if baton is None else int(baton.phase)


def _numbers(baton: Baton | None) -> bytes | None:
    """The token of a baton, where it is short enough to be kept with the visit."""
    if baton is None or len(baton.numbers) > KEPT:
        return None
    return np.ascontiguousarray(baton.numbers).tobytes()
