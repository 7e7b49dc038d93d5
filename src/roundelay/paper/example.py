"""Figs. 1 and 2: six agents, the walk of the token, and how x_i, y_i and z evolve over its laps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.kernels import Integers, Vector
from roundelay.paper.pieces import Effort, Measured, Piece
from roundelay.paper.settings import States
from roundelay.plots.chart import BACKGROUND, Chart, ChartFigure, Series

AGENTS, DENSITY, LAPS = 6, 0.6, 2
EXAMPLE = "six agents"


def example_pieces() -> tuple[Piece, ...]:
    """One piece."""
    return (Piece(EXAMPLE, measure_example),)


def measure_example(effort: Effort) -> Measured:
    """The network and its cycle, and the states of all agents at every hop of two laps of I-ADMM."""
    problem, network = rl.paper_least_squares(AGENTS, seed=0), rl.random_network(AGENTS, DENSITY, seed=0)
    run = rl.simulate(
        rl.IADMM(rho=10.0), problem, network, hops=LAPS * AGENTS, record=1, transcript=True, progress=False,
        monitors=[States(tuple(range(AGENTS)))],
    )  # fmt: skip
    assert run.transcript is not None
    cycle = run.transcript.sender[:AGENTS]
    changed = [int((np.diff(run.column(f"x {i} 0")) != 0.0).sum()) for i in range(AGENTS)]
    return Measured(
        {"changes of x at an agent, at most": max(changed), "laps": LAPS},
        {
            "links": pd.DataFrame(network.edges, columns=["one", "other"]),
            "cycle": pd.DataFrame({"agent": cycle}),
            "states": run.history.drop(columns=["bytes"]),
        },
    )


def network_figure(found: Mapping[str, Measured], effort: Effort) -> ChartFigure:
    """Fig. 1."""
    tables = found[EXAMPLE].tables
    cycle = tables["cycle"]["agent"].to_numpy(np.int64)
    angle = np.empty(AGENTS)
    # Agents stand on a circle in the order of the cycle, the first at the top.
    angle[cycle] = np.pi / 2.0 - 2.0 * np.pi * np.arange(AGENTS) / AGENTS
    across, up = np.cos(angle), np.sin(angle)
    one, other = (tables["links"][end].to_numpy(np.int64) for end in ("one", "other"))
    gap = np.full(len(one), np.nan)
    around = np.append(cycle, cycle[0])
    number = np.empty(AGENTS, np.int64)
    number[cycle] = np.arange(1, AGENTS + 1)
    chart = Chart(
        "The token z goes round the Hamiltonian cycle",
        "",
        "",
        (
            Series("links of the network", *_interleaved(across, up, one, other, gap), place=BACKGROUND),
            Series("the cycle, on which the eavesdropper listens", across[around], up[around], place=0, thick=True),
            Series(
                "agents in the order of their turns", across, up, place=1, mode="labelled points",
                names=tuple(f"{number[i]}" for i in range(AGENTS)),
            ),
        ),
        bare=True,
    )  # fmt: skip
    return ChartFigure(
        "fig1",
        "Fig. 1: I-ADMM among six agents, with an eavesdropper",
        "Agent 1 begins with z⁰ = 0; whoever holds the token updates its own x_i and y_i, adds its share to z and hands"
        " z on. The eavesdropper reads every z and nothing else.",
        (chart,),
        command="roundelay reproduce fig1",
        seeds="seed 0",
    )


def _interleaved(across: Vector, up: Vector, one: Integers, other: Integers, gap: Vector) -> tuple[Vector, Vector]:
    """All links as one line with gaps between them."""
    return (
        np.column_stack([across[one], across[other], gap]).ravel(),
        np.column_stack([up[one], up[other], gap]).ravel(),
    )


def evolution_figure(found: Mapping[str, Measured], effort: Effort) -> ChartFigure:
    """Fig. 2."""
    tables = found[EXAMPLE].tables
    states, cycle = tables["states"], tables["cycle"]["agent"].to_numpy(np.int64)
    hops = states["hop"].to_numpy(np.float64)

    def agents(letter: str) -> tuple[Series, ...]:
        return tuple(
            Series(f"agent {turn + 1}", hops, states[f"{letter} {i} 0"].to_numpy(np.float64), turn)
            for turn, i in enumerate(cycle)
        )

    token = Series("z", hops, states["z 0"].to_numpy(np.float64), 6)
    return ChartFigure(
        "fig2",
        "Fig. 2: how x_i, y_i and z evolve, two laps of six agents",
        "At hop k only the agent whose turn it is changes its x_i and y_i; the others keep theirs for the rest of the"
        " lap. z moves at every hop.",
        (
            Chart("states", "iteration k", "x_iᵏ(1)", agents("x")),
            Chart("multipliers", "iteration k", "y_iᵏ(1)", agents("y")),
            Chart("token", "iteration k", "zᵏ(1)", (token,)),
        ),
        columns=3,
        command="roundelay reproduce fig2",
        seeds="seed 0",
    )
