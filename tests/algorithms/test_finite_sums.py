"""Point-SAGA, Prox-DFinito and the accelerated token: fixed points, identities, and the rates of their theorems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.slots import Agents
from roundelay.engine.assemble import prepare, token_assembly
from roundelay.kernels import Visit
from tests.engine.support import dense_agents, trace

AGENTS = 5


def between(least: float, most: float, agents: int = AGENTS, seed: int = 0, aligned: bool = False) -> rl.LeastSquares:
    """f_i = ½x'H_i x − b_i'x in the plane, where every H_i has the eigenvalues `least` and `most`, in random directions or all in the same."""
    generator = np.random.default_rng(seed)
    rows, targets = [], []
    for _ in range(agents):
        basis = np.eye(2) if aligned else np.linalg.qr(generator.standard_normal((2, 2)))[0]
        curvatures = np.array([least, most])
        rows.append(np.sqrt(curvatures)[:, None] * basis.T)
        targets.append(generator.standard_normal(2) * np.sqrt(curvatures))
    return rl.LeastSquares(rows, targets)


def one_visit(
    algorithm: Any, problem: Any, network: rl.Network, i: int, token: Any, mean: Any, x: Any, y: Any, share: Any
) -> Agents:
    """The kernel's own visit of agent i, from any state; the token is changed in place, the second vector in the last row of `share`."""
    prepared = prepare(token_assembly(algorithm.parts(), problem, network), "python")
    states = Agents(x.copy(), y.copy(), np.vstack([share, mean]), np.ones(problem.agents, np.int64))
    functions = prepared.functions()
    functions.visit(*prepared.numbers[:2], Visit(0, i, 1, 1, problem.agents), token, states, False)
    return states


# ---------------------------------------------------------------- all three


@pytest.mark.parametrize(
    "algorithm", [rl.PointSAGA(), rl.ProxDFinito(), rl.AcceleratedToken()], ids=lambda algorithm: algorithm.name
)
@pytest.mark.parametrize(
    "problem", [between(0.1, 3.0), rl.paper_logistic(agents=AGENTS, samples=8, ridge=0.1)], ids=["squares", "logistic"]
)
def test_the_optimum_is_a_fixed_point(algorithm: Any, problem: Any) -> None:
    algorithm = algorithm.resolved(problem)
    best = problem.optimum
    slopes = np.array([agent.gradient(best) for agent in dense_agents(problem)])
    x = np.tile(best, (AGENTS, 1))
    y, share = slopes, x
    if isinstance(algorithm, rl.ProxDFinito):
        y = x - algorithm.alpha * slopes
    if isinstance(algorithm, rl.AcceleratedToken):
        y = slopes - algorithm.mu * best
    mean = y.mean(axis=0)
    for i in range(AGENTS):
        token = best.copy()
        states = one_visit(algorithm, problem, rl.complete(AGENTS), i, token, mean, x, y, share)
        for now, then in ((token, best), (states.x, x), (states.y, y), (states.share[-1], mean)):
            np.testing.assert_allclose(now, then, atol=1e-9)


# ---------------------------------------------------------------- Point-SAGA


