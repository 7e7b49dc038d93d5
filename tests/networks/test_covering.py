"""Closed walks that visit everyone, some more than once."""

from __future__ import annotations

import sys

import networkx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.networks import (
    Network,
    complete,
    covering_walk,
    find_cycle,
    from_networkx,
    grid,
    path,
    random_network,
    ring,
)
from roundelay.networks.tours.covering import _least_possible, walk_with_detours

from .brute_force import connected_networks, least_walk_cost


def covers(network: Network, order: np.ndarray) -> bool:
    """Whether a closed walk from agent 0 meets everyone along links."""
    everyone = set(order.tolist()) == set(range(network.agents))
    return everyone and order[0] == 0 and bool(np.isfinite(network.lap_cost(order)))


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=7))
def test_hops_equal_brute_force(network: Network) -> None:
    walk = covering_walk(network)
    assert covers(network, walk.order)
    assert walk.proven
    assert walk.cost == network.lap_cost(walk.order) == least_walk_cost(network)


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=7, costs=True))
def test_costs_equal_brute_force(network: Network) -> None:
    walk = covering_walk(network)
    assert covers(network, walk.order)
    assert walk.proven
    assert walk.cost == pytest.approx(least_walk_cost(network), rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=7, least=3) | connected_networks(most=7, costs=True, least=3))
def test_the_lower_bound_is_one(network: Network) -> None:
    least = least_walk_cost(network)
    assert _least_possible(network, find_cycle(network)) <= least * (1 + 1e-9)


@pytest.mark.parametrize(("network", "hops"), [(grid(3, 3), 10), (grid(2, 3), 6), (complete(4), 4)])
def test_the_lower_bound_is_met(network: Network, hops: int) -> None:
    assert _least_possible(network, find_cycle(network)) == pytest.approx(hops)


def test_a_detour_may_be_cheaper_than_a_cycle() -> None:
    network = Network(3, np.array([[0, 1], [1, 2], [0, 2]]), costs=np.array([1.0, 1.0, 10.0]))
    assert covering_walk(network).order.tolist() in ([0, 1, 2, 1], [0, 1, 2, 1][::-1])
    assert network.tour().hamiltonian


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60), st.integers(0, 1000))
def test_trees_take_each_link_twice(agents: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    edges = np.array([[int(random.integers(agent)), agent] for agent in range(1, agents)]).reshape(-1, 2)
    costs = random.uniform(0.5, 2.0, len(edges))
    walk = covering_walk(Network(agents, edges.astype(np.int64), costs), time_limit=0.0)
    assert walk.proven
    assert len(walk.order) == max(2 * (agents - 1), 1)
    assert walk.cost == pytest.approx(2 * costs.sum())


def test_a_long_path_is_walked_without_recursion() -> None:
    walk = covering_walk(path(20_000))
    assert walk.proven and walk.cost == 39_998


def test_the_solver_settles_what_is_left() -> None:
    pytest.importorskip("ortools")
    graph = networkx.barabasi_albert_graph(40, 2, seed=5)
    network = from_networkx(graph)
    walk = covering_walk(network)
    assert covers(network, walk.order)
    assert walk.proven
    # Started afresh from other names, it must come to the same length.
    other = from_networkx(networkx.relabel_nodes(graph, {node: 39 - node for node in graph}))
    shuffled = Network(40, 39 - network.edges)
    assert covering_walk(other).cost == covering_walk(shuffled).cost == walk.cost


def test_heuristics_come_close_without_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    network = from_networkx(networkx.barabasi_albert_graph(40, 2, seed=5))
    exact = covering_walk(network).cost
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    walk = covering_walk(network)
    assert covers(network, walk.order)
    assert exact <= walk.cost <= 1.1 * exact


@pytest.mark.parametrize("side", [11, 35])
def test_odd_grids_come_close_to_one_extra_hop(side: int) -> None:
    network = grid(side, side)
    walk = covering_walk(network)
    assert covers(network, walk.order)
    assert side**2 + 1 <= walk.cost <= 1.05 * side**2
    assert walk.proven == (walk.cost == side**2 + 1)


def test_large_blocks_with_costs_are_covered() -> None:
    planted = random_network(1200, 0.005, seed=2)
    leaf = np.array([[0, 1200]])
    edges = np.concatenate([planted.edges, leaf])
    costs = np.random.default_rng(0).uniform(1.0, 2.0, len(edges))
    network = Network(1201, edges, costs)
    walk = covering_walk(network, time_limit=4.0)
    assert covers(network, walk.order)
    spanning_tree = networkx.minimum_spanning_tree(network.to_networkx(), weight="cost")
    assert spanning_tree.size(weight="cost") < walk.cost <= 2 * spanning_tree.size(weight="cost")


@settings(deadline=None, max_examples=40)
@given(connected_networks(most=12, costs=True), st.integers(0, 11))
def test_a_tree_walk_takes_a_cheapest_tree_twice(network: Network, start: int) -> None:
    walk = walk_with_detours(network, np.array([start % network.agents]))
    tree = networkx.minimum_spanning_tree(network.to_networkx(), weight="cost")
    assert set(walk.tolist()) == set(range(network.agents))
    assert network.lap_cost(walk) == pytest.approx(2 * tree.size(weight="cost"))


def test_detours_hang_on_the_backbone() -> None:
    hub = Network(8, np.concatenate([ring(5).edges, [[1, 5], [5, 6], [3, 7]]]))
    walk = walk_with_detours(hub, np.arange(5))
    assert hub.lap_cost(walk) == 5 + 2 * 3
    assert set(walk.tolist()) == set(range(8))


def test_a_complete_network_needs_no_detour() -> None:
    walk = covering_walk(complete(100))
    assert walk.proven and walk.cost == 100
