"""How the time of a hop and the memory of a run grow: N = 10 to 1,000,000 at p = 2, and p = 2 to 1,000,000 at N = 4.

    python benchmarks/growth.py [--json] [--largest 1000000]

Every point is a process of its own. It runs a small problem of the same kind first, so that all is compiled and loaded, and what it then
takes is its baseline. The memory is what it takes at most beyond that, from before the data are made until the run has ended, in sizes of
the data (features and targets), which are handed over as an array that nobody writes to any more, so that it is not copied: once while x* is looked for,
and once without (`with_optimum(None)`). An agent has 30 rows, as in the paper, and the history has two. A hop's time
is the difference of a long and a short run, of which each is the fastest of several.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import roundelay as rl
from peers.timed import forget_peak, memory

ROWS, FEW_AGENTS, FEW_UNKNOWNS, REPEATS = 30, 4, 2, 2
KINDS = ("least squares", "logistic, first order")
# What the differences of times are taken over, in seconds.
LONG = 0.1


def data(kind: str, agents: int, dim: int) -> tuple[Any, Any]:
    """Features and targets, to which nobody writes any more."""
    generator = np.random.default_rng(0)
    features, targets = generator.random((agents, ROWS, dim)), generator.random((agents, ROWS))
    if kind != KINDS[0]:
        np.sign(np.subtract(targets, 0.5, out=targets), out=targets)
    for array in (features, targets):
        array.setflags(write=False)
    return features, targets


def problem_of(kind: str, features: Any, targets: Any) -> Any:
    """The problem; a ridge, since fewer rows than unknowns can be separated."""
    return rl.LeastSquares(features, targets) if kind == KINDS[0] else rl.Logistic(features, targets, ridge=1e-3)


def algorithm_of(kind: str) -> Any:
    """I-ADMM, exact or first order."""
    return rl.IADMM() if kind == KINDS[0] else rl.IADMM(rho=1.0, first_order=True)


def run(kind: str, problem: Any, network: Any, hops: int) -> Any:
    """A run whose history has two rows."""
    return rl.simulate(
        algorithm_of(kind), problem, network, hops, record=hops, progress=False, engine="compiled"
    )  # by itself a short run is Python's


def beyond(made: Callable[[], Any]) -> tuple[Any, float]:
    """What is made, and MB of memory taken for it at most."""
    gc.collect()
    rest = memory()[0]
    forget_peak()
    thing = made()
    return thing, memory()[1] - rest


def point(kind: str, agents: int, dim: int, with_optimum: bool) -> dict[str, Any]:
    """One process's measurement."""

    def whole(agents: int) -> tuple[Any, Any, float]:
        features, targets = data(kind, agents, dim)
        problem = problem_of(kind, features, targets)
        problem = problem if with_optimum else problem.with_optimum(None)
        network = rl.ring(agents)
        run(kind, problem, network, agents)
        return problem, network, (features.nbytes + targets.nbytes) / 2**20

    whole(3)
    (problem, network, size), most = beyond(lambda: whole(agents))
    hops = agents

    def fastest(hops: int) -> float:
        times = []
        for _ in range(REPEATS):
            began = time.process_time()
            run(kind, problem, network, hops)
            times.append(time.process_time() - began)
        return min(times)

    short = fastest(hops)
    while (long := fastest(2 * hops)) - short < LONG and hops < 10**8:
        hops, short = 2 * hops, long
    return {
        "kind": kind, "agents": agents, "dim": dim, "with_optimum": with_optimum, "data_mb": size, "most_mb": most,
        "times_data": most / size, "hop_ns": 1e9 * (long - short) / hops,
    }  # fmt: skip


def sizes(largest: int) -> list[tuple[int, int]]:
    """(N, p) of all points."""
    powers = [10**k for k in range(1, 7) if 10**k <= largest]
    return [(n, FEW_UNKNOWNS) for n in powers] + [(FEW_AGENTS, p) for p in (2, *powers)]


def measure(largest: int) -> list[dict[str, Any]]:
    """All points, one process after another."""
    # Of little data the baseline's own wavering is a large part.
    asked = [
        (kind, agents, dim, with_optimum)
        for kind in KINDS
        for agents, dim in sizes(largest)
        for with_optimum in (False, True)
        if not with_optimum or agents * dim >= 10**5
    ]
    rows = []
    for work in track(asked, "Sizes", console=Console(stderr=True), transient=True):
        command = [sys.executable, str(Path(__file__)), "--point", json.dumps(work)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"The point {work} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        rows.append(json.loads(ended.stdout))
    return rows


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--largest", type=int, default=10**6, help="the largest N and p")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(point(*json.loads(options.point))))
        return
    found = measure(options.largest)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for row in found:
        print(
            f"{row['kind']:22s} N={row['agents']:9,} p={row['dim']:9,} {'with x*' if row['with_optimum'] else 'without':8s}"
            f"{row['hop_ns']:14.1f} ns a hop {row['most_mb']:9.1f} MB, {row['times_data']:.2f} times the data"
        )


if __name__ == "__main__":
    main()
