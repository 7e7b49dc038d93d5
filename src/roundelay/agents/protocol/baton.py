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


class Phase(IntEnum):
    """What the receiver is to do with the baton.

    A lap of SUM gathers words under masks that cancel, and one of TELL hands the total round where all need it. Then
    the token goes round (ITERATE). Where all have been content, one lap of FROZEN asks everybody again, and one of
    DONE ends the run. In a ring of sealed laps each lap of ASK is one question, with the words of its sum.
    """

    SUM = 0
    TELL = 1
    ITERATE = 2
    FROZEN = 3
    DONE = 4
    ASK = 5


class Reason(IntEnum):
    """Why a run is done: `purpose` of a baton in the phase DONE."""

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
    vector, or words in a lap of SUM; in one of ASK what is told, as words, and the words of the sum.
    """

    phase: Phase
    hop: int
    origin: int
    step: int
    purpose: int
    content: int
    numbers: NDArray[Any]


class BatonError(ValueError):
    """A message that is no baton of this ring, for the reason that the sentence gives."""


_HEAD = struct.Struct("<BBHIIIQ")
_WORD = 8
FEW = 64
_PHASES = {int(phase): phase for phase in Phase}


@dataclass(frozen=True)
class Layout:
    """How many numbers a baton has: `token` where the token goes round, or at the end; words[j] and told[j] for sum j.

    `questions` has those of a question by its purpose, in a ring of sealed laps.
    """

    agents: int
    token: int
    words: tuple[int, ...]
    told: tuple[int, ...]
    questions: Mapping[int, int] = field(default_factory=dict)

    def numbers(self, phase: Phase, purpose: int) -> int | None:
        """How many numbers belong into a baton; None where there is no such baton."""
        if phase == Phase.ASK:
            return self.questions.get(purpose)
        if self.questions and phase in (Phase.ITERATE, Phase.FROZEN):
            return None
        if phase not in (Phase.SUM, Phase.TELL):
            return self.token
        each = self.words if phase == Phase.SUM else self.told
        return each[purpose] if purpose < len(each) else None

    @property
    def largest(self) -> int:
        """The bytes of the largest baton."""
        return baton_size(self.agents, max(self.token, *self.words, *self.told, *self.questions.values()))

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
    numbers = np.ascontiguousarray(baton.numbers, kind)
    return head + baton.content.to_bytes(content_bytes(agents), "little"), numbers.reshape(-1).data.cast("B")


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
    if len(body) - start != _WORD * expected:
        raise BatonError(
            f"The baton has {len(body) - start} bytes of numbers instead of {_WORD * expected}: another dimension."
        )
    if origin >= agents:
        raise BatonError(f"The baton's lap began at member {origin}, but there are {agents}.")
    content = int.from_bytes(body[_HEAD.size : start], "little")
    if content >> agents:
        raise BatonError("The baton says that members are content which do not exist.")
    numbers = np.frombuffer(body[start:], "<u8" if phase in WORDS else "<f8")
    if phase not in WORDS and not all_finite(numbers):
        raise BatonError("The baton has a number that is not finite.")
    return Baton(_PHASES[phase], hop, origin, step, purpose, content, numbers)


def token_in(body: memoryview, layout: Layout) -> NDArray[np.float64] | None:
    """The token that a baton of this agent's own carries, without another look at it; None in other laps."""
    if body[0] not in (Phase.ITERATE, Phase.FROZEN):
        return None
    return np.frombuffer(body[_HEAD.size + content_bytes(layout.agents) :], "<f8")


def all_finite(numbers: NDArray[np.float64]) -> bool:
    """Whether all are finite; for few numbers without NumPy, which would take longer."""
    return all(map(math.isfinite, numbers.tolist())) if len(numbers) <= FEW else bool(np.isfinite(numbers).all())
