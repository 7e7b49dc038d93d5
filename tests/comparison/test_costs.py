import numpy as np
import pytest

import roundelay as rl
from roundelay.comparison import floor_of, reached
from roundelay.comparison.costs import amount, brief, short
from roundelay.networks.network_checks import join_names


def ensemble(algorithm: object, hops: int, **options: object) -> rl.Ensemble:
    problem, network = rl.paper_least_squares(5, 6), rl.ring(5)
    return rl.simulate(algorithm, problem, network, hops, seeds=range(3), engine="python", progress=False, **options)


def test_a_floor_is_told_from_slow_progress_and_from_divergence() -> None:
    noisy = ensemble(rl.PIADMM2(sigma=1e-2), 1500)
    found = reached(noisy, 1e-9)
    assert found.words.startswith("never (floor ") and found.why_not == "floor"
    assert found.cost == np.inf and found.seeds == 0
    floor = float(found.words.split()[-1].rstrip(")"))
    assert 0.2 < floor / noisy[0].history["error"].iloc[-1] < 5.0
    slow = reached(ensemble(rl.IADMM(), 50), 1e-9)
    assert slow.words.startswith("not in 50 (error ") and slow.why_not == "budget"
    wild = reached(ensemble(rl.IADMM(rho=0.1, first_order=True), 1000), 1e-9)
    assert (wild.words, wild.why_not) == ("never (diverged)", "diverged")


def test_a_floor_needs_a_descent_that_ended() -> None:
    falling = 10.0 ** -np.linspace(0.0, 6.0, 200)
    assert np.isnan(floor_of(falling))
    assert floor_of(np.maximum(falling, 1e-2)) == 1e-2
    assert np.isnan(floor_of(np.ones(200)))


def test_a_power_law_is_no_floor_and_the_spacing_of_the_rows_does_not_matter() -> None:
    for steps in (np.arange(1, 10_001), np.unique(np.geomspace(1, 10_000, 1500).astype(int))):
        assert np.isnan(floor_of(steps**-0.5, steps)), "an error that falls like 1/√k still falls"
        assert floor_of(np.maximum(steps**-1.0, 1e-3), steps) == 1e-3


@pytest.mark.parametrize("axis", ["units", "bytes", "seconds"])
def test_a_level_has_a_cost_on_every_axis(axis: str) -> None:
    runs = ensemble(rl.PIADMM1(), 1000, conditions=rl.NetworkConditions(latency=0.01))
    found = reached(runs, 0.05, axis=axis)
    assert found.cost == np.median([run.cost_to(0.05, axis) for run in runs])
    assert found.words == amount(found.cost, axis) and found.seeds == 3 and found.axis == axis


def test_seeds_that_did_not_get_there_are_mentioned() -> None:
    runs = ensemble(rl.PIADMM1(), 400)
    costs = sorted((run.history["error"].iloc[-1], place) for place, run in enumerate(runs))
    between = float(np.sqrt(costs[1][0] * costs[2][0]))
    found = reached(runs, between)
    assert found.seeds == 2 and found.words.endswith(" (2 of 3 seeds)")
    assert found.cost == np.median(runs.units_to(between))


@pytest.mark.parametrize(
    ("number", "words"), [(2.5e-3, "2.5e-3"), (1e-12, "1.0e-12"), (3.0, "3.0e0"), (1e30, "1.0e30")]
)
def test_numbers_are_brief(number: float, words: str) -> None:
    assert brief(number) == words


@pytest.mark.parametrize(("level", "words"), [(1e-6, "1e-6"), (2.5e-3, "2.5e-3"), (0.125, "1.25e-1")])
def test_levels_are_short_and_exact(level: float, words: str) -> None:
    assert short(level) == words
    assert float(short(level)) == level


@pytest.mark.parametrize(
    ("parts", "words"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), ([], "")]
)
def test_lists_are_said_as_one_says_them(parts: list[str], words: str) -> None:
    assert join_names(parts) == words
