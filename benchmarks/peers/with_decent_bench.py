"""The same by decent-bench. Its relaxed ADMM with α = ½ and ρ = 2c is D-ADMM; snapshots are kept of the last round alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
from decent_array import interoperability as iop
from decent_bench.agents import Agent
from decent_bench.algorithms.p2p import ADMM, DGD, EXTRA
from decent_bench.costs import QuadraticCost
from decent_bench.networks import P2PNetwork
from timed import Instance, Method, main

NEVER = 10**9


def methods(given: Instance) -> Mapping[str, Method]:
    """Its algorithms of the same names."""
    iop.set_backend("numpy")
    own = [
        QuadraticCost(iop.from_numpy(h), iop.from_numpy(-b)) for h, b in zip(given.hessians, given.linear, strict=True)
    ]
    network = P2PNetwork(
        nx.from_numpy_array(given.adjacency), [Agent(cost, state_snapshot_period=NEVER) for cost in own]
    )
    steps = given.steps

    def run(algorithm: Any, rounds: int) -> Any:
        algorithm.run(network, rounds)
        return np.array([iop.to_numpy(agent.x) for agent in network.agents()])

    return {
        "DGD": lambda rounds: run(DGD(step_size=steps["DGD"]), rounds),
        "EXTRA": lambda rounds: run(EXTRA(step_size=steps["EXTRA"]), rounds),
        "D-ADMM": lambda rounds: run(ADMM(penalty=2.0 * steps["D-ADMM"], relaxation=0.5), rounds),
    }


if __name__ == "__main__":
    main(methods)
