"""Slow and plain answers to compare with, and random networks to compare them on."""

from __future__ import annotations

from itertools import permutations

import networkx
import numpy as np
from hypothesis import strategies as st

from roundelay.networks import Network


def least_cycle_cost(network: Network) -> float:
    """The cost of the cheapest Hamiltonian cycle, by trying all orders; infinite when there is none."""
    orders = (np.array([0, *rest]) for rest in permutations(range(1, network.agents)))
    return min(network.lap_cost(order) for order in orders)


def least_walk_cost(network: Network) -> float:
    """The cost of the cheapest closed walk through everyone, by trying all orders on the shortest paths."""
    graph = network.to_networkx()
    weight = None if network.costs is None else "cost"
    lengths = dict(networkx.all_pairs_dijkstra_path_length(graph, weight=weight or (lambda *_: 1)))
    return min(
        sum(lengths[i][j] for i, j in zip((0, *rest), (*rest, 0), strict=True))
        for rest in permutations(range(1, network.agents))
    )


@st.composite
def connected_networks(draw: st.DrawFn, most: int = 7, costs: bool = False, least: int = 1) -> Network:
    """Networks made of a random tree and any further links."""
    agents = draw(st.integers(least, most))
    parents = [draw(st.integers(0, agent - 1)) for agent in range(1, agents)]
    links = {(parent, agent) for agent, parent in enumerate(parents, start=1)}
    others = [(i, j) for j in range(agents) for i in range(j) if (i, j) not in links]
    if others:
        links |= draw(st.sets(st.sampled_from(others)))
    edges = np.array(draw(st.permutations(sorted(links))), dtype=np.int64).reshape(-1, 2)
    if not costs:
        return Network(agents, edges)
    each = st.integers(1, 9).map(float) | st.floats(0.1, 10.0)
    prices = draw(st.lists(each, min_size=len(edges), max_size=len(edges)))
    return Network(agents, edges, np.array(prices))
