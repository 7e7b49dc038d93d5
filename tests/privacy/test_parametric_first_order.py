"""First-order steps: quadratics, and single records of a logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import roundelay as rl
from roundelay.privacy.attacks import LogisticRecords, Quadratics, parametric_first_order
from roundelay.transcripts import Eavesdropper, Neighbours
from tests.privacy.support import observed, relative


def records_off(problem, agent, records):
    """The largest distance between a record and its recovery, paired in the best way."""
    distances = np.linalg.norm(problem.signed[problem.rows.of(agent)][:, None] - records[None], axis=2)
    return distances[linear_sum_assignment(distances)].max()


@pytest.mark.parametrize(
    "algorithm",
    [
        rl.PIADMM1(rho=50.0, first_order=True),
        rl.RandomStart(rho=50.0, first_order=True),
        rl.IADMM(rho=50.0, first_order=True),
    ],
    ids=repr,
)
def test_quadratics_are_found(algorithm):
    problem = rl.paper_least_squares(20)
    truth = observed(algorithm, problem, 500)
    for agent in range(0, 20, 3):
        found, (_, y) = parametric_first_order(truth.visits(agent), truth.public), truth.of(agent)
        assert found.converged
        assert relative(found.H, problem.hessian(agent, np.zeros(2))) < 1e-8
        assert relative(found.g, problem.gradient(agent, np.zeros(2))) < 1e-8
        assert relative(found.y[1:], y[1:]) < 1e-8


def test_three_records_of_each_agent_come_to_light():
    problem = rl.paper_logistic(20, samples=3)
    algorithm = rl.PIADMM1(rho=1.0, start=rl.UniformStart(0.0, 10.0), first_order=True)
    truth = observed(algorithm, problem, 1000)
    for agent in range(0, 20, 4):
        found = parametric_first_order(truth.visits(agent), truth.public, LogisticRecords(3))
        assert found.converged
        assert records_off(problem, agent, found.records) < 1e-6
        assert relative(found.y[-1], truth.of(agent)[1][-1]) < 1e-8
        x = truth.of(agent)[0][-1]
        assert relative(found.gradient(x), problem.gradient(agent, x)) < 1e-8


def test_four_records_too():
    problem = rl.paper_logistic(20, samples=4)
    algorithm = rl.PIADMM1(rho=1.0, start=rl.UniformStart(0.0, 10.0), first_order=True)
    truth = observed(algorithm, problem, 1000)
    found = parametric_first_order(truth.visits(3), truth.public, LogisticRecords(4))
    assert found.converged
    assert records_off(problem, 3, found.records) < 1e-6


def test_what_the_neighbours_find_is_what_the_eavesdropper_finds_bit_for_bit():
    truth = observed(rl.PIADMM1(rho=50.0, first_order=True), rl.paper_least_squares(6), 150)
    one, other = (
        parametric_first_order(truth.visits(4, observer), truth.public) for observer in (Eavesdropper(), Neighbours(4))
    )
    for name in ("x", "y", "H", "g", "gamma"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_wrong_family_is_noticed():
    problem = rl.paper_logistic(6, samples=5)
    algorithm = rl.PIADMM1(rho=1.0, start=rl.UniformStart(0.0, 10.0), first_order=True)
    truth = observed(algorithm, problem, 180)
    found = parametric_first_order(truth.visits(1), truth.public, Quadratics(), starts=2)
    assert not found.converged
    assert found.residual > 1e-6


def test_too_few_visits_are_said_to_be():
    truth = observed(rl.PIADMM1(rho=50.0, first_order=True), rl.paper_least_squares(6), 24)
    found = parametric_first_order(truth.visits(1), truth.public)
    assert not found.converged
    assert "too few" in found.words


def test_other_methods_are_referred_to_other_attacks():
    for algorithm in (rl.PIADMM1(), rl.PIADMM2(rho=50.0, first_order=True)):
        truth = observed(algorithm, rl.paper_least_squares(4), 40)
        with pytest.raises(ValueError, match="parametric_step_size"):
            parametric_first_order(truth.visits(0), truth.public)


@pytest.mark.parametrize("family", [Quadratics(), LogisticRecords(3, ridge=0.3)])
def test_the_derivatives_of_the_families(family):
    generator = np.random.default_rng(1)
    points, theta = generator.standard_normal((4, 2)), generator.standard_normal(family.size(2))
    slopes = family.slopes(theta, points)
    np.testing.assert_allclose(slopes.value, family.gradients(theta, points), rtol=1e-13)
    step = 1e-6
    for k in range(len(theta)):
        moved = np.eye(len(theta))[k] * step
        difference = (family.gradients(theta + moved, points) - family.gradients(theta - moved, points)) / (2.0 * step)
        np.testing.assert_allclose(slopes.by_theta[:, :, k], difference, atol=1e-8)
    for k in range(2):
        moved = np.eye(2)[k] * step
        difference = (family.gradients(theta, points + moved) - family.gradients(theta, points - moved)) / (2.0 * step)
        np.testing.assert_allclose(slopes.by_x[:, :, k], difference, atol=1e-8)


def test_the_family_of_logistic_records_is_the_problems_own_gradient():
    problem = rl.paper_logistic(4, samples=3, ridge=0.2)
    points = np.random.default_rng(0).standard_normal((5, 2))
    theta = problem.signed[problem.rows.of(1)].ravel()
    expected = np.array([problem.gradient(1, x) for x in points])
    np.testing.assert_allclose(LogisticRecords(3, ridge=0.2).gradients(theta, points), expected, rtol=1e-12)
