"""Roundelay against tvopt, decent-bench, disropt and a NumPy loop: the same rounds of the same methods on the same instance.

    python benchmarks/against_peers.py [--json] [--turns 3] [--only tvopt …]

Each peer has an environment of its own below out/performance, which is made here, and a script in `peers/` that drives it through what it
offers to everybody. All take turns, each time as a new process for each method. Before speeds are compared the points of all agents after
as many rounds as it takes to an error of 1e-6 (EXTRA and D-ADMM; the others: after a hundred) are held against those of
the NumPy loop. The first call in a process is no part of a rate or a time to the goal; the first answer, from the start of the process, has a column of its own, where
Roundelay begins with an empty cache and compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import roundelay as rl
from peers.timed import Instance
from peers.with_numpy import methods

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / "out" / "performance" / "environments"
# Points that differ by more than this part of the largest coordinate are not the same.
SAME = 1e-9
GOAL = 1e-6
# What one run may take, in seconds.
MOST = 300.0
METHODS = ("DGD", "EXTRA", "D-ADMM", "gradient after averaging", "gradient tracking")
# Those that are timed to the goal. DGD with a constant step ends beside the optimum.
TO_GOAL = ("EXTRA", "D-ADMM")


@dataclass(frozen=True)
class Peer:
    """Whom to measure: its script, what is installed for it, the least Python that it asks for, and what it has of METHODS."""

    name: str
    script: str
    packages: tuple[str, ...]
    methods: tuple[str, ...]
    python: tuple[int, int] = (3, 11)
    agents_are_processes: bool = False


PEERS = (
    Peer("NumPy loop", "with_numpy.py", ("numpy",), METHODS),
    Peer("tvopt", "with_tvopt.py", ("tvopt",), METHODS[:3]),
    Peer("decent-bench", "with_decent_bench.py", ("decent-bench",), METHODS[:3], (3, 13)),
    Peer("disropt", "with_disropt.py", ("disropt", "openmpi"), METHODS[3:], agents_are_processes=True),
)
ROUNDELAY = Peer("Roundelay", "with_roundelay.py", (), METHODS)


class NotMeasuredError(Exception):
    """A peer that can't be measured here, and why."""


def interpreter(least: tuple[int, int]) -> str:
    """A Python that is new enough: this one, or one on the PATH."""
    if sys.version_info >= least:
        return sys.executable
    for minor in range(least[1], least[1] + 5):
        found = shutil.which(f"python{least[0]}.{minor}")
        # What is called so may be a stand-in for one that is not installed.
        if found is not None and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    raise NotMeasuredError(
        f"it asks for Python {least[0]}.{least[1]} or newer, and there is none on the PATH that runs"
    )


