"""A round of a gossip method by Roundelay, against a NumPy loop and a compiled loop written by hand.

Prints, for each method, the time of one round of each, side by side in one run, and the ratio of Roundelay's to the
faster of the two. `make bench` runs it.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from scipy import sparse

import roundelay as rl
from roundelay.engine.assemble import gossip_assembly, prepare
from roundelay.engine.checks import Options, marks_of
from roundelay.engine.gossip_run import new_gossip_state

AGENTS, DENSITY, DIM = 100, 0.3, 2
ROUNDS, REPEATS = 20_000, 9
CONDITIONS = rl.NetworkConditions(loss=rl.BernoulliLoss(0.1), noise=1e-3)
STRICT = {"error_model": "numpy", "fastmath": False}


# ---------------------------------------------------------------- NumPy, by hand


def numpy_dgd(w: Any, h: Any, b: Any, alpha: float, rounds: int) -> Any:
    """x⁺ = Wx − α(Hx − b)."""
    x = np.zeros_like(b)
    for _ in range(rounds):
        x = w @ x - alpha * (np.einsum("npq,nq->np", h, x) - b)
    return x


def numpy_extra(w: Any, h: Any, b: Any, alpha: float, rounds: int) -> Any:
    """x^{k+2} = (I + W)x^{k+1} − ½(I + W)x^k − α(g^{k+1} − g^k)."""
    before = np.zeros_like(b)
    slope_before = np.einsum("npq,nq->np", h, before) - b
    mixed_before = w @ before
    x = mixed_before - alpha * slope_before
    for _ in range(rounds - 1):
        mixed, slope = w @ x, np.einsum("npq,nq->np", h, x) - b
        new = x + mixed - 0.5 * (before + mixed_before) - alpha * (slope - slope_before)
        before, x, mixed_before, slope_before = x, new, mixed, slope
    return x


def numpy_dadmm(adjacency: Any, h: Any, b: Any, c: float, rounds: int) -> Any:
    """x⁺ = (H + 2cd)⁻¹(b + c(d·x + Ax) − λ), λ⁺ = λ + c(d·x⁺ − Ax⁺)."""
    degree = np.asarray(adjacency.sum(axis=1)).reshape(-1, 1)
    inverse = np.linalg.inv(h + 2.0 * c * degree[:, :, None] * np.eye(h.shape[1]))
    x, multiplier = np.zeros_like(b), np.zeros_like(b)
    heard = adjacency @ x
    for _ in range(rounds):
        x = np.einsum("npq,nq->np", inverse, b + c * (degree * x + heard) - multiplier)
        heard = adjacency @ x
        multiplier += c * (degree * x - heard)
    return x


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
    side_by_side()
    many_agents()


def many_agents() -> None:
    """10,000 agents of degree 10: the time of a round, and the memory of a run."""
    print("D-ADMM, p=2, ten rounds, degree 10")
    for agents in (2_500, 5_000, 10_000):
        problem, network = rl.paper_least_squares(agents=agents, samples=5), ring_of_neighbours(agents, 5)
        rl.simulate(rl.DADMM(), problem, network, iterations=1, conditions=CONDITIONS, progress=False)
        tracemalloc.start()
        began = time.perf_counter()
        rl.simulate(rl.DADMM(), problem, network, iterations=10, conditions=CONDITIONS, progress=False)
        seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"  N={agents:6,}, {len(network.edges):6,} links: {seconds:.2f} s in all, {peak / len(network.edges):6.0f} bytes a link"
        )


def ring_of_neighbours(agents: int, reach: int) -> rl.Network:
    """Every agent is linked with the `reach` next ones on either side."""
    first = np.repeat(np.arange(agents), reach)
    second = (first + np.tile(np.arange(1, reach + 1), agents)) % agents
    return rl.Network(agents, np.column_stack([first, second]))


def side_by_side() -> None:
    """Each method by hand and by Roundelay."""
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
            ("NumPy, dense W", lambda: numpy_dgd(dense_w, h, b, alpha, ROUNDS)),
            ("NumPy, sparse W", lambda: numpy_dgd(sparse_w, h, b, alpha, ROUNDS)),
            ("compiled by hand", lambda: compiled_dgd(*arrays, alpha, ROUNDS)),
        )),
        ("EXTRA", rl.EXTRA(alpha=alpha), (
            ("NumPy, dense W", lambda: numpy_extra(dense_w, h, b, alpha, ROUNDS)),
            ("NumPy, sparse W", lambda: numpy_extra(sparse_w, h, b, alpha, ROUNDS)),
            ("compiled by hand", lambda: compiled_extra(*arrays, alpha, ROUNDS)),
        )),
        ("D-ADMM", rl.DADMM(c=c), (
            ("NumPy, dense W", lambda: numpy_dadmm(dense_adjacency, h, b, c, ROUNDS)),
            ("NumPy, sparse W", lambda: numpy_dadmm(adjacency, h, b, c, ROUNDS)),
            ("compiled by hand", lambda: compiled_dadmm(w.starts, w.neighbours, inverse, b, c, ROUNDS)),
        )),
    ]  # fmt: skip
    print(f"One round, N={AGENTS}, {len(network.edges)} links, p={DIM}; µs, the best of {REPEATS} runs in turns")
    for name, algorithm, rivals in cases:
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
                began = time.perf_counter()
                call()
                best[label] = min(best[label], (time.perf_counter() - began) / ROUNDS * 1e6)
        faster = min(best[label] for label, _ in rivals)
        print(name)
        for label, microseconds in best.items():
            print(f"  {label:32s} {microseconds:7.2f}   {microseconds / faster:5.2f}")


if __name__ == "__main__":
    main()
