"""The fourth choice: where the agents start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from roundelay.kernels import START, Matrix
from roundelay.kernels.random import uniforms_of_agents


class Beginning(NamedTuple):
    """x_i⁰ and y_i⁰ of all agents."""

    x: Matrix
    y: Matrix


class Start(Protocol):
    """A rule for x_i⁰ and y_i⁰; the token starts at 0."""

    def draw(self, seed: int, agents: int, dim: int, rho: float) -> Beginning:
        """The states before the first hop."""


@dataclass(frozen=True)
class ZeroStart:
    """x_i = y_i = 0."""

    def draw(self, seed: int, agents: int, dim: int, rho: float) -> Beginning:
        """The states before the first hop."""
        return Beginning(np.zeros((agents, dim)), np.zeros((agents, dim)))


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
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low <= self.high):
            raise ValueError(
                f"A uniform start from {self.low} to {self.high} is not possible: use finite bounds, the smaller first."
            )

    def draw(self, seed: int, agents: int, dim: int, rho: float) -> Beginning:
        """The states before the first hop."""
        x = self.low + (self.high - self.low) * uniforms_of_agents(seed, agents, dim, START)
        return Beginning(x, (-rho if self.printed_sign else rho) * x)
