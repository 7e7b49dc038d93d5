"""The same by tvopt. Its relaxed ADMM with α = ½ and ρ = 2c is D-ADMM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timed import Instance, Method, main
from tvopt import costs, distributed_solvers, networks


def methods(given: Instance) -> Mapping[str, Method]:
    """Its solvers of the same names; with one axis for the coordinates, one of length 1, and one for the agents."""
    own = [costs.Quadratic(h, -b) for h, b in zip(given.hessians, given.linear, strict=True)]
    problem = {"f": costs.SeparableCost(own), "network": networks.Network(given.adjacency, given.weights)}
    steps = given.steps

    def rows(x: Any) -> Any:
        return x[:, 0, :].T

    return {
        "DGD": lambda rounds: rows(distributed_solvers.dpgm(problem, steps["DGD"], num_iter=rounds)),
        "EXTRA": lambda rounds: rows(distributed_solvers.pg_extra(problem, steps["EXTRA"], num_iter=rounds)),
        "D-ADMM": lambda rounds: rows(
            distributed_solvers.admm(problem, 2.0 * steps["D-ADMM"], 0.5, num_iter=rounds)[0]
        ),
    }


if __name__ == "__main__":
    main(methods)
