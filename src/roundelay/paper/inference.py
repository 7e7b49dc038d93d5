"""What an eavesdropper infers of all agents: Lemma 3, Remarks 3 and 4, Theorem 2, and what its proof leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.comparison.field_methods import KINDS, Kind
from roundelay.engine.replay import Replayed, replay
from roundelay.kernels import Matrix
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.settings import AGENTS, DENSITY, DIM, I_ADMM, PI_ADMM1, data, method_named
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.privacy import Public
from roundelay.privacy.attacks import backward_recursion, recursion
from roundelay.privacy.attacks.parametric_step_size import parametric_step_size
from roundelay.privacy.attacks.recursions import forward_filter
from roundelay.transcripts import Eavesdropper, Seen

EXACTLY, BACKWARDS, BROKEN = "I-ADMM inferred", "backward recursion", "PI-ADMM1 inferred"
HOPS = 2001
LAPS = (5, 10, 15, 20, 30, 40)
# How many laps before the end the state is sought, besides the first one.
NEAR = 2


def inference_pieces() -> tuple[Piece, ...]:
    """One piece for each."""
    return (
        Piece(EXACTLY, measure_exactly),
        Piece(BACKWARDS, measure_backwards),
        Piece(BROKEN, measure_broken),
    )


def watched(algorithm: Any, kind: Kind, seed: int, hops: int) -> tuple[rl.Run, Any]:
    """A run with its transcript."""
    problem, network = data(kind, AGENTS, seed), rl.random_network(AGENTS, DENSITY, seed=seed)
    run = rl.simulate(algorithm, problem, network, hops, seed=seed, record=hops, transcript=True, progress=False)
    return run, problem


def states_of(run: rl.Run, problem: Any, agent: int, seen: Seen) -> Replayed:
    """x and y of an agent after each of its visits, R + 1 rows."""
    return replay(run.algorithm.parts(), problem, run.seed, seen.visits_of(agent))


def largest_relative(estimate: Matrix, truth: Matrix) -> float:
    """The largest error over the largest value."""
    return float(np.abs(estimate - truth).max() / np.abs(truth).max())


def measure_exactly(effort: Effort) -> Measured:
    """I-ADMM: x, y and ∇f of all agents at all visits, by the recursion."""
    worst = {"x": 0.0, "y": 0.0, "gradient": 0.0}
    for kind in KINDS:
        run, problem = watched(method_named(I_ADMM, kind), kind, 0, HOPS)
        assert run.transcript is not None
        seen, public = run.transcript.seen_by(Eavesdropper()), Public(run.algorithm, AGENTS, DIM)
        for agent in range(AGENTS):
            found = recursion(seen.visits_of(agent), public)
            truth = states_of(run, problem, agent, seen)
            x, y = truth.x, truth.y
            # The exact step leaves y⁺ = ∇f(x⁺), the first-order one y⁺ = ∇f(x).
            points = x[1:] if kind == "least squares" else x[:-1]
            slopes = np.array([problem.gradient(agent, point) for point in points])
            worst["x"] = max(worst["x"], largest_relative(found.x, x))
            worst["y"] = max(worst["y"], largest_relative(found.y, y))
            worst["gradient"] = max(worst["gradient"], largest_relative(found.y[1:], slopes))
    return Measured({f"largest relative error of {name}": value for name, value in worst.items()})


def measure_backwards(effort: Effort) -> Measured:
    """Algorithm 2: the backward recursion's error against the paper's bounds, and what longer runs do to it."""
    hops = LAPS[-1] * AGENTS
    run, problem = watched(method_named("Algorithm 2", "least squares"), "least squares", 0, hops)
    assert run.transcript is not None
    seen, public = run.transcript.seen_by(Eavesdropper()), Public(run.algorithm, AGENTS, DIM)
    rho = run.algorithm.rho
    rows, exactness, broken_x, broken_y = [], 0.0, 0, 0
    for agent in range(0, AGENTS, 10):
        truth = states_of(run, problem, agent, seen)
        x, y = truth.x, truth.y
        visits = seen.visits_of(agent)
        for laps in LAPS:
            part = visits.first(laps)
            found = backward_recursion(part, public)
            x_error = np.linalg.norm(found.x - x[: laps + 1], axis=1)
            y_error = np.linalg.norm(found.y - y[: laps + 1], axis=1)
            epsilon = float(np.linalg.norm(part.sent[-1] - x[laps]))
            # The paper's n counts visits back from the last, K = the hop of the last one.
            back = laps - np.arange(1, laps + 1)
            last_lap = laps - 1
            broken_x += int((x_error[1:] > 2.0**back * epsilon * (1.0 + 1e-6)).sum())
            bound = rho * (2.0 ** (last_lap + 1) - 2.0**back) * epsilon
            broken_y += int((y_error[1:][back >= 1] > bound[back >= 1] * (1.0 + 1e-6)).sum())
            exactness = max(exactness, abs(float(x_error[1] / (2.0**last_lap * epsilon)) - 1.0))
            filtered = forward_filter(part, public)
            forgotten = float(np.linalg.norm(filtered.x[-1] - x[laps]) / np.linalg.norm(x[laps]))
            size = float(np.linalg.norm(x[0]))
            rows.append((agent, laps, epsilon, x_error[0] / size, x_error[-1 - NEAR], y_error[-1 - NEAR], forgotten))
    columns = [
        "agent", "laps", "epsilon", "relative error of x⁰", "error of x near the end", "error of y near the end",
        "relative error of the last x, filter",
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    medians = table.drop(columns="agent").groupby("laps", as_index=False).median()
    first, last = medians.iloc[0], medians.iloc[-1]
    return Measured(
        {
            "x errors above the bound": broken_x,
            "y errors above the bound": broken_y,
            "error of x over 2ⁿε, less 1": exactness,
            "error of x⁰, last over first": float(last["relative error of x⁰"] / first["relative error of x⁰"]),
            "error of x near the end, last over first": float(
                last["error of x near the end"] / first["error of x near the end"]
            ),
            "error of y near the end, last over first": float(
                last["error of y near the end"] / first["error of y near the end"]
            ),
            "relative error of the last x, filter": float(last["relative error of the last x, filter"]),
            "contraction a lap": float((last["epsilon"] / first["epsilon"]) ** (1.0 / (LAPS[-1] - LAPS[0]))),
        },
        {"laps": medians},
    )


def measure_broken(effort: Effort) -> Measured:
    """PI-ADMM1 and the observers of Theorems 2 and 3: H, g and y of all agents, from the transcript alone."""
    run, problem = watched(method_named(PI_ADMM1, "least squares"), "least squares", 0, HOPS)
    assert run.transcript is not None
    seen, public = run.transcript.seen_by(Eavesdropper()), Public(run.algorithm, AGENTS, DIM)
    rows = []
    for agent in range(AGENTS):
        visits = seen.visits_of(agent)
        y = states_of(run, problem, agent, seen).y
        filtered, found = forward_filter(visits, public), parametric_step_size(visits, public)
        assert found.H is not None
        assert found.g is not None
        true_hessian, true_slope = problem.hessian(agent), problem.gradient(agent, np.zeros(DIM))
        rows.append(
            (
                agent,
                largest_relative(filtered.y[-1], y[-1]),
                largest_relative(found.y[1:], y[1:]),
                largest_relative(found.H, true_hessian),
                largest_relative(found.g, true_slope),
            )
        )
    columns = ["agent", "last y, filter", "all y, parametric", "H, parametric", "g, parametric"]
    table = pd.DataFrame(rows, columns=columns)
    numbers = {f"largest relative error of {name}": float(table[name].max()) for name in columns[1:]}
    numbers["median relative error of last y, filter"] = float(table["last y, filter"].median())
    return Measured(numbers, {"agents": table})


def backwards_figure(found: Mapping[str, Measured], effort: Effort) -> ChartFigure:
    """Remarks 3 and 4."""
    table = found[BACKWARDS].tables["laps"]
    laps = table["laps"].to_numpy(np.float64)

    def series(label: str, column: str, place: int) -> Series:
        return Series(label, laps, table[column].to_numpy(np.float64), place)

    chart = Chart(
        "Algorithm 2: the recursion backwards from x ≈ z",
        "laps observed",
        "median error",
        (
            series("x⁰, relative", "relative error of x⁰", 1),
            series(f"x, {NEAR} laps before the end", "error of x near the end", 0),
            series(f"y, {NEAR} laps before the end", "error of y near the end", 2),
            series("ε = ‖z − x‖ at the end", "epsilon", 4),
        ),
        log_y=True,
    )
    return ChartFigure(
        "remarks",
        "Remarks 3 and 4: what the recursion gives when it runs backwards",
        "Each visit back doubles the error, while ε falls by less than half each lap: the longer the run, the better the"
        " late states are known, and the worse the first ones.",
        (chart,),
        command="roundelay reproduce remarks",
        seeds="seed 0",
    )
