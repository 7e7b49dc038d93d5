"""A site whose rows are read by batches adds to every sum what it adds with the rows in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from roundelay.agents.agreement.plan import Promise, Stopping, Task
from roundelay.agents.agreement.policy import Policy
from roundelay.agents.data.by_batches import BatchedRowsFit, read_by_batches
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.marks import rows_in
from roundelay.agents.data.objectives import slopes_of
from roundelay.agents.data.offering import offer
from roundelay.agents.data.reading import read_own_rows
from roundelay.agents.site.rehearsal import Rehearsal, fit_by_all_others, prepare_ring
from roundelay.algorithms.sealed.questions import Asked, Place, answers
from roundelay.algorithms.sealed.sealed_laps import SealedLaps
from roundelay.batches import PassError, Passes, folder as folders, open_folder
from roundelay.batches.carried import _sizes
from roundelay.cli.agent import Reading
from roundelay.cli.app import app
from roundelay.cli.ring.up import run_all
from roundelay.kernels import Vector
from roundelay.problems.carriers import about
from tests.agents.processes import wait_until
from tests.agents.small_ring import small_ring

HEADER = ["age [years]", "dose", "outcome", "sick"]
HERE = Passes(2)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "ROWS_A_PART", 60)
    monkeypatch.setattr(folders, "ROWS_A_BATCH", 37)


def rows_of(seed: int, count: int = 400) -> dict[str, Vector]:
    draws = np.random.default_rng(seed)
    age, dose = 50.0 + 15.0 * draws.standard_normal(count), draws.exponential(2.0, count)
    outcome = 0.3 * age - 2.0 * dose + draws.standard_normal(count)
    chance = 1.0 / (1.0 + np.exp(-0.1 * (age - 50.0) - 0.3 * (dose - 2.0)))
    return dict(zip(HEADER, (age, dose, outcome, (draws.random(count) < chance).astype(float)), strict=True))


def write(path: Path, rows: dict[str, Vector], pieces: int = 3) -> Path:
    """The rows in some files of a folder, or in one file."""
    if path.suffix:
        parquet.write_table(pyarrow.table(rows), path, row_group_size=100)
        return path
    path.mkdir(parents=True)
    for number, part in enumerate(np.array_split(np.arange(len(rows[HEADER[0]])), pieces)):
        some = {name: column[part] for name, column in rows.items()}
        parquet.write_table(pyarrow.table(some), path / f"{number}.parquet", row_group_size=45)
    return path


def task_of(kind: str, **options: object) -> Task:
    target = "sick" if kind == "logistic" else "outcome"
    header = [name for name in HEADER if name in ("age [years]", "dose", target)]
    return replace(fit_by_all_others(header, target, kind), **options)  # type: ignore[arg-type]


def both(folder: Path, task: Task, rows: dict[str, Vector]) -> tuple[BatchedRowsFit, RowsFit]:
    whole = RowsFit(task, read_own_rows(write(folder / "rows.parquet", rows), task))
    return read_by_batches(write(folder / "rows", rows), task, HERE, task.problem.is_quadratic), whole


def told_by(*fits: BatchedRowsFit | RowsFit) -> tuple[Vector, ...]:
    """The totals of all sums before the fit, over these sites."""
    told: tuple[Vector, ...] = ()
    for _ in fits[0].sums:
        total = np.sum([one.summand(told, len(fits)) for one in fits], axis=0)
        told = (*told, np.concatenate([[float(len(fits))], total]))
        for one in fits:
            one.check_told(told, len(fits))
    return told


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("least_squares", {}), ("least_squares", {"intercept": False, "standardise": False}), ("logistic", {"ridge": 0.01}),
        ("logistic", {"intercept": False}), ("huber", {"ridge": 0.1}),
    ],
)  # fmt: skip
def test_all_that_a_site_adds_is_the_same(tmp_path: Path, kind: str, options: dict[str, object]) -> None:
    task = task_of(kind, **options)
    found, whole = both(tmp_path, task, rows_of(1))
    other = RowsFit(task, read_own_rows(write(tmp_path / "other.parquet", rows_of(2, 150)), task))
    told, expected = told_by(found, other), told_by(whole, other)
    for one, two in zip(told, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)
    mine, theirs = found.problem(told), whole.problem(expected)
    assert mine.dim == theirs.dim == task.dim
    place = Place(np.full(task.dim, 0.3), np.full(task.dim, -0.1))
    asked = [Asked.GRADIENT, Asked.VALUE_GRADIENT_AND_HESSIAN, Asked.HESSIAN_TIMES_DIRECTION]
    for one in asked:
        np.testing.assert_allclose(answers(mine, one, place), answers(theirs, one, place), rtol=1e-10, atol=1e-10)
    assert found.all_rows(told) == whole.all_rows(expected) == 550
    assert found.no_minimiser(told) == whole.no_minimiser(expected)
    assert found.repeatable and found.makes_passes
    if task.problem.is_quadratic:
        np.testing.assert_allclose(found.slope, whole.slope, rtol=1e-10)
        np.testing.assert_allclose(mine.prox(0, place.point, 2.0), theirs.prox(0, place.point, 2.0), rtol=1e-9)


def test_columns_that_are_about_few_rows_are_counted(tmp_path: Path) -> None:
    """A dose that nobody has but three, in the last file; and an age that all rows have."""
    rows = rows_of(10)
    rows["dose"][:] = 4.0
    rows["dose"][[250, 320, 399]] = 5.0
    task = task_of("logistic", standardise=False)
    found, whole = both(tmp_path, task, rows)
    assert list(found.beside_most) == list(whole.beside_most)
    assert found.breaches(Policy(), ()) == whole.breaches(Policy(), ())
    assert len(found.breaches(Policy(), ())) == 1 and '"' not in found.breaches(Policy(), ())[0]
    rows["dose"] = rows_of(10)["dose"]
    assert not read_by_batches(write(tmp_path / "others", rows), task, HERE).breaches(Policy(), ())


@pytest.mark.parametrize("kind", ["logistic", "huber"])
def test_as_many_rows_carry_an_answer(tmp_path: Path, kind: str) -> None:
    """Near, far, very far, from the other side, and one step beside a point before."""
    task = task_of(kind, ridge=0.1)
    found, whole = both(tmp_path, task, rows_of(3))
    told = told_by(whole, whole)
    (mine,), (theirs,) = found.watched(told, False), whole.watched(told, False)
    start, bent = np.zeros(task.dim), True
    points = [np.full(task.dim, size) for size in (0.2, 3.0, 40.0, 4000.0, -4000.0)] + [
        np.array([0.2, 0.2, 0.2 + 1e-7])[: task.dim]
    ]
    mine_before, theirs_before = [], []
    for point in points:
        one, two = mine(point), theirs(point)
        for few in (1, 5, 1000):
            expected = two.wanted(theirs(start), few)
            assert one.wanted(mine(start), few) == pytest.approx(expected, rel=1e-9)
        for curved in (bent, False):
            expected = two.carriers(theirs_before, curved)
            assert one.carriers(mine_before, curved) == pytest.approx(expected, rel=1e-6), point
        mine_before.append(one.kept())
        theirs_before.append(two.kept())


def test_sizes_of_weights_add_up() -> None:
    """As of one vector, however it is cut; an end that is missing in some rows is missing in all."""
    weights = np.array([0.0, 1e-200, -3e-200, 2e-200, 0.0, 1e-200])
    pieces = [_sizes(piece[None], np.ones(1), 1.0) for piece in np.split(weights, [1, 3])]
    whole = pieces[0].with_others(pieces[1]).with_others(pieces[2])
    np.testing.assert_allclose(whole.about, about(weights[:, None]))
    assert whole.loss == 3.0 and whole.known == 1.0
    unknown = _sizes(weights[None], np.zeros(1), 0.0)
    assert unknown.with_others(whole).known == whole.with_others(unknown).known == 0.0
    assert _sizes(np.zeros((1, 3)), np.ones(1), 0.0).about == np.inf


def test_rows_with_an_empty_cell_are_left_out_where_that_was_agreed(tmp_path: Path) -> None:
    rows = rows_of(4)
    rows["dose"][[3, 200]], rows["sick"][399] = np.nan, np.nan
    task = task_of("logistic", missing="drop")
    found, whole = both(tmp_path, task, rows)
    assert found.dropped == whole.rows.dropped == 3 and found.gram.rows == whole.rows.count
    point = Place(np.full(task.dim, 0.2), np.zeros(task.dim))
    told = told_by(whole, whole)
    np.testing.assert_allclose(
        answers(found.problem(told), Asked.VALUE_GRADIENT_AND_HESSIAN, point),
        answers(whole.problem(told), Asked.VALUE_GRADIENT_AND_HESSIAN, point), rtol=1e-10,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r'0\.parquet has 1 empty cell: "dose" in row 4'):
        read_by_batches(tmp_path / "rows", task_of("logistic"), HERE)


def test_the_ledger_knows_other_data(tmp_path: Path) -> None:
    task, rows = task_of("logistic"), rows_of(5)
    first = read_by_batches(write(tmp_path / "first", rows), task, HERE)
    again = read_by_batches(open_folder(tmp_path / "first"), task, Passes(1))
    changed = rows_of(5)
    changed["dose"][17] = np.nextafter(changed["dose"][17], 9.0)
    other = read_by_batches(write(tmp_path / "other", changed), task, HERE)
    assert first.digest == again.digest != other.digest
    key = b"k" * 32
    mine, theirs = first.marked(key).data, other.marked(key).data
    assert mine.rows == theirs.rows == 400 and not mine.marks
    # How many rows have changed can't be told, and that some have is; of rows that were there or were not, all count.
    assert rows_in(tmp_path, other.marked(key), [(theirs, Fraction(1)), (mine, Fraction(-1))], ["dose"]) == 0
    assert rows_in(tmp_path, other.marked(key), [(theirs, Fraction(1))], ["dose"]) == 400
    differ = [name for name in mine.columns if mine.columns[name] != theirs.columns[name]]
    assert differ == ["dose"] and first.marked(b"l" * 32).data.columns["dose"] != mine.columns["dose"]


def test_the_rings_model_is_tried_on_some_rows(tmp_path: Path) -> None:
    task = task_of("least_squares")
    found, whole = both(tmp_path, task, rows_of(6))
    assert found.tried.count == 400
    cells = np.column_stack([found.tried.features, found.tried.target])
    np.testing.assert_array_equal(cells, np.column_stack([whole.rows.features, whole.rows.target]))


def test_what_a_token_may_show_is_bounded_from_above(tmp_path: Path) -> None:
    """The few rows in the place of all are none of anybody's: products of sizes stand for them, which are never less."""
    task = task_of("least_squares")
    found, whole = both(tmp_path, task, rows_of(8))
    told = told_by(whole, whole)
    assert (slopes_of(found.problem(told)) >= slopes_of(whole.problem(told))).all()


