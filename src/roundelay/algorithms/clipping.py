"""The first-order step with the gradient of every record clipped, as differential privacy needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from roundelay.algorithms.slots import record_weight, row_slope
from roundelay.kernels import BATCH, DIM, Part, Vector, each, norm, uniform, vector
from roundelay.kernels.checks import finite_number


class ClippingNumbers(NamedTuple):
    """The largest norm of a record's gradient, and the chance that a record is drawn."""

    clip: float
    rate: float


def solve_clipped(
    problem: Any, xstep: ClippingNumbers, seed: int, i: int, hop: int, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """x⁺ = (w − g)/penalty, where g is ridge·x + weight/q Σ_j clip(∇ℓ_j(x)) over the records drawn.

    A record counts in f_i with its weight, so the largest norm of what it adds is clip·weight.
    """
    slope = vector(DIM)
    for d in each(DIM):
        slope[d] = problem.ridge * x[d]
    begin = problem.row_starts[i]
    limit = xstep.clip * record_weight(problem, i)
    for j in range(begin, problem.row_starts[i + 1]):
        if xstep.rate == 1.0 or uniform(seed, i, hop, BATCH, j - begin) < xstep.rate:
            factor = row_slope(problem, i, j, x)
            size = abs(factor) * norm(problem.rows[j])
            if size > limit:
                factor *= limit / size
            factor /= xstep.rate
            for d in each(DIM):
                slope[d] += factor * problem.rows[j, d]
    inverse = 1.0 / penalty
    for d in each(DIM):
        new[d] = (w[d] - slope[d]) * inverse


@dataclass(frozen=True)
class ClippedGradient:
    """The first-order step with the gradient of every record clipped to the norm `clip`.

    f_i(x) = weight_i Σ_j ℓ_j(x) + ridge/2 ‖x‖², where ℓ_j is the loss of one record and weight_i what it counts: 1/b_i
    for a mean. Whatever stands in one record, it can move x⁺ by no more than weight_i·clip/ρ from where it would be
    without it. With a `rate`, every record is drawn at a visit with this chance, each by itself (Poisson sampling), and
    the sum is divided by it.
    """

    clip: float
    rate: float | None = None
    needs: tuple[str, ...] = ("row_slope", "record_weight")

    def __post_init__(self) -> None:
        finite_number("clip", self.clip, above=0.0)
        if self.rate is not None and finite_number("sample_rate", self.rate, above=0.0) > 1.0:
            raise ValueError(f"sample_rate is {self.rate}: it is a chance, so use a number above 0 and at most 1.")

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""
        rate = 1.0 if self.rate is None else float(self.rate)
        return Part((("solve", solve_clipped),), ClippingNumbers(float(self.clip), rate))
