"""What every problem offers: N private functions f_i, and the minimiser of their sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.kernels import Integers, Matrix, Part, Vector
from roundelay.problems.solving import check_minimum, optimum_by_root, prox_by_root


class LogisticRows(NamedTuple):
    """Rows label·features of a logistic loss, those of agent i from starts[i] on: an attack may find them one by one."""

    signed: Matrix
    starts: Integers
    ridge: float


@runtime_checkable
class Problem(Protocol):
    """Minimise Σ f_i(x) over x in R^p, where f_i is known to agent i alone."""

    @property
    def agents(self) -> int:
        """N, the number of agents."""

    @property
    def dim(self) -> int:
        """p, the number of unknowns."""

    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""

    def gradient(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x)."""

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """∇²f_i(x)."""

    def hessian_times(self, agent: int, x: Vector, direction: Vector) -> Vector:
        """∇²f_i(x)·direction."""

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖²."""

    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(x_i) of all agents, each at its own point: (N, p) → (N, p)."""

    def values(self, points: Matrix) -> Vector:
        """f_i(x_i) of all agents, each at its own point: (N, p) → (N,)."""

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i(x) − Σ f_i(x*) at each of several points: (K, p) → (K,)."""

    @property
    def optimum(self) -> Vector:
        """x*, the minimiser of Σ f_i (that of least norm, where there are several)."""

    @property
    def L(self) -> float:  # noqa: N802
        """The smallest L such that every ∇f_i is L-Lipschitz."""

    @property
    def mu(self) -> float:
        """The strong convexity of the mean function (1/N) Σ f_i."""

    @property
    def is_quadratic(self) -> bool:
        """Whether the Hessian of every f_i is the same at every x: then H_i and ∇f_i(0) are all there is to know."""

    @property
    def has_values(self) -> bool:
        """Whether f_i(x) can be asked for."""

    @property
    def has_gradients(self) -> bool:
        """Whether ∇f_i(x) can be asked for."""

    @property
    def has_hessians(self) -> bool:
        """Whether ∇²f_i(x) can be asked for."""

    @property
    def logistic_rows(self) -> LogisticRows | None:
        """The rows, where the loss is logistic."""

    def kernel(self) -> Part:
        """The functions `minimise` and `gradient` that the engines run, with their numbers."""


class OwnProblem(Problem, Protocol):
    """The problem of one agent of a ring: N is 1 in it, since nobody else's function is known."""

    def kernel_at(self, place: int, agents: int) -> Part:
        """Its kernel, where the agent answers to the number `place` among so many."""


class ProblemBase(ABC):
    """A problem that is written once: all else follows from `agents`, `dim`, `values`, `gradients` and `kernel`.

    What a problem knows better than this it overrides: `hessian` (unless it is quadratic, only then has it Hessians), `prox`, `optimum`,
    `objective_gaps`, `L` and `mu`. The functions of one agent are taken from those of all. Printing one shows its
    size, never its data.
    """

    is_quadratic: ClassVar[bool] = False
    has_gradients: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        """A dataclass writes no `__repr__` where there is one: so one that forgets repr=False does not print its data either."""
        super().__init_subclass__(**options)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    if TYPE_CHECKING:  # fields or properties, as a problem likes

        @property
        def agents(self) -> int:
            """N, the number of agents."""

        @property
        def dim(self) -> int:
            """p, the number of unknowns."""

        @property
        def L(self) -> float:  # noqa: N802
            """The smallest L such that every ∇f_i is L-Lipschitz."""

        @property
        def mu(self) -> float:
            """The strong convexity of the mean function (1/N) Σ f_i."""

    else:
        L = mu = float("nan")  # not known

    @abstractmethod
    def values(self, points: Matrix) -> Vector:
        """f_i(x_i) of all agents, each at its own point."""

    @abstractmethod
    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(x_i) of all agents, each at its own point."""

    @abstractmethod
    def kernel(self) -> Part:
        """What the engines run."""

    @property
    def has_values(self) -> bool:
        """Whether f_i(x) can be asked for."""
        return True

    @property
    def has_hessians(self) -> bool:
        """Whether ∇²f_i(x) can be asked for."""
        return self.is_quadratic or type(self).hessian is not ProblemBase.hessian

    @property
    def logistic_rows(self) -> LogisticRows | None:
        """None: the loss is not logistic."""
        return None

    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""
        check_agent(agent, self.agents)
        return float(self.values(everywhere(self, x))[agent])

    def gradient(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x)."""
        check_agent(agent, self.agents)
        return self.gradients(everywhere(self, x))[agent]

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """∇²f_i(x): that of a quadratic is in its gradients, any other has to be defined."""
        if not self.is_quadratic:
            raise ValueError(
                f"A {type(self).__name__} has no Hessians: choose what needs none, or let the problem define hessian."
            )
        origin = self.gradient(agent, np.zeros(self.dim))
        return np.array([self.gradient(agent, direction) - origin for direction in np.eye(self.dim)])

    def hessian_times(self, agent: int, x: Vector, direction: Vector) -> Vector:
        """∇²f_i(x)·direction: for a quadratic from two gradients, so that no matrix is ever formed."""
        if self.is_quadratic:
            return self.gradient(agent, direction) - self.gradient(agent, np.zeros(self.dim))
        return self.hessian(agent, x) @ direction

    def prox(self, agent: int, v: Vector, penalty: float) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖², from the gradient."""
        check_agent(agent, self.agents)
        check_penalty(penalty)
        return prox_by_root(self, agent, v, penalty, v)

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i(x) − Σ f_i(x*) at each of several points; not a number where the values are not known."""
        if not self.has_values:
            return np.full(len(points), np.nan)
        return np.array([total_value(self, x) for x in points]) - total_value(self, self.optimum)

    @cached_property
    def optimum(self) -> Vector:
        """x*, the minimiser of Σ f_i, from the gradients; of several minima, the one that is found."""
        return optimum_by_root(self)

    def with_optimum(self, optimum: ArrayLike | None) -> Self:
        """The same problem with the minimiser that you know, or with None without one, where nobody looks for it.

        Runs without a minimiser are measured by the norm of the gradient and by the objective.
        """
        other = copy(self)
        # Told apart from one that was only looked for: runs are measured by it.
        vars(other)["optimum"] = vars(other)["given_optimum"] = known_optimum(self, optimum)
        return other

    def kernel_at(self, place: int, agents: int) -> Part:
        """The kernel of a problem of one agent, which answers to the number `place` among so many, as on a ring."""
        part = self.kernel()
        if self.agents != 1 or not part.per_agent:
            raise ValueError(
                f"{self!r} can't be one agent's function: give it that agent's data alone, and let its kernel say which of "
                "its numbers are per_agent."
            )
        moved = {name: _moved(getattr(part.numbers, name), place, agents) for name in part.per_agent}
        return replace(part, numbers=part.numbers._replace(**moved))

    def __repr__(self) -> str:
        """Its size: the data are private."""
        return f"{type(self).__name__}({self.agents} agents, p = {self.dim})"


