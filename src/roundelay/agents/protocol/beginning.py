"""Where one agent stands before its first visit, from its own function and its own secrets alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from roundelay.algorithms.parts.facts import is_own
from roundelay.algorithms.parts.starts import OneAgent
from roundelay.algorithms.token_method import TokenMethod
from roundelay.kernels import Matrix, Vector
from roundelay.masks import FixedPoint
from roundelay.problems import OwnProblem

# Bits after the point of a sum of shares, where the start does not say.
BITS = 40


@dataclass(frozen=True)
class Shape:
    """All that an agent knows of the problem of all: how many agents there are, and how many unknowns."""

    agents: int
    dim: int

    def gradients(self, x: Matrix) -> Matrix:
        """Nobody knows them."""
        raise ValueError("The start asks for the functions of all agents, which nobody knows in a ring: give it own().")


def begin(
    method: TokenMethod, problem: OwnProblem, agent: OneAgent, warm: Vector | None
) -> tuple[Vector, Vector, Vector]:
    """x, y and c of this agent, as the method's start has it.

    `warm` is the solution of an earlier run: then x = warm, y = ∇f(warm) and c = x − y/ρ, which is the sealed start
    about another point than 0.
    """
    start: Any = getattr(method, "start", None)
    rho: float = getattr(method, "rho", 1.0)
    if warm is not None:
        x = np.array(warm)
        y = problem.gradients(x[None])[0]
        return x, y, x - y / rho
    if is_own(start, "own", "draw"):
        x, y, share, *_ = start.own(agent, problem, rho)
        return x, y, share
    shape: Any = Shape(agent.agents, problem.dim)
    drawn = method.start_states(agent.seed, shape)
    return drawn.x[agent.me].copy(), drawn.y[agent.me].copy(), drawn.share[agent.me].copy()


def grid_of(method: TokenMethod) -> FixedPoint:
    """The grid on which shares are summed."""
    return _sum_grid(method) or FixedPoint(BITS)


def opens_with_a_sum(method: TokenMethod, epoch: int, warm: bool) -> bool:
    """Whether the token starts at the mean of the shares, summed under masks.

    So every epoch after the first begins: whoever is there then brings its share, and nothing that was under way, or
    lost with a dead member, matters.
    """
    return epoch > 0 or warm or _sum_grid(method) is not None


def _sum_grid(method: TokenMethod) -> FixedPoint | None:
    return getattr(getattr(method, "start", None), "sum_grid", None)
