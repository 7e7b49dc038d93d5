"""A round of a gossip method by Roundelay, against a NumPy loop and a compiled loop written by hand.

Prints, for each method, the time of one round of each, side by side in one run, and the ratio of Roundelay's to the
faster of the two. `make bench` runs it.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.progress import track
from scipy import sparse

import roundelay as rl
from peers.with_numpy import dadmm, dgd, extra
from roundelay.engine.assemble import gossip_assembly, prepare
from roundelay.engine.checks import Options, marks_of
from roundelay.engine.gossip_run import new_gossip_state

AGENTS, DENSITY, DIM = 100, 0.3, 2
ROUNDS, REPEATS = 20_000, 9
CONDITIONS = rl.NetworkConditions(loss=rl.BernoulliLoss(0.1), noise=1e-3)
STRICT = {"error_model": "numpy", "fastmath": False}


# ---------------------------------------------------------------- compiled, by hand


@numba.njit(**STRICT)
def compiled_dgd(starts, neighbours, weights, own, h, b, alpha, rounds):
    """The same over the lists of neighbours."""
    agents = b.shape[0]
    x, new = np.zeros((agents, 2)), np.zeros((agents, 2))
    for _ in range(rounds):
        for i in range(agents):
            first, second = own[i] * x[i, 0], own[i] * x[i, 1]
            for a in range(starts[i], starts[i + 1]):
                j = neighbours[a]
                first += weights[a] * x[j, 0]
                second += weights[a] * x[j, 1]
            new[i, 0] = first - alpha * (h[i, 0, 0] * x[i, 0] + h[i, 0, 1] * x[i, 1] - b[i, 0])
            new[i, 1] = second - alpha * (h[i, 1, 0] * x[i, 0] + h[i, 1, 1] * x[i, 1] - b[i, 1])
        x, new = new, x
    return x


@numba.njit(**STRICT)
def compiled_extra(starts, neighbours, weights, own, h, b, alpha, rounds):
    """The same over the lists of neighbours."""
    agents = b.shape[0]
    x, new, before = np.zeros((agents, 2)), np.zeros((agents, 2)), np.zeros((agents, 2))
    mixed, slope = np.zeros((agents, 2)), np.zeros((agents, 2))
    for k in range(rounds):
        for i in range(agents):
            first, second = own[i] * x[i, 0], own[i] * x[i, 1]
            for a in range(starts[i], starts[i + 1]):
                j = neighbours[a]
                first += weights[a] * x[j, 0]
                second += weights[a] * x[j, 1]
            slope0 = h[i, 0, 0] * x[i, 0] + h[i, 0, 1] * x[i, 1] - b[i, 0]
            slope1 = h[i, 1, 0] * x[i, 0] + h[i, 1, 1] * x[i, 1] - b[i, 1]
            if k == 0:
                new[i, 0], new[i, 1] = first - alpha * slope0, second - alpha * slope1
            else:
                new[i, 0] = x[i, 0] + first - 0.5 * (before[i, 0] + mixed[i, 0]) - alpha * (slope0 - slope[i, 0])
                new[i, 1] = x[i, 1] + second - 0.5 * (before[i, 1] + mixed[i, 1]) - alpha * (slope1 - slope[i, 1])
            mixed[i, 0], mixed[i, 1], slope[i, 0], slope[i, 1] = first, second, slope0, slope1
        before, x, new = x, new, before
    return x


@numba.njit(**STRICT)
def compiled_dadmm(starts, neighbours, inverse, b, c, rounds):
    """The same over the lists of neighbours, with the inverse matrices made beforehand."""
    agents = b.shape[0]
    x, heard, multiplier = np.zeros((agents, 2)), np.zeros((agents, 2)), np.zeros((agents, 2))
    for _ in range(rounds):
        for i in range(agents):
            total = c * (starts[i + 1] - starts[i])
            w0 = b[i, 0] + total * x[i, 0] + c * heard[i, 0] - multiplier[i, 0]
            w1 = b[i, 1] + total * x[i, 1] + c * heard[i, 1] - multiplier[i, 1]
            x[i, 0] = inverse[i, 0, 0] * w0 + inverse[i, 0, 1] * w1
            x[i, 1] = inverse[i, 1, 0] * w0 + inverse[i, 1, 1] * w1
        for i in range(agents):
            first, second = 0.0, 0.0
            for a in range(starts[i], starts[i + 1]):
                j = neighbours[a]
                first += x[j, 0]
                second += x[j, 1]
            heard[i, 0], heard[i, 1] = first, second
            degree = starts[i + 1] - starts[i]
            multiplier[i, 0] += c * (degree * x[i, 0] - first)
            multiplier[i, 1] += c * (degree * x[i, 1] - second)
    return x


@numba.njit(**STRICT)
def rough_dgd(starts, neighbours, weights, own, h, b, alpha, loss, noise, rounds):
    """DGD over links that lose messages and add noise, as one writes it first: a draw or three for every arc."""
    agents = b.shape[0]
    x, new, held = np.zeros((agents, 2)), np.zeros((agents, 2)), np.zeros((len(neighbours), 2))
    for _ in range(rounds):
        for i in range(agents):
            first, second = own[i] * x[i, 0], own[i] * x[i, 1]
            for a in range(starts[i], starts[i + 1]):
                if np.random.random() >= loss:
                    held[a, 0] = x[neighbours[a], 0] + noise * np.random.standard_normal()
                    held[a, 1] = x[neighbours[a], 1] + noise * np.random.standard_normal()
                first += weights[a] * held[a, 0]
                second += weights[a] * held[a, 1]
            new[i, 0] = first - alpha * (h[i, 0, 0] * x[i, 0] + h[i, 0, 1] * x[i, 1] - b[i, 0])
            new[i, 1] = second - alpha * (h[i, 1, 0] * x[i, 0] + h[i, 1, 1] * x[i, 1] - b[i, 1])
        x, new = new, x
    return x


# ---------------------------------------------------------------- side by side


def of_engine(algorithm: Any, problem: Any, network: Any, conditions: Any) -> Callable[[], Any]:
    """Roundelay's loop, ready to be called; the history has a row every thousand rounds."""
    method = algorithm.parts()
    mixing = method.mixing.numbers(network)
    prepared = prepare(gossip_assembly(method, problem, network, mixing, conditions), "compiled")

    def call() -> Any:
        state = new_gossip_state(
            method, problem, network, mixing, 0, marks_of(1000, ROUNDS), Options(conditions=conditions)
        )
        prepared.travel(*prepared.numbers, np.uint64(0), *state.handed(), ROUNDS)
        return state.states.x

    return call


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    methods, sizes = side_by_side(), many_agents()
    if options.json:
        print(json.dumps({"repeats": REPEATS, "methods": methods, "sizes": sizes}, indent=1))
        return
    print(f"One round, N={AGENTS}, p={DIM}; µs, the best of {REPEATS} runs in turns")
    for method in methods:
        print(method["method"])
        for label, microseconds in method["microseconds"].items():
            print(f"  {label:32s} {microseconds:7.2f}   {microseconds / method['fastest_by_hand']:5.2f}")
    print("D-ADMM, p=2, ten rounds, degree 10")
    for size in sizes:
        print(f"  N={size['agents']:6,}: {size['bytes_a_link']:6.0f} bytes a link")


