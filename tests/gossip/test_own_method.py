"""A researcher's own gossip method: two kernel functions, and it runs on both engines, with channels and conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import roundelay as rl
from roundelay import Channel, Plain
from roundelay.algorithms.gossip import Gossip
from roundelay.algorithms.slots import gradient
from roundelay.kernels import DIM, Exchange, Matrix, each, vector
from roundelay.links import Compressor, channel_of
from tests.reference.gossip import metropolis


class MomentumNumbers(NamedTuple):
    alpha: float
    beta: float


class MomentumStates(NamedTuple):
    x: Matrix
    before: Matrix


def send_ahead(
    problem: Any, method: MomentumNumbers, at: Exchange, states: MomentumStates, own: Matrix, inbox: Matrix, out: Matrix
) -> None:
    """x − α∇f(x) + β(x − the x before)."""
    i = at.agent
    slope = vector(DIM)
    gradient(problem, i, states.x[i], slope)
    for d in each(DIM):
        out[0, d] = states.x[i, d] - method.alpha * slope[d] + method.beta * (states.x[i, d] - states.before[i, d])
    for d in each(DIM):
        states.before[i, d] = states.x[i, d]
        states.x[i, d] = out[0, d]


def receive_mean(
    problem: Any,
    method: MomentumNumbers,
    at: Exchange,
    states: MomentumStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    i = at.agent
    for d in each(DIM):
        states.x[i, d] = states.x[i, d] - own[0, d] + inbox[0, d]


@dataclass(frozen=True)
class HeavyBall:
    """Diffusion with momentum."""

    name: ClassVar[str] = "heavy ball"
    alpha: float = 0.01
    beta: float = 0.3
    channel: Channel | Compressor = Plain()

    def parts(self) -> Gossip:
        numbers = MomentumNumbers(self.alpha, self.beta)
        functions = (("send", send_ahead), ("receive", receive_mean))
        return Gossip(functions, lambda network: numbers, MomentumStates, channel=channel_of(self.channel))


def by_hand(problem: rl.LeastSquares, network: rl.Network, alpha: float, beta: float, iterations: int) -> np.ndarray:
    adjacency = np.zeros((problem.agents,) * 2)
    adjacency[tuple(network.edges.T)] = 1.0
    w = metropolis(adjacency + adjacency.T)
    x = before = np.zeros((problem.agents, problem.dim))
    for _ in range(iterations):
        gradients = np.array([problem.gradient(i, x[i]) for i in range(problem.agents)])
        x, before = w @ (x - alpha * gradients + beta * (x - before)), x
    return x


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_an_own_method_does_what_its_equation_says(engine: Any) -> None:
    problem, network = rl.paper_least_squares(agents=7, samples=6, seed=1), rl.random_network(7, 0.6, 1)
    run = rl.simulate(HeavyBall(), problem, network, iterations=12, engine=engine)
    expected = by_hand(problem, network, 0.01, 0.3, 12)
    assert np.abs(run.x - expected).max() < 1e-13
    assert run.units == 12 * 2 * len(network.edges)
    assert run.engine == engine and run.family == "gossip"


def test_an_own_method_composes_with_channels_and_conditions() -> None:
    problem, network = rl.paper_least_squares(agents=7, samples=6, seed=1), rl.random_network(7, 0.6, 1)
    plain = rl.simulate(HeavyBall(), problem, network, iterations=400, engine="python")
    rounded = rl.simulate(
        HeavyBall(channel=rl.Rounded(1e-6)), problem, network, iterations=400, engine="python",
        conditions=rl.NetworkConditions(loss=rl.BernoulliLoss(0.2), resend=True, latency=0.01),
    )  # fmt: skip
    assert 0.0 < np.abs(plain.x - rounded.x).max() < 1e-4
    assert rounded.history["seconds"].iloc[-1] > 400 * 0.01
    compared = rl.compare(
        [HeavyBall(), rl.DGD(adapt_then_combine=True)], problem, network, seeds=[0], units=2000, engine="python"
    )
    assert [row.name for row in compared.rows] == ["heavy ball", "DGD"]
