"""Quick proofs that a network has no Hamiltonian cycle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.blocks import find_blocks
from roundelay.networks.graph import Network


def why_no_cycle(network: Network) -> str | None:
    """Return why there is no Hamiltonian cycle, as a clause; None where no quick reason is found."""
    if network.agents < 3:
        return None
    return _single_link(network) or _cut_agent(network) or _crowded_agent(network) or _unequal_sides(network)


def two_sides(network: Network) -> NDArray[np.bool_] | None:
    """Return on which of two sides each agent is, if all links go between the sides; else None."""
    from scipy.sparse import csgraph

    hops = csgraph.dijkstra(network.cost_matrix(), indices=[0], unweighted=True)[0]
    side = hops.astype(np.int64) % 2 == 1
    return side if np.all(side[network.edges[:, 0]] != side[network.edges[:, 1]]) else None


def _single_link(network: Network) -> str | None:
    agent = int(np.argmin(network.degrees))
    return f"agent {network.name_of(agent)} has a single link" if network.degrees[agent] == 1 else None


def _cut_agent(network: Network) -> str | None:
    blocks = find_blocks(network)
    if len(blocks) == 1:
        return None
    memberships = np.bincount(np.concatenate([block.members for block in blocks]), minlength=network.agents)
    return f"agent {network.name_of(int(np.argmax(memberships)))} alone holds parts of the network together"


def _crowded_agent(network: Network) -> str | None:
    """A cycle takes both links of an agent that has two; no one can be the neighbour of three such."""
    forced = np.add.reduceat(network.degrees[network.neighbours] == 2, network.neighbour_starts[:-1], dtype=np.int64)
    agent = int(np.argmax(forced))
    if forced[agent] < 3:
        return None
    return f"{forced[agent]} neighbours of agent {network.name_of(agent)} have two links only, and all need it"


def _unequal_sides(network: Network) -> str | None:
    side = two_sides(network)
    if side is None or 2 * side.sum() == len(side):
        return None
    return f"all links go between a side of {int(side.sum())} agents and one of {int((~side).sum())}"
