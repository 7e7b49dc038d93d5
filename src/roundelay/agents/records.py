"""What an agent keeps of itself, as bytes for its own journal: never for a link."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.baton import Reason
from roundelay.agents.member import Held


class DamagedError(ValueError):
    """The journal does not hold what was written to it."""


@dataclass(frozen=True, eq=False)
class Record:
    """A list of vectors and a few plain values: all that has to outlive the process."""

    about: bytes
    vectors: tuple[NDArray[np.float64], ...]

    def pieces(self) -> list[bytes | memoryview]:
        """The bytes, in pieces, so that long vectors are not copied."""
        lengths = [len(vector) for vector in self.vectors]
        head = struct.pack(f"<QQ{len(lengths)}Q", len(self.about), len(lengths), *lengths)
        vectors = [np.ascontiguousarray(vector, "<f8").data.cast("B") for vector in self.vectors]
        return [head + self.about, *vectors]

    @staticmethod
    def read(data: bytes | memoryview) -> Record:
        """Read what `pieces` made."""
        try:
            about, count = struct.unpack_from("<QQ", data)
            begin = 16 + 8 * count
            lengths = struct.unpack_from(f"<{count}Q", data, 16) if begin <= len(data) else ()
            numbers = np.frombuffer(data[begin + about :], "<f8")
            if len(numbers) != sum(lengths):
                raise ValueError("lengths")
            vectors = tuple(np.array(part) for part in np.split(numbers, np.cumsum(lengths)[:-1]))
            return Record(bytes(data[begin : begin + about]), vectors)
        except (ValueError, TypeError, IndexError, OverflowError, struct.error) as error:
            raise DamagedError(f"a record can't be read ({error})") from None


# begun, visits, summed, largest jump, hop, ended by, reason (−1: none), whether there is an estimate
_ABOUT = struct.Struct("<qqqdqqqq")


def record_of(held: Held, me: int) -> Record:
    """What is held, without the rows that are not this agent's."""
    about = _ABOUT.pack(
        held.begun, held.visits, held.summed, held.largest_jump, held.hop, held.ended_by,
        -1 if held.reason is None else held.reason, held.estimate is not None,
    )  # fmt: skip
    estimate = () if held.estimate is None else (held.estimate,)
    return Record(about, (held.x[me], held.y[me], held.share[me], *estimate, *held.told))


def take_up(held: Held, me: int, record: Record) -> None:
    """Fill in what was held when the record was made."""
    try:
        begun, visits, summed, largest_jump, hop, ended_by, reason, has_estimate = _ABOUT.unpack(record.about)
    except struct.error as error:
        raise DamagedError(f"a record can't be read ({error})") from None
    own, rest = record.vectors[:3], record.vectors[3:]
    held.x[me], held.y[me], held.share[me] = own
    held.begun, held.visits, held.summed, held.largest_jump = bool(begun), visits, summed, largest_jump
    held.hop, held.ended_by = hop, ended_by
    held.reason = None if reason < 0 else Reason(reason)
    held.estimate = rest[0] if has_estimate else None
    held.told = tuple(rest[1:] if has_estimate else rest)
