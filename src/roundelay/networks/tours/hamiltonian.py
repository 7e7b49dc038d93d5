"""Hamiltonian cycles: a lap that meets every agent exactly once, the cheapest where links have costs."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network
from roundelay.networks.network_checks import checked_time_limit
from roundelay.networks.tours.blocks import why_no_cycle
from roundelay.networks.tours.exact import (
    HOW_TO_INSTALL,
    MOST_ARCS,
    MOST_PLACES,
    cheapest_round,
    solve_circuit,
    solver_installed,
)
from roundelay.networks.tours.improvement import improve_round, lengths_of_links
from roundelay.networks.tours.rotation import find_long_path

SHARE_TO_FIND_ANY = 0.6
"""Of the time limit: what may go into finding any cycle, or that there is none."""


@dataclass(frozen=True, eq=False)
class CycleSearch:
    """What a search for a Hamiltonian cycle came to.

    `cycle` starts at agent 0, and is None where none was found. `proven` says that the cycle costs the
    least of all, or that there is none. `cost` is that of one lap; `words` is one sentence.
    """

    cycle: NDArray[np.int64] | None
    proven: bool
    cost: float
    words: str


def find_cycle(network: Network, seed: int = 0, time_limit: float = 10.0) -> CycleSearch:
    """Search for a Hamiltonian cycle, the cheapest where links have costs, for `time_limit` seconds at most.

    The answer depends on the network and `seed` alone, unless the time limit cuts the search short. Quick
    proofs that there is none come first, then an exact method for a few agents, rotation and extension for
    many, and the exact solver where those leave the question open.
    """
    deadline = monotonic() + checked_time_limit(time_limit)
    if network.agents <= 2:
        return _found(network, np.arange(network.agents), proven=True)
    if network.planted_cycle is None:
        reason = why_no_cycle(network)
        if reason is not None:
            return _none(reason)
        if network.agents <= MOST_PLACES:
            return _few_agents(network)
        search = _any_cycle(network, seed, SHARE_TO_FIND_ANY * time_limit)
    elif network.agents <= MOST_PLACES and not network.all_links_alike:
        return _few_agents(network)
    else:
        search = _found(network, network.planted_cycle, proven=network.all_links_alike)
    if search.cycle is None or search.proven:
        return search
    return _cheaper_cycle(network, search.cycle, seed, deadline)


def _few_agents(network: Network) -> CycleSearch:
    costs = np.full((network.agents, network.agents), np.inf)
    first, second = network.edges.T
    costs[first, second] = costs[second, first] = network.link_costs
    cycle = cheapest_round(costs)
    return _none("trying every order has shown") if cycle is None else _found(network, cycle, proven=True)


def _any_cycle(network: Network, seed: int, time_limit: float) -> CycleSearch:
    deadline = monotonic() + time_limit
    # Half the time is left to the exact solver, unless the network is too large for it.
    share = 1.0 if 2 * len(network.edges) > MOST_ARCS else 0.5
    path = find_long_path(network, seed, monotonic() + share * time_limit)
    if path.closed and len(path.order) == network.agents:
        return _found(network, path.order, proven=network.all_links_alike)
    circuit = solve_circuit(network.agents, network.edges, None, None, deadline - monotonic(), seed)
    if circuit.order is not None:
        return _found(network, circuit.order, proven=network.all_links_alike)
    if circuit.proven:
        return _none("the exact solver has ruled it out")
    words = f"No Hamiltonian cycle was found in {time_limit:.3g} seconds, and it is not proven that there is none"
    return CycleSearch(None, proven=False, cost=float("inf"), words=f"{words}{_why_unsettled(network)}.")


def _cheaper_cycle(network: Network, cycle: NDArray[np.int64], seed: int, deadline: float) -> CycleSearch:
    cheap = _cycle_of_cheap_links(network, seed, monotonic() + (deadline - monotonic()) / 2)
    start = min((cycle, cheap), key=network.lap_cost) if cheap is not None else cycle
    # Half of what is left goes to the exact solver, where it can take over.
    share = 1.0 if _why_unsettled(network) else 0.5
    better = improve_round(start, lengths_of_links(network), monotonic() + share * (deadline - monotonic()))
    if _meets_bound(network, better):
        return _found(network, better, proven=True)
    circuit = solve_circuit(network.agents, network.edges, network.costs, better, deadline - monotonic(), seed)
    if circuit.order is None or network.lap_cost(circuit.order) > network.lap_cost(better):
        # A tie but for the solver's rounding of the costs.
        return _found(network, better, proven=circuit.proven)
    return _found(network, circuit.order, proven=circuit.proven)


def _cycle_of_cheap_links(network: Network, seed: int, deadline: float) -> NDArray[np.int64] | None:
    """Return a cycle along links that are among the few cheapest of an agent, if one is soon found."""
    tails = np.repeat(np.arange(network.agents), network.degrees)
    order = np.lexsort((network.link_costs[network.neighbour_links], tails))
    ranks = np.arange(len(order)) - np.repeat(network.neighbour_starts[:-1], network.degrees)
    for few in (4, 6, 10):
        links = np.unique(network.neighbour_links[order][ranks < few])
        first, second = network.edges[links].T
        from scipy import sparse
        from scipy.sparse import csgraph

        matrix = sparse.coo_array((np.ones(len(links)), (first, second)), shape=(network.agents,) * 2)
        if csgraph.connected_components(matrix, directed=False)[0] > 1:
            continue
        patience = (deadline - monotonic()) / 2
        path = find_long_path(Network(network.agents, network.edges[links]), seed, monotonic() + patience)
        if path.closed and len(path.order) == network.agents:
            return path.order
    return None


def _meets_bound(network: Network, cycle: NDArray[np.int64]) -> bool:
    """Say whether each agent is passed by its two cheapest links; no cycle can cost less than that."""
    costs = network.link_costs[network.neighbour_links]
    tails = np.repeat(np.arange(network.agents), network.degrees)
    sorted_costs = costs[np.lexsort((costs, tails))]
    starts = network.neighbour_starts[:-1]
    bound = float(sorted_costs[starts].sum() + sorted_costs[starts + 1].sum()) / 2
    return network.lap_cost(cycle) <= bound * (1 + 1e-12)


def _found(network: Network, cycle: NDArray[np.int64], proven: bool) -> CycleSearch:
    order = np.roll(cycle, -int(np.argmin(cycle)))
    cost = network.lap_cost(order)
    many = "the one agent" if network.agents == 1 else f"all {network.agents} agents"
    words = f"A Hamiltonian cycle through {many}"
    if network.costs is not None:
        words = f"{words} that costs {cost:.6g}, "
        words += (
            "proven the least possible" if proven else f"the least found but not proven so{_why_unsettled(network)}"
        )
    return CycleSearch(order, proven, cost, f"{words}.")


def _none(reason: str) -> CycleSearch:
    words = f"There is no Hamiltonian cycle, as {reason}."
    return CycleSearch(None, proven=True, cost=float("inf"), words=words)


def _why_unsettled(network: Network) -> str:
    if not solver_installed():
        return f"; {HOW_TO_INSTALL}"
    if 2 * len(network.edges) > MOST_ARCS:
        return f"; its {len(network.edges)} links are too many for the exact solver"
    return ""
