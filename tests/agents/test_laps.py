"""Where some members are met more than once in a lap, it ends and is frozen at any of its places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from tests.agents.world import World, ring_plan

NAMES = ["site0", "site1", "site2", "site3"]


def path_plan(stopping: Stopping) -> RingPlan:
    """A line of four: the token goes there and back."""
    plain = ring_plan(NAMES, rl.IADMM(rho=2.0, start=rl.SealedStart()), 2, stopping)
    return replace(plain, order=(0, 1, 2, 3, 2, 1), links=((0, 1), (1, 2), (2, 3)))


def run_on(plan: RingPlan) -> World:
    world = World(1, 2, np.random.default_rng(1), 0.2)
    world.plans[0] = plan
    for name in NAMES:
        world.epochs[name] = 0
        world.start(name)
    world.run()
    world.check_no_fork()
    return world


@pytest.mark.parametrize("hops", range(12, 19))
def test_a_run_ends_at_any_place_of_the_lap(hops: int) -> None:
    world = run_on(path_plan(Stopping(None, hops)))
    assert all(station.holder.held.hop == hops for station in world.up.values())


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-8])
def test_a_token_is_frozen_at_any_place_of_the_lap(tolerance: float) -> None:
    world = run_on(path_plan(Stopping(tolerance, 100_000)))
    parts = [world.function(name) for name in NAMES]
    pooled = rl.LeastSquares([f.features[0] for f in parts], [f.targets[0] for f in parts])
    estimates = [station.holder.held.estimate for station in world.up.values()]
    gradients = [part.gradients(np.array([estimates[0]]))[0] for part in parts]
    assert np.linalg.norm(np.mean(gradients, axis=0)) <= tolerance
    assert all(np.array_equal(estimates[0], other) for other in estimates)
    assert np.allclose(estimates[0], pooled.optimum, atol=100 * tolerance)
