from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from roundelay.cli.app import app
from roundelay.paper import pieces, report
from roundelay.paper.counting import count_system
from roundelay.paper.pieces import (
    FULL,
    QUICK,
    Measured,
    Piece,
    code_fingerprint,
    read_measured,
    run_pieces,
    write_measured,
)
from roundelay.paper.report import write_files
from roundelay.paper.report.markup import figures_of
from roundelay.paper.report.writing import write_numbers, write_tables
from roundelay.paper.reproduction import FIGURES, all_pieces, assemble, figure_named
from roundelay.paper.theory import rises_of
from roundelay.plots.chart import ChartFigure
from roundelay.shown.table import Table
from tests.experiments.squares import PIECES, fail

# ---------------------------------------------------------------- pieces


def test_the_full_report_has_at_least_twenty_seeds():
    assert FULL.seeds >= 20
    assert QUICK.seeds < FULL.seeds


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    def interrupt(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_pieces(PIECES, QUICK, tmp_path, processes=1, report=interrupt)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert 2 <= len(kept) < len(PIECES)
    found = run_pieces(PIECES, QUICK, tmp_path, processes=1)
    assert [found[piece.name].numbers["square"] for piece in PIECES] == [0.0, 1.0, 4.0, 9.0, 16.0]
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())


def test_what_was_kept_counts_for_its_code_and_its_effort_only(tmp_path):
    stale = tmp_path / "quick-0123456789ab"
    stale.mkdir()
    other = tmp_path / "full-0123456789ab"
    other.mkdir()
    quick = run_pieces(PIECES[:1], QUICK, tmp_path, processes=1)
    assert not stale.exists()
    assert other.exists()
    assert (tmp_path / f"quick-{code_fingerprint()}").is_dir()
    full = run_pieces(PIECES[:1], FULL, tmp_path, processes=1)
    assert quick[PIECES[0].name].numbers["seeds"] == QUICK.seeds
    assert full[PIECES[0].name].numbers["seeds"] == FULL.seeds


def test_an_error_in_a_piece_reaches_the_reader_and_keeps_the_others(tmp_path):
    with pytest.raises(ValueError, match="can't be computed"):
        run_pieces((*PIECES, Piece("fails", fail)), QUICK, tmp_path, processes=1)
    assert len(list(tmp_path.rglob("*.json"))) >= 1


def test_a_result_comes_back_from_its_file_as_it_was(tmp_path):
    frame = pd.DataFrame({"units": [0.1, 1e-300, np.inf], "name": ["a", "b", "ü"]})
    write_measured(Measured({"one": 1.0 / 3.0, "never": np.inf}, {"frame": frame}), tmp_path / "piece.json")
    again = read_measured(tmp_path / "piece.json")
    assert again.numbers == {"one": 1.0 / 3.0, "never": np.inf}
    pd.testing.assert_frame_equal(again.tables["frame"], frame)


def test_names_of_pieces_and_files_are_unique(tmp_path):
    files = [piece.file(tmp_path) for piece in all_pieces()]
    assert len(set(files)) == len(files)


# ---------------------------------------------------------------- the report


@pytest.fixture(scope="module")
def reported(tmp_path_factory, found):
    """What the command says and writes, once the pieces are there; every figure is drawn here, without a warning."""
    folder = tmp_path_factory.mktemp("reported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "run_pieces", lambda *arguments, **options: found)
        patch.setattr(report, "write_files", lambda document, folder, **options: write_files(document, folder))
        return CliRunner().invoke(app, ["reproduce", "--quick", "--json", "--out", str(folder)]), folder


def test_two_runs_give_the_same_bytes(tmp_path, found, reported):
    """Computed twice and written twice; the pieces that draw most are among them."""
    chosen = [piece for piece in all_pieces() if piece.name in ("fig4 PI-ADMM1", "fig3 (a) N = 100, η = 0.3 PI-ADMM1", "equation counts", "six agents")]  # fmt: skip
    assert len(chosen) == 4
    for name, measured in run_pieces(chosen, QUICK, tmp_path / "again").items():
        write_measured(measured, tmp_path / "one.json")
        write_measured(found[name], tmp_path / "other.json")
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()
    first, second, again = reported[1], tmp_path / "second", assemble(found, QUICK)
    for figure in figures_of(again):
        write_numbers(figure, second)
    write_tables(again, second)
    names = sorted(path.relative_to(first) for path in first.rglob("*.csv"))
    assert len(names) > 20
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_every_figure_has_data_and_says_how_it_was_made(found):
    document = assemble(found, QUICK)
    items = [item for section in document.sections for item in section.items]
    figures = [item for item in items if isinstance(item, ChartFigure)]
    assert {figure.name for figure in figures} == {entry.name for entry in FIGURES}
    for figure in figures:
        assert figure.command.startswith(f"roundelay reproduce {figure.name}")
        assert figure.seeds
        for chart in figure.charts:
            assert chart.series
            assert all(np.isfinite(series.y).any() for series in chart.series)
    tables = [item for item in items if isinstance(item, Table)]
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)


def test_every_claim_points_to_something_in_the_report(found):
    document = assemble(found, QUICK)
    names = {item.name for section in document.sections for item in section.items}
    assert {claim.figure for claim in document.claims} - {""} <= names


def test_a_figure_by_its_name(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "fig1", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for file in ("figures/fig1.png", "figures/fig1.svg", "data/fig1.csv"):
        assert (tmp_path / file).stat().st_size > 100
        assert file in result.stdout


def test_an_unknown_figure_is_refused_in_words():
    result = CliRunner().invoke(app, ["reproduce", "fig7"])
    assert result.exit_code == 2
    assert "There is no figure 'fig7': use one of fig1, fig2" in result.stderr


def test_only_what_a_figure_needs_is_computed():
    assert all(piece.name.startswith("fig3") for piece in figure_named("fig3").pieces)
    assert len(figure_named("fig3").pieces) == 18


# ---------------------------------------------------------------- small parts


def test_rises_are_counted_above_rounding():
    assert rises_of(np.array([3.0, 2.0, 2.0 + 1e-15, 1.0, 1.5])).tolist() == [False, False, False, True]


@pytest.mark.parametrize("agents", [1, 3, 7])
@pytest.mark.parametrize("last", [4, 11])
def test_the_papers_counts_for_other_sizes(agents, last):
    turns = np.arange(last + 1) % agents
    plain = count_system(turns, agents, steps_unknown=False)
    assert (plain.equations, plain.unknowns) == (2 * last + agents + 2, 2 * last + 2 * agents + 2)
    assert plain.rank == plain.equations
    unknown = count_system(turns, agents, steps_unknown=True)
    assert (unknown.equations, unknown.unknowns) == (2 * last + agents + 2, 3 * last + 2 * agents + 3)


def test_the_claims_as_json(reported):
    result, folder = reported
    assert result.exit_code == 0, result.output
    claims = json.loads(result.stdout)["claims"]
    assert {claim["verdict"] for claim in claims} == {"holds", "holds only if", "does not hold"}
    assert (folder / "report.html").is_file()
