"""What an attack on one agent brings to light."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roundelay.kernels import Matrix, Vector


@dataclass(frozen=True, eq=False)
class Recovered:
    """An estimate of what agent i keeps to itself: row r of `x` and `y` is its state after r visits, R + 1 rows.

    `residual` is what the attack itself can measure of its own failure, and `converged` whether its equations could
    be solved and its assumptions hold; neither uses the truth. `words` says how it went. Attacks that recover the
    function too have its Hessian `H` and slope `g` (f = ½x'Hx + g'x), its `records` (rows label·features), or both,
    and always its `gradient`. `gamma` holds the factors γ_r, where they were unknown.
    """

    x: Matrix
    y: Matrix
    residual: float
    converged: bool
    words: str
    H: Matrix | None = None
    g: Vector | None = None
    gradient: Callable[[Vector], Vector] | None = None
    records: Matrix | None = None
    gamma: Matrix | None = None
