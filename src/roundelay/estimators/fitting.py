"""The sum of the sites' functions, and its minimum by a method that Roundelay runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from roundelay.algorithms.sealed.optimisers import Goal
from roundelay.algorithms.sealed.sealed_laps import WIDE_AREA, SealedLaps, smoothness_of
from roundelay.engine import Run, simulate
from roundelay.estimators.sums import Communication
from roundelay.kernels import Matrix, Vector
from roundelay.networks import Network, ring
from roundelay.problems import Problem, Regulariser
from roundelay.problems.callables import CallableProblem
from roundelay.problems.problem import total_gradient
from roundelay.problems.regularisers import L1, NoRegulariser, WeightedL1
from roundelay.problems.solving import newton
from roundelay.regression.study import SiteFunction


@dataclass(frozen=True, eq=False, repr=False)
class SitesProblem(CallableProblem):
    """The functions of the sites. A fit is there to find the minimiser: it is known where it was `found` already, and else no number."""

    found: Vector | None = None

    @property
    def known_optimum(self) -> Vector:
        """What nobody is to look for beforehand."""
        return np.full(self.dim, np.nan) if self.found is None else self.found

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self)["optimum"] = self.known_optimum


@dataclass(frozen=True, eq=False, repr=False)
class SquaresProblem(SitesProblem):
    """The same where every function is a sum of squares: one lap has all there is to know."""

    is_quadratic: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The proximal step of a quadratic function, by the eigenvectors of its curvature: any penalty, at no further cost."""

    function: SiteFunction

    @cached_property
    def _parts(self) -> tuple[Vector, Matrix, Vector]:
        origin = np.zeros(self.function.likelihood.dim)
        curvatures, directions = np.linalg.eigh(self.function.hessian(origin))
        return curvatures, directions, directions.T @ self.function.gradient(origin)

    def prox(self, v: Vector, penalty: float) -> Vector:
        """argmin f(x) + penalty/2 ‖x − v‖²."""
        curvatures, directions, slope = self._parts
        return directions @ ((penalty * (directions.T @ v) - slope) / (curvatures + penalty))


@dataclass(frozen=True, eq=False)
class Curved:
    """The proximal step of any other convex function, by Newton's method."""

    function: SiteFunction

    def prox(self, v: Vector, penalty: float) -> Vector:
        """argmin f(x) + penalty/2 ‖x − v‖²."""
        one = np.eye(len(v))
        x, _ = newton(
            lambda x: self.function.gradient(x) + penalty * (x - v),
            lambda x: self.function.hessian(x) + penalty * one,
            one,
            v,
        )
        return x


def problem_of_sites(functions: Sequence[SiteFunction], squares: bool) -> SitesProblem:
    """The functions of all sites, as the simulator takes them."""
    return (SquaresProblem if squares else SitesProblem)(
        [one.gradient for one in functions],
        functions[0].likelihood.dim,
        [one.value for one in functions],
        [one.hessian for one in functions],
        [(Quadratic if squares else Curved)(one).prox for one in functions],
    )


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where a fit has ended: the run, and how steep the mean of all functions still is there."""

    run: Run
    residual: float

    @property
    def laps(self) -> int:
        """How often a question or a token went round; iterations, where all speak at once."""
        if self.run.family == "sealed":
            return len(self.run.record.step) - 1 - (self.run.stop == "found")
        if self.run.family == "gossip":
            return self.run.iterations
        return -(-self.run.hops // len(self.run.x))

    @property
    def communication(self) -> Communication:
        """What it took."""
        hops = round(self.run.units) if self.run.family == "gossip" else self.run.hops
        over = self.run.family == "sealed" and self.run.stop == "found"  # one more lap says so
        return Communication(self.laps + over, hops, float(self.run.units), int(self.run.record.bytes[-1]))


def minimised(problem: SitesProblem, lasso: Vector, algorithm: Any, tolerance: float, most_laps: int) -> Fitted:
    """The minimum of the mean function, with `lasso`·|x|: by sealed laps, or by another method that is held against what they find."""
    network = ring(problem.agents)
    regulariser = _regulariser(problem.agents * lasso)
    sums = hasattr(algorithm, "choice")
    given = algorithm if sums else SealedLaps(wide=True)
    laps = replace(given, regulariser=regulariser)
    if laps.is_open:  # the sites of a ring are far apart, so that waiting for a lap costs more than its numbers
        laps = replace(laps, optimiser=laps.chosen(smoothness_of(problem), WIDE_AREA).optimiser)
    run = simulate(laps, problem, network, hops=most_laps * problem.agents, progress=False)
    if not (algorithm is None or sums):
        problem = replace(problem, found=run.estimate)
        run = _by(_carrying(algorithm, regulariser), problem, network, tolerance, most_laps)
    goal = Goal(problem.dim, problem.agents, regulariser)
    residual = goal.residual(run.estimate, total_gradient(problem, run.estimate))
    return Fitted(replace(run, problem=None), residual)  # a model does not carry the rows that it was fitted to


def _regulariser(weights: Vector) -> Regulariser:
    if not weights.any():
        return NoRegulariser()
    return L1(float(weights[0])) if (weights == weights[0]).all() else WeightedL1(weights)


def _carrying(algorithm: Any, regulariser: Regulariser) -> Any:
    if regulariser.is_zero:
        return algorithm
    if not hasattr(algorithm, "regulariser"):
        raise ValueError(
            f"{_name(algorithm)} has no regulariser, which a lasso needs: leave `algorithm` out, or use one that has it, such as IADMM()."
        )
    return replace(algorithm, regulariser=regulariser)


def _by(algorithm: Any, problem: Problem, network: Network, tolerance: float, most_laps: int) -> Run:
    """By a method with a token, which ends by the agents' own rule where it can, or by one without."""
    if isinstance(algorithm, type) or not hasattr(algorithm, "parts"):
        raise ValueError(
            f"algorithm is {algorithm!r}: leave it out for sealed laps, or use an object such as roundelay.IADMM(rho=1.0)."
        )
    resolved = algorithm.resolved(problem) if hasattr(algorithm, "resolved") else algorithm
    method = resolved.parts()
    if hasattr(method, "mixing"):
        return simulate(algorithm, problem, network, iterations=most_laps, tolerance=tolerance, progress=False)
    if not hasattr(method, "walk"):
        return simulate(algorithm, problem, network, progress=False)
    own_rule = not method.no_contentment(tolerance, problem.dim, problem.agents)
    return simulate(
        algorithm, problem, network, most_laps * problem.agents, progress=False,
        content=tolerance if own_rule else None, tolerance=None if own_rule else tolerance,
    )  # fmt: skip


def _name(algorithm: Any) -> str:
    return str(getattr(algorithm, "name", type(algorithm).__name__))
