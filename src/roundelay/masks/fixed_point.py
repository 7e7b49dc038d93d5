"""Numbers as words modulo 2⁶⁴ or 2¹²⁸: sums wrap around, so that a word under a uniform mask is uniform itself and tells nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import Words


class Grid(Protocol):
    """How numbers stand in words that are summed."""

    @property
    def words(self) -> int:
        """How many words a number has."""

    def check(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> None:
        """Refuse numbers of which `terms` like the largest would leave the range."""

    def encode(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> Words:
        """The words of a vector of numbers, or of each row of a matrix, of which `terms` are to be summed."""

    def decode(self, words: Words) -> NDArray[np.float64]:
        """The numbers that words stand for."""

    def add(self, one: Words, other: Words) -> Words:
        """The words of the sum."""

    def negative(self, words: Words) -> Words:
        """The words that add up to 0 with these."""

    def total(self, rows: Words) -> Words:
        """The words of the sum of all rows, of which there are fewer than 2³²."""


# A word is read as a number from −2⁶³ to 2⁶³ − 1.
HALF_BITS = 63
# A double holds whole numbers up to 2⁵³: totals below it come back to the last digit.
EXACT_BITS = 53


@dataclass(frozen=True)
class FixedPoint:
    """Multiples of 2^−`bits`, as words modulo 2⁶⁴: v ↦ round(v·2^bits). The range is ±2^(63 − bits)."""

    bits: int
    words: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 <= whole_number("bits", self.bits) <= 62:
            raise ValueError(f"bits is {self.bits}: use a whole number from 0 to 62.")

    @staticmethod
    def for_bound(bound: float, terms: int = 1) -> FixedPoint:
        """The finest grid on which `terms` numbers of at most this public `bound` can be summed to the last digit."""
        finite_number("bound", bound, above=0.0)
        whole_number("terms", terms, least=1)
        bits = EXACT_BITS - 1 - math.ceil(math.log2(bound * terms))
        if bits < 0:
            raise ValueError(
                f"The sum of {terms} numbers up to {bound:g} does not fit a word in fixed point: make their scale smaller."
            )
        return FixedPoint(min(bits, 62))

    @property
    def grid(self) -> float:
        """The distance between two neighbouring numbers."""
        return math.ldexp(1.0, -self.bits)

    @property
    def limit(self) -> float:
        """Numbers, and sums, must stay below this."""
        return math.ldexp(1.0, HALF_BITS - self.bits)

    def check(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> None:
        """Refuse numbers of which `terms` like the largest would leave the range."""
        largest = float(np.abs(values).max(initial=0.0))
        if not largest * terms < self.limit - self.grid:
            several = "" if terms == 1 else f" and {terms} such are summed"
            raise ValueError(
                f"{what} is {largest:g}{several}, which fixed point with {self.bits} bits after the point can't hold: "
                f"use fewer bits, so that {largest * terms:g} lies below 2^(63 − bits)."
            )

    def encode(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> Words:
        """The words of numbers, each rounded to the grid."""
        self.check(values, terms, what)
        return np.rint(np.ldexp(np.asarray(values, np.float64), self.bits)).astype(np.int64).view(np.uint64)

    def decode(self, words: Words) -> NDArray[np.float64]:
        """The numbers that words stand for."""
        return np.ldexp(np.ascontiguousarray(words).view(np.int64).astype(np.float64), -self.bits)

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers on the grid."""
        return self.decode(self.encode(values))

    def add(self, one: Words, other: Words) -> Words:
        """The words of the sum."""
        return one + other

    def negative(self, words: Words) -> Words:
        """The words that add up to 0 with these."""
        return np.uint64(0) - words

    def total(self, rows: Words) -> Words:
        """The words of the sum of all rows."""
        return rows.sum(axis=0, dtype=np.uint64)


# Beyond this a sum of two thousand million numbers might leave the range.
WIDEST = math.ldexp(1.0, 62)


