"""The family of sealed laps, by name, and how the optimiser is chosen where that is left open."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from roundelay.algorithms.algorithm import Algorithm, Tunable
from roundelay.algorithms.lemmas import Condition, Conditions
from roundelay.algorithms.sealed.noisy_newton import NoisyNewton
from roundelay.algorithms.sealed.optimisers import LBFGS, ConjugateGradients, Newton, NormalEquations, Optimiser
from roundelay.algorithms.sealed.questions import HESSIANS
from roundelay.algorithms.sealed.shared_noise import GRID, SharedNoise
from roundelay.algorithms.token_method import check_choice
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.masks import FixedPoint, Grid, WideFixedPoint
from roundelay.problems import Problem, Regulariser
from roundelay.problems.problem import check_matrix
from roundelay.problems.regularisers import NoRegulariser, simple_shape
from roundelay.problems.row_problem import RowProblem
from roundelay.registry import register, registered

# What waiting for a hop is worth, in numbers of 8 bytes: 20 ms at 100 Mbit/s.
WIDE_AREA = 31_250


@dataclass(frozen=True)
class SealedMethod:
    """What the engine runs: a public optimiser, r at the public point, and the grid on which answers are summed.

    A method of sums says by `masked` whether they are formed under masks.
    """

    masked: ClassVar[bool] = True
    optimiser: Optimiser
    regulariser: Regulariser
    grid: Grid
    words: str
    needs: tuple[str, ...] = ("gradient",)


class Smoothness(NamedTuple):
    """What is known of a problem before anybody is asked."""

    dim: int
    is_quadratic: bool
    has_hessians: bool
    has_values: bool


def smoothness_of(problem: Problem) -> Smoothness:
    """What is known of a problem."""
    return Smoothness(problem.dim, problem.is_quadratic, problem.has_hessians, problem.has_values)


class Choice(NamedTuple):
    """An optimiser, and why it."""

    optimiser: Optimiser
    because: str

    @property
    def words(self) -> str:
        """The choice as a sentence."""
        return f"{_name(self.optimiser)}: {self.because}."


@register(Algorithm)
@dataclass(frozen=True)
class SealedLaps:
    """One lap is one sum under masks; between laps a public optimiser, replayed on the sums, moves the public point.

        question q: the point z goes round, and words; agent i adds encode(answer_i(z)) + mask_iq
        back at the first agent the masks have cancelled: Σ answer_i(z), and nothing else, is known
        z ← optimiser(all sums so far)

    An answer is the value, gradient or Hessian of f_i at z: it follows from z and the agent's data alone. So whoever sees all
    words learns the sum over the agents that he does not work with, and nothing else. There is nothing to tune.

    `optimiser` is "auto", which chooses by the problem's kind and size, or one of NormalEquations(), ConjugateGradients(),
    Newton() and LBFGS(), or its word, as "newton"; `choice(problem)` says what it is, and why. `regulariser` acts at the public point. Numbers are summed in fixed point with `bits` bits after the
    point, one word of 64 bits each, or with `wide` in two words, exact whatever the units.

    Under a budget of ε no record counts more than a public amount: its features are scaled down to the norm `clip_row`, and the slope of
    its loss is cut at `clip_slope` (for least squares the target, as the slope at 0; that of a logistic loss is never above 1). And the members add noise together, enough even where
    `leave_out` of them add none; `noise_multiplier` follows from the budget (`under`). `docs/differential-privacy.md` has the argument.
    """

    optimiser: Optimiser | str = "auto"
    regulariser: Regulariser = NoRegulariser()
    bits: int = 44
    wide: bool = False
    clip_row: float | None = None
    clip_slope: float = 1.0
    leave_out: int = 1
    noise_multiplier: float = 0.0

    name: ClassVar[str] = "Sealed laps"
    tunable: ClassVar[tuple[Tunable, ...]] = ()

    def __post_init__(self) -> None:
        words = registered(Optimiser)
        if isinstance(self.optimiser, str) and self.optimiser in words:
            object.__setattr__(self, "optimiser", words[self.optimiser]())
        if isinstance(self.optimiser, type) or not hasattr(self.optimiser, "questions"):
            raise ValueError(
                f"optimiser is {self.optimiser!r}: use one of {', '.join(map(repr, words))}, or an object such as roundelay.Newton()."
            )
        check_choice("regulariser", self.regulariser)
        if not isinstance(self.wide, bool):
            raise ValueError(f"wide is {self.wide!r}: use True or False.")
        whole_number("bits", self.bits)
        whole_number("leave_out", self.leave_out, least=0)
        finite_number("clip_slope", self.clip_slope, above=0.0)
        if self.clip_row is not None:
            finite_number("clip_row", self.clip_row, above=0.0)
        _ = self.grid
        simple_shape(self.regulariser)
        if finite_number("noise_multiplier", self.noise_multiplier, least=0.0) and self.clip_row is None:
            raise ValueError(
                "Noise promises nothing where one record may count any amount: say how much by "
                "SealedLaps(clip_row=…, clip_slope=…)."
            )
        if self.noise_multiplier and not self.regulariser.is_zero:
            raise ValueError(
                "Under noise the fit has no regulariser, since what noise does to a coefficient at its kink is not known: leave it out."
            )
        if self.noise_multiplier and not self.is_open and not getattr(self.by, "for_noise", False):
            raise ValueError(
                f"{_name(self.by)} would ask as often as the data want, and each answer costs privacy: leave it out."
            )

    @property
    def grid(self) -> Grid:
        """How answers stand in words; with noise, in steps of it."""
        if self.noise_multiplier:
            return GRID
        return WideFixedPoint() if self.wide else FixedPoint(self.bits)

    def resolved(self, problem: Problem) -> Self:
        """With the optimiser that suits the problem, where that was left open."""
        return replace(self, optimiser=self.choice(problem).optimiser)

    def choice(self, problem: Problem) -> Choice:
        """The optimiser for this problem, and why; one that does not suit it is refused."""
        known = smoothness_of(problem)
        if self.noise_multiplier:
            check_records(problem)
        check_suits(self.by, known)
        return self.chosen(known)

    def chosen(self, known: Smoothness, waiting: float = 0.0) -> Choice:
        """The optimiser, and why; `waiting` is what a hop costs besides its numbers, in numbers."""
        if not self.is_open:
            return Choice(self.by, "as was asked for")
        return choose_noisy(known) if self.noise_multiplier else choose(known, self.regulariser, waiting)

    @property
    def is_open(self) -> bool:
        """Whether the optimiser follows from the problem."""
        return not self.by.asks

    @property
    def by(self) -> Optimiser:
        """The optimiser itself."""
        assert not isinstance(self.optimiser, str)
        return self.optimiser

    def parts(self) -> SealedMethod:
        """What the engine runs."""
        return SealedMethod(self.by, self.regulariser, self.grid, _name(self.by))

    def under(self, noise_multiplier: float) -> Self:
        """With the noise that a budget asks for."""
        return replace(self, noise_multiplier=noise_multiplier)

    def noise_for(self, known: Smoothness, agents: int, most_curvature: float) -> SharedNoise | None:
        """What everybody knows of the noise; None where there is none."""
        steps = self.chosen(known).optimiser
        if not self.noise_multiplier or self.clip_row is None or not isinstance(steps, NoisyNewton):
            return None
        return SharedNoise(
            known.dim, agents, self.clip_row, self.clip_slope, most_curvature, self.noise_multiplier, steps.parts, steps.of_curvature, self.leave_out
        )  # fmt: skip

    def conditions(self, problem: Problem) -> Conditions:
        """It solves what is smooth, and with one minimum."""
        words = f"{_name(self.choice(problem).optimiser)} on a {type(problem).__name__}"
        return Conditions([Condition("Sealed laps", "every f_i has a gradient", words, True)])


def check_suits(optimiser: Optimiser, known: Smoothness) -> None:
    """Refuse an optimiser that asks for what a problem does not have."""
    if getattr(optimiser, "quadratics_only", False) and not known.is_quadratic:
        raise ValueError(
            f"{_name(optimiser)} are for quadratic functions such as least squares, which these are not: use Newton() or "
            'LBFGS(), or "auto".'
        )
    if not known.has_hessians and any(asked in HESSIANS for asked in optimiser.asks):
        raise ValueError(
            f"{_name(optimiser)} needs Hessians, which the problem does not have: use LBFGS(), for which a gradient is enough."
        )
    if any(asked in HESSIANS for asked in optimiser.asks):
        check_matrix(known.dim)


def check_records(problem: Problem) -> None:
    """Refuse what has no records that could be clipped, or some that count more than others."""
    if not isinstance(problem, RowProblem) or not problem.has_records:
        raise ValueError(
            f"A {type(problem).__name__} has no records that could be clipped, so that no ε can be promised: use a problem of rows, such "
            "as LeastSquares or Logistic, or leave the budget out."
        )
    if not math.isfinite(problem.most_curvature):
        raise ValueError(
            f"The curvature that one record of a {type(problem).__name__} adds has no bound, so that no ε can be promised: leave the budget out."
        )
    scales = problem.scales
    if scales.max() > (1.0 + 1e-9) * scales.min():
        raise ValueError(
            "Under a promise of ε every record must count the same, and here those of one agent count more than those of another: use "
            'weights="rows", or for least squares scale="half_sum".'
        )


def choose_noisy(known: Smoothness) -> Choice:
    """Steps whose noise is fixed beforehand: one where the functions are quadratic."""
    numbers = known.dim * (known.dim + 3) // 2
    if known.is_quadratic:
        return Choice(
            NoisyNewton(1, 0.5),
            f"the functions are quadratic, so that one lap of {numbers:,} numbers has all there is to know, and nothing is asked twice",
        )
    steps = NoisyNewton()
    return Choice(
        steps,
        f"{steps.laps} laps of {numbers:,} numbers, as many whatever the data, the last with least noise",
    )


def choose(known: Smoothness, regulariser: Regulariser, waiting: float = 0.0) -> Choice:
    """The optimiser that is likely to cost least: numbers that are sent, and waiting for hops."""
    p = known.dim
    matrix, unknowns = p * (p + 3) // 2, f"{p:,} unknown{'s' * (p != 1)}"
    if known.is_quadratic:
        direct = matrix + 2 * p + 2 * waiting
        laps = min(p, ConjugateGradients.usual) + 3
        stepwise = laps * (2 * p + waiting)
        if not regulariser.is_zero or direct <= stepwise:
            return Choice(
                NormalEquations(),
                f"the functions are quadratic, so that one lap of {matrix:,} numbers has all there is to know",
            )
        return Choice(
            ConjugateGradients(),
            f"the functions are quadratic, and with {unknowns} a few laps of {2 * p:,} numbers cost less than one of {matrix:,}",
        )
    if not known.has_hessians:
        return Choice(LBFGS(), "there are gradients, but no Hessians")
    newton, lbfgs = Newton.usual * (matrix + 1 + p + waiting), LBFGS.usual * (2 * p + 1 + waiting)
    if newton <= lbfgs:
        beside = " beside the wait for a hop" if waiting else ""
        return Choice(
            Newton(),
            f"with {unknowns} a lap of {matrix + 1:,} numbers is cheap{beside}, and few laps are needed",
        )
    return Choice(
        LBFGS(),
        f"with {unknowns} more laps of {2 * p + 1:,} numbers cost less than a few of {matrix + 1:,}",
    )


def _name(optimiser: Optimiser) -> str:
    name = str(getattr(optimiser, "name", type(optimiser).__name__))
    return name[0].upper() + name[1:]
