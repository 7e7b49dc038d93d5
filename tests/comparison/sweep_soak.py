"""A sweep on a Dask cluster of processes that are killed on the way: workers, the scheduler, and whoever called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.testing import assert_frame_equal

import roundelay as rl
from roundelay.comparison.runners import LEAST_AHEAD
from tests.agents.processes import free_ports
from tests.comparison.counted import begun, handed, noting

WORKERS = 4
# At how many rows in the folder who is killed.
KILLS = (
    (100, "worker"),
    (400, "worker"),
    (700, "scheduler"),
    (900, "worker"),
    (1200, "client"),
    (1500, "worker"),
    (1800, "worker"),
)


def long_sweep(**options: Any) -> pd.DataFrame:
    """2,000 tasks of three methods."""
    problems = {f"p = {dim}": lambda seed, dim=dim: rl.paper_least_squares(20, 10, dim, seed=seed) for dim in (2, 5)}
    networks = {"random": lambda seed: rl.random_network(20, 0.3, seed=seed), "ring": rl.ring(20)}
    return rl.sweep(
        [rl.IADMM(), rl.PIADMM1(), rl.EXTRA()], problems, networks,
        seeds=range(100), parameters={"rho": [2.0, 20.0]}, hops=4_000, iterations=400, progress=False, **options,
    )  # fmt: skip


@dataclass
class Cluster:
    """A scheduler, workers and a caller, each begun anew when it ends, as a queue or a service would."""

    folder: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    begun: Counter[str] = field(default_factory=Counter)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def rows(self) -> Path:
        return self.folder / "rows"

    def kept(self) -> set[str]:
        return {path.stem for path in self.rows.glob("*.parquet")}

    def start(self, name: str) -> None:
        words = {
            "scheduler": ("-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-show"),
            "client": ("-m", "tests.comparison.sweep_soak", str(self.folder), self.address),
        }  # fmt: skip
        worker = ("-m", "dask", "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", f"{name}-{self.begun[name]}")  # fmt: skip
        self.begun[name] += 1
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *words.get(name, worker)], stdout=log, stderr=log, start_new_session=True,
                cwd=self.folder, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])},
            )  # fmt: skip

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Kill:
    """Who was killed, when, what was in the folder just before, and what had been handed over and had begun by then.

    A worker takes with it what it had begun. When the scheduler or the caller is gone workers still begin what is in their queues, of which
    nobody learns: that had been handed over.
    """

    who: str
    at: int
    kept: set[str]
    handed: set[str]
    begun: set[str]

    @property
    def in_flight(self) -> set[str]:
        return (self.begun if self.who.startswith("worker") else self.handed) - self.kept


def killed(folder: Path, tell: Callable[[str], None]) -> None:
    """The sweep with all its kills equals that of one core; nothing began twice but what was in flight at a kill."""
    began = time.monotonic()
    alone = long_sweep(processes=0)
    tell(f"one core: {len(alone)} tasks in {time.monotonic() - began:.0f} s, {(alone.failed != '').sum()} failed")
    began, cluster, kills, coming = time.monotonic(), Cluster(folder), list[Kill](), list(KILLS)
    names = ["scheduler", *(f"worker {number}" for number in range(WORKERS)), "client"]
    try:
        for name in names:
            cluster.start(name)
        while True:
            for name, process in list(cluster.processes.items()):
                if process.poll() is not None and not (name == "client" and process.returncode == 0):
                    cluster.start(name)
            if cluster.processes["client"].poll() == 0:
                break
            if coming and len(kept := cluster.kept()) >= coming[0][0]:
                who = coming.pop(0)[1]
                name = f"worker {len(kills) % WORKERS}" if who == "worker" else who
                at = time.time_ns()
                cluster.kill(name)
                kills.append(Kill(name, at, kept, set(handed(folder / "log")), set(begun(folder / "log"))))
                tell(f"{name} killed at {len(kept)} rows, {len(kills[-1].in_flight)} tasks in flight")
            time.sleep(0.02)
    finally:
        cluster.end()
    tell(f"four workers, {len(kills)} kills: {time.monotonic() - began:.0f} s")
    tell("begun: " + ", ".join(f"{name} {times}" for name, times in sorted(cluster.begun.items())))
    assert Counter(kill.who.split()[0] for kill in kills) == {"worker": 5, "scheduler": 1, "client": 1}
    assert_frame_equal(pd.read_pickle(folder / "table.pickle"), alone, check_exact=True)
    assert cluster.kept() == set(alone.key)
    tell(f"all {len(alone)} rows equal those of one core, bit for bit")
    times = beginnings(folder / "log")
    again = [(key, when) for key, every in times.items() for when in sorted(every)[1:]]
    for key, when in again:
        assert any(kill.at < when and key in kill.in_flight for kill in kills), (key, sorted(times[key]), kills)
    assert len(again) <= LEAST_AHEAD * len(kills)  # which is how many are in flight at most
    tell(
        f"{sum(map(len, times.values()))} beginnings of {len(times)} tasks: {len(again)} were repeated, each in flight at a kill"
    )
    late = sum(any(kill.at < when and key in kill.handed - kill.begun for kill in kills) for key, when in again)
    tell(f"  {late} of them were in a queue when scheduler or caller was killed, and began once more after that")
    for number, kill in enumerate(kills):
        until = kills[number + 1].at if number + 1 < len(kills) else sys.maxsize
        repeated = sum(kill.at < when < until for _, when in again)
        tell(f"  after {kill.who}: {len(kill.in_flight)} in flight, {repeated} repeated")


def beginnings(folder: Path) -> dict[str, list[int]]:
    """When each task began."""
    found: dict[str, list[int]] = {}
    for line in (folder / "begun").read_text().splitlines():
        key, when = line.split()
        found.setdefault(key, []).append(int(when))
    return found


def main(folder: Path, address: str) -> None:
    """Whoever calls."""
    with noting(folder / "log"):
        table = long_sweep(folder=folder / "rows", dask=address)
    table.to_pickle(folder / "table.pickle")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
