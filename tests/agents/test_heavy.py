"""Large states are not written at each visit: they follow from what was received since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.protocol import station
from roundelay.agents.protocol.station import Point
from tests.agents.processes import make_ring
from tests.agents.test_schedules import new_world, random_membership, shares_and_token


@pytest.mark.parametrize("seed", range(20))
def test_crashes_change_nothing_where_few_states_are_written(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm, stopping = rl.PIADMM1(rho=3.0, start=rl.SealedStart()), Stopping(None, 60)
    calm = new_world(seed, 4, 2, algorithm, stopping, 0.0)
    calm.run()
    monkeypatch.setattr(station, "BESIDE", 10)
    wild = new_world(seed, 4, 2, algorithm, stopping, 0.3)
    wild.crash_chance = 0.1
    wild.run()
    assert sum(wild.crashes.values()) > 10
    wild.check_no_fork()
    for name, one in calm.up.items():
        held, other = one.holder.held, wild.up[name].holder.held
        assert all(
            np.array_equal(getattr(held, part), getattr(other, part)) for part in ("x", "y", "share", "estimate")
        )


@pytest.mark.parametrize("seed", range(20))
def test_members_come_and_go_where_few_states_are_written(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(station, "BESIDE", 10)
    world = random_membership(seed, Stopping(None, 40), crash=0.02)
    world.run()
    world.check_no_fork()
    shares, token = shares_and_token(world)
    assert np.allclose(shares.mean(axis=0), token, rtol=0.0, atol=1e-12 * (1.0 + np.abs(shares).max()))


def diagonal(number: int, dim: int) -> tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]:
    """The gradient and the proximal step of ½ Σ h_d (x_d − t_d)²."""
    rng = np.random.default_rng(number)
    h, t = rng.uniform(0.5, 2.0, dim), rng.normal(size=dim)
    return lambda x: h * (x - t), lambda v, penalty: (h * t + penalty * v) / (h + penalty)


def test_a_ring_of_processes_with_vectors_in_files(tmp_path: Path) -> None:
    dim, agents, algorithm = 10_000, 3, rl.PIADMM1(rho=2.0)
    parts = [diagonal(number, dim) for number in range(agents)]
    functions = [rl.CallableProblem([gradient], dim, prox_of=[prox]) for gradient, prox in parts]
    ring = make_ring(tmp_path, functions, algorithm, Stopping(None, 60))
    assert 32 * dim > station.BESIDE
    try:
        for number in range(agents):
            ring.start(number, (Point.AFTER_SEND, 7 + number))
        ring.wait(again=True)
    finally:
        ring.stop()
    together = rl.CallableProblem([gradient for gradient, _ in parts], dim, prox_of=[prox for _, prox in parts])
    alone = rl.simulate(algorithm, together, rl.ring(agents), hops=60, seed=1, engine="python")
    for number, (x, y, _, estimate) in enumerate(ring.states()):
        assert np.array_equal(x, alone.x[number]) and np.array_equal(y, alone.y[number])
        assert np.array_equal(estimate, alone.estimate)
    assert (ring.site_folder(0) / "runs" / ring.plan.run / "state-1.bin").exists()
