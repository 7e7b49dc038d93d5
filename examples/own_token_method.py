"""A token method of one's own, in one file: Point-SAGA (Defazio 2016) on a ring, and what it costs against I-ADMM.

    v = x + γ(g_i − ḡ)    x⁺ = prox_{γf_i}(v)    g_i⁺ = (v − x⁺)/γ    ḡ⁺ = ḡ + (g_i⁺ − g_i)/N

The token carries x and ḡ, so that every hop costs 2 units. Agent i keeps g_i, the gradient of f_i at the last x that it
sent, in its row of y. `gamma` is γ. Both engines run the function `visit` below, as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import roundelay as rl
from roundelay.algorithms import OwnVisit, Tunable
from roundelay.algorithms.slots import Agents, minimise
from roundelay.kernels import DIM, Vector, Visit, each, vector


class Numbers(NamedTuple):
    gamma: float


def visit(problem: Any, method: Numbers, at: Visit, token: Vector, states: Agents, watch: bool) -> tuple[float, float]:
    """The token is x; the row of `share` below those of the agents is ḡ, which travels with it."""
    pull, new = vector(DIM), vector(DIM)
    i, mean, penalty = at.agent, states.share[at.agents], 1.0 / method.gamma
    for d in each(DIM):
        pull[d] = penalty * token[d] + (states.y[i, d] - mean[d])  # v/γ
    minimise(problem, i, pull, penalty, token, new)
    for d in each(DIM):
        slope = pull[d] - penalty * new[d]
        mean[d] += (slope - states.y[i, d]) / at.agents
        states.y[i, d] = slope
        states.x[i, d] = new[d]
        token[d] = new[d]
    return 0.0, 0.0


@dataclass(frozen=True)
class PointSAGA:
    name: ClassVar[str] = "Point-SAGA"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("gamma"),)
    gamma: float = 0.01
    walk: Any = rl.Cycle()

    def parts(self) -> OwnVisit:
        return OwnVisit(visit, Numbers(self.gamma), self.walk, ("minimise",), vectors=2)


def main(agents: int = 20, engine: Any = "auto") -> rl.Comparison:
    problem, network = rl.paper_least_squares(agents), rl.random_network(agents, 0.3)
    tuned = [
        rl.tune(method, problem, network, seeds=[0], units=20_000, evaluations=12, engine=engine).algorithm
        for method in (PointSAGA(), rl.IADMM())
    ]
    compared = rl.compare(tuned, problem, network, seeds=[0], units=20_000, engine=engine)
    print(compared)
    return compared


if __name__ == "__main__":
    main()
