"""A report that is made up, with everything that a report may have: bands, gaps, a drawing, and text that tries to break out."""

from __future__ import annotations

import numpy as np

from roundelay.paper.document import Document, Judged, Section
from roundelay.plots.chart import BACKGROUND, Chart, ChartFigure, Series
from roundelay.shown.table import Table

HOSTILE = '</script><b>bold</b> & "quoted" ${title} %{x} <!-- $x$'
METHODS = ("I-ADMM", "W-ADMM", "PI-ADMM1", "PI-ADMM2", "WPG", "D-ADMM")


def example_document() -> Document:
    """A few figures of several panels, a table, and claims with each verdict."""
    return Document(
        title="The paper, reproduced & judged",
        words=(
            "Every figure of the paper, drawn again from the command beside it, and every claim with the number that decides it.",
            "Distances are ‖x_i − x*‖/‖x*‖; a unit is one transmission of p numbers. Run `roundelay reproduce` to make this page.",
        ),
        claims=claims(),
        sections=(
            Section(
                "convergence",
                "Convergence",
                ("Least squares on random networks of 20 agents, b = 30 rows an agent.",),
                (convergence(), single(), table()),
            ),
            Section(
                "network",
                "Networks and privacy",
                ("What the token's way round looks like, and what a curious neighbour sees.",),
                (network(), privacy(), trade_off()),
            ),
        ),
        made_by="roundelay 0.9.0, `roundelay reproduce`, in 4 min 12 s",
    )


def claims() -> tuple[Judged, ...]:
    return (
        Judged(
            "linear-rate", "Section V-A, Figure 3", "I-ADMM converges linearly to the exact optimum.",
            "error 2.1e-14 after 20,000 units (threshold 1e-10)", "holds", "", "The log of the error falls by 0.8 a lap.",
            "convergence",
        ),
        Judged(
            "fewer-units", "Section V-A", "I-ADMM needs fewer units than every gossip method.",
            "3.2 times fewer than D-ADMM at p < 20 & N > 10 (threshold 1)", "holds only if",
            "the network has at least 0.3·N(N−1)/2 links", "Gossip pays for every link in each round.", "convergence",
        ),
        Judged(
            "printed-sign", "Algorithm 2, step 5", "The update as it is printed converges.",
            "error stays at 1.4 (threshold 1e-6)", "does not hold", "", "The sign of the dual step is the wrong one.", "single",
        ),
        Judged("hostile", HOSTILE, HOSTILE, HOSTILE, "does not hold", "", HOSTILE, "network"),
        Judged(
            "private", "Theorem 3", "An eavesdropper can’t tell x_i from the messages.", "recovered to 3e-9 (threshold 1e-2)",
            "does not hold", "", "Two laps of messages give as many equations as unknowns.", "",
        ),
    )  # fmt: skip


def convergence() -> ChartFigure:
    """Two panels with the same series, with bands, the one over a logarithmic axis."""
    units = np.linspace(0.0, 20_000.0, 400)
    panels = []
    for title, log_x, speed in (("Exact x-step", False, 1.0), ("First-order x-step", True, 0.6)):
        series = []
        for place, method in enumerate(METHODS):
            y = 10.0 ** (-speed * units / (1_500.0 + 700.0 * place)) + 1e-13
            band = 3.0 ** np.abs(np.sin(units / 2_000.0))
            low = y / band if place % 2 == 0 else None
            series.append(Series(method, units, y, place, low=low, high=None if low is None else y * band))
        series.append(
            Series(
                "bound of Theorem 2",
                units,
                10.0 ** (-speed * units / 6_000.0),
                BACKGROUND,
                "dashed",
                shown=title[0] == "E",
            )
        )
        panels.append(
            Chart(
                title,
                "communication (units)",
                "accuracy ‖x_i − x*‖/‖x_i⁰ − x*‖",
                tuple(series),
                log_x=log_x,
                log_y=True,
            )
        )
    return ChartFigure(
        name="convergence",
        title="Error against communication on the paper’s least squares",
        caption="Median and 10–90 % band of 10 seeds. The token methods pay one unit a hop; gossip pays two for every link.",
        charts=tuple(panels),
        columns=2,
        command="roundelay reproduce convergence --seeds 10",
        seeds="data 0–9, networks 0–9",
        notes=("Curves are cut at 1e-14, where rounding sets in.",),
    )


