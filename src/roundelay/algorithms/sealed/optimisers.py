"""Public optimisers: each turns the sums that are known so far into the next question.

An optimiser is a generator: it yields a question and is sent the total. It has no other source of information, so that whoever
has the totals can run it again and find the same questions, and a restart is a replay. The goal is Σf_i + r.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from roundelay.algorithms.sealed.questions import Asked, Question, Total
from roundelay.algorithms.sealed.shared_noise import SharedNoise
from roundelay.kernels import Matrix, Vector
from roundelay.problems import Regulariser
from roundelay.problems.regularisers import NoRegulariser, SimpleShape, simple_shape
from roundelay.problems.solving import widths_of
from roundelay.registry import register

ROUNDING = float(np.finfo(np.float64).eps)
# Where a step is this small, relative to the point, one more would change nothing that anybody reads.
SMALL_STEP = 1e-11
# A difference of two values that is smaller than this part of them is taken from the slopes instead.
BELOW_ROUNDING = 1e-9
# How much of what the slope promises a step must keep.
DECREASE = 1e-4
# How often a line search that failed for rounding is begun anew.
RESTARTS = 6


class NoMinimiserError(ValueError):
    """Σf_i + r has no minimiser, for the reason that the sentence gives."""


@dataclass(frozen=True, eq=False)
class Goal:
    """What everybody knows of the problem: its size, r, when to stop, and where the first point is.

    `values` and `hessians` say whether they can be asked for. `start` is where all stand at first: the origin, or a model that
    all have. Where Σf_i is below `least` there is no minimiser, for the reason in `why_none`. Under a promise of differential privacy
    `noise` is what the members add, the totals are over records that count 1 each, and `ridge`/2 ‖z‖² is added in public.
    """

    dim: int
    agents: int
    regulariser: Regulariser = field(default_factory=NoRegulariser)
    tolerance: float = 1e-12
    values: bool = True
    hessians: bool = True
    start: Vector | None = None
    least: float = -np.inf
    why_none: str = ""
    most: int = 1000
    noise: SharedNoise | None = None
    ridge: float = 0.0

    @property
    def origin(self) -> Vector:
        """Where all stand at first."""
        return np.zeros(self.dim) if self.start is None else self.start

    def residual(self, point: Vector, gradient: Vector) -> float:
        """‖Σ∇f_i‖/N, and with r how far a proximal step of that length goes."""
        step = gradient / self.agents
        if self.regulariser.is_zero:
            return float(np.linalg.norm(step))
        return float(np.linalg.norm(point - self.regulariser.prox(point - step, 1.0 / self.agents)))

    def relative_to(self, first: Total) -> Goal:
        """The tolerance is of the gradient at the start, where that is larger than 1: units must not matter."""
        return replace(self, tolerance=self.tolerance * max(1.0, float(np.linalg.norm(first.gradient)) / self.agents))

    def check(self, total: Total) -> None:
        """Refuse what has no minimiser."""
        if total.value < self.least:
            raise NoMinimiserError(self.why_none)


@dataclass(frozen=True, eq=False)
class Found:
    """Where an optimiser ended: the point, which all stand at, the residual there, and whether it is within the tolerance.

    `covariance` is what noise on the totals has given to the point, where there was any.
    """

    point: Vector
    residual: float
    converged: bool
    covariance: Matrix | None = None


Asking = Generator[Question, Total, Found]


class Optimiser(Protocol):
    """Something that turns totals into questions, of the kinds that it says."""

    @property
    def asks(self) -> tuple[Asked, ...]:
        """What it may ask for."""

    def questions(self, goal: Goal) -> Asking:
        """Ask until the goal is reached."""


@register(Optimiser, "auto")
@dataclass(frozen=True)
class Auto:
    """Whichever optimiser suits the problem's kind and size."""

    name: ClassVar[str] = "an optimiser that follows from the problem"
    asks: ClassVar[tuple[Asked, ...]] = ()

    def questions(self, goal: Goal) -> Asking:
        """It is chosen before anything is asked."""
        raise ValueError("The optimiser follows from the problem: ask resolved(problem) of the algorithm.")


# ---------------------------------------------------------------- the quadratic model, solved in public


def model_minimiser(hessian: Matrix, gradient: Vector, centre: Vector, regulariser: Regulariser) -> Vector:
    """argmin_z ½(z − c)'H(z − c) + g'(z − c) + r(z): of least distance from c where there are several."""
    if regulariser.is_zero:
        return centre - _solved(hessian, gradient)
    shape = simple_shape(regulariser)
    z = _by_coordinates(hessian, gradient, centre, shape)
    return _on_free(hessian, gradient, centre, shape, z)


