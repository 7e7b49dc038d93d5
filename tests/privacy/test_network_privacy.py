"""What a member learns who sees only its own tokens: the bound, the exact loss where all is linear, and an attack on both."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

import roundelay as rl
from roundelay.kernels import PRIMAL, normals
from roundelay.privacy import epsilon, sensitivity
from roundelay.privacy.accounting.linear_view import responses
from roundelay.privacy.accounting.network import Path, curvature_bounds, exposures, path_of, pooled
from roundelay.privacy.accounting.unknown_walk import growth, growth_seen_by_all, returns_of
from tests.engine.support import dense_agents, trace
from tests.reference import dense

few = settings(max_examples=25, deadline=None)
AGENTS = 6


def squares(agents: int = AGENTS, dim: int = 2, seed: int = 0) -> rl.LeastSquares:
    """Rows no longer than 1, so that none is cut."""
    rng = np.random.default_rng(seed)
    rows = [rng.uniform(-0.5, 0.5, (3, dim)) for _ in range(agents)]
    return rl.LeastSquares(rows, [rng.uniform(-1, 1, 3) for _ in range(agents)])


def private(alpha: float = 0.3, sigma: float = 5.0, **options: Any) -> rl.PrivateIncrementalGradient:
    return rl.PrivateIncrementalGradient(alpha, sigma, **options)


def ring_path(agents: int, laps: int) -> Path:
    hops = agents * laps
    return Path(np.tile(np.arange(agents), laps), np.ones(hops, bool), np.ones(hops))


# ---------------------------------------------------------------- what the theorem asks of a step


@few
@given(st.integers(0, 10**6), st.sampled_from(["squares", "mean", "logistic"]), st.floats(0.0, 1.0))
def test_a_clipped_step_brings_no_two_tokens_farther_apart_and_a_record_moves_it_by_what_is_said(
    seed: int, kind: str, ridge: float
) -> None:
    rng = np.random.default_rng(seed)
    rows, answers = rng.normal(0, 2, (4, 3)), rng.normal(0, 2, 4)
    others = rows.copy(), answers.copy()
    others[0][1], others[1][1] = rng.normal(0, 20, 3), rng.normal(0, 20)

    def problem(features: np.ndarray, targets: np.ndarray) -> Any:
        if kind == "logistic":
            # Without a ridge labels that can be separated have no minimiser.
            return rl.Logistic([features], [np.where(targets > 0, 1.0, -1.0)], ridge=max(ridge, 1e-3))
        return rl.LeastSquares([features], [targets], scale="mean" if kind == "mean" else "half_sum", ridge=ridge)

    one, other = problem(rows, answers), problem(*others)
    method = private(1.0, clip_row=0.7, clip_slope=0.4).parts()
    alpha = 2.0 / float(curvature_bounds(method.noisy_step, one)[0])

    def after(which: Any, z: np.ndarray) -> np.ndarray:
        run = dense.private_incremental_gradient(
            dense_agents(which), [0], np.array([alpha]), np.zeros((1, 3)), 0.7, 0.4, 1, z
        )
        return np.asarray(run.tokens[1])

    for size in (0.01, 1.0, 100.0):
        z = rng.normal(0, 2, 3)
        there = z + rng.normal(0, size, 3)
        assert np.linalg.norm(after(one, z) - after(one, there)) <= np.linalg.norm(z - there) * (1 + 1e-12)
        most = sensitivity(private(alpha, clip_row=0.7, clip_slope=0.4), one, 0)
        assert np.linalg.norm(after(one, z) - after(other, z)) <= alpha * most.x * (1 + 1e-12)


# ---------------------------------------------------------------- the bound


@few
@given(st.lists(st.tuples(st.floats(0.2, 1.0), st.integers(1, 4)), min_size=1, max_size=4))
def test_pooling_finds_the_cheapest_way_to_spread_what_was_moved(visits: list[tuple[float, int]]) -> None:
    lengths = np.concatenate([[move, *[0.5] * (gap - 1)] for move, gap in visits])
    come_up = np.cumsum(np.concatenate([[move, *[0.0] * (gap - 1)] for move, gap in visits]))
    left = np.cumsum((lengths**2)[::-1])[::-1]
    at = np.cumsum([0] + [gap for _, gap in visits[:-1]])
    limits = [
        {"type": "ineq", "fun": lambda a: come_up[:-1] - np.cumsum(a)[:-1]},
        {"type": "eq", "fun": lambda a: come_up[-1] - a.sum()},
    ]
    begin = np.concatenate([[move, *[0.0] * (gap - 1)] for move, gap in visits])
    found = minimize(
        lambda a: ((a / lengths) ** 2).sum(), begin, constraints=limits, tol=1e-12, options={"maxiter": 500}
    )
    assert pooled(lengths[at], left[at]) == pytest.approx(found.fun, rel=1e-5)


def test_on_a_ring_a_visit_counts_one_over_its_distance() -> None:
    path, laps = ring_path(AGENTS, 4), 4
    for v in range(AGENTS):
        found = exposures(path, AGENTS, [v], told_at_end=False)
        for u in range(v):  # v comes after u in the lap
            assert found[u] == pytest.approx(laps / (v - u))
        for u in range(v + 1, AGENTS):
            assert found[u] == pytest.approx((laps - 1) / (v + AGENTS - u))
    told = exposures(path, AGENTS, [2])
    assert told[5] == pytest.approx(3 / 3 + 1.0)  # the last token is fresh from agent 5
    assert exposures(path, AGENTS, [1, 2, 3, 4, 5])[0] == pytest.approx(laps)


def test_with_two_agents_or_all_others_together_it_is_the_accounting_of_one_who_sees_all() -> None:
    for agents, together in ((2, ()), (AGENTS, (1, 2, 3, 4, 5))):
        found = rl.network_privacy(private(), squares(agents), rl.ring(agents), 5 * agents, together=together)
        central = epsilon(private(), squares(agents), visits=5, agent=0).epsilon
        assert found.epsilon[0, 1] == pytest.approx(central, rel=1e-6)
        assert found.of_all[0] == pytest.approx(central, rel=1e-6)
        assert found.towards["worst"][1] == pytest.approx(central, rel=1e-6)


def test_who_relays_sees_the_token_too() -> None:
    found = rl.network_privacy(private(), squares(4), rl.path(4), 12)
    order = [int(agent) for agent in rl.path(4).tour().order]
    assert len(order) > 4  # somebody is met again
    lonely = exposures(path_of(private().parts(), rl.path(4), 0, 12), 4, [order[1]])
    assert lonely[order[0]] == pytest.approx(2.0)  # both visits of the end are seen by its only neighbour, at once
    assert found.distances[order[0], order[1]] == 1


@few
@given(st.integers(3, 8), st.integers(1, 5), st.floats(1.0, 20.0), st.floats(1.0, 3.0))
def test_more_noise_is_a_smaller_epsilon_and_farther_is_not_a_larger_one(
    agents: int, laps: int, sigma: float, more: float
) -> None:
    problem = squares(agents)
    quiet, loud = (
        rl.network_privacy(private(sigma=noise), problem, rl.ring(agents), laps * agents)
        for noise in (sigma, sigma * more)
    )
    told = ~np.eye(agents, dtype=bool)
    assert (loud.epsilon[told] <= quiet.epsilon[told] * (1 + 1e-9)).all()
    assert (quiet.epsilon[told] <= np.broadcast_to(quiet.of_all[:, None], (agents, agents))[told] * (1 + 1e-9)).all()
    for u in range(agents):
        by_distance = quiet.epsilon[u, np.argsort(quiet.distances[u])][1:]
        assert (np.diff(by_distance) <= 1e-9 * by_distance[1:]).all()


# ---------------------------------------------------------------- exact, where all is linear


@pytest.mark.parametrize(
    "algorithm",
    [
        private(0.3, 0.5, clip_row=9.0, clip_slope=99.0, decay=0.4),
        private(0.3, 0.5, clip_row=9.0, clip_slope=99.0, walk=rl.MetropolisWalk()),
        rl.PIADMM2(rho=5.0, sigma=0.5, first_order=True, clip=99.0, start=rl.ZeroStart()),
    ],
    ids=lambda algorithm: f"{algorithm.name} {getattr(algorithm, 'walk', '')}",
)
def test_the_linear_view_is_that_of_the_update_that_is_run(algorithm: Any) -> None:
    problem, network, hops = squares(), rl.ring(AGENTS), 4 * AGENTS
    path, noise = path_of(algorithm.parts(), network, 5, hops), []
    for hop in range(hops):
        omega = np.zeros(2)
        normals(5, int(path.agents[hop]), hop, PRIMAL, omega)
        noise.append(algorithm.sigma * omega)
    noisy = trace(algorithm, problem, network, hops).tokens
    quiet = trace(rl.PIADMM2(rho=5.0, sigma=0.0, first_order=True, clip=99.0, start=rl.ZeroStart())
                  if isinstance(algorithm, rl.PIADMM2) else type(algorithm)(**{**vars(algorithm), "sigma": 0.0}),
                  problem, network, hops).tokens  # fmt: skip
    answered = np.einsum("tpkq,kq->tp", responses(algorithm.parts(), problem, path), np.array(noise))
    assert np.abs(noisy - quiet - answered).max() < 1e-12


@few
@given(st.integers(0, 10**6), st.booleans(), st.floats(0.05, 1.0))
def test_the_bound_is_at_least_the_exact_loss_of_any_change(seed: int, random: bool, part: float) -> None:
    problem, network = squares(seed=seed % 1000), rl.ring(AGENTS)
    algorithm = private(part * 2.0 / 3.0, walk=rl.ClosedUniformWalk() if random else rl.Cycle())
    view = rl.linear_view(algorithm, problem, network, 3 * AGENTS, seed=seed)
    path, rng = path_of(algorithm.parts(), network, seed, 3 * AGENTS), np.random.default_rng(seed)
    for v in range(0, AGENTS, 2):
        bound = exposures(path, AGENTS, [v])
        for u in set(view.worker.tolist()) - {v}:
            block = view.of(u, v)
            for change in (np.linalg.eigh(block)[1][:, -1], rng.normal(size=len(block)), np.ones(len(block))):
                steps = change.reshape(-1, 2)
                steps = (steps / np.linalg.norm(steps, axis=1).max()).ravel()  # none longer than 1
                assert steps @ block @ steps <= bound[u] * (1 + 1e-9)


def test_the_bound_is_met_where_the_agents_own_step_forgets_what_came_before() -> None:
    rows = [np.zeros((1, 1)) for _ in range(AGENTS)]
    rows[0] = np.ones((1, 1))  # α·L = 1: the token that comes to agent 0 has no part in the one that leaves it
    problem = rl.LeastSquares(rows, [np.zeros(1)] * AGENTS)
    view = rl.linear_view(private(1.0), problem, rl.ring(AGENTS), 4 * AGENTS, told_at_end=False)
    for v in range(1, AGENTS):
        assert np.allclose(view.of(0, v), np.eye(4) / v)


@pytest.mark.parametrize(
    "algorithm", [private(), rl.PIADMM2(rho=5.0, sigma=0.1, first_order=True, clip=1.0)], ids=lambda a: a.name
)
def test_all_members_together_lose_exactly_as_much_as_the_tokens_have_numbers(algorithm: Any) -> None:
    view = rl.linear_view(algorithm, squares(), rl.ring(AGENTS), 5 * AGENTS, told_at_end=False)
    for v in range(1, AGENTS):
        lost = sum(np.trace(view.of(u, v)) for u in range(AGENTS) if u != v)
        assert lost == pytest.approx(5 * 2)
        assert np.nanmean(view.mean[:, v]) == pytest.approx(1.0 / (AGENTS - 1))


def test_admm_hides_a_steady_change_behind_all_others_and_an_alternating_one_hardly_at_all() -> None:
    agents, laps = 10, 40
    rows = [np.full((1, 1), 0.7 if agent == 0 else 1e-3) for agent in range(agents)]  # H_0 = 0.49ρ, stable below 0.5ρ
    algorithm = rl.PIADMM2(rho=1.0, sigma=0.1, first_order=True, clip=1.0)
    problem, network = rl.LeastSquares(rows, [np.ones(1)] * agents), rl.ring(agents)
    view = rl.linear_view(algorithm, problem, network, laps * agents)
    assert algorithm.conditions(problem).hold
    before = agents - 1  # the member before agent 0, whom everybody else's noise stands between
    alternating = (-1.0) ** np.arange(laps)
    assert alternating @ view.of(0, before) @ alternating / laps > 0.9
    assert view.steady[0, before] == pytest.approx(1.0 / (agents - 1), rel=0.02)
    said = rl.network_privacy(algorithm, problem, network, laps * agents)
    assert (said.epsilon[0, 1:] == said.of_all[0]).all() and "nothing better is proved" in said.words


# ---------------------------------------------------------------- walks that are not known yet


@pytest.mark.parametrize(
    ("network", "walk", "hops"),
    [(rl.path(3), rl.UniformWalk(), 7), (rl.complete(3), rl.ClosedUniformWalk(), 6), (rl.path(4), rl.MetropolisWalk(), 5)],
)  # fmt: skip
def test_the_mean_over_all_walks_is_that_of_every_walk_by_itself(network: rl.Network, walk: Any, hops: int) -> None:
    agents, chances, thetas = network.agents, walk.chances(network), np.array([0.05, 0.7, 3.0])
    assert np.allclose(chances.sum(axis=1), 1.0)
    pairs = [(u, v) for u in range(agents) for v in range(agents) if u != v]
    apart, tight, seen = np.zeros((len(pairs), 3)), np.zeros((len(pairs), 3)), np.zeros((agents, 3))
    for places in product(range(agents), repeat=hops):
        chance = np.prod([chances[a, b] for a, b in pairwise(places)]) / agents
        if not chance:
            continue
        path = Path(np.array(places), np.ones(hops, bool), np.ones(hops))
        lost = [exposures(path, agents, [v]) for v in range(agents)]
        seen += chance * np.exp(np.outer([places.count(u) for u in range(agents)], thetas))
        for k, (u, v) in enumerate(pairs):
            ends = [hop for hop, place in enumerate(places) if place in (u, v)] + [hops]
            single = sum(1.0 / (end - hop) for hop, end in pairwise(ends) if places[hop] == u)
            apart[k] += chance * np.exp(thetas * single)
            tight[k] += chance * np.exp(thetas * lost[v][u])
    for k, (u, v) in enumerate(pairs):
        assert np.allclose(growth(*returns_of(chances, hops - 1, u, v), agents, thetas), np.log(apart[k]), atol=1e-10)
    assert (tight <= apart * (1 + 1e-12)).all()
    for u in range(agents):
        assert np.allclose(growth_seen_by_all(chances, hops, u, thetas), np.log(seen[u]), atol=1e-10)


@pytest.mark.parametrize(
    "walk", [rl.MetropolisWalk(), rl.UniformWalk(), rl.ClosedUniformWalk()], ids=lambda w: type(w).__name__
)
def test_the_chances_are_those_of_the_walk(walk: Any) -> None:
    network, hops = rl.path(4), 8_000
    agents = path_of(private(walk=walk).parts(), network, 3, hops).agents
    counts = np.zeros((4, 4))
    np.add.at(counts, (agents[:-1], agents[1:]), 1.0)
    chances, visits = walk.chances(network), counts.sum(axis=1, keepdims=True)
    assert (np.abs(counts / visits - chances) <= 5.0 * np.sqrt(chances * (1 - chances) / visits)).all()


def test_before_the_walk_is_drawn_a_complete_graph_hides_more_than_one_who_sees_all_is_shown() -> None:
    algorithm, problem = private(0.3, 8.0, walk=rl.ClosedUniformWalk()), squares(5)
    found = rl.network_privacy(algorithm, problem, rl.complete(5), 60)
    told = ~np.eye(5, dtype=bool)
    assert np.ptp(found.epsilon[told]) < 1e-9 and (found.epsilon[told] < 0.85 * found.of_all[0]).all()
    quieter = rl.network_privacy(private(0.3, 4.0, walk=rl.ClosedUniformWalk()), problem, rl.complete(5), 60)
    assert (quieter.epsilon[told] > found.epsilon[told]).all()


# ---------------------------------------------------------------- an attack

RUNS, LAPS = 250, 3


def opposed(sign: float) -> rl.LeastSquares:
    """Agent 0 has one record, whose slope is cut at sign; the others' records are cut always."""
    return rl.LeastSquares([np.ones((1, 1))] * AGENTS, [np.array([sign * 1e6]), *[np.full(1, 1e6)] * (AGENTS - 1)])


