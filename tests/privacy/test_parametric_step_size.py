"""PI-ADMM1 with exact steps: every agent's function and every multiplier, to rounding."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.privacy.attacks import forward_filter, parametric_step_size
from roundelay.transcripts import Eavesdropper, Neighbours
from tests.privacy.support import observed, relative


def errors(truth, problem, agent, found):
    """Of H, of g, and of all y from the first visit on."""
    origin = np.zeros(problem.dim)
    y = truth.of(agent)[1]
    return (
        relative(found.H, problem.hessian(agent, origin)),
        relative(found.g, problem.gradient(agent, origin)),
        relative(found.y[1:], y[1:]),
    )


def test_every_function_and_every_multiplier_of_a_hundred_agents():
    problem = rl.paper_least_squares(100)
    truth = observed(rl.PIADMM1(), problem, 2000)
    for agent in range(100):
        found = parametric_step_size(truth.visits(agent), truth.public)
        assert found.converged
        assert max(errors(truth, problem, agent, found)) < 1e-8
        each = np.linalg.norm(found.y - truth.of(agent)[1], axis=1) / np.linalg.norm(truth.of(agent)[1], axis=1)
        assert each[1:].max() < 1e-8
        x = truth.of(agent)[0][-1]
        assert relative(found.gradient(x), problem.gradient(agent, x)) < 1e-8


def test_the_step_sizes_themselves_come_to_light():
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(10), 150)
    visits = truth.visits(3)
    found, (x, y) = parametric_step_size(visits, truth.public), truth.of(3)
    gamma = ((y[1:] - y[:-1]) / (10.0 * (visits.received - x[1:])))[:, 0]
    np.testing.assert_allclose(found.gamma[1:, 0], gamma[1:], rtol=1e-5)


def test_only_the_drawn_start_stays_on_a_line():
    """x⁰ = (1 + γ_0)x_1 − d_0 − γ_0 z_0 with a γ_0 that nothing else depends on."""
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(10), 200)
    found, (x, _) = parametric_step_size(truth.visits(3), truth.public), truth.of(3)
    line = found.x[1] - truth.visits(3).received[0]
    along = (x[0] - found.x[0]) @ line / (line @ line)
    assert abs(along) <= 0.1
    np.testing.assert_allclose(found.x[0] + along * line, x[0], rtol=1e-9)


def test_ten_dimensions_from_twenty_visits():
    problem = rl.paper_least_squares(5, dim=10)
    truth = observed(rl.PIADMM1(), problem, 100)
    for agent in range(5):
        found = parametric_step_size(truth.visits(agent), truth.public)
        assert found.converged
        assert max(errors(truth, problem, agent, found)) < 1e-6


@pytest.mark.parametrize(
    "algorithm",
    [
        rl.PIADMM1(gamma_spread=0.5),
        rl.PIADMM1(start=rl.UniformStart(0.0, 1e5)),
        rl.PIADMM1(gamma=3.0),
        rl.PIADMM1(gamma_spread=0.0),
        rl.IADMM(),
        rl.RandomStart(),
    ],
    ids=repr,
)
def test_neither_a_wider_step_size_nor_a_larger_start_helps(algorithm):
    problem = rl.paper_least_squares(8)
    truth = observed(algorithm, problem, 160)
    for agent in range(8):
        found = parametric_step_size(truth.visits(agent), truth.public)
        assert found.converged
        assert max(errors(truth, problem, agent, found)) < 1e-8


def test_what_the_neighbours_find_is_what_the_eavesdropper_finds_bit_for_bit():
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(20), 300)
    for agent in (0, 7, 19):
        one, other = (
            parametric_step_size(truth.visits(agent, observer), truth.public)
            for observer in (Eavesdropper(), Neighbours(agent))
        )
        for name in ("x", "y", "H", "g", "gamma"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.residual == other.residual


def test_one_coordinate_is_limited_by_the_prior():
    problem = rl.paper_least_squares(10, dim=1)
    truth = observed(rl.PIADMM1(), problem, 200)
    found = [parametric_step_size(truth.visits(agent), truth.public) for agent in range(10)]
    off = [relative(fit.H, problem.hessian(agent, np.zeros(1))) for agent, fit in enumerate(found)]
    assert not any(fit.converged for fit in found)
    assert "too few equations" in found[0].words
    assert 1e-6 < np.median(off) < 0.05


def test_too_few_visits_are_said_to_be_and_a_prior_helps_them():
    problem = rl.paper_least_squares(10, dim=4)
    truth = observed(rl.PIADMM1(), problem, 40)
    found = parametric_step_size(truth.visits(2), truth.public)
    assert not found.converged
    assert "too few equations" in found.words
    asked = parametric_step_size(observed(rl.PIADMM1(), problem, 200).visits(2), truth.public, prior=True)
    assert not asked.converged  # with a prior H is an estimate
    assert relative(asked.H, problem.hessian(2, np.zeros(4))) < 0.2


def test_a_function_that_is_not_quadratic_is_noticed():
    problem = rl.paper_logistic(6)
    algorithm = rl.PIADMM1(rho=1.0, start=rl.UniformStart(0.0, 10.0))
    truth = observed(algorithm, problem, 180)
    found = parametric_step_size(truth.visits(1), truth.public)
    assert not found.converged
    assert found.residual > 1e-6
    assert relative(found.y[-1], truth.of(1)[1][-1]) < 0.05


def test_rank_one_hessians_hide_only_what_the_filter_does_not_need():
    generator = np.random.default_rng(0)
    problem = rl.LeastSquares(generator.random((6, 1, 2)), generator.random((6, 1)))
    truth = observed(rl.PIADMM1(rho=1.0), problem, 240)
    visits = truth.visits(2)
    found = parametric_step_size(visits, truth.public)
    assert np.isfinite(found.H).all()
    assert relative(forward_filter(visits, truth.public).y[-1], truth.of(2)[1][-1]) < 0.05


def test_other_methods_are_referred_to_other_attacks():
    for algorithm, other in (
        (rl.PIADMM1(rho=50.0, first_order=True), "parametric_first_order"),
        (rl.PIADMM2(), "parametric_primal"),
    ):
        truth = observed(algorithm, rl.paper_least_squares(4), 40)
        with pytest.raises(ValueError, match=other):
            parametric_step_size(truth.visits(0), truth.public)
    truth = observed(rl.WADMM(), rl.paper_least_squares(5), 200, network=rl.path(5))
    with pytest.raises(ValueError, match="kept the token"):
        parametric_step_size(truth.visits(0), truth.public)
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(4), 4)
    with pytest.raises(ValueError, match="no second visit"):
        parametric_step_size(truth.visits(0), truth.public)
