"""The paper's other statements, each by a small experiment of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.networks.tours.hamiltonian import find_cycle
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.readings import runs
from roundelay.paper.settings import AGENTS, DENSITY, LEVEL, data

CONNECTIVITY, FIRST_ORDER, INEXACT = "connectivity", "first order or exact", "methods called inexact"
STRAGGLER, HAMILTONIAN, RESIDUE = "straggler", "Hamiltonian cycles", "noise that fades"
SLOWER = 10.0


def variation_pieces() -> tuple[Piece, ...]:
    """One piece for each statement."""
    return (
        Piece(CONNECTIVITY, measure_connectivity),
        Piece(FIRST_ORDER, measure_first_order),
        Piece(INEXACT, measure_inexact),
        Piece(STRAGGLER, measure_straggler),
        Piece(HAMILTONIAN, measure_hamiltonian),
        Piece(RESIDUE, measure_residue),
    )


def measure_connectivity(effort: Effort) -> Measured:
    """The same data and the same cycle in networks of η = 0.3 and 0.5: is the curve the same, bit for bit?"""
    numbers = {}
    for method in (rl.IADMM(), rl.PIADMM1(), rl.PIADMM2(), rl.WADMM()):
        gap = 0.0
        for seed in range(effort.seeds):
            problem = data("least squares", AGENTS, seed)
            curves = [
                rl.simulate(
                    method, problem, rl.random_network(AGENTS, density, seed=seed), 3_000, seed=seed, record=10,
                    progress=False,
                ).column("accuracy")
                for density in (0.3, 0.5)
            ]  # fmt: skip
            gap = max(gap, float(np.abs(curves[0] - curves[1]).max()))
        numbers[f"{method.name}: largest difference"] = gap
    return Measured(numbers)


def measure_first_order(effort: Effort) -> Measured:
    """I-ADMM on the logistic problem: units to 1e-6 with the exact step and with the first-order one."""
    exact = runs(effort, rl.IADMM(rho=1.0), "logistic", 60_000).units_to(LEVEL)
    linear = runs(effort, rl.IADMM(rho=1.0, first_order=True), "logistic", 60_000).units_to(LEVEL)
    return Measured(
        {
            "exact: median units": float(np.median(exact)),
            "first order: median units": float(np.median(linear)),
            "seeds in which first order costs more": float((linear > exact).sum()),
            "seeds": float(effort.seeds),
        }
    )


def measure_inexact(effort: Effort) -> Measured:
    """Where the quantising and sparsifying methods end that the paper calls inexact, and DGD with a constant step."""
    numbers, rows = {}, []
    for method, iterations in (
        (rl.QuantisedADMM(c=0.2, step=1e-3), 2_000),
        (rl.EFSignSGD(), 4_000),
        (rl.PQASGD(), 4_000),
        (rl.SparseDropping(), 4_000),
        (rl.DGD(), 4_000),
        (rl.DADMM(c=0.2), 2_000),
    ):
        ends = []
        for seed in range(effort.theory_seeds):
            problem, network = data("least squares", AGENTS, seed), rl.random_network(AGENTS, DENSITY, seed=seed)
            run = rl.simulate(method, problem, network, iterations=iterations, seed=seed, record=20, progress=False)
            ends.append(float(np.median(run.column("error")[-20:])))
        numbers[f"{method.name}: floor"] = float(np.median(ends))
        rows.append((method.name, iterations, float(np.median(ends))))
    return Measured(
        numbers, {"floors": pd.DataFrame(rows, columns=["method", "iterations", "median error at the end"])}
    )


def measure_straggler(effort: Effort) -> Measured:
    """How much longer the same run takes where one agent computes ten times slower."""
    problem, network = data("least squares", AGENTS, 0), rl.random_network(AGENTS, DENSITY)
    times = np.ones(AGENTS)
    times[7] = SLOWER
    numbers = {}
    for method, hops, iterations in ((rl.DADMM(c=0.2), None, 300), (rl.IADMM(), 4_000, None)):
        seconds = [
            rl.simulate(
                method,
                problem,
                network,
                hops=hops,
                iterations=iterations,
                conditions=rl.NetworkConditions(compute=compute),
                progress=False,
            ).cost_to(LEVEL, "seconds")
            for compute in (times, np.ones(AGENTS))
        ]
        numbers[f"{method.name}: slower by"] = seconds[0] / seconds[1]
    return Measured(numbers)


def measure_hamiltonian(effort: Effort) -> Measured:
    """|E| = ηN(N−1)/2 links: drawn wholly at random, and with one agent that has a single link."""
    links = round(DENSITY * AGENTS * (AGENTS - 1) / 2)
    pairs = np.column_stack(np.triu_indices(AGENTS, 1))
    found = 0
    for seed in range(effort.seeds):
        drawn = np.random.default_rng([seed, 9]).choice(len(pairs), links, replace=False)
        found += _has_cycle(rl.Network(AGENTS, pairs[drawn]))
    # Agent 0 has one link only; the others have all the rest among themselves, so that the network is connected.
    others = pairs[pairs[:, 0] > 0]
    line = np.column_stack([np.arange(AGENTS - 1), np.arange(1, AGENTS)])
    spare = others[others[:, 1] > others[:, 0] + 1]
    hanging = np.concatenate([line, spare[: links - len(line)]])
    return Measured(
        {
            "random networks with a cycle": float(found),
            "random networks": float(effort.seeds),
            "links of the counterexample": float(len(hanging)),
            "cycles of the counterexample": float(_has_cycle(rl.Network(AGENTS, hanging))),
        }
    )


def _has_cycle(network: rl.Network) -> bool:
    return find_cycle(network).cycle is not None


def measure_residue(effort: Effort) -> Measured:
    """The noise that PI-ADMM1's γ adds, ρ|γ − 1|·‖z − x‖, falls with the residue; PI-ADMM2's does not."""
    numbers = {}
    methods: tuple[tuple[Any, Callable[[float], float]], ...] = (
        (rl.PIADMM1(), lambda consensus: 10.0 * 0.1 * consensus),
        (rl.PIADMM2(), lambda consensus: 10.0 * 1e-3),
    )
    for method, noise in methods:
        ensemble = runs(effort, method, "least squares", 10_000)
        late = [noise(float(run.column("consensus")[-1])) for run in ensemble]
        early = [noise(float(run.column("consensus")[8])) for run in ensemble]
        numbers[f"{method.name}: noise on y after 2 laps"] = float(np.median(early))
        numbers[f"{method.name}: noise on y after 100 laps"] = float(np.median(late))
    return Measured(numbers)
