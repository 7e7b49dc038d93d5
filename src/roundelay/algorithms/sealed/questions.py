"""What is asked of all agents at once, and what one of them answers: a function of the public point and of its data alone.

An agent must have no memory. If what it adds followed from a private state, the public path would betray it lap by lap, though
nobody ever saw its summand: `docs/privacy.md` has the experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.problems import Problem
from roundelay.problems.problem import everywhere


class Asked(IntEnum):
    """Of what the sum is formed; of nothing, where a lap only tells where the point is."""

    NOTHING = 0
    GRADIENT = 1
    VALUE_AND_GRADIENT = 2
    GRADIENT_AND_HESSIAN = 3
    VALUE_GRADIENT_AND_HESSIAN = 4
    HESSIAN_TIMES_DIRECTION = 5
    # Sums of the problem's own at the point where the fit stands, the second of which follows from the total of the first.
    FIRST_LOOK = 6
    SECOND_LOOK = 7
    # What the rows outside each of some folds say, at a point for each: also the problem's own.
    FOLDS = 64


# What is told with a question, as bits above what is asked.
POINT, STEP, DIRECTION = 8, 16, 32
VALUES = (Asked.VALUE_AND_GRADIENT, Asked.VALUE_GRADIENT_AND_HESSIAN)
GRADIENTS = (Asked.GRADIENT, *VALUES, Asked.GRADIENT_AND_HESSIAN)
HESSIANS = (Asked.GRADIENT_AND_HESSIAN, Asked.VALUE_GRADIENT_AND_HESSIAN)
LOOKS = (Asked.FIRST_LOOK, Asked.SECOND_LOOK)
OWN = (*LOOKS, Asked.FOLDS)


class OwnSums(NamedTuple):
    """How many numbers the sums have that are a problem's own: both looks; what is told of folds, and what is answered."""

    first: int = 0
    second: int = 0
    points: int = 0
    folds: int = 0


def numbers_asked(asked: Asked, dim: int, own: OwnSums = OwnSums()) -> int:  # noqa: B008
    """How many numbers an answer has: of a Hessian one triangle."""
    if asked == Asked.NOTHING:
        return 0
    if asked in OWN:
        return {Asked.FIRST_LOOK: own.first, Asked.SECOND_LOOK: own.second, Asked.FOLDS: own.folds}[asked]
    return dim + (asked in VALUES) + (asked in HESSIANS) * dim * (dim + 1) // 2


class Place(NamedTuple):
    """What is public between two laps: the point at which all answer, and the direction that was told last."""

    point: Vector
    direction: Vector


@runtime_checkable
class AnswersAtOnce(Protocol):
    """A problem for which all that is asked of an agent at a point is one piece of work, such as a pass over many rows."""

    def answer(self, agent: int, asked: Asked, place: Place) -> Vector:
        """The numbers of an answer."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, and what is told with it.

    Told is where the point is: the `point` itself, or a `step` along the direction that was told last, or nothing where it
    stays. A `direction` is told for the product with the Hessian, and `beside` what a problem's own sum follows from: of the second look
    the total of the first, of folds their points.
    """

    asked: Asked
    point: Vector | None = None
    direction: Vector | None = None
    step: float | None = None
    beside: Vector | None = None

    @property
    def kind(self) -> int:
        """What is asked and what is told, as one small number."""
        told = ((self.point, POINT), (self.step, STEP), (self.direction, DIRECTION))
        return int(self.asked) | sum(bit for part, bit in told if part is not None)

    @property
    def told(self) -> Vector:
        """The numbers that are told: a point, a step, a direction, what stands beside, as far as there are any."""
        step = None if self.step is None else np.array([self.step])
        parts = (self.point, step, self.direction, self.beside)
        return np.concatenate([part for part in parts if part is not None] or [_NONE])

    def moved(self, place: Place) -> Place:
        """The place after it was told; everybody computes the same bits."""
        point = place.point if self.point is None else self.point
        if self.step is not None:
            point = point + self.step * place.direction
        return Place(point, place.direction if self.direction is None else self.direction)


