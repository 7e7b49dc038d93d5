"""Which of many places something befalls: not a draw for each place, but one for each gap between two of them.

Gaps are geometric. They are drawn by Walker's alias method (1977): one of equally likely cells is chosen, and stands for
at most two lengths, of which a second draw chooses one. Sixteen bits do for both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from roundelay.kernels.primitives import Flags, Integers, Vector, each
from roundelay.kernels.random import TIES, Words, uniform


def random_words(seed: int, agent: int, hop: int, purpose: int, first: int, blocks: int, words: Words) -> None:
    """Fill the beginning of `words` with random bits: so many blocks of two words, from number `first` on."""
    block = np.arange(first, first + blocks, dtype=np.uint64)
    words[0 : 2 * blocks : 2], words[1 : 2 * blocks : 2] = block_of_bits(np.uint64(seed), agent, hop, purpose, block)


def compiled_words(seed: int, agent: int, hop: int, purpose: int, first: int, blocks: int, words: Words) -> None:
    """`random_words` for the compiled engine."""
    for block in range(blocks):
        low, high = block_of_bits(np.uint64(seed), agent, hop, purpose, np.uint64(first + block))  # type: ignore[arg-type]
        words[2 * block], words[2 * block + 1] = low, high


def block_of_bits(seed: np.uint64, agent: int, hop: int, purpose: int, block: Words) -> tuple[Words, Words]:
    """128 random bits, for a block or for many."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    # Purposes below 16 only: PAIR would be START of the next agent. Its words come from Philox4x64, in masks.pairs.
    stream = np.uint64(16 * agent + purpose)
    c0, c1, c2, c3 = philox32(
        seed & mask, seed >> half, block & mask, np.uint64(hop) & mask, np.uint64(hop) >> half, stream & mask
    )
    return c0 | (c1 << half), c2 | (c3 << half)


def philox32(key0: Any, key1: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> tuple[Any, ...]:
    """Ten rounds of Philox4x32 (Salmon, Moraes, Dror, Shaw 2011): four words of 32 bits, each in one of 64."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for turn in range(10):
        if turn > 0:
            key0 = (key0 + np.uint64(0x9E3779B9)) & mask
            key1 = (key1 + np.uint64(0xBB67AE85)) & mask
        product0 = np.uint64(0xD2511F53) * c0
        product1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (product1 >> half) ^ c1 ^ key0,
            product1 & mask,
            (product0 >> half) ^ c3 ^ key1,
            product0 & mask,
        )
    return c0, c1, c2, c3


GAP_CELL_BITS: int = 6
GAP_CELLS: int = 64
GAP_LEVELS: int = 1024
# A gap of this length is one that is at least so long: the next gap begins after it.
LONGEST_GAP: int = 63
# So many gaps are drawn together.
GAPS_AT_ONCE: int = 64
# Larger than any gap: marks a cell that a draw of its own has to decide about.
GAP_TIE: int = 256


class Gaps(NamedTuple):
    """Cell c stands for the length lengths[2c + 1] = c with the chance (limits[c] + rests[c])/GAP_LEVELS, else lengths[2c]."""

    limits: Any
    rests: Vector
    lengths: Flags


def gaps_between(chance: float) -> Gaps:
    """The cells for things that befall every place with this chance, independently (Vose 1991)."""
    shares = GAP_CELLS * np.append(chance * (1.0 - chance) ** np.arange(LONGEST_GAP), (1.0 - chance) ** LONGEST_GAP)
    lengths = np.repeat(np.arange(GAP_CELLS, dtype=np.uint8), 2)
    small, large = list(np.flatnonzero(shares < 1.0)), list(np.flatnonzero(shares >= 1.0))
    while small and large:
        # What a cell has too little is taken from a length that has too much.
        cell, other = small.pop(), large.pop()
        lengths[2 * cell] = other
        shares[other] -= 1.0 - shares[cell]
        (small if shares[other] < 1.0 else large).append(other)
    shares[[*small, *large]] = 1.0
    limits = np.floor(GAP_LEVELS * shares)
    return Gaps(limits.astype(np.uint16), GAP_LEVELS * shares - limits, lengths)


def befall(
    gaps: Gaps, seed: int, agent: int, hop: int, purpose: int, words: Words, flags: Flags, order: Integers
) -> int:
    """Set the flags of the places that it befalls, write these places to `order`, and return how many there are.

    `words` is scratch of at least GAPS_AT_ONCE/4 words of 64 bits. `order` has room for one place more than there are.
    """
    lanes = words.view(np.uint16)
    for n in each(flags.shape[0]):
        flags[n] = 0
    # Unsigned numbers, because Python's negative ones would be looked for at every place.
    place, found, count = np.uint64(0), np.uint64(0), np.uint64(flags.shape[0])
    for batch in range(flags.shape[0] // GAPS_AT_ONCE + 1):
        draw_gaps(gaps, seed, agent, hop, purpose, batch, words, lanes)
        for lane in range(GAPS_AT_ONCE):
            gap = np.uint64(lanes[lane])
            ends = np.uint64(gap < LONGEST_GAP)
            place += gap
            if place >= count:
                return int(found)
            flags[place] = ends
            order[found] = place
            found += ends
            place += ends
    return int(found)


def draw_gaps(gaps: Gaps, seed: int, agent: int, hop: int, purpose: int, batch: int, words: Any, lanes: Any) -> None:
    """Each of the first GAPS_AT_ONCE lanes, which are the memory of `words` in sixteens of bits, becomes a gap."""
    random_words(seed, agent, hop, purpose, batch * (GAPS_AT_ONCE // 8), GAPS_AT_ONCE // 8, words)
    drawn = lanes[:GAPS_AT_ONCE].astype(np.int64)
    cells, levels = drawn & (GAP_CELLS - 1), drawn >> GAP_CELL_BITS
    own = levels < gaps.limits[cells]
    for lane in np.flatnonzero(levels == gaps.limits[cells]):
        own[lane] = (
            uniform(seed, agent, hop, purpose, TIES + batch * GAPS_AT_ONCE + int(lane)) < gaps.rests[cells[lane]]
        )
    lanes[:GAPS_AT_ONCE] = gaps.lengths[2 * cells + own]


def compiled_gaps(
    gaps: Gaps, seed: int, agent: int, hop: int, purpose: int, batch: int, words: Any, lanes: Any
) -> None:
    """`draw_gaps` for the compiled engine."""
    random_words(seed, agent, hop, purpose, batch * (GAPS_AT_ONCE // 8), GAPS_AT_ONCE // 8, words)
    ties = 0
    for lane in range(GAPS_AT_ONCE):
        cell, level = np.int64(lanes[lane]) & (GAP_CELLS - 1), np.int64(lanes[lane]) >> GAP_CELL_BITS
        limit = np.int64(gaps.limits[cell])
        ties += level == limit
        # No branch on chance, which the processor could not foresee.
        length = np.int64(gaps.lengths[2 * cell + (level < limit)])
        lanes[lane] = GAP_TIE + cell if level == limit else length
    if ties > 0:
        for lane in range(GAPS_AT_ONCE):
            if lanes[lane] >= GAP_TIE:
                cell = np.int64(lanes[lane]) - GAP_TIE
                chance = uniform(seed, agent, hop, purpose, TIES + batch * GAPS_AT_ONCE + lane)
                lanes[lane] = gaps.lengths[2 * cell + (chance < gaps.rests[cell])]
