"""The gossip family: all agents speak to their neighbours, and all update from what they hear."""

from roundelay.algorithms.gossip.gossip_method import (
    Gossip as Gossip,
    GossipMethod as GossipMethod,
)
from roundelay.algorithms.gossip.mixing import (
    BestConstant as BestConstant,
    Everyone as Everyone,
    Laplacian as Laplacian,
    Lazy as Lazy,
    Metropolis as Metropolis,
    Mixing as Mixing,
    OwnWeights as OwnWeights,
    Penalties as Penalties,
)
