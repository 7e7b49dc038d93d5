"""A problem from plain Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import DIM, Matrix, Part, Vector, each
from roundelay.problems.problem import check_agent, check_penalty

Gradient = Callable[[Vector], Vector]
Value = Callable[[Vector], float]
Hessian = Callable[[Vector], Matrix]
Prox = Callable[[Vector, float], Vector]

# A residual of the proximal equation above this, relative to its terms, is reported as a failure.
PROX_TOLERANCE = 1e-8


class CallableNumbers(NamedTuple):
    """The problem itself, and the number that its first agent answers to: only the Python engine runs these kernels."""

    problem: Any
    first: int


def minimise(problem: CallableNumbers, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """argmin f_i(x) + penalty/2 ‖x‖² − w'x = prox_i(w/penalty, penalty)."""
    for d in each(DIM):
        out[d] = w[d]  # where a run diverges there is nothing to solve: let the loop see it
    if np.isfinite(w).all():
        answer = problem.problem.prox(i - problem.first, w / penalty, penalty, start)
        for d in each(DIM):
            out[d] = answer[d]


def gradient(problem: CallableNumbers, i: int, x: Vector, out: Vector) -> None:
    """∇f_i(x)."""
    answer = problem.problem.gradient_of[i - problem.first](
        x
    )  # unchecked: the loop calls what is not finite divergence
    for d in each(DIM):
        out[d] = answer[d]


