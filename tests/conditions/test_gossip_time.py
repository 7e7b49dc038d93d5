"""The time of gossip: an agent goes on when it has heard all its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

import roundelay as rl
from roundelay.algorithms.gossip.admm import colours_of
from roundelay.engine.assemble import gossip_assembly, prepare
from roundelay.engine.checks import Options
from roundelay.engine.gossip_run import new_gossip_state
from tests.conditions.support import (
    Postcards,
    adjacency,
    film,
    matrix_of,
    simulate,
    squares,
    triangle_with_tail,
    within,
)

NETWORK = triangle_with_tail()
PROBLEM = squares(5)
LINKS = [1.0, 2.5, 0.5, 4.0, 3.25]
WORKING = np.array([0.25, 2.0, 0.0, 1.5, 7.0])
TIMES: dict[str, dict[str, Any]] = {
    "latency": {"latency": LINKS},
    "compute": {"compute": WORKING},
    "both": {"latency": LINKS, "compute": WORKING},
    "one for all": {"latency": 2.0, "compute": 0.5},
}
EVERY_TIME = pytest.mark.parametrize("times", TIMES)


class Clocks:
    """Max-plus arithmetic: work, speak, and go on when all who spoke have been heard."""

    def __init__(self, network: rl.Network, latency: Any = 0.0, compute: Any = 0.0) -> None:
        self.links, self.latency = adjacency(network) > 0.0, matrix_of(network, latency)
        self.compute = np.broadcast_to(compute, network.agents)
        self.now = np.zeros(network.agents)
        self.rows = [0.0]

    def work(self, who: Any = slice(None)) -> None:
        self.now[who] += self.compute[who]

    def exchange(self, who: Any = slice(None)) -> None:
        """t_i = max(t_i, max_j t_j + latency_ij) over the neighbours j that speak."""
        spoken = np.full(len(self.now), -np.inf)
        spoken[who] = self.now[who]
        arrivals = np.where(self.links, spoken[None] + self.latency, -np.inf)
        self.now = np.maximum(self.now, arrivals.max(axis=1))

    def write(self) -> None:
        self.rows.append(float(self.now.max()))


def assert_times(run: rl.Run, clocks: Clocks) -> None:
    np.testing.assert_allclose(run.record.seconds, clocks.rows, rtol=1e-13)
    assert clocks.rows[-1] > 0.0


@EVERY_TIME
@pytest.mark.parametrize(
    "algorithm", [rl.DGD(), rl.DADMM(), rl.GradientTracking(), rl.CHOCO()], ids=lambda algorithm: algorithm.name
)
def test_every_iteration_waits_for_the_neighbours(algorithm: Any, times: str) -> None:
    run = simulate(algorithm, PROBLEM, NETWORK, rl.NetworkConditions(**TIMES[times]), iterations=15, record=1)
    clocks = Clocks(NETWORK, **TIMES[times])
    for _ in range(15):
        clocks.work()
        clocks.exchange()
        clocks.write()
    assert_times(run, clocks)


@EVERY_TIME
def test_two_exchanges_wait_twice_and_work_once(times: str) -> None:
    algorithm = rl.GradientTracking(adapt_then_combine=True)
    run = simulate(algorithm, PROBLEM, NETWORK, rl.NetworkConditions(**TIMES[times]), iterations=15, record=1)
    clocks = Clocks(NETWORK, **TIMES[times])
    for _ in range(15):
        clocks.work()
        clocks.exchange()
        clocks.exchange()
        clocks.write()
    assert_times(run, clocks)


@EVERY_TIME
@pytest.mark.parametrize("algorithm", [rl.NIDS(), rl.LEAD(), rl.Scaffnew(q=0.4)], ids=lambda algorithm: algorithm.name)
def test_who_works_alone_waits_for_nobody(algorithm: Any, times: str) -> None:
    """NIDS and LEAD begin alone; Scaffnew works alone until the coin says otherwise."""
    run = simulate(algorithm, PROBLEM, NETWORK, rl.NetworkConditions(**TIMES[times]), iterations=15, record=1)
    clocks, talked = Clocks(NETWORK, **TIMES[times]), np.diff(run.record.units) > 0
    assert not talked.all() and talked.any()
    for speaks in talked:
        clocks.work()
        if speaks:
            clocks.exchange()
        clocks.write()
    assert_times(run, clocks)


def coloured_clocks(network: rl.Network, iterations: int, **times: Any) -> Clocks:
    """Colour after colour works, and is heard by all its neighbours, whether or not it is their turn next."""
    colours, clocks = colours_of(network), Clocks(network, **times)
    for _ in range(iterations):
        for colour in range(int(colours.max()) + 1):
            clocks.work(colours == colour)
            clocks.exchange(colours == colour)
        clocks.write()
    return clocks


@EVERY_TIME
def test_two_colours_wait_for_each_other(times: str) -> None:
    given = {**TIMES[times]}
    if np.ndim(given.get("latency", 0.0)):
        given["latency"] = LINKS[:4]
    run = simulate(rl.ColouredDADMM(), PROBLEM, rl.path(5), rl.NetworkConditions(**given), iterations=12, record=1)
    assert_times(run, coloured_clocks(rl.path(5), 12, **given))


@pytest.mark.parametrize("loss", [0.0, 1e-9], ids=["certain", "almost certain"])
@pytest.mark.parametrize("times", ["latency", "compute", "both"])
def test_three_colours_wait_for_each_other(times: str, loss: float) -> None:
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(loss), **TIMES[times])
    run = simulate(rl.ColouredDADMM(), PROBLEM, NETWORK, conditions, iterations=12, record=1)
    assert_times(run, coloured_clocks(NETWORK, 12, **TIMES[times]))


def test_colours_take_turns() -> None:
    """Three colours in a triangle with nothing but work: an iteration takes all three, one after another."""
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(1e-9), compute=[1.0, 10.0, 100.0])
    run = simulate(rl.ColouredDADMM(), squares(3), rl.ring(3), conditions, iterations=8, record=1)
    np.testing.assert_allclose(run.record.seconds, 111.0 * np.arange(9), rtol=1e-13)


def test_nobody_waits_for_a_colour_whose_turn_it_is_not() -> None:
    """In a triangle with one slow link its ends wait for each other's messages, and never for their silence.

    Colour 0 is heard after 1, colour 1 speaks at once and is heard over the slow link at 51, and answered at 101.
    """
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(1e-9), latency=[1.0, 1.0, 50.0])
    run = simulate(rl.ColouredDADMM(), squares(3), rl.ring(3), conditions, iterations=6, record=1)
    assert colours_of(rl.ring(3)).tolist() == [0, 1, 2]
    assert run.record.seconds[1] == 101.0
    assert_times(run, coloured_clocks(rl.ring(3), 6, latency=[1.0, 1.0, 50.0]))


# ---------------------------------------------------------------- the pace


def test_the_pace_is_the_largest_cycle_mean() -> None:
    """In max-plus algebra the pace in the long run is the eigenvalue: the slowest agent, or the slowest link there and back.

    λ = max(max_i c_i, max_ij (c_i + c_j)/2 + l_ij); longer cycles have no larger mean.
    """
    for latency, compute in ((LINKS, WORKING), (0.0, WORKING), (LINKS, 0.0), (0.1, WORKING)):
        run = simulate(
            rl.DGD(), PROBLEM, NETWORK, rl.NetworkConditions(latency=latency, compute=compute), iterations=140, record=1
        )
        c, links = np.broadcast_to(compute, 5), matrix_of(NETWORK, latency)
        pairs = np.where(adjacency(NETWORK) > 0.0, (c[:, None] + c[None]) / 2.0 + links, 0.0)
        pace = max(c.max(), pairs.max())
        assert abs((run.record.seconds[140] - run.record.seconds[40]) / 100.0 - pace) < 1e-9


def test_one_slow_agent_delays_its_neighbours_at_once_and_others_later() -> None:
    """On a path with one slow end, agent d has the delay from iteration d on, and not before."""
    network, problem, slow, iterations = rl.path(6), squares(6), 50.0, 6
    method, conditions = rl.DGD(alpha=0.05).parts(), rl.NetworkConditions(compute=[slow, 1.0, 1.0, 1.0, 1.0, 1.0])
    mixing = method.mixing.numbers(network)
    prepared = prepare(gossip_assembly(method, problem, network, mixing, conditions), "python")
    marks = np.array([iterations])
    state = new_gossip_state(method, problem, network, mixing, 3, marks, Options(conditions=conditions))
    for k in range(1, iterations + 1):
        prepared.travel(*prepared.numbers, 3, *state.handed(), k)
        # Whose message has come along d links since iteration j knows of j slow iterations.
        expected = [max((k - d + 1) * slow + (d - 1) if 0 < d <= k else 0.0, k) for d in range(6)]
        expected[0] = k * slow
        np.testing.assert_allclose(state.links.clocks, expected)


def test_a_slow_agent_costs_gossip_every_iteration_and_a_token_once_a_lap() -> None:
    agents = 8
    conditions = rl.NetworkConditions(compute=[1.0] * (agents - 1) + [101.0])
    gossip = simulate(rl.DGD(), squares(agents), rl.ring(agents), conditions, iterations=20)
    token = simulate(rl.IADMM(), squares(agents), rl.ring(agents), conditions, hops=20 * agents)
    assert gossip.record.seconds[-1] == 20 * 101.0
    assert token.record.seconds[-1] == 20 * (101.0 + (agents - 1))


# ---------------------------------------------------------------- everyone hears everyone


@EVERY_TIME
def test_who_is_not_linked_is_heard_by_the_quickest_way(times: str) -> None:
    """EF-SignSGD on a tree, where the way is the only one."""
    network = rl.Network(5, np.array([[0, 1], [1, 2], [1, 3], [3, 4]]))
    given = {**TIMES[times]}
    if np.ndim(given.get("latency", 0.0)):
        given["latency"] = LINKS[:4]
    run = simulate(rl.EFSignSGD(), PROBLEM, network, rl.NetworkConditions(**given), iterations=10, record=1)
    latency = given.get("latency", 0.0)
    clocks = Clocks(rl.complete(5), compute=given.get("compute", 0.0))
    if np.max(latency) > 0.0:
        clocks.latency = shortest_path(matrix_of(network, latency), directed=False)
    for _ in range(10):
        clocks.work()
        clocks.exchange()
        clocks.write()
    assert_times(run, clocks)


def test_the_quickest_way_may_have_more_links() -> None:
    """From 0 to 2 not over agent 1, whose links are slow, but round by 4 and 3."""
    network = rl.ring(5)
    links = [100.0 if 1 in link else 1.0 for link in network.edges.tolist()]
    run = simulate(rl.EFSignSGD(), PROBLEM, network, rl.NetworkConditions(latency=links), iterations=1)
    assert run.record.seconds[-1] == 101.0  # between agent 1 and those behind its neighbours
    direct = simulate(rl.DGD(), PROBLEM, network, rl.NetworkConditions(latency=links), iterations=1)
    assert direct.record.seconds[-1] == 100.0


def test_who_is_linked_is_heard_over_the_link() -> None:
    """A slow link in a triangle counts the same whether or not somebody else hangs on to the triangle."""
    triangle = simulate(
        rl.EFSignSGD(), squares(3), rl.ring(3), rl.NetworkConditions(latency=[10.0, 1.0, 1.0]), iterations=1
    )
    tail = rl.Network(4, np.array([[0, 1], [0, 2], [1, 2], [2, 3]]))
    more = simulate(rl.EFSignSGD(), squares(4), tail, rl.NetworkConditions(latency=[10.0, 1.0, 1.0, 1.0]), iterations=1)
    assert triangle.record.seconds[-1] == more.record.seconds[-1] == 10.0


# ---------------------------------------------------------------- with chance


def test_a_lost_message_that_nobody_repeats_costs_no_time() -> None:
    """Who does not hear in time goes on with what it has."""
    times = TIMES["both"]
    certain = simulate(rl.DGD(), PROBLEM, NETWORK, rl.NetworkConditions(**times), iterations=15, record=1)
    lossy = rl.NetworkConditions(loss=rl.BernoulliLoss(0.6), **times)
    ours = simulate(rl.DGD(), PROBLEM, NETWORK, lossy, iterations=15, record=1)
    np.testing.assert_array_equal(ours.record.seconds, certain.record.seconds)


def one_iteration(conditions: rl.NetworkConditions, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and units of one iteration between two agents, for many seeds."""
    network, problem = rl.path(2), squares(2, 2)
    runs = [simulate(Postcards(), problem, network, conditions, iterations=1, seed=seed) for seed in range(seeds)]
    return np.array([run.record.seconds[-1] for run in runs]), np.array([run.units for run in runs])