def many_agents() -> list[dict[str, Any]]:
    """Agents of degree 10: the memory of a run."""
    sizes = []
    for agents in (2_500, 5_000, 10_000):
        problem, network = rl.paper_least_squares(agents=agents, samples=5), ring_of_neighbours(agents, 5)
        rl.simulate(rl.DADMM(), problem, network, iterations=1, conditions=CONDITIONS, progress=False)
        tracemalloc.start()
        rl.simulate(rl.DADMM(), problem, network, iterations=10, conditions=CONDITIONS, progress=False)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sizes.append({"agents": agents, "bytes_a_link": peak / len(network.edges)})
    return sizes


def ring_of_neighbours(agents: int, reach: int) -> rl.Network:
    """Every agent is linked with the `reach` next ones on either side."""
    first = np.repeat(np.arange(agents), reach)
    second = (first + np.tile(np.arange(1, reach + 1), agents)) % agents
    return rl.Network(agents, np.column_stack([first, second]))


def side_by_side() -> list[dict[str, Any]]:
    """Each method by hand and by Roundelay: what a round takes."""
    problem, network = rl.paper_least_squares(agents=AGENTS, dim=DIM), rl.random_network(AGENTS, DENSITY)
    h = np.array([problem.hessian(i) for i in range(AGENTS)])
    b = -np.array([problem.gradient(i, np.zeros(DIM)) for i in range(AGENTS)])
    w = rl.DGD(alpha=1.0).parts().mixing.numbers(network)
    sparse_w = network.metropolis_weights()
    dense_w = sparse_w.toarray()
    adjacency = sparse.csr_array((np.ones(len(network.neighbours)), network.neighbours, network.neighbour_starts))
    dense_adjacency = adjacency.toarray()
    alpha, c = 0.5 / problem.L, 0.2
    inverse = np.linalg.inv(h + 2.0 * c * network.degrees[:, None, None] * np.eye(DIM))
    arrays = (w.starts, w.neighbours, w.weights, w.own, h, b)
    cases: list[tuple[str, Any, tuple[tuple[str, Callable[[], Any]], ...]]] = [
        ("DGD", rl.DGD(alpha=alpha), (
            ("NumPy, dense W", lambda: dgd(dense_w, h, b, alpha, ROUNDS)),
            ("NumPy, sparse W", lambda: dgd(sparse_w, h, b, alpha, ROUNDS)),
            ("compiled by hand", lambda: compiled_dgd(*arrays, alpha, ROUNDS)),
        )),
        ("EXTRA", rl.EXTRA(alpha=alpha), (
            ("NumPy, dense W", lambda: extra(dense_w, h, b, alpha, ROUNDS)),
            ("NumPy, sparse W", lambda: extra(sparse_w, h, b, alpha, ROUNDS)),
            ("compiled by hand", lambda: compiled_extra(*arrays, alpha, ROUNDS)),
        )),
        ("D-ADMM", rl.DADMM(c=c), (
            ("NumPy, dense W", lambda: dadmm(dense_adjacency, h, b, c, ROUNDS)),
            ("NumPy, sparse W", lambda: dadmm(adjacency, h, b, c, ROUNDS)),
            ("compiled by hand", lambda: compiled_dadmm(w.starts, w.neighbours, inverse, b, c, ROUNDS)),
        )),
    ]  # fmt: skip
    found = []
    for name, algorithm, rivals in track(cases, "Rounds", console=Console(stderr=True), transient=True):
        ours, rough = of_engine(algorithm, problem, network, None), of_engine(algorithm, problem, network, CONDITIONS)
        calls = {**dict(rivals), "roundelay": ours, "roundelay, 10 % loss and noise": rough}
        if name == "DGD":
            calls["by hand, 10 % loss and noise"] = lambda: rough_dgd(*arrays, alpha, 0.1, 1e-3, ROUNDS)
        results = {label: call() for label, call in calls.items()}  # compiles, and shows that they do the same
        for label, _ in rivals:
            gap = np.abs(results[label] - results["roundelay"]).max() / np.abs(results["roundelay"]).max()
            assert gap < 1e-10, (name, label, gap)
        best = dict.fromkeys(calls, np.inf)
        for _ in range(REPEATS):
            for label, call in calls.items():
                began = time.process_time()
                call()
                best[label] = min(best[label], (time.process_time() - began) / ROUNDS * 1e6)
        fastest = min(best[label] for label, _ in rivals)
        found.append({"method": name, "links": len(network.edges), "microseconds": best, "fastest_by_hand": fastest})
    return found


if __name__ == "__main__":
    main()