@dataclass(frozen=True, eq=False)
class CallableProblem:
    """f_i from plain Python functions, run by the Python engine.

    `gradient_of` holds one function x → ∇f_i(x) for each agent and `dim` is p. Optional, one for each
    agent too: `value_of` x → f_i(x), `hessian_of` x → ∇²f_i(x), and `prox_of` (v, c) → argmin_x f_i(x) +
    c/2 ‖x − v‖²; a missing prox is solved by scipy from the gradient. `L` and `mu`, where you know
    them, let `conditions` check the lemmas.
    """

    gradient_of: Sequence[Gradient]
    dim: int
    value_of: Sequence[Value] | None = None
    hessian_of: Sequence[Hessian] | None = None
    prox_of: Sequence[Prox] | None = None
    L: float = float("nan")
    mu: float = float("nan")

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise ValueError(f"The dimension is {self.dim}: a problem has at least one unknown.")
        if not self.gradient_of:
            raise ValueError("There is no agent: give the gradient function of at least one agent.")
        optional = (("value_of", self.value_of), ("hessian_of", self.hessian_of), ("prox_of", self.prox_of))
        for name, functions in optional:
            if functions is not None and len(functions) != len(self.gradient_of):
                raise ValueError(
                    f"The list {name} has {len(functions)} functions but there are {len(self.gradient_of)} agents: "
                    "give one for each agent, or None."
                )
        for agent in range(self.agents):
            self.gradient(agent, np.zeros(self.dim))

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return len(self.gradient_of)

    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""
        check_agent(agent, self.agents)
        if self.value_of is None:
            raise ValueError(
                f"The value of agent {agent}'s function is not known: give value_of to the CallableProblem."
            )
        return float(self._checked(self.value_of[agent](x), agent, "value", ()))

    def gradient(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x)."""
        check_agent(agent, self.agents)
        return self._checked(self.gradient_of[agent](x), agent, "gradient", (self.dim,))

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """∇²f_i(x)."""
        check_agent(agent, self.agents)
        if self.hessian_of is None:
            raise ValueError(
                f"The Hessian of agent {agent}'s function is not known: give hessian_of to the CallableProblem."
            )
        return self._checked(self.hessian_of[agent](x), agent, "Hessian", (self.dim, self.dim))

    def prox(self, agent: int, v: Vector, penalty: float, start: Vector | None = None) -> Vector:
        """argmin_x f_i(x) + penalty/2 ‖x − v‖²: yours where given, otherwise scipy's root of the gradient."""
        check_agent(agent, self.agents)
        check_penalty(penalty)
        if self.prox_of is not None:
            return self._checked(self.prox_of[agent](v, penalty), agent, "prox", (self.dim,))

        from scipy.optimize import root  # late: it takes half a second, which other problems need not wait for

        def slope(x: Vector) -> Vector:
            return self.gradient(agent, x) + penalty * (x - v)

        bend = None
        if self.hessian_of is not None:

            def bend(x: Vector) -> Matrix:
                return self.hessian(agent, x) + penalty * np.eye(self.dim)

        first = np.array(v if start is None else start, np.float64)
        # Powell's hybrid method keeps a dense Jacobian; beyond some hundred unknowns Krylov's needs none.
        if self.dim <= 300:
            x = root(slope, first, jac=bend, method="hybr", options={"xtol": 1e-15}).x
        else:
            x = root(slope, first, method="krylov", options={"fatol": 1e-12}).x
        scale = penalty * (np.linalg.norm(x) + np.linalg.norm(v)) + np.linalg.norm(self.gradient(agent, x))
        if not np.linalg.norm(slope(x)) <= PROX_TOLERANCE * scale:
            raise ValueError(
                f"SciPy could not solve the proximal step of agent {agent} from its gradient (residual "
                f"{np.linalg.norm(slope(x)):.1e}): check that the function is convex and the gradient right, "
                "or give prox_of."
            )
        return np.asarray(x, np.float64)

    def values(self, points: Matrix) -> Vector:
        """f_i(x_i) of all agents, each at its own point."""
        return np.array([self.value(agent, points[agent]) for agent in range(self.agents)])

    def gradients(self, points: Matrix) -> Matrix:
        """∇f_i(x_i) of all agents, each at its own point."""
        return np.array([self.gradient(agent, points[agent]) for agent in range(self.agents)])

    def objective_gaps(self, points: Matrix) -> Vector:
        """Σ f_i(x) − Σ f_i(x*) at each of several points; not a number where the values are not known."""
        if self.value_of is None:
            return np.full(len(points), np.nan)
        least = sum(self.value(agent, self.optimum) for agent in range(self.agents))
        totals = np.array([sum(self.value(agent, x) for agent in range(self.agents)) for x in points])
        return totals - least

    @cached_property
    def optimum(self) -> Vector:
        """x*, where Σ ∇f_i(x) = 0, by scipy."""
        from scipy.optimize import minimize, root

        def slope(x: Vector) -> Vector:
            return np.sum([self.gradient(agent, x) for agent in range(self.agents)], axis=0)

        x = np.zeros(self.dim)
        if self.value_of is not None:
            total = lambda x: sum(self.value(agent, x) for agent in range(self.agents))  # noqa: E731
            x = minimize(total, x, jac=slope, method="BFGS", options={"gtol": 1e-10}).x
        answer = root(slope, x, method="hybr" if self.dim <= 300 else "krylov", tol=1e-14).x
        x = answer if np.linalg.norm(slope(answer)) <= np.linalg.norm(slope(x)) else x
        scale = np.linalg.norm([self.gradient(agent, x) for agent in range(self.agents)])
        if not np.linalg.norm(slope(x)) <= 1e-7 * (1.0 + scale):
            raise ValueError(
                f"SciPy did not find the minimiser of the sum (‖Σ∇f_i‖ is still {np.linalg.norm(slope(x)):.1e}): "
                "check the gradients, or that a minimiser exists."
            )
        return np.asarray(x, np.float64)

    def kernel(self) -> Part:
        """What the Python engine runs."""
        return Part(
            (("minimise", minimise), ("gradient", gradient)),
            CallableNumbers(self, 0),
            why_not_compiled="the problem is made of plain Python functions, which can't be compiled",
        )

    def kernel_at(self, place: int, agents: int) -> Part:
        """What a ring's agent runs that has this problem of one agent: it answers to the number `place`."""
        return replace(self.kernel(), numbers=CallableNumbers(self, place))

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
