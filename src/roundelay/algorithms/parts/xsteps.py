"""The second choice: how an agent solves for its x: exactly, or along its gradient, that of a few rows, or one clipped by record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from roundelay.algorithms.parts.facts import XStepFacts
from roundelay.algorithms.slots import gradient, minimise, record_weight, row_slope
from roundelay.kernels import BATCH, DIM, Numbers, Part, Vector, Visit, each, norm, slot, uniform, vector
from roundelay.kernels.checks import finite_number, whole_number


class XStep(Protocol):
    """A way to the new x.

    What it is stands in `facts`, an `XStepFacts`; of one that says nothing no equation is known.
    """

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The kernel functions that the problem must provide."""


def solve_exactly(problem: Any, xstep: Numbers, at: Visit, w: Vector, penalty: float, x: Vector, new: Vector) -> None:
    """x⁺ = argmin f_i(x) + penalty/2 ‖x‖² − w'x."""
    minimise(problem, at.agent, w, penalty, x, new)


@dataclass(frozen=True)
class Exact:
    """Solve the local problem exactly, by the problem's prox."""

    facts: ClassVar[XStepFacts] = XStepFacts("exact")
    needs: tuple[str, ...] = ("minimise",)

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""
        return Part((("solve", solve_exactly),))


def solve_first_order(
    problem: Any, xstep: Numbers, at: Visit, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """The same with f_i replaced by its tangent at the old x: x⁺ = (w − ∇f_i(x))/penalty."""
    slope = vector(DIM)
    gradient(problem, at.agent, x, slope)
    inverse = 1.0 / penalty
    for d in each(DIM):
        new[d] = (w[d] - slope[d]) * inverse


@dataclass(frozen=True)
class FirstOrder:
    """Replace f_i by its tangent at the old x: one gradient a visit."""

    facts: ClassVar[XStepFacts] = XStepFacts("first order")
    needs: tuple[str, ...] = ("gradient",)

    def part(self) -> Part:
        """The kernel function `solve` and its numbers."""
        return Part((("solve", solve_first_order),))


@slot
def add_row(problem: Any, i: int, j: int, factor: float, out: Vector) -> None:
    """Add a multiple of agent i's data row j; where the problem says nothing else, its rows are full."""
    for d in each(DIM):
        out[d] += factor * problem.rows[j, d]


@slot
def row_length(problem: Any, j: int) -> float:
    """The length of data row j."""
    return norm(problem.rows[j])


class BatchNumbers(NamedTuple):
    """How many rows are drawn."""

    batch: int


def solve_by_sample(
    problem: Any, xstep: BatchNumbers, at: Visit, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """The first-order step with the gradient of a few rows, drawn with replacement and scaled up to all."""
    slope = vector(DIM)
    i, begin = at.agent, problem.row_starts[at.agent]
    rows = problem.row_starts[i + 1] - begin
    for d in each(DIM):
        slope[d] = problem.ridge * x[d]
    for draw in range(xstep.batch):
        j = begin + int(uniform(at.seed, i, at.hop, BATCH, draw) * rows)
        add_row(problem, i, j, row_slope(problem, i, j, x) * rows / xstep.batch, slope)
    inverse = 1.0 / penalty
    for d in each(DIM):
        new[d] = (w[d] - slope[d]) * inverse


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


class ClippingNumbers(NamedTuple):
    """The largest norm of a record's gradient, and the chance that a record is drawn."""

    clip: float
    rate: float


def solve_clipped(
    problem: Any, xstep: ClippingNumbers, at: Visit, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """x⁺ = (w − g)/penalty, where g is ridge·x + weight/q Σ_j clip(∇ℓ_j(x)) over the records drawn.

    A record counts in f_i with its weight, so the largest norm of what it adds is clip·weight.
    """
    slope = vector(DIM)
    for d in each(DIM):
        slope[d] = problem.ridge * x[d]
    i, begin = at.agent, problem.row_starts[at.agent]
    limit = xstep.clip * record_weight(problem, i)
    for j in range(begin, problem.row_starts[i + 1]):
        if xstep.rate == 1.0 or uniform(at.seed, i, at.hop, BATCH, j - begin) < xstep.rate:
            factor = row_slope(problem, i, j, x)
            size = abs(factor) * row_length(problem, j)
            if size > limit:
                factor *= limit / size
            factor /= xstep.rate
            add_row(problem, i, j, factor, slope)
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

    @property
    def facts(self) -> XStepFacts:
        """The bound on a record's gradient, and the chance that it is drawn."""
        return XStepFacts(clip=self.clip, rate=self.rate)


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