def test_what_is_sent_again_comes_a_round_trip_later() -> None:
    """Two arcs with a and b attempts: 2·max(a, b) − 1 latencies, a + b units, P(max ≤ m) = (1 − pᵐ)²."""
    chance, seeds = 0.4, 300
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(chance), resend=True, latency=3.0)
    seconds, units = one_iteration(conditions, seeds)
    slower = (seconds / 3.0 + 1.0) / 2.0
    np.testing.assert_array_equal(slower, np.rint(slower))
    assert (slower <= units - 1).all() and (2 * slower >= units).all()
    assert within(units.mean(), 2.0 / (1.0 - chance), np.sqrt(2.0 * chance) / (1.0 - chance) / np.sqrt(seeds))
    for most in (1, 2, 3):
        share = (1.0 - chance**most) ** 2
        assert within((slower <= most).mean(), share, np.sqrt(share * (1.0 - share) / seeds)), most


def test_latency_jitter_is_exponential_on_every_arc() -> None:
    """The later of two: P(max(E, E') ≤ t) = (1 − e^{−t})²."""
    seeds = 300
    seconds, _ = one_iteration(rl.NetworkConditions(latency=2.0, latency_jitter=0.5), seeds)
    late = (seconds / 2.0 - 1.0) / 0.5
    assert late.min() > 0.0
    for t in (0.5, 1.0, 2.0):
        share = (1.0 - np.exp(-t)) ** 2
        assert within((late <= t).mean(), share, np.sqrt(share * (1.0 - share) / seeds)), t


