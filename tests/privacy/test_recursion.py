"""Equation (12), forwards and backwards: exact where theory says so, and off by what theory says elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.privacy.attacks import backward_recursion, recursion
from roundelay.transcripts import Eavesdropper
from tests.privacy.support import observed, relative

AGENTS = 100


@pytest.mark.parametrize("first_order", [False, True])
def test_I_ADMM_gives_away_every_state_of_every_agent(first_order):
    problem = rl.paper_least_squares(AGENTS) if not first_order else rl.paper_logistic(AGENTS)
    truth = observed(rl.IADMM(rho=1.0 if first_order else 10.0, first_order=first_order), problem, 2000)
    for agent in range(AGENTS):
        found, (x, y) = recursion(truth.visits(agent), truth.public), truth.of(agent)
        assert found.converged
        assert relative(found.x, x) < 1e-12
        assert relative(found.y, y) < 1e-12


@pytest.mark.parametrize(
    "algorithm",
    [
        rl.WADMM(rho=10.0, walk=rl.UniformWalk()),
        rl.PWADMM(rho=2.0, tau=3.0, walks=3, walk=rl.UniformWalk()),
        rl.IADMM(rho=10.0, regulariser=rl.L1(20.0)),
    ],
)
def test_it_is_exact_for_walks_several_tokens_and_a_regulariser_too(algorithm):
    problem = rl.paper_least_squares(12)
    truth = observed(algorithm, problem, 400, network=rl.random_network(12, 0.5))
    for agent in range(12):
        found, (x, y) = recursion(truth.visits(agent), truth.public), truth.of(agent)
        assert found.converged
        assert relative(found.x, x) < 1e-12
        assert relative(found.y, y) < 1e-12


def test_a_token_that_an_agent_keeps_is_not_seen_and_said_not_to_be():
    truth = observed(rl.WADMM(rho=10.0), rl.paper_least_squares(12), 400, network=rl.random_network(12, 0.5))
    visits = truth.visits(3)
    assert (visits.updates > 1).any()
    found, (x, _) = recursion(visits, truth.public), truth.of(3)
    assert not found.converged
    assert "kept the token" in found.words
    assert relative(found.x, x) < 0.1  # every visit halves the error


def test_a_random_start_leaves_an_error_that_each_visit_halves():
    truth = observed(rl.RandomStart(), rl.paper_least_squares(AGENTS), 2000)
    halves = 0.5 ** np.arange(21.0)[:, None]
    for agent in (0, 41, 99):
        found, (x, y) = recursion(truth.visits(agent), truth.public), truth.of(agent)
        assert not found.converged
        assert "start" in found.words
        np.testing.assert_allclose(x - found.x, halves * x[0], atol=1e-12 * np.abs(x[0]).max())
        np.testing.assert_allclose(y - found.y, 10.0 * halves * x[0], atol=1e-11 * np.abs(x[0]).max())


@pytest.mark.parametrize("algorithm", [rl.RandomStart(), rl.PIADMM2()])
def test_backwards_every_visit_doubles_the_error(algorithm):
    truth = observed(algorithm, rl.paper_least_squares(AGENTS), 2000)
    for agent in (0, 41, 99):
        visits = truth.visits(agent)
        found, (x, y) = backward_recursion(visits, truth.public), truth.of(agent)
        assert found.converged
        epsilon = visits.sent[-1] - x[-1]
        doubled = 2.0 ** np.arange(20.0, -1.0, -1.0)[:, None] * epsilon
        scale = np.abs(doubled).max() + np.abs(x).max()
        np.testing.assert_allclose(found.x - x, doubled, atol=1e-12 * scale)
        np.testing.assert_allclose(found.y - y, 10.0 * doubled, atol=1e-11 * scale)


def test_backwards_from_the_true_end_is_exact():
    truth = observed(rl.RandomStart(), rl.paper_least_squares(10), 60)
    x, y = truth.of(4)
    found = backward_recursion(truth.visits(4), truth.public, last=x[-1])
    assert relative(found.x, x) < 1e-12
    assert relative(found.y, y) < 1e-12


def test_the_unrolled_form_of_appendix_C():
    """x^{K−nN+1} = 2ⁿx^{K+1} − Σ_{m<n} 2^{n−1−m}(NΔ^{K−mN+1} + z^{K−mN})."""
    truth = observed(rl.RandomStart(), rl.paper_least_squares(10), 60)
    visits = truth.visits(9)
    found = backward_recursion(visits, truth.public)
    d, rounds = visits.increments(10), len(visits)
    for n in range(rounds + 1):
        unrolled = 2.0**n * visits.sent[-1] - sum(
            2.0 ** (n - 1 - m) * (d[rounds - 1 - m] + visits.received[rounds - 1 - m]) for m in range(n)
        )
        np.testing.assert_allclose(found.x[rounds - n], unrolled, rtol=1e-11)


def test_a_perturbed_step_size_breaks_it_and_it_says_so():
    truth = observed(rl.PIADMM1(start=rl.ZeroStart()), rl.paper_least_squares(10), 60)
    found, (x, _) = recursion(truth.visits(4), truth.public), truth.of(4)
    assert not found.converged
    assert "step size" in found.words
    assert relative(found.x, x) > 1e-4
    assert not backward_recursion(truth.visits(4), truth.public).converged


def test_methods_of_another_family_are_refused():
    truth = observed(rl.WPG(alpha=0.01), rl.paper_least_squares(4), 20)
    with pytest.raises(ValueError, match="WPG is not of the incremental ADMM family"):
        recursion(truth.transcript.seen_by(Eavesdropper()).visits_of(0), truth.public)
