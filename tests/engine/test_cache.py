"""Compiled code is found again by a second process, and never used after its source has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import roundelay

SCRIPT = """
import sys, roundelay as rl
from roundelay.engine.assemble import prepare, token_assembly
assert rl.__file__.startswith(sys.argv[1]), rl.__file__
problem, network = rl.paper_least_squares(agents=5), rl.ring(5)
if len(sys.argv) > 2:
    rl.simulate(rl.PIADMM1(), problem, network, 100, engine="compiled")
run = rl.simulate(rl.IADMM(), problem, network, 100, engine="compiled")
travel = prepare(token_assembly(rl.IADMM().parts(), problem, network), "compiled").travel
stats = travel.general.func.stats
print(repr(float(run.token[0])), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run_in_new_process(source: Path, cache: Path, *before: str) -> tuple[float, int, int]:
    """The token's first coordinate, and how often compiled code was found and not found on disk.

    With anything in `before` the process runs another method first, with which the run shares functions.
    """
    environment = os.environ | {"PYTHONPATH": str(source), "ROUNDELAY_CACHE": str(cache)}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(source), *before],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    token, hits, misses = answer.stdout.split()
    return float(token), int(hits), int(misses)


def test_found_again_and_never_stale(tmp_path: Path) -> None:
    source, cache = tmp_path / "src", tmp_path / "cache"
    shutil.copytree(Path(roundelay.__file__).parent, source / "roundelay", ignore=shutil.ignore_patterns("__pycache__"))
    first, hits, misses = run_in_new_process(source, cache, "after another")
    assert (hits, misses) == (0, 1)
    # By a process that never had the other method, of whose functions some are in the code.
    second, hits, misses = run_in_new_process(source, cache)
    assert (hits, misses) == (1, 0)
    assert second == first

    def edit(file: str, old: str, new: str) -> None:
        path = source / "roundelay" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")

    # The update itself: twice the step of the multiplier.
    edit("algorithms/update.py", "y[i, d] += along(step, d)", "y[i, d] += 2.0 * along(step, d)")
    edited, hits, misses = run_in_new_process(source, cache)
    assert (hits, misses) == (0, 1)
    assert edited != first
    # And back again: the first code is still there, and right.
    edit("algorithms/update.py", "y[i, d] += 2.0 * along(step, d)", "y[i, d] += along(step, d)")
    assert run_in_new_process(source, cache) == (first, 1, 0)
    # A primitive that the compiled engine brings along.
    edit("kernels/sums.py", "total = a[0] * b[0]", "total = 2.0 * a[0] * b[0]")
    other, hits, misses = run_in_new_process(source, cache)
    assert (hits, misses) == (0, 1)
    assert other != first
