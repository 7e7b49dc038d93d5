"""A sweep: what a key depends on, what a folder of rows keeps, and what a death or a refusal costs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings, strategies as st
from pandas.testing import assert_frame_equal
from pyarrow import parquet

import roundelay as rl
from roundelay.comparison import runners
from roundelay.comparison.kept import key_of, network_digest, problem_digest
from roundelay.comparison.sweep import Point, Rule, Setting, network_made, problem_made
from tests.comparison.conftest import small_network, small_problem
from tests.comparison.counted import begun, noting

WAYS = {"hops": 200, "iterations": 20, "engine": "python", "progress": False}


def small_sweep(**options: Any) -> pd.DataFrame:
    """Eight tasks that take no time."""
    return rl.sweep(
        [rl.IADMM(), rl.EXTRA()], small_problem, [small_network, rl.ring(8)], **{"seeds": range(2), "processes": 0, **WAYS, **options}
    )  # fmt: skip


@pytest.fixture(scope="module")
def alone() -> pd.DataFrame:
    """The sweep on one core, without a folder."""
    return small_sweep()


# ---------------------------------------------------------------- keys


def key(
    rho: float, label: int, cell: float, density: float, seed: int, hops: int, tolerance: float | None, loss: float
) -> str:
    problem = rl.LeastSquares([[[1.0, 2.0], [0.0, cell]]] * 4, [[1.0, float(label)]] * 4)
    conditions = rl.NetworkConditions(rl.BernoulliLoss(loss)) if loss else None
    point = Point(
        Setting("a name of one's own", rl.IADMM(rho=rho), {}),
        problem_made("p", problem),
        network_made("n", rl.random_network(4, density)),
        seed,
    )
    return key_of(point.described(Rule(hops=hops, tolerance=tolerance, conditions=conditions)))


VALUES = st.tuples(
    st.sampled_from([1.0, 1.0 + 2**-52, 10.0]),
    st.sampled_from([0, 1]),
    st.sampled_from([0.5, 0.5 + 2**-53, -0.5]),
    st.sampled_from([0.7, 1.0]),
    st.sampled_from([0, 1, 2**64 - 1]),
    st.sampled_from([10, 11]),
    st.sampled_from([None, 1e-6, 1e-7]),
    st.sampled_from([0.0, 0.25]),
)


@settings(max_examples=60)
@given(VALUES, st.data())
def test_a_key_changes_with_each_thing_that_a_task_depends_on(values: tuple[Any, ...], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    other = data.draw(VALUES)[place]
    changed = (*values[:place], other, *values[place + 1 :])
    assert (key(*changed) == key(*values)) == (changed == values)


def test_a_start_is_part_of_a_key_and_none_is_not() -> None:
    """So that rows which were kept before there was an x0 still count."""
    point = Point(Setting("a", rl.IADMM(), {}), problem_made("p", small_problem), network_made("n", rl.ring(8)), 0)
    described = [point.described(Rule(hops=10, x0=x0)) for x0 in (None, (0.0, 1.0), (0.0, 2.0))]
    assert "x0" not in described[0] and len({key_of(one) for one in described}) == 3


def test_keys_are_the_same_in_another_process() -> None:
    code = "from tests.comparison.test_sweep import key; print(key(10.0, 1, -0.5, 0.7, 3, 10, 1e-6, 0.25))"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )  # fmt: skip
    assert said.stdout.strip() == key(10.0, 1, -0.5, 0.7, 3, 10, 1e-6, 0.25)


def test_the_same_rows_are_the_same_data_however_they_are_given() -> None:
    features, targets = np.arange(12.0).reshape(2, 3, 2), np.ones((2, 3))
    one = problem_digest(rl.LeastSquares(features, targets))
    assert problem_digest(rl.LeastSquares([block.tolist() for block in features], list(targets))) == one
    assert problem_digest(replace(rl.LeastSquares(features, targets), ridge=1.0)) != one
    assert problem_digest(replace(rl.LeastSquares(features, targets), weights=[1.0, 2.0])) != one
    problem = rl.LeastSquares(features, targets, ridge=0.1)
    known, unknown = problem.with_optimum(problem.optimum), problem.with_optimum(None)
    assert len({problem_digest(each) for each in (problem, known, unknown)}) == 3  # runs are measured by it
    assert problem_digest(problem) == problem_digest(replace(problem))  # whether it was looked for or not
    links = rl.ring(5).edges
    assert network_digest(rl.Network(5, links)) != network_digest(rl.ring(5))  # whose cycle is known
    assert network_digest(rl.Network(5, links[::-1])) == network_digest(rl.Network(5, links))
    assert network_digest(rl.Network(5, links, costs=np.ones(5))) != network_digest(rl.Network(5, links))


def test_a_problem_of_functions_has_no_digest_and_says_so(tmp_path: Path) -> None:
    made = lambda seed: rl.CallableProblem([lambda x: x - seed] * 3, 2)  # noqa: E731
    options: dict[str, Any] = {"seeds": [1, 2], "hops": 3, "progress": False}
    found = rl.sweep(rl.IADMM(), made, rl.ring(3), processes=1, **options)
    assert found.failed.str.contains("holds a function, of which nobody can say.*processes=0").all()
    kept = rl.sweep(rl.IADMM(), made, rl.ring(3), processes=0, folder=tmp_path, **options)
    assert kept.failed.tolist() == found.failed.tolist()
    # What is neither kept nor sent needs no digest.
    rows = rl.sweep(rl.IADMM(), [made, made(3)], rl.ring(3), processes=0, **options)
    assert not rows.failed.any() and rows.key.nunique() == 4
    for seed, problem, error in zip(rows.seed, [made(1), made(2), made(3), made(3)], rows.error, strict=True):
        assert (
            rl.simulate(rl.IADMM(), problem, rl.ring(3), 3, seed=seed, progress=False).history["error"].iloc[-1]
            == error
        )


# ---------------------------------------------------------------- the product


def test_rows_are_those_of_single_runs_in_the_order_of_the_product(alone: pd.DataFrame) -> None:
    labels = [
        (name, network, seed) for name in ("I-ADMM", "EXTRA") for network in ("small_network", "network") for seed in (0, 1)
    ]  # fmt: skip
    assert [*zip(alone.algorithm, alone.network, alone.seed, strict=True)] == labels
    run = rl.simulate(rl.EXTRA(), small_problem(1), rl.ring(8), iterations=20, seed=1, engine="python", progress=False)
    last = run.history.iloc[-1]
    row = alone.iloc[-1]
    for column in ("units", "bytes", "error", "accuracy", "consensus", "objective_gap"):
        assert row[column] == last[column]
    assert (row.stop, row.steps, row.failed) == ("iterations", 20, "")
    assert row["units_to_1e-3"] == run.units_to(1e-3)


def test_parameters_are_for_those_that_have_them() -> None:
    found = rl.sweep(
        {"one": rl.IADMM(), "other": rl.EXTRA()}, small_problem(0), rl.ring(8), seeds=[3], parameters={"rho": [1.0, 2.0]}, processes=0, **WAYS
    )  # fmt: skip
    assert list(found.algorithm) == ["one", "one", "other"]
    assert list(found.rho.fillna(0.0)) == [1.0, 2.0, 0.0]
    with pytest.raises(ValueError, match=r"No algorithm of the sweep has an option 'roh'\. Did you mean rho\?"):
        rl.sweep(rl.IADMM(), small_problem, rl.ring(8), parameters={"roh": [1.0]}, hops=3)


# ---------------------------------------------------------------- the folder


def test_what_is_missing_is_computed_and_nothing_else(tmp_path: Path, alone: pd.DataFrame) -> None:
    rows, log = tmp_path / "rows", tmp_path / "log"
    with noting(log):
        assert_frame_equal(small_sweep(folder=rows), alone, check_exact=True)
        gone = list(alone.key[[1, 6]])
        for one in gone:
            (rows / f"{one}.parquet").unlink()
        told: list[tuple[int, int]] = []
        again = small_sweep(folder=rows, progress=lambda done, total: told.append((done, total)))
        assert_frame_equal(again, alone, check_exact=True)
        assert told[0] == (6, 8) and told[-1] == (8, 8)
        more = small_sweep(folder=rows, seeds=range(3))
    assert begun(log) == {one: 2 if one in gone else 1 for one in more.key}
    assert {path.stem for path in rows.iterdir()} == set(more.key)


def test_an_interrupt_keeps_what_is_done(tmp_path: Path, alone: pd.DataFrame) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with noting(tmp_path / "log"):
        with pytest.raises(KeyboardInterrupt):
            small_sweep(folder=tmp_path / "rows", progress=interrupt)
        assert_frame_equal(small_sweep(folder=tmp_path / "rows"), alone, check_exact=True)
    assert set(begun(tmp_path / "log").values()) == {1}


def test_two_who_share_a_folder_take_what_the_other_has_put_there(tmp_path: Path, alone: pd.DataFrame) -> None:
    """The other comes and does the rest while the one has done three."""
    found = []

    def meanwhile(done: int, total: int) -> None:
        if done == 3 and not found:
            found.append(small_sweep(folder=tmp_path / "rows"))

    with noting(tmp_path / "log"):
        found.append(small_sweep(folder=tmp_path / "rows", progress=meanwhile))
    assert len(found) == 2
    for one in found:
        assert_frame_equal(one, alone, check_exact=True)
    assert begun(tmp_path / "log") == dict.fromkeys(alone.key, 1)


class Bomb:
    """What would leave a mark if anybody unpickled it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def test_what_others_put_into_the_folder_is_never_run_and_no_row_of_another_key_counts(
    tmp_path: Path, alone: pd.DataFrame
) -> None:
    rows, mark = tmp_path / "rows", tmp_path / "mark"
    small_sweep(folder=rows)
    pickled, swapped, cut, several = (rows / f"{one}.parquet" for one in alone.key[:4])
    pickled.write_bytes(pickle.dumps(Bomb(mark)))
    other = parquet.read_table(several)
    parquet.write_table(other, swapped)
    cut.write_bytes(cut.read_bytes()[:-20])
    table = pyarrow.table({"key": [several.stem], "failed": [pickle.dumps(Bomb(mark))]})
    notes = {b"pandas": pickle.dumps(Bomb(mark)), b"ARROW:schema": pickle.dumps(Bomb(mark))}
    parquet.write_table(table.replace_schema_metadata(notes), several)
    with noting(tmp_path / "log"):
        assert_frame_equal(small_sweep(folder=rows), alone, check_exact=True)
    assert begun(tmp_path / "log") == dict.fromkeys(alone.key[:4], 1)
    assert not mark.exists()


