"""The token family: one update under four choices, and its relatives that step along a gradient."""

from roundelay.algorithms.conditions import Condition, Conditions
from roundelay.algorithms.gradient import WPG, IncrementalGradient
from roundelay.algorithms.incremental import IADMM, PIADMM1, PIADMM2, RandomStart
from roundelay.algorithms.perturbations import (
    Inertia,
    Perturbation,
    PrimalNoise,
    Schedule,
    StepSizeNoise,
    Unperturbed,
)
from roundelay.algorithms.starts import Beginning, Start, UniformStart, ZeroStart
from roundelay.algorithms.stochastic import SIADMM
from roundelay.algorithms.token_method import Initial, TokenADMM, TokenMethod
from roundelay.algorithms.walking import IPWADMM, PWADMM, WADMM
from roundelay.algorithms.xsteps import Exact, FirstOrder, Sampled, XStep

__all__ = [
    "IADMM",
    "IPWADMM",
    "PIADMM1",
    "PIADMM2",
    "PWADMM",
    "SIADMM",
    "WADMM",
    "WPG",
    "Beginning",
    "Condition",
    "Conditions",
    "Exact",
    "FirstOrder",
    "IncrementalGradient",
    "Inertia",
    "Initial",
    "Perturbation",
    "PrimalNoise",
    "RandomStart",
    "Sampled",
    "Schedule",
    "Start",
    "StepSizeNoise",
    "TokenADMM",
    "TokenMethod",
    "UniformStart",
    "Unperturbed",
    "XStep",
    "ZeroStart",
]
