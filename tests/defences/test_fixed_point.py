"""Fixed point: what goes in comes out, sums wrap and come back, and what does not fit is refused beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.masks import FixedPoint, MaskedLink, SeededPairs, seals
from tests.defences.support import looks_uniform


@given(st.integers(0, 52), st.lists(st.floats(-1000.0, 1000.0), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_a_round_trip_is_within_half_a_step_and_exact_on_the_grid(bits, values):
    fixed, numbers = FixedPoint(bits), np.array(values)
    once = fixed.rounded(numbers)
    assert np.abs(once - numbers).max() <= fixed.grid / 2
    np.testing.assert_array_equal(fixed.rounded(once), once)


@given(st.integers(1, 200), st.floats(1e-3, 1e6), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_sums_under_masks_come_back_exactly(agents, bound, seed):
    numbers = np.random.default_rng(seed).uniform(-bound, bound, (agents, 3))
    fixed = FixedPoint.for_bound(bound, agents)
    on_grid = fixed.rounded(numbers)
    words = fixed.encode(numbers) + seals(SeededPairs(seed), agents, 3)
    # Totals below 2⁵³ steps are exact in floating point too.
    np.testing.assert_array_equal(fixed.decode(words.sum(axis=0, dtype=np.uint64)), on_grid.sum(axis=0))


def test_what_does_not_fit_is_refused_in_words():
    fixed = FixedPoint(40)
    with pytest.raises(ValueError, match="can't hold: use fewer bits"):
        fixed.encode(np.array([2.0**23]))
    fixed.check(np.array([2.0**20]), terms=7)
    with pytest.raises(ValueError, match="and 8 such are summed"):
        fixed.check(np.array([2.0**20]), terms=8)
    with pytest.raises(ValueError, match="can't hold"):
        fixed.encode(np.array([np.nan]))
    with pytest.raises(ValueError, match="bits is 63"):
        FixedPoint(63)
    with pytest.raises(ValueError, match="does not fit a word"):
        FixedPoint.for_bound(1e15, 1000)


@given(st.integers(0, 2**40), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_a_masked_link_opens_what_it_sealed(number, values):
    token, fixed = np.array(values), FixedPoint(40)
    one, other = (MaskedLink(SeededPairs(3), *ends, fixed) for ends in ((2, 5), (5, 2)))
    np.testing.assert_array_equal(other.open(one.seal(token, number), number), fixed.rounded(token))


def test_the_words_on_a_masked_link_look_uniform_and_never_repeat():
    link, token = MaskedLink(SeededPairs(3), 0, 1, FixedPoint(40)), np.zeros(16)
    words = np.array([link.seal(token, number) for number in range(300)])
    assert looks_uniform(words)
    assert len(np.unique(words)) == words.size
    stranger = MaskedLink(SeededPairs(3), 0, 2, FixedPoint(40))
    assert np.abs(stranger.open(words[0], 0)).max() > 1e5
