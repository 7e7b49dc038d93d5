"""What every peer's script does: times one of its methods on one instance and prints JSON.

    python with_PEER.py INSTANCE LAUNCHED METHOD

It runs in the peer's own environment, so that it needs NumPy alone. INSTANCE is a file of `against_peers.py`, LAUNCHED the reading of the
monotonic clock when the process was started.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

# A method: the agents' points after so many rounds from 0.
Method = Callable[[int], Any]
# How long the runs are whose rounds are counted, in seconds.
LONG = 0.4


class Instance:
    """f_i(x) = ½x'H_i x − b_i'x over an undirected network with weights W, and the rounds and steps of each method."""

    def __init__(self, path: str) -> None:
        with np.load(path) as file:
            self.hessians, self.linear = file["hessians"], file["linear"]
            self.features, self.targets = file["features"], file["targets"]
            self.adjacency, self.weights = file["adjacency"], file["weights"]
            self.steps = dict(zip(file["methods"].tolist(), file["steps"].tolist(), strict=True))
            self.rounds = dict(zip(file["methods"].tolist(), file["rounds"].tolist(), strict=True))
        self.agents, self.dim = self.linear.shape


def memory() -> tuple[float, float]:
    """MB of memory now, and at most since the peak was forgotten."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(sizes["VmRSS"]) / 1024, int(sizes["VmHWM"]) / 1024


def forget_peak() -> None:
    """Count the largest memory from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def measured(
    method: Method,
    rounds: int,
    agents: int,
    ready: float,
    clock: Callable[[], float] = time.process_time,
    together: Callable[[float], float] = float,
) -> dict[str, Any]:
    """One method: the first call, which is the warm-up, the rounds to the goal, and a run of many rounds.

    The clock of rates is the processor's time, in which nobody else on the machine takes part. Where there are several processes, `together` waits
    for all of them and is the largest of their numbers.
    """

    def seconds(rounds: int) -> float:
        together(0.0)
        began = clock()
        method(rounds)
        return together(clock() - began)

    rest = memory()[0]
    forget_peak()
    together(0.0)
    began = time.perf_counter()
    method(rounds)
    first = together(time.perf_counter() - began)
    to_goal, many, long = seconds(rounds), rounds, 0.0
    while long < LONG:
        many *= 2
        long = seconds(many)
    return {
        "answer_s": ready + first,
        "goal_s": to_goal,
        "updates_per_s": agents * many / long,
        "rest_mb": rest,
        "peak_mb": memory()[1],
        "points": np.asarray(method(rounds), np.float64).tolist(),
    }


def main(methods: Callable[[Instance], Mapping[str, Method]]) -> None:
    """Time the method that is asked for and print what came of it."""
    path, launched, name = sys.argv[1:]
    instance = Instance(path)
    method = methods(instance)[name]
    ready = time.perf_counter() - float(launched)
    print(json.dumps(measured(method, instance.rounds[name], instance.agents, ready)))