def test_a_kept_row_says_what_it_is_of(tmp_path: Path) -> None:
    small_sweep(folder=tmp_path)
    for path in tmp_path.iterdir():
        row = pd.read_parquet(path).iloc[0]
        assert key_of(json.loads(row["task"])) == row["key"] == path.stem
        assert row["roundelay"] == rl.__version__


# ---------------------------------------------------------------- what fails


def test_a_task_that_fails_is_a_row_with_its_sentence(tmp_path: Path) -> None:
    def mostly(seed: int) -> rl.LeastSquares:
        if seed == 1:
            raise ValueError("There are no data of seed 1.")
        return small_problem(seed)

    def run(**options: Any) -> pd.DataFrame:
        algorithms = [rl.IADMM(), rl.DGD(alpha=-1.0)] if "wrong" in options else [rl.IADMM(), rl.EXTRA()]
        return rl.sweep(algorithms, mostly, rl.ring(8), seeds=range(2), hops=20, engine="python", progress=False, processes=0, folder=tmp_path / "rows", **options)  # fmt: skip

    with noting(tmp_path / "log"):
        found = run()
        run()
        assert set(begun(tmp_path / "log").values()) == {1}
        run(retry_failed=True)
    assert list(found.failed.str.contains("no data of seed 1")) == [False, True, False, True]
    assert "whose length is given in iterations" in found.failed[2]
    assert np.isnan(found.error[2]) and found.error[0] < 1.0
    assert begun(tmp_path / "log") == {found.key[0]: 1, found.key[2]: 2}


