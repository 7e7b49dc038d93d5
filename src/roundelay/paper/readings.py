"""Where the paper contradicts itself or leaves a choice: both readings, run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.comparison.field_methods import KINDS, Kind
from roundelay.kernels import Vector
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.settings import AGENTS, DENSITY, DIM, LEVEL, SAMPLES, data

SIGN, SCALING, DEVIATION = "sign of y⁰ in Algorithm 2", "half-sum or mean", "deviation or variance"
HOPS = {"least squares": 20_000, "logistic": 60_000}
# half-sum = (b/2)·mean, so that the same method has ρ/15 there.
EQUIVALENT = SAMPLES / 2.0


def reading_pieces() -> tuple[Piece, ...]:
    """One piece for each question."""
    return (Piece(SIGN, measure_sign), Piece(SCALING, measure_scaling), Piece(DEVIATION, measure_deviation))


def runs(effort: Effort, algorithm: Any, kind: Kind, hops: int, scale: str = "half_sum") -> rl.Ensemble:
    """One run for each seed on the paper's network (a)."""

    def problem(seed: int) -> Any:
        if kind == "logistic":
            return data(kind, AGENTS, seed)
        return rl.paper_least_squares(AGENTS, SAMPLES, DIM, seed=seed, scale=scale)  # type: ignore[arg-type]

    return rl.simulate(
        algorithm, problem, lambda seed: rl.random_network(AGENTS, DENSITY, seed=seed), hops,
        seeds=range(effort.seeds), record=max(hops // 400, 1), progress=False,
    )  # fmt: skip


def last_errors(ensemble: rl.Ensemble) -> Vector:
    """The common error at the end of each run; infinite where it diverged."""
    ends = np.array([run.column("error")[-1] for run in ensemble])
    return np.where(np.isfinite(ends), ends, np.inf)


def measure_sign(effort: Effort) -> Measured:
    """Algorithm 2 with y⁰ = +ρυ, which keeps Σ(x − y/ρ) = 0, and with −ρυ, as printed."""
    rows, numbers = [], {}
    for kind in KINDS:
        widest, rho = (100.0, 10.0) if kind == "least squares" else (10.0, 1.0)
        for printed in (False, True):
            start = rl.UniformStart(0.0, widest, printed_sign=printed)
            method = rl.Algorithm2(rho=rho, first_order=kind == "logistic", start=start)
            ensemble = runs(effort, method, kind, HOPS[kind])
            least = np.array([np.nanmin(run.column("error")) for run in ensemble])
            sign = "−ρυ, as printed" if printed else "+ρυ"
            numbers[f"{kind}, {sign}: median error at the end"] = float(np.median(last_errors(ensemble)))
            numbers[f"{kind}, {sign}: least error of any seed"] = float(least.min())
            rows.append((kind, sign, float(np.median(last_errors(ensemble))), float(least.min())))
    columns = ["problem", "y⁰", "median error at the end", "least error of any seed"]
    return Measured(numbers, {"readings": pd.DataFrame(rows, columns=columns)})


def measure_scaling(effort: Effort) -> Measured:
    """The printed mean loss and the half-sum: which of them goes with the paper's parameters?"""
    rows, numbers = [], {}
    for scale in ("half_sum", "mean"):
        parallel = runs(effort, rl.IPWADMM(rho=1.0, tau=0.0, walks=25), "least squares", 60_000, scale)
        numbers[f"{scale}: seeds in which IPW-ADMM converges"] = float((last_errors(parallel) < 1e-3).sum())
        units = {
            rho: float(np.median(runs(effort, rl.IADMM(rho=rho), "least squares", 20_000, scale).units_to(LEVEL)))
            for rho in (1.0, 3.0, 10.0, 30.0)
        }
        numbers[f"{scale}: units of I-ADMM at ρ = 10"] = units[10.0]
        numbers[f"{scale}: units of I-ADMM at the best ρ"] = min(units.values())
        rows.append((scale, numbers[f"{scale}: seeds in which IPW-ADMM converges"], *units.values()))
    one = runs(effort, rl.IADMM(rho=10.0), "least squares", 3_000, "half_sum")
    other = runs(effort, rl.IADMM(rho=10.0 / EQUIVALENT), "least squares", 3_000, "mean")
    gaps = [np.abs(a.x - b.x).max() / np.abs(a.x).max() for a, b in zip(one, other, strict=True)]
    numbers["gap between half-sum at ρ = 10 and mean at ρ = 10/15"] = float(max(gaps))
    columns = ["loss", "seeds in which IPW-ADMM converges", *(f"units to 1e-6, ρ = {rho}" for rho in (1, 3, 10, 30))]
    return Measured(numbers, {"readings": pd.DataFrame(rows, columns=columns)})


def measure_deviation(effort: Effort) -> Measured:
    """PI-ADMM2's floor when σ = 1e-3 is the standard deviation, and when it is the variance; and for other σ."""
    rows, numbers = [], {}
    for words, method in (
        ("deviation 1e-4", rl.PIADMM2(sigma=1e-4)),
        ("deviation 1e-3", rl.PIADMM2(sigma=1e-3)),
        ("deviation 1e-2", rl.PIADMM2(sigma=1e-2)),
        ("variance 1e-3", rl.PIADMM2(sigma=1e-3, sigma_is="variance")),
    ):
        ensemble = runs(effort, method, "least squares", 20_000)
        for metric in ("accuracy", "error"):
            floors = [float(np.median(run.column(metric)[-40:])) for run in ensemble]
            numbers[f"{words}: floor of the {metric}"] = float(np.median(floors))
        rows.append((words, *(numbers[f"{words}: floor of the {metric}"] for metric in ("accuracy", "error"))))
    return Measured(numbers, {"readings": pd.DataFrame(rows, columns=["σ", "floor, accuracy", "floor, common error"])})
