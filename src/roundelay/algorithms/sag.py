"""The stochastic average gradient on a walk: the token carries x and the mean of the gradients that it last saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from roundelay.algorithms.conditions import Conditions
from roundelay.algorithms.gradient import estimate_is_token, never_at_rest
from roundelay.algorithms.slots import gradient
from roundelay.algorithms.stepping import check_step, known_step, with_step
from roundelay.algorithms.token_method import Initial, check_choice
from roundelay.algorithms.tunable import Tunable
from roundelay.kernels import DIM, Matrix, Part, Vector, each, vector
from roundelay.networks.walks import MetropolisWalk, Walk
from roundelay.problems import NoRegulariser, Problem, Regulariser


class SAGNumbers(NamedTuple):
    """γ."""

    gamma: float


def visit_sag(
    problem: Any,
    method: SAGNumbers,
    seed: int,
    i: int,
    hop: int,
    turn: int,
    agents: int,
    token: Vector,
    x: Matrix,
    y: Matrix,
    share: Matrix,
    watch: bool,
) -> tuple[float, float]:
    """ḡ += (∇f_i(x) − h_i)/N, h_i = ∇f_i(x), x −= γḡ. ḡ travels with the token, in the row below the agents'."""
    slope = vector(DIM)
    gradient(problem, i, token, slope)
    inverse_agents = 1.0 / agents
    for d in each(DIM):
        share[agents, d] += (slope[d] - y[i, d]) * inverse_agents
        y[i, d] = slope[d]
        token[d] -= method.gamma * share[agents, d]
        x[i, d] = token[d]
    return 0.0, 0.0


@dataclass(frozen=True)
class AveragedGradient:
    """What the engines run for MC-SAG."""

    gamma: float
    walk: Walk
    tokens: int = 1
    vectors: int = 2
    regulariser: Regulariser = NoRegulariser()
    needs: tuple[str, ...] = ("gradient",)

    def update(self) -> Part:
        """The kernel function `visit` with all that it calls, and its numbers."""
        functions = (("visit", visit_sag), ("estimate", estimate_is_token), ("unrest", never_at_rest))
        return Part(functions, SAGNumbers(float(self.gamma)))

    def start_states(self, seed: int, problem: Problem) -> Initial:
        """Everything at 0; below the agents' rows one for ḡ."""
        agents, dim = problem.agents, problem.dim
        return Initial(np.zeros((agents, dim)), np.zeros((agents, dim)), np.zeros((agents + 1, dim)))

    def mean_token(self, x: Matrix, y: Matrix) -> None:
        """The states do not tell where the token is."""
        return

    def token_scale(self, agents: int) -> float:
        """There is no regulariser."""
        return 1.0

    def no_contentment(self, content: float, dim: int, agents: int) -> str:
        """No agent knows its part of the token."""
        return "its steps do not tell an agent how far the sum is from its minimum"


@dataclass(frozen=True)
class MCSAG:
    """Markov-chain SAG: the stochastic average gradient on a random walk (Even 2023).

        ḡ += (∇f_i(x) − h_i)/N    h_i = ∇f_i(x)    x −= γḡ

    The token carries x and ḡ, so every hop costs 2 units. `gamma` is γ; left out, it is 1/(30·L) of the problem, which
    is safe for random walks and slow. `walk` is any walk; on `Cycle()` it is the incremental aggregated gradient.
    """

    name: ClassVar[str] = "MC-SAG"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("gamma"),)
    gamma: float | None = None
    walk: Walk = MetropolisWalk()

    def __post_init__(self) -> None:
        check_step("gamma", self.gamma)
        check_choice("walk", self.walk)

    def resolved(self, problem: Problem) -> MCSAG:
        """With the step size set."""
        return with_step(self, "gamma", 1.0 / 30.0, problem)

    def parts(self) -> AveragedGradient:
        """A step along the mean of the last gradients."""
        return AveragedGradient(known_step(self, "gamma"), self.walk)

    def conditions(self, problem: Problem) -> Conditions:
        """Its bounds depend on the walk's mixing; none is checked here."""
        return Conditions()
