"""Theorem 1: the limit of PI-ADMM1 is a KKT point; and what happens where its conditions hold and where they do not."""

from __future__ import annotations

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.experiments.reproduce.effort import Effort
from roundelay.experiments.reproduce.lagrangian import AGENTS, DENSITY, Case, method_within, problem_scaled
from roundelay.experiments.reproduce.measured import Measured
from roundelay.experiments.reproduce.pieces import Piece

NAME = "limit of PI-ADMM1"
LAPS_PROVEN, LAPS_PAPER = 150, 100
SETTINGS = ("conditions of Lemma 4", "the paper's γ")
RESIDUALS = ("kkt_gradient", "kkt_multipliers", "kkt_consensus")


def limit_pieces() -> tuple[Piece, ...]:
    """One piece."""
    return (Piece(NAME, measure_limits),)


def measure_limits(effort: Effort) -> Measured:
    """The KKT residuals at the end, relative to Σ‖∇f_i(x*)‖ and ‖x*‖, under Lemma 4's γ and under the paper's."""
    rows = []
    for seed in range(effort.theory_seeds):
        problem, network = problem_scaled("half-sum", seed), rl.random_network(AGENTS, DENSITY, seed=seed)
        proven = method_within(Case(4, "half-sum", "random"), problem)
        for setting, method, laps in (
            (SETTINGS[0], proven, LAPS_PROVEN),
            (SETTINGS[1], rl.PIADMM1(rho=10.0), LAPS_PAPER),
        ):
            run = rl.simulate(
                method, problem, network, hops=laps * AGENTS, seed=seed, record=AGENTS, progress=False,
                monitors=[rl.KKTResiduals()],
            )  # fmt: skip
            slopes = np.linalg.norm(problem.gradients(np.tile(problem.optimum, (AGENTS, 1))), axis=1)
            size = float(np.linalg.norm(problem.optimum))
            scales = (slopes.max(), slopes.sum(), size)
            residuals = [run.column(name)[-1] / scale for name, scale in zip(RESIDUALS, scales, strict=True)]
            # What a passer-by learns of x: how far it is from z on average over the run, as a share of ‖x*‖.
            closeness = float(np.median(run.column("consensus")[2:]))
            meets = float(method.conditions(problem).hold)
            rows.append((setting, seed, meets, *residuals, closeness))
    columns = ["setting", "seed", "meets the conditions", *RESIDUALS, "median ‖x − z‖"]
    table = pd.DataFrame(rows, columns=columns)
    numbers: dict[str, float] = {}
    for setting in SETTINGS:
        part = table[table["setting"] == setting]
        numbers[f"{setting}: largest KKT residual"] = part[list(RESIDUALS)].to_numpy().max()
        numbers[f"{setting}: meets the conditions"] = part["meets the conditions"].max()
        numbers[f"{setting}: median ‖x − z‖"] = part["median ‖x − z‖"].median()
    return Measured(numbers, {"limits": table})
