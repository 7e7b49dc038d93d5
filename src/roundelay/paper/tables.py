"""The tables of the report."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roundelay.comparison.field_methods import KINDS, Kind
from roundelay.paper.accuracy import seeds_of, units_to_level, wins_of
from roundelay.paper.beyond import BEYOND_METHODS, DIMS, GAMMA_RUN
from roundelay.paper.claims import slope_ratio
from roundelay.paper.counting import AGENTS, COUNTS, LAST
from roundelay.paper.document import Found, number
from roundelay.paper.inference import BACKWARDS, BROKEN, EXACTLY
from roundelay.paper.readings import DEVIATION, SCALING, SIGN
from roundelay.paper.settings import I_ADMM, METRICS, PANELS, PI_ADMM1, PI_ADMM2, SIX
from roundelay.paper.theory import CASES, LIMITS
from roundelay.paper.variations import INEXACT, STRAGGLER
from roundelay.shown.table import Table

METRIC_NAMES = {"accuracy": "accuracy", "error": "common error"}


def units_table(found: Found, kind: Kind) -> Table:
    """Median units to 1e-6 of the six methods, and in how many seeds I-ADMM was the cheapest of them."""
    rows = []
    for metric in METRICS:
        for panel in PANELS:
            medians = [float(np.median(units_to_level(found, kind, panel, method, metric))) for method in SIX]
            seeds = len(seeds_of(found, kind, panel, I_ADMM))
            wins = wins_of(found, kind, panel, I_ADMM, metric)
            rows.append((panel.title, METRIC_NAMES[metric], *map(number, medians), f"{wins} of {seeds}"))
    name = "units-least-squares" if kind == "least squares" else "units-logistic"
    return Table(
        name,
        f"Median units to 1e-6, {kind}",
        ("network", "metric", *SIX, "I-ADMM cheapest"),
        tuple(rows),
        "“never” where the median seed does not get there. The last column has the seeds in which I-ADMM needs the"
        " fewest units of all six.",
    )


def slopes_table(found: Found) -> Table:
    """Digits gained by a thousand units, and the floor of PI-ADMM2."""
    rows = []
    for kind in KINDS:
        for place, panel in enumerate(PANELS):
            slopes = [
                float(np.nanmedian(seeds_of(found, kind, panel, method)["slope"])) for method in (I_ADMM, PI_ADMM1)
            ]
            floors = [float(np.median(seeds_of(found, kind, panel, PI_ADMM2)[f"last {metric}"])) for metric in METRICS]
            rows.append(
                (kind, panel.title, *map(number, slopes), number(slope_ratio(found, kind, place)), *map(number, floors))
            )
    return Table(
        "slopes",
        "Slopes and floors",
        ("problem", "network", I_ADMM, PI_ADMM1, "ratio", "PI-ADMM2's floor, accuracy", "its floor, common error"),
        tuple(rows),
        "Digits of the common error that a thousand units gain between 1e-4 and 1e-9, median over the seeds; and where"
        " PI-ADMM2 with σ = 1e-3 ends.",
    )


def descent_table(found: Found) -> Table:
    """Rises of the Lagrangian."""
    rows = []
    for case in CASES:
        numbers, seeds = found[case.name].numbers, found[case.name].tables["seeds"]
        few, many = numbers["fewest rises in the first lap"], numbers["most rises in the first lap"]
        first = number(many) if few == many else f"{number(few)} to {number(many)}"
        rows.append(
            (
                str(case.lemma), case.scaling, case.start, number(float(seeds["rho"].iloc[0])),
                number(float(seeds["gamma"].iloc[0])), first, number(numbers["rises after it"]),
                number(numbers["below F(x*) in the first lap"]), number(numbers["below F(x*) after it"]),
            )
        )  # fmt: skip
    return Table("descent", "Rises of the augmented Lagrangian, hop by hop", (
            "Lemma", "problem", "start", "ρ", "γ", "rises in the first lap", "rises after it",
            "hops below F(x*) in the first lap", "after it",
        ), tuple(rows), "ρ and γ of seed 0. A rise counts above 1e-12 of the value. The first lap has N = 100 hops, what follows 1100.")  # fmt: skip


def limits_table(found: Found) -> Table:
    """KKT residuals."""
    return _as_table(
        "limits", "KKT residuals of PI-ADMM1 at the end of long runs",
        "Relative to the largest ‖∇f_i(x*)‖, their sum, and ‖x*‖. The paper's γ meets none of the conditions.",
        found[LIMITS].tables["limits"],
    )  # fmt: skip


def counts_table(found: Found) -> Table:
    """Equations, unknowns and rank."""
    table = found[COUNTS].tables["counts"].copy()
    paper = ["paper's equations", "paper's unknowns"]
    table[paper] = table[paper].astype(object).where(table[paper] > 0, "—")
    return _as_table(
        "counts", "Equations, unknowns and rank of the observer's system",
        f"At N = {AGENTS} and K = {LAST}, counted in scalars as the paper does; then, by rl.identifiable, for one agent with"
        " quadratic f_i, p coordinates and its R visits, where the equations are the increments of the token and x and y"
        " follow from the other unknowns. “Determined” are the numbers that no null vector of the Jacobian touches; sought"
        " are x and y after every visit, H and g (the start itself stays free).",
        table,
    )  # fmt: skip


def readings_tables(found: Found) -> tuple[Table, ...]:
    """Both readings of what the paper leaves open."""
    return (
        _as_table(
            "readings", "The sign of y⁰ in Algorithm 2", "Common error.", found[SIGN].tables["readings"],
        ),
        _as_table(
            "scaling", "The loss of the least-squares experiment: half-sum or mean",
            "IPW-ADMM with the paper's ρ = 1, τ = 0, M = 25; I-ADMM's median units for four ρ. The two losses differ by a"
            f" factor of 15: at ρ and ρ/15 the runs agree to {number(found[SCALING].numbers['gap between half-sum at ρ = 10 and mean at ρ = 10/15'])}.",
            found[SCALING].tables["readings"],
        ),
        _as_table(
            "deviation", "σ of PI-ADMM2: deviation or variance", "Median over the seeds of where it ends.",
            found[DEVIATION].tables["readings"],
        ),
    )  # fmt: skip


def inference_table(found: Found) -> Table:
    """What an observer knows in the end."""
    exact, broken, back = (found[name].numbers for name in (EXACTLY, BROKEN, BACKWARDS))
    rows = (
        (
            "I-ADMM, least squares and logistic",
            "recursion (12)",
            "x, every visit",
            exact["largest relative error of x"],
        ),
        (
            "I-ADMM, least squares and logistic",
            "recursion (12)",
            "y, every visit",
            exact["largest relative error of y"],
        ),
        (
            "I-ADMM, least squares and logistic",
            "recursion (12)",
            "gradients",
            exact["largest relative error of gradient"],
        ),
        (
            "Algorithm 2, least squares",
            "forward filter",
            "last x of 40 visits, median",
            back["relative error of the last x, filter"],
        ),
        (
            "PI-ADMM1, least squares",
            "forward filter",
            "last y of 20 visits, median",
            broken["median relative error of last y, filter"],
        ),
        (
            "PI-ADMM1, least squares",
            "parametric",
            "y, every visit",
            broken["largest relative error of all y, parametric"],
        ),
        ("PI-ADMM1, least squares", "parametric", "H", broken["largest relative error of H, parametric"]),
        ("PI-ADMM1, least squares", "parametric", "g", broken["largest relative error of g, parametric"]),
    )
    return Table(
        "inference",
        "What an eavesdropper recovers, all 100 agents",
        ("method", "attack", "quantity", "relative error"),
        tuple((*row[:3], number(row[3])) for row in rows),
        "Relative errors, the largest of any agent unless said otherwise. Nothing but the tokens and what is public is"
        " used. The neighbours of an agent see the same.",
    )


def floors_table(found: Found) -> Table:
    """Where methods called inexact end, and what a straggler does."""
    return _as_table(
        "floors", "Where the rivals that the paper calls inexact end",
        "Common error on least squares, N = 100, η = 0.3. D-ADMM for comparison. With one agent ten times slower D-ADMM"
        f" takes {number(found[STRAGGLER].numbers['D-ADMM: slower by'])} times as long, I-ADMM"
        f" {number(found[STRAGGLER].numbers['I-ADMM: slower by'])} times.",
        found[INEXACT].tables["floors"],
    )  # fmt: skip


def beyond_table(found: Found) -> Table:
    """Units to 1e-6 of the rivals that the paper does not have."""
    rows = []
    for name in BEYOND_METHODS:
        pieces = [found[f"beyond {name}, p = {dim}"].numbers for dim in DIMS]
        settings = "; ".join(
            ", ".join(
                f"{key.removeprefix('parameter ')} = {number(value)}"
                for key, value in piece.items()
                if key.startswith("parameter") and value
            )
            for piece in pieces
        )
        rows.append(
            (name, *(number(piece["median units to 1e-6"]) for piece in pieces), settings if settings != "; " else "")
        )
    return Table(
        "beyond-units",
        "Median units to 1e-6 with other rivals, least squares, N = 100, η = 0.3",
        ("method", *(f"p = {dim}" for dim in DIMS), "parameters, p = 2; p = 20"),
        tuple(rows),
        "Of the token, or of the agents' x_i in a gossip method. WPG at 1/L, which an agent can know beforehand, and tuned on other seeds.",
    )


def gammas_table(found: Found) -> Table:
    """PI-ADMM1 over γ."""
    return _as_table(
        "gammas", "PI-ADMM1 as γ grows", "Printed mean loss, ρ = 10.", found[GAMMA_RUN].tables["gammas"]
    )  # fmt: skip


def _as_table(name: str, title: str, caption: str, frame: pd.DataFrame) -> Table:
    rows = tuple(tuple(_cell(value) for value in row) for row in frame.itertuples(index=False))
    return Table(name, title, tuple(str(column) for column in frame.columns), rows, caption)


def _cell(value: object) -> str:
    return number(float(value)) if isinstance(value, (int, float, np.number)) else str(value)