@dataclass(frozen=True)
class WideFixedPoint:
    """Multiples of 2⁻⁶⁴ from −2⁶² to 2⁶², as two words a number modulo 2¹²⁸, the low word first.

    Whatever their units, numbers as people write them are summed to their last digit.
    """

    words: ClassVar[int] = 2

    def check(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> None:
        """Refuse numbers of which `terms` like the largest would leave the range."""
        largest = float(np.abs(values).max(initial=0.0))
        if not largest * terms <= WIDEST:
            # The number is not shown: it is its site's own.
            raise ValueError(
                f"{what} is beyond 2^62 (about 4.6e18), so that it can't be added up exactly: use a larger unit everywhere."
            )

    def encode(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> Words:
        """The words of a vector of numbers, or of each row of a matrix."""
        numbers = np.asarray(values, np.float64)
        self.check(numbers, terms, what)
        size = np.abs(numbers)
        whole = np.floor(size)
        low = np.rint(np.ldexp(size - whole, 64))  # exact but for what lies below the grid
        carried = low >= 2.0**64
        low_words = np.where(carried, 0.0, low).astype(np.uint64)
        high_words = whole.astype(np.uint64) + carried.astype(np.uint64)
        below = numbers < 0.0
        return _joined(
            np.where(below, np.uint64(0) - low_words, low_words),
            np.where(below, ~high_words + (low_words == 0), high_words),
        )

    def decode(self, words: Words) -> NDArray[np.float64]:
        """The numbers that words stand for."""
        low, high = words[..., 0::2], words[..., 1::2]
        below = high >> np.uint64(63) == 1
        low, high = np.where(below, np.uint64(0) - low, low), np.where(below, ~high + (low == 0), high)
        size = high.astype(np.float64) + np.ldexp(low.astype(np.float64), -64)
        return np.where(below, -size, size)

    def add(self, one: Words, other: Words) -> Words:
        """The words of the sum: what overflows below is carried."""
        low = one[..., 0::2] + other[..., 0::2]
        return _joined(low, one[..., 1::2] + other[..., 1::2] + (low < one[..., 0::2]))

    def negative(self, words: Words) -> Words:
        """The words that add up to 0 with these."""
        low = words[..., 0::2]
        return _joined(np.uint64(0) - low, ~words[..., 1::2] + (low == 0))

    def total(self, rows: Words) -> Words:
        """The words of the sum of all rows: the low words by halves, so that no carry is lost."""
        low = rows[:, 0::2]
        lower = (low & _HALF).sum(axis=0, dtype=np.uint64)
        upper = (low >> _BITS).sum(axis=0, dtype=np.uint64) + (lower >> _BITS)
        high = rows[:, 1::2].sum(axis=0, dtype=np.uint64) + (upper >> _BITS)
        return _joined((upper << _BITS) | (lower & _HALF), high)


@dataclass(frozen=True)
class PlainNumbers:
    """Numbers as they are, the 64 bits of each as one word: for sums without masks, which hide nothing."""

    words: ClassVar[int] = 1

    def check(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> None:
        """Nothing is refused."""

    def encode(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> Words:
        """The bits of numbers."""
        return np.ascontiguousarray(values, np.float64).view(np.uint64)

    def decode(self, words: Words) -> NDArray[np.float64]:
        """The numbers again."""
        return np.ascontiguousarray(words).view(np.float64)

    def add(self, one: Words, other: Words) -> Words:
        """The bits of the sum."""
        return self.encode(self.decode(one) + self.decode(other))

    def negative(self, words: Words) -> Words:
        """The bits of the numbers with the other sign."""
        return self.encode(-self.decode(words))

    def total(self, rows: Words) -> Words:
        """The bits of the sum of all rows."""
        return self.encode(self.decode(rows).sum(axis=0))


_HALF, _BITS = np.uint64(2**32 - 1), np.uint64(32)


def _joined(low: Words, high: Words) -> Words:
    """Low and high words in turn."""
    words = np.empty((*low.shape[:-1], 2 * low.shape[-1]), np.uint64)
    words[..., 0::2], words[..., 1::2] = low, high
    return words
