"""Numbers as words modulo 2⁶⁴: sums wrap around, so that a word under a uniform mask is uniform itself and tells nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import Words

# A word is read as a number from −2⁶³ to 2⁶³ − 1.
HALF_BITS = 63
# A double holds whole numbers up to 2⁵³: totals below it come back to the last digit.
EXACT_BITS = 53


@dataclass(frozen=True)
class FixedPoint:
    """Multiples of 2^−`bits`, as words modulo 2⁶⁴: v ↦ round(v·2^bits). The range is ±2^(63 − bits)."""

    bits: int

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
