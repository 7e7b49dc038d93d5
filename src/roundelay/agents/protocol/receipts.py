"""What crossed a link, signed by both ends: so that nobody can show another journal afterwards than the one that he kept.

A signature with each hand-over would take longer than the hop. So each end gives the other a receipt now and then, and before it signs the
end of a run: what I have handed to you up to this counter, and taken from you up to that one, has these digests. Digests are of what
journals keep of a hand-over, its counter, phase and numbers, and are worked out from the journal alone when they are wanted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from roundelay.agents.protocol.baton import BatonError
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.protocol.signing import SIGNATURE, Checker, Signer, receipt_statement

_ENTRY = struct.Struct("<qqq")
_BODY = struct.Struct(f"<qq32s32s{SIGNATURE}s")
RECEIPT_BYTES = _BODY.size
NOTHING = -1


class Receipt(NamedTuple):
    """One end's word: what it has given up to a counter, and taken up to a counter; NOTHING where there is none."""

    given: int
    taken: int
    gave: bytes
    took: bytes
    signature: bytes

    def pack(self) -> bytes:
        """The bytes of it."""
        return _BODY.pack(*self)

    @staticmethod
    def read(body: bytes | memoryview) -> Receipt:
        """Read what `pack` made."""
        if len(body) != RECEIPT_BYTES:
            raise BatonError(f"The receipt has {len(body)} bytes instead of {RECEIPT_BYTES}.")
        return Receipt(*_BODY.unpack(body))

    def statement(self, ring: bytes, epoch: int, signer: str, peer: str) -> bytes:
        """What is signed."""
        return receipt_statement(ring, epoch, signer, peer, self.given, self.taken, self.gave, self.took)


class OtherHandOversError(RuntimeError):
    """A neighbour has signed that other things crossed the link than are in the journal here."""


@dataclass(eq=False)
class _Way:
    """One direction of a link: a running digest, and the last hand-over in it."""

    last: int = NOTHING
    digest: Any = field(default_factory=sha256)

    def add(self, k: int, phase: int, numbers: bytes | None) -> None:
        content = numbers or b""
        self.last = k
        self.digest.update(_ENTRY.pack(k, phase, len(content)))
        self.digest.update(content)

    def copy(self) -> _Way:
        return _Way(self.last, self.digest.copy())


@dataclass(eq=False)
class OneEnd:
    """What one end of a link has journalled, both ways, up to two counters."""

    peer: int
    given: _Way = field(default_factory=_Way)
    taken: _Way = field(default_factory=_Way)

    def up_to(self, given: int, taken: int, passages: Iterable[Passage]) -> OneEnd:
        """The same with what came later, of these passages in order."""
        on = OneEnd(self.peer, self.given.copy(), self.taken.copy())
        for one in passages:
            if one.sender == self.peer and on.taken.last < one.k <= taken:
                on.taken.add(one.k, one.phase, one.received)
            if one.receiver == self.peer and on.given.last < one.sent_k <= given:
                on.given.add(one.sent_k, one.sent_phase, one.sent)
        return on

    @property
    def since(self) -> int:
        """What has been taken after this may count; what is sent on has the next counter."""
        return min(self.given.last - 1, self.taken.last)

    @property
    def digests(self) -> tuple[bytes, bytes]:
        """Of what was given, and of what was taken."""
        return self.given.digest.digest(), self.taken.digest.digest()


@dataclass(eq=False)
class Receipts:
    """Those that one member gives, and those that it checks: of this epoch, with each neighbour.

    `passages` gives what stands in the journal behind a counter, and `kept` has the last receipt of each neighbour: an older one, sent
    again after a restart, would stand in its place and sign less.
    """

    ring: bytes
    epoch: int
    names: Sequence[str]
    me: int
    signer: Signer
    passages: Callable[[int], Iterable[Passage]]
    kept: Mapping[int, Receipt] = field(default_factory=dict)
    _signed: dict[int, OneEnd] = field(default_factory=dict)
    _checked: dict[int, OneEnd] = field(default_factory=dict)

    def give(self, peer: int, given: int, taken: int) -> Receipt | None:
        """A receipt for a neighbour; None where nothing has crossed since the last one, or not all of it is on disk."""
        before = self._signed.get(peer, OneEnd(peer))
        if given <= before.given.last and taken <= before.taken.last:
            return None
        now = self._up_to(peer, given, taken)
        if (now.given.last, now.taken.last) != (given, taken):
            return None
        self._signed[peer] = now
        unsigned = Receipt(given, taken, *now.digests, b"")
        return unsigned._replace(signature=self.signer.sign(self._statement(unsigned, self.me, peer)))

    def check(self, peer: int, receipt: Receipt) -> bool:
        """Whether a neighbour's receipt is worth keeping: signed, newer than the one before, and of what is in the journal here.

        One that is signed and says otherwise than the journal is worth keeping too, and raises.
        """
        before, after = self._checked.get(peer, OneEnd(peer)), (receipt.taken, receipt.given)
        last = before.given.last, before.taken.last
        if peer in self.kept:
            last = max(last[0], self.kept[peer].taken), max(last[1], self.kept[peer].given)
        older = after == last or after[0] < last[0] or after[1] < last[1]
        if older or not self.signer.is_signed(peer, self._statement(receipt, peer, self.me), receipt.signature):
            return False
        now = self._up_to(peer, *after)
        if (now.given.last, now.taken.last) != after:
            return False  # of what is not on disk here yet, or never was
        if now.digests != (receipt.took, receipt.gave):
            raise OtherHandOversError(
                f"{self.names[peer]} has signed that other things crossed the link to this site than those in the journal here: one of the "
                "two folders was changed or put back to an older state. Nothing more is handed over. Compare the journals of all sites that "
                "agree to it by roundelay ring compare."
            )
        self._checked[peer] = now
        return True

    def _up_to(self, peer: int, given: int, taken: int) -> OneEnd:
        """What is in the journal up to there; most often both ends sign at the same place, and it is read once for both."""
        ends = [OneEnd(peer), *(known[peer] for known in (self._signed, self._checked) if peer in known)]
        last = max(
            (one for one in ends if one.given.last <= given and one.taken.last <= taken),
            key=lambda one: one.given.last + one.taken.last,
        )
        if (last.given.last, last.taken.last) == (given, taken):
            return last
        return last.up_to(given, taken, self.passages(last.since))

    def _statement(self, receipt: Receipt, signer: int, peer: int) -> bytes:
        return receipt.statement(self.ring, self.epoch, self.names[signer], self.names[peer])


def is_receipt_of(
    signer: int, peer: int, receipt: Receipt, checker: Checker, ring: bytes, epoch: int, names: Sequence[str]
) -> bool:
    """Whether a member has signed this receipt for a neighbour."""
    statement = receipt.statement(ring, epoch, names[signer], names[peer])
    return checker.is_signed(signer, statement, receipt.signature)
