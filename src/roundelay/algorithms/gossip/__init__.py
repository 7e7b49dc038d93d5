"""The gossip family: all agents speak to their neighbours, and all update from what they hear."""

from roundelay.algorithms.gossip.admm import COCA, DADMM, ColouredDADMM, QuantisedADMM, WeightedADMM
from roundelay.algorithms.gossip.compressed import CHOCO, LEAD
from roundelay.algorithms.gossip.descent import DGD, EXTRA, NIDS
from roundelay.algorithms.gossip.feedback import EFSignSGD, SparseDropping
from roundelay.algorithms.gossip.gossip_method import Gossip, GossipMethod
from roundelay.algorithms.gossip.mixing import Everyone, Metropolis, Mixing, Penalties
from roundelay.algorithms.gossip.private_admm import DualPerturbedADMM, PenaltyPerturbedADMM, PrimalPerturbedADMM
from roundelay.algorithms.gossip.skipping import PQASGD, Scaffnew
from roundelay.algorithms.gossip.tracking import GradientTracking

__all__ = [
    "CHOCO",
    "COCA",
    "DADMM",
    "DGD",
    "EXTRA",
    "LEAD",
    "NIDS",
    "PQASGD",
    "ColouredDADMM",
    "DualPerturbedADMM",
    "EFSignSGD",
    "Everyone",
    "Gossip",
    "GossipMethod",
    "GradientTracking",
    "Metropolis",
    "Mixing",
    "Penalties",
    "PenaltyPerturbedADMM",
    "PrimalPerturbedADMM",
    "QuantisedADMM",
    "Scaffnew",
    "SparseDropping",
    "WeightedADMM",
]
