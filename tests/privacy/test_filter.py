"""The telescope and the forward filter: what no start and no perturbation hides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.privacy import Public
from roundelay.privacy.attacks import forward_filter, recursion, telescope
from roundelay.transcripts import Colluders, Eavesdropper, Link, Neighbours
from tests.privacy.support import observed, relative

LEAST_SQUARES = rl.paper_least_squares(100)
ALGORITHMS = [
    rl.IADMM(),
    rl.RandomStart(),
    rl.PIADMM1(),
    rl.PIADMM2(),
    rl.PIADMM1(rho=50.0, first_order=True),
    rl.PIADMM2(rho=50.0, first_order=True),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_x_minus_y_over_rho_is_public_in_every_method(algorithm):
    truth = observed(algorithm, rl.paper_least_squares(10), 200)
    for agent in range(10):
        found, (x, y) = telescope(truth.visits(agent), truth.public), truth.of(agent)
        assert found.converged
        share = found.x - found.y / algorithm.rho
        np.testing.assert_allclose(share, x - y / algorithm.rho, atol=1e-11)


@pytest.mark.parametrize("algorithm", [rl.RandomStart(), rl.PIADMM1()])
def test_at_consensus_the_telescope_gives_the_gradient_at_the_optimum(algorithm):
    problem = rl.paper_least_squares(10)
    truth = observed(algorithm, problem, 3000)
    for agent in range(10):
        found = telescope(truth.visits(agent), truth.public)
        assert relative(found.y[-1], problem.gradient(agent, problem.optimum)) < 1e-7


def test_a_start_that_is_not_balanced_is_said_to_be():
    algorithm = rl.RandomStart(start=rl.UniformStart(0.0, 1.0, printed_sign=True))
    found = telescope(observed(algorithm, rl.paper_least_squares(4), 20).visits(0), Public(algorithm, 4, 2))
    assert not found.converged
    assert "constant" in found.words


@pytest.mark.parametrize("algorithm", [rl.RandomStart(), rl.PIADMM2(), rl.RandomStart(rho=50.0, first_order=True)])
@pytest.mark.parametrize("guess", [None, (-3.0, 200.0)])
def test_each_visit_halves_the_error_of_the_filter_exactly(algorithm, guess):
    truth = observed(algorithm, LEAST_SQUARES, 2000)
    for agent in (0, 57, 99):
        visits = truth.visits(agent)
        found, (x, y) = forward_filter(visits, truth.public, guess), truth.of(agent)
        assert found.converged
        halved = 0.5 ** np.arange(len(visits) + 1.0)[:, None] * (found.x[0] - x[0])
        np.testing.assert_allclose(found.x - x, halved, atol=1e-11)
        np.testing.assert_allclose(found.y - y, algorithm.rho * halved, atol=1e-9)


@pytest.mark.parametrize(("hops", "most"), [(2000, 1e-2), (20_000, 1e-9)])
def test_under_PI_ADMM1_it_settles_at_the_truth(hops, most):
    algorithm = rl.PIADMM1()
    run = rl.simulate(algorithm, LEAST_SQUARES, rl.ring(100), hops=hops, transcript=True, progress=False)
    assert run.transcript is not None
    seen, public = run.transcript.seen_by(Eavesdropper()), Public(algorithm, 100, 2)
    for agent in range(100):
        found = forward_filter(seen.visits_of(agent), public)
        assert found.converged
        assert relative(found.y[-1], run.y[agent]) < most


def test_what_the_unknown_step_size_leaves_is_bounded_by_its_spread():
    """|x̂⁺ − x⁺| ≤ ½|x̂ − x| + ½·spread·|z − x⁺| in every coordinate."""
    truth = observed(rl.PIADMM1(), LEAST_SQUARES, 2000)
    for agent in (3, 50):
        visits = truth.visits(agent)
        found, (x, _) = forward_filter(visits, truth.public), truth.of(agent)
        error = np.abs(found.x - x)
        bound = 0.5 * error[:-1] + 0.05 * np.abs(visits.received - x[1:])
        assert (error[1:] <= bound + 1e-12).all()


def test_too_few_visits_are_said_to_be():
    truth = observed(rl.RandomStart(), LEAST_SQUARES, 300)
    found = forward_filter(truth.visits(3), truth.public)
    assert not found.converged
    assert "After 3 visits" in found.words


@pytest.mark.parametrize("attack", [recursion, telescope, forward_filter])
def test_what_the_neighbours_find_is_what_the_eavesdropper_finds_bit_for_bit(attack):
    truth = observed(rl.PIADMM1(), LEAST_SQUARES, 2000)
    for agent in (0, 40, 99):
        finds = [
            attack(truth.visits(agent, observer), truth.public)
            for observer in (Eavesdropper(), Neighbours(agent), Colluders(agent))
        ]
        for found in finds[1:]:
            np.testing.assert_array_equal(found.x, finds[0].x)
            np.testing.assert_array_equal(found.y, finds[0].y)


def test_who_has_not_seen_enough_is_refused():
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(6), 30)
    for observer in (Neighbours(2), Link(3, 4)):
        with pytest.raises(ValueError, match="has not seen everything that agent 3"):
            forward_filter(truth.visits(3, observer), truth.public)
    with pytest.raises(ValueError, match="No visit of agent 5"):
        forward_filter(observed(rl.PIADMM1(), rl.paper_least_squares(6), 3).visits(5), truth.public)
    with pytest.raises(ValueError, match="belong to different runs"):
        forward_filter(observed(rl.PIADMM1(), rl.paper_least_squares(6, dim=3), 30).visits(5), truth.public)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    rho=st.floats(5.0, 50.0),
    seed=st.integers(0, 1000),
    agent=st.integers(0, 4),
    guess=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2),
)
def test_whatever_is_guessed_the_filter_forgets_it(rho, seed, agent, guess):
    truth = observed(rl.RandomStart(rho=rho), rl.paper_least_squares(5), 50, seed=seed)
    found, (x, _) = forward_filter(truth.visits(agent), truth.public, guess), truth.of(agent)
    np.testing.assert_allclose(found.x[-1] - x[-1], 2.0**-10 * (np.array(guess) - x[0]), atol=1e-10)
