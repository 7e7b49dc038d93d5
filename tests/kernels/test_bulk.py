"""Random bits in bulk: Philox4x32 as published, the same in both engines, and random."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from roundelay.kernels.bulk import block_of_bits, compiled_words, philox32, random_words
from tests.kernels.support import compiled, within

SEEDS = st.integers(0, 2**64 - 1)


def call_words(seed: Any, agent: int, hop: int, purpose: int, first: int, blocks: int, words: Any) -> int:
    random_words(seed, agent, hop, purpose, first, blocks, words)
    return 0


def words_by(form: Any, seed: Any, agent: int, hop: int, purpose: int, first: int, blocks: int) -> np.ndarray:
    words = np.zeros(2 * blocks + 3, np.uint64)
    form(seed, agent, hop, purpose, first, blocks, words)
    assert (words[2 * blocks :] == 0).all()
    return words[: 2 * blocks]


# The known answers of Random123: counter, key, words.
ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), ANSWERS)
def test_philox32_is_the_published_one(counter: Any, key: Any, answer: Any) -> None:
    numbers = [np.uint64(number) for number in (*key, *counter)]
    assert philox32(*numbers) == answer  # type: ignore[arg-type]


def test_a_block_is_philox_of_its_key() -> None:
    seed, agent, hop, purpose, block = 0xA4093822_299F31D0, 5, 7 * 2**32 + 9, 12, 3
    c0, c1, c2, c3 = philox32(
        *(np.uint64(number) for number in (0x299F31D0, 0xA4093822, block, 9, 7, 16 * agent + purpose))  # type: ignore[arg-type]
    )
    low, high = block_of_bits(np.uint64(seed), agent, hop, purpose, np.array([block], np.uint64))
    assert (int(low[0]), int(high[0])) == (int(c0) | int(c1) << 32, int(c2) | int(c3) << 32)


@settings(max_examples=100, deadline=None)
@given(
    SEEDS, st.integers(0, 2**20), st.integers(0, 2**50), st.integers(0, 14), st.integers(0, 2**20), st.integers(0, 9)
)
@example(2**64 - 1, 2**20, 2**50, 14, 2**20, 9)
def test_the_engines_agree_bit_for_bit(seed: int, agent: int, hop: int, purpose: int, first: int, blocks: int) -> None:
    key = (agent, hop, purpose, first, blocks)
    plain = words_by(random_words, seed, *key)
    assert plain.tolist() == words_by(compiled(call_words), np.uint64(seed), *key).tolist()
    assert plain.tolist() == words_by(compiled_words, seed, *key).tolist()


def test_any_block_can_be_drawn_by_itself() -> None:
    whole = words_by(random_words, 5, 1, 2, 3, 0, 40)
    assert words_by(random_words, 5, 1, 2, 3, 17, 1).tolist() == whole[34:36].tolist()


def bits_of(words: np.ndarray) -> np.ndarray:
    """Every bit as −1 or 1."""
    return 2.0 * np.unpackbits(words.view(np.uint8)) - 1.0


def test_bits_are_fair_and_independent() -> None:
    signs = bits_of(words_by(compiled(call_words), np.uint64(3), 1, 4, 9, 0, 20_000)).reshape(-1, 64)
    assert within(signs.mean(), 0.0, 1.0 / np.sqrt(signs.size))
    assert np.abs(signs.mean(axis=0)).max() <= 5.0 / np.sqrt(len(signs))
    together = signs.T @ signs / len(signs) - np.eye(64)
    assert np.abs(together).max() <= 5.5 / np.sqrt(len(signs))
    for lag in (1, 2, 3, 4, 8):
        assert np.abs((signs[lag:] * signs[:-lag]).mean(axis=0)).max() <= 5.0 / np.sqrt(len(signs) - lag), lag


def test_seeds_agents_hops_purposes_and_blocks_are_independent() -> None:
    seeds, agents, hops, purposes = (2, 3, 2 + 2**32), range(3), (0, 1, 2, 2**32, 2**33), (9, 11, 12)
    table = np.array([bits_of(words_by(random_words, *key, 0, 8)) for key in product(seeds, agents, hops, purposes)])
    signs = table.reshape(len(seeds), len(agents), len(hops), len(purposes), 8, 128)
    for axis in range(6):
        size = signs.shape[axis]
        for lag in {1, 2, size - 1} & set(range(1, size)):
            here, there = np.take(signs, range(size - lag), axis), np.take(signs, range(lag, size), axis)
            assert within((here * there).mean(), 0.0, 1.0 / np.sqrt(here.size)), (axis, lag)
