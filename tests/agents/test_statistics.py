"""Sums under masks are exact, and what follows from them is what the pooled rows say."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.preprocessing import StandardScaler

from roundelay.agents.data.reading import OwnRows
from roundelay.agents.data.statistics import (
    Standard,
    first_moments,
    means_of,
    pack,
    refuse_large,
    second_moments,
    standard_of,
    unpack,
)
from roundelay.masks import SeededPairs, WideFixedPoint, my_seal
from tests.agents.pooled import pool, sealed_sum, shares, standard_by_sums

GRIDDED = WideFixedPoint()
GRID = 2.0**-64
LARGEST = 2.0**56  # of which fifty can be summed
NUMBERS = st.one_of(
    st.floats(-LARGEST, LARGEST),
    st.floats(-1.0, 1.0),
    st.floats(-1e-15, 1e-15),
    st.integers(-9, 9).map(lambda halves: halves * GRID / 2),
    st.integers(-(2**56), 2**56).map(float),
    st.sampled_from([0.0, -0.0, GRID, -GRID, LARGEST, -LARGEST, 5e-324, -1.0, 2.0**32, -(2.0**32)]),
)


def steps(value: float) -> int:
    """A number in steps of the grid, by whole numbers alone."""
    numerator, denominator = value.as_integer_ratio()
    below, rest = divmod(numerator * 2**64, denominator)
    up = 2 * rest > denominator or (2 * rest == denominator and below % 2 == 1)
    return below + up


@settings(deadline=None)
@given(
    st.integers(2, 50).flatmap(lambda sites: st.lists(NUMBERS, min_size=sites, max_size=sites)),
    st.integers(0, 2**64 - 1),
)
def test_a_sum_under_masks_is_that_of_the_numbers_on_the_grid(values: list[float], seed: int) -> None:
    total = sealed_sum([np.array([value]) for value in values], seed)[0]
    exact = sum(steps(value) for value in values) / 2**64
    assert abs(total - exact) <= math.ulp(exact)
    # Each share is rounded by half a step at most, and the total to a double.
    assert abs(total - math.fsum(values)) <= len(values) * GRID / 2 + 2 * math.ulp(total)


@settings(deadline=None)
@given(st.lists(st.integers(-(2**53), 2**53), min_size=2, max_size=50), st.integers(-64, 9))
def test_numbers_that_lie_on_the_grid_are_summed_without_any_error(wholes: list[int], exponent: int) -> None:
    values = [math.ldexp(whole, exponent) for whole in wholes]
    found, exact = sealed_sum([np.array([value, -value]) for value in values]), math.fsum(values)
    assert found[0] == -found[1] and abs(found[0] - exact) <= math.ulp(exact)
    if abs(exact) < 2**53 and exponent >= 0:
        assert found[0] == exact


@given(st.lists(NUMBERS, min_size=0, max_size=9))
def test_decoding_undoes_encoding(values: list[float]) -> None:
    words = GRIDDED.encode(np.array(values))
    assert words.shape == (2 * len(values),) and words.dtype == np.uint64
    whole = [int(low) + (int(high) << 64) for low, high in words.reshape(-1, 2)]
    assert whole == [steps(value) % 2**128 for value in values]
    for found, value in zip(GRIDDED.decode(words).tolist(), values, strict=True):
        assert abs(found - steps(value) / 2**64) <= math.ulp(found)


def test_what_a_site_sends_is_its_words_under_its_own_seal() -> None:
    vectors = [np.array([1.5, -2.25]), np.array([1e9, 3.0]), np.array([-7.0, 0.125])]
    total = np.zeros(4, np.uint64)
    for me, vector in enumerate(vectors):
        total = GRIDDED.add(total, GRIDDED.add(GRIDDED.encode(vector), my_seal(SeededPairs(5), me, 3, 2, 0, GRIDDED)))
    assert GRIDDED.decode(total).tolist() == np.sum(vectors, axis=0).tolist()


@pytest.mark.parametrize("value", [2.0**62 / 3, -1e30, math.inf, math.nan])
def test_numbers_that_are_too_large_are_refused_but_not_shown(value: float) -> None:
    with pytest.raises(ValueError, match="This site's sum for income is too large") as refusal:
        refuse_large(np.array([0.0, value]), ["age", "income"], 4)
    assert str(value) not in str(refusal.value)
    refuse_large(np.array([0.0, 2.0**62 / 4]), ["age", "income"], 4)


@pytest.mark.parametrize("seed", range(5))
def test_the_sites_find_what_the_pooled_rows_say(seed: int) -> None:
    tables = shares(seed, sites=2 + 2 * seed)
    standard, pooled = standard_by_sums(tables), pool(tables)
    scaler = StandardScaler().fit(pooled.features)
    assert standard.rows == pooled.count
    np.testing.assert_allclose(standard.mean, scaler.mean_, rtol=1e-13)
    np.testing.assert_allclose(standard.deviation, scaler.scale_, rtol=1e-13)
    # Held against NumPy in extended precision, which has digits to spare.
    wide = np.column_stack([pooled.features, pooled.target]).astype(np.longdouble)
    exact_mean, exact_deviation = wide.mean(axis=0).astype(float), wide.std(axis=0).astype(float)
    np.testing.assert_allclose([*standard.mean, standard.target_mean], exact_mean, rtol=1e-14)
    np.testing.assert_allclose([*standard.deviation, standard.target_deviation], exact_deviation, rtol=1e-14)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_the_statistics_do_not_depend_on_who_has_which_rows(seed: int, sites: int) -> None:
    tables = shares(seed, sites)
    pooled = pool(tables)
    order = np.random.default_rng(seed).permutation(pooled.count)
    other = [OwnRows(pooled.features[rows], pooled.target[rows]) for rows in np.array_split(order, sites)]
    np.testing.assert_allclose(pack(standard_by_sums(tables)), pack(standard_by_sums(other)), rtol=1e-13)


def test_a_feature_that_is_the_same_everywhere_is_named() -> None:
    draws = np.random.default_rng(0)
    columns = [draws.normal(size=30), np.full(30, 0.1), np.full(30, -1e7 / 3.0)]
    tables = [
        OwnRows(np.column_stack(columns)[rows], draws.normal(size=len(rows))) for rows in (range(7), range(7, 30))
    ]
    with pytest.raises(ValueError, match='features "b", "c" are the same in all rows'):
        standard_by_sums(tables)
    assert standard_by_sums(tables, scaled=False).deviation[1:].tolist() == [0.0, 0.0]
    # One site alone may well have a constant feature.
    assert standard_by_sums([tables[0], OwnRows(tables[1].features + 1.0, tables[1].target)]).deviation[1] > 0.0


def constant_is_refused(value: float, counts: tuple[int, ...]) -> None:
    tables = [OwnRows(np.full((count, 1), value), np.arange(float(count))) for count in counts]
    with pytest.raises(ValueError, match='feature "a" is the same'):
        standard_by_sums(tables)


@settings(deadline=None)
@given(st.floats(1e-30, 1e12), st.integers(1, 40), st.integers(1, 40))
def test_a_constant_is_seen_whatever_its_mean_is_rounded_to(value: float, rows: int, more: int) -> None:
    constant_is_refused(value, (rows, more, 3))


def test_a_large_constant_is_seen() -> None:
    # Here the squares of the mean's rounding lie far above the grid.
    for value in np.random.default_rng(0).uniform(1e11, 1e12, 40):
        constant_is_refused(value, (7, 22, 3))


def test_a_feature_that_varies_in_its_last_digits_only_is_not_constant() -> None:
    features = np.array([[1e8 + k] for k in range(10)])
    standard = standard_by_sums([OwnRows(features[:4], np.arange(4.0)), OwnRows(features[4:], np.arange(6.0))])
    assert standard.deviation[0] == pytest.approx(np.arange(10).std(), rel=1e-14)


def test_packing_and_unpacking() -> None:
    standard = standard_by_sums(shares(3))
    again = unpack(pack(standard))
    assert pack(again).tolist() == pack(standard).tolist()
    assert again.rows == standard.rows and again.mean.tolist() == standard.mean.tolist()


@pytest.mark.parametrize(
    "vector",
    [[], [1.0] * 4, [1.0] * 6, [0.5, 0, 1, 0, 1], [0, 0, 1, 0, 1], [9, 0, -1, 0, 1], [9, 0, 1, 0, -1], [math.nan] * 5, [9, math.inf, 1, 0, 1], [9, 0, 1, math.inf, 1]],
)  # fmt: skip
def test_what_is_no_statistics_is_refused(vector: list[float]) -> None:
    with pytest.raises(ValueError):
        unpack(np.array(vector, np.float64))


def test_sums_that_do_not_belong_together_are_refused() -> None:
    table = shares(1)[0]
    first = first_moments(table)
    with pytest.raises(ValueError, match="2 means for 4 columns"):
        second_moments(table, means_of(first)[:2])
    with pytest.raises(ValueError, match="for 2 features"):
        standard_of(first, second_moments(table, means_of(first)), ["a", "b"])
    with pytest.raises(ValueError, match="rows of all sites"):
        means_of(np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="deviation each"):
        Standard(3, np.zeros(2), np.ones(3), 0.0, 1.0)