def _solved(hessian: Matrix, right: Vector) -> Vector:
    """H⁻¹g in units that make the diagonal 1; along a direction without curvature nothing, along a negative one its size."""
    widths = widths_of(np.abs(hessian))
    curvatures, directions = np.linalg.eigh(hessian / np.outer(widths, widths))
    size = np.abs(curvatures)
    kept = size > len(right) * ROUNDING * size.max(initial=0.0)
    along = np.where(kept, directions.T @ (right / widths) / np.where(kept, size, 1.0), 0.0)
    return directions @ along / widths


def _by_coordinates(hessian: Matrix, gradient: Vector, centre: Vector, shape: SimpleShape) -> Vector:
    """Coordinate descent: each coordinate in turn to its own minimum."""
    z = np.clip(centre, shape.lower, shape.upper)
    slope = gradient + hessian @ (z - centre)
    bends = np.diag(hessian)
    for _ in range(1000):
        largest = 0.0
        for d in np.flatnonzero(bends > 0.0):
            wanted = z[d] - slope[d] / bends[d]
            wanted = np.sign(wanted) * max(abs(wanted) - shape.weight / bends[d], 0.0)
            change = min(max(wanted, shape.lower), shape.upper) - z[d]
            if change != 0.0:
                z[d] += change
                slope += change * hessian[d]
                largest = max(largest, abs(change))
        if largest <= 1e-9 * np.abs(z).max(initial=1e-300):
            break
    return z


def _on_free(hessian: Matrix, gradient: Vector, centre: Vector, shape: SimpleShape, z: Vector) -> Vector:
    """With the coordinates at a kink held fixed the rest is a linear system; what it leaves the shape by is held next."""
    free = (z > shape.lower) & (z < shape.upper) & ((z != 0.0) | (shape.weight == 0.0))
    signs = np.sign(z)
    for _ in range(len(z)):
        if not free.any():
            return z
        slope = gradient + hessian @ (z - centre) + shape.weight * signs
        moved = z.copy()
        moved[free] -= _solved(hessian[np.ix_(free, free)], slope[free])
        left = free & ((moved < shape.lower) | (moved > shape.upper) | ((moved * signs < 0.0) & (shape.weight > 0.0)))
        if not left.any():
            return moved
        z = np.clip(np.where(left & (shape.weight > 0.0), 0.0, moved), shape.lower, shape.upper)
        free &= ~left
    return z


# ---------------------------------------------------------------- quadratics


@register(Optimiser, "normal-equations")
@dataclass(frozen=True)
class NormalEquations:
    """For quadratics: one lap for Σ∇f_i and Σ∇²f_i, then the minimiser, confirmed by a lap for the gradient there.

    Where the sums are ill-conditioned the confirmation is not the end: its gradient corrects the point, as in iterative
    refinement, until that no longer helps.
    """

    name: ClassVar[str] = "normal equations"
    asks: ClassVar[tuple[Asked, ...]] = (Asked.GRADIENT_AND_HESSIAN, Asked.GRADIENT)

    def questions(self, goal: Goal) -> Asking:
        """Ask until the goal is reached."""
        total = yield Question(Asked.GRADIENT_AND_HESSIAN)
        goal = goal.relative_to(total)
        assert total.hessian is not None
        hessian, z = total.hessian, goal.origin
        following, before = model_minimiser(hessian, total.gradient, z, goal.regulariser), np.inf
        for _ in range(goal.most):
            z = following
            gradient = (yield Question(Asked.GRADIENT, z)).gradient
            following = model_minimiser(hessian, gradient, z, goal.regulariser)
            step = float(np.abs(following - z).max())
            if step <= SMALL_STEP * np.abs(z).max() or not step < 0.25 * before:
                break
            before = step
        residual = goal.residual(z, gradient)
        return Found(z, residual, residual <= goal.tolerance)


