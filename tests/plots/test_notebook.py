"""What a notebook shows of results: pictures, tables, and how far a run is."""

from __future__ import annotations

import io
import sys

import pytest

import roundelay as rl
from roundelay.paper.report.writing import for_a_program
from roundelay.plots import plot_convergence
from roundelay.shown import watched


@pytest.fixture(scope="module")
def run() -> rl.Run:
    problem, network = rl.paper_least_squares(5, 6, 2), rl.ring(5)
    return rl.simulate(rl.PIADMM1(), problem, network, 200, transcript=True, engine="python", progress=False)


def test_figures_are_pictures(run: rl.Run) -> None:
    for figure in (plot_convergence({"a": run}), rl.audit(run).figure()):
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_runs_audits_and_comparisons_are_tables(run: rl.Run) -> None:
    assert run.problem is not None
    found = rl.compare([rl.IADMM()], run.problem, rl.ring(5), seeds=[0], units=100, engine="python", progress=False)
    for shown, words in ((run, "objective_gap"), (rl.audit(run), "attack"), (found, "to 1e-3")):
        page = shown._repr_html_()  # type: ignore[attr-defined]
        assert "<table" in page and words in page


@pytest.mark.usefixtures("in_a_notebook")
def test_a_long_run_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    rl.simulate(rl.IADMM(), rl.paper_least_squares(5, 6, 2), rl.ring(5), 200, engine="python")
    assert "I-ADMM" in sys.stderr.getvalue() and "/200" in sys.stderr.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("5,643", "5643"),
        ("never", "inf"),
        ("1.2e-05", "1.2e-05"),
        ("-1,234,567.5", "-1234567.5"),
        ("12 of 20", "12 of 20"),
        ("a, b", "a, b"),
    ],
)
def test_tables_hold_numbers_for_programs(cell: str, number: str) -> None:
    assert for_a_program(cell) == number