def single() -> ChartFigure:
    """One panel with a gap, a range and a label that tries to break out."""
    x = np.arange(60.0)
    y = 1.4 + 0.3 * np.sin(x / 4.0)
    y[20:26] = np.nan
    series = (
        Series("x₁ᵏ(1) as printed", x, y, 0),
        Series(HOSTILE, x, 1.3 * np.exp(-x / 15.0), 1, low=1.2 * np.exp(-x / 12.0), high=1.4 * np.exp(-x / 20.0)),
        Series("start", np.array([0.0, 30.0, 59.0]), np.array([1.4, 0.3, 0.1]), 2, "points"),
    )
    chart = Chart("", "lap k", "‖z − x*‖", series, x_range=(0.0, 59.0), y_range=(0.0, 2.0))
    return ChartFigure(
        "single", "Algorithm 2 with the sign as printed", f"It oscillates. {HOSTILE}", (chart,),
        command="roundelay reproduce single", seeds="0",
    )  # fmt: skip


def network() -> ChartFigure:
    """Two drawings, and a panel with axes of its own."""
    agents = 12
    angle = 2.0 * np.pi * np.arange(agents) / agents
    at = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    drawings = []
    for title, step in (("Dense: 0.5", 3), ("Sparse: 0.2", 5)):
        links = [(i, (i + step) % agents) for i in range(agents)] + [(i, (i + 1) % agents) for i in range(agents)]
        gap = np.full(2, np.nan)
        ends = np.array([point for i, j in links for point in (at[i], at[j], gap)])
        tour = at[[*range(agents), 0]]
        drawings.append(
            Chart(
                title, "", "",
                (
                    Series("links", ends[:, 0], ends[:, 1], BACKGROUND),
                    Series("the token’s cycle", tour[:, 0], tour[:, 1], 1, thick=True),
                    Series("agents", at[:, 0], at[:, 1], 0, "labelled points", names=tuple(map(str, range(1, agents + 1)))),
                ),
                bare=True,
            )
        )  # fmt: skip
    sizes = np.array([10.0, 20.0, 50.0, 100.0, 200.0])
    degree = Chart(
        "Links", "agents N", "links", (Series("density 0.5", sizes, 0.25 * sizes**2, 3),), log_x=True, log_y=True
    )
    return ChartFigure(
        "network", "The networks and the cycle that the token takes", "Links in grey, the Hamiltonian cycle in colour.",
        (*drawings, degree), columns=3, command="roundelay reproduce network", seeds="network 4",
    )  # fmt: skip


def privacy() -> ChartFigure:
    """Panels with different series, so that each has its own legend."""
    k = np.arange(1.0, 101.0)
    charts = (
        Chart(
            "What agent 1 sends", "k", "x₁ᵏ(1)",
            (Series("x₁ᵏ(1)", k, np.exp(-k / 20.0) * np.cos(k / 3.0), 0), Series("x₁ᵏ(2)", k, np.exp(-k / 30.0), 1)),
        ),
        Chart(
            "What is recovered", "k", "‖x̂₁ − x₁‖",
            (Series("from one lap", k, 1.0 / k, 2), Series("from two laps", k, 1.0 / k**4, 3)), log_y=True,
        ),
    )  # fmt: skip
    return ChartFigure(
        "privacy", "What an eavesdropper sees", "The recovered state comes as close as rounding allows.", charts,
        columns=2, command="roundelay reproduce privacy --agents 20 --seed 3 --first-order --penalty 10 --laps 100 --engine compiled",
        seeds="3",
    )  # fmt: skip


def trade_off() -> ChartFigure:
    """Named points, some of them close together."""
    x = np.array([120.0, 130.0, 140.0, 2_000.0, 30_000.0, 31_000.0])
    y = np.array([1e-6, 1.4e-6, 2e-3, 1e-4, 0.5, 0.45])
    series = (Series("methods", x, y, 0, "labelled points", names=METHODS),)
    chart = Chart("", "units to 10⁻⁶", "what is recovered", series, log_x=True, log_y=True)
    return ChartFigure(
        "trade-off",
        "Privacy against communication",
        "Lower left is better.",
        (chart,),
        command="roundelay reproduce trade-off",
        seeds="0–4",
    )


def table() -> Table:
    return Table(
        "units", "Units to an error of 10⁻⁶",
        ("method", "least squares", "logistic", "what limits it", "parameters"),
        (
            ("I-ADMM", "1,240", "3,410", "nothing", "ρ = 10"),
            ("W-ADMM", "8,900", "12,300", "the random walk", "ρ = 10"),
            (HOSTILE, "—", "—", "a floor at 2e-3 < 1e-2", "α = 0.1, γ = 1e-3, σ² = 0.01"),
        ),
        "Medians of 10 seeds; a dash means never.",
    )  # fmt: skip
