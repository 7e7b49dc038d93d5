"""The theory, run: Lemmas 2 and 4 say that the Lagrangian falls, Theorem 1 that the limit of PI-ADMM1 is a KKT point.

Each where its conditions hold; the theorem also where they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.kernels import Vector
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.settings import AGENTS, DENSITY, DIM, SAMPLES
from roundelay.plots.chart import Chart, ChartFigure, Series

LAPS = 12
# A rise below this share of the Lagrangian's size is rounding.
_ROUNDING = 1e-12
# How far above its bound γ is drawn, and how far it spreads.
GAMMA_FACTOR, GAMMA_SPREAD = 1.25, 0.1
SCALINGS = ("half-sum", "mean", "logistic")
STARTS = ("zero", "random")
LIMITS = "limit of PI-ADMM1"
LAPS_PROVEN, LAPS_PAPER = 150, 100
SETTINGS = ("conditions of Lemma 4", "the paper's γ")
RESIDUALS = ("kkt_gradient", "kkt_multipliers", "kkt_consensus")


# ------------------------------------------------------------ Lemmas 2 and 4


@dataclass(frozen=True)
class Case:
    """A lemma on a problem, from a start."""

    lemma: int
    scaling: str
    start: str

    @property
    def name(self) -> str:
        """What the piece is called."""
        return f"Lemma {self.lemma}, {self.scaling}, {self.start} start"


CASES = tuple(Case(lemma, scaling, start) for lemma in (2, 4) for scaling in SCALINGS for start in STARTS)


def lagrangian_pieces() -> tuple[Piece, ...]:
    """One piece for each lemma, problem and start."""
    return tuple(Piece(case.name, measure_case, (case,)) for case in CASES)


def problem_scaled(scaling: str, seed: int) -> Any:
    """The paper's least squares as a half-sum or as the printed mean, or its logistic regression."""
    if scaling == "logistic":
        return rl.paper_logistic(AGENTS, SAMPLES, DIM, seed=seed)
    return rl.paper_least_squares(
        AGENTS, SAMPLES, DIM, seed=seed, scale="half_sum" if scaling == "half-sum" else "mean"
    )


def method_within(case: Case, problem: Any) -> Any:
    """The method with parameters that meet the lemma's conditions; ρ and γ as small as they may be."""
    start = rl.ZeroStart() if case.start == "zero" else rl.UniformStart(0.0, 100.0)
    if case.lemma == 2:
        return rl.IADMM(rho=2.0 * problem.L + 2.0, start=start)
    rho = 2.0 * problem.L
    least = max((2.0 * rho**2 + 4.0 * rho + 1.0) / (rho - problem.L), 2.0 * (rho + 2.0) * problem.agents)
    return rl.PIADMM1(rho=rho, gamma=GAMMA_FACTOR * least, gamma_spread=GAMMA_SPREAD, start=start)


def measure_case(effort: Effort, case: Case) -> Measured:
    """Rises of the Lagrangian within the first lap and after it, over the seeds; the curve of seed 0."""
    rows, curve = [], pd.DataFrame()
    for seed in range(effort.theory_seeds):
        problem, network = problem_scaled(case.scaling, seed), rl.random_network(AGENTS, DENSITY, seed=seed)
        method = method_within(case, problem)
        assert method.conditions(problem).hold
        run = rl.simulate(
            method, problem, network, hops=LAPS * AGENTS, seed=seed, record=1, progress=False,
            monitors=[rl.AugmentedLagrangian()],
        )  # fmt: skip
        values = run.column("augmented_lagrangian")
        least = float(problem.values(np.tile(problem.optimum, (AGENTS, 1))).sum())
        rises, below = rises_of(values), values < least - _ROUNDING * abs(least)
        rows.append(
            {
                "seed": seed,
                "rho": method.rho,
                "gamma": getattr(method, "gamma", 1.0),
                "rises in the first lap": int(rises[:AGENTS].sum()),
                "rises after it": int(rises[AGENTS:].sum()),
                "below F(x*) in the first lap": int(below[: AGENTS + 1].sum()),
                "below F(x*) after it": int(below[AGENTS + 1 :].sum()),
            }
        )
        if seed == 0:
            curve = pd.DataFrame({"hop": run.column("hop"), "gap": values - least})
    table = pd.DataFrame(rows)
    numbers = {
        "most rises in the first lap": table["rises in the first lap"].max(),
        "fewest rises in the first lap": table["rises in the first lap"].min(),
        "rises after it": table["rises after it"].sum(),
        "below F(x*) in the first lap": table["below F(x*) in the first lap"].sum(),
        "below F(x*) after it": table["below F(x*) after it"].sum(),
    }
    return Measured(numbers, {"seeds": table, "curve": curve})


def rises_of(values: Vector) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """At which hops the value rose by more than rounding."""
    scale = np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    return np.diff(values) > _ROUNDING * scale


def lagrangian_figure(found: Mapping[str, Measured], effort: Effort) -> ChartFigure:
    """L_ρ − F(x*) over the hops, for both lemmas."""
    charts = []
    for lemma in (2, 4):
        series = []
        for place, case in enumerate(case for case in CASES if case.lemma == lemma):
            curve = found[case.name].tables["curve"]
            gap = curve["gap"].to_numpy(np.float64)
            hops = curve["hop"].to_numpy(np.float64)
            series.append(Series(f"{case.scaling}, {case.start} start", hops, np.where(gap > 0.0, gap, np.nan), place))
        condition = "ρ = 2L + 2" if lemma == 2 else "ρ = 2L, γ above its bound"
        charts.append(
            Chart(f"Lemma {lemma}: {condition}", "iteration k", "L_ρ(xᵏ, yᵏ, zᵏ) − F(x*)", tuple(series), log_y=True)
        )
    return ChartFigure(
        "lagrangian",
        "Lemmas 2 and 4: the augmented Lagrangian",
        f"N = {AGENTS}, so the first lap ends at k = {AGENTS}. Both proofs use y_i = ∇f_i(x_i), which is false before"
        " agent i's first turn: in the first lap the Lagrangian may rise, after it it never did. Where it is below"
        " F(x*) nothing is drawn.",
        tuple(charts),
        columns=2,
        command="roundelay reproduce lagrangian",
        seeds=f"seeds 0 to {effort.theory_seeds - 1}, seed 0 is drawn",
    )


# ------------------------------------------------------------ Theorem 1


def limit_pieces() -> tuple[Piece, ...]:
    """One piece."""
    return (Piece(LIMITS, measure_limits),)


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
