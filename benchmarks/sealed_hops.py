"""What a hop of sealed laps costs, against a token hop with as many bytes between the same processes.

    python benchmarks/sealed_hops.py [--agents 8] [--dim 20] [--rounds 5] [--laps 0]

Processes on this machine take turns, with mutual TLS and journals: first a token of 2p numbers goes round (I-ADMM), then
questions do, p numbers that are told and p words of a sum under masks. The questions are those of plain gradient steps, so that
they go on for as long as one likes; with --optimiser lbfgs those of L-BFGS. Ratios are of medians over the rounds, since the
machine is shared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing as mp
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from tests.agents.processes import free_ports

import roundelay as rl
from ring_hops import forget_peak, memory, own_problem
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity, make_identity, save_identity
from roundelay.agents.agreement.plan import Member, RingPlan, Stopping, Task
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import write_ring
from roundelay.agents.data.objectives import Known
from roundelay.agents.site.taking_part import Site, SiteOptions
from roundelay.algorithms.sealed.optimisers import Asking, Found, Goal, Optimiser
from roundelay.algorithms.sealed.questions import Asked, Question


@rl.register(Optimiser, "gradient-steps")
@dataclass(frozen=True)
class GradientSteps:
    """Steps along the gradient, which never end."""

    name: ClassVar[str] = "gradient steps"
    asks: ClassVar[tuple[Asked, ...]] = (Asked.GRADIENT,)

    def questions(self, goal: Goal) -> Asking:
        """Ask for the gradient, again and again."""
        z = np.zeros(goal.dim)
        gradient = (yield Question(Asked.GRADIENT)).gradient
        for _ in range(goal.most):
            z = z - 0.02 / goal.agents * gradient
            gradient = (yield Question(Asked.GRADIENT, z)).gradient
        return Found(z, 0.0, True)


def worker(number: int, plans: list[RingPlan], folder: Path, arguments: Any, gate: Any, results: Any) -> None:
    """One process: it takes part in both rings, again and again."""
    name = plans[0].members[number].name
    at_rest = memory()[0]
    for round_ in range(arguments.rounds):
        for kind, plan in enumerate(plans):
            problem = own_problem(plan.dim, number)
            stamps: list[float] = []
            shutil.rmtree(folder / name / "runs", ignore_errors=True)
            site = Site(folder / name, plan.run, Known(problem), SiteOptions(meter=False))

            def watch(found: Any, stamps: list[float] = stamps) -> None:
                visited = found.visited
                found.agent.on_visit = lambda: (visited(), stamps.append(time.perf_counter()))

            site.on_epoch = watch
            forget_peak()
            gate.wait()
            asyncio.run(site.run())
            largest = memory()[1]
            gate.wait()
            hop = (stamps[-3] - stamps[3]) / ((len(stamps) - 6) * plan.agents)
            data = 16e-6 * plan.dim  # h and h·t
            results.put((round_, number, kind, hop, largest - at_rest - data))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--laps", type=int, default=0, help="laps a round; by default as many as take some seconds")
    parser.add_argument("--optimiser", choices=("steps", "lbfgs"), default="steps")
    parser.add_argument("--wide", action="store_true", help="two words a number")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args()
    laps = arguments.laps or (150 if arguments.dim < 100_000 else 12)
    agents, dim = arguments.agents, arguments.dim
    optimiser = rl.LBFGS() if arguments.optimiser == "lbfgs" else GradientSteps()
    sealed = rl.SealedLaps(optimiser, wide=arguments.wide)
    as_many = (3 if arguments.wide else 2) * dim
    with tempfile.TemporaryDirectory() as place:
        folder, members = Path(place), []
        for number, port in enumerate(free_ports(agents)):
            save_identity(folder / f"site{number}", make_identity(f"site{number}"))
            write_policy(folder / f"site{number}", ANYTHING)
            identity = load_identity(folder / f"site{number}")
            members.append(Member(identity.name, identity.certificate, f"127.0.0.1:{port}"))
        links = tuple((number, (number + 1) % agents) for number in range(agents))
        ring = (tuple(members), tuple(range(agents)), links)
        plans = [
            RingPlan(
                "0" * 32, 0, *ring, rl.IADMM(rho=1.0), Task("custom", dim=as_many), Stopping(None, agents * (laps + 8))
            ),
            RingPlan("1" * 32, 0, *ring, sealed, Task("custom", dim=dim), Stopping(None, questions=laps + 8)),
        ]
        for plan in plans:
            text = write_ring(plan, load_identity(folder / "site0"))
            for number in range(agents):
                accept_ring(folder / f"site{number}", text)
        context = mp.get_context("spawn")
        gate, results = context.Barrier(agents), context.Queue()
        processes = [
            context.Process(target=worker, args=(number, plans, folder, arguments, gate, results))
            for number in range(agents)
        ]
        for process in processes:
            process.start()
        rows = [results.get() for _ in range(2 * agents * arguments.rounds)]
        for process in processes:
            process.join()
    token, question = (statistics.median(row[3] for row in rows if row[1:3] == (0, kind)) for kind in (0, 1))
    memory_beyond = [max(row[4] for row in rows if row[2] == kind) for kind in (0, 1)]
    if arguments.json:
        found = {
            "agents": agents, "dim": dim, "rounds": arguments.rounds, "laps": laps, "numbers": as_many,
            "token_ms": 1e3 * token, "question_ms": 1e3 * question, "ratio": question / token,
            "memory_beyond_start_mb": memory_beyond[1],
        }  # fmt: skip
        print(json.dumps(found, indent=1))
        return
    print(f"{agents} processes, p = {dim:,}, {arguments.rounds} rounds of {laps} laps, mutual TLS, journals, medians:")
    print(f"  a token of {as_many:,} numbers   {1e3 * token:8.3f} ms a hop")
    print(f"  a question of as many        {1e3 * question:8.3f} ms a hop")
    print(f"  ratio                        {question / token:8.2f}")
    for largest, what in zip(memory_beyond, ("token", "sealed"), strict=True):
        print(f"  memory of an agent, {what:<8} {largest:8.0f} MB at most beyond its start")


if __name__ == "__main__":
    main()
