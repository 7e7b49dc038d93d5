"""The lap before the first hop in which a sum is formed that nobody can read on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers, Vector
from roundelay.kernels.random import Words
from roundelay.masks import FixedPoint


@dataclass(frozen=True, eq=False)
class SealedLap:
    """One row a message, as words modulo 2⁶⁴: the sum, so far, of what `agents` agents added under their masks.

    `place` counts the messages of the lap, of which there are `length`. All but the last are uniform to whoever lacks
    the masks; in the last these have cancelled, and it holds the total in fixed point with `bits` bits after the
    point. `wire` holds what crossed the link where links are padded besides.
    """

    place: Integers
    sender: Integers
    receiver: Integers
    words: Words
    bits: int
    length: int
    agents: int
    wire: Words | None = None

    def __len__(self) -> int:
        """How many messages there are."""
        return len(self.place)

    def part(self, rows: NDArray[np.bool_]) -> SealedLap:
        """The messages that are marked."""
        wire = None if self.wire is None else self.wire[rows]
        return replace(
            self, place=self.place[rows], sender=self.sender[rows], receiver=self.receiver[rows],
            words=self.words[rows], wire=wire,
        )  # fmt: skip

    def outside(self) -> SealedLap:
        """As it looks to whoever lacks the links' pads."""
        return self if self.wire is None else replace(self, words=self.wire)

    def first_token(self) -> Vector | None:
        """The token that goes round afterwards, total/N; None where the last message is not among these."""
        last = np.flatnonzero(self.place == self.length - 1)
        return FixedPoint(self.bits).decode(self.words[last[0]]) / self.agents if len(last) else None


def sealed_lap(order: Integers, works: NDArray[np.bool_], contributions: Words, bits: int) -> SealedLap:
    """The lap in which the agents of `order` add their contributions where they work, and pass the sum on."""
    added = np.where(works[:, None], contributions[order], np.uint64(0))
    count = len(order)
    return SealedLap(
        np.arange(count), order, np.roll(order, -1), np.cumsum(added, axis=0, dtype=np.uint64), bits, count,
        len(contributions),
    )  # fmt: skip