def environment(peer: Peer) -> tuple[Path, str]:
    """The Python of a peer's environment, which is made where it is not there yet, and the versions in it."""
    if not peer.packages:
        return Path(sys.executable), f"roundelay {rl.__version__}"
    folder = ENVIRONMENTS / peer.name.replace(" ", "-")
    python, done = folder / "bin" / "python", folder / "installed.json"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        quietly([interpreter(peer.python), "-m", "venv", str(folder)])
        quietly([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages])
        listed = quietly([str(python), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"])
        versions = {package["name"].lower(): package["version"] for package in json.loads(listed)}
        about = quietly([str(python), "-c", "import platform; print(platform.python_version())"]).strip()
        shown = {"Python": about, **{name: versions[name] for name in ("numpy", *peer.packages) if name in versions}}
        done.write_text(json.dumps(shown))
    return python, ", ".join(f"{name} {version}" for name, version in json.loads(done.read_text()).items())


def quietly(command: Sequence[str], **options: Any) -> str:
    """What a command prints; where it fails, the last line of what it complains of is the reason."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=MOST, check=False, **options)
    except subprocess.TimeoutExpired:
        raise NotMeasuredError(f"{Path(command[0]).name} took more than {MOST:.0f} s") from None
    if ended.returncode != 0:
        said = [line for line in (ended.stderr + ended.stdout).splitlines() if line.strip()]
        raise NotMeasuredError(said[-1].strip() if said else f"{Path(command[0]).name} ended with {ended.returncode}")
    return ended.stdout


def turn(peer: Peer, python: Path, instance: Path, agents: int, method: str, cache: Path) -> dict[str, Any]:
    """One process (of disropt one for each agent) that runs one method."""
    command = [str(python), str(HERE / "peers" / peer.script), str(instance), repr(time.perf_counter()), method]
    # One thread for the algebra of all of them: the matrices are small, and two cores are not to be shared with itself.
    own = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ROUNDELAY_CACHE": str(cache)}
    if peer is not ROUNDELAY:
        own.pop("PYTHONPATH", None)
    if peer.agents_are_processes:
        started = [str(python.parent / "mpiexec"), "--oversubscribe", "--allow-run-as-root", "-n", str(agents)]
        command = [*started, *command]
    return json.loads(quietly(command, env=own).splitlines()[-1])


@dataclass(frozen=True, eq=False)
class Ground:
    """An instance: least squares over a random network, steps, and how many rounds of each method are compared."""

    agents: int
    dim: int
    density: float
    penalty: float

    def write(self, path: Path) -> dict[str, Any]:
        """Write it for all to read; its size in numbers."""
        problem, network = (
            rl.paper_least_squares(self.agents, dim=self.dim),
            rl.random_network(self.agents, self.density),
        )
        zero, weights = np.zeros(self.dim), network.metropolis_weights().toarray()
        step = 1.0 / problem.L
        steps = [0.5 * step, step, self.penalty, 0.5 * step, 0.2 * step]
        given = {
            "hessians": np.array([problem.hessian(i) for i in range(self.agents)]),
            "linear": -np.array([problem.gradient(i, zero) for i in range(self.agents)]),
            "features": np.asarray(problem.features),
            "targets": np.asarray(problem.targets),
            "adjacency": (weights > 0.0) & ~np.eye(self.agents, dtype=bool),
            "weights": weights,
            "methods": np.array(METHODS),
            "steps": np.array(steps),
        }
        np.savez(path, **given, rounds=np.full(len(METHODS), 100))
        known, optimum = methods(Instance(str(path))), problem.optimum
        far = lambda x: np.linalg.norm(x - optimum, axis=1).mean() / np.linalg.norm(optimum)  # noqa: E731
        rounds = [rounds_to(lambda k, name=name: far(known[name](k))) if name in TO_GOAL else 100 for name in METHODS]
        np.savez(path, **given, rounds=np.array(rounds))
        return {
            "agents": self.agents,
            "dim": self.dim,
            "links": len(network.edges),
            "rows": 30,
            "rounds": dict(zip(METHODS, rounds, strict=True)),
        }


def rounds_to(far: Any) -> int:
    """The fewest rounds after which the error is 1e-6 or less: by doubling, then by halving."""
    most = 16
    while far(most) > GOAL:
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if far(middle) <= GOAL else (middle, most)
    return most


GROUNDS = (Ground(10, 20, 0.5, 2.0), Ground(100, 2, 0.3, 0.3))


def measure(turns: int, only: Sequence[str]) -> dict[str, Any]:
    """Everything, as the page keeps it."""
    console = Console(stderr=True)
    asked = [peer for peer in PEERS if not only or peer.name in only]
    environments: dict[str, tuple[Path, str]] = {}
    missing: dict[str, str] = {}
    for peer in track([ROUNDELAY, *asked], "Environments", console=console, transient=True):
        try:
            environments[peer.name] = environment(peer)
        except NotMeasuredError as reason:
            missing[peer.name] = str(reason)
    there = [peer for peer in (ROUNDELAY, *asked) if peer.name in environments]
    answers: dict[tuple[int, str, str], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as place:
        sizes = [ground.write(Path(place, f"{number}.npz")) for number, ground in enumerate(GROUNDS)]
        # A hundred processes that wait for each other by looking again and again don't come to an end on a few cores.
        work = [
            (count, number, method, peer)
            for count in range(turns)
            for number, ground in enumerate(GROUNDS)
            for method in METHODS
            for peer in there
            if method in peer.methods and not (peer.agents_are_processes and ground.agents > 10)
        ]
        for _, number, method, peer in track(work, "Peers take turns", console=console, transient=True):
            # Of every method the first turn begins with an empty cache.
            cache = Path(place, "compiled", str(number), method)
            try:
                found = turn(
                    peer,
                    environments[peer.name][0],
                    Path(place, f"{number}.npz"),
                    GROUNDS[number].agents,
                    method,
                    cache,
                )
                answers.setdefault((number, method, peer.name), []).append(found)
            except NotMeasuredError as reason:
                missing[f"{peer.name}, {method}, {GROUNDS[number].agents} agents"] = str(reason)
    rows = []
    for (number, method, name), found in answers.items():
        expected = (
            np.array(answers[number, method, "NumPy loop"][0]["points"]) if "NumPy loop" in environments else None
        )
        gap = max(float(np.abs(np.array(each["points"]) - expected).max() / np.abs(expected).max()) for each in found)
        rows.append({
            "agents": sizes[number]["agents"], "dim": sizes[number]["dim"], "method": method, "peer": name,
            "rounds": sizes[number]["rounds"][method], "difference": gap,
            "updates_per_s": max(each["updates_per_s"] for each in found),
            "goal_s": min(each["goal_s"] for each in found),
            "answer_s": found[0]["answer_s"], "answer_again_s": min(each["answer_s"] for each in found[1:] or found),
            "rest_mb": min(each["rest_mb"] for each in found), "peak_mb": min(each["peak_mb"] for each in found),
        })  # fmt: skip
    return {
        "turns": turns,
        "grounds": sizes,
        "versions": {name: versions for name, (_, versions) in environments.items()},
        "missing": missing,
        "rows": rows,
    }


def main() -> None:
    """Print what was measured; exit with 1 where two of the same method differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--turns", type=int, default=3, help="how often each of them runs")
    parser.add_argument("--only", nargs="*", default=[], help="the peers to measure")
    options = parser.parse_args()
    found = measure(options.turns, options.only)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for row in found["rows"]:
            print(*(f"{value:.3g}" if isinstance(value, float) else value for value in row.values()), sep="\t")
        for name, reason in found["missing"].items():
            print(f"{name}: not measured, {reason}")
    sys.exit(any(row["difference"] > SAME for row in found["rows"]))


if __name__ == "__main__":
    main()
