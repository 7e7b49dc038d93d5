"""The fourth choice: where the agents start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roundelay.algorithms.beginnings import Beginning
from roundelay.kernels import START, Matrix
from roundelay.kernels.random import uniforms_of_agents
from roundelay.problems import Problem


class Start(Protocol):
    """A rule for x_i⁰ and y_i⁰, and where it is not 0 for the token.

    One that works with a single token only has `one_token = True`.
    """

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop. An agent's may depend on its own function, not on those of others."""


@dataclass(frozen=True)
class ZeroStart:
    """x_i = y_i = 0."""

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop."""
        shape = (problem.agents, problem.dim)
        return Beginning(np.zeros(shape), np.zeros(shape))


@dataclass(frozen=True)
class UniformStart:
    """x_i = υ_i with entries from U(low, high), and y_i = ρυ_i, so that every x_i − y_i/ρ is 0 and z⁰ = 0 holds.

    The paper's Algorithm 2 prints y_i = −ρυ_i. Then Σ(x_i − y_i/ρ) is not 0 and the method ends at a
    wrong point, which `printed_sign=True` lets you see.
    """

    low: float = 0.0
    high: float = 100.0
    printed_sign: bool = False

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop."""
        x = uniform_states(seed, problem, self.low, self.high)
        return Beginning(x, (-rho if self.printed_sign else rho) * x)


def check_bounds(low: float, high: float) -> None:
    """Bounds are finite, the smaller first."""
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ValueError(f"A uniform start from {low} to {high} is not possible: use finite bounds, the smaller first.")


def uniform_states(seed: int, problem: Problem, low: float, high: float) -> Matrix:
    """υ of all agents."""
    return low + (high - low) * uniforms_of_agents(seed, problem.agents, problem.dim, START)
