"""The paper's synthetic data."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from roundelay.problems import paper_least_squares, paper_logistic

MAKERS = [paper_least_squares, paper_logistic]


def test_least_squares_is_drawn_from_the_unit_interval() -> None:
    rows = paper_least_squares(agents=50, samples=40, dim=3, seed=1).rows
    assert rows.features.shape == (2000, 3) and rows.targets.shape == (2000,) and (rows.counts == 40).all()
    for numbers in (rows.features.ravel(), rows.targets):
        assert kstest(numbers, "uniform").pvalue > 1e-4
        assert numbers.min() >= 0.0 and numbers.max() < 1.0


def test_logistic_is_drawn_from_the_model() -> None:
    problem = paper_logistic(agents=200, samples=100, dim=3, seed=1)
    rows = problem.rows
    assert kstest(rows.features.ravel(), "norm").pvalue > 1e-4
    assert set(rows.targets) == {-1.0, 1.0}
    # The fit of 20,000 rows is close to the truth, so that its probabilities must be calibrated.
    chance = 1.0 / (1.0 + np.exp(-rows.features @ problem.optimum))
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        chosen = (chance >= low) & (chance < high)
        spread = np.sqrt((chance * (1.0 - chance))[chosen].sum())
        assert abs((rows.targets[chosen] == 1.0).sum() - chance[chosen].sum()) <= 4.0 * spread
    # The truth itself is from N(0, I): over seeds its fits have mean 0 and variance 1.
    fits = np.array([paper_logistic(agents=20, samples=100, dim=2, seed=seed).optimum for seed in range(100)])
    assert abs(fits.mean()) <= 4.0 / np.sqrt(200)
    assert 0.6 <= fits.var() <= 1.6


@pytest.mark.parametrize("make", MAKERS)
def test_seeds_reproduce_and_differ(make: Any) -> None:
    first, again, other = (make(agents=5, samples=30, dim=2, seed=seed).rows for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.features, again.features)
    np.testing.assert_array_equal(first.targets, again.targets)
    assert not np.intersect1d(first.features, other.features).size


def test_the_two_experiments_share_no_draws() -> None:
    """Their streams are apart: even as ranks, features of one do not foretell those of the other."""
    a, b = (make(agents=20, samples=50, dim=2, seed=0).rows.features.ravel() for make in MAKERS)
    assert abs(np.corrcoef(a, b)[0, 1]) <= 4.0 / np.sqrt(len(a))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["agents", "samples", "dim"])
@pytest.mark.parametrize("size", [0, -3])
def test_sizes_below_one_are_refused(make: Any, name: str, size: int) -> None:
    with pytest.raises(ValueError, match=rf"^The number of {name[:3]}\w* is {size}: use at least 1\.$"):
        make(**{name: size})


@pytest.mark.parametrize("make", MAKERS)
def test_negative_seeds_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"^The seed is -1: .*\.$"):
        make(seed=-1)


@pytest.mark.parametrize("make", MAKERS)
def test_a_hundred_thousand_agents(make: Any) -> None:
    began = time.process_time()
    problem = make(agents=100_000, samples=3, dim=2)
    numbers, lipschitz, optimum = problem.kernel().numbers, problem.L, problem.optimum
    assert time.process_time() - began < 20.0
    assert problem.agents == 100_000 and len(numbers.row_starts) == 100_001
    gradients = problem.gradients(np.broadcast_to(optimum, (100_000, 2)))
    assert np.linalg.norm(gradients.sum(axis=0)) <= 1e-12 * np.abs(gradients).sum()
    block = problem.hessian(77, np.zeros(2))
    assert np.linalg.norm(block, 2) <= lipschitz
