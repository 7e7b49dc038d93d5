"""Graphs of agents, and the ways a token goes round them."""

from roundelay.networks.constructors import (
    barbell,
    complete,
    from_networkx,
    grid,
    path,
    random_network,
    ring,
    star,
)
from roundelay.networks.graph import Network
from roundelay.networks.tours.covering import CoveringWalk, covering_walk
from roundelay.networks.tours.hamiltonian import CycleSearch, find_cycle
from roundelay.networks.tours.tour import Tour, make_tour

__all__ = [
    "CoveringWalk",
    "CycleSearch",
    "Network",
    "Tour",
    "barbell",
    "complete",
    "covering_walk",
    "find_cycle",
    "from_networkx",
    "grid",
    "make_tour",
    "path",
    "random_network",
    "ring",
    "star",
]
