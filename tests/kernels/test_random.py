"""Random draws: NumPy's own Philox bit for bit, in plain Python, over arrays, and compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.stats import kstest

from roundelay.engine.assemble import compiled_module, recipe
from roundelay.kernels import normals, uniform
from roundelay.kernels.random import block_of_uniforms, compiled_normals, compiled_uniform, philox, uniforms_of_agents

SEEDS = st.integers(0, 2**64 - 1)
AGENTS = st.integers(0, 2**40)
HOPS = st.integers(0, 2**50)
PURPOSES = st.integers(0, 5)


def numpy_words(seed: int, agent: int, hop: int, purpose: int, block: int) -> np.ndarray:
    """Four words of NumPy's generator, which steps its counter before the first block."""
    key, counter = np.array([seed, agent], np.uint64), np.array([hop, purpose, block, 0], np.uint64)
    return np.random.Philox(key=key, counter=counter).random_raw(4)


def numpy_uniforms(seed: int, agent: int, hop: int, purpose: int, count: int) -> np.ndarray:
    words = [numpy_words(seed, agent, hop, purpose, block) for block in range(-(-count // 4))]
    return np.concatenate(words)[:count].astype(object).__rshift__(11).astype(float) / 2.0**53


def call_uniform(seed: Any, agent: int, hop: int, purpose: int, index: int) -> float:
    return uniform(seed, agent, hop, purpose, index)


def call_normals(seed: Any, agent: int, hop: int, purpose: int, out: Any) -> int:
    normals(seed, agent, hop, purpose, out)
    return 0


def compiled(entry: Any) -> Any:
    """`entry` as the compiled engine puts it together."""
    return compiled_module(recipe((), (), (("travel", entry),), (("DIM", 2), ("TOKENS", 1)), True), 2).travel


@settings(max_examples=200, deadline=None)
@given(SEEDS, AGENTS, HOPS, PURPOSES, st.integers(0, 1000))
@example(2**64 - 1, 2**40, 2**50, 5, 1000)
@example(0, 0, 0, 0, 0)
def test_philox_over_arrays_is_numpys(seed: int, agent: int, hop: int, purpose: int, block: int) -> None:
    one = lambda word: np.array([word], np.uint64)  # noqa: E731
    words = philox(one(seed), one(agent), (one(hop + 1), one(purpose), one(block), one(0)))
    np.testing.assert_array_equal(np.concatenate(words), numpy_words(seed, agent, hop, purpose, block))


@settings(max_examples=200, deadline=None)
@given(SEEDS, AGENTS, HOPS, PURPOSES, st.integers(0, 40))
@example(2**64 - 1, 2**40, 2**50, 5, 39)
def test_uniform_is_numpys_in_both_engines(seed: int, agent: int, hop: int, purpose: int, index: int) -> None:
    expected = numpy_uniforms(seed, agent, hop, purpose, index + 1)[index]
    assert uniform(seed, agent, hop, purpose, index) == expected
    assert compiled(call_uniform)(np.uint64(seed), agent, hop, purpose, index) == expected
    with np.errstate(over="ignore"):
        assert compiled_uniform(seed, agent, hop, purpose, index) == expected
        assert block_of_uniforms(seed, agent, hop, purpose, index // 4)[index % 4] == expected


@pytest.mark.parametrize("seed", [0, 17, 2**63, 2**64 - 1])
@pytest.mark.parametrize("count", [1, 2, 4, 5, 11])
def test_the_draws_of_all_agents_are_those_of_each(seed: int, count: int) -> None:
    draws = uniforms_of_agents(seed, 6, count, 3)
    assert draws.shape == (6, count)
    for agent in range(6):
        np.testing.assert_array_equal(draws[agent], [uniform(seed, agent, 0, 3, index) for index in range(count)])


@settings(max_examples=60, deadline=None)
@given(SEEDS, AGENTS, HOPS, PURPOSES, st.integers(1, 11))
@example(2**64 - 1, 2**40, 2**50, 5, 11)
def test_normals_are_the_same_in_both_engines(seed: int, agent: int, hop: int, purpose: int, count: int) -> None:
    plain, words, fast = np.full(count, np.nan), np.full(count, np.nan), np.full(count, np.nan)
    normals(seed, agent, hop, purpose, plain)
    with np.errstate(over="ignore"):
        compiled_normals(seed, agent, hop, purpose, words)
    compiled(call_normals)(np.uint64(seed), agent, hop, purpose, fast)
    np.testing.assert_array_equal(words, plain)
    np.testing.assert_array_equal(fast, plain)
    # Box and Muller's: the two of a pair lie on a circle whose radius the first uniform gives.
    draws = numpy_uniforms(seed, agent, hop, purpose, 2)
    if count > 1:
        np.testing.assert_allclose(plain[0] ** 2 + plain[1] ** 2, -2.0 * math.log(1.0 - draws[0]), rtol=1e-12)


def test_normals_are_normal() -> None:
    out = np.empty(20_001)
    compiled(call_normals)(np.uint64(5), 1, 2, 3, out)
    assert kstest(out, "norm").pvalue > 1e-4
    error = 1.0 / np.sqrt(len(out))
    assert abs(out.mean()) <= 4.0 * error
    assert abs(out.var() - 1.0) <= 4.0 * np.sqrt(2.0) * error
    assert abs((out**4).mean() - 3.0) <= 4.0 * np.sqrt(96.0) * error
    assert abs(np.corrcoef(out[0:-1:2], out[1::2])[0, 1]) <= 4.0 * np.sqrt(2.0) * error


def test_uniforms_are_uniform_across_agents_hops_and_seeds() -> None:
    across = {
        "agents": uniforms_of_agents(7, 5000, 1, 0).ravel(),
        "hops": np.array([uniform(7, 3, hop, 1, 0) for hop in range(2000)]),
        "seeds": np.array([uniform(seed, 3, 0, 1, 0) for seed in range(2000)]),
    }
    for draws in across.values():
        assert kstest(draws, "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) <= 4.0 / np.sqrt(len(draws))
        assert draws.min() >= 0.0 and draws.max() < 1.0


def test_every_seed_agent_hop_and_purpose_has_a_stream_of_its_own() -> None:
    keys = [(s, a, h, p) for s in (0, 1, 2**64 - 1) for a in range(4) for h in range(5) for p in range(6)]
    draws = [uniform(*key, index) for key in keys for index in range(6)]
    assert len(set(draws)) == len(keys) * 6


@settings(max_examples=100, deadline=None)
@given(st.tuples(SEEDS, AGENTS, HOPS, PURPOSES), st.tuples(SEEDS, AGENTS, HOPS, PURPOSES))
def test_different_keys_draw_different_numbers(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    same = [uniform(*one, index) == uniform(*other, index) for index in range(4)]
    assert all(same) if one == other else not any(same)
