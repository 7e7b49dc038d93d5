"""Differential privacy of a sealed sum: every record clipped, and noise that the members add together, under the masks.

Neighbouring data differ by one record more or less, at whichever member. A lap sums, over the records of all members, the
gradient ℓ'(x'z)·x and one triangle of ℓ''(x'z)·xx'. With ‖x‖ ≤ B, |ℓ'| ≤ C and ℓ'' ≤ L, a record's gradient has the norm BC at
most, and its matrix LB²: with what stands beside the diagonal times √2, the norm of the triangle is that of the matrix. A part φ of
the lap's budget goes to the matrix. For noise of the deviation σ_g on every number of the gradient, and σ_H on those of the matrix
(σ_H/√2 beside the diagonal), one record moves the sum, in units of its noise, by

    μ² = (BC/σ_g)² + (LB²/σ_H)²,    σ_g = BC/(μ√(1 − φ)),    σ_H = LB²/(μ√φ).

That is a Gaussian mechanism with the multiplier 1/μ, and laps compose exactly: μ² adds up, ρ = μ²/2 in terms of zero-concentrated
differential privacy. Each of N members adds a discrete Gaussian share of the variance σ²/(N − t), so that σ² is there even where t
members leave theirs out, or tell each other what they have added.

The words count steps of 2⁻³⁰ of a share's deviation. Every record is rounded to them by itself, and the sums are of whole numbers:
so one record moves the sum by its own steps, exactly, and rounding adds half a step a number to its norm, which is accounted for. A
sum of shares differs from one discrete Gaussian by a factor below exp(10·N·exp(−π²·2⁶⁰)) (Kairouz, Liu and Steinke 2021), and this
from a rounded Gaussian by at most 1/(24σ²) in total variation, σ in steps: that adds to δ what `discreteness` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import Words
from roundelay.masks import FixedPoint, PairSecrets, Steps, discrete_gaussian, own_words
from roundelay.problems.row_problem import RowProblem

# The deviation of a share is 2³⁰ steps of the grid.
SHARE_BITS = 30
GRID = FixedPoint(SHARE_BITS)
# Beyond this next to nothing is promised.
MOST_EPSILON = 10.0
# What floating point may do to a norm that was clipped.
ROUNDING = 1e-9
# So many numbers are made of records at a time.
_BLOCK = 2**20


@dataclass(frozen=True)
class SharedNoise:
    """What everybody knows of the noise of a run, before it begins.

    A row of features counts up to the norm `clip_row`, B, and a slope ℓ' up to `clip_slope`, C; `most_curvature` is L.
    `multiplier` is 1/μ of the whole run; `laps` has the part of μ² that each lap uses, and `of_curvature` is φ. `leave_out` is t.
    """

    dim: int
    agents: int
    clip_row: float
    clip_slope: float
    most_curvature: float
    multiplier: float
    laps: tuple[float, ...]
    of_curvature: float
    leave_out: int = 1

    def __post_init__(self) -> None:
        finite_number("The noise multiplier", self.multiplier, above=0.0)
        finite_number("clip_row", self.clip_row, above=0.0)
        finite_number("clip_slope", self.clip_slope, above=0.0)
        if not 0 <= whole_number("leave_out", self.leave_out) < self.agents:
            raise ValueError(
                f"leave_out is {self.leave_out}, but there are {self.agents} members: use 0 to {self.agents - 1}, of which the last "
                "lets each member's noise suffice by itself."
            )

    @property
    def rho(self) -> float:
        """ρ of zero-concentrated differential privacy, of the whole run: it adds up over runs on the same data."""
        return 0.5 / self.multiplier**2

    @property
    def numbers(self) -> int:
        """How many numbers a lap sums: gradient and triangle."""
        return self.dim * (self.dim + 3) // 2

    @property
    def honest(self) -> int:
        """How many members' shares make up what is promised: N − t."""
        return self.agents - self.leave_out

    def discreteness(self, epsilon: float) -> float:
        """What is to be added to δ because the noise is of whole steps: (1 + e^ε) times the distance from a Gaussian."""
        distance = len(self.laps) * self.numbers / (24.0 * self.honest * 4.0**SHARE_BITS)
        return (1.0 + math.exp(epsilon)) * distance

    def promised(self, lap: int) -> tuple[float, float]:
        """σ_g and σ_H: what N − t shares have together."""
        mu = math.sqrt(self.laps[lap]) / self.multiplier
        room = mu - math.sqrt(self.numbers) / (2.0 * math.sqrt(self.honest) * 2.0**SHARE_BITS)
        if not room > 0.5 * mu:
            raise ValueError(
                f"With {self.dim:,} unknowns what is rounded would count more than the records: use a larger epsilon."
            )
        gradient = self.clip_row * self.clip_slope / math.sqrt(1.0 - self.of_curvature)
        hessian = self.most_curvature * self.clip_row**2 / math.sqrt(self.of_curvature)
        return (1.0 + ROUNDING) * gradient / room, (1.0 + ROUNDING) * hessian / room

    def added(self, lap: int) -> tuple[float, float]:
        """σ_g and σ_H of what all N members add, where none leaves its share out."""
        more = math.sqrt(self.agents / self.honest)
        gradient, hessian = self.promised(lap)
        return more * gradient, more * hessian

    @property
    def laps_in_words(self) -> str:
        """How often is asked."""
        return "one lap with noise" if len(self.laps) == 1 else f"{len(self.laps)} laps with noise"

    # ------------------------------------------------------------ numbers and words

    @cached_property
    def _triangle(self) -> tuple[Steps, Steps]:
        first, second = np.triu_indices(self.dim)
        return first, second

    def shares(self, lap: int) -> Vector:
        """The deviation of one member's share, of each number: those of the gradient, then those of the triangle."""
        first, second = self._triangle
        gradient, hessian = self.promised(lap)
        beside = np.where(first == second, hessian, hessian / math.sqrt(2.0))
        return np.concatenate([np.full(self.dim, gradient), beside]) / math.sqrt(self.honest)

    def decoded(self, lap: int, words: Words) -> Vector:
        """The numbers of a total."""
        return GRID.decode(words) * self.shares(lap)

    def words(self, problem: RowProblem, agent: int, lap: int, point: Vector, secrets: PairSecrets, me: int) -> Words:
        """What member `me` adds in a lap, before the mask: its records, which are those of `agent` in the problem, and its share."""
        return (self.steps(problem, agent, lap, point) + self.noise(lap, secrets, me, point)).view(np.uint64)

    def noise(self, lap: int, secrets: PairSecrets, me: int, point: Vector) -> Steps:
        """A member's share: the same again, whenever the lap is asked for again at this point.

        At another point it is another one: two answers with one noise would have their difference without any.
        """
        about = np.ascontiguousarray(point, "<f8").tobytes()
        return discrete_gaussian(own_words(secrets, me, lap, about), self.numbers, SHARE_BITS)

    def steps(self, problem: RowProblem, agent: int, lap: int, point: Vector) -> Steps:
        """The clipped records of an agent, each rounded to whole steps, and summed."""
        own = problem.rows.of(agent)
        targets = problem.rows.targets[own]
        features: Any = problem.rows.features[own]
        most = math.ldexp(math.sqrt(self.honest) / self.multiplier, SHARE_BITS) + 1.0
        if not most * len(targets) * self.agents < 2.0**62:
            raise ValueError(
                f"{len(targets):,} rows are too many to be summed in words of 64 bits with so little noise: use a smaller epsilon."
            )
        units = math.ldexp(1.0, SHARE_BITS) / self.shares(lap)
        total: Steps = np.zeros(self.numbers, np.int64)
        together = max(1, _BLOCK // self.numbers)
        for begin in range(0, len(targets), together):
            block = features[begin : begin + together]
            rows = clipped_rows(block.toarray() if problem.rows.is_sparse else block, self.clip_row)
            total += (
                np.rint(self._records(problem, rows, targets[begin : begin + together], point) * units)
                .astype(np.int64)
                .sum(axis=0)
            )
        return total

    def _records(self, problem: RowProblem, rows: Matrix, targets: Vector, point: Vector) -> Matrix:
        """What each record counts: its gradient and its triangle."""
        # What is no number would pass every clip, and count without bound.
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = np.nan_to_num(rows @ point)
            slopes = np.nan_to_num(problem.loss.slope(problem.own, predictions, targets))
            bends = np.nan_to_num(problem.loss.curvature(problem.own, predictions, targets))
        slopes, bends = np.clip(slopes, -self.clip_slope, self.clip_slope), np.clip(bends, 0.0, self.most_curvature)
        first, second = self._triangle
        return np.column_stack([slopes[:, None] * rows, (bends[:, None] * rows[:, first]) * rows[:, second]])


def clipped_rows(rows: Matrix, longest: float) -> Matrix:
    """The rows, those that are too long made shorter."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, longest / np.maximum(norms, longest))


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """δ of a Gaussian mechanism at ε: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), μ = 1/multiplier (Balle and Wang 2018)."""
    mu = 1.0 / multiplier
    return _normal(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2.0 - epsilon / mu)


def epsilon_of_gaussian(multiplier: float, delta: float) -> float:
    """ε of a Gaussian mechanism at δ: where `gaussian_delta`, which falls with ε, is δ."""
    low, high = 0.0, 1.0
    while gaussian_delta(multiplier, high) > delta:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(multiplier, middle) > delta else (low, middle)
    return high


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