# ---------------------------------------------------------------- refused


def test_what_can_not_be_had_by_batches_is_said(tmp_path: Path) -> None:
    where = write(tmp_path / "rows", rows_of(7))
    with pytest.raises(ValueError, match="would need many passes over the rows: plan the ring by sealed laps"):
        read_by_batches(where, task_of("logistic"), HERE, by_token=True)
    promise = Promise(1.0, 1e-6, (0.0, 0.0), (100.0, 20.0))
    with pytest.raises(ValueError, match="each record is looked at by itself"):
        read_by_batches(where, task_of("logistic", promise=promise), HERE)
    both_signs = rows_of(7)
    both_signs["sick"][267:] = 2.0 * both_signs["sick"][267:] - 1.0
    with pytest.raises(ValueError, match="both 0 and -1"):
        read_by_batches(write(tmp_path / "signs", both_signs), task_of("logistic"), HERE)
    words = {name: column for name, column in rows_of(7).items() if name != "dose"}
    (tmp_path / "words").mkdir()
    parquet.write_table(pyarrow.table(words | {"dose": ["1,5"] * 400}), tmp_path / "words" / "0.parquet")
    with pytest.raises(ValueError, match='has texts in the column "dose"'):
        read_by_batches(tmp_path / "words", task_of("logistic"), HERE)
    (tmp_path / "units").mkdir()
    for number, unit in enumerate(("years", "months")):
        named = {name.replace("years", unit): column for name, column in rows_of(7).items()}
        parquet.write_table(pyarrow.table(named), tmp_path / "units" / f"{number}.parquet")
    with pytest.raises(ValueError, match=r'1\.parquet gives the column "age" in "months"'):
        read_by_batches(tmp_path / "units", task_of("logistic"), HERE)
    huge = rows_of(7)
    huge["dose"][222] = 1e101
    with pytest.raises(ValueError, match=r"Row 89 of .*1\.parquet has a number beyond 1e"):
        read_by_batches(write(tmp_path / "huge", huge), task_of("logistic"), HERE)


