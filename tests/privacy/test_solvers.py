"""The small solvers that the attacks share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import least_squares

from roundelay.privacy.attacks.solving import eliminate, joined, minimise_squares, split, times


def test_a_valley_that_bends():
    """Rosenbrock's function, in units that differ by a million."""

    def residuals(theta):
        x, y = theta[0], theta[1] * 1e6
        return np.array([10.0 * (y - x**2), 1.0 - x]), np.array([[-20.0 * x, 1e7], [-1.0, 0.0]])

    found = minimise_squares(residuals, np.array([-1.2, 1e-6]), limit=200)
    assert found.settled
    np.testing.assert_allclose(found.theta, [1.0, 1e-6], rtol=1e-10)


def test_a_curve_with_noise_as_scipy_fits_it():
    generator = np.random.default_rng(0)
    t = np.linspace(0.0, 2.0, 40)
    data = 3.0 * np.exp(-1.5 * t) + 0.1 * generator.standard_normal(40)

    def residuals(theta):
        decay = np.exp(-theta[1] * t)
        return theta[0] * decay - data, np.column_stack([decay, -theta[0] * t * decay])

    start = np.array([1.0, 0.5])
    found = minimise_squares(residuals, start)
    expected = least_squares(lambda theta: residuals(theta)[0], start, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(found.theta, expected.x, rtol=1e-6)
    assert found.cost == pytest.approx(2.0 * expected.cost)


def test_a_singular_jacobian_does_no_harm():
    found = minimise_squares(lambda theta: (np.array([theta.sum() - 2.0]), np.ones((1, 3))), np.zeros(3))
    np.testing.assert_allclose(found.theta, 2.0 / 3.0)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), hold=st.floats(0.0, 100.0), mean=st.floats(-2.0, 2.0))
def test_a_factor_is_eliminated_as_if_it_had_been_minimised_over(seed, hold, mean):
    generator = np.random.default_rng(seed)
    base, u = generator.standard_normal((3, 4)), generator.standard_normal((3, 4))
    left = eliminate(base + mean * u, u, mean, hold)
    gap = base + left.factor[:, None] * u
    cost = (gap**2).sum() + hold * ((u**2).sum(axis=1) * (left.factor - mean) ** 2).sum()
    assert (left.residual**2).sum() == pytest.approx(cost)
    # No other factor does better.
    for shift in (-1e-3, 1e-3):
        other = left.factor + shift
        worse = ((base + other[:, None] * u) ** 2).sum() + hold * ((u**2).sum(axis=1) * (other - mean) ** 2).sum()
        assert worse >= cost


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_symmetric_matrix_as_a_vector(dim):
    generator = np.random.default_rng(dim)
    matrix = generator.standard_normal((dim, dim))
    matrix, vector, points = matrix + matrix.T, generator.standard_normal(dim), generator.standard_normal((3, dim))
    theta = joined(matrix, vector)
    again = split(theta, dim)
    np.testing.assert_array_equal(again[0], matrix)
    np.testing.assert_array_equal(again[1], vector)
    np.testing.assert_allclose(times(points) @ theta[:-dim], points @ matrix, rtol=1e-12)