def test_a_killed_worker_costs_what_it_was_at_and_a_task_of_which_all_die_is_a_row(
    tmp_path: Path, alone: pd.DataFrame
) -> None:
    log = tmp_path / "log"
    with noting(log):
        unlucky, deadly = alone.key[2], alone.key[5]
        (log / "deaths" / unlucky).write_text("1")
        (log / "deaths" / deadly).write_text("1000")
        found = small_sweep(folder=tmp_path / "rows", processes=2)
        well = found.key != deadly
        assert_frame_equal(found[well], alone[well], check_exact=True)
        assert "was killed, 3 times: it may need more memory" in found.failed[5]
        # What runs beside one that dies is begun again, at most once for each death but those that it dies alone.
        again = begun(log)
        # Three times alone, and once beside another where one was under way.
        assert again[deadly] in (3, 4) and sum(again.values()) <= len(alone) + 3 + 2 * 4
        (log / "deaths" / deadly).unlink()
        assert_frame_equal(small_sweep(folder=tmp_path / "rows", retry_failed=True), alone, check_exact=True)
    assert sum(begun(log).values()) == sum(again.values()) + 1


def test_without_a_guard_a_script_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import roundelay as rl\nrl.sweep(rl.IADMM(), rl.paper_least_squares(4, 3, 2), rl.ring(4), hops=4, engine='python', processes=1)\n"
    )
    said = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert 'stands under `if __name__ == "__main__":`' in said.stderr.strip().splitlines()[-1]


def test_what_is_defined_in_a_notebook_is_for_this_process_alone() -> None:
    code = (
        "import roundelay as rl\n"
        "class Mine(rl.IADMM): pass\n"
        "rl.register(rl.Algorithm)(Mine)\n"
        "problem = rl.paper_least_squares(4, 3, 2)\n"
        "for processes in (0, 1):\n"
        "    print(rl.sweep(Mine(), problem, rl.ring(4), seeds=[0], hops=4, engine='python', processes=processes, progress=False).failed[0])\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.stdout == "\n"
    assert "defined in this notebook, which other processes can't import" in said.stderr.strip().splitlines()[-1]


def test_what_is_shared_takes_no_more_place_than_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "HELD", 2)
    with runners.Processes(1) as pool:
        folder, most, found = Path(pool._folder.name), 0, []
        for done in pool.completed(runners.Task(abs, (runners.Shared(-number),)) for number in range(40)):
            most = max(most, len(list(folder.iterdir())))
            found.append(done.result())
    assert sorted(found) == list(range(40)) and most <= 2 + 4 * runners.AHEAD


def test_neither_dask_nor_pyarrow_is_loaded_with_the_package() -> None:
    code = "import sys, roundelay as rl; rl.sweep; assert not {'dask', 'distributed', 'pyarrow', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