def test_a_file_that_changes_while_the_ring_runs_is_refused(tmp_path: Path) -> None:
    task = task_of("logistic")
    found = read_by_batches(write(tmp_path / "rows", rows_of(9)), task, HERE)
    problem = found.problem(told_by(found, found))
    os.utime(tmp_path / "rows" / "2.parquet")
    with pytest.raises(PassError, match=r"2\.parquet has changed since its rows were first read"):
        answers(problem, Asked.GRADIENT, Place(np.full(task.dim, 0.4), np.zeros(task.dim)))


# ---------------------------------------------------------------- a ring of processes


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Rehearsal]:
    """Three sites: one has a folder, one asks DuckDB, and one has all its rows in a file."""
    names = ("Oslo", "Bergen", "Tromso")
    tables = {name: rows_of(number, 300 + 50 * number) for number, name in enumerate(names)}
    kept = [HEADER[0], HEADER[1], HEADER[3]]
    lines = {
        name: [[repr(float(table[column][row])) for column in kept] for row in range(len(table[HEADER[0]]))]
        for name, table in tables.items()
    }
    made = prepare_ring(tmp_path / "ring", kept, lines, task_of("logistic"), SealedLaps(wide=True), Stopping(1e-10))
    write(tmp_path / "oslo", tables["Oslo"])
    seats = (
        replace(made.seats[0], data=tmp_path / "oslo"),
        replace(made.seats[1], data=tmp_path / "bergen.duckdb"),
        made.seats[2],
    )
    write(tmp_path / "bergen.parquet", tables["Bergen"])
    ring = replace(made, seats=seats)
    yield ring
    ring.stop()