def known_optimum(problem: Problem, optimum: ArrayLike | None) -> Vector:
    """The minimiser that somebody knows, checked; not a number where there is none."""
    if optimum is None:
        return np.full(problem.dim, np.nan)
    try:
        x = np.array(optimum, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The optimum is not made of numbers ({error}): give a point, or None to do without."
        ) from None
    if x.shape == (problem.dim,) and np.isnan(x).all():
        return x
    if x.shape != (problem.dim,) or not np.isfinite(x).all():
        raise ValueError(
            f"The optimum has the shape {x.shape}, or numbers that are not finite: give one finite number for each of the "
            f"{problem.dim} unknowns, or None to do without."
        )
    if problem.has_gradients:
        check_minimum(problem, lambda point: total_gradient(problem, point), x)
    x.setflags(write=False)
    return x


def has_optimum(problem: Problem) -> bool:
    """Whether there is a minimiser to measure a run by: not where it was said that there is none. Nobody looks for it.

    A fit, whose `known_optimum` nobody looks for, is measured by where it has ended. Functions with corners may have several
    minimisers: whether there is one is found out.
    """
    if hasattr(problem, "known_optimum"):
        return True
    if not getattr(problem, "has_gradients", True):
        return bool(np.isfinite(problem.optimum).all())
    known = vars(problem).get("optimum") if hasattr(problem, "__dict__") else None
    return known is None or bool(np.isfinite(known).all())


def _moved(numbers: NDArray[Any], place: int, agents: int) -> NDArray[Any]:
    """The numbers of one agent, where they are looked for under its place: one, or where its own begin and end."""
    if len(numbers) == 1:
        return np.repeat(numbers, agents, axis=0)
    return np.where(np.arange(agents + 1) > place, numbers[1], 0)


def everywhere(problem: Problem, x: Vector) -> Matrix:
    """The same point for every agent."""
    return np.tile(np.asarray(x, np.float64), (problem.agents, 1))


def total_gradient(problem: Problem, x: Vector) -> Vector:
    """Σ ∇f_i(x)."""
    return problem.gradients(everywhere(problem, x)).sum(axis=0)


def total_value(problem: Problem, x: Vector) -> float:
    """Σ f_i(x)."""
    return float(problem.values(everywhere(problem, x)).sum())


def check_penalty(penalty: float) -> None:
    """A penalty is a positive, finite number."""
    if not (np.isfinite(penalty) and penalty > 0.0):
        raise ValueError(f"The penalty is {penalty}: a proximal step needs a positive, finite penalty.")


# From so many unknowns on no matrix of p × p numbers is made.
MOST_IN_A_MATRIX = 20_000


def check_matrix(dim: int) -> None:
    """A matrix of p × p numbers must fit into memory."""
    if dim > MOST_IN_A_MATRIX:
        raise ValueError(
            f"A Hessian of {dim:,} unknowns is a matrix of {8e-9 * dim**2:,.0f} GB, which is not formed: use what asks for products with it "
            "or for gradients alone, such as roundelay.ConjugateGradients(), roundelay.LBFGS() or a method with a token."
        )


def check_agent(agent: int, agents: int) -> None:
    """An agent is named by its number, from 0."""
    if not 0 <= agent < agents:
        raise ValueError(f"There is no agent {agent}: the agents are numbered from 0 to {agents - 1}.")
