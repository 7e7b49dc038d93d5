"""A problem seen from another origin: a method that starts at 0 on it starts there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from roundelay.kernels import DIM, Matrix, Part, Vector, each, slot, vector
from roundelay.problems.problem import Problem, ProblemBase


class MovedNumbers(NamedTuple):
    """The numbers of the problem inside, and where its origin is taken to be."""

    inner: Any
    origin: Vector


@slot
def inner_minimise(problem: Any, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """`minimise` of the problem inside."""
    raise NotImplementedError


@slot
def inner_gradient(problem: Any, i: int, x: Vector, out: Vector) -> None:
    """`gradient` of the problem inside."""
    raise NotImplementedError


@slot
def inner_fetch(problem: Any, i: int) -> None:
    """`fetch` of the problem inside."""
    raise NotImplementedError


def minimise(problem: MovedNumbers, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin_u f_i(u + o) + penalty/2 ‖u‖² − w'u: with x = u + o that of f_i(x) + penalty/2 ‖x‖² − (w + penalty·o)'x, less o."""
    pull, begun = vector(DIM), vector(DIM)
    for d in each(DIM):
        pull[d] = w[d] + penalty * problem.origin[d]
        begun[d] = start[d] + problem.origin[d]
    inner_minimise(problem.inner, i, pull, penalty, begun, out)
    for d in each(DIM):
        out[d] = out[d] - problem.origin[d]


def gradient(problem: MovedNumbers, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(u + o)."""
    moved = vector(DIM)
    for d in each(DIM):
        moved[d] = x[d] + problem.origin[d]
    inner_gradient(problem.inner, i, moved, out)


def fetch(problem: MovedNumbers, i: int) -> None:
    """Ask for what the problem inside will read of agent i."""
    inner_fetch(problem.inner, i)


WRAPPED: tuple[tuple[str, Callable[..., Any]], ...] = (("minimise", minimise), ("gradient", gradient), ("fetch", fetch))


@dataclass(frozen=True, eq=False, repr=False)
class MovedProblem(ProblemBase):
    """f_i(u + origin) as functions of u."""

    inner: Problem
    origin: Vector

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return self.inner.agents

    @property
    def dim(self) -> int:
        """p, the number of unknowns."""
        return self.inner.dim

    @property
    def L(self) -> float:  # noqa: N802
        """As it is from the old origin."""
        return self.inner.L

    @property
    def mu(self) -> float:
        """As it is from the old origin."""
        return self.inner.mu

    @property
    def is_quadratic(self) -> bool:  # type: ignore[override]
        """As it is from the old origin."""
        return self.inner.is_quadratic

    @property
    def has_values(self) -> bool:
        """As it is from the old origin."""
        return self.inner.has_values

    @property
    def has_gradients(self) -> bool:  # type: ignore[override]
        """As it is from the old origin."""
        return self.inner.has_gradients

    @property
    def has_hessians(self) -> bool:
        """As it is from the old origin."""
        return self.inner.has_hessians

    def values(self, points: Matrix) -> Vector:
        """f_i(u_i + origin) of all agents."""
        return self.inner.values(points + self.origin)

    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(u_i + origin) of all agents."""
        return self.inner.gradients(points + self.origin)

    def value(self, agent: int, x: Vector) -> float:
        """f_i(u + origin)."""
        return self.inner.value(agent, x + self.origin)

    def gradient(self, agent: int, x: Vector) -> Vector:
        """∇f_i(u + origin)."""
        return self.inner.gradient(agent, x + self.origin)

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """∇²f_i(u + origin)."""
        return self.inner.hessian(agent, x + self.origin)

    def hessian_times(self, agent: int, x: Vector, direction: Vector) -> Vector:
        """∇²f_i(u + origin)·direction."""
        return self.inner.hessian_times(agent, x + self.origin, direction)

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """The proximal step, which moves with the origin."""
        return self.inner.prox(agent, v + self.origin, penalty) - self.origin

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i at points less its minimum."""
        return self.inner.objective_gaps(points + self.origin)

    @cached_property
    def optimum(self) -> Vector:
        """The minimiser, seen from the new origin."""
        return self.inner.optimum - self.origin

    def kernel(self) -> Part:
        """The kernel of the problem inside, with the origin before and after."""
        inner = self.inner.kernel()
        offered = {name for name, _ in inner.functions}
        return Part(
            tuple(pair for pair in WRAPPED if pair[0] in offered),
            MovedNumbers(inner.numbers, np.array(self.origin)),
            inner.literals,
            inner.hints,
            inner.why_not_compiled,
            inner=inner,
        )


def size_of(problem: Problem, optimum: Vector) -> float:
    """‖x*‖ from the origin that the user knows, or 1 where x* is there."""
    return float(np.linalg.norm(optimum + problem.origin if isinstance(problem, MovedProblem) else optimum)) or 1.0


def begun_at(problem: Problem, origin: Any) -> MovedProblem:
    """The problem seen from a point, checked."""
    try:
        point = np.array(origin, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"x0 is not made of numbers ({error}): give one point, at which all agents start.") from None
    if point.shape != (problem.dim,) or not np.isfinite(point).all():
        raise ValueError(
            f"x0 has the shape {point.shape}, or numbers that are not finite: give one finite number for each of the {problem.dim} "
            "unknowns, the same for all agents."
        )
    return MovedProblem(problem, point)
