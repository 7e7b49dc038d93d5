"""Beyond the paper: rivals it does not have, more dimensions, a better readout, and γ where the proof holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.engine.result import read_out
from roundelay.kernels import Matrix, Vector
from roundelay.paper.accuracy import curve
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.settings import AGENTS, COCA, DENSITY, I_ADMM, LEVEL, PI_ADMM1, data, place_of
from roundelay.plots.chart import BACKGROUND, Chart, ChartFigure, Series

DIMS = (2, 20)
_WPG, _NIDS, _ONE_PASS = rl.WPG.name, rl.NIDS.name, rl.OnePass.name
_READ_OUT, _WPG_TUNED, _COCA_TUNED = f"{I_ADMM}, read out", f"{_WPG}, tuned", f"{COCA}, tuned"
# Each with its place in the palette; those that the paper's figures give to I-ADMM and COCA are kept.
BEYOND_METHODS = {
    I_ADMM: place_of(I_ADMM), _READ_OUT: 0, _WPG: 1, _WPG_TUNED: 8, _NIDS: 5, COCA: place_of(COCA), _COCA_TUNED: 6, _ONE_PASS: 4,
}  # fmt: skip
HOPS = {2: 12_000, 20: 60_000}
ITERATIONS = {2: 1_500, 20: 4_000}
TUNING_SEEDS = (1000, 1001)
TUNING_EVALUATIONS = {2: 10, 20: 6}
READOUTS = 120
# γ from the paper's 1 to well within the range of Lemma 4.
GAMMAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4)
GAMMA_RUN = "γ into the proven range"


def beyond_pieces() -> tuple[Piece, ...]:
    """One piece for each method and dimension, and one for γ."""
    field = tuple(
        Piece(f"beyond {name}, p = {dim}", measure_rival, (name, dim)) for dim in DIMS for name in BEYOND_METHODS
    )
    return (*field, Piece(GAMMA_RUN, measure_gammas))


def _rival(effort: Effort, name: str, dim: int) -> Any:
    problem = data("least squares", AGENTS, TUNING_SEEDS[0], dim)
    if name in (_WPG_TUNED, _COCA_TUNED):
        given = rl.COCA() if name == _COCA_TUNED else rl.WPG(alpha=1.0 / problem.L)
        budget = ITERATIONS[dim] * 2970.0 if name == _COCA_TUNED else float(HOPS[dim])
        return rl.tune(
            given, lambda seed: data("least squares", AGENTS, seed, dim),
            lambda seed: rl.random_network(AGENTS, DENSITY, seed=seed), seeds=TUNING_SEEDS, level=LEVEL,
            evaluations=max(int(effort.tuning_share * TUNING_EVALUATIONS[dim]), 3), units=budget, progress=False,
        ).algorithm  # fmt: skip
    # 1/L is what an agent can know before the start; what is best depends on all data.
    makers = {
        I_ADMM: rl.IADMM(),
        _READ_OUT: rl.IADMM(),
        _WPG: rl.WPG(alpha=1.0 / problem.L),
        _NIDS: rl.NIDS(),
        COCA: rl.COCA(),
        _ONE_PASS: rl.OnePass(),
    }
    return makers[name]


def measure_rival(effort: Effort, name: str, dim: int) -> Measured:
    """Error over units on the paper's least squares, network (a)."""
    method = _rival(effort, name, dim)
    if name == _READ_OUT:
        units, errors = _readouts(effort, method, dim)
        reached = [_first_below(units, row) for row in errors]
        low, middle, high = np.quantile(errors, [0.1, 0.5, 0.9], axis=0)
        table = pd.DataFrame({"units": units, "low": low, "median": middle, "high": high})
        return Measured({"median units to 1e-6": float(np.median(reached))}, {"curve": table})
    gossip, walks = name in (COCA, _COCA_TUNED, _NIDS), name != _ONE_PASS
    steps = int(effort.gossip_share * ITERATIONS[dim]) if gossip else HOPS[dim]
    marks = np.unique(np.geomspace(1, steps, 300).astype(int)).tolist() if walks else None
    ensemble = rl.simulate(
        method,
        lambda seed: data("least squares", AGENTS, seed, dim),
        lambda seed: rl.random_network(AGENTS, DENSITY, seed=seed),
        hops=steps if walks and not gossip else None,
        iterations=steps if gossip else None,
        seeds=range(effort.seeds),
        record=marks,
        progress=False,
    )
    column = "token_error" if "token_error" in ensemble[0].history.columns else "error"
    numbers = {"median units to 1e-6": float(np.median(ensemble.units_to(LEVEL, column)))}
    numbers |= {name: float(value) for name, value in _numbers_of(method).items()}
    return Measured(numbers, {"curve": curve(ensemble, column)})