def tokens_of_runs(sigma: float, sign: float, first: int, runs: int = RUNS) -> np.ndarray:
    """The token before each hop and the last one, of many runs."""
    algorithm, problem, hops = private(0.5, sigma), opposed(sign), AGENTS * LAPS
    return np.array([
        rl.simulate(algorithm, problem, rl.ring(AGENTS), hops, seed=seed, record=1, engine="python", progress=False).record.tokens[:, 0]
        for seed in range(first, first + runs)
    ])  # fmt: skip


def evidence(tokens: np.ndarray, sigma: float, watching: list[int]) -> np.ndarray:
    """The likelihood ratio of each run, by members who know all but agent 0's record."""
    total, begin = np.zeros(len(tokens)), 0
    for end in [*(hop for hop in range(AGENTS * LAPS) if hop % AGENTS in watching), AGENTS * LAPS]:
        if end > begin:  # where no slope is inside its cuts, the token moves by ±α a visit, and by the noise
            mine = (np.arange(begin, end) % AGENTS == 0).sum()
            apart = tokens[:, end] - tokens[:, begin] - 0.5 * (end - begin - mine)
            total += 2.0 * apart * 0.5 * mine / ((end - begin) * (0.5 * sigma) ** 2)
        begin = end + 1
    return total


def advantage(hits: np.ndarray, alarms: np.ndarray) -> float:
    """How far hits exceed false alarms at the likelihood ratio 1, where they do most."""
    return float((hits > 0.0).mean() - (alarms > 0.0).mean())


