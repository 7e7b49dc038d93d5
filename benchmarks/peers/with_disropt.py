"""The same by disropt, in which every agent is a process of MPI: the script is started once for each of them.

It has no EXTRA. Its ADMM is another one, with a centre at every agent, and hands every step to a solver of quadratic programs. Its
subgradient method takes the gradient after averaging.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from disropt.agents import Agent
from disropt.algorithms import GradientTracking, SubgradientMethod
from disropt.functions import QuadraticForm, Variable
from disropt.problems import Problem
from mpi4py import MPI
from timed import Instance, measured

KINDS: dict[str, Any] = {"gradient after averaging": SubgradientMethod, "gradient tracking": GradientTracking}


def main() -> None:
    """Time the method on all processes; the first prints what came of it."""
    path, launched, name = sys.argv[1:]
    given, world = Instance(path), MPI.COMM_WORLD
    me = world.Get_rank()
    agent = Agent(in_neighbors=np.flatnonzero(given.adjacency[me]).tolist(), in_weights=given.weights[me].tolist())
    linear = -given.linear[me].reshape(-1, 1)
    agent.set_problem(Problem(QuadraticForm(Variable(given.dim), 0.5 * given.hessians[me], linear)))

    def run(rounds: int) -> Any:
        algorithm = KINDS[name](agent, np.zeros((given.dim, 1)))
        algorithm.run(iterations=rounds, stepsize=given.steps[name])
        return algorithm.get_result().ravel()

    ready = time.perf_counter() - float(launched)
    longest = lambda own: world.allreduce(own, MPI.MAX)  # noqa: E731
    all_of_them = world.gather(measured(run, given.rounds[name], given.agents, ready, time.perf_counter, longest))
    if me == 0:
        together = {key: [own[key] for own in all_of_them] for key in all_of_them[0]}
        memory = {key: sum(together[key]) for key in ("rest_mb", "peak_mb")}
        print(json.dumps({**all_of_them[0], **memory, "points": together["points"]}))


if __name__ == "__main__":
    main()
