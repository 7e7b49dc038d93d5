"""Noise on the links: its law, and what it does to a gossip method and to a token."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag, solve_discrete_lyapunov

import roundelay as rl
from tests.conditions.support import (
    Hiss,
    adjacency,
    assert_white,
    batch_error,
    film,
    losses,
    simulate,
    squares,
    triangle_with_tail,
    weights_of,
    within,
)

NETWORK = triangle_with_tail()
PROBLEM = squares(5)
A, W = adjacency(NETWORK), weights_of(NETWORK)
OTHERS = W * A  # without the own weight, over which there is no link
HESSIANS = np.array([PROBLEM.hessian(i) for i in range(5)])
LINEAR = np.array([-PROBLEM.gradient(i, np.zeros(2)) for i in range(5)])


def gradients(x: np.ndarray) -> np.ndarray:
    """∇f_i(x_i), for one state or for many at once."""
    return np.einsum("ide,...ie->...id", HESSIANS, x) - LINEAR


# ---------------------------------------------------------------- gossip


def test_a_sum_of_messages_has_the_noise_of_each_link() -> None:
    """Var = σ²Σ_j w_ij² in every coordinate, independent of all other agents, coordinates, vectors and iterations."""
    rounds = 1500
    heard = film(Hiss(), PROBLEM, NETWORK, rl.NetworkConditions(noise=0.3), iterations=rounds)
    spread = 0.3 * np.sqrt((OTHERS**2).sum(axis=1))[:, None]
    draws = np.concatenate([heard.x[1:] / spread, heard.y[1:] / spread], axis=1)
    assert_white(draws.reshape(rounds, 20))


def test_other_weights_other_noise() -> None:
    """The mean over all agents: w_ij = 1/N, N − 1 links."""
    conditions = rl.NetworkConditions(noise=0.5)
    run = film(rl.EFSignSGD(alpha=1e-9), PROBLEM, NETWORK, conditions, iterations=400)
    draws = np.diff(run.x, axis=0) / (0.5 * np.sqrt(4.0 / 25.0))
    assert_white(draws.reshape(400, 10))


def test_dgd_adds_it_to_the_mean_with_the_neighbours() -> None:
    ours = film(rl.DGD(alpha=0.05), PROBLEM, NETWORK, rl.NetworkConditions(noise=0.1), iterations=400)
    added = ours.x[1:] - (W @ ours.x[:-1] - 0.05 * gradients(ours.x[:-1]))
    spread = 0.1 * np.sqrt((OTHERS**2).sum(axis=1))[:, None]
    assert_white((added / spread).reshape(400, 10))


def test_another_seed_brings_other_noise_and_the_same_seed_the_same() -> None:
    conditions = rl.NetworkConditions(noise=1.0)
    first, same, other = (
        film(Hiss(), PROBLEM, NETWORK, conditions, iterations=200, seed=seed).x[1:].ravel() for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert within(np.corrcoef(first, other)[0, 1], 0.0, 1.0 / np.sqrt(len(first)))


def test_what_was_held_meets_noise_anew_when_it_is_used_again() -> None:
    """With loss, DGD's sum has the noise of all its terms, also of those that arrived before."""
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.5), noise=0.1)
    lost = losses(NETWORK, rl.NetworkConditions(loss=rl.BernoulliLoss(0.5)), 300)
    ours = film(rl.DGD(alpha=0.05), PROBLEM, NETWORK, conditions, iterations=300)
    held, added = np.zeros((5, 5, 2)), []
    for k in range(300):
        held = np.where(lost[k][..., None] | (A == 0)[..., None], held, ours.x[k][None])
        mixed = np.diag(W)[:, None] * ours.x[k] + np.einsum("ij,ijd->id", OTHERS, held)
        added.append(ours.x[k + 1] - mixed + 0.05 * gradients(ours.x[k]))
    spread = 0.1 * np.sqrt((OTHERS**2).sum(axis=1))[:, None]
    assert_white((np.array(added)[20:] / spread).reshape(280, 10))  # by then every link has brought something