def test_an_attack_by_a_member_stays_below_its_bound_and_breaks_it_where_all_is_seen_or_no_noise_is_added() -> None:
    far, sigma, sampling = (
        AGENTS - 1,
        2.0,
        0.13,
    )  # three standard errors; Δ = 2, so that μ = √visits for one who sees all
    assert sensitivity(private(0.5, sigma), opposed(1.0), 0).x == pytest.approx(2.0)
    path = path_of(private().parts(), rl.ring(AGENTS), 0, AGENTS * LAPS)
    allowed = 2.0 * norm.cdf(0.5 * np.sqrt(exposures(path, AGENTS, [far])[0])) - 1.0
    one, other = tokens_of_runs(sigma, 1.0, 0), tokens_of_runs(sigma, -1.0, RUNS)
    by_one = advantage(evidence(one, sigma, [far]), evidence(other, sigma, [far]))
    everybody = list(range(1, AGENTS))
    by_all = advantage(evidence(one, sigma, everybody), evidence(other, sigma, everybody))
    assert 0.1 < by_one < allowed + sampling and by_all > allowed + 2 * sampling
    bare = [evidence(tokens_of_runs(1e-3, sign, 0, 20), 1e-3, [far]) for sign in (1.0, -1.0)]
    assert advantage(*bare) == 1.0


