"""What every problem offers: N private functions f_i, and the minimiser of their sum."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from roundelay.kernels import Matrix, Part, Vector


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

    def kernel(self) -> Part:
        """The functions `minimise` and `gradient` that the engines run, with their numbers."""


class OwnProblem(Problem, Protocol):
    """The problem of one agent of a ring: N is 1 in it, since nobody else's function is known."""

    def kernel_at(self, place: int, agents: int) -> Part:
        """Its kernel, where the agent answers to the number `place` among so many."""


def total_gradient(problem: Problem, x: Vector) -> Vector:
    """Σ ∇f_i(x)."""
    return problem.gradients(np.broadcast_to(x, (problem.agents, problem.dim))).sum(axis=0)


def total_value(problem: Problem, x: Vector) -> float:
    """Σ f_i(x)."""
    return float(problem.values(np.broadcast_to(x, (problem.agents, problem.dim))).sum())


def check_penalty(penalty: float) -> None:
    """A penalty is a positive, finite number."""
    if not (np.isfinite(penalty) and penalty > 0.0):
        raise ValueError(f"The penalty is {penalty}: a proximal step needs a positive, finite penalty.")


def check_agent(agent: int, agents: int) -> None:
    """An agent is named by its number, from 0."""
    if not 0 <= agent < agents:
        raise ValueError(f"There is no agent {agent}: the agents are numbered from 0 to {agents - 1}.")
