"""Figs. 3 and 5: accuracy over communication for the paper's six methods, in its three networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.comparison.field_methods import KINDS, Kind
from roundelay.kernels import Vector
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.settings import (
    ACCURACY_FIGURE,
    COCA,
    I_ADMM,
    IPW_ADMM,
    LEVEL,
    METRICS,
    PANELS,
    PI_ADMM1,
    PI_ADMM2,
    SIX,
    W_ADMM,
    Panel,
    method_named,
    place_of,
)
from roundelay.plots.chart import Chart, ChartFigure, Series

# How far each method goes, at N = 100: far enough to see its slope or its floor.
TOKEN_HOPS = {"least squares": 20_000, "logistic": 60_000}
PARALLEL_HOPS = {"least squares": 60_000, "logistic": 80_000}
GOSSIP_ITERATIONS = {"least squares": 1_500, "logistic": 12_000}
POINTS = 220
# Slopes are measured between these levels of the common error.
SLOPE_FROM, SLOPE_TO = 1e-4, 1e-9

TITLES = {"least squares": "decentralised least squares (“ridge”)", "logistic": "decentralised logistic regression"}
METRIC_WORDS = {"accuracy": "accuracy", "error": "common error"}


def accuracy_pieces() -> tuple[Piece, ...]:
    """One piece for each method in each panel of both figures."""
    return tuple(
        Piece(piece_name(kind, panel, method), measure_panel, (kind, panel, method))
        for kind in KINDS
        for panel in PANELS
        for method in SIX
    )


def piece_name(kind: Kind, panel: Panel, method: str) -> str:
    """What the piece is called."""
    return f"{ACCURACY_FIGURE[kind]} {panel.title} {method}"


def measure_panel(effort: Effort, kind: Kind, panel: Panel, method: str) -> Measured:
    """One method in one panel: units to 1e-6 for every seed, slopes, floors, and the curves of both metrics."""
    ensemble = run_method(effort, kind, panel, method_named(method, kind))
    tables = {f"{metric} curve": curve(ensemble, metric) for metric in METRICS}
    return Measured({"seeds": len(ensemble)}, tables | {"seeds": seeds_table(ensemble)})


def run_method(effort: Effort, kind: Kind, panel: Panel, algorithm: Any, dim: int = 2) -> rl.Ensemble:
    """A run of a method for each seed, of the length that its family needs."""
    steps, marks = steps_and_marks(effort, kind, panel, algorithm)
    gossip = hasattr(algorithm.parts(), "mixing")
    return rl.simulate(
        algorithm,
        lambda seed: panel.problem(kind, seed, dim),
        lambda seed: panel.network(seed),
        seeds=range(effort.seeds),
        hops=None if gossip else steps,
        iterations=steps if gossip else None,
        record=marks,
        progress=False,
    )


def steps_and_marks(effort: Effort, kind: Kind, panel: Panel, algorithm: Any) -> tuple[int, list[int]]:
    """How many hops or iterations, and which of them the history keeps: dense both on a linear and a log axis."""
    parts = algorithm.parts()
    if hasattr(parts, "mixing"):
        steps = int(effort.gossip_share * GOSSIP_ITERATIONS[kind])
    else:
        steps = (PARALLEL_HOPS if parts.tokens > 1 else TOKEN_HOPS)[kind] * panel.agents // 100
    marks = np.union1d(np.linspace(1, steps, 400), np.geomspace(1, steps, 200)).astype(int)
    return steps, np.unique(marks).tolist()


def curve(ensemble: rl.Ensemble, metric: str) -> pd.DataFrame:
    """Median and band of a metric, at points that are even on a logarithmic axis."""
    bands = ensemble.bands(metric)
    bands = bands[bands["units"] > 0.0]
    units = bands["units"].to_numpy(np.float64)
    wanted = np.geomspace(units[0], units[-1], POINTS)
    rows = np.unique(np.clip(np.searchsorted(units, wanted * (1.0 - 1e-12)), 0, len(units) - 1))
    return bands.iloc[rows].reset_index(drop=True)


def seeds_table(ensemble: rl.Ensemble) -> pd.DataFrame:
    """For each seed: units to 1e-6 in both metrics, the slope, and where it ended."""
    return pd.DataFrame(
        {
            "seed": [run.seed for run in ensemble],
            **{f"units to 1e-6, {metric}": ensemble.units_to(LEVEL, metric) for metric in METRICS},
            "slope": [slope_of(run) for run in ensemble],
            **{f"last {metric}": [_last(run, metric) for run in ensemble] for metric in METRICS},
        }
    )


def slope_of(run: rl.Run) -> float:
    """How many digits of the common error a thousand units gain, between 1e-4 and 1e-9; not a number if never there."""
    begin, end = run.units_to(SLOPE_FROM), run.units_to(SLOPE_TO)
    digits = np.log10(SLOPE_FROM / SLOPE_TO)
    return float(1000.0 * digits / (end - begin)) if np.isfinite(end) and end > begin else float("nan")


def _last(run: rl.Run, metric: str) -> float:
    """The typical value over the last tenth of the run: the floor, where there is one."""
    values = run.column(metric)
    return float(np.median(values[-max(len(values) // 10, 1) :]))


def seeds_of(found: Mapping[str, Measured], kind: Kind, panel: Panel, method: str) -> pd.DataFrame:
    """The table of a method's seeds."""
    return found[piece_name(kind, panel, method)].tables["seeds"]


