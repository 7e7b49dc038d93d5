import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from roundelay.comparison.ground import ENOUGH, checked_ground, geometric_marks

Made = Callable[[int], object]

SEEDS = range(3)
BUDGET = 1200
LEVELS = (1e-1, 1e-2)
# Converges; stays at a floor; diverges; a gossip method; can't be slower than the budget; is exact.
CHOSEN = {
    "I-ADMM": rl.IADMM(rho=2.0),
    "noisy": rl.PIADMM2(rho=2.0, sigma=2e-2),
    "wild": rl.WPG(alpha=50.0),
    "D-ADMM": rl.DADMM(c=0.5),
    "slow": rl.WPG(alpha=1e-4),
    "one pass": rl.OnePass(),
}


@pytest.fixture(scope="module")
def comparison(problem: Made, network: Made) -> rl.Comparison:
    return rl.compare(
        CHOSEN, problem, network, seeds=SEEDS, units=BUDGET, levels=LEVELS, engine="python", progress=False,
        conditions=rl.NetworkConditions(latency=0.01, compute=0.002),
    )  # fmt: skip


def test_every_method_has_a_row_and_says_what_became_of_it(comparison: rl.Comparison) -> None:
    rows = {row.name: row for row in comparison.rows}
    assert list(rows) == list(CHOSEN)
    whys = {name: [cost.why_not for cost in row.costs["units"]] for name, row in rows.items()}
    assert whys["I-ADMM"] == whys["D-ADMM"] == whys["one pass"] == ["", ""]
    assert whys["noisy"][1] == "floor" and "floor" in rows["noisy"].words
    assert whys["wild"] == ["diverged"] * 2 and "diverged" in rows["wild"].words
    assert rows["wild"].stops == {"diverged": len(SEEDS)}
    assert whys["slow"] == ["budget"] * 2 and "not in 1,200 (error " in rows["slow"].words
    assert rows["I-ADMM"].words == "It reached every level."


@pytest.mark.parametrize("axis", ["units", "bytes", "seconds"])
def test_costs_are_the_medians_of_the_runs(comparison: rl.Comparison, axis: str) -> None:
    table = comparison.table()
    for name, ensemble in comparison.ensembles.items():
        for level, word in zip(LEVELS, ("1e-1", "1e-2"), strict=True):
            expected = np.median([run.cost_to(level, axis) for run in ensemble])
            assert table.loc[name, f"{axis}_to_{word}"] == expected
            assert table.loc[name, f"seeds_at_{word}"] == np.isfinite(ensemble.units_to(level)).sum()
        last = np.median([run.history["error"].iloc[-1] for run in ensemble])
        assert table.loc[name, "final_error"] == last


def test_the_cost_does_not_hang_on_the_rows_of_the_history(
    comparison: rl.Comparison, problem: Made, network: Made
) -> None:
    run = rl.simulate(CHOSEN["I-ADMM"], problem(1), network(1), BUDGET, seed=1, engine="python", record=1)
    ours = comparison.ensembles["I-ADMM"][1]
    for level in LEVELS:
        assert ours.units_to(level) == pytest.approx(run.units_to(level), rel=0.01)


def test_a_run_stops_once_the_last_level_is_behind_it(comparison: rl.Comparison) -> None:
    for name in ("I-ADMM", "D-ADMM"):
        for run in comparison.ensembles[name]:
            assert run.stop == "tolerance"
            assert run.history["error"].iloc[-1] <= 0.5 * min(LEVELS) < run.history["error"].iloc[-2]


def test_the_text_has_every_method_on_every_axis_with_its_parameters(comparison: rl.Comparison) -> None:
    text = str(comparison)
    assert "median of 3 seeds" in text and "1,200 units" in text
    for axis in ("units", "bytes", "seconds"):
        assert f"\n{axis} " in text
    for row in comparison.rows:
        lines = [line for line in text.splitlines() if line.startswith(f"{row.name} ")]
        assert len(lines) >= 4, row.name
        assert row.parameters.split(",")[0] in lines[3]
    assert "alpha=0.0001" in text and "rho=2.0" in text
    assert max(map(len, text.splitlines())) <= 110


def test_a_method_that_is_refused_stays_with_its_refusal() -> None:
    logistic = rl.paper_logistic(6, 10, 2, seed=0, ridge=0.1)
    found = rl.compare(
        [rl.OnePass(), rl.WPG(alpha=1.0)], logistic, rl.ring(6), seeds=[0], units=500, levels=[1e-2], engine="python",
        progress=False,
    )  # fmt: skip
    refused, run = found.rows
    assert refused.costs["units"][0].why_not == "refused" and "normal equations" in refused.words
    assert run.costs["units"][0].why_not == ""
    assert found.axes == ("units", "bytes") and list(found.ensembles) == ["WPG"]
    assert "refused" in found.text() and "normal equations" in found.text().replace("\n", " ")
    assert found.table().loc["one pass", "units_to_1e-2"] == np.inf
    assert "one pass" in found.figure().axes[0].get_title(loc="left")


def test_with_nothing_but_refusals_there_is_a_table_and_no_figure(tmp_path: Path) -> None:
    logistic = rl.paper_logistic(4, 5)
    found = rl.compare([rl.OnePass()], logistic, rl.ring(4), seeds=[0], units=100, progress=False)
    assert len(found.rows) == 1 and not found.ensembles
    with pytest.raises(ValueError, match="nothing to draw"):
        found.figure()
    assert [path.name for path in found.save(tmp_path)] == ["table.csv", "table.txt", "table.tex"]


