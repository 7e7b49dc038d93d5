"""Many tasks on a Dask cluster: the same numbers, and what a killed worker, scheduler or client costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster
from pandas.testing import assert_frame_equal

import roundelay as rl
from roundelay.comparison.field import FieldPanel, run_field
from roundelay.comparison.field_methods import ENTRIES
from roundelay.comparison.runners import Cluster, Shared, Task
from roundelay.paper.pieces import QUICK, run_pieces
from tests.comparison.conftest import small_network, small_problem
from tests.comparison.counted import begun, noting
from tests.comparison.test_sweep import small_sweep
from tests.experiments.squares import PIECES

# Dask's own, about itself.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers, each a process with a nanny that begins it anew, however long that takes."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_a_sweep_with_a_killed_worker_is_that_of_one_core(tmp_path: Path, client: Client) -> None:
    alone, log = small_sweep(), tmp_path / "log"
    with noting(log):
        (log / "deaths" / alone.key[2]).write_text("1")
        (log / "deaths" / alone.key[5]).write_text("1000")
        found = small_sweep(folder=tmp_path / "rows", dask=client)
        well = found.key != alone.key[5]
        assert_frame_equal(found[well], alone[well], check_exact=True)
        assert "was killed, also where nothing else ran" in found.failed[5]
        # Four times alone, and up to four beside others: a worker that another task has killed counts against it, too, though it had not begun.
        assert 5 <= begun(log)[alone.key[5]] <= 8
        (log / "deaths" / alone.key[5]).unlink()
        before = sum(begun(log).values())
        again = small_sweep(folder=tmp_path / "rows", dask=client.scheduler.address, retry_failed=True)
    assert_frame_equal(again, alone, check_exact=True)
    assert sum(begun(log).values()) == before + 1


def length(value: Any, number: int) -> int:
    return len(value) + number


def test_what_is_shared_is_sent_once(client: Client) -> None:
    shared, sent = Shared(b"x" * 1000), list[str]()
    submit = client.submit

    def noted(work: Any, *arguments: Any, **options: Any) -> Any:
        sent.append(options["key"])
        return submit(work, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "submit", noted)
        found = [
            done.result() for done in Cluster(client).completed(Task(length, (shared, number)) for number in range(5))
        ]
    assert sorted(found) == [1000, 1001, 1002, 1003, 1004]
    assert sum(key == f"roundelay-data-{shared.key}" for key in sent) == 1 and len(sent) == 6


def test_comparing_and_tuning_give_the_same_numbers(client: Client) -> None:
    def both(dask: Any) -> tuple[Any, Any]:
        options = {"engine": "python", "progress": False, "units": 900, "dask": dask}
        compared = rl.compare(
            [rl.IADMM(), rl.EXTRA(), rl.OnePass()], small_problem, small_network, seeds=range(3), **options
        )
        tuned = rl.tune(rl.IADMM(), small_problem, small_network, seeds=range(2), level=1e-2, evaluations=4, **options)
        return compared, tuned

    (here, tuned_here), (there, tuned_there) = both(None), both(client)
    assert_frame_equal(there.table(), here.table(), check_exact=True)
    assert there.text() == here.text()
    for name, ensemble in here.ensembles.items():
        for one, other in zip(ensemble, there.ensembles[name], strict=True):
            assert_frame_equal(other.history, one.history, check_exact=True)
    assert tuned_there.algorithm == tuned_here.algorithm
    assert_frame_equal(tuned_there.trials, tuned_here.trials, check_exact=True)


def test_the_field_and_the_reproduction_run_there_too(tmp_path: Path, client: Client) -> None:
    few = [entry for entry in ENTRIES if entry.name == "one pass"]
    panel = FieldPanel("least squares", 8, 2)
    there = run_field(tmp_path / "there", [panel], few, 2, 3, dask=client)
    assert there == run_field(tmp_path / "here", [panel], few, 2, 3, processes=0)
    found = run_pieces(PIECES, QUICK, tmp_path, dask=client)
    assert [found[piece.name].numbers["square"] for piece in PIECES] == [0.0, 1.0, 4.0, 9.0, 16.0]


def test_no_scheduler_is_said_in_a_sentence() -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(ValueError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"),
    ):
        small_sweep(dask="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match="dask is a int"):
        small_sweep(dask=8786)
