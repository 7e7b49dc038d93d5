"""Public optimisers: each turns the sums that are known so far into the next question.

An optimiser is a generator: it yields a question and is sent the total. It has no other source of information, so that whoever
has the totals can run it again and find the same questions, and a restart is a replay. The goal is Σf_i + r.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from roundelay.algorithms.sealed.quadratic_model import ROUNDING, Change, corrected, drift_over, model_minimiser
from roundelay.algorithms.sealed.questions import LOOKS, Asked, Question, Total
from roundelay.algorithms.sealed.search import BELOW_ROUNDING, Search
from roundelay.algorithms.sealed.shared_noise import SharedNoise
from roundelay.kernels import Matrix, Vector
from roundelay.problems import Regulariser
from roundelay.problems.regularisers import NoRegulariser
from roundelay.registry import register

# Where a step is this small, relative to the point, one more would change nothing that anybody reads.
SMALL_STEP = 1e-11
# What two steps by one Hessian leave is an estimate: it must be this much smaller still, or the fit would now and then need another lap.
MARGIN = 0.1
# How much of what the slope promises a step must keep.
DECREASE = 1e-4
# After so many laps in which neither the gradient was halved nor the value fell nothing more is to be expected.
PATIENCE = 10
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

    def is_near(self, point: Vector, residual: float, hessian: Matrix) -> bool:
        """Whether it is within the tolerance, or as close as rounding lets anybody see."""
        rounding = ROUNDING * float(np.linalg.norm(np.abs(hessian) @ np.abs(point))) / self.agents
        return residual <= max(self.tolerance, rounding)

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
    """Something that turns totals into questions, of the kinds that it says.

    One that is for quadratic functions alone says so by `quadratics_only`, one whose questions are planned for sums with noise by
    `for_noise`, and about how many laps it takes, where it can tell, by `usual`.
    """

    @property
    def asks(self) -> tuple[Asked, ...]:
        """What it may ask for; nothing, where it stands for the one that follows from the problem."""

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


# ---------------------------------------------------------------- quadratics


@register(Optimiser, "normal-equations")
@dataclass(frozen=True)
class NormalEquations:
    """For quadratics: one lap for Σ∇f_i and Σ∇²f_i, then the minimiser, confirmed by a lap for the gradient there.

    Where the sums are ill-conditioned the confirmation is not the end: its gradient corrects the point, as in iterative
    refinement, until that no longer helps.
    """

    name: ClassVar[str] = "normal equations"
    usual: ClassVar[int] = 2
    quadratics_only: ClassVar[bool] = True
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
            step, residual = float(np.abs(following - z).max()), goal.residual(z, gradient)
            near = goal.is_near(z, residual, hessian)
            if not step < 0.25 * before or (near and step <= SMALL_STEP * np.abs(z).max()):
                break
            before = step
        return Found(z, residual, near)


@register(Optimiser, "conjugate-gradients")
@dataclass(frozen=True)
class ConjugateGradients:
    """For quadratics with many unknowns: a lap for Σ∇f_i, then laps for Σ∇²f_i·direction, 2p numbers each.

    Everybody moves along by the step length, which is one number. In the end a lap for the gradient confirms the point, or the
    method starts anew from there.
    """

    name: ClassVar[str] = "conjugate gradients"
    usual: ClassVar[int] = 20
    quadratics_only: ClassVar[bool] = True
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
    """Each lap asks for gradient, Hessian and value, p(p + 3)/2 + 1 numbers; with a regulariser it is the proximal Newton method.

    How the Hessian changed over the last step is in the totals already, and says how it will change over the next: with that
    (Chebyshev's correction) a fit takes one to two laps less. It also says when the last Hessian will do until the end: from there on
    only the gradient is asked for, p numbers.
    """

    name: ClassVar[str] = "Newton's method"
    usual: ClassVar[int] = 7
    asks: ClassVar[tuple[Asked, ...]] = (
        Asked.VALUE_GRADIENT_AND_HESSIAN,
        Asked.GRADIENT_AND_HESSIAN,
        Asked.GRADIENT,
    )

    def questions(self, goal: Goal) -> Asking:
        """Ask until the goal is reached."""
        whole = Asked.VALUE_GRADIENT_AND_HESSIAN if goal.values else Asked.GRADIENT_AND_HESSIAN
        z, laps, since, before, best, lowest = goal.origin, 0, 0, np.inf, np.inf, np.inf
        total = yield Question(whole)
        goal = goal.relative_to(total)
        assert total.hessian is not None
        at, hessian, drift = z, total.hessian, np.inf
        changed: Change | None = None
        while True:
            goal.check(total)
            ahead = model_minimiser(hessian, total.gradient, z, goal.regulariser) - z
            step = float(np.abs(ahead).max())
            residual = goal.residual(z, total.gradient)
            if residual < 0.5 * best or total.value < lowest - BELOW_ROUNDING * abs(lowest):
                best, lowest, since = min(best, residual), min(lowest, total.value), laps
            near = goal.is_near(z, residual, hessian)
            if goal.regulariser.is_zero and not ahead.any() and not near:
                # All is straight here, as Huber's loss is far away: down the slope, as far as a value of 0 might be.
                height = total.value if total.value > 0.0 else float(np.linalg.norm(total.gradient))
                ahead = -height / float(total.gradient @ total.gradient) * total.gradient
                step = float(np.abs(ahead).max())
            in_vain = (step <= SMALL_STEP * np.abs(z).max(), not step < 0.25 * before, near)
            if sum(in_vain) >= 2 or laps >= min(goal.most, since + PATIENCE):
                return Found(z, residual, near)
            # A step leaves half of the drift of its error, and one from there by the same Hessian the drift of that.
            left = drift * step
            if changed is not None:
                drift = drift_over(hessian, ahead, changed)
                left = 0.5 * drift**2 * step
                ahead = corrected(hessian, total.gradient, z, goal.regulariser, ahead, changed)
            asked = Asked.GRADIENT if left <= MARGIN * SMALL_STEP * np.abs(z).max() else whole
            length = 1.0
            for _ in range(60):
                trial = z + length * ahead
                new = yield Question(asked, trial)
                laps += 1
                shorter = _shorter(goal, z, total, trial, new, length)
                if not shorter:
                    break
                length = shorter
            changed = None
            if new.hessian is not None:
                changed = Change(trial - at, new.hessian - hessian)
                at, hessian = trial, new.hessian
            z, total, before = trial, new, step


def _shorter(goal: Goal, z: Vector, old: Total, trial: Vector, new: Total, length: float) -> float:
    """A shorter length for a step that went too far; 0 where it is good."""
    ahead, regulariser = trial - z, goal.regulariser
    slope = float(old.gradient @ ahead) + regulariser.value(trial) - regulariser.value(z)
    if not np.isfinite(new.gradient).all():
        return 0.1 * length
    change = new.value - old.value + regulariser.value(trial) - regulariser.value(z)
    if not abs(change) > BELOW_ROUNDING * max(abs(old.value), abs(new.value)):  # also where a value was not asked for
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

    A box is its bounds; ‖x‖₁ comes by x = u − v with u, v ≥ 0. It sees units, which the others do not: where those of two unknowns are
    more than 1e6 apart it may come no further, or end before the one with the smaller gradient has moved.
    """

    name: ClassVar[str] = "L-BFGS"
    usual: ClassVar[int] = 20
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
            with closing(Search(goal, best, total, length)) as search:  # also where nobody asks any more
                point = search.started()
                while point is not None:
                    new = yield Question(asked, point)
                    goal.check(new)
                    arrived = goal.residual(point, new.gradient)
                    if arrived <= goal.tolerance or search.asked >= goal.most:
                        return Found(point, arrived, arrived <= goal.tolerance)
                    if arrived < residual:
                        best, residual, total = point, arrived, new
                    point = search.told(new)
            length = search.usual_length(total.gradient)
        if not np.array_equal(best, goal.origin):  # where all are to stand
            total = yield Question(asked, best)
        residual = goal.residual(best, total.gradient)
        return Found(best, residual, residual <= goal.tolerance)


# ---------------------------------------------------------------- what is looked at once the fit is done


@dataclass(frozen=True)
class Looking:
    """Another optimiser, and where it has ended two laps more, for what else the problem is to say at that point."""

    optimiser: Optimiser

    @property
    def name(self) -> str:
        """That of the other."""
        return str(getattr(self.optimiser, "name", type(self.optimiser).__name__))

    @property
    def usual(self) -> int:
        """The laps of the other, and two."""
        return int(getattr(self.optimiser, "usual", ConjugateGradients.usual)) + len(LOOKS)

    @property
    def asks(self) -> tuple[Asked, ...]:
        """What the other may ask for, and two looks."""
        return (*self.optimiser.asks, *LOOKS)

    def questions(self, goal: Goal) -> Asking:
        """Ask until the goal is reached, then look twice."""
        found = yield from self.optimiser.questions(goal)
        first = yield Question(Asked.FIRST_LOOK)
        yield Question(Asked.SECOND_LOOK, beside=first.gradient)
        return found
