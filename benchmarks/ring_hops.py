"""What a hop of a real ring costs, against a bare gRPC stream with mutual TLS between the same processes.

    python benchmarks/ring_hops.py [--agents 8] [--dim 2] [--rounds 5]

Eight processes on this machine take turns: first a ring of roundelay with journals, then a bare token, some bytes that each
passes on as they came. Ratios are of medians over the rounds, since the machine is shared. The time that the update itself
takes is printed and taken out; everything else (checks, checksums, journal, acknowledgements) counts.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import multiprocessing as mp
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.agents.processes import free_ports

import roundelay as rl
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity, make_identity, save_identity
from roundelay.agents.agreement.plan import Member, RingPlan, Stopping, Task
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import write_ring
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.site.taking_part import Site, SiteOptions


class Diagonal:
    """f(x) = ½ Σ h_d (x_d − t_d)²."""

    def __init__(self, dim: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.h = rng.uniform(0.5, 2.0, dim)
        self.ht = self.h * rng.normal(size=dim)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """∇f(x)."""
        return self.h * x - self.ht

    def prox(self, v: np.ndarray, penalty: float) -> np.ndarray:
        """argmin f(x) + penalty/2 ‖x − v‖²."""
        x = penalty * v
        x += self.ht
        x /= self.h + penalty
        return x


def own_problem(dim: int, seed: int) -> rl.CallableProblem:
    """One site's diagonal quadratic."""
    own = Diagonal(dim, seed)
    return rl.CallableProblem([own.gradient], dim, prox_of=[own.prox])


class BareRing:
    """A token that everybody passes on as it came."""

    def __init__(self, number: int, plan: RingPlan, folder: Path, ports: list[int], size: int) -> None:
        self.number, self.plan, self.folder, self.ports, self.size = number, plan, folder, ports, size

    async def run(self, laps: int) -> float:
        """Seconds a hop, as the first process sees it."""
        import grpc

        from roundelay.agents.agreement.identity import server_name

        me, agents = self.number, self.plan.agents
        before, after = (me - 1) % agents, (me + 1) % agents
        identity = load_identity(self.folder / self.plan.members[me].name)
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        arrivals: asyncio.Queue[bytes] = asyncio.Queue()

        async def answer(_requests: Any, context: Any) -> None:
            while (data := await context.read()) is not grpc.aio.EOF:
                arrivals.put_nowait(data)

        server = grpc.aio.server(options=options)
        handler = grpc.stream_stream_rpc_method_handler(answer)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare", {"Link": handler}),))
        trusted = self.plan.members[before].certificate.encode()
        pair = (identity.key, identity.certificate.encode())
        server.add_secure_port(
            f"127.0.0.1:{self.ports[me]}", grpc.ssl_server_credentials([pair], trusted, require_client_auth=True)
        )
        await server.start()
        certificate = self.plan.members[after].certificate
        channel = grpc.aio.secure_channel(
            f"127.0.0.1:{self.ports[after]}",
            grpc.ssl_channel_credentials(certificate.encode(), *pair),
            options=[*options, ("grpc.ssl_target_name_override", server_name(certificate))],
        )
        call = channel.stream_stream("/bare/Link")(wait_for_ready=True)
        await call.wait_for_connection()
        took = 0.0
        if me == 0:
            await asyncio.sleep(0.5)
            await call.write(bytes(self.size))
            began = 0.0
            for lap in range(laps + 3):
                data = await arrivals.get()
                if lap == 2:  # the first laps warm up
                    began = time.perf_counter()
                took = time.perf_counter() - began
                if lap < laps + 2:
                    await call.write(data)
        else:
            for _ in range(laps + 3):
                await call.write(await arrivals.get())
        await asyncio.sleep(0.3)
        call.cancel()
        await channel.close()
        await server.stop(0.1)
        return took / (laps * agents)


def timed_updates(spent: list[float]) -> None:
    """Let every update note how long it took."""
    update = Holder.visit

    def visit(self: Holder, baton: Any) -> Any:
        began = time.perf_counter()
        try:
            return update(self, baton)
        finally:
            spent.append(time.perf_counter() - began)

    Holder.visit = visit  # type: ignore[method-assign]


