"""The paper's attack: its size, its solver, and what the solver's default of 20 iterations is worth."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.privacy.attacks import least_squares
from roundelay.transcripts import Colluders, Eavesdropper, Neighbours
from tests.privacy.support import observed


@pytest.fixture(scope="module")
def private():
    return observed(rl.PIADMM1(), rl.paper_least_squares(100), 2001)


def test_the_papers_system_has_4203_equations_in_4202_unknowns(private):
    found = least_squares(private.transcript.seen_by(Eavesdropper()), private.public, 0, iterations=20)
    assert found.system.matrix.shape == (4203, 4202)


def test_y_diverges_at_twenty_iterations_and_not_at_convergence(private):
    seen = private.transcript.seen_by(Eavesdropper())
    early, late = (least_squares(seen, private.public, 0, iterations) for iterations in (20, None))
    truth = private.y[-1, :, 0]

    def error(found):
        return np.mean([abs(found.of(i)[1][-1] - truth[i]) for i in range(100)])

    assert not early.converged
    assert early.iterations == 20
    assert late.converged
    assert error(early) > 0.9 * np.abs(truth).mean()
    assert error(late) < 0.03 * np.abs(truth).mean()


def test_lsqr_finds_the_least_squares_solution():
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(10), 81)
    found = least_squares(truth.transcript.seen_by(Eavesdropper()), truth.public, 1, iterations=None)
    assert found.converged
    direct = np.linalg.lstsq(found.system.matrix.toarray(), found.system.right, rcond=None)[0]
    np.testing.assert_allclose(np.concatenate([found.x, found.y]), direct, rtol=1e-7, atol=1e-7)


def test_the_true_states_satisfy_every_equation_but_those_of_consensus():
    """For Algorithm 2 γ = 1 is the truth, so that only x = z' and Σy = 0 are not exact."""
    truth = observed(rl.RandomStart(), rl.paper_least_squares(10), 81)
    system = least_squares(truth.transcript.seen_by(Eavesdropper()), truth.public, 0).system
    states = np.concatenate([np.concatenate([truth.of(i)[part][:, 0] for i in range(10)]) for part in (0, 1)])
    gap = np.abs(system.matrix @ states - system.right)
    exact = 10 + 2 * 81
    assert gap[:exact].max() < 1e-10 * np.abs(states).max()
    assert gap[exact:].min() > 1e-8


def test_between_visits_the_estimates_stay():
    truth = observed(rl.RandomStart(), rl.paper_least_squares(5), 22)
    found = least_squares(truth.transcript.seen_by(Eavesdropper()), truth.public, 0, iterations=None)
    for agent in range(5):
        (x, y), (own_x, own_y) = found.at_every_hop(agent), found.of(agent)
        assert len(x) == len(y) == 23
        assert len(own_x) == len(truth.visits(agent)) + 1
        after = np.concatenate([[0], truth.visits(agent).hop + 1])
        np.testing.assert_array_equal(x[after], own_x)
        np.testing.assert_array_equal(y[after], own_y)
        changed = np.flatnonzero(np.diff(truth.x[:, agent, 0])) + 1
        np.testing.assert_array_equal(np.flatnonzero(np.diff(x)) + 1, changed)


def test_an_agent_without_a_visit_is_no_problem():
    truth = observed(rl.RandomStart(), rl.paper_least_squares(5), 3)
    found = least_squares(truth.transcript.seen_by(Colluders(4)), truth.public, 0, iterations=None)
    assert len(found.of(4)[0]) == 1


def test_what_it_refuses(private):
    with pytest.raises(ValueError, match="does not see everything of agent 0"):
        least_squares(private.transcript.seen_by(Neighbours(3)), private.public, 0)
    with pytest.raises(ValueError, match="no coordinate 2"):
        least_squares(private.transcript.seen_by(Eavesdropper()), private.public, 2)
