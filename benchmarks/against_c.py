"""The compiled engine against a plain C loop of the same work, in one run: `make bench`.

The machine's C compiler builds `hop.c` with -O3 -march=native. Engine and C take turns, several rounds, and the ratio is that of
the processor time of their fastest rounds. The engine has the dimension as a literal, as long runs have it, and so has C. Both record
the same history; bare C records nothing, and is the faster of two builds, of which one may not fuse a multiplication with an
addition. Both final tokens are printed; they must agree to 1e-12. The last column compares them bit for bit with a C loop that fuses
nothing, as the engine does not either.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import roundelay as rl
from roundelay.engine.assemble import prepare, token_assembly
from roundelay.engine.checks import Options, marks_of
from roundelay.engine.state import State, new_state

EVERY = 1000
# What a hop may take at the most, over one of C; and the first line's over one of C that records nothing.
MOST, MOST_OVER_BARE = 1.5, 1.3
STEP_PURPOSE = 1


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    what: str
    engine_ns: float
    c_ns: float
    ratio: float
    bare_ns: float
    bare_ratio: float
    engine_token: str
    c_token: str
    difference: float
    same_bits: bool


@dataclass(frozen=True, eq=False)
class Case:
    """A piece of work for both: what it is called, how the engine runs it and which C function does."""

    what: str
    algorithm: Any
    problem: Any
    network: rl.Network
    hops: int
    function: str
    arguments: Callable[[Any], list[Any]]
    rank: int


def compile_c(dim: int, rank: int, folder: Path, *flags: str) -> ctypes.CDLL:
    """The C loop for one dimension and rank, as a library."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        sys.exit("There is no C compiler on this machine to measure against: install gcc or clang.")
    target = folder / f"hop_{'_'.join((str(dim), str(rank), *flags))}.so"
    source = Path(__file__).with_name("hop.c")
    command = [compiler, "-O3", "-march=native", *flags, f"-DP={dim}", f"-DR={rank}", "-shared", "-fPIC"]
    subprocess.run([*command, str(source), "-o", str(target), "-lm"], check=True)
    return ctypes.CDLL(str(target))


def pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    """The address of an array's first element."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def fresh(case: Case) -> State:
    """A new state; the C loop works on the same arrays."""
    marks = marks_of(EVERY, case.hops)
    return new_state(case.algorithm.parts(), case.problem, case.network, 0, marks, Options())


def run_engine(case: Case) -> tuple[float, np.ndarray[Any, Any]]:
    """Seconds of the processor, and the final token."""
    state = fresh(case)
    prepared = prepare(token_assembly(state.method, case.problem, case.network), "compiled")
    prepared.travel.take_literal()
    began = time.thread_time()
    prepared.travel(*prepared.numbers, np.uint64(0), *state.handed(), case.hops)
    return time.thread_time() - began, state.trail.tokens[0].copy()


def run_c(case: Case, library: ctypes.CDLL) -> tuple[float, np.ndarray[Any, Any]]:
    """Seconds of the processor, and the final token."""
    state = fresh(case)
    order = case.network.tour().order.astype(np.int64)
    final = np.zeros(case.problem.dim)
    log, gauge, agents = state.log, state.gauge, state.agents
    arrays = [
        agents.x, agents.y, agents.share, agents.visits, gauge.optimum, gauge.distances,
        log.accuracy, log.error, log.consensus, log.tokens, final,
    ]  # fmt: skip
    own = case.arguments(case.problem)
    converted = [pointer(value) if isinstance(value, np.ndarray) else value for value in own]
    head = [ctypes.c_long(n) for n in (case.problem.agents, case.hops, EVERY)]
    function = getattr(library, case.function)
    began = time.thread_time()
    function(*head, pointer(order), ctypes.c_double(case.algorithm.rho), *map(pointer, arrays), *converted)
    return time.thread_time() - began, final


@cache
def eigenvectors(problem: Any) -> list[Any]:
    """What the C loop needs of a least-squares problem; of few rows in many unknowns the engine itself keeps no eigenvectors."""
    quadratics, rows, scales = problem.quadratics, problem.rows, problem.scales[:, None]
    if len(quadratics.vectors):
        return [quadratics.vectors, quadratics.curvatures, quadratics.along]
    blocks, targets = rows.features.reshape(rows.agents, -1, rows.dim), rows.targets.reshape(rows.agents, -1)
    _, singular, directions = np.linalg.svd(blocks, full_matrices=False)
    along = np.einsum("nkp,np->nk", directions, np.einsum("nbp,nb->np", blocks, targets))
    return [directions.reshape(-1, rows.dim), (scales * singular**2).ravel(), (scales * along).ravel()]


def inverses(rho: float) -> Callable[[Any], list[Any]]:
    """What the C loop with a fixed penalty needs, computed before the clock starts."""

    def arguments(problem: Any) -> list[Any]:
        quadratics, agents, dim = problem.quadratics, problem.agents, problem.dim
        vectors = quadratics.vectors.reshape(agents, -1, dim)
        values, along = (array.reshape(agents, -1) for array in (quadratics.curvatures, quadratics.along))
        hessians = np.einsum("njp,nj,njq->npq", vectors, values, vectors)
        inverse = np.linalg.inv(hessians + rho * np.eye(dim))
        return [np.ascontiguousarray(inverse), np.einsum("npq,njq,nj->np", inverse, vectors, along)]

    return arguments


def signed_rows(problem: Any) -> list[Any]:
    """What the C loop needs of a logistic problem."""
    return [problem.signed, np.array(problem.rows.starts), problem.scales]


def cases(quick: bool) -> list[Case]:
    """The work that is measured."""
    scale = 10 if quick else 1
    # The cycle of the large network is in random order, so that every hop reads memory far from the last.
    network, large = rl.random_network(100, 0.3), rl.random_network(100_000, 3e-5)
    small, wide = rl.paper_least_squares(), rl.paper_least_squares(dim=100)
    many, many_wide = (rl.paper_least_squares(agents=100_000, samples=b, dim=p) for b, p in ((30, 2), (3, 100)))
    noisy = rl.PIADMM1(start=rl.ZeroStart())
    noise = [ctypes.c_uint64(0), ctypes.c_double(noisy.gamma_spread)]
    logistic, many_logistic = rl.paper_logistic(), rl.paper_logistic(agents=100_000)
    first_order = rl.IADMM(rho=1.0, first_order=True)
    p2, p100 = 5_000_000 // scale, 200_000 // scale
    return [
        Case("I-ADMM, p=2", rl.IADMM(), small, network, p2, "iadmm", eigenvectors, 2),
        Case("I-ADMM, p=2, C knows the inverse", rl.IADMM(), small, network, p2, "iadmm_inverse", inverses(10.0), 2),
        Case("I-ADMM, p=100", rl.IADMM(), wide, network, p100, "iadmm", eigenvectors, 30),
        Case("I-ADMM, p=100, C knows the inverse", rl.IADMM(), wide, network, p100, "iadmm_inverse", inverses(10.0), 30),
        Case("PI-ADMM1, p=2", noisy, small, network, p2, "piadmm1", lambda q: eigenvectors(q) + noise, 2),
        Case("logistic first order, p=2", first_order, logistic, network, p2 // 5, "logistic", signed_rows, 2),
        Case("I-ADMM, p=2, N=1e5", rl.IADMM(), many, large, p2, "iadmm", eigenvectors, 2),
        Case("I-ADMM, p=100, N=1e5, b=3", rl.IADMM(), many_wide, large, p100, "iadmm", eigenvectors, 3),
        Case("PI-ADMM1, p=2, N=1e5", noisy, many, large, p2, "piadmm1", lambda q: eigenvectors(q) + noise, 2),
        Case("logistic first order, p=2, N=1e5", first_order, many_logistic, large, p2 // 5, "logistic", signed_rows, 2),
    ]  # fmt: skip


def measure(case: Case, rounds: int, folder: Path) -> Result:
    """Engine and C in turns; the fastest of each counts, since noise only ever slows down."""
    shape, strictly, bare = (case.problem.dim, case.rank, folder), "-ffp-contract=off", "-DBARE=1"
    library, strict = compile_c(*shape), compile_c(*shape, strictly)
    bare_libraries = compile_c(*shape, bare), compile_c(*shape, bare, strictly)
    run_engine(case)
    turns = [
        (run_engine(case), run_c(case, library), *(run_c(case, other) for other in bare_libraries))
        for _ in range(rounds)
    ]
    engine, c, *bares = (min(turn, key=lambda run: run[0]) for turn in zip(*turns, strict=True))
    least = min(seconds for seconds, _ in bares)
    difference = float(np.linalg.norm(engine[1] - c[1]) / np.linalg.norm(c[1]))
    show = lambda z: " ".join(f"{value:.15f}" for value in z[:2])  # noqa: E731
    return Result(
        case.what,
        1e9 * engine[0] / case.hops,
        1e9 * c[0] / case.hops,
        engine[0] / c[0],
        1e9 * least / case.hops,
        engine[0] / least,
        show(engine[1]),
        show(c[1]),
        difference,
        bool((run_c(case, strict)[1] == engine[1]).all()),
    )


def main() -> None:
    """Print the table; exit with 1 where a ratio is too large or the results differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the hops")
    parser.add_argument("--rounds", type=int, default=7, help="how often engine and C take turns")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = cases(options.quick)
        results = [
            measure(case, options.rounds, Path(folder))
            for case in track(work, "Engine and C take turns", console=Console(stderr=True), transient=True)
        ]
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        table = Table(
            "one hop", "engine, ns", "C, ns", "ratio", "bare C, ns", "ratio", "both tokens begin", "difference", "bits"
        )
        for result in results:
            table.add_row(
                result.what, f"{result.engine_ns:.1f}", f"{result.c_ns:.1f}", f"{result.ratio:.2f}",
                f"{result.bare_ns:.1f}", f"{result.bare_ratio:.2f}",
                f"{result.engine_token}\n{result.c_token}", f"{result.difference:.0e}", "same" if result.same_bits else "not same",
            )  # fmt: skip
        Console(width=150).print(table)
        print("C: -O3 -march=native. Bits: against the same C built with -ffp-contract=off.")
    slow = any(result.ratio > MOST for result in results) or results[0].bare_ratio > MOST_OVER_BARE
    sys.exit(slow or any(result.difference > 1e-12 for result in results))


if __name__ == "__main__":
    main()
