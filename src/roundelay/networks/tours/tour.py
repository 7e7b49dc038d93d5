"""The lap that the token goes round: a Hamiltonian cycle where there is one, else a closed walk."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from roundelay.networks.graph import Network
from roundelay.networks.network_checks import checked_time_limit, read_only
from roundelay.networks.tours.covering import CoveringWalk, covering_walk
from roundelay.networks.tours.hamiltonian import CycleSearch, find_cycle


@dataclass(frozen=True, eq=False, repr=False)
class Tour:
    """One lap of the token.

    `order` has the agents as the token meets them, from agent 0; the lap closes from the last to the first.
    `works` is False where an agent that is met again in the same lap only relays. `hamiltonian` says that
    the lap meets everyone once, and `proven` that this is settled: that no Hamiltonian cycle costs less, or
    that there is none. `cost` is that of one lap, in link costs or hops; `words` says in one sentence what
    was found and how sure it is.
    """

    order: NDArray[np.int64]
    works: NDArray[np.bool_]
    hamiltonian: bool
    proven: bool
    cost: float
    words: str

    def __post_init__(self) -> None:
        """Make the arrays read-only copies."""
        object.__setattr__(self, "order", read_only(np.array(self.order, dtype=np.int64)))
        object.__setattr__(self, "works", read_only(np.array(self.works, dtype=np.bool_)))

    def __repr__(self) -> str:
        """Say what the tour is, not its arrays."""
        return f"Tour({self.words})"


def make_tour(network: Network, time_limit: float = 10.0) -> Tour:
    """Return the lap that the token goes round in a network, searched for `time_limit` seconds at most."""
    deadline = monotonic() + checked_time_limit(time_limit)
    search = find_cycle(network, time_limit=time_limit)
    if search.cycle is not None:
        works = np.ones(network.agents, dtype=np.bool_)
        return Tour(search.cycle, works, True, search.proven, search.cost, search.words)
    walk = covering_walk(network, time_limit=max(deadline - monotonic(), 0.0), searched=search)
    works = np.zeros(len(walk.order), dtype=np.bool_)
    works[np.unique(walk.order, return_index=True)[1]] = True
    return Tour(walk.order, works, False, search.proven, walk.cost, _words(network, search, walk))


def _words(network: Network, search: CycleSearch, walk: CoveringWalk) -> str:
    price = "" if network.costs is None else f" that costs {walk.cost:.6g}"
    certainty = "proven the least possible" if walk.proven else "the least found but not proven so"
    instead = f"the token takes a closed walk of {len(walk.order)} hops{price}, {certainty}"
    return f"{search.words.removesuffix('.')}; {instead}."
