"""Where an attack says that it has converged, it is right: no attack is shown the truth, and none needs it to know."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.privacy.attacks import parametric_step_size
from tests.privacy.support import observed, relative


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    dim=st.integers(2, 4),
    rows=st.integers(1, 8),
    rho=st.floats(2.0, 40.0),
    spread=st.floats(0.01, 0.6),
    laps=st.integers(6, 30),
)
def test_a_converged_attack_on_PI_ADMM1_is_right(seed, dim, rows, rho, spread, laps):
    generator = np.random.default_rng(seed)
    problem = rl.LeastSquares(
        generator.standard_normal((4, rows, dim)), generator.standard_normal((4, rows)), ridge=0.1
    )
    truth = observed(rl.PIADMM1(rho=rho, gamma_spread=spread), problem, 4 * laps, seed=seed)
    found = parametric_step_size(truth.visits(1), truth.public)
    if found.converged:
        assert relative(found.H, problem.hessian(1, np.zeros(dim))) < 1e-6
        assert relative(found.y[1:], truth.of(1)[1][1:]) < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_most_converge(seed):
    problem = rl.paper_least_squares(10, dim=3, seed=seed)
    truth = observed(rl.PIADMM1(), problem, 200, seed=seed)
    converged = [parametric_step_size(truth.visits(agent), truth.public).converged for agent in range(10)]
    assert sum(converged) >= 9
