"""What laps cost in units, bytes and seconds, by hand, and what a history, a comparison and a field make of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.comparison.field import FieldPanel, measure_cell
from roundelay.comparison.field_methods import ENTRIES
from roundelay.comparison.ground import units_a_step
from tests.sealed.support import logistic, plain_functions, simulate, squares

P, N = 3, 5
PROBLEM = squares(N, P, 1)
TRIANGLE = P * (P + 1) // 2
STAR = rl.star(N)  # 8 hops a lap: through the middle and back for every leaf

# The numbers a hop carries in every lap, told and answered; the last lap says how close the point is.
NORMAL = [P + TRIANGLE, P + P, 1]
BY_CG = [P, P + P, *[1 + P + P] * (P - 1), 1, P, 1]


@pytest.mark.parametrize("network", [rl.ring(N), STAR], ids=["cycle", "covering walk"])
@pytest.mark.parametrize(("optimiser", "numbers"), [("normal-equations", NORMAL), ("conjugate-gradients", BY_CG)])
@pytest.mark.parametrize("wide", [False, True])
def test_units_and_bytes_by_hand(network: rl.Network, optimiser: str, numbers: list[int], wide: bool) -> None:
    run, hops = simulate(rl.SealedLaps(optimiser, wide=wide), PROBLEM, network), len(network.tour().order)
    assert hops == (N if network is not STAR else 8)
    sent = hops * np.cumsum([0, *numbers])
    np.testing.assert_array_equal(run.history["hop"], hops * np.arange(len(numbers) + 1))
    np.testing.assert_allclose(run.history["units"], sent / P, rtol=1e-15)
    told = {"normal-equations": [0, P, 1], "conjugate-gradients": [0, P, *[1 + P] * (P - 1), 1, 0, 1]}[optimiser]
    words = np.subtract(numbers, told) * (2 if wide else 1)
    np.testing.assert_array_equal(run.history["bytes"], 8 * hops * np.cumsum([0, *np.add(told, words)]))
    assert run.units == run.history["units"].iloc[-1] and run.hops == run.steps == hops * len(numbers)
    np.testing.assert_array_equal(run.visits, np.full(N, len(numbers) - 1))


def test_between_two_laps_nothing_is_reached() -> None:
    """All agents move at the end of a lap, so that a level is paid for in whole laps."""
    run = simulate(rl.SealedLaps("normal-equations"), PROBLEM)
    for level in (1e-3, 1e-6, 1e-9):
        assert run.units_to(level) == N * sum(NORMAL[:2]) / P
    assert run.units_to(0.5, "accuracy") == N * sum(NORMAL[:2]) / P and run.units_to(1e-30) == math.inf
    np.testing.assert_allclose(run.history["error"], run.history["token_error"])
    assert (run.history["consensus"] == 0.0).all()


def test_the_history_is_that_of_the_points_that_were_told() -> None:
    run = simulate(rl.SealedLaps("lbfgs"), PROBLEM)
    distance = np.linalg.norm(run.record.tokens - PROBLEM.optimum, axis=1) / np.linalg.norm(PROBLEM.optimum)
    np.testing.assert_allclose(run.history["error"], distance)
    gaps = PROBLEM.objective_gaps(run.record.tokens)
    np.testing.assert_allclose(run.history["objective_gap"], np.maximum(gaps, 0.0), atol=1e-9)
    np.testing.assert_array_equal(run.record.tokens[-1], run.estimate)


# ---------------------------------------------------------------- networks as they are


def test_a_lap_takes_the_time_of_its_hops_and_of_every_agents_work() -> None:
    conditions = rl.NetworkConditions(latency=0.5, compute=2.0)
    run = simulate(rl.SealedLaps("normal-equations"), PROBLEM, conditions=conditions)
    a_lap = N * (0.5 + 2.0)  # and nobody works in the lap that says it is over
    np.testing.assert_allclose(run.history["seconds"], [0.0, a_lap, 2.0 * a_lap, 2.0 * a_lap + N * 0.5])
    relayed = simulate(rl.SealedLaps("normal-equations"), PROBLEM, STAR, conditions=conditions)
    np.testing.assert_allclose(relayed.history["seconds"].iloc[1], 8 * 0.5 + N * 2.0)


def test_what_is_lost_is_sent_again_and_paid_for_and_changes_nothing_else() -> None:
    chance = 0.4
    runs = [
        simulate(
            rl.SealedLaps("lbfgs"), PROBLEM, seed=seed, conditions=rl.NetworkConditions(loss=rl.BernoulliLoss(chance))
        )
        for seed in range(40)
    ]
    bare = simulate(rl.SealedLaps("lbfgs"), PROBLEM)
    for run in runs:
        np.testing.assert_array_equal(run.record.tokens, bare.record.tokens)
    paid = np.array([run.units for run in runs]) / bare.units
    assert paid.min() >= 1.0 and abs(paid.mean() - 1.0 / (1.0 - chance)) < 0.08


def test_noise_is_refused_in_words() -> None:
    with pytest.raises(
        ValueError, match="Sealed laps send words of 64 bits, to which a link can't add noise: leave `noise` out"
    ):
        simulate(rl.SealedLaps(), PROBLEM, conditions=rl.NetworkConditions(noise=0.1))


# ---------------------------------------------------------------- compared


def test_a_comparison_gives_it_a_row_on_every_axis() -> None:
    methods = [rl.IADMM(), rl.SealedLaps(), rl.SealedLaps("newton")]
    found = rl.compare(
        methods, PROBLEM, rl.ring(N), seeds=[0, 1], levels=[1e-6], conditions=rl.NetworkConditions(latency=0.01),
        engine="python", progress=False,
    )  # fmt: skip
    names = [row.name for row in found.rows]
    assert names == ["I-ADMM", "Sealed laps (optimiser=Auto())", "Sealed laps (optimiser=Newton())"]
    table = found.table()
    assert table["units_to_1e-6"].iloc[1] == N * sum(NORMAL[:2]) / P
    assert table["bytes_to_1e-6"].iloc[1] == 8 * N * sum(NORMAL[:2])
    assert table["seconds_to_1e-6"].iloc[1] == pytest.approx(2 * N * 0.01)
    assert "optimiser=NormalEquations()" in found.rows[1].parameters
    refused = rl.compare([rl.SealedLaps("newton")], plain_functions(N, P, 1), rl.ring(N), seeds=[0], progress=False)
    assert refused.rows[0].words.startswith("Newton's method needs Hessians, which the problem does not have")


@pytest.mark.parametrize("optimiser", ["conjugate-gradients", "lbfgs", "newton"])
def test_a_comparison_keeps_to_its_budget(optimiser: str) -> None:
    problem = (
        logistic(N, 12, 1) if optimiser == "newton" else squares(N, 12, 1)
    )  # so many laps that one is a small part
    whole = simulate(rl.SealedLaps(optimiser), problem, tolerance=5e-10)
    budget = 0.6 * whole.units
    short = rl.compare([rl.SealedLaps(optimiser)], problem, rl.ring(N), seeds=[0], units=budget, progress=False)
    assert short.rows[0].costs["units"][-1].why_not == "budget"
    assert 0.5 * budget < short.ensembles[short.rows[0].name][0].units < 1.5 * budget
    assert units_a_step(rl.SealedLaps("lbfgs"), PROBLEM, rl.ring(N)) == (2 * P + 1) / P


def test_there_is_nothing_to_tune_which_is_said() -> None:
    tuning = rl.tune(rl.SealedLaps(), PROBLEM, rl.ring(N), progress=False)
    assert tuning.words.startswith("Sealed laps has no parameter to tune: it is taken as it is.")
    assert tuning.algorithm == rl.SealedLaps() and tuning.evaluations == 0


@pytest.mark.parametrize("kind", ["least squares", "logistic"])
def test_its_cells_of_the_field_have_nothing_tuned(kind: Any) -> None:
    panel = FieldPanel(kind, 8, 2)
    names = [entry.name for entry in ENTRIES if entry.method is rl.SealedLaps]
    assert len(names) == 4 and names[0] == "Sealed laps (normal equations)"
    cells = [measure_cell(panel, name, 2, 4) for name in names]
    applies = [kind == "least squares", kind == "least squares", True, True]
    assert [math.isfinite(cell.given) for cell in cells] == applies
    assert all(cell.tuned is None and cell.tuning == "nothing to tune" for cell in cells)
    if kind == "least squares":
        laps = [2 + 3, 2 + 2]
        assert cells[0].given == 8 * sum(laps) / 2
    else:
        assert "are for quadratic functions such as least squares, which these are not" in cells[0].given_words


# ---------------------------------------------------------------- drawn


def test_its_curve_goes_in_steps(tmp_path: Path) -> None:
    runs = {
        "laps": simulate(rl.SealedLaps("lbfgs"), PROBLEM),
        "token": simulate(rl.IADMM(), PROBLEM, hops=100, engine="python"),
    }
    figure = rl.plot_convergence(runs)
    styles = [line.get_drawstyle() for line in figure.axes[0].lines]
    assert styles == ["steps-post", "default"]
    assert rl.save_figure(figure, tmp_path / "laps.png").stat().st_size > 1000
    several = rl.simulate(rl.SealedLaps(), PROBLEM, rl.ring(N), seeds=range(3), progress=False)
    assert rl.plot_convergence({"laps": several}).axes[0].lines[0].get_drawstyle() == "steps-post"
