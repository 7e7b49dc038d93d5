"""Closed walks that visit every agent, some more than once, for networks without a Hamiltonian cycle.

A closed walk leaves a block through a cut agent, and comes back through the same. So the shortest walk of a
network is made of the shortest walks of its blocks, one after another, and each block can be solved by
itself: a bridge is crossed both ways, which settles trees; a block with a Hamiltonian cycle takes that,
when hops are counted; any other is a travelling salesman's round on the lengths of the shortest paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network
from roundelay.networks.network_checks import checked_time_limit
from roundelay.networks.tours.blocks import Block, block_network, find_blocks, two_sides
from roundelay.networks.tours.exact import MOST_PLACES, cheapest_round, solve_circuit
from roundelay.networks.tours.hamiltonian import CycleSearch, find_cycle
from roundelay.networks.tours.improvement import TableLengths, improve_round
from roundelay.networks.tours.rotation import find_long_path

MOST_FOR_SOLVER = 60
"""Agents of a block up to which the exact solver is asked."""

MOST_FOR_PATHS = 1000
"""The table of shortest paths grows with the square of the block; beyond, walks with detours have to do."""


@dataclass(frozen=True, eq=False)
class CoveringWalk:
    """A closed walk that visits all agents, from agent 0; `proven` that none costs less."""

    order: NDArray[np.int64]
    proven: bool
    cost: float


def covering_walk(
    network: Network, seed: int = 0, time_limit: float = 10.0, searched: CycleSearch | None = None
) -> CoveringWalk:
    """Return the shortest closed walk found that visits all agents, in link costs or hops.

    `searched` is what a search for a Hamiltonian cycle of this network came to, where there has been one.
    """
    deadline = monotonic() + checked_time_limit(time_limit)
    blocks = find_blocks(network)
    sizes_left = sum(len(block.members) for block in blocks if len(block.members) > 2)
    walks, proven = [], True
    for block in blocks:
        size = len(block.members)
        if size == 2:
            walks.append(block.members)
            continue
        share = max(deadline - monotonic(), 0.0) * size / sizes_left
        sizes_left -= size
        walk = _block_walk(network, block, seed, share, searched if len(blocks) == 1 else None)
        walks.append(block.members[walk.order])
        proven = proven and walk.proven
    order = _strung_together(walks, network.agents)
    return CoveringWalk(order, proven, network.lap_cost(order))


def _strung_together(walks: list[NDArray[np.int64]], agents: int) -> NDArray[np.int64]:
    """Return one closed walk from agent 0 made of closed walks that share cut agents.

    `networkx.eulerian_circuit` takes three times as long, and the same links in another order, which would change runs.
    """
    walks_at: list[list[int]] = [[] for _ in range(agents)]
    for number, walk in enumerate(walks):
        for agent in set(walk.tolist()):
            walks_at[agent].append(number)
    taken = [False] * len(walks)
    order: list[int] = []
    ahead = [0]  # what is still to be met, the next one last
    while ahead:
        agent = ahead.pop()
        order.append(agent)
        for number in walks_at[agent]:
            if not taken[number]:
                # Go round this block first and come back here; it ends where it began.
                taken[number] = True
                walk = walks[number]
                start = int(np.argmax(walk == agent))
                ahead.append(agent)
                ahead.extend(np.roll(walk, -start)[:0:-1].tolist())
                break
    # The walk has come back to agent 0, which the next lap begins with.
    return np.array(order[:-1] if len(order) > 1 else order, dtype=np.int64)


def _block_walk(
    network: Network, block: Block, seed: int, time_limit: float, searched: CycleSearch | None
) -> CoveringWalk:
    deadline = monotonic() + time_limit
    part = block_network(network, block)
    cycle = searched if searched is not None else find_cycle(part, seed, time_limit / 2)
    if cycle.cycle is not None and part.all_links_alike:
        return CoveringWalk(cycle.cycle, proven=True, cost=cycle.cost)
    if part.agents > MOST_FOR_PATHS:
        walk = min(_rough_walks(part, cycle, seed, deadline), key=part.lap_cost)
        proven = part.lap_cost(walk) <= _least_possible(part, cycle)
        return CoveringWalk(walk, proven, part.lap_cost(walk))
    return _table_walk(part, cycle, seed, deadline)


def _table_walk(part: Network, cycle: CycleSearch, seed: int, deadline: float) -> CoveringWalk:
    """Solve a block on the table of its shortest paths."""
    from scipy.sparse import csgraph

    table, previous = csgraph.shortest_path(part.cost_matrix(), directed=False, return_predecessors=True)
    best, proven = cheapest_round(table) if part.agents <= MOST_PLACES else None, True
    if best is None:
        best = _improved_round(part, table, cycle, seed, deadline)
        proven = _round_length(table, best) <= _least_possible(part, cycle)
        if not proven and part.agents <= MOST_FOR_SOLVER:
            pairs = np.column_stack(np.triu_indices(part.agents, 1))
            lengths = table[pairs[:, 0], pairs[:, 1]]
            circuit = solve_circuit(part.agents, pairs, lengths, best, deadline - monotonic(), seed)
            if circuit.order is not None and _round_length(table, circuit.order) <= _round_length(table, best):
                best = circuit.order
            proven = circuit.proven
    walk = _along_links(best, previous)
    return CoveringWalk(walk, proven, part.lap_cost(walk))


def _improved_round(
    part: Network, table: NDArray[np.float64], cycle: CycleSearch, seed: int, deadline: float
) -> NDArray[np.int64]:
    rounds = [_first_meetings(walk) for walk in _rough_walks(part, cycle, seed, deadline)]
    rounds.append(_nearest_first(table))
    lengths = TableLengths(table)
    improved = [improve_round(order, lengths, deadline) for order in rounds]
    return min(improved, key=lambda order: _round_length(table, order))


def _rough_walks(part: Network, cycle: CycleSearch, seed: int, deadline: float) -> Iterable[NDArray[np.int64]]:
    """Yield walks that are quick to find: there and back along a tree; round a long path, with detours."""
    yield walk_with_detours(part, np.zeros(1, dtype=np.int64))
    if cycle.cycle is not None:
        yield cycle.cycle
        return
    path = find_long_path(part, seed, monotonic() + max(deadline - monotonic(), 0.0) / 4)
    backbone = path.order
    if not path.closed and len(backbone) > 1:
        from scipy.sparse import csgraph

        _, previous = csgraph.dijkstra(part.cost_matrix(), indices=backbone[0], return_predecessors=True)
        backbone = np.concatenate([backbone, _steps_back(previous, int(backbone[0]), int(backbone[-1]))[1:-1]])
    yield walk_with_detours(part, backbone)


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


def _least_possible(part: Network, cycle: CycleSearch) -> float:
    """Return a cost that no closed walk of a block with three agents or more can be below."""
    if not part.all_links_alike:
        return float(part.agents * part.link_costs.min())
    hops = part.agents + (cycle.cycle is None and cycle.proven)
    side = two_sides(part)
    if side is not None:
        # A walk that keeps changing sides has an even length, and meets the larger side every second hop.
        hops = max(hops + hops % 2, 2 * int(max(side.sum(), (~side).sum())))
    return float(hops * part.link_costs[0]) * (1 + 1e-12)


def _round_length(table: NDArray[np.float64], order: NDArray[np.int64]) -> float:
    return float(table[order, np.roll(order, -1)].sum())


def _first_meetings(walk: NDArray[np.int64]) -> NDArray[np.int64]:
    _, places = np.unique(walk, return_index=True)
    return walk[np.sort(places)]


def _nearest_first(table: NDArray[np.float64]) -> NDArray[np.int64]:
    left = np.ones(len(table), dtype=bool)
    order = np.zeros(len(table), dtype=np.int64)
    left[0] = False
    for place in range(1, len(table)):
        order[place] = np.argmin(np.where(left, table[order[place - 1]], np.inf))
        left[order[place]] = False
    return order


def _along_links(order: NDArray[np.int64], previous: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the walk that takes the shortest path from each place of a round to the next."""
    pairs = zip(order.tolist(), np.roll(order, -1).tolist(), strict=True)
    steps = [_steps_back(previous[head], head, tail)[:-1] for tail, head in pairs]
    return np.concatenate(steps)


def _steps_back(previous: NDArray[np.int32], source: int, target: int) -> NDArray[np.int64]:
    """Return the shortest path from `target` back to `source`, both included."""
    steps = [target]
    while steps[-1] != source:
        steps.append(int(previous[steps[-1]]))
    return np.array(steps, dtype=np.int64)
