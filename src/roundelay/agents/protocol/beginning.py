"""Where one agent stands before its first visit, from its own function and its own secrets alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from roundelay.algorithms.parts.starts import SealedStart, ZeroStart, ZeroSumStart, uniform_states
from roundelay.algorithms.token_method import TokenADMM, TokenMethod
from roundelay.kernels import Vector
from roundelay.masks import FixedPoint, PairSecrets, my_mask
from roundelay.problems import OwnProblem

# Bits after the point of a sum of shares, where the start does not say.
BITS = 40


class Standing(NamedTuple):
    """x_i, y_i and c_i of one agent."""

    x: Vector
    y: Vector
    share: Vector


@dataclass(frozen=True)
class Shape:
    """All that a start which knows nothing of the functions asks of a problem."""

    agents: int
    dim: int


def begin(
    method: TokenMethod, problem: OwnProblem, me: int, agents: int, seed: int, secrets: PairSecrets, warm: Vector | None
) -> Standing:
    """The start that the method names, for this agent.

    `warm` is the solution of an earlier run: then x = warm, y = ∇f(warm) and c = x − y/ρ, which is the sealed start
    about another point than 0.
    """
    start: Any = getattr(method, "start", None)
    shape: Any = Shape(agents, problem.dim)
    if isinstance(method, TokenADMM) and (warm is not None or isinstance(start, SealedStart)):
        x = np.zeros(problem.dim) if warm is None else np.array(warm)
        y = problem.gradients(x[None])[0]
        return Standing(x, y, y / -method.rho if warm is None else x - y / method.rho)
    if isinstance(method, TokenADMM) and isinstance(start, ZeroSumStart):
        x = uniform_states(seed, shape, start.low, start.high)[me]
        mask = my_mask(secrets, me, agents, problem.dim, start.scale)
        return Standing(x, method.rho * (x - mask), mask)
    if isinstance(start, ZeroStart):  # not all members' zeros, which at a million unknowns take memory
        return Standing(np.zeros(problem.dim), np.zeros(problem.dim), np.zeros(problem.dim))
    initial = method.start_states(seed, shape)
    return Standing(initial.x[me].copy(), initial.y[me].copy(), initial.share[me].copy())


def grid_of(method: TokenMethod) -> FixedPoint:
    """The grid on which shares are summed."""
    return FixedPoint(getattr(getattr(method, "start", None), "bits", BITS))


def opens_with_a_sum(method: TokenMethod, epoch: int, warm: bool) -> bool:
    """Whether the token starts at the mean of the shares, summed under masks.

    So every epoch after the first begins: whoever is there then brings its share, and nothing that was under way, or
    lost with a dead member, matters.
    """
    return epoch > 0 or warm or isinstance(getattr(method, "start", None), SealedStart)
