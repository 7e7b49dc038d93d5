"""The gossip family: all agents speak to their neighbours, and all update from what they hear."""

from roundelay.algorithms.gossip.gossip_method import (
    Gossip as Gossip,
    GossipMethod as GossipMethod,
)
from roundelay.algorithms.gossip.mixing import (
    Everyone as Everyone,
    Metropolis as Metropolis,
    Mixing as Mixing,
    Penalties as Penalties,
)
