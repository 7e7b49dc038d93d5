"""Networks at random, of a well-known shape, and from networkx."""

from __future__ import annotations

import re

import networkx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.networks import (
    Network,
    barbell,
    complete,
    from_networkx,
    grid,
    path,
    random_network,
    ring,
    star,
)


@pytest.mark.parametrize(
    ("agents", "density", "links"), [(100, 0.3, 1485), (100, 0.5, 2475), (200, 0.3, 5970), (50, 1.0, 1225)]
)
def test_the_number_of_links_is_exact(agents: int, density: float, links: int) -> None:
    for seed in range(3):
        assert len(random_network(agents, density, seed).edges) == links


@settings(deadline=None, max_examples=80)
@given(st.integers(3, 40), st.floats(0, 1), st.integers(0, 2**40))
def test_random_networks_hold_their_cycle(agents: int, density: float, seed: int) -> None:
    pairs = agents * (agents - 1) // 2
    if round(density * pairs) < agents:
        with pytest.raises(ValueError, match="smallest density"):
            random_network(agents, density, seed)
        return
    network = random_network(agents, density, seed)
    assert len(network.edges) == round(density * pairs)
    cycle = network.planted_cycle
    assert cycle is not None
    assert cycle[0] == 0
    assert sorted(cycle.tolist()) == list(range(agents))
    assert all(network.has_edge(i, j) for i, j in zip(cycle, np.roll(cycle, -1), strict=True))


def test_the_cycle_is_the_same_for_every_density_but_not_for_every_seed() -> None:
    cycles = [random_network(60, density, seed=4).planted_cycle for density in (0.04, 0.1, 0.5, 1.0)]
    for cycle in cycles:
        assert np.array_equal(cycle, cycles[0])  # type: ignore[arg-type]
    assert not np.array_equal(random_network(60, 0.1, seed=5).planted_cycle, cycles[0])  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_network() -> None:
    assert np.array_equal(random_network(60, 0.2, 3).edges, random_network(60, 0.2, 3).edges)
    assert not np.array_equal(random_network(60, 0.2, 3).edges, random_network(60, 0.2, 4).edges)


def test_pairs_off_the_cycle_are_all_equally_likely() -> None:
    seen = np.zeros((6, 6))
    repeats = 3000
    for seed in range(repeats):
        edges = random_network(6, 9 / 15, seed).edges
        seen[edges[:, 0], edges[:, 1]] += 1
    shares = seen[np.triu_indices(6, 1)] / repeats
    # 9 of 15 pairs each time; four standard deviations of a share of 0.6 in 3000.
    assert np.all(np.abs(shares - 0.6) < 4 * np.sqrt(0.6 * 0.4 / repeats))


@pytest.mark.parametrize("agents", [2, 3, 4, 5, 9, 10, 11, 57, 100, 1001, 54_321])
def test_a_refused_density_names_the_smallest_that_works(agents: int) -> None:
    with pytest.raises(ValueError, match="smallest density") as refused:
        random_network(agents, 0.0)
    named = re.search(r"that works is ([0-9.]+)\.$", str(refused.value))
    assert named is not None
    density = float(named.group(1))
    assert random_network(agents, density).planted_cycle is not None
    with pytest.raises(ValueError, match="smallest density"):
        random_network(agents, 0.998 * density)


@pytest.mark.parametrize("density", [-0.1, 1.1, float("nan")])
def test_a_density_is_a_share(density: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        random_network(10, density)


def test_one_and_two_agents() -> None:
    assert len(random_network(1, 0.5).edges) == 0
    assert random_network(2, 1.0).edges.tolist() == [[0, 1]]
    assert [len(ring(agents).edges) for agents in (1, 2, 3, 4)] == [0, 1, 3, 4]


def test_a_dense_network_of_2000() -> None:
    network = random_network(2000, 0.9, 1)
    assert len(network.edges) == round(0.9 * 2000 * 1999 / 2)


@pytest.mark.parametrize("agents", [1, 2, 3, 7])
def test_shapes_are_those_of_networkx(agents: int) -> None:
    assert _links(complete(agents)) == _links_of_graph(networkx.complete_graph(agents))
    assert _links(path(agents)) == _links_of_graph(networkx.path_graph(agents))
    assert _links(star(agents)) == _links_of_graph(networkx.star_graph(agents - 1))
    if agents > 2:
        assert _links(ring(agents)) == _links_of_graph(networkx.cycle_graph(agents))


@pytest.mark.parametrize(("size", "bridge"), [(2, 0), (3, 0), (3, 1), (5, 4)])
def test_barbell_is_that_of_networkx(size: int, bridge: int) -> None:
    assert _links(barbell(size, bridge)) == _links_of_graph(networkx.barbell_graph(size, bridge))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 2), (2, 1), (1, 5), (2, 2), (3, 4), (4, 3), (3, 3), (6, 6)])
def test_grid(rows: int, columns: int) -> None:
    network = grid(rows, columns)
    graph = networkx.grid_2d_graph(rows, columns)
    assert _links(network) == {(r * columns + c, s * columns + d) for (r, c), (s, d) in graph.edges}
    has_cycle = rows * columns <= 2 or (min(rows, columns) >= 2 and rows * columns % 2 == 0)
    assert (network.planted_cycle is not None) == has_cycle


def test_from_networkx_keeps_names_and_costs() -> None:
    graph = networkx.Graph()
    graph.add_edge("c", "a", price=2)
    graph.add_edge("a", "b", price=3.5)
    network = from_networkx(graph, cost="price")
    assert network.labels == ("c", "a", "b")
    assert network.edges.tolist() == [[0, 1], [1, 2]]
    assert network.costs is not None
    assert network.costs.tolist() == [2.0, 3.5]
    back = network.to_networkx()
    assert {frozenset(pair) for pair in back.edges} == {frozenset("ca"), frozenset("ab")}
    assert back["a"]["b"]["cost"] == 3.5
    assert "agent c has a single link" in network.tour().words


def test_from_networkx_refuses_in_words() -> None:
    loop = networkx.path_graph(3)
    loop.add_edge(1, 1)
    half_priced = networkx.path_graph(3)
    half_priced[0][1]["price"] = 1.0
    refusals = [
        (networkx.DiGraph([(0, 1)]), None, "directed"),
        (networkx.MultiGraph([(0, 1)]), None, "multigraph"),
        (loop, None, "links node 1 to itself"),
        (networkx.Graph(), None, "no nodes"),
        (half_priced, "price", "between 1 and 2 has no attribute 'price'"),
        (networkx.Graph([("a", "b"), ("c", "d")]), None, r"\{a, b\} and \{c, d\}"),
    ]
    for graph, cost, message in refusals:
        with pytest.raises(ValueError, match=message):
            from_networkx(graph, cost=cost)


def _links(network: Network) -> set[tuple[int, int]]:
    return {(i, j) for i, j in network.edges.tolist()}


def _links_of_graph(graph: networkx.Graph) -> set[tuple[int, int]]:  # type: ignore[type-arg]
    return {(min(pair), max(pair)) for pair in graph.edges}