@register(Optimiser, "conjugate-gradients")
@dataclass(frozen=True)
class ConjugateGradients:
    """For quadratics with many unknowns: a lap for Σ∇f_i, then laps for Σ∇²f_i·direction, 2p numbers each.

    Everybody moves along by the step length, which is one number. In the end a lap for the gradient confirms the point, or the
    method starts anew from there.
    """

    name: ClassVar[str] = "conjugate gradients"
    asks: ClassVar[tuple[Asked, ...]] = (Asked.GRADIENT, Asked.HESSIAN_TIMES_DIRECTION, Asked.NOTHING)

    def questions(self, goal: Goal) -> Asking:
        """Ask until the goal is reached."""
        if not goal.regulariser.is_zero:
            raise ValueError(
                "Conjugate gradients solve linear equations, which a problem with a regulariser has not: use "
                "NormalEquations, or LBFGS where there are many unknowns."
            )
        z = goal.origin
        total = yield Question(Asked.GRADIENT)
        goal, gradient = goal.relative_to(total), total.gradient
        residual, before, asked = goal.residual(z, gradient), np.inf, 0
        while residual > goal.tolerance and residual < 0.5 * before and asked < goal.most:
            ahead, left, step = -gradient, -gradient, None
            square = float(left @ left)
            while np.sqrt(square) / goal.agents > 0.1 * goal.tolerance and asked < goal.most:
                direction = ahead / np.linalg.norm(ahead)  # of length 1, so that the sums stay in range
                product = (yield Question(Asked.HESSIAN_TIMES_DIRECTION, None, direction, step)).gradient
                asked, step = asked + 1, None
                bend = float(direction @ product)
                if not bend > 0.0:
                    break
                step = float(left @ direction) / bend
                z = z + step * direction
                left = left - step * product
                square, last = float(left @ left), square
                ahead = left + (square / last) * ahead
            # The step goes along the direction that was told last.
            yield Question(Asked.NOTHING, step=step)
            gradient = (yield Question(Asked.GRADIENT)).gradient
            residual, before = goal.residual(z, gradient), residual
        return Found(z, residual, residual <= goal.tolerance)


# ---------------------------------------------------------------- any smooth function


@register(Optimiser, "newton")
@dataclass(frozen=True)
class Newton:
    """Each lap asks for gradient, Hessian and value, p(p + 3)/2 + 1 numbers; with a regulariser it is the proximal Newton method."""

    name: ClassVar[str] = "Newton's method"
    asks: ClassVar[tuple[Asked, ...]] = (Asked.VALUE_GRADIENT_AND_HESSIAN, Asked.GRADIENT_AND_HESSIAN)

    def questions(self, goal: Goal) -> Asking:
        """Ask until the goal is reached."""
        asked = Asked.VALUE_GRADIENT_AND_HESSIAN if goal.values else Asked.GRADIENT_AND_HESSIAN
        z, before, laps = goal.origin, np.inf, 0
        total = yield Question(asked)
        goal = goal.relative_to(total)
        while True:
            goal.check(total)
            assert total.hessian is not None
            ahead = model_minimiser(total.hessian, total.gradient, z, goal.regulariser) - z
            step = float(np.abs(ahead).max())
            residual = goal.residual(z, total.gradient)
            small = step <= SMALL_STEP * np.abs(z).max() or (residual <= goal.tolerance and not step < 0.25 * before)
            if small or laps >= goal.most:
                return Found(z, residual, residual <= goal.tolerance)
            length = 1.0
            for _ in range(60):
                trial = z + length * ahead
                new = yield Question(asked, trial)
                laps += 1
                shorter = _shorter(goal, z, total, trial, new, length)
                if not shorter:
                    break
                length = shorter
            z, total, before = trial, new, step


def _shorter(goal: Goal, z: Vector, old: Total, trial: Vector, new: Total, length: float) -> float:
    """A shorter length for a step that went too far; 0 where it is good."""
    ahead, regulariser = trial - z, goal.regulariser
    slope = float(old.gradient @ ahead) + regulariser.value(trial) - regulariser.value(z)
    if not np.isfinite(new.gradient).all():
        return 0.1 * length
    change = new.value - old.value + regulariser.value(trial) - regulariser.value(z)
    if not goal.values or abs(change) <= BELOW_ROUNDING * max(abs(old.value), abs(new.value)):
        # A convex function has its slopes in order: too far is where the slope has turned and is steeper than it was.
        change = 0.5 * (slope + float(new.gradient @ ahead) + regulariser.value(trial) - regulariser.value(z))
    if change <= DECREASE * slope or slope >= 0.0:
        return 0.0
    # The minimum of the parabola through both values and the first slope.
    best = -0.5 * slope / (change - slope)
    return length * min(max(best, 0.1), 0.5)


@register(Optimiser, "lbfgs")
@dataclass(frozen=True)
class LBFGS:
    """SciPy's L-BFGS-B, which is never told but totals: each lap asks for the gradient, and the value where there is one.

    A box is its bounds; ‖x‖₁ comes by x = u − v with u, v ≥ 0.
    """

    name: ClassVar[str] = "L-BFGS"
    asks: ClassVar[tuple[Asked, ...]] = (Asked.VALUE_AND_GRADIENT, Asked.GRADIENT)

    def questions(self, goal: Goal) -> Asking:
        """Ask until the goal is reached."""
        asked = Asked.VALUE_AND_GRADIENT if goal.values else Asked.GRADIENT
        total = yield Question(asked)
        goal = goal.relative_to(total)
        best, residual, length = goal.origin, goal.residual(goal.origin, total.gradient), 1.0
        for _ in range(RESTARTS):
            if residual <= goal.tolerance:
                break
            search = _Search(goal, best, total, length)
            point = search.started()
            while point is not None:
                new = yield Question(asked, point)
                goal.check(new)
                arrived = goal.residual(point, new.gradient)
                if arrived <= goal.tolerance or search.asked >= goal.most:
                    search.end()
                    return Found(point, arrived, arrived <= goal.tolerance)
                if arrived < residual:
                    best, residual, total = point, arrived, new
                point = search.told(new)
            length = search.usual_length(total.gradient)
        if not np.array_equal(best, goal.origin):  # where all are to stand
            total = yield Question(asked, best)
        residual = goal.residual(best, total.gradient)
        return Found(best, residual, residual <= goal.tolerance)


