"""`chances`, the coin of the links: the same in Python and compiled, and fair."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from roundelay.engine.assemble import compiled_module, recipe
from roundelay.kernels import CHAIN, LOSS, RESEND, chances
from roundelay.kernels.random import compiled_chances
from tests.conditions.support import within

SEEDS = st.integers(0, 2**64 - 1)
PURPOSES = st.integers(0, 14)


def call_chances(
    seed: Any, agent: int, hop: int, purpose: int, chance: float, words: Any, lanes: Any, flags: Any
) -> int:
    chances(seed, agent, hop, purpose, chance, words, lanes, flags)
    return 0


def compiled() -> Any:
    """`chances` as the compiled engine puts it together."""
    return compiled_module(recipe((), (), (("travel", call_chances),), (("DIM", 2), ("TOKENS", 1)), True), 2).travel


def flags_by(form: Any, seed: Any, agent: int, hop: int, purpose: int, chance: float, count: int) -> np.ndarray:
    """So many flags, by one of the forms; what stood in them and in the scratch before must not matter."""
    flags, words = np.full(count, 9, np.uint8), np.full(4 * -(-count // 32), 2**63, np.uint64)
    form(seed, agent, hop, purpose, chance, words, words.view(np.uint8), flags)
    return flags


def flags_of(seed: int, agent: int, hop: int, purpose: int, chance: float, count: int) -> np.ndarray:
    return flags_by(chances, seed, agent, hop, purpose, chance, count)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.integers(0, 2**40), st.integers(0, 2**50), PURPOSES, st.floats(0.0, 1.0), st.integers(0, 140))
@example(2**64 - 1, 2**40, 2**50, 14, 1.0, 17)
@example(2**64 - 1, 0, 0, 0, 0.5, 0)
@example(2**64 - 1, 5, 6, 7, 0.001, 100)
@example(1, 5, 6, 7, 0.999, 64)
def test_the_python_and_the_compiled_form_agree_bit_for_bit(
    seed: int, agent: int, hop: int, purpose: int, chance: float, count: int
) -> None:
    key = (agent, hop, purpose, chance, count)
    plain, fast = flags_by(chances, seed, *key), flags_by(compiled(), np.uint64(seed), *key)
    with np.errstate(over="ignore"):
        text = flags_by(compiled_chances, seed, *key)
    assert plain.tolist() == fast.tolist() == text.tolist()
    assert set(plain) <= {0, 1}


@pytest.mark.parametrize("chance", [0.0007, 0.5])
def test_the_forms_agree_on_many_ties(chance: float) -> None:
    """About one draw in 256 needs more than a byte; all of them where the chance is below 1/256."""
    plain, fast = (
        flags_of(4, 3, 2, LOSS, chance, 50_001),
        flags_by(compiled(), np.uint64(4), 3, 2, LOSS, chance, 50_001),
    )
    assert plain.tolist() == fast.tolist()


@pytest.mark.parametrize("chance", [0.0007, 0.003, 0.1, 0.5, 0.5019, 0.93, 0.9993])
def test_the_frequency_is_the_chance_along_and_across_the_keys(chance: float) -> None:
    along = flags_by(compiled(), np.uint64(3), 1, 4, LOSS, chance, 2_000_003)
    across = np.array([flags_of(3, agent, hop, LOSS, chance, 33) for agent, hop in product(range(20), range(30))])
    for flags in (along, across.ravel(), across[:, 0], across[:, 32]):
        assert within(flags.mean(), chance, np.sqrt(chance * (1.0 - chance) / flags.size))


def test_never_and_always_are_exact() -> None:
    for agent, hop in product(range(5), range(50)):
        assert not flags_of(1, agent, hop, LOSS, 0.0, 501).any()
        assert flags_of(1, agent, hop, LOSS, 1.0, 501).all()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 31, 32, 33, 63])
def test_a_shorter_row_is_the_beginning_of_a_longer_one(count: int) -> None:
    whole = flags_of(5, 2, 3, LOSS, 0.4, 100)
    assert flags_of(5, 2, 3, LOSS, 0.4, count).tolist() == whole[:count].tolist()


def test_a_larger_chance_only_adds() -> None:
    rows = [flags_of(5, 2, 3, LOSS, chance, 4000) for chance in (0.1, 0.3, 0.31, 0.9)]
    assert all((smaller <= larger).all() for smaller, larger in pairwise(rows))


def test_seeds_agents_hops_purposes_and_places_are_independent() -> None:
    seeds, agents, hops, purposes = (2, 3), range(6), range(60), (LOSS, RESEND, CHAIN)
    table = np.array(
        [flags_of(*key, 0.5, 33) for key in product(seeds, agents, hops, purposes)], float
    ).reshape(len(seeds), len(agents), len(hops), len(purposes), 33)  # fmt: skip
    signs = 2.0 * table - 1.0
    assert within(signs.mean(), 0.0, 1.0 / np.sqrt(signs.size))
    for axis in range(5):
        size = signs.shape[axis]
        for lag in {1, 2, size - 1} & set(range(1, size)):
            here, there = np.take(signs, range(size - lag), axis), np.take(signs, range(lag, size), axis)
            assert within((here * there).mean(), 0.0, 1.0 / np.sqrt(here.size)), (axis, lag)
