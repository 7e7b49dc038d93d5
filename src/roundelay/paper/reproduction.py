"""The reproduction as a whole: every piece of it, the figures that can be made alone, and the report put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import roundelay
from roundelay.comparison.field_methods import Kind
from roundelay.paper.accuracy import accuracy_figure, accuracy_pieces
from roundelay.paper.beyond import GAMMA_RUN, beyond_figure, beyond_pieces, gamma_figure
from roundelay.paper.claims import CLAIMS
from roundelay.paper.counting import counting_pieces
from roundelay.paper.document import Document, Found, Section, judge
from roundelay.paper.eavesdropping import eavesdropping_figure, eavesdropping_pieces
from roundelay.paper.example import evolution_figure, example_pieces, network_figure
from roundelay.paper.inference import BACKWARDS, backwards_figure, inference_pieces
from roundelay.paper.pieces import Effort, Piece
from roundelay.paper.readings import reading_pieces
from roundelay.paper.tables import (
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
from roundelay.paper.theory import lagrangian_figure, lagrangian_pieces, limit_pieces
from roundelay.paper.variations import variation_pieces
from roundelay.plots.chart import ChartFigure

TITLE = "Privacy-preserving incremental ADMM, reproduced and judged"


@dataclass(frozen=True)
class PaperFigure:
    """A figure that can be made by itself."""

    name: str
    pieces: tuple[Piece, ...]
    make: Callable[[Found, Effort], ChartFigure]


def _named(pieces: Sequence[Piece], start: str) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if piece.name.startswith(start))


def _of_kind(make: Callable[[Found, Effort, Kind], ChartFigure], kind: Kind) -> Callable[[Found, Effort], ChartFigure]:
    return lambda found, effort: make(found, effort, kind)


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure("fig1", example_pieces(), network_figure),
    PaperFigure("fig2", example_pieces(), evolution_figure),
    PaperFigure("fig3", _named(accuracy_pieces(), "fig3"), _of_kind(accuracy_figure, "least squares")),
    PaperFigure("fig4", _named(eavesdropping_pieces(), "fig4"), _of_kind(eavesdropping_figure, "least squares")),
    PaperFigure("fig5", _named(accuracy_pieces(), "fig5"), _of_kind(accuracy_figure, "logistic")),
    PaperFigure("fig6", _named(eavesdropping_pieces(), "fig6"), _of_kind(eavesdropping_figure, "logistic")),
    PaperFigure("lagrangian", lagrangian_pieces(), lagrangian_figure),
    PaperFigure("remarks", _named(inference_pieces(), BACKWARDS), backwards_figure),
    PaperFigure("beyond", _named(beyond_pieces(), "beyond"), beyond_figure),
    PaperFigure("gamma", _named(beyond_pieces(), GAMMA_RUN), gamma_figure),
)


def all_pieces() -> tuple[Piece, ...]:
    """Everything that the report is made of; what takes longest comes first."""
    return (
        *variation_pieces(), *beyond_pieces(), *accuracy_pieces(), *inference_pieces(), *eavesdropping_pieces(),
        *lagrangian_pieces(), *reading_pieces(), *limit_pieces(), *counting_pieces(), *example_pieces(),
    )  # fmt: skip


def figure_named(name: str) -> PaperFigure:
    """The figure of this name."""
    for figure in FIGURES:
        if figure.name == name:
            return figure
    known = ", ".join(figure.name for figure in FIGURES)
    raise ValueError(f"There is no figure {name!r}: use one of {known}, or none for the whole report.")


def assemble(found: Found, effort: Effort) -> Document:
    """Claims first, then the paper's figures, its theory, both readings of what it leaves open, and what lies beyond."""

    def figure(name: str) -> ChartFigure:
        return figure_named(name).make(found, effort)

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
        figure.name for figure in FIGURES
    }
    words = (
        "Every figure and every checkable claim of Ye, Chen, Xiao, Skoglund and Poor (IEEE Transactions on Signal"
        " Processing, 2020), from the same code that the simulator runs.",
        f"Of {len(claims)} claims {tally[0]} hold, {tally[1]} hold only under a condition, and {tally[2]} do not hold."
        " Each verdict is computed from the numbers beside it.",
    )
    command = "roundelay reproduce" + (" --quick" if effort.name == "quick" else "")
    return Document(TITLE, words, claims, sections, f"Made by roundelay {roundelay.__version__}: {command}")