class _EndedError(Exception):
    """Nobody asks any more."""


class _Search:
    """SciPy's optimiser in a thread of its own, which waits whenever it wants to know a value.

    Its first step is one of length 1, so it is given units in which the gradient has the length 1 and a likely step too. Values are
    told relative to that at the start, or the last steps would be lost beside them.
    """

    def __init__(self, goal: Goal, start: Vector, first: Total, length: float) -> None:
        self.goal, self.start, self.length, self.asked = goal, start, length, 0
        self._shape = simple_shape(goal.regulariser)
        self._height = length * float(np.linalg.norm(first.gradient)) or 1.0
        self._last: tuple[Vector, float, Total] = (start, 0.0, first)
        self._bend, self._begun = 0.0, False
        self._questions: queue.SimpleQueue[Vector | BaseException | None] = queue.SimpleQueue()
        self._totals: queue.SimpleQueue[Total | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def started(self) -> Vector | None:
        """The first point that it asks for; None where there is none."""
        self._thread.start()
        return self._next()

    def told(self, total: Total) -> Vector | None:
        """The next point, after the total at the one before."""
        self._totals.put(total)
        return self._next()

    def end(self) -> None:
        """Let the thread end."""
        self._totals.put(None)

    def usual_length(self, gradient: Vector) -> float:
        """How long a step along the gradient is likely to be right, by the last curvature that was seen."""
        size = float(np.linalg.norm(gradient))
        return size / self._bend if self._bend > 0.0 and size > 0.0 else self.length

    def _next(self) -> Vector | None:
        following = self._questions.get()
        if isinstance(following, BaseException):
            raise following
        self.asked += following is not None
        return following

    def _run(self) -> None:
        from scipy.optimize import minimize  # late: it takes half a second

        shape, dim, start, length = self._shape, self.goal.dim, self.start, self.length
        split = shape.weight > 0.0
        bounds: Any = None
        if split:
            first = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)]) / length
            bounds = [(0.0, None)] * (2 * dim)
        else:
            first = np.zeros(dim)
            if np.isfinite([shape.lower, shape.upper]).any():
                bounds = np.column_stack([(shape.lower - start) / length, (shape.upper - start) / length])
        most = self.goal.most
        # A workspace of 2m + 5 vectors: with a million unknowns a few of them must do.
        options: Any = {
            "maxcor": 10 if dim <= 100_000 else 4,
            "ftol": 0.0,
            "gtol": 0.0,
            "maxiter": most,
            "maxfun": most,
        }
        try:
            function: Any = self._of_parts if split else self._of_offset
            minimize(function, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            self._questions.put(None)
        except _EndedError:
            pass
        except BaseException as error:
            self._questions.put(error)

    def _of_offset(self, offset: Vector) -> tuple[float, Vector]:
        value, gradient = self._at(self.start + self.length * offset)
        return value / self._height, (self.length / self._height) * gradient

    def _of_parts(self, both: Vector) -> tuple[float, Vector]:
        upper, lower = np.split(self.length * both, 2)
        value, gradient = self._at(upper - lower)
        weight, unit = self._shape.weight, self.length / self._height
        whole = value + weight * float((upper + lower).sum() - np.abs(self.start).sum())
        return whole / self._height, unit * np.concatenate([gradient + weight, weight - gradient])

    def _at(self, x: Vector) -> tuple[float, Vector]:
        """Value and gradient, as soon as they are known."""
        before, value, last = self._last
        if not self._begun:  # the start has been asked for
            self._begun = True
            return value, last.gradient
        if np.array_equal(x, before):
            return value, last.gradient
        self._questions.put(x)
        total = self._totals.get()
        if total is None:
            raise _EndedError
        apart, change = x - before, total.value - last.value
        if not self.goal.values or abs(change) <= BELOW_ROUNDING * max(abs(total.value), abs(last.value)):
            change = 0.5 * float((last.gradient + total.gradient) @ apart)
        self._bend = float((total.gradient - last.gradient) @ apart) / float(apart @ apart)
        self._last = (x, value + change, total)
        return value + change, total.gradient
