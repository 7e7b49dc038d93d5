"""Medians of the paper's least squares that an independent implementation found, and the claims about drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.engine.assemble import prepare, token_assembly
from roundelay.engine.checks import Options
from roundelay.engine.state import new_state
from tests.engine.support import mutated

SEEDS = range(10)

# Accuracy in the paper's own metric after 1000, 2000 and 5000 units, medians over ten seeds.
MEDIANS: list[tuple[Any, tuple[float, float, float]]] = [
    (rl.IADMM(rho=10.0), (1.9e-3, 2.8e-5, 3.2e-10)),
    (rl.WADMM(rho=10.0), (1.2e-2, 1.1e-3, 3.6e-6)),
    (rl.PIADMM1(rho=10.0), (4.4e-3, 7.8e-5, 9.5e-10)),
]


@pytest.mark.parametrize(("algorithm", "medians"), MEDIANS, ids=lambda value: getattr(value, "name", ""))
def test_the_medians_of_the_papers_least_squares(algorithm: Any, medians: tuple[float, float, float]) -> None:
    runs = rl.simulate(
        algorithm,
        lambda seed: rl.paper_least_squares(seed=seed),
        lambda seed: rl.random_network(100, 0.3, seed),
        5000,
        seeds=SEEDS,
        record=[1000, 2000, 5000],
    )
    measured = np.median([run.history["accuracy"] for run in runs], axis=0)
    for value, median, factor in zip(measured, medians, (2.0, 3.0, 10.0), strict=True):
        assert median / factor < value < median * factor


def test_the_token_does_not_drift() -> None:
    """After ten million hops the token stands at the optimum: its rounding is repaid at the next visit."""
    problem = rl.paper_least_squares(scale="mean")
    run = rl.simulate(rl.IADMM(rho=1.0), problem, rl.random_network(100, 0.3), 10_000_000)
    assert np.linalg.norm(run.token - problem.optimum) / np.linalg.norm(problem.optimum) <= 1e-14


def test_the_printed_update_would_drift() -> None:
    """The positive control: with s kept in place of the share c, the token wanders off."""
    problem, network, algorithm = rl.paper_least_squares(scale="mean"), rl.random_network(100, 0.3), rl.IADMM(rho=1.0)
    right = prepare(token_assembly(algorithm.parts(), problem, network), "python")
    printed = mutated(
        algorithm,
        problem,
        network,
        "visit",
        "share[i, d] += whole * (moved - token[d])",
        "share[i, d] += change[d]",
    )
    distances = []
    for prepared in (right, printed):
        hops, optimum = 30_000, np.array(problem.optimum)
        state = new_state(algorithm.parts(), problem, network, 0, np.array([hops]), Options())
        prepared.travel(*prepared.numbers, 0, *state.handed(), hops)
        distances.append(np.linalg.norm(state.mean_token - optimum) / np.linalg.norm(optimum))
    assert distances[0] < 1e-14
    assert distances[1] > 100.0 * distances[0]


@pytest.mark.parametrize(
    "algorithm",
    [rl.IADMM(rho=1.0, first_order=True), rl.PIADMM1(rho=1.0, first_order=True, start=rl.UniformStart(0, 10))],
)
def test_logistic_first_order_reaches_the_optimum(algorithm: Any) -> None:
    run = rl.simulate(algorithm, rl.paper_logistic(), rl.random_network(100, 0.3), 40_000)
    assert run.history["error"].iloc[-1] < 1e-12


def test_pi_admm2_ends_at_a_floor_that_sigma_sets() -> None:
    problem, network = rl.paper_least_squares(), rl.random_network(100, 0.3)
    floors = []
    for sigma in (1e-3, 1e-4):
        history = rl.simulate(rl.PIADMM2(sigma=sigma), problem, network, 20_000).history
        floors.append(history["error"][history["hop"] > 15_000].median())
    assert floors[0] / floors[1] == pytest.approx(10.0, rel=0.2)
    variance = rl.PIADMM2(sigma=1e-6, sigma_is="variance")
    same = rl.simulate(variance, problem, network, 2000)
    assert (same.x == rl.simulate(rl.PIADMM2(sigma=1e-3), problem, network, 2000).x).all()