def choco_noise(network: rl.Network, chance: float, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """What noise added to each agent's sum of increments in CHOCO, and the weights of what arrived."""
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(chance), noise=0.1)
    lost = losses(network, rl.NetworkConditions(loss=rl.BernoulliLoss(chance)), rounds)
    problem, weights, links = squares(network.agents), weights_of(network), adjacency(network)
    eta, gamma = 0.05, 0.4
    algorithm = rl.CHOCO(eta=eta, gamma=gamma, channel=rl.Plain())
    x = film(algorithm, problem, network, conditions, iterations=rounds).x
    half = np.array([x_k - eta * problem.gradients(x_k) for x_k in x[:-1]])  # which is x̂, too
    heard = (x[1:] - half) / gamma + half
    q = np.diff(half, axis=0, prepend=np.zeros((1, *half.shape[1:])))
    arrived = weights * links * ~lost
    expected = np.diag(weights)[:, None] * q + arrived @ q
    return np.diff(heard, axis=0, prepend=np.zeros((1, *heard.shape[1:]))) - expected, arrived


def test_an_increment_that_is_lost_brings_no_noise() -> None:
    added, arrived = choco_noise(NETWORK, 0.5, 300)
    spread = 0.1 * np.sqrt((arrived**2).sum(axis=2))
    assert (spread == 0.0).any()
    assert np.abs(added[spread == 0.0]).max() < 1e-12
    draws = added[spread > 0.0] / spread[spread > 0.0][:, None]
    assert within((draws**2).mean(), 1.0, np.sqrt(2.0 / draws.size))


def test_where_all_increments_are_lost_there_is_no_noise_at_all() -> None:
    """With many links the squared weights of what is lost add up to all of them only up to rounding."""
    network = rl.Network(
        14, np.array([[0, j] for j in range(1, 14)] + [[j, j + 1] for j in range(1, 12)] + [[1, 3], [1, 4], [5, 7]])
    )
    added, arrived = choco_noise(network, 0.93, 60)
    nothing = (arrived**2).sum(axis=2) == 0.0
    assert nothing[:, 0].any()
    assert np.abs(added[nothing]).max() < 1e-8


def test_an_increment_that_was_never_sent_brings_no_noise() -> None:
    """CHOCO, censored so that nobody ever speaks."""
    channel = rl.Channel(censoring=rl.Censoring(1e9, 1.0))
    algorithm = rl.CHOCO(eta=0.05, gamma=0.4, channel=channel)
    bare = film(algorithm, PROBLEM, NETWORK, iterations=10)
    noisy = film(algorithm, PROBLEM, NETWORK, rl.NetworkConditions(noise=1.0), iterations=10)
    assert (noisy.units == 0).all()
    np.testing.assert_array_equal(noisy.x, bare.x)


def test_dgds_stationary_error_is_that_of_the_lyapunov_equation() -> None:
    """x⁺ = Mx + αb + n, M = W⊗I − α·diag(H_i), Cov n = Q: the covariance P in the long run solves P = MPM' + Q."""
    alpha, noise, rounds, every = 0.15, 0.2, 60_000, 6
    M = np.kron(W, np.eye(2)) - alpha * block_diag(*HESSIANS)
    assert np.abs(np.linalg.eigvals(M)).max() < 0.97
    Q = np.kron(np.diag(noise**2 * (OTHERS**2).sum(axis=1)), np.eye(2))
    P = solve_discrete_lyapunov(M, Q)
    centre = np.linalg.solve(np.eye(10) - M, alpha * LINEAR.ravel())
    run = film(
        rl.DGD(alpha=alpha), PROBLEM, NETWORK, rl.NetworkConditions(noise=noise), engine="compiled", iterations=rounds,
        record=every,
    )  # fmt: skip
    away = run.x[100:].reshape(-1, 10) - centre
    error = (away**2).sum(axis=1)
    assert within(error.mean(), np.trace(P), batch_error(error))
    assert batch_error(error) < 0.02 * np.trace(P)
    for i in range(10):
        for j in range(i + 1):
            product = away[:, i] * away[:, j]
            assert within(product.mean(), P[i, j], batch_error(product)), (i, j)


# ---------------------------------------------------------------- tokens


def noise_added_up(rho: float, x: np.ndarray, y: np.ndarray, token: np.ndarray) -> np.ndarray:
    """By I-ADMM's invariant, z = (1/N)Σ(x_i − y_i/ρ); what is more has been added on the way."""
    return token - (x - y / rho).mean(axis=1)


