"""The token family, one update under five choices, with its relatives that step along a gradient; and gossip."""

from roundelay.algorithms.beginnings import Beginning, SealedSum
from roundelay.algorithms.clipping import ClippedGradient
from roundelay.algorithms.conditions import Condition, Conditions
from roundelay.algorithms.defences import ContributionNoise, Defence, MaskedLinks, NoDefence
from roundelay.algorithms.gossip import (
    CHOCO,
    COCA,
    DADMM,
    DGD,
    EXTRA,
    LEAD,
    NIDS,
    PQASGD,
    ColouredDADMM,
    DualPerturbedADMM,
    EFSignSGD,
    Everyone,
    Gossip,
    GossipMethod,
    GradientTracking,
    Metropolis,
    Mixing,
    Penalties,
    PenaltyPerturbedADMM,
    PrimalPerturbedADMM,
    QuantisedADMM,
    Scaffnew,
    SparseDropping,
    WeightedADMM,
)
from roundelay.algorithms.gradient import WPG, IncrementalGradient
from roundelay.algorithms.hidden_starts import SealedStart, ZeroSumStart
from roundelay.algorithms.incremental import IADMM, PIADMM1, PIADMM2, RandomStart
from roundelay.algorithms.one_pass import OnePass
from roundelay.algorithms.perturbations import (
    Inertia,
    Perturbation,
    PrimalNoise,
    Schedule,
    StepSizeNoise,
    Unperturbed,
)
from roundelay.algorithms.sag import MCSAG
from roundelay.algorithms.starts import Start, UniformStart, ZeroStart
from roundelay.algorithms.stochastic import SIADMM
from roundelay.algorithms.token_method import Initial, TokenADMM, TokenMethod
from roundelay.algorithms.tunable import Tunable
from roundelay.algorithms.vector_steps import VectorStepSizeNoise
from roundelay.algorithms.walking import IPWADMM, PWADMM, WADMM
from roundelay.algorithms.xsteps import Exact, FirstOrder, Sampled, XStep

__all__ = [
    "CHOCO",
    "COCA",
    "DADMM",
    "DGD",
    "EXTRA",
    "IADMM",
    "IPWADMM",
    "LEAD",
    "MCSAG",
    "NIDS",
    "PIADMM1",
    "PIADMM2",
    "PQASGD",
    "PWADMM",
    "SIADMM",
    "WADMM",
    "WPG",
    "Beginning",
    "ClippedGradient",
    "ColouredDADMM",
    "Condition",
    "Conditions",
    "ContributionNoise",
    "Defence",
    "DualPerturbedADMM",
    "EFSignSGD",
    "Everyone",
    "Exact",
    "FirstOrder",
    "Gossip",
    "GossipMethod",
    "GradientTracking",
    "IncrementalGradient",
    "Inertia",
    "Initial",
    "MaskedLinks",
    "Metropolis",
    "Mixing",
    "NoDefence",
    "OnePass",
    "Penalties",
    "PenaltyPerturbedADMM",
    "Perturbation",
    "PrimalNoise",
    "PrimalPerturbedADMM",
    "QuantisedADMM",
    "RandomStart",
    "Sampled",
    "Scaffnew",
    "Schedule",
    "SealedStart",
    "SealedSum",
    "SparseDropping",
    "Start",
    "StepSizeNoise",
    "TokenADMM",
    "TokenMethod",
    "Tunable",
    "UniformStart",
    "Unperturbed",
    "VectorStepSizeNoise",
    "WeightedADMM",
    "XStep",
    "ZeroStart",
    "ZeroSumStart",
]
