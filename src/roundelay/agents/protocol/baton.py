"""What goes round: the token, in the phases of a run."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.protocol.signing import CARD, SIGNATURE


class Phase(IntEnum):
    """What the receiver is to do with the baton.

    In a lap of KEYS every member puts in its key for masks, and in another all are told. A lap of SUM gathers words under
    masks that cancel, and one of TELL hands the total round where all need it. Then the token goes round (ITERATE). In a ring
    of sealed laps each lap of ASK is one question instead, with the words of its sum. In the end one lap of FROZEN asks
    everybody to sign the end, and one of DONE tells that all have.
    """

    SUM = 0
    TELL = 1
    ITERATE = 2
    FROZEN = 3
    DONE = 4
    ASK = 5
    KEYS = 6


# `purpose` of a baton in the phase KEYS.
GATHERED, TOLD = 0, 1


class Reason(IntEnum):
    """Why a run is done: `purpose` of a baton in the phases FROZEN and DONE."""

    CONTENT = 0
    HOPS = 1
    ASKED = 2
    NO_MINIMUM = 3


# Whose numbers are words of a sum, or words behind numbers that are told.
WORDS = (Phase.SUM, Phase.ASK)


class Baton(NamedTuple):
    """One hand-over.

    `hop` is the hop that the receiver makes, in all laps besides the one with which the token will go on; in sealed laps
    the number of the question. `origin` is the member at which a lap began and `step` how many hand-overs it has had.
    `purpose` says which sum it is, what is asked, or why the run is done. `content` has a bit for each member that has been
    content since the last one that was not; in sealed laps for each that wants to stop. `numbers` holds the token, one row a
    vector, or words in a lap of SUM; in one of ASK what is told, as words, and the words of the sum. `beside` has bytes that are
    no numbers: what members have signed, and in a lap of FROZEN the words of the shares' sum.
    """

    phase: Phase
    hop: int
    origin: int
    step: int
    purpose: int
    content: int
    numbers: NDArray[Any]
    beside: bytes = b""


class BatonError(ValueError):
    """A message that is no baton of this ring, for the reason that the sentence gives."""


_HEAD = struct.Struct("<BBHIIIQ")
_WORD = 8
FEW = 64
_PHASES = {int(phase): phase for phase in Phase}
_REASONS = frozenset(Reason)


@dataclass(frozen=True)
class Layout:
    """How many numbers a baton has: `token` where the token goes round or is frozen, `done` at the end; words[j] and told[j] for sum j.

    `questions` has those of a question by its purpose, in a ring of sealed laps. `shares` is how many words the sum of the shares
    has that goes round with a frozen token.
    """

    agents: int
    token: int
    done: int
    words: tuple[int, ...]
    told: tuple[int, ...]
    questions: Mapping[int, int] = field(default_factory=dict)
    shares: int = 0

    def numbers(self, phase: Phase, purpose: int) -> int | None:
        """How many numbers belong into a baton; None where there is no such baton."""
        if phase == Phase.ASK:
            return self.questions.get(purpose)
        if phase == Phase.KEYS:
            return 0 if purpose in (GATHERED, TOLD) else None
        if phase in (Phase.FROZEN, Phase.DONE):
            return None if purpose not in _REASONS else self.token if phase == Phase.FROZEN else self.done
        if phase == Phase.ITERATE:
            return None if self.questions else self.token
        each = self.words if phase == Phase.SUM else self.told
        return each[purpose] if purpose < len(each) else None

    def beside(self, phase: Phase) -> int:
        """How many bytes stand beside the numbers."""
        if phase == Phase.KEYS:
            return CARD * self.agents
        if phase == Phase.TELL:
            return SIGNATURE
        if phase == Phase.FROZEN:
            return SIGNATURE * self.agents + _WORD * self.shares
        return SIGNATURE * self.agents if phase == Phase.DONE else 0

    @property
    def largest(self) -> int:
        """The bytes of the largest baton."""
        most = max(self.token, self.done, *self.words, *self.told, *self.questions.values())
        return baton_size(self.agents, most) + max(map(self.beside, Phase))

    @property
    def usual(self) -> int:
        """The bytes of the batons that there are most of."""
        return baton_size(self.agents, max(self.questions.values(), default=self.token))


def content_bytes(agents: int) -> int:
    """How many bytes the bits of all members take, a multiple of 8, so that the numbers stay aligned."""
    return -(-agents // (8 * _WORD)) * _WORD


def baton_size(agents: int, numbers: int) -> int:
    """How many bytes a baton with so many numbers takes."""
    return _HEAD.size + content_bytes(agents) + _WORD * numbers


def pack_baton(baton: Baton, agents: int) -> tuple[bytes, memoryview]:
    """The baton in two pieces, so that a long vector need not be copied behind its head."""
    head = _HEAD.pack(baton.phase, baton.purpose, 0, baton.origin, baton.step, 0, baton.hop)
    kind = "<u8" if baton.phase in WORDS else "<f8"
    numbers = np.ascontiguousarray(baton.numbers, kind).reshape(-1).data.cast("B")
    rest = memoryview(b"".join((numbers, baton.beside))) if baton.beside else numbers
    return head + baton.content.to_bytes(content_bytes(agents), "little"), rest


def unpack_baton(body: memoryview, layout: Layout) -> Baton:
    """Read a baton, which must be just as large as the ring's agreement makes it."""
    agents = layout.agents
    start = _HEAD.size + content_bytes(agents)
    if len(body) < start:
        raise BatonError(f"The baton has {len(body)} bytes, but its head alone has {start}.")
    phase, purpose, spare, origin, step, more, hop = _HEAD.unpack_from(body)
    if phase not in _PHASES or spare or more:
        raise BatonError(f"The baton has an unknown phase, {phase}.")
    expected = layout.numbers(_PHASES[phase], purpose)
    if expected is None:
        raise BatonError(f"The baton is of a kind, {_PHASES[phase].name} {purpose}, which this ring does not have.")
    end, beside = start + _WORD * expected, layout.beside(_PHASES[phase])
    if len(body) != end + beside:
        raise BatonError(
            f"The baton has {len(body) - start} bytes of numbers instead of {end + beside - start}: another dimension."
        )
    if origin >= agents:
        raise BatonError(f"The baton's lap began at member {origin}, but there are {agents}.")
    content = int.from_bytes(body[_HEAD.size : start], "little")
    if content >> agents:
        raise BatonError("The baton says that members are content which do not exist.")
    numbers = np.frombuffer(body[start:end], "<u8" if phase in WORDS else "<f8")
    if phase not in WORDS and not all_finite(numbers):
        raise BatonError("The baton has a number that is not finite.")
    return Baton(_PHASES[phase], hop, origin, step, purpose, content, numbers, bytes(body[end:]))


def token_in(body: memoryview, layout: Layout) -> NDArray[np.float64] | None:
    """The token that a baton of this agent's own carries, without another look at it; None in other laps."""
    if body[0] not in (Phase.ITERATE, Phase.FROZEN):
        return None
    start = _HEAD.size + content_bytes(layout.agents)
    return np.frombuffer(body[start : start + _WORD * layout.token], "<f8")


def all_finite(numbers: NDArray[np.float64]) -> bool:
    """Whether all are finite; for few numbers without NumPy, which would take longer."""
    return all(map(math.isfinite, numbers.tolist())) if len(numbers) <= FEW else bool(np.isfinite(numbers).all())