def units_to_level(found: Mapping[str, Measured], kind: Kind, panel: Panel, method: str, metric: str) -> Vector:
    """Units to 1e-6 for each seed, infinite where it never got there."""
    return seeds_of(found, kind, panel, method)[f"units to 1e-6, {metric}"].to_numpy(np.float64)


def wins_of(
    found: Mapping[str, Measured], kind: Kind, panel: Panel, method: str, metric: str, among: tuple[str, ...] = SIX
) -> int:
    """In how many seeds this method reached 1e-6 with the fewest units of all."""
    units = np.array([units_to_level(found, kind, panel, other, metric) for other in among])
    best = units.min(axis=0)
    return int((np.isfinite(best) & (units[among.index(method)] == best)).sum())


def accuracy_figure(found: Mapping[str, Measured], effort: Effort, kind: Kind) -> ChartFigure:
    """Fig. 3 or Fig. 5: above each other the paper's accuracy and the common error, a column for each network."""
    charts = tuple(_chart(found, kind, panel, metric) for metric in METRICS for panel in PANELS)
    name = ACCURACY_FIGURE[kind]
    return ChartFigure(
        name,
        f"Fig. {name[3:]}: accuracy over communication, {TITLES[kind]}",
        f"Median over {effort.seeds} seeds, band from the 10 % to the 90 % quantile. Above: the paper's"
        " accuracy (1/N) Σ ‖x_i − x*‖ / ‖x_i⁰ − x*‖, whose denominator is large for the methods that start far away (PI-ADMM1,"
        " PI-ADMM2). Below: the common error (1/N) Σ ‖x_i − x*‖ / ‖x*‖, which has the same denominator for all.",
        charts,
        columns=len(PANELS),
        command=f"roundelay reproduce {name}" + (" --quick" if effort.name == "quick" else ""),
        seeds=effort.words,
    )


def _chart(found: Mapping[str, Measured], kind: Kind, panel: Panel, metric: str) -> Chart:
    series = []
    for method in SIX:
        table = found[piece_name(kind, panel, method)].tables[f"{metric} curve"]
        units, low, middle, high = (table[name].to_numpy(np.float64) for name in ("units", "low", "median", "high"))
        series.append(Series(method_words(method, kind), units, middle, place_of(method), low=low, high=high))
    return Chart(
        f"{panel.title}: {METRIC_WORDS[metric]}",
        "communication cost (units)",
        METRIC_WORDS[metric],
        tuple(series),
        log_x=True,
        log_y=True,
        y_range=(1e-14, 10.0 if metric == "accuracy" else 1e3),
        x_range=(50.0, 2.0 * max(float(item.x[-1]) for item in series)),
    )


def method_words(method: str, kind: Kind) -> str:
    """A method with its parameters, as the paper's legend has it."""
    squares = kind == "least squares"
    rho = "10" if squares else "1"
    parameters = {
        W_ADMM: f"β={rho}",
        IPW_ADMM: f"ρ=1, τ={'0' if squares else '3'}, M=25",
        COCA: "c=1, α=1, ρ=0.85",
        I_ADMM: f"ρ={rho}",
        PI_ADMM1: f"ρ={rho}",
        PI_ADMM2: f"ρ={rho}, σ=10⁻³",
    }
    return f"{method} ({parameters[method]})"
