"""`befall`, which draws the gaps between what is lost: the same in both engines, and each place by its chance alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.stats import chisquare

from roundelay.kernels import LOSS, uniform
from roundelay.kernels.bulk import (
    GAP_CELLS,
    GAP_LEVELS,
    GAPS_AT_ONCE,
    LONGEST_GAP,
    befall,
    compiled_gaps,
    draw_gaps,
    gaps_between,
    random_words,
)
from roundelay.kernels.random import TIES
from tests.kernels.support import compiled, within

CHANCES = [0.0007, 0.003, 0.1, 0.5, 0.5019, 0.93, 0.9993]


def call_befall(gaps: Any, seed: Any, agent: int, hop: int, purpose: int, words: Any, flags: Any, order: Any) -> int:
    return befall(gaps, seed, agent, hop, purpose, words, flags, order)


def call_gaps(gaps: Any, seed: Any, agent: int, hop: int, purpose: int, batch: int, words: Any, lanes: Any) -> int:
    draw_gaps(gaps, seed, agent, hop, purpose, batch, words, lanes)
    return 0


def flags_by(form: Any, seed: Any, agent: int, hop: int, chance: float, count: int) -> np.ndarray:
    """So many flags; what stood in them and in the scratch before must not matter, and `order` lists them."""
    flags, order = np.full(count, 9, np.uint8), np.full(count + 1, -1, np.int64)
    words = np.full(GAPS_AT_ONCE // 4, 2**63, np.uint64)
    found = form(gaps_between(chance), seed, agent, hop, LOSS, words, flags, order)
    assert order[:found].tolist() == np.flatnonzero(flags).tolist() and set(flags) <= {0, 1}
    return flags


def flags_of(seed: int, agent: int, hop: int, chance: float, count: int) -> np.ndarray:
    return flags_by(befall, seed, agent, hop, chance, count)


@pytest.mark.parametrize("chance", [0.0, 1e-300, 1e-9, *CHANCES, 1.0 - 2.0**-53, 1.0])
def test_the_cells_make_up_the_geometric_law(chance: float) -> None:
    gaps = gaps_between(chance)
    own = (gaps.limits + gaps.rests) / GAP_LEVELS
    assert (own >= 0.0).all() and (own <= 1.0).all() and (gaps.lengths[1::2] == np.arange(GAP_CELLS)).all()
    made = np.bincount(np.arange(GAP_CELLS), own, GAP_CELLS) + np.bincount(gaps.lengths[0::2], 1.0 - own, GAP_CELLS)
    wanted = np.append(chance * (1.0 - chance) ** np.arange(LONGEST_GAP), (1.0 - chance) ** LONGEST_GAP)
    np.testing.assert_allclose(made / GAP_CELLS, wanted, rtol=0.0, atol=5e-15)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**20),
    st.integers(0, 2**50),
    st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 0.01)),
    st.integers(0, 300),
)
@example(2**64 - 1, 2**20, 2**50, 1.0, 64)
@example(2**64 - 1, 0, 0, 0.5, 0)
@example(1, 5, 6, 0.999, 63)
def test_the_engines_agree_bit_for_bit(seed: int, agent: int, hop: int, chance: float, count: int) -> None:
    plain = flags_of(seed, agent, hop, chance, count)
    assert plain.tolist() == flags_by(compiled(call_befall), np.uint64(seed), agent, hop, chance, count).tolist()


@pytest.mark.parametrize("chance", [0.1, 0.47])
def test_gaps_are_those_of_the_bits_and_ties_have_a_draw_of_their_own(chance: float) -> None:
    """All of it again, for one lane after another; about one in GAP_LEVELS is a tie."""
    gaps, ties, fast = gaps_between(chance), 0, compiled(call_gaps)
    words = np.zeros(GAPS_AT_ONCE // 4, np.uint64)
    lanes = words.view(np.uint16)
    for batch in range(100):
        random_words(6, 2, 3, LOSS, batch * (GAPS_AT_ONCE // 8), GAPS_AT_ONCE // 8, words)
        expected = []
        for lane, bits in enumerate(lanes.tolist()):
            cell, level = bits % GAP_CELLS, bits // GAP_CELLS
            own = level < gaps.limits[cell]
            if level == gaps.limits[cell]:
                own = uniform(6, 2, 3, LOSS, TIES + GAPS_AT_ONCE * batch + lane) < gaps.rests[cell]
                ties += 1
            expected.append(cell if own else int(gaps.lengths[2 * cell]))
        for form, seed in ((draw_gaps, 6), (compiled_gaps, 6), (fast, np.uint64(6))):
            form(gaps, seed, 2, 3, LOSS, batch, words, lanes)
            assert lanes.tolist() == expected
    assert within(ties, 100 * GAPS_AT_ONCE / GAP_LEVELS, np.sqrt(100 * GAPS_AT_ONCE / GAP_LEVELS)) and ties > 0


@pytest.mark.parametrize("chance", CHANCES)
def test_the_frequency_is_the_chance_along_and_across_the_keys(chance: float) -> None:
    along = flags_by(compiled(call_befall), np.uint64(3), 1, 4, chance, 2_000_003)
    across = np.array([flags_of(3, agent, hop, chance, 33) for agent, hop in product(range(10), range(40))])
    for flags in (along, across.ravel(), across[:, 0], across[:, 32]):
        assert within(flags.mean(), chance, np.sqrt(chance * (1.0 - chance) / flags.size))


@pytest.mark.parametrize("chance", [0.01, 0.1, 0.5])
def test_gaps_are_geometric_also_beyond_the_longest_of_a_cell(chance: float) -> None:
    places = np.flatnonzero(flags_by(compiled(call_befall), np.uint64(8), 0, 1, chance, 3_000_000))
    gaps = np.diff(places) - 1
    edges = np.unique(np.floor(np.log(np.linspace(1.0, 0.0, 60, endpoint=False)) / np.log1p(-chance)))
    seen = np.histogram(gaps, np.append(edges, np.inf))[0]
    reached = (1.0 - chance) ** np.append(edges, np.inf)
    assert gaps.max() > LONGEST_GAP or chance == 0.5
    assert chisquare(seen, len(gaps) * -np.diff(reached)).pvalue > 1e-4
    centred = (gaps - gaps.mean()) / gaps.std()
    for lag in (1, 2, 16, 64):
        assert within((centred[lag:] * centred[:-lag]).mean(), 0.0, 1.0 / np.sqrt(len(gaps))), lag


def test_never_and_always_are_exact() -> None:
    for agent, hop in product(range(5), range(50)):
        assert not flags_of(1, agent, hop, 0.0, 501).any()
        assert flags_of(1, agent, hop, 1.0, 501).all()


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 127, 128])
def test_a_shorter_row_is_the_beginning_of_a_longer_one(count: int) -> None:
    for chance in (0.03, 0.4, 0.98):
        whole = flags_of(5, 2, 3, chance, 300)
        assert flags_of(5, 2, 3, chance, count).tolist() == whole[:count].tolist()


@pytest.mark.parametrize("chance", [0.5, 0.1])
def test_seeds_agents_hops_and_places_are_independent(chance: float) -> None:
    seeds, agents, hops = (2, 3), range(6), range(60)
    table = np.array([flags_of(*key, chance, 99) for key in product(seeds, agents, hops)], float)
    centred = (table - chance) / np.sqrt(chance * (1.0 - chance))
    centred = centred.reshape(len(seeds), len(agents), len(hops), 99)
    for axis in range(4):
        size = centred.shape[axis]
        for lag in {1, 2, size - 1} & set(range(1, size)):
            here, there = np.take(centred, range(size - lag), axis), np.take(centred, range(lag, size), axis)
            assert within((here * there).mean(), 0.0, 1.0 / np.sqrt(here.size)), (axis, lag)
