"""The same by Roundelay, from the rows, with its histories. Taking the gradient after averaging is a method of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from timed import Instance, Method, main

import roundelay as rl
from roundelay.algorithms import Conditions, Gossip
from roundelay.algorithms.slots import gradient
from roundelay.kernels import DIM, Matrix, each, vector


class Step(NamedTuple):
    """α."""

    alpha: float


class States(NamedTuple):
    """x."""

    x: Matrix


def send_x(problem, method, at, states, own, inbox, out):
    """The message is x_i."""
    for d in each(DIM):
        out[0, d] = states.x[at.agent, d]


def step_from_mean(problem, method, at, states, own, inbox, talked):
    """x_i⁺ = y − α∇f_i(y), y = (Wx)_i."""
    i, mean, slope = at.agent, vector(DIM), vector(DIM)
    for d in each(DIM):
        mean[d] = states.x[i, d] + inbox[0, d] - own[0, d]
    gradient(problem, i, mean, slope)
    for d in each(DIM):
        states.x[i, d] = mean[d] - method.alpha * slope[d]


@rl.register(rl.Algorithm)
@dataclass(frozen=True)
class GradientAfterAveraging:
    """Decentralised gradient descent that takes its gradient at the mean of the neighbours."""

    name: ClassVar[str] = "gradient after averaging"
    tunable: ClassVar[tuple[Any, ...]] = ()
    alpha: float = 0.01

    def parts(self) -> Gossip:
        """Its two functions."""
        return Gossip((("send", send_x), ("receive", step_from_mean)), lambda network: Step(self.alpha), States)

    def conditions(self, problem: Any) -> Conditions:
        """None."""
        return Conditions()


def methods(given: Instance) -> Mapping[str, Method]:
    """All of them."""
    problem = rl.LeastSquares(given.features, given.targets)
    network = rl.Network(given.agents, np.argwhere(np.triu(given.adjacency)))
    algorithms = {
        "DGD": lambda step: rl.DGD(alpha=step),
        "EXTRA": lambda step: rl.EXTRA(alpha=step),
        "D-ADMM": lambda step: rl.DADMM(c=step),
        "gradient after averaging": lambda step: GradientAfterAveraging(alpha=step),
        "gradient tracking": lambda step: rl.GradientTracking(alpha=step),
    }

    def method(name: str) -> Method:
        algorithm = algorithms[name](given.steps[name])
        return lambda rounds: rl.simulate(algorithm, problem, network, iterations=rounds, progress=False).x

    return {name: method(name) for name in algorithms}


if __name__ == "__main__":
    main(methods)
