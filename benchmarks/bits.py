"""A digest of the token, x and y of every method after 500 hops or iterations, by both engines.

    PYTHONPATH=. python benchmarks/bits.py > before.txt       # on one commit
    PYTHONPATH=. python benchmarks/bits.py --against before.txt    # on another: says which bits have changed

A change that is meant to move code, not numbers, leaves every line as it was.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tests.engine.cases import cases as token_cases
from tests.gossip.cases import cases as gossip_cases

import roundelay as rl

STEPS = 500


def runs() -> list[tuple[str, str, Any, dict[str, Any]]]:
    """What is run: the name, the engine, and the arguments of `simulate`."""
    squares, network = rl.paper_least_squares(agents=7, samples=6, dim=2, seed=1), rl.random_network(7, 0.6, 1)
    logistic = rl.paper_logistic(agents=7, samples=6, dim=2, seed=1)
    noisy = rl.NetworkConditions(loss=rl.BernoulliLoss(0.1), noise=1e-3, latency=0.01, compute=0.001)
    token = [(case.name, case.algorithm, case.problem, case.network, {}) for case in token_cases()]
    token += [
        ("MC-SAG", rl.MCSAG(gamma=0.01), squares, network, {}),
        ("PI-ADMM1, a factor a coordinate", rl.PIADMM1(gamma_is="vector"), squares, network, {}),
        ("PI-ADMM1, zero-sum start", rl.PIADMM1(start=rl.ZeroSumStart()), squares, network, {}),
        ("I-ADMM, sealed start", rl.IADMM(start=rl.SealedStart()), squares, network, {}),
        ("I-ADMM, contribution noise", rl.IADMM(defence=rl.ContributionNoise()), squares, network, {}),
        ("I-ADMM, masked links", rl.IADMM(defence=rl.MaskedLinks()), squares, network, {}),
        ("PI-ADMM2, clipped", rl.PIADMM2(first_order=True, clip=1.0, sigma=0.1), logistic, network, {}),
        ("I-ADMM, loss and noise", rl.IADMM(), squares, network, {"conditions": noisy}),
    ]
    gossip = [(case.name, case.algorithm, case.problem, case.network, {}) for case in gossip_cases()]
    gossip.append(("D-ADMM, loss and noise", rl.DADMM(0.7), squares, network, {"conditions": noisy}))
    compiled = {case.name for case in gossip_cases() if case.compiled}
    found: list[tuple[str, str, Any, dict[str, Any]]] = []
    for name, algorithm, problem, graph, more in token:
        for engine in ("python", "compiled"):
            found.append((name, engine, (algorithm, problem, graph), {"hops": STEPS, **more}))
    for name, algorithm, problem, graph, more in gossip:
        for engine in ("python", "compiled") if name in compiled else ("python",):
            found.append((name, engine, (algorithm, problem, graph), {"iterations": STEPS, **more}))
    return found


def main() -> None:
    """Print the digests, or hold them against those of another commit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="what another commit printed")
    before = parser.parse_args().against
    if before and not before.is_file():
        sys.exit(f"There is no file {before}: write one on another commit, by this script without --against.")
    wanted = dict(line.rsplit("  ", 1) for line in before.read_text().splitlines()) if before else {}
    same, other = 0, 0
    for name, engine, arguments, options in runs():
        run = rl.simulate(*arguments, engine=engine, seed=5, progress=False, **options)
        parts = (run.estimate, run.x, run.y, run.history["units"].to_numpy(np.float64))
        bits = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:24]
        label = f"{name}, {engine}"
        if not before:
            print(f"{label}  {bits}", flush=True)
        elif wanted.get(label) == bits:
            same += 1
        else:
            other += 1
            print(f"{label}: {'not there before' if label not in wanted else 'other bits'}", flush=True)
    if before:
        print(f"{same} of {same + other} digests are as before.")
        sys.exit(1 if other else 0)


if __name__ == "__main__":
    main()
