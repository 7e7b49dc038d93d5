"""Any order of events: nothing is lost, nothing is taken twice, and no token is there twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from tests.agents.world import World, ring_plan


def new_world(
    seed: int, agents: int, dim: int, algorithm: object, stopping: Stopping, disturbance: float, path: bool = False
) -> World:
    world = World(seed, dim, np.random.default_rng(seed), disturbance)
    names = [f"site{i}" for i in range(agents)]
    plan = ring_plan(names, algorithm, dim, stopping)
    if path:  # to its end and back, so that members stand in the order twice
        there_and_back = (*range(agents), *range(agents - 2, 0, -1))
        plan = replace(plan, order=there_and_back, links=tuple((i, i + 1) for i in range(agents - 1)))
    world.plans[0] = plan
    for name in names:
        world.epochs[name] = 0
    for name in world.rng.permutation(names):
        world.start(str(name))
    return world


def shares_and_token(world: World) -> tuple[np.ndarray, np.ndarray]:
    stations = list(world.up.values())
    newest = max(world.plans)
    own = [s for s in stations if s.plan.epoch == newest]
    shares = np.array([s.holder.held.share[s.me] for s in own])
    estimates = np.array([s.holder.held.estimate for s in own])
    assert (estimates == estimates[0]).all()
    return shares, estimates[0]


def crashes_change_nothing(seed: int) -> None:
    """A run with crashes and bad links ends where the same run without them does: on a cycle, a path, a random walk."""
    algorithm: object = rl.PIADMM1(rho=3.0, start=rl.SealedStart())
    if seed % 3 == 1:
        algorithm = rl.WADMM(rho=3.0)
    agents, stopping, path = 3 + seed // 3 % 4, Stopping(None, 40), seed % 3 == 2
    calm = new_world(seed, agents, 2, algorithm, stopping, 0.0, path)
    calm.run()
    wild = new_world(seed, agents, 2, algorithm, stopping, 0.4, path)
    wild.crash_chance = 0.1
    wild.run()
    assert wild.crashes
    wild.check_no_fork()
    for name, station in calm.up.items():
        other = wild.up[name].holder.held
        held = station.holder.held
        for mine, its in ((held.x, other.x), (held.y, other.y), (held.share, other.share)):
            assert np.array_equal(mine, its)
        assert np.array_equal(held.estimate, other.estimate)


def power_failures_change_nothing(seed: int) -> None:
    """All members die at once, again and again, besides one by one; on the smallest rings too."""
    algorithm: object = rl.PIADMM1(rho=3.0, start=rl.SealedStart()) if seed % 2 else rl.IADMM(rho=2.0)
    agents, stopping = 2 + seed % 4, Stopping(1e-3 if seed % 3 else None, 40)
    calm = new_world(seed, agents, 2, algorithm, stopping, 0.0)
    calm.run()
    wild = new_world(seed, agents, 2, algorithm, stopping, 0.4)
    wild.crash_chance, wild.power_chance = 0.15, 0.05
    wild.run()
    wild.check_no_fork()
    for name, station in calm.up.items():
        held, other = station.holder.held, wild.up[name].holder.held
        assert held.hop == other.hop and held.reason == other.reason
        for part in ("x", "y", "share", "estimate"):
            assert np.array_equal(getattr(held, part), getattr(other, part))


def a_stop_forks_nothing(seed: int) -> None:
    """Operators ask the ring to stop, also right after their agents have died with a hop that was sent but not on disk."""
    world = new_world(seed, 2 + seed % 3, 2, rl.IADMM(rho=2.0), Stopping(None, 400), 0.3)
    world.crash_chance, world.power_chance, world.stop_chance = 0.1, 0.01, 0.003
    world.run()
    world.check_no_fork()
    shares_and_token(world)


def change(world: World, removed: list[str], added: list[str]) -> None:
    """The operators decide on another epoch."""
    newest = max(world.plans)
    before = world.plans[newest]
    names = [member.name for member in before.members if member.name not in removed] + added
    world.plans[newest + 1] = ring_plan(names, before.algorithm, before.dim, before.stopping, newest + 1)
    world.given_up |= set(removed)


def random_membership(seed: int, stopping: Stopping, crash: float) -> World:
    """A run with drops, leaves and joins at any moment; dropped members come back as if nothing had happened."""
    world = new_world(seed, 4 + seed % 3, 1 + seed % 2, rl.IADMM(rho=2.0, start=_start(seed)), stopping, 0.3)
    world.crash_chance = crash
    rng = world.rng
    for number in range(1 + seed % 3):
        for _ in range(int(rng.integers(0, 120))):
            world.step()
        members = [member.name for member in world.plans[max(world.plans)].members]
        kind = rng.integers(4)
        removed: list[str] = []
        added: list[str] = []
        if kind == 0 or len(members) < 4:
            added = [f"new{number}"]
        elif kind == 3 and len(members) > 4:
            removed = [str(name) for name in rng.choice(members, 2, replace=False)]
        else:
            removed = [str(rng.choice(members))]
        zombies = [name for name in removed if rng.random() < 0.5]
        for name in removed:
            if name not in zombies:
                world.kill(name)
        change(world, removed, added)
        epoch = max(world.plans)
        waiting = [str(name) for name in rng.permutation([m.name for m in world.plans[epoch].members])]
        for name in waiting:  # one operator after another accepts, while the rest goes on
            for _ in range(int(rng.integers(0, 25))):
                world.step()
            world.adopt(name, epoch)
            if rng.random() < 0.2 and removed:  # a dead one returns with what it knew
                back = str(rng.choice(removed))
                if back not in world.up:
                    world.start(back)
    return world


def _start(seed: int) -> object:
    return (rl.SealedStart(), rl.ZeroSumStart(), rl.UniformStart(0.0, 10.0))[seed % 3]


def epochs_hold(seed: int) -> None:
    """Whoever comes and goes, the ring ends, no hand-over is taken twice, and the token is the mean of the shares."""
    world = random_membership(seed, Stopping(None, 25), crash=0.02)
    world.run()
    world.check_no_fork()
    shares, token = shares_and_token(world)
    scale = 1.0 + np.abs(shares).max()
    assert np.allclose(shares.mean(axis=0), token, rtol=0.0, atol=1e-12 * scale)


def the_minimiser_is_reached(seed: int) -> None:
    """Those who are left minimise the sum of their own functions."""
    world = random_membership(seed, Stopping(1e-10, 100_000), crash=0.01)
    world.run(2_000_000)
    world.check_no_fork()
    functions = [world.function(member.name) for member in world.plans[max(world.plans)].members]
    pooled = rl.LeastSquares([f.features[0] for f in functions], [f.targets[0] for f in functions])
    _, token = shares_and_token(world)
    assert np.allclose(token, pooled.optimum, rtol=0.0, atol=1e-8)


# Many more of each are in tests/agents/soak.py.


@pytest.mark.parametrize("block", range(4))
def test_crashes_and_bad_links_change_nothing(block: int) -> None:
    for seed in range(block * 6, block * 6 + 6):
        crashes_change_nothing(seed)


@pytest.mark.parametrize("block", range(4))
def test_power_failures_change_nothing(block: int) -> None:
    for seed in range(block * 6, block * 6 + 6):
        power_failures_change_nothing(seed)


@pytest.mark.parametrize("seed", range(12))
def test_a_stop_forks_nothing(seed: int) -> None:
    a_stop_forks_nothing(seed)


@pytest.mark.parametrize("block", range(4))
def test_epochs_never_fork_and_never_stall(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        epochs_hold(seed)


@pytest.mark.parametrize("seed", range(30))
def test_who_is_left_reaches_its_own_minimiser(seed: int) -> None:
    the_minimiser_is_reached(seed)
