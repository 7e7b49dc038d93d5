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

    def encode(self, values: NDArray[np.float64]) -> Words:
        """The words of a vector of numbers, or of each row of a matrix."""

    def decode(self, words: Words) -> NDArray[np.float64]:
        """The numbers that words stand for."""

    def add(self, one: Words, other: Words) -> Words:
        """The words of the sum."""

    def negative(self, words: Words) -> Words:
        """The words that add up to 0 with these."""


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

    def encode(self, values: NDArray[np.float64]) -> Words:
        """The words of numbers, each rounded to the grid."""
        self.check(values)
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


# Beyond this a sum of two thousand million numbers might leave the range.
WIDEST = math.ldexp(1.0, 62)


@dataclass(frozen=True)
class WideFixedPoint:
    """Multiples of 2⁻⁶⁴ from −2⁶² to 2⁶², as two words a number modulo 2¹²⁸: the low words of all numbers, then the high ones.

    Whatever their units, numbers as people write them are summed to their last digit.
    """

    words: ClassVar[int] = 2

    def check(self, values: NDArray[np.float64], terms: int = 1, what: str = "A number") -> None:
        """Refuse numbers of which `terms` like the largest would leave the range."""
        largest = float(np.abs(values).max(initial=0.0))
        if not largest * terms <= WIDEST:
            # The number is not shown: it is its site's own.
            raise ValueError(f"{what} is beyond 2^62 (about 4.6e18), and can't be added up exactly: use a larger unit.")

    def encode(self, values: NDArray[np.float64]) -> Words:
        """The words of a vector of numbers, or of each row of a matrix."""
        numbers = np.asarray(values, np.float64)
        self.check(numbers)
        size = np.abs(numbers)
        whole = np.floor(size)
        low = np.rint(np.ldexp(size - whole, 64))  # exact but for what lies below the grid
        carried = low >= 2.0**64
        low_words = np.where(carried, 0.0, low).astype(np.uint64)
        words = np.concatenate([low_words, whole.astype(np.uint64) + carried.astype(np.uint64)], axis=-1)
        below = np.concatenate([numbers < 0.0] * 2, axis=-1)
        return np.where(below, self.negative(words), words)

    def decode(self, words: Words) -> NDArray[np.float64]:
        """The numbers that words stand for."""
        below = np.ascontiguousarray(_halves(words)[1]).view(np.int64) < 0
        low, high = _halves(np.where(np.concatenate([below, below], axis=-1), self.negative(words), words))
        size = high.astype(np.float64) + np.ldexp(low.astype(np.float64), -64)
        return np.where(below, -size, size)

    def add(self, one: Words, other: Words) -> Words:
        """The words of the sum: what overflows below is carried."""
        (low, high), (other_low, other_high) = _halves(one), _halves(other)
        below = low + other_low
        return np.concatenate([below, high + other_high + (below < low)], axis=-1)

    def negative(self, words: Words) -> Words:
        """The words that add up to 0 with these."""
        low, high = _halves(words)
        return np.concatenate([np.uint64(0) - low, ~high + (low == 0)], axis=-1)


def _halves(words: Words) -> tuple[Words, Words]:
    """The low words and the high ones."""
    middle = words.shape[-1] // 2
    return words[..., :middle], words[..., middle:]
