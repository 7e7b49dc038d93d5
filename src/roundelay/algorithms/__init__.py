"""The token family, one update under five choices, with its relatives that step along a gradient; and gossip."""

from roundelay.algorithms.algorithm import (
    Tunable as Tunable,
)
from roundelay.algorithms.gossip import (
    BestConstant as BestConstant,
    Everyone as Everyone,
    Gossip as Gossip,
    GossipMethod as GossipMethod,
    Laplacian as Laplacian,
    Lazy as Lazy,
    Metropolis as Metropolis,
    Mixing as Mixing,
    OwnWeights as OwnWeights,
    Penalties as Penalties,
)
from roundelay.algorithms.lemmas import (
    Condition as Condition,
    Conditions as Conditions,
)
from roundelay.algorithms.parts.defences import (
    Defence as Defence,
)
from roundelay.algorithms.parts.perturbations import (
    Inertia as Inertia,
    Perturbation as Perturbation,
    PrimalNoise as PrimalNoise,
    Schedule as Schedule,
    StepSizeNoise as StepSizeNoise,
    Unperturbed as Unperturbed,
    VectorStepSizeNoise as VectorStepSizeNoise,
)
from roundelay.algorithms.parts.starts import (
    Beginning as Beginning,
    SealedSum as SealedSum,
    Start as Start,
)
from roundelay.algorithms.parts.xsteps import (
    ClippedGradient as ClippedGradient,
    Exact as Exact,
    FirstOrder as FirstOrder,
    Sampled as Sampled,
    XStep as XStep,
)
from roundelay.algorithms.token_method import (
    OwnVisit as OwnVisit,
    TokenADMM as TokenADMM,
    TokenMethod as TokenMethod,
)
