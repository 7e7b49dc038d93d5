"""Identities between methods, over the first three laps and not only in the limit."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from tests.engine.support import trace

AGENTS = 100
LAPS = 3 * AGENTS


@pytest.fixture(scope="module")
def squares() -> rl.LeastSquares:
    return rl.paper_least_squares(agents=AGENTS)


@pytest.fixture(scope="module")
def network() -> rl.Network:
    return rl.random_network(AGENTS, 0.3)


def test_pi_admm1_with_gamma_one_and_zero_start_is_i_admm(squares: rl.LeastSquares, network: rl.Network) -> None:
    plain = trace(rl.IADMM(), squares, network, LAPS)
    private = trace(rl.PIADMM1(gamma_spread=0.0, start=rl.ZeroStart()), squares, network, LAPS)
    for ours, theirs in ((private.tokens, plain.tokens), (private.x, plain.x), (private.y, plain.y)):
        assert np.abs(ours - theirs).max() < 1e-14


def test_pi_admm1_approaches_wpg_as_gamma_grows(squares: rl.LeastSquares, network: rl.Network) -> None:
    rho = 10.0
    limit = trace(rl.WPG(1.0 / rho), squares, network, LAPS).tokens
    gaps = []
    for gamma in (1e2, 1e4, 1e6):
        algorithm = rl.PIADMM1(rho, gamma_spread=0.0, gamma=gamma, start=rl.ZeroStart())
        gaps.append(np.abs(trace(algorithm, squares, network, LAPS).tokens - limit).max())
    assert gaps[0] / gaps[1] == pytest.approx(100.0, rel=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(100.0, rel=0.1)


def test_pw_admm_with_one_walk_and_no_inertia_is_w_admm(squares: rl.LeastSquares, network: rl.Network) -> None:
    one = trace(rl.WADMM(rho=10.0), squares, network, LAPS)
    parallel = trace(rl.PWADMM(rho=10.0, tau=0.0, walks=1), squares, network, LAPS)
    assert (one.order == parallel.order).all()
    for ours, theirs in ((parallel.tokens, one.tokens), (parallel.x, one.x), (parallel.y, one.y)):
        assert np.abs(ours - theirs).max() < 1e-14


def test_first_order_multiplier_is_the_old_gradient(squares: rl.LeastSquares, network: rl.Network) -> None:
    run = trace(rl.IADMM(rho=60.0, first_order=True), squares, network, LAPS)
    for hop, agent in enumerate(run.order):
        assert np.abs(run.y[hop + 1, agent] - squares.gradient(agent, run.x[hop, agent])).max() < 1e-12


def test_exact_multiplier_is_the_new_gradient(squares: rl.LeastSquares, network: rl.Network) -> None:
    run = trace(rl.PIADMM1(), squares, network, LAPS)
    for hop, agent in enumerate(run.order):
        gradient = squares.gradient(agent, run.x[hop + 1, agent])
        assert np.abs(run.y[hop + 1, agent] - gradient).max() < 1e-11 * np.abs(run.y).max()


def test_the_two_scalings_are_one_method_under_another_rho() -> None:
    half = rl.paper_least_squares(agents=10, scale="half_sum")
    mean = rl.paper_least_squares(agents=10, scale="mean")
    ours, theirs = (trace(rl.IADMM(rho), problem, rl.ring(10), 30) for rho, problem in ((15.0, half), (1.0, mean)))
    assert np.abs(ours.tokens - theirs.tokens).max() < 1e-14
    assert np.abs(ours.y - 15.0 * theirs.y).max() < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_the_printed_sign_of_algorithm_2_ends_at_a_wrong_point(seed: int, network: rl.Network) -> None:
    """Algorithm 2 prints y⁰ = −ρυ. Then Σ(x − y/ρ) = 2Συ, and the error stays above 1 for ever."""
    problem = rl.paper_least_squares(agents=AGENTS, seed=seed)
    wrong = rl.RandomStart(start=rl.UniformStart(0.0, 100.0, printed_sign=True))
    run = rl.simulate(wrong, problem, network, 20_000, seed=seed)
    assert (run.history["error"] >= 1.0).all()
    right = rl.simulate(rl.RandomStart(), problem, network, 20_000, seed=seed)
    assert right.history["error"].iloc[-1] < 1e-10


def test_the_cycle_decides_and_not_the_density() -> None:
    """On the same data and cycle I-ADMM is the same run bit for bit, whatever the density."""
    problem = rl.paper_least_squares(agents=20)
    sparse, dense = (rl.simulate(rl.IADMM(), problem, rl.random_network(20, eta, 4), 500) for eta in (0.3, 0.5))
    assert (sparse.x == dense.x).all()
    assert (sparse.history == dense.history).all(axis=None)
