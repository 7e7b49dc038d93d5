"""Graphs of agents, and the ways a token goes round them."""

from roundelay.networks.constructors import (
    barbell as barbell,
    complete as complete,
    from_networkx as from_networkx,
    grid as grid,
    path as path,
    random_network as random_network,
    ring as ring,
    star as star,
)
from roundelay.networks.graph import (
    Network as Network,
)
from roundelay.networks.tours.covering import (
    CoveringWalk as CoveringWalk,
    covering_walk as covering_walk,
)
from roundelay.networks.tours.hamiltonian import (
    CycleSearch as CycleSearch,
    find_cycle as find_cycle,
)
from roundelay.networks.tours.tour import (
    Tour as Tour,
    make_tour as make_tour,
)