class Started(Rehearsal):
    """A site with a database asks it."""

    query = 'select "age [years]", dose, sick from rows'

    def start(self, seat: object, *options: str) -> None:
        more = ("--query", self.query) if str(seat.data).endswith(".duckdb") else ()  # type: ignore[attr-defined]
        super().start(seat, *more, *options)  # type: ignore[arg-type]


def test_a_ring_of_folders_queries_and_files(ring: Rehearsal, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="a query needs DuckDB")
    with duckdb.connect(str(tmp_path / "bergen.duckdb")) as connection:
        connection.sql(f"create table rows as select * from '{tmp_path / 'bergen.parquet'}'")
    started = Started(ring.ring, ring.plan, ring.seats, ring.invitations)
    try:
        run_all(started)
    finally:
        started.stop()
    rows = [RowsFit(ring.plan.task, read_own_rows(seat.folder / "rows.csv", ring.plan.task)) for seat in ring.seats]
    told = told_by(*rows)
    models = started.models()
    slopes = np.array([value for _, value in models[0].model.coefficients])
    standard = rows[0].standard(told)
    assert standard is not None
    point = np.append(slopes * standard.deviation, models[0].model.intercept + slopes @ standard.mean)
    gradient = np.sum([one.problem(told).gradient(0, point) for one in rows], axis=0)
    assert np.abs(gradient).max() < 1e-8
    assert all(one.model == models[0].model and not one.about.doubt for one in models)
    said = (ring.seats[0].folder / "output.txt").read_text()
    assert "rows of this site the loss of the model" in said and "Traceback" not in said


