"""Passes: on a cluster with a worker killed, told how far they are, interrupted, and flat in memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.batches import Part, PassError, Passes, open_folder, passes
from roundelay.batches.problem import BatchedProblem
from tests.batches.folders import NAMES, Site, written_site


def answered(problem: Any, number: int) -> bytes:
    assert isinstance(problem, BatchedProblem)
    value, gradient, hessian = problem.sites[0].sums(np.full(3, 0.01 * number), True)
    return np.concatenate([[value], gradient, hessian.reshape(-1)]).tobytes()


# ---------------------------------------------------------------- a cluster


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers, each a process with a nanny that begins it anew."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def rows_or_death(marks: Path, part: Part) -> tuple[float, int]:
    """The sum of a column; the first to work on the fourth part of a file dies of it, once."""
    if part.first == 3 * 140:
        death = marks / "death"
        if not death.exists():
            death.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    (marks / f"{Path(part.path).name}-{part.first}-{os.getpid()}").touch()
    columns = [batch.column("b").to_numpy() for batch in part.batches(["b"])]
    return float(np.concatenate(columns).sum()), sum(map(len, columns))


def slow_at_first(part: Part) -> int:
    """Later parts end before it."""
    time.sleep(0.0 if part.first else 0.3)
    return part.first


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_killed_worker_costs_what_was_in_flight_and_no_bit(sites: list[Site], client: Any, tmp_path: Path) -> None:
    parts = open_folder(sites[2].folder).parts
    here = tmp_path / "here"
    here.mkdir()
    (here / "death").touch()
    expected = Passes(1).summed(parts, partial(rows_or_death, here))
    there = tmp_path / "there"
    there.mkdir()
    found = Passes(dask=client).summed(parts, partial(rows_or_death, there))
    assert found == expected and found[1] == len(sites[2].target)
    assert (there / "death").exists()
    begun = [entry.name for entry in there.iterdir() if entry.name != "death"]
    # The parts that the dead worker had done and nobody had fetched yet are done again, and no other.
    assert len({name.rpartition("-")[0] for name in begun}) == len(parts) <= len(begun) < 2 * len(parts)
    assert list(Passes(dask=client).over(parts, slow_at_first)) == [part.first for part in parts]
    by_address = rl.by_batches(rl.Logistic, [sites[0].folder], NAMES, "label", ridge=0.1, dask=client.scheduler.address)
    assert answered(by_address, 1) == answered(
        rl.by_batches(rl.Logistic, [sites[0].folder], NAMES, "label", ridge=0.1), 1
    )


def test_what_a_worker_refuses_is_said_here(sites: list[Site], client: Any, tmp_path: Path) -> None:
    written_site(tmp_path, 8)
    problem = rl.by_batches(rl.Logistic, [tmp_path], NAMES, "label", dask=client)
    os.utime(tmp_path / "part0.parquet")
    with pytest.raises(PassError, match=r"part0\.parquet has changed"):
        problem.gradient(0, np.full(3, 0.2))


# ---------------------------------------------------------------- told, interrupted


def test_a_long_pass_says_how_far_it_is(sites: list[Site], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    rows = len(sites[0].target)
    rl.by_batches(rl.Logistic, [sites[0].folder], NAMES, "label", progress=tell)
    assert not told  # it took no two seconds
    monkeypatch.setattr(passes, "PATIENCE", 0.0)
    rl.by_batches(rl.Logistic, [sites[0].folder], NAMES, "label", progress=tell)
    assert told[-1] == (rows, rows) and [total for _, total in told] == [rows] * len(told)
    assert [done for done, _ in told] == sorted(done for done, _ in told) and len(told) > 3


def test_an_interrupted_pass_can_be_made_again(sites: list[Site], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = rl.by_batches(rl.Logistic, [sites[0].folder], NAMES, "label", ridge=0.1)
    fresh = rl.by_batches(rl.Logistic, [sites[0].folder], NAMES, "label", ridge=0.1)
    assert isinstance(problem, BatchedProblem)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(passes, "PATIENCE", -1.0)
    object.__setattr__(problem.sites[0], "passes", Passes(tell=interrupt))
    with pytest.raises(KeyboardInterrupt):
        answered(problem, 5)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pass")]
    object.__setattr__(problem.sites[0], "passes", Passes(tell=lambda done, total: None))
    assert answered(problem, 5) == answered(fresh, 5)


# ---------------------------------------------------------------- memory

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import roundelay as rl

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

problem = rl.by_batches(rl.Logistic, [sys.argv[1]], ["a", "b", "c"], "label", threads=2)
squares = rl.by_batches(rl.LeastSquares, [sys.argv[1]], ["a", "b", "c"], "t", threads=2)
problem.hessian(0, np.full(3, 0.01))
print(peak())
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux says how much memory a process had at most"
)
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Of eight times as many rows, 80 MB of them more, the process keeps nearly nothing."""
    most = []
    for name, files in (("small", 2), ("large", 16)):
        written_site(tmp_path / name, 1, files=files, rows=150_000, rows_a_group=50_000)
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        most.append(float(ended.stdout))
    assert most[1] - most[0] < 25.0, most
