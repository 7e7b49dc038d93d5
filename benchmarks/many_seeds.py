"""256 seeds of one method at once, against a C loop over lanes on as many threads, in one run.

    python benchmarks/many_seeds.py [--json] [--seeds 256] [--rounds 5]

A lane of C is one seed: the same hops, draws and history as the engine's (`hop.c`), one after another on the threads of OpenMP, as many
as there are cores. Roundelay is called as a user calls it, `rl.simulate(…, seeds=range(256))`, so that what it makes before and after the
loop counts as well. The tokens of all lanes must agree.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import roundelay as rl
from against_c import EVERY, compile_c, pointer

HOPS = 100_000


def run_c(
    library: ctypes.CDLL, algorithm: Any, problem: Any, network: Any, seeds: int, hops: int
) -> tuple[float, float, Any]:
    """Seconds, those of the processor, and the final tokens; every lane has arrays of its own, which the C code sets up."""
    agents, dim, rows = problem.agents, problem.dim, hops // EVERY + 1
    order = network.tour().order.astype(np.int64)
    final, errors = np.zeros((seeds, dim)), np.zeros((seeds, rows))
    quadratics = problem.quadratics
    inputs = [problem.optimum, quadratics.vectors, quadratics.curvatures, quadratics.along]
    began, busy = time.perf_counter(), time.process_time()
    library.piadmm1_lanes(
        *(ctypes.c_long(n) for n in (seeds, agents, hops, EVERY, rows)), pointer(order), ctypes.c_double(algorithm.rho),
        *map(pointer, inputs), ctypes.c_double(algorithm.gamma_spread), pointer(errors), pointer(final),
    )  # fmt: skip
    return time.perf_counter() - began, time.process_time() - busy, final


def measure(seeds: int, rounds: int, hops: int = HOPS) -> dict[str, Any]:
    """Both in turns; the fastest of each counts."""
    problem, network = rl.paper_least_squares(), rl.random_network(100, 0.3)
    algorithm = rl.PIADMM1(start=rl.ZeroStart())

    def run_roundelay() -> tuple[float, float, Any]:
        began, busy = time.perf_counter(), time.process_time()
        runs = rl.simulate(algorithm, problem, network, hops, seeds=range(seeds), record=EVERY, progress=False)
        taken = time.perf_counter() - began, time.process_time() - busy
        return *taken, np.array([run.token for run in runs])

    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(2, 2, Path(folder), "-fopenmp")
        rl.simulate(algorithm, problem, network, hops, seeds=range(2), record=EVERY, progress=False)
        turns = [
            (run_roundelay(), run_c(library, algorithm, problem, network, seeds, hops))
            for _ in track(range(rounds), "Seeds and lanes take turns", console=Console(stderr=True), transient=True)
        ]
    (ours, ours_busy, found), (c, c_busy, expected) = (
        (min(run[0] for run in own), min(run[1] for run in own), own[0][2]) for own in zip(*turns, strict=True)
    )
    return {
        "seeds": seeds,
        "hops": hops,
        "rounds": rounds,
        "threads": os.cpu_count(),
        "roundelay_s": ours,
        "c_s": c,
        "ratio": ours / c,
        "roundelay_busy_s": ours_busy,
        "c_busy_s": c_busy,
        "busy_ratio": ours_busy / c_busy,
        "difference": float(np.abs(found - expected).max() / np.abs(expected).max()),
    }


def main() -> None:
    """Print what was measured; exit with 1 where the tokens differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--seeds", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5, help="how often Roundelay and C take turns")
    options = parser.parse_args()
    found = measure(options.seeds, options.rounds)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{found['seeds']} seeds, {found['hops']:,} hops each, {found['threads']} threads, PI-ADMM1, p=2, N=100:")
        print(f"  Roundelay {found['roundelay_s']:.2f} s, C {found['c_s']:.2f} s, ratio {found['ratio']:.2f}")
        print(
            f"  of the processor {found['roundelay_busy_s']:.2f} s, C {found['c_busy_s']:.2f} s, ratio {found['busy_ratio']:.2f}"
        )
        print(f"  the tokens differ by {found['difference']:.0e}")
    sys.exit(found["difference"] > 1e-12)


if __name__ == "__main__":
    main()
