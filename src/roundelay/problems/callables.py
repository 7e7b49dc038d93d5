"""Problems that only the Python engine runs, and one from plain Python functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import DIM, Integers, Matrix, Part, Vector, each
from roundelay.problems.problem import ProblemBase, check_agent, check_penalty, known_optimum
from roundelay.problems.solving import prox_by_root

Gradient = Callable[[Vector], Vector]
Value = Callable[[Vector], float]
Hessian = Callable[[Vector], Matrix]
Prox = Callable[[Vector, float], Vector]


# What the optimum is where none is given, not even None.
LOOK_FOR_IT = object()


class PythonNumbers(NamedTuple):
    """The problem itself, and the place of every agent's functions in it: only the Python engine runs these kernels."""

    problem: Any
    place: Integers


def minimise(problem: PythonNumbers, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin f_i(x) + penalty/2 ‖x‖² − w'x = prox_i(w/penalty, penalty)."""
    for d in each(DIM):
        out[d] = w[d]  # where a run diverges there is nothing to solve: let the loop see it
    if np.isfinite(w).all():
        answer = problem.problem.prox_from(int(problem.place[i]), w / penalty, penalty, start)
        for d in each(DIM):
            out[d] = answer[d]


def gradient(problem: PythonNumbers, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(x)."""
    answer = problem.problem.slope(int(problem.place[i]), x)
    for d in each(DIM):
        out[d] = answer[d]


class PythonProblem(ProblemBase):
    """Functions that only Python can call: all else follows from `slope` and `value` of one agent."""

    why_not_compiled: ClassVar[str]

    @abstractmethod
    def slope(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x), unchecked: a run calls what is not finite divergence."""

    @abstractmethod
    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""

    def prox_from(self, agent: int, v: Vector, penalty: float, start: Vector) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖², looked for from a start."""
        return prox_by_root(self, agent, v, penalty, start)

    def gradient(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x)."""
        check_agent(agent, self.agents)
        return self._checked(self.slope(agent, x), agent, "gradient", (self.dim,))

    def prox(self, agent: int, v: Vector, penalty: float, start: Vector | None = None) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖²."""
        check_agent(agent, self.agents)
        check_penalty(penalty)
        return self.prox_from(agent, v, penalty, v if start is None else start)

    def values(self, points: Matrix) -> Vector:
        """f_i(x_i) of all agents, each at its own point."""
        return np.array([self.value(agent, points[agent]) for agent in range(self.agents)])

    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(x_i) of all agents, each at its own point."""
        return np.array([self.gradient(agent, points[agent]) for agent in range(self.agents)])

    def kernel(self) -> Part:
        """What the Python engine runs."""
        return Part(
            (("minimise", minimise), ("gradient", gradient)),
            PythonNumbers(self, np.arange(self.agents)),
            why_not_compiled=self.why_not_compiled,
            per_agent=("place",),
        )

    def _checked(self, answer: Any, agent: int, what: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        try:
            array = np.asarray(answer, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The {what} of agent {agent} is not made of numbers ({error}): check the function."
            ) from None
        if array.shape != shape:
            raise ValueError(
                f"The {what} of agent {agent} has the shape {array.shape} instead of {shape}: check the function."
            )
        if not np.isfinite(array).all():
            raise ValueError(
                f"The {what} of agent {agent} is not finite: check the function, or start nearer to a solution."
            )
        return array


@dataclass(frozen=True, eq=False, repr=False)
class CallableProblem(PythonProblem):
    """f_i from plain Python functions, run by the Python engine.

    `gradient_of` holds one function x → ∇f_i(x) for each agent and `dim` is p. Optional, one for each
    agent too: `value_of` x → f_i(x), `hessian_of` x → ∇²f_i(x), and `prox_of` (v, c) → argmin_x f_i(x) +
    c/2 ‖x − v‖²; a missing prox is solved by scipy from the gradient. `L` and `mu`, where you know
    them, let `conditions` check the lemmas.

    `optimum` is the minimiser of the sum where you know it, or None where a run is to do without one. Left out, it is looked for once
    it is needed; a point that is stationary but no minimum is refused, and of several minima it is one of them, perhaps not
    the least.
    """

    why_not_compiled: ClassVar[str] = "the problem is made of plain Python functions, which can't be compiled"

    gradient_of: Sequence[Gradient]
    dim: int
    value_of: Sequence[Value] | None = None
    hessian_of: Sequence[Hessian] | None = None
    prox_of: Sequence[Prox] | None = None
    L: float = float("nan")
    mu: float = float("nan")
    # Without a default in the class, what the base has under this name is found where the instance has nothing.
    optimum: Any = field(default_factory=lambda: LOOK_FOR_IT)

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise ValueError(f"The dimension is {self.dim}: a problem has at least one unknown.")
        optional = (("value_of", self.value_of), ("hessian_of", self.hessian_of), ("prox_of", self.prox_of))
        given: list[Any] = [self.gradient_of, *(functions for _, functions in optional if functions is not None)]
        if not all(isinstance(functions, Sequence) for functions in given):
            raise ValueError(
                "A function stands where a list was expected: give one function for each agent, such as [f, g]."
            )
        if not self.gradient_of:
            raise ValueError("There is no agent: give the gradient function of at least one agent.")
        for name, functions in optional:
            if functions is not None and len(functions) != len(self.gradient_of):
                raise ValueError(
                    f"The list {name} has {len(functions)} functions but there are {len(self.gradient_of)} agents: "
                    "give one for each agent, or None."
                )
        for agent in range(self.agents):
            self.gradient(agent, np.zeros(self.dim))
        optimum = vars(self).pop("optimum")
        if optimum is not LOOK_FOR_IT:
            vars(self)["optimum"] = known_optimum(self, optimum)

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return len(self.gradient_of)

    @property
    def has_values(self) -> bool:
        """Where `value_of` is given."""
        return self.value_of is not None

    @property
    def has_hessians(self) -> bool:
        """Where `hessian_of` is given."""
        return self.hessian_of is not None

    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""
        check_agent(agent, self.agents)
        if self.value_of is None:
            raise ValueError(
                f"The value of agent {agent}'s function is not known: give value_of to the CallableProblem."
            )
        return float(self._checked(self.value_of[agent](x), agent, "value", ()))

    def slope(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x) as the function gives it."""
        return self.gradient_of[agent](x)

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """∇²f_i(x)."""
        check_agent(agent, self.agents)
        if self.hessian_of is None:
            raise ValueError(
                f"The Hessian of agent {agent}'s function is not known: give hessian_of to the CallableProblem."
            )
        return self._checked(self.hessian_of[agent](x), agent, "Hessian", (self.dim, self.dim))

    def prox_from(self, agent: int, v: Vector, penalty: float, start: Vector) -> Vector:
        """Yours where given, otherwise scipy's root of the gradient."""
        if self.prox_of is not None:
            return self._checked(self.prox_of[agent](v, penalty), agent, "prox", (self.dim,))
        return super().prox_from(agent, v, penalty, start)
