"""Random bits in bulk: Philox4x32, of which a processor's vector unit makes several blocks at once.

As in `roundelay.kernels.random` every bit is keyed: key = seed, counter = (block, hop, 16·agent + purpose).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roundelay.kernels.random import Words


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
