"""What can be made by name: each figure, with the pieces it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roundelay.experiments.field_methods import Kind
from roundelay.experiments.reproduce.beyond import GAMMA_RUN, beyond_figure, beyond_pieces, gamma_figure
from roundelay.experiments.reproduce.convergence import convergence_figure, convergence_pieces
from roundelay.experiments.reproduce.counting import counting_pieces
from roundelay.experiments.reproduce.eavesdropping import eavesdropping_figure, eavesdropping_pieces
from roundelay.experiments.reproduce.effort import Effort
from roundelay.experiments.reproduce.example import evolution_figure, example_pieces, network_figure
from roundelay.experiments.reproduce.inference import BACKWARDS, backwards_figure, inference_pieces
from roundelay.experiments.reproduce.judging import Found
from roundelay.experiments.reproduce.lagrangian import lagrangian_figure, lagrangian_pieces
from roundelay.experiments.reproduce.limits import limit_pieces
from roundelay.experiments.reproduce.pieces import Piece
from roundelay.experiments.reproduce.readings import reading_pieces
from roundelay.experiments.reproduce.variations import variation_pieces
from roundelay.plots.chart import ChartFigure


@dataclass(frozen=True)
class Entry:
    """A figure that can be made by itself."""

    name: str
    pieces: tuple[Piece, ...]
    make: Callable[[Found, Effort], ChartFigure]


def _named(pieces: Sequence[Piece], start: str) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if piece.name.startswith(start))


def _of_kind(make: Callable[[Found, Effort, Kind], ChartFigure], kind: Kind) -> Callable[[Found, Effort], ChartFigure]:
    return lambda found, effort: make(found, effort, kind)


FIGURES: tuple[Entry, ...] = (
    Entry("fig1", example_pieces(), network_figure),
    Entry("fig2", example_pieces(), evolution_figure),
    Entry("fig3", _named(convergence_pieces(), "fig3"), _of_kind(convergence_figure, "least squares")),
    Entry("fig4", _named(eavesdropping_pieces(), "fig4"), _of_kind(eavesdropping_figure, "least squares")),
    Entry("fig5", _named(convergence_pieces(), "fig5"), _of_kind(convergence_figure, "logistic")),
    Entry("fig6", _named(eavesdropping_pieces(), "fig6"), _of_kind(eavesdropping_figure, "logistic")),
    Entry("lagrangian", lagrangian_pieces(), lagrangian_figure),
    Entry("remarks", _named(inference_pieces(), BACKWARDS), backwards_figure),
    Entry("beyond", _named(beyond_pieces(), "beyond"), beyond_figure),
    Entry("gamma", _named(beyond_pieces(), GAMMA_RUN), gamma_figure),
)


def all_pieces() -> tuple[Piece, ...]:
    """Everything that the report is made of; what takes longest comes first."""
    return (
        *variation_pieces(), *beyond_pieces(), *convergence_pieces(), *inference_pieces(), *eavesdropping_pieces(),
        *lagrangian_pieces(), *reading_pieces(), *limit_pieces(), *counting_pieces(), *example_pieces(),
    )  # fmt: skip


def entry_named(name: str) -> Entry:
    """The figure of this name."""
    for entry in FIGURES:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in FIGURES)
    raise ValueError(f"There is no figure {name!r}: use one of {known}, or none for the whole report.")
