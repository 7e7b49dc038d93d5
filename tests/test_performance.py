"""The page of figures, and what measures them: no time is asserted, only that the page says what was measured and that both sides compute the same."""

import importlib
import json
import mmap
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_the_page_is_made_of_what_is_kept(script: Any) -> None:
    page = script("page")
    kept = json.loads(page.KEPT.read_text())
    assert set(kept) <= {part.name for part in page.PARTS}
    assert page.page(kept) == page.PAGE.read_text(), "docs/performance.md was changed by hand: make it by `make bench`"


def test_what_is_measured_stands_on_the_page_and_what_is_not_is_said(script: Any) -> None:
    page = script("page")
    found = {
        "seeds": 256,
        "hops": 1000,
        "threads": 3,
        "rounds": 2,
        "roundelay_s": 1.0,
        "c_s": 2.0,
        "difference": 0.0,
        "ratio": 1.0,
        "roundelay_busy_s": 1.0,
        "c_busy_s": 1.0,
    }
    text = page.page({"many-seeds": {"made_with": "this", "load": 1.0, "results": [{**found, "busy_ratio": 123.45}]}})
    assert "**123.45 times**" in text and "\n\nthis.\n\n" in text
    assert "Not measured yet: against-c, gossip-rounds," in text and "many-seeds 1.0" in text


def test_the_first_answers_stand_on_the_page_by_clock_and_processor(script: Any) -> None:
    page, figure = script("page"), script("first_answer").Figure
    alone = [asdict(figure("then p = 5", (1.25, 0.75), None))]
    assert "| then p = 5 | 1.25 | 0.75 |" in page.first_answer([alone])
    beside = [asdict(figure("then p = 5", (1.25, 0.75), (8.0, 3.0)))]
    assert "| then p = 5 | 8.00 | 3.00 | 1.25 | 0.75 | 0.25 |" in page.first_answer([beside])


def test_a_run_that_was_interrupted_goes_on_where_it_was(script: Any, tmp_path: Path) -> None:
    page = script("page")
    times = tmp_path / "times"
    first, second, ready = tmp_path / "first.py", tmp_path / "second.py", tmp_path / "ready"
    first.write_text(f"open({str(times)!r}, 'a').write('.')\nprint('[1]')\n")
    second.write_text(f"open({str(ready)!r}).close()\nprint('[2]')\n")
    parts = [page.Part(path.stem, ((str(path),),), str) for path in (first, second)]
    with pytest.raises(SystemExit, match=r"second\.py ended with 1"):
        page.measure(parts, tmp_path / "kept")
    ready.touch()
    found = page.measure(parts, tmp_path / "kept")
    assert [found[part.name]["results"] for part in parts] == [[[1]], [[2]]]
    assert times.read_text() == "."


def test_a_part_that_there_is_not_is_refused(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = script("page")
    monkeypatch.setattr(sys, "argv", ["page.py", "nothing"])
    with pytest.raises(SystemExit):
        page.main()
    assert "There is no part nothing" in capsys.readouterr().err


def test_a_method_of_ones_own_and_a_numpy_loop_compute_the_same(script: Any, tmp_path: Path) -> None:
    peers = script("against_peers")
    ground, instance = peers.Ground(agents=4, dim=2, density=0.8, penalty=1.0), tmp_path / "instance.npz"
    assert ground.write(instance)["rounds"]["EXTRA"] > 1
    by_numpy = peers.PEERS[0]
    cache = Path(os.environ.get("ROUNDELAY_CACHE", tmp_path))
    points = [
        np.array(peers.turn(peer, Path(sys.executable), instance, 4, "gradient after averaging", cache)["points"])
        for peer in (by_numpy, peers.ROUNDELAY)
    ]
    assert np.abs(points[0]).max() > 0.1
    np.testing.assert_allclose(points[1], points[0], rtol=1e-12)


def test_the_loops_by_hand_come_to_the_optimum(script: Any, tmp_path: Path) -> None:
    peers = script("against_peers")
    ground, path = peers.Ground(agents=5, dim=3, density=0.6, penalty=1.0), tmp_path / "instance.npz"
    rounds = ground.write(path)["rounds"]
    given = script("peers.timed").Instance(str(path))
    optimum = np.linalg.solve(given.hessians.sum(axis=0), given.linear.sum(axis=0))
    for name in peers.TO_GOAL:
        method = script("peers.with_numpy").methods(given)[name]
        far = [
            np.linalg.norm(method(k) - optimum, axis=1).mean() / np.linalg.norm(optimum)
            for k in (rounds[name] - 1, rounds[name])
        ]
        assert far[1] <= peers.GOAL < far[0]
    tracked = script("peers.with_numpy").methods(given)["gradient tracking"](20_000)
    np.testing.assert_allclose(tracked, np.tile(optimum, (5, 1)), atol=1e-8)


def test_a_peer_that_is_not_there_is_said_with_the_reason(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = script("against_peers")
    standing_in = tmp_path / "python99.1"
    standing_in.write_text("#!/bin/sh\nexit 127\n")
    standing_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(peers.NotMeasuredError, match=r"asks for Python 99\.1 or newer"):
        peers.interpreter((99, 1))
    standing_in.write_text("#!/bin/sh\n")
    assert peers.interpreter((99, 1)) == str(standing_in)
    with pytest.raises(peers.NotMeasuredError, match="no such peer"):
        peers.quietly([sys.executable, "-c", "raise ValueError('no such peer')"])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_seeds_and_lanes_of_c_compute_the_same(script: Any) -> None:
    found = script("many_seeds").measure(seeds=5, rounds=1, hops=3000)
    assert found["difference"] < 1e-12


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells of a process's largest memory")
def test_memory_that_was_given_back_counts(script: Any) -> None:
    """Of pages that are new for sure: an array may find room in memory that this process has had before."""

    def take_and_give_back() -> None:
        with mmap.mmap(-1, 2**26) as pages:
            for page in range(0, len(pages), mmap.PAGESIZE):
                pages[page] = 1

    _, most = script("growth").beyond(take_and_give_back)
    assert 60.0 < most < 100.0
