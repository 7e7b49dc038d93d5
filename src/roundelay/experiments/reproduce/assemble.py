"""The report put together."""

from __future__ import annotations

import roundelay
from roundelay.experiments.reproduce.catalogue import FIGURES, entry_named
from roundelay.experiments.reproduce.claims import CLAIMS
from roundelay.experiments.reproduce.document import Document, Section
from roundelay.experiments.reproduce.effort import Effort
from roundelay.experiments.reproduce.judging import Found, judge
from roundelay.experiments.reproduce.tables import (
    beyond_table,
    counts_table,
    descent_table,
    floors_table,
    gammas_table,
    inference_table,
    limits_table,
    readings_tables,
    slopes_table,
    units_table,
)
from roundelay.plots.chart import ChartFigure

TITLE = "Privacy-preserving incremental ADMM, reproduced and judged"


def assemble(found: Found, effort: Effort) -> Document:
    """Claims first, then the paper's figures, its theory, both readings of what it leaves open, and what lies beyond."""

    def figure(name: str) -> ChartFigure:
        return entry_named(name).make(found, effort)

    claims = tuple(judge(claim, found) for claim in CLAIMS)
    tally = [
        sum(claim.verdict == verdict for claim in claims) for verdict in ("holds", "holds only if", "does not hold")
    ]
    sections = (
        Section(
            "example", "The algorithm", ("One token, six agents, two laps.",), (figure("fig1"), figure("fig2")),
        ),
        Section(
            "convergence", "What it costs",
            (
                "The paper's six methods with the paper's parameters. One unit is one p-vector sent over one link. On"
                " logistic regression all methods take first-order steps.",
            ),
            (figure("fig3"), units_table(found, "least squares"), figure("fig5"), units_table(found, "logistic"), slopes_table(found), floors_table(found)),
        ),
        Section(
            "privacy", "What an eavesdropper learns",
            (
                "The paper calls a mechanism private when its input cannot be uniquely derived from its output. Its own"
                " attacks are shown as printed and solved to the end, then what an observer can do who knows that f_i is"
                " quadratic.",
            ),
            (figure("fig4"), figure("fig6"), figure("remarks"), inference_table(found), counts_table(found)),
        ),
        Section(
            "theory", "The theory, run",
            ("Each lemma under its own conditions, hop by hop.",),
            (figure("lagrangian"), descent_table(found), limits_table(found)),
        ),
        Section(
            "open", "What the paper leaves open", ("Both readings of each.",), readings_tables(found),
        ),
        Section(
            "beyond", "Beyond the paper",
            ("Rivals that the paper does not compare with, and γ where its proof holds.",),
            (figure("beyond"), beyond_table(found), figure("gamma"), gammas_table(found)),
        ),
    )  # fmt: skip
    assert {item.name for section in sections for item in section.items if isinstance(item, ChartFigure)} == {
        entry.name for entry in FIGURES
    }
    words = (
        "Every figure and every checkable claim of Ye, Chen, Xiao, Skoglund and Poor (IEEE Transactions on Signal"
        " Processing, 2020), from the same code that the simulator runs.",
        f"Of {len(claims)} claims {tally[0]} hold, {tally[1]} hold only under a condition, and {tally[2]} do not hold."
        " Each verdict is computed from the numbers beside it.",
    )
    command = "roundelay reproduce" + (" --quick" if effort.name == "quick" else "")
    return Document(TITLE, words, claims, sections, f"Made by roundelay {roundelay.__version__}: {command}")
