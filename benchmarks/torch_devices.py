"""A PyTorch module over ten agents, on the processor and on a GPU in turns: do both say the same, and what does a visit take?

    PYTHONPATH=src python benchmarks/torch_devices.py

Synthetic pictures of 784 numbers, 6,000 an agent, and a network with two hidden layers of 512: 669,706 parameters, in single precision. Where there is no GPU
it says so, and measures the processor alone.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch

import roundelay as rl

AGENTS = 10


def problem(device: str, rows: int, hidden: int) -> rl.TorchProblem:
    """The same functions on a device."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(784, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10)
    )  # fmt: skip
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(rows, 784)).astype(np.float32) for _ in range(AGENTS)]
    classes = [rng.integers(0, 10, rows) for _ in range(AGENTS)]
    return rl.TorchProblem(module, torch.nn.functional.cross_entropy, features, classes, device=device)


def seconds_a_visit(own: rl.TorchProblem, hops: int) -> tuple[float, Any]:
    """One run of a first-order token method, by the clock."""
    began = time.perf_counter()
    run = rl.simulate(rl.WPG(alpha=0.05), own, rl.ring(AGENTS), hops, record=hops, progress=False)
    return (time.perf_counter() - began) / hops, run


def main(rows: int = 6000, hidden: int = 512, hops: int = 20, rounds: int = 3) -> dict[str, Any]:
    """Compare, then take turns; the fastest round of each counts."""
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    problems = {device: problem(device, rows, hidden) for device in devices}
    slopes = {device: own.gradient(0, own.begins_at) for device, own in problems.items()}
    found: dict[str, Any] = {
        "parameters": problems["cpu"].dim,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }
    taken: dict[str, list[float]] = {device: [] for device in devices}
    for _ in range(rounds):
        for device, own in problems.items():
            seconds, run = seconds_a_visit(own, hops)
            taken[device].append(seconds)
            found[f"{device} objective after"] = float(run.history.objective.iloc[-1])
    found |= {f"{device} ms a visit": 1e3 * min(times) for device, times in taken.items()}
    if "cuda" in devices:
        found["gpu"] = torch.cuda.get_device_name()
        found["gradients differ by"] = float(np.abs(slopes["cuda"] - slopes["cpu"]).max() / np.abs(slopes["cpu"]).max())
        found["cpu over gpu"] = min(taken["cpu"]) / min(taken["cuda"])
    else:
        found["gpu"] = "There is none here that PyTorch could use."
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--hops", type=int, default=20)
    print(json.dumps(main(**vars(parser.parse_args())), indent=1))
