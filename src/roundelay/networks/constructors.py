"""Ways to make a network: at random, of a well-known shape, or from networkx.

The shapes are a few lines of arrays: networkx's take 12 to 30 times as long (a ring of 100,000 agents 0.3 s, not 0.02 s).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network
from roundelay.networks.network_checks import checked_agents

if TYPE_CHECKING:
    import networkx


def random_network(agents: int, density: float, seed: int = 0) -> Network:
    """Return a random network that has a Hamiltonian cycle.

    `density` is the share of all N(N-1)/2 pairs that are linked: exactly round(density·N(N-1)/2) links. The
    links of a random cycle are put in first, the others drawn uniformly among the pairs that remain. The
    cycle depends on `agents` and `seed` alone, so that networks of different densities share it.
    """
    agents = checked_agents(agents)
    pairs = agents * (agents - 1) // 2
    links = _links_for_density(agents, density)
    cycle = _random_cycle(agents, seed)
    planted = np.unique(_pair_numbers(cycle, np.roll(cycle, -1))) if agents > 1 else np.empty(0, dtype=np.int64)
    # Drawn from a stream of its own, so that what the filling uses up can't touch the cycle.
    drawn = _generator(agents, seed, stream=1).choice(
        pairs - len(planted), size=links - len(planted), replace=False, shuffle=False
    )
    # The k-th free pair is found by stepping over the planted ones before it.
    others = drawn + np.searchsorted(planted - np.arange(len(planted)), drawn, side="right")
    return Network(agents, _pairs_numbered(np.concatenate([planted, others])), planted_cycle=cycle)


def ring(agents: int) -> Network:
    """Return agents 0, 1, …, N-1 in a ring; one or two agents work as well."""
    order = np.arange(checked_agents(agents))
    links = np.column_stack([order, np.roll(order, -1)])
    return Network(agents, links[: {1: 0, 2: 1}.get(agents, agents)], planted_cycle=order)


def complete(agents: int) -> Network:
    """Return the network in which everyone is linked to everyone."""
    agents = checked_agents(agents)
    return Network(agents, np.column_stack(np.triu_indices(agents, 1)), planted_cycle=np.arange(agents))


def path(agents: int) -> Network:
    """Return agents 0, 1, …, N-1 in a line."""
    order = np.arange(checked_agents(agents))
    return Network(agents, np.column_stack([order[:-1], order[1:]]))


def star(agents: int) -> Network:
    """Return agent 0 in the middle, linked to all others, which have no other links."""
    others = np.arange(1, checked_agents(agents))
    return Network(agents, np.column_stack([np.zeros_like(others), others]))


def grid(rows: int, columns: int) -> Network:
    """Return agents in rows and columns, numbered row by row, with links along both."""
    cells = np.arange(checked_agents(rows) * checked_agents(columns)).reshape(rows, columns)
    across = np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()])
    down = np.column_stack([cells[:-1].ravel(), cells[1:].ravel()])
    return Network(cells.size, np.concatenate([across, down]), planted_cycle=_round_the_grid(cells))


def barbell(size: int, bridge: int) -> Network:
    """Return two complete networks of `size` agents, joined by a line with `bridge` agents on it."""
    size = checked_agents(size)
    if bridge < 0:
        raise ValueError(f"The bridge of a barbell has none or more agents on it, and {bridge} were asked for.")
    agents = 2 * size + bridge
    one_end = np.column_stack(np.triu_indices(size, 1))
    line = np.arange(size - 1, size + bridge + 1)
    links = [one_end, np.column_stack([line[:-1], line[1:]]), one_end + size + bridge]
    return Network(agents, np.concatenate(links))


def from_networkx(graph: networkx.Graph[Any], cost: str | None = None) -> Network:
    """Return the network of a networkx graph, its nodes numbered in the graph's order and kept as labels.

    `cost` is the name of the edge attribute that says what a link costs; without it all links are alike.
    """
    if not hasattr(graph, "is_directed"):
        raise ValueError(
            f"That is a {type(graph).__name__} and not a graph of networkx: make one, for instance by "
            "networkx.from_numpy_array(matrix), or give the links to roundelay.Network(agents, links)."
        )
    if graph.is_directed():
        raise ValueError("The graph is directed, and links go both ways here. Pass graph.to_undirected() instead.")
    if graph.is_multigraph():
        raise ValueError(
            "The graph is a multigraph, and two agents share one link at most here. "
            "Pass networkx.Graph(graph) instead, after choosing which of several links to keep."
        )
    if graph.number_of_nodes() == 0:
        raise ValueError("The graph has no nodes, and a network needs at least one agent.")
    import networkx

    loops = list(networkx.nodes_with_selfloops(graph))
    if loops:
        raise ValueError(
            f"The graph links node {loops[0]!r} to itself. Remove such links first: "
            "graph.remove_edges_from(list(networkx.selfloop_edges(graph)))."
        )
    labels = tuple(graph.nodes)
    number = {label: place for place, label in enumerate(labels)}
    links = np.array([(number[i], number[j]) for i, j in graph.edges], dtype=np.int64).reshape(-1, 2)
    return Network(len(labels), links, costs=_costs_named(graph, cost), labels=labels)


def _costs_named(graph: networkx.Graph[Any], cost: str | None) -> NDArray[np.float64] | None:
    if cost is None:
        return None
    costs = []
    for i, j, attributes in graph.edges(data=True):
        if cost not in attributes:
            raise ValueError(
                f"The link between {i!r} and {j!r} has no attribute {cost!r}. Give every link one, "
                "or leave `cost` out to count hops."
            )
        costs.append(float(attributes[cost]))
    return np.array(costs, dtype=np.float64)


def _links_for_density(agents: int, density: float) -> int:
    if not 0 <= density <= 1:
        raise ValueError(f"The density is {density:g}, and must lie between 0 and 1: the share of pairs to link.")
    pairs = agents * (agents - 1) // 2
    needed = {1: 0, 2: 1}.get(agents, agents)
    links = round(density * pairs)
    if links < needed:
        raise ValueError(
            f"A density of {density:g} gives {links} of the {needed} links that a cycle through {agents} "
            f"agents takes. The smallest density that works is {_smallest_density(needed, pairs)}."
        )
    return links


def _smallest_density(needed: int, pairs: int) -> str:
    """Return the smallest density of four digits whose number of links rounds to what is needed."""
    digits = 3 - math.floor(math.log10((needed - 0.5) / pairs))
    last_digit = math.floor((needed - 0.5) / pairs * 10**digits)
    while round(float(f"{last_digit}e-{digits}") * pairs) < needed:
        last_digit += 1
    return f"{float(f'{last_digit}e-{digits}'):.{digits}f}".rstrip("0")


def _random_cycle(agents: int, seed: int) -> NDArray[np.int64]:
    others = _generator(agents, seed, stream=0).permutation(np.arange(1, agents, dtype=np.int64))
    return np.concatenate([np.zeros(1, dtype=np.int64), others])


def _generator(agents: int, seed: int, stream: int) -> np.random.Generator:
    if seed < 0:
        raise ValueError(f"The seed is {seed}, and must be zero or more.")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, agents, stream])))


def _pair_numbers(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the pairs i < j as j(j-1)/2 + i: 01, 02, 12, 03, …"""
    low, high = np.minimum(first, second), np.maximum(first, second)
    numbers: NDArray[np.int64] = high * (high - 1) // 2 + low
    return numbers


def _pairs_numbered(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs with these numbers, one a row."""
    high = np.floor((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    # The square root may be off by one in the last place.
    high -= high * (high - 1) // 2 > numbers
    high += high * (high + 1) // 2 <= numbers
    return np.column_stack([numbers - high * (high - 1) // 2, high])


def _round_the_grid(cells: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the cycle that winds through all columns but the first, and comes back along it, if it can."""
    if min(cells.shape) < 2:
        return np.arange(cells.size) if cells.size <= 2 else None
    if cells.shape[0] % 2:
        cells = cells.T
    if cells.shape[0] % 2:
        return None  # an odd number of squares on a chessboard: the colours don't come out even
    rows = [row[1:] if place % 2 == 0 else row[:0:-1] for place, row in enumerate(cells)]
    return np.concatenate([cells[0, :1], *rows, cells[:0:-1, 0]])
