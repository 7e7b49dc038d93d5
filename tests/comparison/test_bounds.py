"""The lower bound for tours: its problem, its solution, and that no method on a tour is below it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from tests.engine.support import dense_agents, trace

AGENTS, DIM, L, MU = 6, 8, 4.0, 0.1
RING = rl.ring(AGENTS)
HARD = rl.hard_chain(RING, DIM, L, MU)
ON_TOUR = {
    "I-ADMM": rl.IADMM(rho=1.0),
    "I-ADMM, first order": rl.IADMM(rho=10.0, first_order=True),
    "WPG": rl.WPG(0.4),
    "Prox-DFinito": rl.ProxDFinito(0.4),
    "MC-SAG on the cycle": rl.MCSAG(0.05, rl.Cycle()),
    "Point-SAGA on the cycle": rl.PointSAGA(0.5, rl.Cycle()),
    "accelerated on the cycle": rl.AcceleratedToken(MU, L, rl.Cycle()),
}


@pytest.mark.parametrize("dim", [1, 2, 7, 8])
@pytest.mark.parametrize("mu", [0.0, 0.01, 1.0])
def test_every_function_curves_as_it_says_and_the_solution_is_what_it_says(dim: int, mu: float) -> None:
    problem = rl.hard_chain(RING, dim, L, mu)
    for agent in dense_agents(problem):
        curvatures = np.linalg.eigvalsh(agent.hessian(np.zeros(dim)))
        assert mu - 1e-12 <= curvatures[0] and curvatures[-1] <= L + 1e-12
    after = [rl.least_error(hops, AGENTS, dim, L, mu) for hops in range(4 * dim + 40)]
    errors = [np.linalg.norm(problem.optimum[k:]) / np.linalg.norm(problem.optimum) for k in range(dim + 1)]
    np.testing.assert_allclose(after[:4], 1.0)
    for k in range(1, dim):  # coordinate k is known from visit k·N/2 + 1 on
        np.testing.assert_allclose(after[k * AGENTS // 2 + 1 : (k + 1) * AGENTS // 2 + 1], errors[k], rtol=1e-9)


@pytest.mark.parametrize("name", ON_TOUR)
def test_no_method_on_a_tour_knows_more_than_the_bound_says(name: str) -> None:
    """Coordinate by coordinate: what is not found yet is 0 to the bit, for the token and for every agent."""
    hops = 12 * AGENTS
    run = trace(ON_TOUR[name], HARD, RING, hops)
    for visits in range(hops + 1):
        known = max(-(-2 * visits // AGENTS) - 1, 0)
        assert not np.abs(run.tokens[visits])[known:].max(initial=0.0) > 1e-15
        assert not np.abs(run.x[visits])[:, known:].max(initial=0.0) > 1e-15
        error = np.linalg.norm(run.tokens[visits] - HARD.optimum) / np.linalg.norm(HARD.optimum)
        assert error >= rl.least_error(visits, AGENTS, DIM, L, MU) * (1.0 - 1e-12)
    assert np.abs(run.tokens[-1]).min() > 0.0  # all are found in the end


def test_the_least_hops_are_where_the_error_gets_there() -> None:
    for level in (0.5, 1e-2, 1e-6):
        hops = rl.least_hops(level, AGENTS, 60, L, MU)
        assert rl.least_error(hops, AGENTS, 60, L, MU) <= level < rl.least_error(hops - 1, AGENTS, 60, L, MU)
    assert rl.least_hops(1.0, AGENTS, 60, L, MU) == 0


def test_it_grows_like_the_agents_and_the_root_of_the_condition() -> None:
    """(N/2)·log(1/ε)/log((√κ + 1)/(√κ − 1)), about (N/4)√κ log(1/ε), where there are unknowns enough; and never more than Np/2."""
    for agents, kappa in ((10, 100.0), (10, 10_000.0), (40, 100.0)):
        exact = agents / 2 * np.log(1e6) / np.log((np.sqrt(kappa) + 1) / (np.sqrt(kappa) - 1))
        assert rl.least_hops(1e-6, agents, 5000, kappa, 1.0) == pytest.approx(exact, rel=0.02)
        assert exact == pytest.approx(agents / 4 * np.sqrt(kappa) * np.log(1e6), rel=0.01)
    assert rl.least_hops(1e-6, 100, 2, 1e4, 1.0) == 101


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rl.least_hops(1e-6, 5, 3, L, MU), "even number"),
        (lambda: rl.least_hops(1e-6, 6, 3, 1.0, 2.0), "mu below L"),
        (lambda: rl.least_hops(0.0, 6, 3, L, MU), "level"),
        (lambda: rl.hard_chain(rl.path(6), 3, L, MU), "meet everybody once"),
    ],
)
def test_what_it_does_not_say_is_refused_in_a_sentence(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        make()
    assert str(caught.value).endswith(".")
