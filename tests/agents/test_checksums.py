"""The checksum of frames and of the journal: every bit counts, and so does the order."""

from __future__ import annotations

import numpy as np
import pytest

from roundelay.agents.protocol.wire import checksum_of as checksum

WIDTH = 1024
LENGTHS = (0, 1, 48, 8 * WIDTH, 16 * WIDTH, 16 * WIDTH + 1, 40 * WIDTH + 24)


def damaged(data: bytes, place: int, change: int) -> bytes:
    return data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_bit_counts(length: int) -> None:
    rng = np.random.default_rng(length)
    data = rng.bytes(length)
    right = checksum(data, 5)
    assert 0 <= right < 2**32 and right == checksum(memoryview(data), 5)
    for place in rng.permutation(length)[:1000].tolist():
        for bit in range(8):
            assert checksum(damaged(data, place, 1 << bit), 5) != right
    if length:
        assert checksum(data[:-1], 5) != right
        assert checksum(data, 6) != right


def test_it_is_the_same_wherever_it_is_formed() -> None:
    """What one release has written, on whatever machine, another one reads."""
    assert [checksum(b""), checksum(b"roundelay", 7), checksum(bytes(8000))] == [
        953390274,
        3569099829,
        1949394079,
    ]


def test_numbers_in_another_order_are_noticed() -> None:
    """A sum of all words alone would not see them."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=3 * WIDTH)
    right = checksum(numbers.tobytes())
    for _ in range(300):
        one, other = rng.choice(len(numbers), 2, replace=False)
        swapped = numbers.copy()
        swapped[[one, other]] = swapped[[other, one]]
        assert checksum(swapped.tobytes()) != right
    assert checksum(np.roll(numbers, WIDTH).tobytes()) != right
    assert checksum(np.roll(numbers, 1).tobytes()) != right


def test_what_is_lost_in_zeros_is_noticed() -> None:
    """A page that was never written."""
    numbers = np.random.default_rng(1).normal(size=4 * WIDTH)
    right = checksum(numbers.tobytes())
    for begin in range(0, len(numbers), 512):
        torn = numbers.copy()
        torn[begin : begin + 512] = 0.0
        assert checksum(torn.tobytes()) != right
