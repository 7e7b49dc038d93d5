"""The lap that the token goes round."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings

from roundelay.networks import (
    Network,
    Tour,
    barbell,
    complete,
    from_networkx,
    grid,
    make_tour,
    path,
    ring,
    star,
)

from .brute_force import connected_networks, least_cycle_cost, least_walk_cost


def check_tour(network: Network, tour: Tour) -> None:
    """What holds for every tour."""
    assert tour.order[0] == 0
    assert tour.works.shape == tour.order.shape
    assert sorted(tour.order[tour.works].tolist()) == list(range(network.agents))
    if network.agents > 1:
        following = np.roll(tour.order, -1)
        assert all(network.has_edge(i, j) for i, j in zip(tour.order, following, strict=True))
    # It is the first meeting in a lap that counts, the later ones relay.
    for agent in range(network.agents):
        assert tour.works[np.flatnonzero(tour.order == agent)[0]]
    assert tour.cost == network.lap_cost(tour.order)
    assert tour.hamiltonian == (len(tour.order) == network.agents)
    assert tour.words.endswith(".") and tour.words.count(". ") == 0


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=7))
def test_small_tours_are_those_of_brute_force(network: Network) -> None:
    tour = make_tour(network)
    check_tour(network, tour)
    assert tour.proven
    if network.agents > 2:
        assert tour.hamiltonian == np.isfinite(least_cycle_cost(network))
        assert tour.cost == least_walk_cost(network)


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=7, costs=True, least=3))
def test_small_tours_with_costs_are_those_of_brute_force(network: Network) -> None:
    tour = make_tour(network)
    check_tour(network, tour)
    assert tour.proven
    least = least_cycle_cost(network)
    assert tour.hamiltonian == np.isfinite(least)
    assert tour.cost == pytest.approx(least if tour.hamiltonian else least_walk_cost(network), rel=1e-12)


@settings(deadline=None, max_examples=25)
@given(connected_networks(most=40, least=15))
def test_larger_tours_hold_together(network: Network) -> None:
    check_tour(network, make_tour(network, time_limit=1.0))


@settings(deadline=None, max_examples=15)
@given(connected_networks(most=30, costs=True, least=15))
def test_larger_tours_with_costs_hold_together(network: Network) -> None:
    check_tour(network, make_tour(network, time_limit=1.0))


def test_one_agent() -> None:
    tour = make_tour(ring(1))
    assert tour.order.tolist() == [0] and tour.works.tolist() == [True]
    assert tour.hamiltonian and tour.proven and tour.cost == 0


def test_two_agents_use_their_link_both_ways() -> None:
    tour = make_tour(Network(2, np.array([[0, 1]]), costs=np.array([3.0])))
    assert tour.order.tolist() == [0, 1] and tour.works.tolist() == [True, True]
    assert tour.hamiltonian and tour.proven and tour.cost == 6


@pytest.mark.parametrize(
    ("network", "hops"),
    [
        (path(5), 8),
        (path(300), 598),
        (star(7), 12),
        (star(1500), 2998),
        (barbell(3, 0), 8),
        (barbell(40, 3), 88),
        (grid(3, 3), 10),
        (grid(5, 7), 36),
        (from_networkx(networkx.petersen_graph()), 11),
        (from_networkx(networkx.complete_bipartite_graph(4, 9)), 18),
        (from_networkx(networkx.complete_bipartite_graph(10, 13)), 26),
        (from_networkx(networkx.balanced_tree(3, 5)), 2 * 363),
    ],
)
def test_networks_without_a_cycle(network: Network, hops: int) -> None:
    tour = make_tour(network)
    check_tour(network, tour)
    assert not tour.hamiltonian
    assert tour.proven
    assert len(tour.order) == hops
    assert tour.words.startswith("There is no Hamiltonian cycle, as ")
    assert "proven the least possible" in tour.words


@pytest.mark.parametrize(
    "network",
    [
        ring(3),
        ring(500),
        complete(30),
        grid(4, 5),
        from_networkx(networkx.hypercube_graph(4)),
        from_networkx(networkx.hypercube_graph(8)),
        from_networkx(networkx.dodecahedral_graph()),
        from_networkx(networkx.grid_2d_graph(20, 20)),
    ],
)
def test_networks_with_a_cycle(network: Network) -> None:
    tour = make_tour(network)
    check_tour(network, tour)
    assert tour.hamiltonian and tour.proven
    assert tour.cost == network.agents


def test_a_planted_cycle_is_used_unless_a_cheaper_one_is_wanted() -> None:
    planted = np.array([0, 2, 4, 1, 3])
    plain = Network(5, complete(5).edges, planted_cycle=planted)
    assert make_tour(plain).order.tolist() == planted.tolist()
    ring_links = {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}
    costs = np.array([1.0 if (i, j) in ring_links else 5.0 for i, j in plain.edges.tolist()])
    assert make_tour(Network(5, plain.edges, costs, planted)).cost == 5.0


def test_equal_costs_make_any_cycle_the_cheapest() -> None:
    links = grid(20, 20).edges
    tour = make_tour(Network(400, links, costs=np.full(len(links), 0.3)))
    assert tour.hamiltonian and tour.proven
    assert tour.cost == pytest.approx(120)


def test_a_ring_with_costs_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ortools.sat.python", None)
    tour = make_tour(Network(50, ring(50).edges, costs=np.arange(1.0, 51.0)))
    assert tour.hamiltonian and tour.proven and tour.cost == 50 * 51 / 2


def test_no_time_at_all_still_gives_a_tour() -> None:
    for network in (
        from_networkx(networkx.tutte_graph()),
        grid(9, 9),
        from_networkx(networkx.grid_2d_graph(6, 6)),
    ):
        check_tour(network, make_tour(network, time_limit=0.0))
