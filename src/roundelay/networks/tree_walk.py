"""Closed walks along a tree: every link of it there and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network


def walk_with_detours(network: Network, backbone: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a closed walk that goes along a given one, and visits everyone else by detours there and back.

    The detours follow the cheapest trees that hang on `backbone`. With a backbone of one agent, the walk
    goes round a cheapest spanning tree: 2(N-1) hops.
    """
    children = _hanging_trees(network, backbone)
    order: list[int] = []
    for start in backbone.tolist():
        ahead = [start]
        while ahead:
            agent = ahead.pop()
            order.append(agent)
            if children[agent]:
                child = children[agent].pop()
                ahead.append(agent)
                ahead.append(child)
    # A single start is come back to, and the lap closes by itself.
    return np.array(order[:-1] if len(backbone) == 1 and len(order) > 1 else order, dtype=np.int64)


def _hanging_trees(network: Network, backbone: NDArray[np.int64]) -> list[list[int]]:
    """Return the agents one step further out from each, away from the backbone."""
    matrix = network.cost_matrix()
    on_backbone = np.zeros(network.agents, dtype=bool)
    on_backbone[backbone] = True
    tails = np.repeat(np.arange(network.agents), network.degrees)
    # Links within the backbone at next to no cost: the cheapest tree then holds it together before all else.
    within = on_backbone[tails] & on_backbone[network.neighbours]
    matrix.data = np.where(within, 1e-9 * network.link_costs.min(initial=1.0), matrix.data)
    from scipy import sparse
    from scipy.sparse import csgraph

    tree = csgraph.minimum_spanning_tree(matrix)
    both_ways = sparse.csr_array(tree + tree.T)
    order, parents = csgraph.breadth_first_order(both_ways, int(backbone[0]))
    children: list[list[int]] = [[] for _ in range(network.agents)]
    for agent in order.tolist():
        if not on_backbone[agent]:
            children[parents[agent]].append(agent)
    return children