def test_point_saga_of_one_agent_is_the_proximal_point_method() -> None:
    problem = between(0.1, 3.0, agents=1)
    run = trace(rl.PointSAGA(gamma=0.7), problem, rl.Network(1, np.zeros((0, 2), int)), 20)
    agent, x = dense_agents(problem)[0], np.zeros(2)
    for token in run.tokens[1:]:
        x = agent.prox(x, 1.0 / 0.7)
        np.testing.assert_allclose(token, x, atol=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_point_saga_contracts_on_average_from_any_state(seed: int) -> None:
    """E T⁺ ≤ T/(1 + μγ) for T = ‖x − x*‖² + (1/(μL))·(1/N)Σ‖g_i − g_i*‖²: the mean over all agents that may be drawn."""
    generator = np.random.default_rng(seed)
    least = 10.0 ** generator.uniform(-3, 0)
    problem = between(least, 1.0, seed=seed)
    algorithm = rl.PointSAGA().resolved(problem)
    algorithm = rl.PointSAGA(step_of(AGENTS, 1.0, least))
    best, agents = problem.optimum, dense_agents(problem)
    slopes = np.array([agent.gradient(best) for agent in agents])

    def distance(token: np.ndarray, table: np.ndarray) -> float:
        return float(((token - best) ** 2).sum() + ((table - slopes) ** 2).sum() / (AGENTS * least))

    for _ in range(4):
        token = best + generator.standard_normal(2)
        # What the table holds are gradients at some points.
        table = np.array([agent.gradient(best + generator.standard_normal(2)) for agent in agents])
        after = []
        for i in range(AGENTS):
            moved = token.copy()
            zeros = np.zeros((AGENTS, 2))
            states = one_visit(
                algorithm, problem, rl.complete(AGENTS), i, moved, table.mean(axis=0), zeros, table, zeros
            )
            after.append(distance(moved, states.y))
        assert np.mean(after) <= distance(token, table) / (1.0 + least * algorithm.gamma) * (1.0 + 1e-12)


def step_of(agents: int, largest: float, least: float) -> float:
    """The author's step size, as he writes it."""
    return float(
        np.sqrt((agents - 1) ** 2 + 4 * agents * largest / least) / (2 * largest * agents)
        - (1 - 1 / agents) / (2 * largest)
    )


def test_point_saga_takes_its_authors_step() -> None:
    problem = rl.paper_least_squares(agents=7, samples=6, seed=1)
    assert rl.PointSAGA().resolved(problem).gamma == pytest.approx(step_of(7, problem.L, problem.mu), rel=1e-12)


# ---------------------------------------------------------------- Prox-DFinito


@pytest.mark.parametrize("regulariser", [rl.NoRegulariser(), rl.L1(0.5)], ids=["plain", "with L1"])
@pytest.mark.parametrize("network", [rl.ring(AGENTS), rl.path(AGENTS)], ids=["ring", "path, with relays"])
def test_undamped_prox_dfinito_is_wpg_on_the_cycle(network: rl.Network, regulariser: Any) -> None:
    problem, alpha = between(0.1, 3.0), 0.3
    ours = trace(rl.ProxDFinito(alpha, 1.0, regulariser), problem, network, 60)
    wpg = trace(rl.WPG(alpha, regulariser=regulariser), problem, network, 60)
    for one, other in ((ours.tokens, wpg.tokens), (ours.x, wpg.x), (ours.y, wpg.y)):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_wpg_on_the_cycle_is_diag() -> None:
    """z = (1/N)Σφ_i − (α/N)Σ∇f_i(φ_i), φ_i being the z that agent i saw last: the table formed anew at every hop."""
    problem, alpha = between(0.1, 3.0), 0.3
    agents, order = dense_agents(problem), rl.ring(AGENTS).tour().order
    run = trace(rl.WPG(alpha), problem, rl.ring(AGENTS), 60)
    # WPG begins with y_i = 0, DIAG with a table: from the second lap on all have been there.
    points = run.x[AGENTS].copy()
    for hop in range(AGENTS, 60):
        z = points.mean(axis=0) - alpha * np.mean([a.gradient(x) for a, x in zip(agents, points, strict=True)], axis=0)
        np.testing.assert_allclose(run.tokens[hop], z, atol=1e-13)
        points[order[hop % AGENTS]] = z


@pytest.mark.parametrize("theta", [0.3, 0.9])
def test_prox_dfinito_contracts_in_every_lap(theta: float) -> None:
    """‖z⁺ − z*‖² ≤ (1 − 2θαμL/(μ + L))‖z − z*‖² over a lap, where the agent that is met as number l of N counts l/N."""
    for seed in range(4):
        least, most = 0.1, 2.0
        problem, alpha = between(least, most, seed=seed), 2.0 / (least + most)
        network = rl.random_network(AGENTS, 0.8, seed)
        run = trace(rl.ProxDFinito(alpha, theta), problem, network, 12 * AGENTS)
        slopes = np.array([agent.gradient(problem.optimum) for agent in dense_agents(problem)])
        target = problem.optimum - alpha * slopes
        order = network.tour().order
        laps = run.y[::AGENTS][:, order] - target[order]
        size = (np.arange(1, AGENTS + 1)[None, :, None] / AGENTS * laps**2).sum(axis=(1, 2))
        bound = 1.0 - 2.0 * theta * alpha * least * most / (least + most)
        assert (size[1:] <= bound * size[:-1] * (1.0 + 1e-9)).all()


def test_prox_dfinito_solves_the_lasso() -> None:
    problem = rl.paper_least_squares(agents=AGENTS, samples=20, dim=6, seed=2)
    penalty = rl.L1(12.0)
    ours, other = (
        rl.simulate(algorithm, problem, rl.ring(AGENTS), 60_000, tolerance=1e-11, engine="python", progress=False)
        for algorithm in (rl.ProxDFinito(regulariser=penalty), rl.WPG(1.0 / problem.L, regulariser=penalty))
    )
    assert ours.stop == other.stop == "tolerance"
    np.testing.assert_allclose(ours.estimate, other.estimate, atol=1e-9)


# ---------------------------------------------------------------- accelerated


def hops_to(
    algorithm: Any, problem: Any, network: rl.Network, level: float, seeds: range = range(3), hops: int = 2_000_000
) -> float:
    """The median number of hops to a common error."""
    found = []
    for seed in seeds:
        run = rl.simulate(
            algorithm, problem, network, hops, tolerance=level, seed=seed, engine="compiled", progress=False
        )
        assert run.stop == "tolerance", run.outcome
        found.append(run.hops)
    return float(np.median(found))


def test_the_accelerated_token_and_point_saga_go_by_the_root_of_the_condition() -> None:
    """A hundred times the condition number: ten times the hops, where a plain token needs a hundred times."""
    growth = {}
    for name, algorithm in {
        "accelerated": lambda mu: rl.AcceleratedToken(mu=mu, L=1.0),
        "Point-SAGA": lambda mu: rl.PointSAGA(step_of(AGENTS, 1.0, mu)),
        "WPG": lambda mu: rl.WPG(1.0),
    }.items():
        few, many = (
            hops_to(algorithm(mu), between(mu, 1.0, aligned=True), rl.complete(AGENTS), 1e-6) for mu in (1e-2, 1e-4)
        )
        growth[name] = many / few
    assert 5.0 < growth["accelerated"] < 20.0
    assert 5.0 < growth["Point-SAGA"] < 20.0
    assert growth["WPG"] > 50.0


def test_the_accelerated_token_is_as_quick_as_its_theorem() -> None:
    """E‖x − x*‖² ≤ C·αᵏ: the mean over seeds falls at least as fast between two hops that lie far apart."""
    least, agents = 1e-2, AGENTS
    problem = between(least, 1.0)
    alpha = 1.0 - 1.0 / (agents + np.sqrt(agents**2 + 16.0 * agents * (1.0 - least) / least))
    early, late = 400, 2400
    squares = np.mean([
        ((rl.simulate(rl.AcceleratedToken(mu=least, L=1.0), problem, rl.complete(agents), late, seed=seed, engine="compiled",
          record=[early, late], progress=False).record.tokens - problem.optimum) ** 2).sum(axis=1)
        for seed in range(20)
    ], axis=0)  # fmt: skip
    assert squares[-1] <= squares[-2] * alpha ** (late - early)


def test_a_token_that_mixes_between_visits_keeps_its_rate_on_a_ring() -> None:
    """Neighbours are no independent draws: on a ring the accelerated token needs more visits, or none of its speed is left."""
    problem, network = between(1e-3, 1.0, agents=8), rl.ring(8)
    visits = {}
    for steps in (1, 32):
        walk = rl.MixedWalk(steps)
        visits[steps] = hops_to(rl.AcceleratedToken(mu=1e-3, L=1.0, walk=walk), problem, network, 1e-6) / steps
    there = hops_to(rl.AcceleratedToken(mu=1e-3, L=1.0), problem, rl.complete(8), 1e-6)
    assert visits[32] < 1.2 * there < visits[1]


def test_left_out_numbers_are_the_problems_or_are_asked_for() -> None:
    problem = rl.paper_least_squares(agents=AGENTS, seed=1)
    resolved = rl.AcceleratedToken().resolved(problem)
    assert (resolved.mu, resolved.L) == (problem.mu, problem.L)
    flat = rl.paper_logistic(agents=AGENTS)
    for algorithm, what in ((rl.PointSAGA(), "gamma"), (rl.AcceleratedToken(), "mu and L")):
        with pytest.raises(ValueError, match=f"give {what} to"):
            rl.simulate(algorithm, flat, rl.ring(AGENTS), 10, engine="python")
    with pytest.raises(ValueError, match=r"theta is 1\.5"):
        rl.ProxDFinito(theta=1.5)