@pytest.mark.parametrize(
    "algorithm", [rl.IADMM(rho=5.0), rl.WADMM(rho=5.0, walk=rl.UniformWalk())], ids=["tour", "walk"]
)
def test_every_crossing_adds_noise_to_the_token(algorithm: rl.IADMM | rl.WADMM) -> None:
    """Also where the receiver only relays. The first visit is in place."""
    ours = film(algorithm, PROBLEM, NETWORK, rl.NetworkConditions(noise=0.3), hops=1501)
    added = np.diff(noise_added_up(5.0, ours.x, ours.y, ours.token), axis=0)
    assert np.abs(added[0]).max() < 1e-14
    assert_white(added[1:] / 0.3)


def test_a_token_that_stays_meets_no_noise() -> None:
    conditions = rl.NetworkConditions(noise=0.3)
    algorithm = rl.WADMM(rho=5.0, walk=rl.ClosedUniformWalk())
    ours = film(algorithm, PROBLEM, NETWORK, conditions, hops=600, transcript=True)
    added = np.diff(noise_added_up(5.0, ours.x, ours.y, ours.token), axis=0)[1:]
    stays = (ours.run.transcript.sender == ours.run.transcript.receiver)[:-1]
    assert 100 < stays.sum() < 400
    assert_white(added[~stays] / 0.3)
    assert np.abs(added[stays]).max() < 1e-12


def test_both_vectors_of_a_token_meet_their_own_noise() -> None:
    """MC-SAG: ḡ⁺ = ḡ + (∇f_i(x) − h_i)/N and x⁺ = x − γḡ⁺ give back what arrived, and so what the link added."""
    gamma, hops = 0.02, 801
    algorithm = rl.MCSAG(gamma=gamma, walk=rl.UniformWalk())
    ours = film(algorithm, PROBLEM, NETWORK, rl.NetworkConditions(noise=0.3), hops=hops, transcript=True)
    sent, agent = ours.run.transcript.tokens, ours.run.transcript.sender
    assert sent.shape == (hops, 4)
    added = []
    for hop in range(1, hops):
        i, before, after = agent[hop], sent[hop - 1], sent[hop]
        x = after[:2] + gamma * after[2:]
        mean = after[2:] - (HESSIANS[i] @ x - LINEAR[i] - ours.y[hop, i]) / 5.0
        added.append(np.concatenate([x - before[:2], mean - before[2:]]))
    assert_white(np.array(added) / 0.3)


@pytest.mark.parametrize("algorithm", [rl.IADMM(rho=1.0), rl.WPG(alpha=0.5)], ids=["I-ADMM", "WPG"])
def test_a_noisy_token_walks_at_random(algorithm: rl.IADMM | rl.WPG) -> None:
    """Nothing pulls the token back: its error grows like √hops, a factor of 4 over a factor of 16 in hops.

    The noise is so large that the error without it does not count, and the problem so round (H_i ≈ I) that a few laps
    are enough for all agents to follow. The median over the seeds lies between 2 and 8.
    """
    generator = np.random.default_rng(5)
    rows = [generator.standard_normal((40, 2)) / np.sqrt(40.0) for _ in range(5)]
    problem = rl.LeastSquares(rows, [generator.standard_normal(40) for _ in range(5)])
    conditions, errors = rl.NetworkConditions(noise=100.0), []
    for seed in range(20):
        run = simulate(algorithm, problem, rl.ring(5), conditions, hops=480, record=[30, 480], seed=seed)
        errors.append(run.history["token_error"].to_numpy())
    early, late = np.median(errors, axis=0)
    assert 2.0 < late / early < 8.0


def test_the_agents_mean_gradient_is_what_noise_has_added_up() -> None:
    """With exact x-steps y_i = ∇f_i(x_i), so (1/N)Σ∇f_i(x_i) = ρ(S − z + x̄), S being the sum of the noise.

    S grows without bound and the token stays near the x_i, so that the token follows the point where the mean
    gradient is ρS.
    """
    ratios = []
    for seed in range(5):
        ours = film(rl.IADMM(rho=2.0), PROBLEM, rl.ring(5), rl.NetworkConditions(noise=1.0), hops=600, seed=seed)
        total = noise_added_up(2.0, ours.x, ours.y, ours.token)
        mean = gradients(ours.x).mean(axis=1)
        visited = slice(5, None)  # from then on every agent has worked
        gap = 2.0 * (total - ours.token + ours.x.mean(axis=1))
        np.testing.assert_allclose(mean[visited], gap[visited], rtol=0.0, atol=1e-9 * np.abs(gap).max())
        ratios.append(np.linalg.norm(mean[300:] - 2.0 * total[300:]) / np.linalg.norm(2.0 * total[300:]))
    assert np.median(ratios) < 0.25
