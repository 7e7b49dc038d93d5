"""One γ for each coordinate: H is no longer determined, y is not protected."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.privacy.attacks import forward_filter, parametric_step_size, telescope, vector_gamma
from tests.privacy.support import observed, relative
from tests.privacy.vector_steps import vector_step_run


@pytest.fixture(scope="module")
def problem():
    return rl.paper_least_squares(20)


@pytest.fixture(scope="module")
def truth(problem):
    return vector_step_run(problem, 1200)


def test_the_loop_of_the_test_is_the_method(problem, truth):
    np.testing.assert_allclose(truth.transcript.tokens[-1], problem.optimum, atol=1e-6)
    invariant = (truth.x[-1] - truth.y[-1] / 10.0).mean(axis=0)
    np.testing.assert_allclose(truth.transcript.tokens[-1], invariant, atol=1e-12)


@pytest.mark.parametrize("solver", ["reweighted", "range"])
def test_H_is_estimated_to_about_the_spread_over_the_root_of_the_visits(problem, truth, solver):
    off = []
    for agent in range(20):
        found = vector_gamma(truth.visits(agent), truth.public, solver)
        assert found.converged
        assert found.residual < 0.1
        off.append(relative(found.H, problem.hessian(agent, np.zeros(2))))
    assert 1e-5 < np.median(off) < 0.1 / np.sqrt(60)


@pytest.mark.parametrize("solver", ["reweighted", "range"])
def test_y_and_the_gradient_at_the_optimum_are_not_protected(problem, truth, solver):
    for agent in range(0, 20, 3):
        visits, (_, y) = truth.visits(agent), truth.of(agent)
        assert relative(vector_gamma(visits, truth.public, solver).y[-1], y[-1]) < 1e-5
        assert relative(forward_filter(visits, truth.public).y[-1], y[-1]) < 1e-5
        assert relative(telescope(visits, truth.public).y[-1], problem.gradient(agent, problem.optimum)) < 1e-5


def test_the_step_sizes_it_asks_for_stay_in_their_range(truth):
    found = vector_gamma(truth.visits(4), truth.public, "range")
    assert (np.abs(found.gamma - 1.0) <= 0.1 + 1e-12).all()


def test_the_attack_on_a_scalar_step_size_fails_here_and_says_so(problem, truth):
    found = parametric_step_size(truth.visits(4), truth.public)
    assert not found.converged
    assert relative(found.H, problem.hessian(4, np.zeros(2))) > 1e-4


def test_a_scalar_step_size_is_no_obstacle(problem):
    """The model of a vector γ holds a scalar one: a weaker attack, but not a wrong one."""
    truth = observed(rl.PIADMM1(), problem, 1200)
    off = [
        relative(vector_gamma(truth.visits(agent), truth.public).H, problem.hessian(agent, np.zeros(2)))
        for agent in range(0, 20, 4)
    ]
    assert np.median(off) < 0.05


def test_without_any_perturbation_it_is_exact(problem):
    truth = observed(rl.RandomStart(), problem, 400)
    found, (x, _) = vector_gamma(truth.visits(7), truth.public), truth.of(7)
    assert found.converged
    assert relative(found.H, problem.hessian(7, np.zeros(2))) < 1e-8
    assert relative(found.x, x) < 1e-8


def test_what_it_refuses(truth):
    with pytest.raises(ValueError, match='use "reweighted" or "range"'):
        vector_gamma(truth.visits(0), truth.public, "guess")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="observe more hops"):
        vector_gamma(truth.visits(0).first(2), truth.public)
    other = observed(rl.PIADMM1(rho=50.0, first_order=True), rl.paper_least_squares(4), 40)
    with pytest.raises(ValueError, match="exact steps"):
        vector_gamma(other.visits(0), other.public)