def memory() -> tuple[float, float]:
    """MB of memory now, and at most since the peak was forgotten."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(sizes["VmRSS"]) / 1024, int(sizes["VmHWM"]) / 1024


def forget_peak() -> None:
    """Count the largest memory from now on; give back what the bare ring has used."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def worker(
    number: int, plan: RingPlan, folder: Path, ports: list[int], arguments: Any, gate: Any, results: Any
) -> None:
    """One process: it takes part in both rings, again and again."""
    spent: list[float] = []
    timed_updates(spent)
    problem = own_problem(arguments.dim, number)
    at_rest = memory()[0]
    for round_ in range(arguments.rounds):
        stamps: list[tuple[float, float]] = []
        shutil.rmtree(folder / plan.members[number].name / "runs", ignore_errors=True)
        site = Site(folder / plan.members[number].name, plan.run, Known(problem), SiteOptions(meter=False))
        spent.clear()

        def watch(found: Any, stamps: list[tuple[float, float]] = stamps) -> None:
            visited = found.visited
            found.agent.on_visit = lambda: (visited(), stamps.append((time.perf_counter(), time.process_time())))

        site.on_epoch = watch
        forget_peak()
        gate.wait()
        asyncio.run(site.run())
        largest = memory()[1]  # before the bare ring's buffers
        gate.wait()
        bare = asyncio.run(BareRing(number, plan, folder, ports, 8 * arguments.dim + 48).run(arguments.laps))
        hops = (len(stamps) - 4) * plan.agents
        hop, busy = (stamps[-2][0] - stamps[2][0]) / hops, (stamps[-2][1] - stamps[2][1]) / hops
        update = statistics.mean(spent[3:])
        results.put((round_, number, bare, hop, update, largest, at_rest, busy))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--dim", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--laps", type=int, default=0, help="laps a round; by default as many as take some seconds")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args()
    arguments.laps = arguments.laps or (150 if arguments.dim < 100_000 else 12)
    agents = arguments.agents
    with tempfile.TemporaryDirectory() as place:
        folder, members = Path(place), []
        for number, port in enumerate(free_ports(agents)):
            save_identity(folder / f"site{number}", make_identity(f"site{number}"))
            write_policy(folder / f"site{number}", ANYTHING)
            identity = load_identity(folder / f"site{number}")
            members.append(Member(identity.name, identity.certificate, f"127.0.0.1:{port}"))
        links = tuple((number, (number + 1) % agents) for number in range(agents))
        plan = RingPlan(
            "0" * 32, 0, tuple(members), tuple(range(agents)), links, rl.IADMM(rho=1.0), Task("custom", dim=arguments.dim),
            Stopping(None, agents * (arguments.laps + 8)),
        )  # fmt: skip
        text = write_ring(plan, load_identity(folder / "site0"))
        for number in range(agents):
            accept_ring(folder / f"site{number}", text)
        context = mp.get_context("spawn")
        gate, results = context.Barrier(agents), context.Queue()
        ports = free_ports(agents)
        processes = [
            context.Process(target=worker, args=(number, plan, folder, ports, arguments, gate, results))
            for number in range(agents)
        ]
        for process in processes:
            process.start()
        rows = [results.get() for _ in range(agents * arguments.rounds)]
        for process in processes:
            process.join()
    first = [row for row in rows if row[1] == 0]
    bare, hop = statistics.median(row[2] for row in first), statistics.median(row[3] for row in first)
    update = statistics.median(row[4] for row in rows)
    # Who waits for the machine has not used it: what all processes used is steadier than the clock where it is shared.
    busy = statistics.median(sum(row[7] for row in rows if row[0] == number) for number in range(arguments.rounds))
    largest, rest = max(row[5] for row in rows if row[0] == 0), statistics.median(row[6] for row in rows)
    own = 16e-6 * arguments.dim  # h and h·t
    if arguments.json:
        found = {
            "agents": agents, "dim": arguments.dim, "rounds": arguments.rounds, "laps": arguments.laps,
            "bare_ms": 1e3 * bare, "hop_ms": 1e3 * hop, "update_ms": 1e3 * update, "ratio": hop / bare,
            "ratio_without_update": (hop - update) / bare, "memory_beyond_data_mb": largest - own,
        }  # fmt: skip
        print(json.dumps(found, indent=1))
        return
    print(f"{agents} processes, p = {arguments.dim:,}, {arguments.rounds} rounds of {arguments.laps} laps, medians:")
    print(f"  bare gRPC stream, mutual TLS   {1e3 * bare:8.3f} ms a hop")
    print(f"  roundelay, journal on          {1e3 * hop:8.3f} ms a hop, of which the update {1e3 * update:.3f} ms")
    print(f"  ratio                          {hop / bare:8.2f}, without the update {(hop - update) / bare:.2f}")
    print(f"  processor, all together        {1e3 * busy:8.3f} ms a hop")
    print(f"  memory of an agent             {largest - own:8.0f} MB at most beyond its data ({own:.0f} MB)")
    print(f"                                 {rest - own:8.0f} MB of that before it started")


if __name__ == "__main__":
    main()
