"""Statistics of all rows of all sites, from sums in which no site shows its own summand.

A summand is a vector of numbers, encoded in whole-number words that are added under masks (`masks.seals`), so that the
total is exact. The total is a sum of limbs, not carried yet: by itself it tells, besides the sum, how many summands
were negative and how many carries there are. `hide_carries` takes that away but for a chance that it states.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roundelay.agents.data.reading import OwnRows
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import Words

# A number is a multiple of 2⁻⁶⁴ below 2⁶², in limbs of 32 bits: 2³¹ of them can be summed in a word each.
LIMBS, LIMB_BITS, POINT_BITS, LARGEST_BITS = 4, 32, 64, 62
# Below this a sum of squares is too coarse on that grid to be a scale.
LEAST_SPREAD = math.ldexp(1.0, -44)
ROUNDING = float(np.finfo(np.float64).eps)


def encode_limbs(values: Vector, names: Sequence[str] = ()) -> Words:
    """The words of numbers, four for each, the lowest limb first. Words of many sites are summed modulo 2⁶⁴.

    Two's complement, with the sign in all 64 bits of the fourth word: thus the total may be larger than any summand.
    `names` says what the numbers are, for the sentence in which one is refused.
    """
    words: list[int] = []
    for number, value in enumerate(np.asarray(values, np.float64).tolist()):
        if not abs(value) <= 2.0**LARGEST_BITS:
            name = names[number] if names else f"number {number}"
            # The number is not shown: it is this site's own.
            raise ValueError(
                f"The sum for {name} is beyond 2^{LARGEST_BITS} (about 4.6e18), which can't be added up exactly: give it in a "
                "larger unit at all sites."
            )
        steps = round(math.ldexp(value, POINT_BITS))
        words += [steps >> LIMB_BITS * limb & 2**LIMB_BITS - 1 for limb in range(LIMBS - 1)]
        words.append(steps >> LIMB_BITS * (LIMBS - 1) & 2**64 - 1)
    return np.array(words, np.uint64)


def decode_limbs(words: Words) -> Vector:
    """The numbers that summed words stand for, each rounded once, to a double."""
    limbs = np.ascontiguousarray(words, np.uint64)
    if limbs.ndim != 1 or len(limbs) % LIMBS:
        raise ValueError(f"The words have the shape {limbs.shape}: a number has {LIMBS} words, one after another.")
    limbs = limbs.reshape(-1, LIMBS)
    signed = limbs.view(np.int64).tolist()  # a word may have lent more than it had
    totals = [sum(limb << LIMB_BITS * place for place, limb in enumerate(number)) for number in signed]
    return np.array(
        [total / 2**POINT_BITS for total in totals], np.float64
    )  # a quotient of whole numbers is rounded once


def borrow_bits(agents: int) -> int:
    """How many bits a borrow may have, so that the words of so many sites still fit: each has its part of 2³⁰."""
    return max(LARGEST_BITS - LIMB_BITS - (whole_number("agents", agents, least=1) - 1).bit_length(), 0)


def hide_carries(words: Words, agents: int, random: Words | None = None) -> Words:
    """The same numbers in other words: each limb borrows a secret random r·2³² of the next, which lends r.

    Of r of b = `borrow_bits(agents)` bits, the total tells whoever knows all summands but two about the carries between those
    two only with a chance of 2^−b for each limb: 2⁻²⁶ for 16 sites. `random` has three words for each number; left out, the
    operating system gives them.
    """
    limbs = np.array(words, np.uint64).reshape(-1, LIMBS)
    count = len(limbs) * (LIMBS - 1)
    drawn = np.frombuffer(os.urandom(8 * count), np.uint64) if random is None else random
    lent = drawn.reshape(-1, LIMBS - 1) & np.uint64(2 ** borrow_bits(agents) - 1)
    limbs[:, :-1] += lent << np.uint64(LIMB_BITS)
    limbs[:, 1:] -= lent
    return limbs.reshape(-1)


@dataclass(frozen=True, eq=False)
class Standard:
    """What all rows of all sites have in common: how many `rows` there are, and `mean` and `deviation` of each feature
    and of the target. Deviations are over all n rows, with 1/n.
    """

    rows: int
    mean: Vector
    deviation: Vector
    target_mean: float
    target_deviation: float

    def __post_init__(self) -> None:
        whole_number("The number of rows", self.rows, least=1)
        finite_number("The mean of the target", self.target_mean)
        finite_number("The deviation of the target", self.target_deviation, least=0.0)
        for name in ("mean", "deviation"):
            values = np.array(getattr(self, name), np.float64)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise ValueError(f"The {name} of the features must be one finite number for each: ask the ring again.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if len(self.mean) != len(self.deviation) or (self.deviation < 0.0).any():
            raise ValueError("The features need a mean and a deviation each, and none below 0: ask the ring again.")


def first_moments(rows: OwnRows) -> Vector:
    """A site's summand of the first sum: (n, Σx of each feature, Σt)."""
    return np.array([float(rows.count), *_column_sums(_columns(rows))])


