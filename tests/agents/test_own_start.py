"""A start that a third party wrote goes round a ring as it does in the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.baton import Phase, unpack_baton
from roundelay.agents.protocol.holder import layout_of
from roundelay.agents.protocol.wire import unpack_frame
from roundelay.algorithms.parts.starts import Beginning, OneAgent
from tests.agents.played import played
from tests.agents.world import ring_plan

SITES, HOPS, SEED = 4, 30, 3
PROBLEM = rl.paper_least_squares(agents=SITES, samples=6, dim=3, seed=2)
FUNCTIONS = [rl.LeastSquares([PROBLEM.features[me]], [PROBLEM.targets[me]]) for me in range(SITES)]


@dataclass(frozen=True)
class Staggered:
    """x_i = i, y_i = ρi: it asks for no function, and so needs nothing more."""

    def draw(self, seed: int, problem: Any, rho: float) -> Beginning:
        x = np.outer(np.arange(problem.agents), np.ones(problem.dim))
        return Beginning(x, rho * x, x - rho * x / rho)


@dataclass(frozen=True)
class Downhill:
    """x_i = −∇f_i(0) and y_i = ρx_i."""

    def draw(self, seed: int, problem: Any, rho: float) -> Beginning:
        x = -problem.gradients(np.zeros((problem.agents, problem.dim)))
        return Beginning(x, rho * x, x - rho * x / rho)


@dataclass(frozen=True)
class OwnDownhill(Downhill):
    """The same, with a word for an agent that knows its own function alone."""

    def own(self, agent: OneAgent, problem: Any, rho: float) -> Beginning:
        x = -problem.gradients(np.zeros((1, problem.dim)))[0]
        return Beginning(x, rho * x, x - rho * x / rho)


def tokens_of_a_ring(algorithm: Any) -> np.ndarray:
    plan = ring_plan([f"S{me}" for me in range(SITES)], algorithm, 3, Stopping(None, HOPS))
    batons = [
        unpack_baton(unpack_frame(sent.frame, plan.run_bytes).body, layout_of(plan, ()))
        for sent in played(plan, [Known(function) for function in FUNCTIONS], SEED)
    ]
    return np.array([baton.numbers for baton in batons if baton.phase == Phase.ITERATE])


@pytest.mark.parametrize("start", [Staggered(), OwnDownhill()], ids=repr)
def test_it_runs_as_in_the_simulator(start: Any) -> None:
    algorithm = rl.PIADMM1(rho=3.0, start=start)
    run = rl.simulate(
        algorithm, PROBLEM, rl.ring(SITES), HOPS, seed=SEED, engine="python", transcript=True, progress=False
    )
    tokens = tokens_of_a_ring(algorithm)
    assert len(tokens) == HOPS - 1 and run.transcript is not None
    np.testing.assert_array_equal(tokens, run.transcript.tokens[: HOPS - 1])


def test_one_that_asks_for_the_functions_of_all_is_told_so() -> None:
    with pytest.raises(ValueError, match=r"nobody knows in a ring: give it own\(\)"):
        tokens_of_a_ring(rl.PIADMM1(rho=3.0, start=Downhill()))