def test_work_has_its_jitter_and_its_stragglers() -> None:
    """The slower of two agents: 1 + jE, tenfold with the chance q."""
    seeds, chance = 300, 0.3
    seconds, _ = one_iteration(rl.NetworkConditions(compute=4.0, straggler_chance=chance, straggler_factor=10.0), seeds)
    assert set(seconds) == {4.0, 40.0}
    share = (1.0 - chance) ** 2
    assert within((seconds == 4.0).mean(), share, np.sqrt(share * (1.0 - share) / seeds))
    seconds, _ = one_iteration(rl.NetworkConditions(compute=4.0, compute_jitter=0.25), seeds)
    late = (seconds / 4.0 - 1.0) / 0.25
    for t in (0.5, 1.0, 2.0):
        share = (1.0 - np.exp(-t)) ** 2
        assert within((late <= t).mean(), share, np.sqrt(share * (1.0 - share) / seeds)), t


def test_chance_is_new_in_every_iteration_for_every_agent() -> None:
    """Two agents that wait for each other: each iteration takes the slower one's time, all of them independent."""
    conditions = rl.NetworkConditions(compute=1.0, compute_jitter=1.0)
    run = simulate(rl.DGD(), squares(2), rl.path(2), conditions, iterations=1200, record=1)
    took = np.diff(run.record.seconds) - 1.0
    assert within(took.mean(), 1.5, np.sqrt(1.25 / 1200))  # E max(E, E') = 3/2, with the variance 5/4
    centred = took - 1.5
    assert within((centred[1:] * centred[:-1]).mean(), 0.0, 1.25 / np.sqrt(1200))


def test_latency_jitter_is_new_in_every_iteration() -> None:
    conditions = rl.NetworkConditions(latency=1.0, latency_jitter=1.0)
    run = simulate(rl.DGD(), squares(2), rl.path(2), conditions, iterations=300, record=1)
    took = np.diff(run.record.seconds)
    assert len(np.unique(took.round(9))) > 290
    # Every message waits for the one before: two arcs, each with 1 + E, in turn or at once.
    assert 2.0 < took.mean() < 2.5


def test_who_takes_no_time_changes_nothing_else() -> None:
    """Time is only counted: the trajectory is that of a network without."""
    timed = rl.NetworkConditions(latency=LINKS, latency_jitter=1.0, compute=WORKING, straggler_chance=0.3)
    for algorithm in (rl.DGD(), rl.ColouredDADMM(), rl.LEAD(), rl.Scaffnew()):
        bare = film(algorithm, PROBLEM, NETWORK, iterations=12)
        ours = film(algorithm, PROBLEM, NETWORK, timed, iterations=12)
        np.testing.assert_array_equal(ours.x, bare.x)
        np.testing.assert_array_equal(ours.units, bare.units)
        assert (np.diff(ours.seconds) >= 0.0).all() and ours.seconds[-1] > 0.0