_NONE: Vector = np.zeros(0)


def kinds_of(asked: Asked) -> tuple[int, ...]:
    """The kinds of question that ask for this, with all that may be told."""
    if asked == Asked.HESSIAN_TIMES_DIRECTION:
        return (asked | DIRECTION, asked | DIRECTION | STEP)
    if asked in OWN:  # where all stand, and nowhere else
        return (int(asked),)
    return (int(asked), asked | POINT, asked | STEP)


def asked_in(kind: int) -> Asked:
    """What a kind of question asks for."""
    return Asked(kind & ~(POINT | STEP | DIRECTION))


def numbers_told(kind: int, dim: int, own: OwnSums = OwnSums()) -> int:  # noqa: B008
    """How many numbers are told with a kind of question."""
    if asked_in(kind) in OWN:
        return {Asked.SECOND_LOOK: own.first, Asked.FOLDS: own.points}.get(asked_in(kind), 0)
    return dim * (bool(kind & POINT) + bool(kind & DIRECTION)) + bool(kind & STEP)


def question_of(kind: int, told: Vector, dim: int) -> Question:
    """The question of a kind with these numbers."""
    if asked_in(kind) in OWN:
        return Question(asked_in(kind), beside=told if len(told) else None)
    point = told[:dim] if kind & POINT else None
    rest = told[dim:] if kind & POINT else told
    step = float(rest[0]) if kind & STEP else None
    direction = rest[bool(kind & STEP) :] if kind & DIRECTION else None
    return Question(asked_in(kind), point, direction, step)


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of all answers: Σf_i (NaN where it was not asked for), Σ∇f_i or Σ∇²f_i·direction, and Σ∇²f_i.

    Of a problem's own sums the numbers stand for the gradient, as they are.
    """

    value: float
    gradient: Vector
    hessian: Matrix | None


def total_of(asked: Asked, numbers: Vector, dim: int) -> Total:
    """What the summed numbers say."""
    if asked in OWN:
        return Total(float("nan"), numbers, None)
    first = int(asked in VALUES)
    value = float(numbers[0]) if first else float("nan")
    gradient = numbers[first : first + dim]
    if asked not in HESSIANS:
        return Total(value, gradient, None)
    upper, hessian = np.triu_indices(dim), np.zeros((dim, dim))
    hessian[upper] = numbers[first + dim :]
    return Total(value, gradient, hessian + np.triu(hessian, 1).T)


def answers(problem: Problem, asked: Asked, place: Place) -> Matrix:
    """What every agent of a problem answers, one row an agent."""
    agents, dim, point = problem.agents, problem.dim, place.point
    if asked == Asked.NOTHING:
        return np.zeros((agents, 0))
    if isinstance(problem, AnswersAtOnce):
        return np.array([problem.answer(agent, asked, place) for agent in range(agents)])
    if asked == Asked.HESSIAN_TIMES_DIRECTION:
        return np.array([problem.hessian_times(agent, point, place.direction) for agent in range(agents)])
    if agents == 1:
        return _own_answer(problem, asked, point)[None]
    points, columns = everywhere(problem, point), []
    if asked in VALUES:
        columns.append(problem.values(points)[:, None])
    columns.append(problem.gradients(points))
    if asked in HESSIANS:
        upper = np.triu_indices(dim)
        columns.append(np.array([problem.hessian(agent, point)[upper] for agent in range(agents)]))
    return np.concatenate(columns, axis=1)


def _own_answer(problem: Problem, asked: Asked, point: Vector) -> Vector:
    """What the one agent of a problem answers: a member of a ring, who need not go by way of matrices of all agents."""
    gradient = problem.gradient(0, point)
    if asked == Asked.GRADIENT:
        return gradient
    parts = [np.array([problem.value(0, point)])] * (asked in VALUES) + [gradient]
    if asked in HESSIANS:
        parts.append(problem.hessian(0, point)[np.triu_indices(problem.dim)])
    return np.concatenate(parts)
