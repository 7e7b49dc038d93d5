"""The parts of an algorithm that can be named on the command line."""

from __future__ import annotations

from typing import Any

from roundelay.algorithms import (
    ContributionNoise,
    Defence,
    MaskedLinks,
    NoDefence,
    SealedStart,
    Start,
    UniformStart,
    ZeroStart,
    ZeroSumStart,
)
from roundelay.channels import Channel, Compressor, Plain, Quantised, RandomK, Rounded, Signs, TopK, TopShare
from roundelay.networks.walks import ClosedUniformWalk, Cycle, LeastVisitedWalk, MetropolisWalk, UniformWalk, Walk
from roundelay.problems import L1, Box, NonNegative, NoRegulariser, Regulariser

COMPRESSORS: dict[str, Any] = {
    "plain": Plain,
    "rounded": Rounded,
    "quantised": Quantised,
    "signs": Signs,
    "topk": TopK,
    "topshare": TopShare,
    "randomk": RandomK,
}

PARTS: dict[Any, dict[str, Any]] = {
    Walk: {
        "cycle": Cycle,
        "metropolis": MetropolisWalk,
        "uniform": UniformWalk,
        "closed-uniform": ClosedUniformWalk,
        "least-visited": LeastVisitedWalk,
    },
    Start: {"zero": ZeroStart, "uniform": UniformStart, "zero-sum": ZeroSumStart, "sealed": SealedStart},
    Defence: {"none": NoDefence, "contribution-noise": ContributionNoise, "masked-links": MaskedLinks},
    Regulariser: {"none": NoRegulariser, "l1": L1, "box": Box, "non-negative": NonNegative},
    Compressor: COMPRESSORS,
    # A channel that censors or sends differences has parts of its own, and is made in Python.
    Channel | Compressor: COMPRESSORS,
}
