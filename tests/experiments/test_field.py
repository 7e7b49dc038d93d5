"""The table of the whole field: every method has its cell, and an interrupted run goes on where it was."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.algorithm import Algorithm
from roundelay.comparison import field
from roundelay.comparison.field import (
    Cell,
    FieldPanel,
    best_of,
    field_as_csv,
    field_as_markdown,
    measure_cell,
    run_field,
)
from roundelay.comparison.field_methods import ENTRIES
from roundelay.comparison.ground import geometric_marks
from roundelay.registry import registered

TINY = FieldPanel("least squares", 8, 2)
# They end of themselves, and are for quadratics alone.
QUADRATIC = ["one pass", "Sealed laps (normal equations)", "Sealed laps (conjugate gradients)"]


def test_every_algorithm_of_the_package_is_in_the_field() -> None:
    kinds = {kind.__name__ for kind in registered(Algorithm).values()}
    problem = rl.paper_least_squares(agents=30)
    entered = {type(entry.given("least squares", problem)).__name__ for entry in ENTRIES}
    assert kinds - entered == set()


@pytest.mark.parametrize("kind", ["least squares", "logistic"])
def test_every_given_setting_can_be_run_on_its_problem_or_says_why_not(kind: field.Kind) -> None:
    panel = FieldPanel(kind, 30, 2)
    problem, network = panel.problem(0), panel.network(0)
    refused = []
    for entry in ENTRIES:
        algorithm = entry.given(kind, problem)
        gossip = hasattr(algorithm.parts(), "mixing")
        steps = {"iterations": 2} if gossip else {} if entry.name in QUADRATIC else {"hops": 40}
        try:
            run = rl.simulate(algorithm, problem, network, engine="python", **steps)
        except ValueError:
            refused.append(entry.name)
        else:
            assert run.steps > 0 and np.isfinite(run.x).all()
    assert refused == ([] if kind == "least squares" else QUADRATIC)


def test_a_cell_is_the_median_of_what_its_runs_say() -> None:
    cell = measure_cell(TINY, "I-ADMM", 3, 4)
    # The same rows of the history, since between two of them the error is interpolated.
    hops = int(field.TOKEN_UNITS[2])
    runs = rl.simulate(
        rl.IADMM(rho=10.0), TINY.problem, TINY.network, hops,
        seeds=range(3), record=geometric_marks(hops), tolerance=5e-7, progress=False,
    )  # fmt: skip
    assert cell.given == sorted(runs.units_to(1e-6))[1]
    assert cell.tuned is not None and cell.exact and cell.from_paper
    biased = measure_cell(TINY, "DGD", 2, 4)
    assert math.isinf(biased.given) and "floor" in biased.given_words and biased.tuned is None
    once = measure_cell(TINY, "one pass", 2, 4)
    assert once.given <= 8 * 2.5 + 7 and once.tuned is None


def test_what_is_there_is_not_measured_again(tmp_path: Path) -> None:
    few = [entry for entry in ENTRIES if entry.name in ("one pass", "WPG")]
    told: list[tuple[str, int, int]] = []
    cells = run_field(tmp_path, [TINY], few, 2, 3, processes=1, report=lambda *args: told.append(args))
    assert [cell.method for cell in cells] == ["WPG", "one pass"] and told[-1] == ("cells", 2, 2)
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.json")}
    gone = next(file for file in tmp_path.glob("*.json") if "WPG" in file.name)
    gone.unlink()
    again = run_field(tmp_path, [TINY], few, 2, 3)
    assert again == cells
    # A cell does not depend on what else is measured.
    assert run_field(tmp_path / "more", [TINY], few[1:], 2, 3, processes=1) == cells[1:]
    assert run_field(tmp_path, [TINY], few[1:], 3, 3)[0].seeds == 3  # another effort is another cell
    after = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.json")}
    assert [name for name in before if before[name] != after[name]] == [gone.name]
    table = field_as_markdown(again)
    assert "| WPG |" in table and "I-ADMM at its better parameters not there" in table
    assert len(list(csv.DictReader(field_as_csv(again).splitlines()))) == 2
    # The bound stands below the methods, for the numbers of the panel's own problems.
    problems = [TINY.problem(seed) for seed in range(field.SEEDS[2])]
    bound = np.median([rl.least_hops(1e-6, 8, 2, problem.L, problem.mu) for problem in problems])
    assert f"| lower bound for tours | {bound:,.0f} |" in table


def test_the_reading_names_all_that_need_fewer_units() -> None:
    def cell(method: str, given: float, tuned: float | None) -> Cell:
        return Cell(method, TINY.title, True, False, given, "", "", tuned, "", "", "", 3)

    cells = [
        cell("I-ADMM", 900.0, 800.0),
        cell("WPG", 850.0, 700.0),
        cell("DGD", math.inf, None),
        cell("NIDS", 2e4, 1e4),
    ]
    assert [best_of(entry) for entry in cells] == [800.0, 700.0, math.inf, 1e4]
    assert "I-ADMM at its better parameters 800; fewer units: WPG (700)." in field_as_markdown(cells)
