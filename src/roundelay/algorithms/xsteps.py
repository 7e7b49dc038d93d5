"""The second choice: how an agent solves for its x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from roundelay.algorithms.clipping import ClippedGradient
from roundelay.algorithms.slots import gradient, minimise, row_slope
from roundelay.kernels import BATCH, DIM, Numbers, Part, Vector, each, uniform, vector
from roundelay.kernels.checks import whole_number


class XStep(Protocol):
    """A way to the new x."""

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The kernel functions that the problem must provide."""


def solve_exactly(
    problem: Any, xstep: Numbers, seed: int, i: int, hop: int, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """x⁺ = argmin f_i(x) + penalty/2 ‖x‖² − w'x."""
    minimise(problem, i, w, penalty, x, new)


def solve_first_order(
    problem: Any, xstep: Numbers, seed: int, i: int, hop: int, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """The same with f_i replaced by its tangent at the old x: x⁺ = (w − ∇f_i(x))/penalty."""
    slope = vector(DIM)
    gradient(problem, i, x, slope)
    inverse = 1.0 / penalty
    for d in each(DIM):
        new[d] = (w[d] - slope[d]) * inverse


class BatchNumbers(NamedTuple):
    """How many rows are drawn."""

    batch: int


def solve_by_sample(
    problem: Any, xstep: BatchNumbers, seed: int, i: int, hop: int, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """The first-order step with the gradient of a few rows, drawn with replacement and scaled up to all."""
    slope = vector(DIM)
    begin = problem.row_starts[i]
    rows = problem.row_starts[i + 1] - begin
    for d in each(DIM):
        slope[d] = problem.ridge * x[d]
    for draw in range(xstep.batch):
        j = begin + int(uniform(seed, i, hop, BATCH, draw) * rows)
        factor = row_slope(problem, i, j, x) * rows / xstep.batch
        for d in each(DIM):
            slope[d] += factor * problem.rows[j, d]
    inverse = 1.0 / penalty
    for d in each(DIM):
        new[d] = (w[d] - slope[d]) * inverse


@dataclass(frozen=True)
class Exact:
    """Solve the local problem exactly, by the problem's prox."""

    needs: tuple[str, ...] = ("minimise",)

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""
        return Part((("solve", solve_exactly),))


@dataclass(frozen=True)
class FirstOrder:
    """Replace f_i by its tangent at the old x: one gradient a visit."""

    needs: tuple[str, ...] = ("gradient",)

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""
        return Part((("solve", solve_first_order),))


@dataclass(frozen=True)
class Sampled:
    """The first-order step with the gradient of `batch` rows drawn at random."""

    batch: int = 10
    needs: tuple[str, ...] = ("row_slope",)

    def __post_init__(self) -> None:
        whole_number("batch", self.batch, least=1)

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""
        return Part((("solve", solve_by_sample),), BatchNumbers(int(self.batch)))


def xstep(first_order: bool, clip: float | None = None, sample_rate: float | None = None) -> XStep:
    """The exact step, or the first-order one, with the gradients of single records clipped or not."""
    if clip is None:
        if sample_rate is not None:
            raise ValueError(
                f"sample_rate is {sample_rate} but clip is None: records are sampled where their gradients are clipped, "
                "so set clip too, for instance clip=1.0, or leave sample_rate out."
            )
        return FirstOrder() if first_order else Exact()
    if not first_order:
        raise ValueError(
            f"clip is {clip} but first_order is False: an exact step has no gradients of single records to clip, "
            "so say first_order=True, or leave clip out."
        )
    return ClippedGradient(clip, sample_rate)
