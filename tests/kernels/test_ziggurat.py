"""`quick_normals`, the ziggurat: its layers, the same draws in both engines, and the normal law down to its tails."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from hypothesis import example, given, settings, strategies as st
from scipy.stats import chisquare, kstest, norm

from roundelay.kernels import NOISE
from roundelay.kernels.ziggurat import ZIGGURAT_LAYERS, layer_edges, quick_normals
from tests.kernels.support import compiled, within

EDGES = layer_edges()


def call_normals(edges: Any, seed: Any, agent: int, hop: int, purpose: int, words: Any, out: Any) -> int:
    quick_normals(edges, seed, agent, hop, purpose, words, out)
    return 0


def normals_by(form: Any, seed: Any, agent: int, hop: int, count: int) -> np.ndarray:
    words, out = np.full(2 * -(-count // 2), 2**63, np.uint64), np.full(count, np.nan)
    form(EDGES, seed, agent, hop, NOISE, words, out)
    return out


@cache
def many() -> np.ndarray:
    """Four million draws."""
    return normals_by(compiled(call_normals), np.uint64(5), 1, 2, 4_000_000)


def test_the_layers_have_the_same_area_and_end_at_the_top() -> None:
    heights = np.exp(-0.5 * EDGES[1:] ** 2)
    assert len(EDGES) == ZIGGURAT_LAYERS + 1 and (np.diff(EDGES) < 0.0).all() and EDGES[-1] == 0.0
    tail = math.sqrt(0.5 * math.pi) * math.erfc(EDGES[1] / math.sqrt(2.0))
    areas = [EDGES[1] * heights[0] + tail, EDGES[0] * heights[0], *(EDGES[1:-1] * np.diff(heights))]
    np.testing.assert_allclose(areas, areas[0], rtol=1e-11)


def test_the_usual_numbers_of_layers_have_the_published_tails() -> None:
    """Marsaglia and Tsang's, for 128 and 256 layers."""
    assert math.isclose(layer_edges(128)[1], 3.442619855899, rel_tol=1e-11)
    assert math.isclose(layer_edges(256)[1], 3.6541528853610088, rel_tol=1e-13)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**20), st.integers(0, 2**50), st.integers(0, 50))
@example(2**64 - 1, 2**20, 2**50, 11)
def test_the_engines_agree_bit_for_bit(seed: int, agent: int, hop: int, count: int) -> None:
    plain = normals_by(quick_normals, seed, agent, hop, count)
    np.testing.assert_array_equal(plain, normals_by(compiled(call_normals), np.uint64(seed), agent, hop, count))


def test_the_engines_agree_beyond_the_layers() -> None:
    """Among so many draws are some of each rare kind: at the edge, above the curve, and in the tail."""
    plain = normals_by(quick_normals, 3, 1, 2, 60_000)
    np.testing.assert_array_equal(plain, normals_by(compiled(call_normals), np.uint64(3), 1, 2, 60_000))
    assert (np.abs(plain) > EDGES[1]).any()


def test_a_shorter_row_is_the_beginning_of_a_longer_one() -> None:
    whole = normals_by(compiled(call_normals), np.uint64(3), 1, 2, 5000)
    for count in (1, 2, 3, 999):
        np.testing.assert_array_equal(normals_by(compiled(call_normals), np.uint64(3), 1, 2, count), whole[:count])


def test_they_are_normal() -> None:
    draws = many()
    assert kstest(draws[:1_000_000], "norm").pvalue > 1e-4
    error = 1.0 / np.sqrt(len(draws))
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0), (8, 105.0)):
        values = draws**power
        assert within(values.mean(), moment, values.std() * error), power
    ends = norm.ppf(np.linspace(0.0, 1.0, 2001))
    assert chisquare(np.histogram(draws, ends)[0]).pvalue > 1e-4


def test_they_are_normal_about_every_edge() -> None:
    """A fine histogram of |x| between the edges: what is decided at the edges is decided with the right chance."""
    ends = np.append(EDGES[:0:-1], np.inf)
    seen = np.histogram(np.abs(many()), ends)[0]
    assert chisquare(seen, len(many()) * 2.0 * -np.diff(norm.sf(ends))).pvalue > 1e-4


def test_the_tails_are_normal() -> None:
    sizes = np.abs(many())
    for from_ in (3.0, EDGES[1]):
        beyond = sizes[sizes > from_]
        chance = 2.0 * norm.sf(from_)
        assert within(len(beyond), len(sizes) * chance, np.sqrt(len(sizes) * chance))
        assert kstest(norm.sf(beyond) / norm.sf(from_), "uniform").pvalue > 1e-4
    assert within((many()[sizes > EDGES[1]] > 0.0).mean(), 0.5, 0.5 / np.sqrt((sizes > EDGES[1]).sum()))


def test_draws_of_a_row_are_independent() -> None:
    draws = many()
    for values in (draws, np.abs(draws) - np.sqrt(2.0 / np.pi), draws**2 - 1.0):
        for lag in (1, 2, 3, 4, 8, 100):
            products = values[lag:] * values[:-lag]
            assert within(products.mean(), 0.0, products.std() / np.sqrt(len(products))), lag


def test_seeds_agents_hops_and_places_are_independent() -> None:
    seeds, agents, hops = (2, 3), range(6), range(60)
    fast = compiled(call_normals)
    table = np.array(
        [normals_by(fast, np.uint64(seed), agent, hop, 99) for seed, agent, hop in product(seeds, agents, hops)]
    )
    draws = table.reshape(len(seeds), len(agents), len(hops), 99)
    for axis in range(4):
        size = draws.shape[axis]
        for lag in {1, 2, size - 1} & set(range(1, size)):
            here, there = np.take(draws, range(size - lag), axis), np.take(draws, range(lag, size), axis)
            assert within((here * there).mean(), 0.0, 1.0 / np.sqrt(here.size)), (axis, lag)