# ---------------------------------------------------------------- what is refused, and said


def test_where_nothing_is_known_that_is_said() -> None:
    problem, network = squares(), rl.ring(AGENTS)
    long = rl.network_privacy(private(1.0), problem, network, 12)
    assert (long.epsilon[0, 1:] == long.of_all[0]).all() and "use an alpha of 0.6666 at most" in long.words
    assert "nothing random" in rl.network_privacy(private(sigma=0.0), problem, network, 12).reason
    assert "another method" in rl.network_privacy(rl.WPG(), problem, network, 12).reason
    with pytest.raises(ValueError, match=r"run\.privacy"):
        rl.network_privacy(rl.SealedLaps(), problem, network, 12)
    with pytest.raises(ValueError, match="give the seed of a run"):
        rl.network_privacy(private(walk=rl.LeastVisitedWalk()), problem, network, 12)
    with pytest.raises(ValueError, match="use LeastSquares"):
        rl.linear_view(private(), rl.paper_logistic(agents=AGENTS, samples=3), network, 12)
    assert "the last one" in str(rl.network_privacy(private(), problem, network, 12))


def test_a_budget_ends_a_run_of_noisy_steps() -> None:
    problem, network = squares(), rl.ring(AGENTS)
    budget = rl.PrivacyBudget(epsilon=2.0)
    run = rl.simulate(
        private(sigma=5.0), problem, network, 300, budget=budget, monitors=[rl.PrivacyLoss()], progress=False
    )
    visits = int(run.visits.max())
    assert (
        run.stop == "budget"
        and epsilon(private(), problem, visits).epsilon <= 2.0 < epsilon(private(), problem, visits + 1).epsilon
    )
    assert run.history["epsilon"].iloc[-1] == pytest.approx(epsilon(private(), problem, visits).epsilon)
