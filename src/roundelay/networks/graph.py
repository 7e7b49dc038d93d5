"""Who may speak to whom: a connected, undirected graph of agents."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.networks.network_checks import (
    checked_agents,
    checked_costs,
    checked_edges,
    checked_labels,
    join_names,
    read_only,
    refuse_duplicates,
    shorten_names,
)

if TYPE_CHECKING:
    import networkx
    from scipy import sparse

    from roundelay.networks.tours.tour import Tour


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A connected, undirected graph of agents 0..N-1.

    `agents` is N. `edges` has one row (i, j) a link, in any order; they are kept with i < j and sorted.
    `costs`, where given, has one positive cost a link in the order of `edges`; without it all links are
    alike, and a lap is counted in hops. `planted_cycle` is a Hamiltonian cycle known from construction; it
    is kept starting at agent 0. `labels` are the names of the agents, when they have any besides their
    numbers.
    """

    agents: int
    edges: NDArray[np.int64]
    costs: NDArray[np.float64] | None = None
    planted_cycle: NDArray[np.int64] | None = None
    labels: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        """Check the graph, put its links in order, and make its arrays read-only."""
        # A frozen dataclass is filled in through object.__setattr__ while it is being made.
        object.__setattr__(self, "agents", checked_agents(self.agents))
        object.__setattr__(self, "labels", checked_labels(self.labels, self.agents))
        edges = checked_edges(self.edges, self.agents)
        order = np.argsort(edges[:, 0] * self.agents + edges[:, 1], kind="stable")
        edges = edges[order]
        refuse_duplicates(edges)
        object.__setattr__(self, "edges", read_only(edges))
        if self.costs is not None:
            object.__setattr__(self, "costs", read_only(checked_costs(self.costs, len(edges))[order]))
        if self.planted_cycle is None:
            self._refuse_disconnected()
        else:  # a cycle through all agents connects them
            object.__setattr__(self, "planted_cycle", read_only(self._checked_cycle(self.planted_cycle)))

    def __repr__(self) -> str:
        """Say the size of the network, not its arrays."""
        extras = ", costs" * (self.costs is not None) + ", planted cycle" * (self.planted_cycle is not None)
        return f"Network({self.agents} agents, {len(self.edges)} links{extras})"

    @cached_property
    def neighbour_starts(self) -> NDArray[np.int64]:
        """Where each agent's neighbours start in `neighbours`: (N+1,)."""
        starts = np.zeros(self.agents + 1, dtype=np.int64)
        np.cumsum(self.degrees, out=starts[1:])
        return read_only(starts)

    @cached_property
    def neighbours(self) -> NDArray[np.int64]:
        """The neighbours of agent i, sorted, at `neighbours[neighbour_starts[i]:neighbour_starts[i + 1]]`."""
        return read_only(self._arcs_in_order[0])

    @cached_property
    def neighbour_links(self) -> NDArray[np.int64]:
        """The row in `edges` of each entry of `neighbours`."""
        return read_only(self._arcs_in_order[1])

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """How many neighbours each agent has: (N,)."""
        return read_only(np.bincount(self.edges.ravel(), minlength=self.agents).astype(np.int64))

    @cached_property
    def link_costs(self) -> NDArray[np.float64]:
        """What each link costs to cross: `costs`, or one hop each."""
        return self.costs if self.costs is not None else read_only(np.ones(len(self.edges)))

    @cached_property
    def all_links_alike(self) -> bool:
        """Whether every link costs the same, so that one Hamiltonian cycle is as good as another."""
        return len(self.edges) == 0 or bool(np.all(self.link_costs == self.link_costs[0]))

    def neighbours_of(self, agent: int) -> NDArray[np.int64]:
        """Return the neighbours of one agent, sorted."""
        if not 0 <= agent < self.agents:
            raise IndexError(
                f"There is no agent {agent} in a network of {self.agents}. Give a number from 0 to {self.agents - 1}."
            )
        return self.neighbours[self.neighbour_starts[agent] : self.neighbour_starts[agent + 1]]

    def has_edge(self, first: int, second: int) -> bool:
        """Say whether two agents are linked."""
        return bool(self.edge_rows(np.array([first]), np.array([second]))[0] >= 0)

    def edge_rows(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row in `edges` of each pair of agents, or -1 where they are not linked."""
        low, high = np.minimum(tails, heads), np.maximum(tails, heads)
        keys = self._edge_keys
        if len(keys) == 0:
            return np.full(low.shape, -1, dtype=np.int64)
        wanted = low * self.agents + high
        rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        # Agents that don't exist could share a key with a pair that does.
        found = (keys[rows] == wanted) & (low >= 0) & (high < self.agents)
        return np.where(found, rows, -1).astype(np.int64)

    def lap_cost(self, order: NDArray[np.int64]) -> float:
        """Return what a closed walk costs, in link costs; it is infinite where two steps are not linked."""
        if len(order) < 2:
            return 0.0
        rows = self.edge_rows(order, np.roll(order, -1))
        return float(self.link_costs[rows].sum()) if np.all(rows >= 0) else float("inf")

    def name_of(self, agent: int) -> str:
        """Return how to call an agent in a sentence: its label where it has one, else its number."""
        return str(agent) if self.labels is None else str(self.labels[agent])

    def cost_matrix(self) -> sparse.csr_array[np.float64, tuple[int, int]]:
        """Return the link costs as a sparse, symmetric matrix."""
        shape = (self.agents, self.agents)
        costs = self.link_costs[self.neighbour_links]
        from scipy import sparse

        return sparse.csr_array((costs, self.neighbours, self.neighbour_starts), shape=shape)

    def metropolis_weights(self) -> sparse.csr_array[np.float64, tuple[int, int]]:
        """Return the Metropolis weights: W_ij = 1/(1 + max(d_i, d_j)) on links, W_ii what is left of one.

        W is symmetric and doubly stochastic, which is what gossip methods ask of their mixing matrix.
        """
        first, second = self.edges[:, 0], self.edges[:, 1]
        shares = 1.0 / (1.0 + np.maximum(self.degrees[first], self.degrees[second]))
        given = np.bincount(first, shares, self.agents) + np.bincount(second, shares, self.agents)
        everyone = np.arange(self.agents)
        rows = np.concatenate([first, second, everyone])
        columns = np.concatenate([second, first, everyone])
        entries = np.concatenate([shares, shares, 1.0 - given])
        from scipy import sparse

        return sparse.csr_array((entries, (rows, columns)), shape=(self.agents, self.agents))

    def to_networkx(self) -> networkx.Graph[Any]:
        """Return the same graph in networkx, under its labels, with costs as the edge attribute `cost`."""
        names = list(range(self.agents)) if self.labels is None else list(self.labels)
        import networkx

        graph: networkx.Graph[Any] = networkx.Graph()
        graph.add_nodes_from(names)
        pairs = [(names[i], names[j]) for i, j in self.edges.tolist()]
        if self.costs is None:
            graph.add_edges_from(pairs)
        else:
            graph.add_edges_from(
                (i, j, {"cost": cost}) for (i, j), cost in zip(pairs, self.costs.tolist(), strict=True)
            )
        return graph

    def tour(self, time_limit: float = 10.0) -> Tour:
        """Return the lap that the token goes round, found on the first call and kept.

        `time_limit` is in seconds and counts on that first call only.
        """
        if "_tour" not in self.__dict__:
            from roundelay.networks.tours.tour import make_tour

            self.__dict__["_tour"] = make_tour(self, time_limit)
        kept: Tour = self.__dict__["_tour"]
        return kept

    @cached_property
    def _edge_keys(self) -> NDArray[np.int64]:
        return self.edges[:, 0] * self.agents + self.edges[:, 1]

    @cached_property
    def _arcs_in_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first, second = self.edges[:, 0], self.edges[:, 1]
        tails, heads = np.concatenate([first, second]), np.concatenate([second, first])
        order = np.argsort(tails * self.agents + heads)
        return heads[order], order % max(len(self.edges), 1)

    def _refuse_disconnected(self) -> None:
        first, second = self.edges[:, 0], self.edges[:, 1]
        from scipy import sparse
        from scipy.sparse import csgraph

        links = sparse.coo_array((np.ones(len(self.edges), dtype=np.int8), (first, second)), (self.agents,) * 2)
        parts, part_of = csgraph.connected_components(links, directed=False)
        if parts == 1:
            return
        by_part = np.split(np.argsort(part_of, kind="stable"), np.cumsum(np.bincount(part_of))[:-1])
        shown = by_part if parts <= 5 else by_part[:4]
        sets = [
            "{" + shorten_names([self.name_of(agent) for agent in part[:9].tolist()], len(part)) + "}" for part in shown
        ]
        if parts > len(shown):
            sets.append(f"{parts - len(shown)} more")
        raise ValueError(
            f"The network is not connected: it falls into {parts} parts, {join_names(sets)}. "
            "Add links between them, or make a network of one part only."
        )

    def _checked_cycle(self, cycle: ArrayLike) -> NDArray[np.int64]:
        order = np.array(cycle, dtype=np.int64)
        if order.shape != (self.agents,) or not np.array_equal(np.sort(order), np.arange(self.agents)):
            raise ValueError(
                f"The planted cycle does not visit each of the {self.agents} agents exactly once. "
                "Give every agent's number once, in the order of the cycle."
            )
        order = np.roll(order, -int(np.argmin(order)))
        missing = np.flatnonzero(self.edge_rows(order, np.roll(order, -1)) < 0) if self.agents > 1 else np.array([])
        if len(missing):
            here = int(missing[0])
            tail, head = self.name_of(int(order[here])), self.name_of(int(order[(here + 1) % self.agents]))
            raise ValueError(
                f"The planted cycle goes from agent {tail} to agent {head}, which are not linked. "
                "Add that link to the edges, or give a cycle that follows the links."
            )
        return order
