"""Whole numbers with the discrete Gaussian law, from uniform words alone: noise on a grid, found in whole-number arithmetic.

P(x) ∝ exp(−x²/(2S²)) over all whole numbers x, for S = 2^k. The method is that of Canonne, Kamath and Steinke (2020), Algorithm 3,
with both scales equal: x comes from the discrete Laplace law ∝ exp(−|x|/S), and is kept with the chance exp(−(|x| − S)²/(2S²)).
Every chance is exp(−γ) for a γ below 1 that stands exactly in 64 bits, since S is a power of two. It is drawn by comparing words
with γ/j, j = 1, 2, …: of these the quotients alone are rounded, so that a comparison errs with a chance below 2⁻⁶⁴. No floating
point is involved, whose last digits could tell noise from answer. How long it takes depends on what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count as counting

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels.checks import whole_number
from roundelay.kernels.random import Words
from roundelay.masks.pairs import NOISE, PairSecrets

Steps = NDArray[np.int64]
Draw = Callable[[int], Words]

_HALF = np.uint64(2**63)  # γ = 1/2
_PIECE = 4096  # words that are asked for at once
MOST_EXPONENT = 31  # the square of a number below S is compared in 64 bits


def own_words(secrets: PairSecrets, me: int, turn: int, about: bytes = b"") -> Draw:
    """Uniform words that agent `me` alone knows, one after another; the same again for the same turn, below 2³¹, and what they are about.

    They are of the secret that the agent shares with itself.
    """
    alone, piece = np.array([me]), counting(turn << 32)
    left = np.zeros(0, np.uint64)

    def draw(count: int) -> Words:
        nonlocal left
        while len(left) < count:
            more = secrets.words(alone, alone, NOISE, np.array([next(piece)]), max(_PIECE, count), about)[0]
            left = np.concatenate([left, more])
        drawn, left = left[:count], left[count:]
        return drawn

    return draw


def discrete_gaussian(draw: Draw, count: int, exponent: int) -> Steps:
    """So many independent draws with S = 2^exponent."""
    if not 1 <= whole_number("exponent", exponent) <= MOST_EXPONENT:
        raise ValueError(f"exponent is {exponent}: use a whole number from 1 to {MOST_EXPONENT}.")
    drawn: Steps = np.empty(count, np.int64)
    done = 0
    while done < count:
        # About two in five candidates are kept.
        kept = _candidates(draw, 64 + (count - done) * 3, exponent)[: count - done]
        drawn[done : done + len(kept)] = kept
        done += len(kept)
    return drawn


def _candidates(draw: Draw, count: int, exponent: int) -> Steps:
    """Those of so many trials that are kept."""
    k, s = np.uint64(exponent), np.uint64(2**exponent)
    low = draw(count) >> (np.uint64(64) - k)  # uniform below S
    low = low[_exponential(draw, low << (np.uint64(64) - k))]
    high = _runs(draw, len(low)) // 2  # P(high ≥ v) = e^−v
    negative = draw(len(low)) >> np.uint64(63) == 1
    kept = ~(negative & (low == 0) & (high == 0))  # 0 has one sign
    low, high, negative = low[kept], high[kept], negative[kept]
    # ||x| − S| = whole·S + rest, so that (|x| − S)²/(2S²) = whole²/2 + whole·rest/S + rest²/(2S²).
    below = (high == 0) & (low > 0)
    whole = np.where(high == 0, np.where(below, 0, 1), high - 1)
    rest = np.where(below, s - low, low)
    kept = _exponential(draw, rest * rest << (np.uint64(63) - np.uint64(2) * k))
    kept &= _every(draw, rest << (np.uint64(64) - k), whole) & _every(draw, np.full(len(rest), _HALF), whole * whole)
    size = (low + s * high.astype(np.uint64)).astype(np.int64)
    return np.where(negative, -size, size)[kept]


def _exponential(draw: Draw, gamma: Words) -> NDArray[np.bool_]:
    """Each true with the chance exp(−γ), for γ in parts of 2⁶⁴: the number of falling comparisons is odd (von Neumann)."""
    odd, alive, j = np.zeros(len(gamma), bool), np.arange(len(gamma)), 1
    while len(alive):
        falls = draw(len(alive)) < gamma[alive] // np.uint64(j)
        odd[alive[~falls]] = j % 2 == 1
        alive, j = alive[falls], j + 1
    return odd


def _runs(draw: Draw, count: int) -> Steps:
    """How often in a row exp(−1/2) came true."""
    lengths, alive = np.zeros(count, np.int64), np.arange(count)
    while len(alive):
        alive = alive[_exponential(draw, np.full(len(alive), _HALF))]
        lengths[alive] += 1
    return lengths


def _every(draw: Draw, gamma: Words, times: Steps) -> NDArray[np.bool_]:
    """Whether exp(−γ) came true so many times in a row."""
    true, alive, done = np.ones(len(gamma), bool), np.flatnonzero(times > 0), 0
    while len(alive):
        holds = _exponential(draw, gamma[alive])
        true[alive[~holds]] = False
        done += 1
        alive = alive[holds]
        alive = alive[times[alive] > done]
    return true
