"""What is no defence: one γ a coordinate, and group hops without noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms import VectorStepSizeNoise
from roundelay.kernels import STEP, uniforms
from roundelay.privacy import Public
from roundelay.privacy.attacks import vector_gamma
from roundelay.privacy.attacks.group_sum import group_sum
from roundelay.transcripts import Eavesdropper, GroupHops
from tests.defences.support import quick, slopes


@pytest.mark.parametrize("first_order", [False, True])
def test_vector_steps_are_what_the_equations_say(first_order):
    """The dense recursion: x⁺ = (H + ρΓ)⁻¹(ρΓz + y − g), or z + (ρΓ)⁻¹(y − ∇f(x)); y⁺ = y + ρΓ(z − x⁺)."""
    problem, rho = rl.paper_least_squares(6, samples=6, seed=1), 30.0
    algorithm = rl.PIADMM1(rho, 0.3, gamma_is="vector", first_order=first_order)
    run = quick(algorithm, problem, 90, seed=5, engine="python")
    initial = algorithm.parts().start_states(5, problem)
    x, y, z = initial.x.copy(), initial.y.copy(), np.zeros(2)
    for hop in range(90):
        i, draws = hop % 6, np.empty(2)
        uniforms(5, i, hop, STEP, draws)
        weights = rho * (1.0 + 0.3 * (2.0 * draws - 1.0))
        before = x[i] - y[i] / rho
        if first_order:
            x[i] = z + (y[i] - problem.gradient(i, x[i])) / weights
        else:
            hessian = problem.hessian(i, np.zeros(2))
            x[i] = np.linalg.solve(hessian + np.diag(weights), weights * z + y[i] - slopes(problem)[i])
        y[i] = y[i] + weights * (z - x[i])
        z = z + (x[i] - y[i] / rho - before) / 6
        np.testing.assert_allclose(run.transcript.tokens[hop], z, atol=1e-10)


def test_vector_steps_converge_for_other_functions_too():
    problem = rl.paper_logistic(6, samples=8, seed=1)
    run = quick(rl.PIADMM1(1.0, gamma_is="vector"), problem, 6 * 1500)
    assert run.history["token_error"].iloc[-1] < 1e-9
    with pytest.raises(ValueError, match="gamma_is is 'matrix'"):
        rl.PIADMM1(gamma_is="matrix")
    with pytest.raises(ValueError, match=r"gamma_spread is 1\.5"):
        VectorStepSizeNoise(1.5)


def test_vector_steps_protect_neither_y_nor_more_than_the_digits_of_H():
    problem, algorithm = rl.paper_least_squares(20, seed=1), rl.PIADMM1(gamma_is="vector")
    run = quick(algorithm, problem, 20 * 60)
    found = vector_gamma(run.transcript.seen_by(Eavesdropper()).visits_of(3), Public(algorithm, 20, 2))
    hessian = problem.hessian(3, np.zeros(2))
    assert np.linalg.norm(found.H - hessian) < 0.3 * np.linalg.norm(hessian)
    assert np.linalg.norm(found.y[-1] - run.y[3]) < 1e-3 * np.linalg.norm(run.y[3])


def test_outside_a_group_only_its_sum_is_seen():
    problem = rl.paper_least_squares(12, seed=1)
    transcript = quick(rl.IADMM(), problem, 12 * 4).transcript
    seen = GroupHops(5).seen(transcript, 1)
    assert seen.members == (5, 6, 7, 8, 9) and len(seen) == 4
    np.testing.assert_array_equal(seen.received, transcript.tokens[[4, 16, 28, 40]])
    np.testing.assert_array_equal(seen.sent, transcript.tokens[[9, 21, 33, 45]])
    assert GroupHops(5).groups(transcript)[-1] == (10, 11)
    assert (GroupHops(3).seen(transcript, 0).received[0] == 0.0).all()
    with pytest.raises(ValueError, match="There is no group 7"):
        GroupHops(5).seen(transcript, 7)
    with pytest.raises(ValueError, match="neighbours on a cycle"):
        GroupHops(2).seen(quick(rl.WADMM(), problem, 60, network=rl.complete(12)).transcript, 0)


@pytest.mark.parametrize("start", [rl.ZeroStart(), rl.SealedStart()], ids=["zero", "sealed"])
def test_the_sum_of_two_members_tells_both_functions(start):
    problem, algorithm = rl.paper_least_squares(12, seed=1), rl.IADMM(start=start)
    transcript = quick(algorithm, problem, 12 * 25).transcript
    seen = GroupHops(2).seen(transcript, 1)
    found = group_sum(seen, Public(algorithm, 12, 2), tries=10)
    assert found.converged, found.words
    truth = np.array([problem.hessian(agent, np.zeros(2)) for agent in seen.members])
    off = [
        np.abs(found.H[list(order)] - truth).max() / np.abs(truth).max() for order in itertools.permutations(range(2))
    ]
    assert min(off) < 1e-8
    assert (found.g is None) == isinstance(start, rl.SealedStart)


def test_the_attack_on_sums_fails_where_there_is_noise_and_says_so():
    problem = rl.paper_least_squares(12, seed=1)
    algorithm = rl.IADMM(defence=rl.ContributionNoise())
    found = group_sum(
        GroupHops(2).seen(quick(algorithm, problem, 12 * 25).transcript, 1), Public(algorithm, 12, 2), tries=1
    )
    assert not found.converged
    with pytest.raises(ValueError, match="exact, unperturbed steps"):
        group_sum(GroupHops(2).seen(quick(rl.PIADMM1(), problem, 12 * 25).transcript, 1), Public(rl.PIADMM1(), 12, 2))
    with pytest.raises(ValueError, match="observe more hops"):
        group_sum(GroupHops(2).seen(quick(rl.IADMM(), problem, 12 * 3).transcript, 1), Public(rl.IADMM(), 12, 2))
