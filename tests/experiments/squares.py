"""Pieces of work that take no time, in a module that a new interpreter has soon."""

from __future__ import annotations

from roundelay.paper.pieces import Effort, Measured, Piece


def square(effort: Effort, value: float) -> Measured:
    return Measured({"square": value**2, "seeds": effort.seeds})


def fail(effort: Effort) -> Measured:
    raise ValueError("This piece can't be computed.")


PIECES = tuple(Piece(f"the square of {value}", square, (float(value),)) for value in range(5))
