"""How long a run must be to spend so many units."""

from __future__ import annotations

import math
from typing import Any

from roundelay.algorithms.token_method import vectors_of
from roundelay.engine.checks import the_method
from roundelay.networks import Network
from roundelay.problems import Problem


def units_a_step(algorithm: Any, problem: Problem, network: Network) -> float:
    """About what one hop, or one iteration, costs in units; less where messages are censored."""
    _, method = the_method(algorithm, problem, network)
    dim = problem.dim
    if hasattr(method, "mixing"):
        numbers, bits = method.channel.compressor.weight(dim)
        arcs = len(method.mixing.numbers(network).neighbours)
        return float(method.talking() * method.speeches * method.vectors * arcs * (numbers + bits / 32.0) / dim)
    if hasattr(method, "walk"):
        return float(vectors_of(method))
    return (dim + 3) / 2.0


def steps_for(algorithm: Any, problem: Problem, network: Network, units: float) -> dict[str, int]:
    """The length that spends about so many units, as `simulate` takes it: hops or iterations."""
    _, method = the_method(algorithm, problem, network)
    if not (hasattr(method, "mixing") or hasattr(method, "walk")):
        return {}  # the one pass has its own length
    steps = max(1, math.ceil(units / units_a_step(algorithm, problem, network)))
    return {"iterations" if hasattr(method, "mixing") else "hops": steps}
