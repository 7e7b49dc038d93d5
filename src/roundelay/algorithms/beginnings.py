"""What a start says: where the agents and the token stand before the first hop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from roundelay.kernels import Matrix, Vector
from roundelay.kernels.random import Words


@dataclass(frozen=True, eq=False)
class SealedSum:
    """What each agent adds in a lap before the first hop: words modulo 2⁶⁴ under its mask, `bits` bits after the point."""

    contributions: Words
    bits: int


class Beginning(NamedTuple):
    """x_i⁰ and y_i⁰ of all agents.

    `share` holds c_i⁰ where it is not just x_i⁰ − y_i⁰/ρ, `token` the token's start where that is not 0, and `sealed`
    the sum from which it came.
    """

    x: Matrix
    y: Matrix
    share: Matrix | None = None
    token: Vector | None = None
    sealed: SealedSum | None = None
