"""The search for Hamiltonian cycles, method by method."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time

import networkx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.networks import (
    Network,
    complete,
    find_cycle,
    from_networkx,
    grid,
    path,
    random_network,
    ring,
    star,
)
from roundelay.networks.tours.blocks import find_blocks, why_no_cycle
from roundelay.networks.tours.exact import cheapest_round, solve_circuit
from roundelay.networks.tours.improvement import LinkLengths, TableLengths, improve_round, lengths_of_links
from roundelay.networks.tours.rotation import find_long_path

from .brute_force import connected_networks, least_cycle_cost


def without_plant(network: Network) -> Network:
    """The same links, with the cycle forgotten."""
    return Network(network.agents, network.edges)


def is_cycle(network: Network, order: np.ndarray | None) -> bool:
    """Whether an order meets everyone once along links."""
    return (
        order is not None
        and sorted(order.tolist()) == list(range(network.agents))
        and np.isfinite(network.lap_cost(order))
    )


def random_costs(network: Network, seed: int) -> Network:
    """The same links, at random costs, with the cycle forgotten."""
    costs = np.random.default_rng(seed).uniform(0.1, 1.1, len(network.edges))
    return Network(network.agents, network.edges, costs)


@pytest.mark.parametrize(("agents", "degree"), [(200, 12), (2000, 20), (10_000, 30)])
def test_rotation_finds_cycles_of_random_networks(agents: int, degree: int) -> None:
    network = without_plant(random_network(agents, degree / agents, seed=1))
    started = time.process_time()
    search = find_cycle(network)
    assert time.process_time() - started < 8
    assert is_cycle(network, search.cycle)
    assert search.proven and search.cost == agents
    assert search.cycle is not None and search.cycle[0] == 0


def test_rotation_finds_cycles_of_sparse_networks() -> None:
    network = from_networkx(networkx.random_regular_graph(3, 400, seed=2))
    assert is_cycle(network, find_cycle(network).cycle)


def test_the_solver_is_not_loaded_where_it_is_not_needed() -> None:
    lines = [
        "import sys",
        "from roundelay.networks import Network, random_network",
        "network = random_network(100, 0.3)",
        "assert Network(100, network.edges).tour().hamiltonian",
        "assert 'ortools' not in sys.modules",
    ]
    found_here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, env=found_here)


def test_the_search_depends_on_the_seed_alone() -> None:
    network = without_plant(random_network(300, 0.05, seed=1))
    first, again, other = (
        find_cycle(network, seed=1),
        find_cycle(network, seed=1),
        find_cycle(network, seed=2),
    )
    assert first.cycle is not None and again.cycle is not None and other.cycle is not None
    assert np.array_equal(first.cycle, again.cycle)
    assert not np.array_equal(first.cycle, other.cycle)


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=25, least=2), st.integers(0, 5))
def test_rotation_keeps_to_the_links(network: Network, seed: int) -> None:
    found = find_long_path(network, seed, time.process_time() + 5)
    order = found.order
    assert len(set(order.tolist())) == len(order)
    assert all(network.has_edge(i, j) for i, j in itertools.pairwise(order))
    assert found.closed == (len(order) > 2 and network.has_edge(int(order[-1]), int(order[0])))


@settings(deadline=None, max_examples=80)
@given(connected_networks(most=14))
def test_blocks_are_those_of_networkx(network: Network) -> None:
    graph = network.to_networkx()
    blocks = find_blocks(network)
    found = {frozenset(block.members.tolist()) for block in blocks}
    assert found == {frozenset(members) for members in networkx.biconnected_components(graph)}
    assert len(found) == len(blocks)
    links = np.concatenate([block.links for block in blocks]) if blocks else np.empty(0)
    assert sorted(links.tolist()) == list(range(len(network.edges)))
    for block in blocks:
        assert np.isin(network.edges[block.links], block.members).all()


def test_blocks_of_a_larger_network() -> None:
    graph = networkx.connected_watts_strogatz_graph(3000, 3, 0.3, seed=3)
    graph.add_edges_from((node, (7 * node) % 3000) for node in range(1, 3000, 11) if (7 * node) % 3000 != node)
    found = {frozenset(block.members.tolist()) for block in find_blocks(from_networkx(graph))}
    assert found == {frozenset(members) for members in networkx.biconnected_components(graph)}


@settings(deadline=None, max_examples=80)
@given(connected_networks(most=7, least=3))
def test_a_quick_proof_of_impossibility_is_right(network: Network) -> None:
    if why_no_cycle(network) is not None:
        assert not np.isfinite(least_cycle_cost(network))


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (path(4), "agent 0 has a single link"),
        (star(5), "agent 1 has a single link"),
        (Network(5, np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [2, 4]])), "agent 2 alone holds"),
        (
            from_networkx(networkx.complete_bipartite_graph(2, 4)),
            "4 neighbours of agent 0 have two links only",
        ),
        (grid(3, 5), "a side of 7 agents and one of 8"),
    ],
)
def test_quick_proofs_say_why(network: Network, reason: str) -> None:
    search = find_cycle(network)
    assert search.cycle is None and search.proven
    assert reason in search.words


def test_quick_proofs_stay_silent_where_there_is_a_cycle() -> None:
    for network in (ring(3), ring(8), complete(5), grid(4, 5), random_network(50, 0.05)):
        assert why_no_cycle(network) is None


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=7, costs=True, least=3))
def test_held_karp_equals_brute_force(network: Network) -> None:
    order = cheapest_round(_table(network))
    least = least_cycle_cost(network)
    assert (order is None) == (least == np.inf)
    if order is not None:
        assert is_cycle(network, order)
        assert network.lap_cost(order) == pytest.approx(least, rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(connected_networks(most=7, costs=True, least=3))
def test_the_exact_solver_equals_brute_force(network: Network) -> None:
    pytest.importorskip("ortools")
    circuit = solve_circuit(network.agents, network.edges, network.costs, None, 10.0, seed=0)
    least = least_cycle_cost(network)
    assert circuit.proven
    assert (circuit.order is None) == (least == np.inf)
    if circuit.order is not None:
        assert is_cycle(network, circuit.order)
        assert network.lap_cost(circuit.order) == pytest.approx(least, rel=1e-9)


def test_the_exact_solver_proves_that_petersen_and_tutte_have_no_cycle() -> None:
    pytest.importorskip("ortools")
    petersen = from_networkx(networkx.petersen_graph())
    circuit = solve_circuit(10, petersen.edges, None, None, 10.0, seed=0)
    assert circuit.order is None and circuit.proven
    search = find_cycle(from_networkx(networkx.tutte_graph()))
    assert search.cycle is None and search.proven
    assert "exact solver has ruled it out" in search.words


def test_costs_are_minimised_and_proven_by_the_solver() -> None:
    pytest.importorskip("ortools")
    network = random_costs(random_network(20, 0.4, seed=3), seed=3)
    search = find_cycle(network)
    assert is_cycle(network, search.cycle)
    assert search.proven and "proven the least possible" in search.words
    assert search.cost == pytest.approx(_least_by_subsets(network), rel=1e-9)


def test_without_the_solver_its_absence_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    none_found = find_cycle(from_networkx(networkx.tutte_graph()), time_limit=2.0)
    assert none_found.cycle is None and not none_found.proven
    assert "pip install 'roundelay[exact]'" in none_found.words
    network = random_costs(random_network(40, 0.3), seed=1)
    cheap = find_cycle(network)
    assert is_cycle(network, cheap.cycle) and not cheap.proven
    assert "pip install 'roundelay[exact]'" in cheap.words
    # Few agents and quick proofs need no solver.
    assert find_cycle(from_networkx(networkx.petersen_graph())).proven


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(8, 60), st.floats(0.15, 1.0))
def test_improvement_never_leaves_the_links_nor_costs_more(seed: int, agents: int, density: float) -> None:
    planted = random_network(agents, max(density, 2.2 / (agents - 1)), seed)
    network = random_costs(planted, seed)
    assert planted.planted_cycle is not None
    for lengths in (LinkLengths(network), lengths_of_links(network)):
        better = improve_round(planted.planted_cycle, lengths, time.process_time() + 10)
        assert is_cycle(network, better)
        assert better[0] == 0
        assert network.lap_cost(better) <= network.lap_cost(planted.planted_cycle) * (1 + 1e-12)


def test_improvement_comes_near_the_bound() -> None:
    planted = random_network(300, 0.1)
    network = random_costs(planted, seed=0)
    assert planted.planted_cycle is not None
    better = improve_round(planted.planted_cycle, lengths_of_links(network), time.process_time() + 20)
    two_cheapest = sum(np.sort(row[np.isfinite(row)])[:2].sum() for row in _table(network)) / 2
    # No cycle is below half of everyone's two cheapest links; a random one is four times that.
    assert network.lap_cost(better) < 1.3 * two_cheapest


def test_large_networks_start_from_their_cheap_links() -> None:
    network = random_costs(random_network(4000, 0.006), seed=0)
    search = find_cycle(network, time_limit=2.0)
    assert is_cycle(network, search.cycle)
    # A cycle that does not look at costs pays 0.6 a link.
    assert search.cost < 0.5 * 0.6 * network.agents


def test_points_in_the_plane_are_put_in_order() -> None:
    angles = np.random.default_rng(0).permutation(60) * (2 * np.pi / 60)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    table = np.linalg.norm(points[:, None] - points[None], axis=2)
    order = improve_round(np.arange(60), TableLengths(table), time.process_time() + 10)
    assert table[order, np.roll(order, -1)].sum() == pytest.approx(60 * 2 * np.sin(np.pi / 60), rel=1e-9)


def _table(network: Network) -> np.ndarray:
    table = np.full((network.agents, network.agents), np.inf)
    first, second = network.edges.T
    table[first, second] = table[second, first] = network.link_costs
    return table


def _least_by_subsets(network: Network) -> float:
    order = cheapest_round(_table(network))
    assert order is not None
    return network.lap_cost(order)
