"""A site with more rows than anybody wants in memory: what an answer costs against a bare pass of pyarrow over the same columns.

    python benchmarks/big_site.py [--rows 50000000] [--columns 10] [--folder out/big_site] [--rounds 3] [--delete]

The rows are written once, by pyarrow as it does by default. Then processes of their own take turns, each making one pass when it is
told: two bare ones, which read all columns and do nothing with them, and those that form sums. Ratios are of medians over
the rounds, since the machine is shared; the memory is the most that a process ever had. At last the same answer is formed on a
Dask cluster of two workers of this machine, of which one is killed in the middle, and held against the one before bit for bit.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import shutil
import signal
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.dataset
from pyarrow import parquet

import roundelay as rl
from roundelay.algorithms.sealed.questions import Asked, Place
from roundelay.batches import Folder, Part, Passes, open_folder
from roundelay.batches.problem import BatchedProblem, Named, gram_of

ROWS_A_FILE = 2_000_000


def written(folder: Path, rows: int, columns: int) -> Folder:
    """The rows: features from N(0, 1), a number and a label that follow from them. What was written before is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = np.linspace(-0.5, 0.5, columns)
    for number, begin in enumerate(range(0, rows, ROWS_A_FILE)):
        file = folder / f"{number:04}.parquet"
        if file.exists():
            continue
        draws = np.random.default_rng([columns, number])
        features = draws.standard_normal((min(ROWS_A_FILE, rows - begin), columns))
        eta = features @ truth
        table = {f"x{column}": features[:, column] for column in range(columns)}
        table["t"] = eta + draws.standard_normal(len(eta))
        table["label"] = np.where(draws.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta)), 1.0, -1.0)
        parquet.write_table(pyarrow.table(table), file.with_suffix(".new"))
        file.with_suffix(".new").replace(file)
        print(f"\rwritten: {begin + len(eta):,} of {rows:,} rows", end="", flush=True)
    print("\r", end="")
    return open_folder(folder)


# ---------------------------------------------------------------- one pass each


def bare_dataset(folder: Folder, names: list[str]) -> int:
    """pyarrow.dataset with its own defaults, on all cores."""
    return sum(batch.num_rows for batch in pyarrow.dataset.dataset(folder.path).to_batches(columns=names))


def counted(names: list[str], part: Part) -> tuple[int]:
    """The rows of a part, decoded."""
    return (sum(batch.num_rows for batch in part.batches(names)),)


def bare_reader(folder: Folder, names: list[str]) -> int:
    """What a pass here reads, on all cores, without an arithmetic operation."""
    return Passes().summed(folder.parts, partial(counted, names))[0]


def least_squares(folder: Folder, names: list[str]) -> Any:
    """H and b of least squares."""
    return gram_of(folder.parts, Named(tuple(names)), Passes()).products


def logistic(folder: Folder, names: list[str], passes: Passes) -> BatchedProblem:
    """The problem of one agent; making it asks for the gradient at 0, so that the first pass is no part of what is measured."""
    found: Any = rl.by_batches(rl.Logistic, [folder], names[:-1], "label", dask=passes.dask, progress=passes.tell)
    return found


def answer(problem: BatchedProblem, asked: Asked, number: int) -> Any:
    """An answer at a point at which nobody has asked before."""
    return problem.answer(0, asked, Place(np.full(problem.dim, 0.01 * (number + 1)), np.zeros(problem.dim)))


def work_of(name: str, folder: Folder, names: list[str]) -> Callable[[int], Any]:
    """What a process does when it is told to, the n-th time."""
    if name.startswith("bare"):
        bare = bare_dataset if name.endswith("dataset") else bare_reader
        return lambda number: bare(folder, names)
    if name == "least squares: H and b":
        return lambda number: least_squares(folder, names)
    problem = logistic(folder, names, Passes())
    asked = Asked.GRADIENT if name.endswith("gradient") else Asked.VALUE_GRADIENT_AND_HESSIAN
    return lambda number: answer(problem, asked, number)


