"""Masks cancel to the last bit, whatever their number and size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.masks import SeededPairs, mask_grid, my_mask, my_seal, seals, zero_sum_masks
from tests.defences.support import looks_uniform


@given(st.integers(1, 60), st.integers(1, 6), st.floats(1e-6, 1e9), st.integers(0, 2**64 - 1))
@settings(max_examples=80, deadline=None)
def test_masks_sum_to_exactly_zero_in_any_order(agents, dim, scale, seed):
    masks = zero_sum_masks(SeededPairs(seed), agents, dim, scale)
    assert (masks.sum(axis=0) == 0.0).all()
    order = np.random.default_rng(0).permutation(agents)
    total = np.zeros(dim)
    for agent in order:
        total += masks[agent]
    assert (total == 0.0).all()
    for me in {0, agents // 2, agents - 1}:
        np.testing.assert_array_equal(my_mask(SeededPairs(seed), me, agents, dim, scale), masks[me])


def test_a_mask_left_out_is_noticed():
    masks = zero_sum_masks(SeededPairs(1), 10, 2, 5.0)
    assert (np.delete(masks, 3, axis=0).sum(axis=0) != 0.0).all()


@pytest.mark.parametrize("agents", [2, 10, 400])
def test_masks_have_the_deviation_that_was_asked_for(agents):
    drawn = np.concatenate(
        [zero_sum_masks(SeededPairs(seed), agents, 4, 300.0) for seed in range(max(2, 4000 // agents))]
    )
    assert abs(drawn.std() / 300.0 - 1.0) < 0.06
    assert abs(drawn.mean()) < 1e-9


def test_masks_of_different_agents_coordinates_seeds_and_epochs_are_unrelated():
    first = zero_sum_masks(SeededPairs(0), 300, 2, 1.0)
    for other in (
        zero_sum_masks(SeededPairs(1), 300, 2, 1.0),
        zero_sum_masks(SeededPairs(0), 300, 2, 1.0, epoch=1),
        first[:, ::-1],
        np.roll(first, 1, axis=0),
    ):
        assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.2


def test_the_grid_is_fine_and_sums_stay_below_53_bits():
    for agents in (2, 100, 1000):
        grid = mask_grid(agents, 300.0)
        assert agents * (agents - 1) * grid.span / 2 < 2**53
        assert 2.0**-grid.bits < 1e-8
    with pytest.raises(ValueError, match="scale is -1"):
        mask_grid(10, -1.0)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**64 - 1))
@settings(max_examples=40, deadline=None)
def test_seals_sum_to_zero_modulo_two_to_the_64(agents, dim, seed):
    words = seals(SeededPairs(seed), agents, dim)
    assert (words.sum(axis=0, dtype=np.uint64) == 0).all()
    for me in {0, agents - 1}:
        np.testing.assert_array_equal(my_seal(SeededPairs(seed), me, agents, dim), words[me])


def test_partial_sums_of_seals_look_uniform_and_a_constant_does_not():
    words = np.concatenate([seals(SeededPairs(seed), 20, 8).cumsum(axis=0, dtype=np.uint64)[:-1] for seed in range(20)])
    assert looks_uniform(words)
    assert not looks_uniform(np.arange(3000, dtype=np.uint64))
