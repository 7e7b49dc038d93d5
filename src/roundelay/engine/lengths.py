"""How long a run must be to spend so many units."""

from __future__ import annotations

import math
from typing import Any

from roundelay.algorithms.token_method import vectors_of
from roundelay.engine.checks import the_method
from roundelay.networks import Network
from roundelay.networks.conditions import NetworkConditions
from roundelay.problems import Problem

# How long a run is that costs nothing.
FREE_STEPS = 1000


def units_a_step(
    algorithm: Any, problem: Problem, network: Network, conditions: NetworkConditions | None = None
) -> float:
    """About what one hop, or one iteration, costs in units, with what is sent again; less where messages are censored."""
    _, method = the_method(algorithm, problem, network)
    dim, again = problem.dim, 1.0 if conditions is None else conditions.attempts
    if hasattr(method, "mixing"):
        numbers, bits = method.channel.compressor.weight(dim)
        arcs = len(method.mixing.numbers(network).neighbours)
        again = again if conditions is not None and conditions.resend else 1.0
        return again * float(method.talking() * method.speeches * method.vectors * arcs * (numbers + bits / 32.0) / dim)
    if hasattr(method, "walk"):
        return again * vectors_of(method)
    return again * (dim + 3) / 2.0


def steps_for(
    algorithm: Any, problem: Problem, network: Network, units: float, conditions: NetworkConditions | None = None
) -> dict[str, int]:
    """The length that spends about so many units, as `simulate` takes it: hops or iterations."""
    _, method = the_method(algorithm, problem, network)
    if not (hasattr(method, "mixing") or hasattr(method, "walk")):
        return {}  # the one pass has its own length
    cost = units_a_step(algorithm, problem, network, conditions)
    steps = max(1, math.ceil(units / cost)) if cost > 0.0 else FREE_STEPS  # one agent alone sends nothing
    return {"iterations" if hasattr(method, "mixing") else "hops": steps}