def _numbers_of(method: Any) -> Mapping[str, float]:
    """The parameters that were used."""
    return {f"parameter {name}": value for name, value in vars(method).items() if isinstance(value, float)}


def _readouts(effort: Effort, method: Any, dim: int) -> tuple[Vector, Matrix]:
    """What one agent's readout would have been after so many laps."""
    every = np.unique(np.geomspace(1, HOPS[dim] // AGENTS, READOUTS).astype(int))
    rows = []
    for seed in range(effort.seeds):
        problem, network = data("least squares", AGENTS, seed, dim), rl.random_network(AGENTS, DENSITY, seed=seed)
        run = rl.simulate(
            method, problem, network, HOPS[dim], seed=seed, record=HOPS[dim], transcript=True, progress=False
        )
        assert run.transcript is not None
        received = run.transcript.worked_on_by(0)
        read = np.array([read_out(received[:lap], received[lap - 1], True).estimate for lap in every])
        rows.append(np.linalg.norm(read - problem.optimum, axis=1) / np.linalg.norm(problem.optimum))
    return AGENTS * every.astype(np.float64), np.maximum(np.array(rows), 1e-17)


def _first_below(units: Vector, errors: Vector) -> float:
    above = np.flatnonzero(errors > LEVEL)
    last = int(above[-1]) + 1 if len(above) else 0
    return float(units[last]) if last < len(units) else float("inf")


def beyond_figure(found: Mapping[str, Measured], effort: Effort) -> ChartFigure:
    """The paper's Fig. 3 (a) with other rivals, in 2 and in 20 dimensions."""
    charts = []
    for dim in DIMS:
        series = []
        for name, place in BEYOND_METHODS.items():
            table = found[f"beyond {name}, p = {dim}"].tables["curve"]
            units, low, middle, high = (
                table[column].to_numpy(np.float64) for column in ("units", "low", "median", "high")
            )
            series.append(Series(name, units, middle, place, low=low, high=high))
        charts.append(
            Chart(
                f"p = {dim}",
                "communication cost (units)",
                "error  ‖z − x*‖ / ‖x*‖",
                tuple(series),
                log_x=True,
                log_y=True,
                y_range=(1e-14, 10.0),
                x_range=(50.0, 2.0 * max(float(item.x[-1]) for item in series)),
            )
        )
    return ChartFigure(
        "beyond",
        "Least squares, N = 100, η = 0.3, with rivals the paper does not have",
        "The error is that of the token, or of the agents' x_i in a gossip method. “Read out” is the limit that one agent"
        " extrapolates from the tokens it has received, which costs nothing. The one pass sums Gram matrices in one lap"
        " and is exact, but exists for least squares only.",
        tuple(charts),
        columns=2,
        command="roundelay reproduce beyond",
        seeds=effort.words + "; COCA and WPG are tuned on seeds 1000 and 1001",
    )


def measure_gammas(effort: Effort) -> Measured:
    """PI-ADMM1 as γ grows: what 1e-6 costs, how close x is to the public z, and how close all is to WPG."""
    rows = []
    for gamma in GAMMAS:
        units, closeness, gaps, proven = [], [], [], []
        for seed in range(effort.theory_seeds):
            problem = rl.paper_least_squares(AGENTS, seed=seed, scale="mean")
            network = rl.random_network(AGENTS, DENSITY, seed=seed)
            method = rl.PIADMM1(rho=10.0, gamma=gamma, gamma_spread=0.01)
            run = rl.simulate(method, problem, network, 150_000, seed=seed, record=100, progress=False)
            other = rl.simulate(
                rl.PIADMM1(rho=10.0, gamma=gamma, gamma_spread=0.01, start=rl.ZeroStart()), problem, network, 300,
                seed=seed, record=300, progress=False,
            )  # fmt: skip
            walk = rl.simulate(rl.WPG(alpha=0.1), problem, network, 300, seed=seed, record=300, progress=False)
            units.append(run.units_to(LEVEL))
            closeness.append(_how_public(method, problem, network, seed))
            gaps.append(float(np.abs(other.token - walk.token).max() / np.abs(walk.token).max()))
            proven.append(float(method.conditions(problem).hold))
        rows.append((gamma, np.median(units), np.median(closeness), np.median(gaps), min(proven)))
    columns = ["γ", "units to 1e-6", "‖x − z‖ over error", "gap to WPG", "within the proof"]
    table = pd.DataFrame(rows, columns=columns)
    first = table[table["within the proof"] == 1.0]
    return Measured(
        {
            "first γ within the proof": float(first["γ"].min()),
            "units to 1e-6 at γ = 1": float(table["units to 1e-6"].iloc[0]),
            "units to 1e-6 within the proof": float(first["units to 1e-6"].iloc[0]),
            "‖x − z‖ over error at γ = 1": float(table["‖x − z‖ over error"].iloc[0]),
            "‖x − z‖ over error within the proof": float(first["‖x − z‖ over error"].iloc[0]),
            "gap to WPG within the proof": float(first["gap to WPG"].iloc[0]),
        },
        {"gammas": table},
    )


def _how_public(method: Any, problem: Any, network: rl.Network, seed: int) -> float:
    """‖x_i⁺ − z‖ over ‖x_i⁺ − x*‖ after ten laps: how far a state is from the token its agent had just received."""
    run = rl.simulate(method, problem, network, 10 * AGENTS, seed=seed, record=AGENTS, transcript=True, progress=False)
    assert run.transcript is not None
    last = np.array([run.transcript.worked_on_by(i)[9] for i in range(AGENTS)])
    from_token, from_optimum = (np.linalg.norm(run.x - point, axis=1) for point in (last, problem.optimum))
    return float(np.median(from_token / from_optimum))


def gamma_figure(found: Mapping[str, Measured], effort: Effort) -> ChartFigure:
    """What happens to PI-ADMM1 as γ grows into the range where its proof holds."""
    table = found[GAMMA_RUN].tables["gammas"]
    gamma = table["γ"].to_numpy(np.float64)
    least = found[GAMMA_RUN].numbers["first γ within the proof"]

    def chart(title: str, column: str, label: str, place: int) -> Chart:
        values = table[column].to_numpy(np.float64)
        finite = values[np.isfinite(values) & (values > 0.0)]
        edge = Series(
            "the proof holds from here on",
            np.array([least, least]),
            np.array([finite.min(), finite.max()]),
            BACKGROUND,
            "dashed",
        )
        return Chart(title, "γ", label, (Series(PI_ADMM1, gamma, values, place), edge), log_x=True, log_y=True)

    return ChartFigure(
        "gamma",
        "PI-ADMM1 as γ grows into the range where its convergence is proven",
        "Printed mean loss, ρ = 10, N = 100, η = 0.3, γ within 1 % of the value. As γ grows x⁺ − z goes to 0 and the"
        " method becomes WPG with step 1/ρ: where convergence is proven, x_i is as good as public.",
        (
            chart("cost", "units to 1e-6", "units to 1e-6", 4),
            chart("privacy of x", "‖x − z‖ over error", "‖x_i − z‖ / ‖x_i − x*‖", 0),
            chart("distance from WPG", "gap to WPG", "relative gap of the tokens after three laps", 1),
        ),
        columns=3,
        command="roundelay reproduce gamma",
        seeds=f"seeds 0 to {effort.theory_seeds - 1}",
    )