def test_a_killed_agent_goes_on_with_its_folder(ring: Rehearsal) -> None:
    """Asked again after the kill, the same bits come of the same files; other files are refused."""
    seats = (ring.seats[0], replace(ring.seats[1], data=ring.seats[1].folder / "rows.csv"), ring.seats[2])
    ring = replace(ring, seats=seats)
    oslo = ring.seats[0]
    try:
        for seat in ring.seats[:2]:
            ring.start(seat)
        wait_until(lambda: ring.status_of(oslo).get("site") == "Oslo", "Oslo's page is up")
        ring.kill(oslo)
        os.utime(oslo.data / "0.parquet")  # the same bytes: they are the same rows
        for seat in (oslo, ring.seats[2]):
            ring.start(seat)
        wait_until(lambda: ring.done() or bool(ring.failed()), "all sites have their models")
        assert not ring.failed()
    finally:
        ring.stop()
    assert len({tuple(one.model.coefficients) for one in ring.models()}) == 1


# ---------------------------------------------------------------- before the ring, and on a cluster


def test_an_invitation_describes_a_folder_by_its_first_part(tmp_path: Path) -> None:
    where = write(tmp_path / "rows", rows_of(11))
    found = offer(where, 5, ("age", "sick"))
    assert [(str(column), column.values) for column in found.columns] == [("age [years]", "number"), ("sick", "number")]
    assert found.columns[1].levels == ("0", "1")
    assert found.notes == ("What is said of the columns goes by the first 90 of 400 rows.",)
    with pytest.raises(ValueError, match="There is no column 'weight'"):
        offer(where, 5, ("weight",))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_of_the_sites_own_forms_the_same_sums(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="a cluster needs Dask")
    task = task_of("logistic")
    here = read_by_batches(write(tmp_path / "rows", rows_of(12)), task, HERE)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as cluster:
        there = read_by_batches(here.folder, task, Passes(dask=cluster.scheduler_address))
        assert there.digest == here.digest and not there.repeatable
        told, place = told_by(here, here), Place(np.full(task.dim, 0.2), np.zeros(task.dim))
        asked = Asked.VALUE_GRADIENT_AND_HESSIAN
        mine, theirs = (answers(one.problem(told), asked, place) for one in (here, there))
        assert mine.tobytes() == theirs.tobytes()
    with pytest.raises((PassError, ValueError), match="Dask"):
        answers(there.problem(told), asked, Place(np.full(task.dim, 0.3), np.zeros(task.dim)))


def test_the_agents_options_are_held_against_each_other(tmp_path: Path) -> None:
    with small_ring(tmp_path / "ring") as ring:
        seat = ring.seats[0]
        common = ["agent", "--ring", str(ring.ring), "--folder", str(seat.folder)]
        for options, why in (
            (["--data", str(seat.data), "--dask", "tcp://127.0.0.1:9"], "--dask reads rows by batches"),
            ([], "name this site's file or folder by --data"),
            (["--query", "select 1", "--data", str(tmp_path / "none.duckdb")], "There is no database"),
            (["--data", str(tmp_path)], "There is no Parquet file"),
        ):
            said = CliRunner().invoke(app, [*common, *options])
            assert said.exit_code == 2 and why in " ".join(said.output.split()), said.output


def test_an_agent_that_ends_ends_its_pass() -> None:
    reading = Reading()
    reading(5, 10)
    assert reading.words == ["5 of 10 rows read"]
    reading(10, 10)
    assert not reading.words
    reading.ended = True
    with pytest.raises(PassError, match="ended with its agent"):
        reading(5, 10)