def test_a_budget_is_spent_also_where_messages_are_censored(problem: Made, network: Made) -> None:
    """Estimated from messages that are all sent, the run would end long before the budget."""
    place = checked_ground(problem, network, [0, 1, 2], None, "python")
    plain = place.run(rl.DADMM(c=0.5), 500.0, None)
    assert all(500 <= run.units <= 500 + 2 * len(network(0).edges) for run in plain)
    censored = place.run(rl.COCA(c=0.5, alpha=1.0, rho=0.9), 500.0, None)
    assert all(run.units >= ENOUGH * 500 for run in censored)
    assert all(quiet.steps > loud.steps for quiet, loud in zip(censored, plain, strict=True))


def test_problems_and_networks_are_made_once_for_all_methods() -> None:
    made: list[int] = []

    def problem(seed: int) -> rl.LeastSquares:
        made.append(seed)
        return rl.paper_least_squares(4, 5, seed=seed)

    rl.compare([rl.IADMM(), rl.WPG(), rl.OnePass()], problem, rl.ring(4), seeds=[3, 4], units=50, engine="python")
    assert sorted(made) == [3, 4]


def test_other_columns_have_their_own_levels(problem: Made, network: Made) -> None:
    found = rl.compare(
        [rl.IADMM(rho=2.0)], problem, network, seeds=[0], units=900, levels=[1e-3], column="objective_gap",
        engine="python", progress=False,
    )  # fmt: skip
    (run,) = found.ensembles["I-ADMM"]
    assert run.stop == "hops"
    assert found.table().loc["I-ADMM", "units_to_1e-3"] == run.units_to(1e-3, "objective_gap") < 900


def test_progress_is_told_method_by_method(problem: Made, network: Made) -> None:
    told: list[tuple[str, int, int]] = []
    rl.compare(
        [rl.IADMM(), rl.WPG()], problem, network, seeds=[0, 1], units=50, engine="python",
        progress=lambda *words: told.append(words),
    )  # fmt: skip
    assert told == [(name, done, 2) for name in ("I-ADMM", "WPG") for done in (0, 1, 2)]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_keeps_what_there_is_and_names_what_there_is_not(problem: Made, network: Made) -> None:
    """Ctrl-C during a run that would take hours: the noise keeps it from ever stopping by itself."""

    def press_once_it_runs() -> None:
        while signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # the run takes it over when it begins
            time.sleep(0.001)
        signal.raise_signal(signal.SIGINT)

    def press(name: str, done: int, total: int) -> None:
        if name == "PI-ADMM2" and done == 0:
            threading.Thread(target=press_once_it_runs, daemon=True).start()

    found = rl.compare(
        [rl.IADMM(rho=2.0), rl.PIADMM2(sigma=1.0), rl.WPG()], problem, network, seeds=[0], units=1e9, levels=[1e-3],
        engine="python", progress=press,
    )  # fmt: skip
    assert found.interrupted and list(found.ensembles) == ["I-ADMM"]
    assert [row.costs["units"][0].why_not for row in found.rows] == ["", "interrupted", "interrupted"]
    assert "interrupted" in found.text()


def test_what_is_saved_can_be_read_again(comparison: rl.Comparison, tmp_path: Path) -> None:
    written = replace(comparison, axes=("seconds",)).save(tmp_path / "new" / "folder")
    assert [path.name for path in written] == [
        "table.csv",
        "table.txt",
        "table.tex",
        "error_over_seconds.png",
        "error_over_seconds.svg",
    ]
    table = pd.read_csv(written[0], index_col="method", skiprows=6)
    pd.testing.assert_frame_equal(table[["seconds_to_1e-2"]], comparison.table()[["seconds_to_1e-2"]])
    assert "seconds" in written[1].read_text(encoding="utf-8")


@pytest.mark.parametrize("over", ["units", "bytes", "seconds"])
def test_the_figure_has_every_method_that_was_run(comparison: rl.Comparison, over: str) -> None:
    axis = comparison.figure(over).axes[0]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == list(CHOSEN)
    assert axis.get_xscale() == "log" and f"({over})" in axis.get_xlabel().replace("simulated ", "")
    assert axis.get_ylim()[0] == 0.2 * min(LEVELS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seeds": 3}, "give a list of seeds"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [1, 1]}, "given twice"),
        ({"seeds": [-1]}, "The seed is -1"),
        ({"levels": []}, "at least one error"),
        ({"levels": [0.0]}, "positive"),
        ({"levels": 1e-3}, "give a list of errors"),
        ({"units": 0}, "positive"),
        ({"column": "token_error"}, "use one of error, accuracy"),
    ],
)
def test_what_is_wrong_for_all_methods_is_refused_before_any_runs(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rl.compare([rl.IADMM()], rl.paper_least_squares(4, 5), rl.ring(4), **options)


def test_a_network_that_does_not_fit_is_refused_with_its_seed() -> None:
    with pytest.raises(ValueError, match="The problem of seed 0 has 4 agents but its network has 5"):
        rl.compare([rl.IADMM()], rl.paper_least_squares(4, 5), rl.ring(5))


def test_rows_are_those_of_the_marks(comparison: rl.Comparison) -> None:
    (run, *_) = comparison.ensembles["slow"]
    assert run.history["hop"].tolist() == sorted({*geometric_marks(BUDGET), BUDGET})