MEASURED = (
    "bare, pyarrow.dataset",
    "bare, parts as read here",
    "least squares: H and b",
    "logistic: gradient",
    "logistic: value, gradient, Hessian",
)


def process(name: str, path: str, names: list[str], pipe: Any) -> None:
    """Make a pass each time that a number comes; say how long it took, how much processor time, and the most memory so far in MB."""
    work = work_of(name, open_folder(path), names)
    pipe.send("ready")
    with suppress(EOFError):
        while True:
            number = pipe.recv()
            begun, used = time.perf_counter(), time.process_time()
            work(number)
            took = time.perf_counter() - begun, time.process_time() - used
            pipe.send((*took, peak()))


def measure(folder: Folder, names: list[str], rounds: int) -> None:
    """All in turns, and a table of it."""
    context = mp.get_context("spawn")
    pipes: dict[str, Any] = {}
    for name in MEASURED:
        pipes[name], theirs = context.Pipe()
        context.Process(target=process, args=(name, folder.path, names, theirs), daemon=True).start()
        pipes[name].recv()
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in MEASURED}
    for number in range(rounds + 1):
        for name in MEASURED:
            pipes[name].send(number)
            took = pipes[name].recv()
            if number:  # the first is for caches
                found[name].append(took)
    medians = {
        name: tuple(statistics.median(column) for column in zip(*rows, strict=True)) for name, rows in found.items()
    }
    first, second = MEASURED[:2]
    print(
        f"{'':36} {'seconds':>8} {'× dataset':>10} {'× reading':>10} {'processor s':>12} {'× reading':>10} {'most MB':>8}"
    )
    for name, (seconds, processor, memory) in medians.items():
        print(
            f"{name:36} {seconds:8.2f} {seconds / medians[first][0]:10.2f} {seconds / medians[second][0]:10.2f} {processor:12.2f} "
            f"{processor / medians[second][1]:10.2f} {memory:8.0f}"
        )


# ---------------------------------------------------------------- a cluster of the site's own


def on_dask(folder: Folder, names: list[str]) -> None:
    """The same answer on two workers, one of which is killed when a third of the rows are read."""
    from distributed import Client, LocalCluster

    here = logistic(folder, names, Passes())
    expected = answer(here, Asked.VALUE_GRADIENT_AND_HESSIAN, 0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        victim = next(iter(client.scheduler_info()["workers"]))
        pid = client.run(os.getpid, workers=[victim])[victim]
        killed: list[int] = []

        def kill(done: int, total: int) -> None:
            if not killed and armed and total // 3 <= done < total:
                os.kill(pid, signal.SIGKILL)
                killed.append(done)

        armed: list[bool] = []
        there = logistic(folder, names, Passes(dask=client, tell=kill))
        armed.append(True)
        begun = time.perf_counter()
        found = answer(there, Asked.VALUE_GRADIENT_AND_HESSIAN, 0)
        took = time.perf_counter() - begun
        memory = max(client.run(peak).values())
    at = f"after {killed[0]:,} rows" if killed else "never: the pass was too short"
    print(
        f"On Dask, 2 workers of one thread: {took:.2f} s, one killed {at}; the same bits: {np.array_equal(found, expected)}; most MB of a worker "
        f"{memory:.0f}"
    )


def peak() -> float:
    """The most memory that this process ever had, in MB; not by getrusage, which begins at what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024.0


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path("out/big_site"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delete", action="store_true", help="delete the files in the end")
    return parser.parse_args()


def main() -> None:
    """Write, measure, and try it on Dask."""
    given = arguments()
    names = [*(f"x{column}" for column in range(given.columns)), "t"]
    try:
        folder = written(given.folder, given.rows, given.columns)
        size = sum(os.path.getsize(file) for file in folder.files) / 1e9
        print(
            f"{folder.rows:,} rows, {given.columns} features and a target, {len(folder.files)} files of {size:.1f} GB, {os.cpu_count()} cores"
        )
        measure(folder, names, given.rounds)
        on_dask(folder, names)
    finally:
        if given.delete:
            shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
