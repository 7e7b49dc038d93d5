"""The random walks move with the chances that they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.networks import walks

DRAWS = 6000


@pytest.fixture(scope="module")
def network() -> rl.Network:
    """A hub of degree 4 with a tail: degrees from 1 to 4."""
    return rl.Network(6, np.array([[0, 1], [0, 2], [0, 3], [0, 4], [1, 2], [4, 5]]))


def frequencies(walk: Any, network: rl.Network, place: int, visits: np.ndarray | None = None) -> np.ndarray:
    """How often the walk goes where, from one place, over many hops."""
    part = walk.part(network)
    advance = dict(part.functions)["advance"]
    visits = np.zeros(network.agents, np.int64) if visits is None else visits
    moves = [advance(part.numbers, 7, hop, place, visits) for hop in range(DRAWS)]
    return np.bincount(moves, minlength=network.agents) / DRAWS


def assert_close(measured: np.ndarray, expected: np.ndarray) -> None:
    deviation = np.sqrt(expected * (1.0 - expected) / DRAWS)
    assert (np.abs(measured - expected) <= 4.5 * deviation).all()


@pytest.mark.parametrize("place", [0, 1, 4, 5])
def test_metropolis(network: rl.Network, place: int) -> None:
    degrees = network.degrees
    expected = np.zeros(6)
    for j in network.neighbours_of(place):
        expected[j] = 1.0 / max(degrees[place] + 1, degrees[j] + 1)
    expected[place] = 1.0 - expected.sum()
    assert_close(frequencies(rl.MetropolisWalk(), network, place), expected)


@pytest.mark.parametrize("place", [0, 1, 5])
def test_uniform(network: rl.Network, place: int) -> None:
    expected = np.zeros(6)
    expected[network.neighbours_of(place)] = 1.0 / network.degrees[place]
    assert_close(frequencies(rl.UniformWalk(), network, place), expected)


@pytest.mark.parametrize("place", [0, 1, 5])
def test_closed_uniform(network: rl.Network, place: int) -> None:
    expected = np.zeros(6)
    expected[network.neighbours_of(place)] = expected[place] = 1.0 / (network.degrees[place] + 1)
    assert_close(frequencies(rl.ClosedUniformWalk(), network, place), expected)


def test_least_visited(network: rl.Network) -> None:
    visits = np.array([3, 1, 1, 2, 1, 0])
    assert_close(frequencies(rl.LeastVisitedWalk(), network, 0, visits), np.array([0.0, 1, 1, 0, 1, 0]) / 3.0)
    assert_close(frequencies(rl.LeastVisitedWalk(), network, 4, visits), np.array([0.0, 0, 0, 0, 0, 1]))
    alone = np.array([0, 1, 1, 1, 1, 1])  # the agent itself is the least visited
    assert_close(frequencies(rl.LeastVisitedWalk(), network, 0, alone), np.array([1.0, 0, 0, 0, 0, 0]))


def test_metropolis_visits_all_agents_equally_in_the_long_run(network: rl.Network) -> None:
    problem = rl.paper_least_squares(agents=6, samples=3)
    run = rl.simulate(rl.WADMM(), problem, network, 600_000, record=600_000)
    assert run.visits / run.hops == pytest.approx(np.full(6, 1.0 / 6.0), rel=0.03)


def test_an_agent_without_neighbours_keeps_the_token() -> None:
    alone = rl.ring(1)
    for walk in (rl.MetropolisWalk(), rl.UniformWalk(), rl.ClosedUniformWalk(), rl.LeastVisitedWalk()):
        assert frequencies(walk, alone, 0)[0] == 1.0


def test_tokens_start_at_distinct_agents_that_the_seed_decides() -> None:
    network = rl.ring(50)
    starts = [walks.MetropolisWalk().first_places(network, seed, 20) for seed in range(5)]
    assert all(len(set(start.tolist())) == 20 for start in starts)
    assert len({tuple(start) for start in starts}) == 5
    assert list(rl.Cycle().first_places(network, 3, 4)) == [0, 12, 25, 37]


@pytest.mark.parametrize("steps", [1, 3])
def test_a_mixed_walk_goes_the_metropolis_walks_way_and_works_at_every_so_many_steps(
    network: rl.Network, steps: int
) -> None:
    mixed, plain = rl.MixedWalk(steps).part(network), rl.MetropolisWalk().part(network)
    ours, theirs = dict(mixed.functions), dict(plain.functions)
    visits, place, agent = np.zeros(6, np.int64), 4, 4
    for hop in range(60):
        assert ours["agent_at"](mixed.numbers, place) == agent
        assert ours["works"](mixed.numbers, place) == (hop % steps == 0)
        following = ours["advance"](mixed.numbers, 7, hop, place, visits)
        agent = theirs["advance"](plain.numbers, 7, hop, agent, visits)
        assert ours["move_cost"](mixed.numbers, place, following) == 1
        place = following
    free = rl.MixedWalk(2, self_loops_free=True).part(network)
    assert [
        dict(free.functions)["move_cost"](free.numbers, here, there) for here, there in ((3, 9), (9, 4), (3, 10))
    ] == [
        0,
        1,
        1,
    ]
