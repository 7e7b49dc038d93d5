"""The extrapolated readout: far better where a lap is one linear map, never worse elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.engine.result import vector_epsilon

OTHERS = [
    rl.RandomStart(), rl.PIADMM1(), rl.PIADMM2(), rl.WADMM(), rl.PWADMM(), rl.IPWADMM(), rl.WPG(0.05),
    rl.IADMM(rho=60.0, first_order=True), rl.SIADMM(), rl.IncrementalGradient(), rl.IncrementalGradient(decay=0.7),
    rl.WADMM(walk=rl.UniformWalk()),
]  # fmt: skip


def distance(estimate: np.ndarray, problem: Any) -> float:
    return float(np.linalg.norm(estimate - problem.optimum) / np.linalg.norm(problem.optimum))


@pytest.mark.parametrize("seed", range(10))
def test_i_admm_with_twenty_unknowns(seed: int) -> None:
    """ρ=10, half-sum, zero start, 3000 units: 1e-5 or better where the plain token has 1e-3 or worse."""
    problem = rl.paper_least_squares(dim=20, seed=seed)
    run = rl.simulate(rl.IADMM(rho=10.0), problem, rl.random_network(100, 0.3, seed), 3000, seed=seed)
    readout = run.readout()
    assert readout.extrapolated
    assert distance(readout.estimate, problem) <= 1e-5
    assert distance(run.token, problem) >= 1e-3


@pytest.mark.parametrize("algorithm", OTHERS, ids=repr)
def test_never_worse_than_the_plain_token(algorithm: Any) -> None:
    network = rl.random_network(100, 0.3)
    for seed in range(10):
        problem = rl.paper_least_squares(seed=seed)
        for hops in (700, 2000, 2950, 4000, 12_000):
            run = rl.simulate(algorithm, problem, network, hops, seed=seed, record=hops)
            plain, read = distance(run.token, problem), distance(run.readout().estimate, problem)
            assert read <= 1.1 * plain + 1e-14


def test_a_method_without_an_invariant_is_not_extrapolated() -> None:
    """Incremental gradient's laps converge too, but to a cycle beside the optimum."""
    problem, network = rl.paper_logistic(30, 30, 2, 4), rl.random_network(30, 0.3, 4)
    run = rl.simulate(rl.IncrementalGradient(alpha=0.1 / problem.L), problem, network, 600, seed=4, engine="python")
    assert not run.readout().extrapolated
    assert "without an invariant" in run.readout().words


def test_any_agent_can_read_out_what_it_received() -> None:
    problem, network = rl.paper_least_squares(seed=1), rl.random_network(100, 0.3, 1)
    run = rl.simulate(rl.IADMM(), problem, network, 2000, transcript=True)
    for agent in (0, 17, 99):
        assert distance(run.readout(agent).estimate, problem) < 1e-8 < distance(run.token, problem)
    first = rl.simulate(rl.IADMM(), problem, network, 2000, reader=17)
    assert (first.readout().estimate == run.readout(17).estimate).all()
    with pytest.raises(ValueError, match="agent 3 received were not kept"):
        first.readout(3)


def test_the_epsilon_algorithm_is_exact_for_a_sum_of_few_geometric_sequences() -> None:
    generator = np.random.default_rng(0)
    limit, modes = generator.normal(size=5), generator.normal(size=(3, 5))
    rates = np.array([0.9, -0.7, 0.5])
    sequence = np.array([limit + (rates**k) @ modes for k in range(7)])
    assert np.abs(vector_epsilon(sequence) - limit).max() < 1e-9
    assert np.abs(sequence[-1] - limit).max() > 0.1


def test_a_constant_sequence_is_its_own_limit() -> None:
    assert (vector_epsilon(np.ones((8, 3))) == 1.0).all()


def test_the_words_say_which_it_is() -> None:
    problem = rl.paper_least_squares(agents=10)
    few = rl.simulate(rl.IADMM(), problem, rl.ring(10), 20, engine="python").readout()
    assert not few.extrapolated and few.words == "The plain token: too few laps to extrapolate."
    walk = rl.simulate(rl.WADMM(), problem, rl.ring(10), 400, engine="python").readout()
    assert not walk.extrapolated and "random walk" in walk.words
