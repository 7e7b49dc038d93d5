"""How long somebody at a notebook waits for the first result: of a new combination of method and problem, in another dimension, in a second process.

    python benchmarks/first_answer.py                          # this state of the project
    python benchmarks/first_answer.py --before OTHER/src       # with another state beside it, such as a worktree of an earlier commit
    python benchmarks/first_answer.py --json                   # the figures for other programs

Every line is measured in processes of its own that begin with an empty folder of compiled code, but for the last ones, which find
what the second has left. States take turns; of several rounds the shortest counts, since noise only ever slows down. On a
machine that has other work the processor's seconds say more than those of the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

HERE = Path(__file__).resolve().parents[1] / "src"

# Prints how long each run took, after how long the import took: on the clock, and of the processor. A run is (algorithm, dimension, steps, whether messages get lost).
SCRIPT = """
import json, sys, time

def now():
    return time.perf_counter(), time.process_time()

def since(began):
    return [end - begin for begin, end in zip(began, now())]

began = now()
import roundelay as rl

seconds = [since(began)]
network, lossy = rl.random_network(100, 0.3), rl.NetworkConditions(loss=rl.BernoulliLoss(0.1))
algorithms = {"token": (rl.IADMM(), "hops"), "gossip": (rl.DADMM(0.7), "iterations")}
for kind, dim, steps, loss in json.loads(sys.argv[1]):
    problem, (algorithm, unit) = rl.paper_least_squares(dim=dim), algorithms[kind]
    problem.optimum
    began = now()
    rl.simulate(algorithm, problem, network, progress=False, conditions=lossy if loss else None, **{unit: steps})
    seconds.append(since(began))
print(json.dumps(seconds))
"""

Step = tuple[str, int, int, bool]
Seconds = tuple[float, float]


@dataclass(frozen=True)
class Session:
    """One process: its runs, one after another, and what each of them is called."""

    runs: tuple[Step, ...]
    names: tuple[str, ...]
    finds: bool = False  # what an earlier process left


SESSIONS = (
    Session(
        (("token", 2, 100, False), ("token", 5, 100, False), ("token", 20, 100, False)),
        ("I-ADMM, p = 2, 100 hops", "then p = 5, 100 hops", "then p = 20, 100 hops"),
    ),
    Session(
        (("token", 2, 20_000, False), ("token", 5, 20_000, False), ("token", 20, 20_000, False)),
        ("I-ADMM, p = 2, 20,000 hops", "then p = 5, 20,000 hops", "then p = 20, 20,000 hops"),
    ),
    Session(
        (("token", 2, 100, True), ("token", 5, 100, True)),
        ("I-ADMM with loss, p = 2, 100 hops", "then p = 5, 100 hops, with loss"),
    ),
    Session(
        (("gossip", 2, 100, False), ("gossip", 5, 100, False)),
        ("D-ADMM, p = 2, 100 iterations", "then p = 5, 100 iterations"),
    ),
    Session(
        (("token", 2, 20_000, False), ("token", 3, 20_000, False)),
        ("in a second process: I-ADMM, p = 2, 20,000 hops", "then p = 3, 20,000 hops, which is new there"),
        finds=True,
    ),
)


@dataclass(frozen=True)
class Figure:
    """One line of the table: seconds on the clock and of the processor, of this state and of the other one where there is one."""

    what: str
    seconds: Seconds
    before: Seconds | None


def seconds_of(session: Session, source: Path, cache: str) -> list[Seconds]:
    """The import, and each of its runs, in a new process."""
    environment = os.environ | {"PYTHONPATH": str(source), "ROUNDELAY_CACHE": cache}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(session.runs)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        sys.exit(f"With {source} the process failed:\n{answer.stderr}")
    return [(clock, processor) for clock, processor in json.loads(answer.stdout.splitlines()[-1])]


def one_round(source: Path) -> dict[str, Seconds]:
    """All sessions, beginning with nothing."""
    found: dict[str, Seconds] = {}
    with tempfile.TemporaryDirectory() as kept:
        for number, session in enumerate(SESSIONS):
            with tempfile.TemporaryDirectory() as own:
                first = number == 1  # whose code is kept for those that find it
                imported, *runs = seconds_of(session, source, kept if first or session.finds else own)
            found = shortest(found, {"import roundelay": imported, **dict(zip(session.names, runs, strict=True))})
    return found


def shortest(one: dict[str, Seconds], other: dict[str, Seconds]) -> dict[str, Seconds]:
    """Of what stands in both the shortest, on the clock and of the processor."""
    both = {name: (min(one[name][0], other[name][0]), min(one[name][1], other[name][1])) for name in one.keys() & other}
    return one | other | both


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="the src folder of another state of the project")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.before and not (options.before / "roundelay").is_dir():
        sys.exit(f"There is no roundelay in {options.before}: name the src folder of another state of the project.")
    sources = [HERE] if options.before is None else [HERE, options.before.resolve()]
    least: list[dict[str, Seconds]] = [{} for _ in sources]
    turns = [(k, source) for _ in range(options.rounds) for k, source in enumerate(sources)]
    for k, source in track(turns, "Processes begin anew", console=Console(stderr=True), transient=True):
        least[k] = shortest(least[k], one_round(source))
    figures = [Figure(name, seconds, least[-1][name] if options.before else None) for name, seconds in least[0].items()]
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures], indent=1))
        return
    before = ["before, s", "processor, s"] if options.before else []
    table = Table("first result of", *before, "seconds", "processor, s")
    for figure in figures:
        numbers = (*(figure.before or ()), *figure.seconds)
        table.add_row(figure.what, *(f"{number:.2f}" for number in numbers))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