def means_of(first: Vector) -> Vector:
    """The means of the features and of the target, from the total of all sites' first moments."""
    totals = np.asarray(first, np.float64)
    rows = whole_number("The number of rows of all sites", totals[0], least=1)
    return totals[1:] / rows


def second_moments(rows: OwnRows, means: Vector) -> Vector:
    """A site's summand of the second sum: Σ(x − mean)² of each feature and of the target.

    About the mean of all sites, which is known by then: Σx² − n·mean² would lose the digits that matter.
    """
    columns = _columns(rows)
    if columns.shape[1] != len(means):
        raise ValueError(f"There are {len(means)} means for {columns.shape[1]} columns, the target among them.")
    return _column_sums((columns - means) ** 2)


def standard_of(first: Vector, second: Vector, names: Sequence[str], scaled: bool = True) -> Standard:
    """What follows from the totals of both sums; a feature that does not vary has no scale and is refused by name.

    With `scaled=False` nothing is divided by a deviation, and such a feature is let through.
    """
    means = means_of(first)
    rows, squares = int(first[0]), np.asarray(second, np.float64)
    if not len(means) == len(squares) == len(names) + 1:
        raise ValueError(
            f"There are {len(means)} means and {len(squares)} deviations for {len(names)} features and the target."
        )
    # The squares of one and the same number about its rounded mean are rounding.
    still = squares <= np.maximum(rows * (4.0 * ROUNDING * means) ** 2, LEAST_SPREAD)
    constant = [f'"{name}"' for name, is_still in zip(names, still[:-1], strict=True) if is_still]
    if scaled and constant:
        one = len(constant) == 1
        raise ValueError(
            f"The feature{'' if one else 's'} {', '.join(constant)} {'is' if one else 'are'} the same in all rows of all sites, or "
            f"var{'ies' if one else 'y'} too little to be seen: leave {'it' if one else 'them'} out of the fit, or choose a smaller unit."
        )
    deviations = np.where(still, 0.0, np.sqrt(np.maximum(squares, 0.0) / rows))
    return Standard(rows, means[:-1], deviations[:-1], float(means[-1]), float(deviations[-1]))


def pack(standard: Standard) -> Vector:
    """As it is told to everybody: (n, mean and deviation of the target, means, deviations)."""
    head = [float(standard.rows), standard.target_mean, standard.target_deviation]
    return np.concatenate([head, standard.mean, standard.deviation])


def unpack(vector: Vector) -> Standard:
    """What `pack` has packed; anything else is refused."""
    told = np.asarray(vector, np.float64)
    if told.ndim != 1 or len(told) < 5 or len(told) % 2 == 0:
        raise ValueError(
            f"Statistics of the ring can't have the shape {told.shape}: all sites need the same release of roundelay."
        )
    mean, deviation = np.split(told[3:], 2)
    rows = whole_number("The number of rows of all sites", told[0], least=1)
    return Standard(rows, mean, deviation, float(told[1]), float(told[2]))


def _columns(rows: OwnRows) -> Matrix:
    return np.column_stack([rows.features, rows.target])


def _column_sums(columns: Matrix) -> Vector:
    return np.array([math.fsum(column) for column in columns.T.tolist()])  # exact, then rounded once
