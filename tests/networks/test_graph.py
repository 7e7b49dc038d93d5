"""The network itself: what it accepts, what it refuses, and what it knows."""

from __future__ import annotations

import dataclasses
import pickle
import time

import networkx
import numpy as np
import pytest
from hypothesis import given, settings

from roundelay.networks import Network, complete, path, random_network, ring, star

from .brute_force import connected_networks


def test_links_are_put_in_order_and_their_costs_with_them() -> None:
    network = Network(4, np.array([[3, 2], [1, 0], [2, 1]]), costs=np.array([30.0, 10.0, 20.0]))
    assert network.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert network.costs is not None
    assert network.costs.tolist() == [10.0, 20.0, 30.0]


def test_the_arrays_are_read_only_copies() -> None:
    edges, costs, cycle = np.array([[0, 1], [1, 2], [0, 2]]), np.ones(3), np.arange(3)
    network = Network(3, edges, costs, cycle)
    edges[:], costs[:], cycle[:] = 7, 7, 7
    assert network.edges.max() == 2
    assert network.costs is not None and network.planted_cycle is not None
    assert network.costs.max() == 1 and network.planted_cycle.max() == 2
    everything = (network.edges, network.costs, network.planted_cycle, network.neighbours, network.degrees)
    for array in everything:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_planted_cycle_is_kept_from_agent_0() -> None:
    network = dataclasses.replace(ring(5), planted_cycle=np.array([3, 2, 1, 0, 4]))
    assert network.planted_cycle is not None
    assert network.planted_cycle.tolist() == [0, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": 0, "edges": []}, "at least one agent"),
        ({"agents": 2, "edges": [[0, 2]]}, r"\(0, 2\) in row 0 .* does not exist.*agents 0 to 1"),
        ({"agents": 2, "edges": [[0, 1], [-1, 1]]}, r"\(-1, 1\) in row 1"),
        ({"agents": 2, "edges": [[0, 1], [1, 1]]}, r"\(1, 1\) in row 1 joins an agent to itself"),
        ({"agents": 2, "edges": [[0, 1], [1, 0]]}, r"\(0, 1\) is given more than once"),
        ({"agents": 2, "edges": [0, 1]}, r"shape \(links, 2\)"),
        ({"agents": 2, "edges": [[0, 1]], "costs": [1.0, 2.0]}, "one cost for each of the 1 links"),
        ({"agents": 2, "edges": [[0, 1]], "costs": [0.0]}, "row 0 is 0, and costs must be positive"),
        ({"agents": 2, "edges": [[0, 1]], "costs": [np.inf]}, "finite"),
        ({"agents": 2, "edges": [[0, 1]], "costs": [np.nan]}, "finite"),
        ({"agents": 2, "edges": [[0, 1]], "labels": ("a",)}, "1 labels for 2 agents"),
        ({"agents": 2, "edges": [[0, 1]], "labels": ("a", "a")}, "'a' is given to more than one"),
        (
            {"agents": 3, "edges": [[0, 1], [1, 2]], "planted_cycle": [0, 1, 2]},
            "agent 2 to agent 0, which are not",
        ),
        (
            {"agents": 3, "edges": [[0, 1], [1, 2]], "planted_cycle": [0, 1, 1]},
            "each of the 3 agents exactly once",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Network(**arguments)  # type: ignore[arg-type]


def test_links_between_fractions_are_refused() -> None:
    with pytest.raises(TypeError, match="whole numbers"):
        Network(2, np.array([[0.0, 1.0]]))  # type: ignore[arg-type]


def test_a_disconnected_network_names_its_parts() -> None:
    edges = np.array([[0, 1], [1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"3 parts, \{0, 1, 2\}, \{3, 4\} and \{5\}\. Add links"):
        Network(6, edges)
    with pytest.raises(ValueError, match=r"\{a, b, c\}, \{d, e\} and \{f\}"):
        Network(6, edges, labels=tuple("abcdef"))


def test_many_parts_are_named_in_short() -> None:
    with pytest.raises(ValueError, match="1000 parts") as many_parts:
        Network(1000, np.empty((0, 2), dtype=np.int64))
    assert "996 more" in str(many_parts.value)
    with pytest.raises(ValueError, match="2 parts") as large_parts:
        Network(1000, np.concatenate([ring(500).edges, ring(500).edges + 500]))
    assert "492 more" in str(large_parts.value)
    assert max(len(str(many_parts.value)), len(str(large_parts.value))) < 300


@settings(deadline=None, max_examples=60)
@given(connected_networks(most=9))
def test_neighbours_degrees_and_links_agree(network: Network) -> None:
    graph = network.to_networkx()
    assert network.neighbour_starts[0] == 0
    assert network.neighbour_starts[-1] == len(network.neighbours) == 2 * len(network.edges)
    for agent in range(network.agents):
        assert network.neighbours_of(agent).tolist() == sorted(graph[agent])
        assert network.degrees[agent] == graph.degree[agent]
        links = network.neighbour_links[network.neighbour_starts[agent] : network.neighbour_starts[agent + 1]]
        ends = network.edges[links]
        assert np.all((ends == agent).any(axis=1))
        assert ends.sum(axis=1).tolist() == (network.neighbours_of(agent) + agent).tolist()
        for other in range(network.agents):
            assert network.has_edge(agent, other) == graph.has_edge(agent, other)


def test_agents_that_do_not_exist_have_no_links() -> None:
    network = path(3)
    # 0 * 3 + 5 is also the number of the link (1, 2).
    assert not network.has_edge(0, 5)
    assert not network.has_edge(-1, 1)
    for agent in (-1, 3):
        with pytest.raises(IndexError, match="no agent"):
            network.neighbours_of(agent)


@settings(deadline=None, max_examples=40)
@given(connected_networks(most=9))
def test_metropolis_weights(network: Network) -> None:
    weights = network.metropolis_weights().toarray()
    assert np.array_equal(weights, weights.T)
    assert np.allclose(weights.sum(axis=1), 1, atol=1e-14)
    assert np.all(np.diag(weights) > 0)
    for i, j in network.edges:
        assert weights[i, j] == 1 / (1 + max(network.degrees[i], network.degrees[j]))
    assert np.count_nonzero(weights) == network.agents + 2 * len(network.edges)


@settings(deadline=None, max_examples=30)
@given(connected_networks(most=9, costs=True))
def test_cost_matrix_is_that_of_networkx(network: Network) -> None:
    expected = networkx.to_numpy_array(network.to_networkx(), weight="cost")
    assert np.array_equal(network.cost_matrix().toarray(), expected)


def test_lap_cost() -> None:
    network = Network(3, np.array([[0, 1], [1, 2]]), np.array([2.0, 5.0]))
    assert network.lap_cost(np.array([0, 1, 2, 1])) == 14.0
    assert network.lap_cost(np.array([0, 1, 2])) == np.inf
    assert network.lap_cost(np.array([0])) == 0.0


def test_the_tour_is_computed_once_and_kept() -> None:
    network = star(5)
    assert network.tour() is network.tour(time_limit=1.0)
    with pytest.raises(ValueError, match="time limit"):
        star(5).tour(time_limit=-1.0)


def test_a_network_can_be_sent_to_another_process() -> None:
    network = random_network(20, 0.3)
    network.tour()
    copy = pickle.loads(pickle.dumps(network))
    assert np.array_equal(copy.edges, network.edges)
    assert np.array_equal(copy.tour().order, network.tour().order)


def test_repr_is_short() -> None:
    assert repr(random_network(100, 0.3)) == "Network(100 agents, 1485 links, planted cycle)"
    assert len(repr(complete(300).tour())) < 100


def test_a_large_network_is_made_in_seconds() -> None:
    started = time.process_time()
    network = random_network(100_000, 2e-4)
    assert len(network.edges) == round(2e-4 * 100_000 * 99_999 / 2)
    assert network.degrees.sum() == len(network.neighbours)
    assert time.process_time() - started < 20
