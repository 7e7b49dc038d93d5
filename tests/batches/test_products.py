"""One half of Σ w z z', by NumPy and compiled: the same to the bit, so that nobody sees which of them it was."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.batches import Passes, open_folder, products
from roundelay.batches.problem import BatchedProblem, Named, gram_of
from roundelay.batches.products import LANES, NARROW, ROWS_AT_ONCE, add_products, by_numpy, compiled, whole_of
from roundelay.engine.assemble import Allowance
from roundelay.kernels import Matrix, Vector
from tests.batches.folders import NAMES, Site

# Around all places where a loop ends or another begins.
LENGTHS = (0, 1, LANES - 1, LANES, LANES + 1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + LANES + 1, 3000)


def drawn(columns: int, length: int) -> tuple[Matrix, Vector]:
    """Numbers of all sizes, so that whoever adds in another order has other digits; some weights are 0."""
    draws = np.random.default_rng([columns, length])
    tile = draws.standard_normal((columns, length)) * 10.0 ** draws.integers(-6, 7, (columns, length))
    return tile, draws.random(length) * (draws.random(length) < 0.8)


def by_long_doubles(tile: Matrix, weights: Vector) -> Matrix:
    long = tile.astype(np.longdouble)
    return np.asarray((long * weights) @ long.T, np.float64)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 9, 13])
def test_both_forms_have_the_same_bits(columns: int) -> None:
    for length in LENGTHS:
        tile, weights = drawn(columns, length)
        found, expected = np.ones((2, columns, columns))
        by_numpy(tile, weights, found)
        compiled()(tile, weights, expected)
        assert found.tobytes() == expected.tobytes(), length


@pytest.mark.parametrize("columns", [1, 6, NARROW, NARROW + 1])
@pytest.mark.parametrize("left", [0, 2**40])
def test_they_are_the_products(columns: int, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_BY_NUMPY", Allowance(left))
    tile, weights = drawn(columns, 700)
    half = np.zeros((columns, columns))
    add_products(tile, weights, half)
    add_products(tile[:, :0], weights[:0], half)
    sizes = np.sqrt((weights * tile**2).sum(axis=1))
    apart = (whole_of(half) - by_long_doubles(tile, weights)) / np.outer(sizes, sizes)
    assert np.abs(apart).max() < 1e-13
    assert np.array_equal(whole_of(half), whole_of(half).T)


def test_what_is_not_finite_is_seen_by_both() -> None:
    tile, weights = drawn(3, 40)
    tile[1, 20] = np.inf
    for form in (by_numpy, compiled()):
        half = np.zeros((3, 3))
        with np.errstate(invalid="ignore"):
            form(tile, weights + 0.1, half)
        assert np.isfinite(half[[0, 0, 2], [0, 2, 2]]).all() and not np.isfinite(half[[0, 1, 1], [1, 1, 2]]).any()


def test_a_sum_has_the_same_bits_whoever_formed_it(sites: list[Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """By NumPy, compiled, and where one takes over from the other in the middle of a pass, on one thread and on three."""
    folder, found = open_folder(sites[1].folder), []
    for left in (2**40, 0, 1500):
        for threads in (1, 3):
            monkeypatch.setattr(products, "_BY_NUMPY", Allowance(left))
            problem = rl.by_batches(rl.Logistic, [folder], NAMES, "label", ridge=0.1, threads=threads)
            assert isinstance(problem, BatchedProblem)
            value, gradient, hessian = problem.sites[0].sums(np.full(3, 0.01), True)
            gram = gram_of(folder.parts, Named((*NAMES, "t")), Passes(threads)).products
            found.append(np.concatenate([[value], gradient, hessian.ravel(), gram.ravel()]).tobytes())
    assert len(set(found)) == 1


def test_few_rows_wait_for_no_compiler() -> None:
    """A hundred thousand rows of ten columns are read several times before one is asked for."""
    allowance = Allowance(products.SOON_FORMED)
    assert sum(allowance.takes(100_000 * 55) for _ in range(1000)) > 20
