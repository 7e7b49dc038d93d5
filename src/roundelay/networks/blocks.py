"""The blocks of a network: its largest parts that no single agent holds together.

Two blocks share one agent at most, a cut agent. A bridge is a block of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network


@dataclass(frozen=True, eq=False)
class Block:
    """Agents, sorted, and the rows of `network.edges` between them that belong to this block."""

    members: NDArray[np.int64]
    links: NDArray[np.int64]


def find_blocks(network: Network) -> list[Block]:
    """Return the blocks of a network; every link belongs to exactly one.

    A depth-first tree has links between an agent and its ancestors only. The subtree below a child hangs on
    the parent alone, and starts a block, when none of its links reaches above the parent.
    """
    if network.agents == 1:
        return []
    from scipy.sparse import csgraph

    order, parents = csgraph.depth_first_order(network.cost_matrix(), 0)
    rank = np.empty(network.agents, dtype=np.int64)
    rank[order] = np.arange(network.agents)
    parents[0] = 0  # the root has none, and is never asked for it
    parent_rank = rank[parents[order]].tolist()
    highest = np.minimum.reduceat(rank[network.neighbours], network.neighbour_starts[:-1])[order].tolist()
    for place in range(network.agents - 1, 0, -1):
        above = parent_rank[place]
        highest[above] = min(highest[above], highest[place])
    block_at = [-1] * network.agents
    tops: list[int] = []
    for place in range(1, network.agents):
        above = parent_rank[place]
        if highest[place] >= above:
            block_at[place] = len(tops)
            tops.append(above)
        else:
            block_at[place] = block_at[above]
    block_of = np.array(block_at)[rank]
    ends = rank[network.edges]
    lower_end = np.where(ends[:, 0] > ends[:, 1], network.edges[:, 0], network.edges[:, 1])
    links = _grouped(block_of[lower_end], len(tops))
    members = _grouped(block_of, len(tops), skip=1)
    return [
        Block(np.sort(np.append(below, order[top])), own) for below, top, own in zip(members, tops, links, strict=True)
    ]


def block_network(network: Network, block: Block) -> Network:
    """Return a block as a network of its own, its agents numbered in the order of `block.members`."""
    edges = np.searchsorted(block.members, network.edges[block.links])
    return Network(len(block.members), edges, None if network.costs is None else network.costs[block.links])


def _grouped(groups: NDArray[np.int64], count: int, skip: int = 0) -> list[NDArray[np.int64]]:
    """Return the places of each group; `skip` leaves out places without one, of group -1."""
    places = np.argsort(groups, kind="stable")[skip:]
    return np.split(places, np.cumsum(np.bincount(groups[places], minlength=count))[:-1])
