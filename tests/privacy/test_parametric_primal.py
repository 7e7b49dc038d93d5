"""PI-ADMM2: a regression through the noise."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.privacy.attacks import forward_filter, parametric_primal
from tests.privacy.support import observed, relative


def test_H_of_the_paper_setting_at_a_hundred_visits():
    problem = rl.paper_least_squares(100)
    truth = observed(rl.PIADMM2(sigma=1e-3), problem, 10_000)
    off = []
    for agent in range(0, 100, 4):
        found = parametric_primal(truth.visits(agent), truth.public)
        assert found.converged
        assert 0.7e-3 < found.residual < 1.4e-3  # it estimates σ too
        off.append(relative(found.H, problem.hessian(agent, np.zeros(2))))
        assert relative(found.y[-1], truth.of(agent)[1][-1]) < 1e-10
    assert np.median(off) < 2e-3
    assert max(off) < 0.05


@pytest.mark.parametrize("first_order", [False, True])
def test_without_noise_it_is_exact(first_order):
    problem = rl.paper_least_squares(10)
    truth = observed(rl.PIADMM2(rho=50.0, sigma=0.0, first_order=first_order), problem, 200)
    for agent in range(0, 10, 2):
        found, (x, y) = parametric_primal(truth.visits(agent), truth.public), truth.of(agent)
        assert found.converged
        assert relative(found.H, problem.hessian(agent, np.zeros(2))) < 1e-9
        assert relative(found.g, problem.gradient(agent, np.zeros(2))) < 1e-9
        assert relative(found.x, x) < 1e-9
        assert relative(found.y, y) < 1e-9


def test_first_order_steps():
    problem = rl.paper_least_squares(20)
    truth = observed(rl.PIADMM2(rho=50.0, first_order=True), problem, 2000)
    for agent in range(0, 20, 4):
        found = parametric_primal(truth.visits(agent), truth.public)
        assert found.converged
        assert relative(found.H, problem.hessian(agent, np.zeros(2))) < 2e-3


def test_the_error_is_proportional_to_the_noise():
    """The same draws times ten move the estimate ten times as far."""
    problem, off = rl.paper_least_squares(10), []
    for sigma in (1e-5, 1e-4):
        truth = observed(rl.PIADMM2(sigma=sigma), problem, 400)
        found = parametric_primal(truth.visits(3), truth.public)
        off.append(found.H - problem.hessian(3, np.zeros(2)))
    assert relative(off[1], 10.0 * off[0]) < 0.1


def test_it_knows_the_past_better_than_the_filter():
    truth = observed(rl.PIADMM2(), rl.paper_least_squares(10), 400)
    visits, (_, y) = truth.visits(3), truth.of(3)
    fitted, filtered = parametric_primal(visits, truth.public), forward_filter(visits, truth.public)
    assert relative(fitted.y[:5], y[:5]) < 0.1 * relative(filtered.y[:5], y[:5])


def test_what_it_refuses():
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(4), 40)
    with pytest.raises(ValueError, match="parametric_step_size"):
        parametric_primal(truth.visits(0), truth.public)
    truth = observed(rl.PIADMM2(), rl.paper_least_squares(4), 12)
    with pytest.raises(ValueError, match="observe more hops"):
        parametric_primal(truth.visits(0), truth.public)
