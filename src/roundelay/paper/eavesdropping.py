"""Figs. 4 and 6: what the eavesdropper makes of x₁ᵏ(1) and y₁ᵏ(1), by the paper's own attacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.comparison.field_methods import KINDS, Kind
from roundelay.kernels import Vector
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.settings import AGENTS, DENSITY, DIM, I_ADMM, OURS, States, data, method_named
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.plots.style import BLACK_AND_SOLID
from roundelay.privacy import Public
from roundelay.privacy.attacks import least_squares, recursion
from roundelay.transcripts import Eavesdropper, Visits

LAST = 2000
# What the solver of the paper does unless told otherwise.
DEFAULT_ITERATIONS = 20
EAVESDROPPING_FIGURE = {"least squares": "fig4", "logistic": "fig6"}
TRUTH, RECURSION = "true value", "estimate, recursion (12)"
STOPPED, SOLVED = "estimate, lsqr at 20 iterations", "estimate, lsqr converged"


def eavesdropping_pieces() -> tuple[Piece, ...]:
    """One piece for each method and problem."""
    return tuple(
        Piece(eavesdropping_name(kind, method), measure_eavesdropping, (kind, method))
        for kind in KINDS
        for method in OURS
    )


def eavesdropping_name(kind: Kind, method: str) -> str:
    """What the piece is called."""
    return f"{EAVESDROPPING_FIGURE[kind]} {method}"


def measure_eavesdropping(effort: Effort, kind: Kind, method: str) -> Measured:
    """True value and estimates at every hop, as in the paper: agent 1, its first coordinate, seed 0."""
    run, agent = observed_run(method_named(method, kind), kind, 0)
    assert run.transcript is not None
    seen, public = run.transcript.seen_by(Eavesdropper()), Public(run.algorithm, AGENTS, DIM)
    table = pd.DataFrame({"k": np.arange(LAST + 1)})
    for letter in "xy":
        table[f"{letter}, {TRUTH}"] = run.column(f"{letter} {agent} 0")[: LAST + 1]
    if method == I_ADMM:
        visits = seen.visits_of(agent)
        found = recursion(visits, public)
        estimates = {RECURSION: (at_every_hop(found.x[:, 0], visits), at_every_hop(found.y[:, 0], visits))}
    else:
        estimates = {
            STOPPED: least_squares(seen, public, 0, DEFAULT_ITERATIONS).at_every_hop(agent),
            SOLVED: least_squares(seen, public, 0, None).at_every_hop(agent),
        }
    numbers = {"|y| at the end": abs(float(table[f"y, {TRUTH}"].iloc[-1]))}
    for words, (x, y) in estimates.items():
        table[f"x, {words}"], table[f"y, {words}"] = x[: LAST + 1], y[: LAST + 1]
        for letter in "xy":
            truth = table[f"{letter}, {TRUTH}"].to_numpy(np.float64)
            gap, size = np.abs(table[f"{letter}, {words}"].to_numpy(np.float64) - truth), np.abs(truth)
            numbers[f"{letter}, {words}: error at the end"] = float(gap[-1])
            numbers[f"{letter}, {words}: error at k = {AGENTS}"] = float(gap[AGENTS])
            numbers[f"{letter}, {words}: largest error over largest value"] = float(gap.max() / size.max())
            numbers[f"{letter}, {words}: relative error at the end"] = float(gap[-1] / size[-1])
    return Measured(numbers, {"states": table})


def observed_run(algorithm: Any, kind: Kind, seed: int, hops: int = LAST + 1) -> tuple[rl.Run, int]:
    """A run with its transcript and the true states of the agent that has the token first, the paper's agent 1."""
    problem, network = data(kind, AGENTS, seed), rl.random_network(AGENTS, DENSITY, seed=seed)
    first = int(network.tour().order[0])
    run = rl.simulate(
        algorithm, problem, network, hops, seed=seed, record=1, transcript=True, progress=False,
        monitors=[States((first,), tuple(range(DIM)))],
    )  # fmt: skip
    assert run.transcript is not None
    assert int(run.transcript.sender[0]) == first
    return run, first


def at_every_hop(states: Vector, visits: Visits) -> Vector:
    """States that change at an agent's visits, for every k from 0 on; `states` has one more row than there are visits."""
    since = np.searchsorted(visits.hop + 1, np.arange(int(LAST) + 1), side="right")
    return states[since]


def eavesdropping_figure(found: Mapping[str, Measured], effort: Effort, kind: Kind) -> ChartFigure:
    """Fig. 4 or Fig. 6."""
    charts = []
    places = {TRUTH: BLACK_AND_SOLID, RECURSION: 2, STOPPED: 1, SOLVED: 0}
    for method in OURS:
        table = found[eavesdropping_name(kind, method)].tables["states"]
        hops = table["k"].to_numpy(np.float64)
        for letter in "xy":
            series = [
                Series(
                    words, hops, table[f"{letter}, {words}"].to_numpy(np.float64), place,
                    "line" if words == TRUTH else "dashed",
                )
                for words, place in places.items()
                if f"{letter}, {words}" in table
            ]  # fmt: skip
            view = _view(table[f"{letter}, {TRUTH}"].to_numpy(np.float64))
            charts.append(
                Chart(f"{method}: {letter}₁ᵏ(1)", "iteration k", f"{letter}₁ᵏ(1)", tuple(series), y_range=view)
            )
    number = EAVESDROPPING_FIGURE[kind][3:]
    return ChartFigure(
        EAVESDROPPING_FIGURE[kind],
        f"Fig. {number}: the eavesdropper's estimate and the true value, {kind}",
        "I-ADMM by the recursion (12); the others by the paper's sparse least-squares problem with γ = 1, x = z for the"
        " last N visits and Σy = 0, stopped after 20 iterations (the solver's default) and solved to convergence.",
        tuple(charts),
        columns=2,
        command=f"roundelay reproduce {EAVESDROPPING_FIGURE[kind]}",
        seeds="seed 0",
        notes=("What the estimate at 20 iterations misses of y is mostly the solver's, not the method's.",),
    )


def _view(truth: Vector) -> tuple[float, float]:
    """Where the true value moves after the first two laps, with as much room again on both sides.

    The random start and the errors that double backwards in time lie far outside; the reader can zoom out to them.
    """
    settled = truth[2 * AGENTS :]
    low, high = min(float(settled.min()), 0.0), max(float(settled.max()), 0.0)
    room = 0.5 * (high - low)
    return low - room, high + room
