"""What an agent keeps of itself, as bytes for its own journal: never for a link."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.baton import Reason
from roundelay.agents.member import Held
from roundelay.kernels import Vector


class DamagedError(ValueError):
    """The journal does not hold what was written to it."""


@dataclass(frozen=True, eq=False)
class Record:
    """A list of vectors and a few plain values: all that has to outlive the process."""

    about: str
    vectors: tuple[NDArray[np.float64], ...]

    def pieces(self) -> list[bytes | memoryview]:
        """The bytes, in pieces, so that long vectors are not copied."""
        head = json.dumps([self.about, [len(vector) for vector in self.vectors]]).encode()
        head += b" " * (-(len(head) + 8) % 8)
        vectors = [np.ascontiguousarray(vector, "<f8").data.cast("B") for vector in self.vectors]
        return [len(head).to_bytes(8, "little") + head, *vectors]

    @staticmethod
    def read(data: bytes | memoryview) -> Record:
        """Read what `pieces` made."""
        try:
            end = 8 + int.from_bytes(data[:8], "little")
            about, lengths = json.loads(bytes(data[8:end]))
            numbers = np.frombuffer(data[end:], "<f8")
            if len(numbers) != sum(lengths):
                raise ValueError("lengths")
            return Record(about, tuple(np.array(part) for part in np.split(numbers, np.cumsum(lengths)[:-1])))
        except (ValueError, TypeError, IndexError) as error:
            raise DamagedError(f"a record can't be read ({error})") from None


def record_of(held: Held, me: int) -> Record:
    """What is held, without the rows that are not this agent's."""
    plain = [
        held.begun, held.visits, held.summed, held.largest_jump, held.hop, held.ended_by,
        None if held.reason is None else int(held.reason), held.estimate is not None,
    ]  # fmt: skip
    estimate = () if held.estimate is None else (held.estimate,)
    return Record(json.dumps(plain), (held.x[me], held.y[me], held.share[me], *estimate, *held.told))


def take_up(held: Held, me: int, record: Record) -> None:
    """Fill in what was held when the record was made."""
    begun, visits, summed, largest_jump, hop, ended_by, reason, has_estimate = json.loads(record.about)
    own, rest = record.vectors[:3], record.vectors[3:]
    held.x[me], held.y[me], held.share[me] = own
    held.begun, held.visits, held.summed, held.largest_jump = begun, visits, summed, largest_jump
    held.hop, held.ended_by = hop, ended_by
    held.reason = None if reason is None else Reason(reason)
    held.estimate = rest[0] if has_estimate else None
    held.told = tuple(rest[1:] if has_estimate else rest)


def quick_sum(pieces: list[bytes | memoryview]) -> int:
    """A checksum at the speed of memory, against torn and stale pages: the sum of all words, modulo 2⁶⁴."""
    total = 0
    for piece in pieces:
        whole = len(piece) // 8 * 8
        words: Vector = np.frombuffer(piece[:whole], "<u8")
        total += int(words.sum(dtype=np.uint64)) + int.from_bytes(piece[whole:], "little")
    return total % 2**64 - 2**63  # every bit counts, and SQLite can hold it
