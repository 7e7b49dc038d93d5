"""Sealed laps: whoever dies, wherever in a lap, and whatever the links do, the words are the same to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.protocol.station import Point
from tests.agents import bad_links, chaos, sealed_rings
from tests.agents.test_schedules import new_world

OPTIMISERS = (rl.NormalEquations(), rl.ConjugateGradients(), rl.Newton(), rl.LBFGS())


def test_death_at_every_point_of_a_sealed_lap_changes_nothing(tmp_path: Path) -> None:
    size = chaos.SHORT
    kills = sealed_rings.killed(tmp_path, size, seed=1)
    print(f"\n{kills.table()}")
    assert all(kills.at[point] >= size.at_each for point in Point)
    assert kills.outside >= size.at_random
    assert all(kills.early[point] >= size.early_each for point in chaos.EARLY)


def test_bad_frames_change_nothing(tmp_path: Path) -> None:
    done = bad_links.over_bad_frames(tmp_path, bad_links.SHORT, 2, sealed_rings.SEALED)
    assert done.total() > 20


def test_links_that_are_cut_and_heal_change_nothing(tmp_path: Path) -> None:
    done = bad_links.over_bad_bytes(tmp_path, bad_links.SHORT, 3, tried=sealed_rings.SEALED)
    assert done.total() > 10


def crashes_change_no_word(seed: int) -> None:
    """A run with crashes, power failures and bad links ends where the same run without them does."""
    algorithm = rl.SealedLaps(OPTIMISERS[seed % 4], wide=seed % 3 == 0)
    agents, path = 2 + seed % 5, seed % 3 == 2 and seed % 5 > 0
    calm = new_world(seed, agents, 3, algorithm, Stopping(1e-9), 0.0, path)
    calm.run()
    wild = new_world(seed, agents, 3, algorithm, Stopping(1e-9), 0.4, path)
    wild.crash_chance, wild.power_chance = 0.2, 0.03
    wild.run()
    assert wild.crashes or agents == 2
    wild.check_no_fork()
    functions = [calm.function(f"site{number}") for number in range(agents)]
    rows = [function.features[0] for function in functions], [function.targets[0] for function in functions]
    for name, station in calm.up.items():
        one, other = station.holder, wild.up[name].holder
        assert np.array_equal(one.held.estimate, other.held.estimate) and one.held.reason == other.held.reason
        assert one.asking is not None and other.asking is not None and not one.asking.held.doubt
        assert [q.kind for q in one.asking.held.answered] == [q.kind for q in other.asking.held.answered]
        np.testing.assert_allclose(one.held.estimate, rl.LeastSquares(*rows).optimum, atol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_events(seed: int) -> None:
    crashes_change_no_word(seed)
