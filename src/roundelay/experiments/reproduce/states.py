"""A monitor of the agents' own states, to hold estimates against; no observer ever sees it."""

from __future__ import annotations

from dataclasses import dataclass

from roundelay.algorithms import TokenMethod
from roundelay.engine.monitors import Snapshot
from roundelay.problems import Problem


@dataclass(frozen=True)
class States:
    """The columns x_i(d) and y_i(d) for the agents i and coordinates d, and z(d), as `x 3 0`, `y 3 0`, `z 0`."""

    agents: tuple[int, ...]
    coordinates: tuple[int, ...] = (0,)

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each."""
        pairs = [(i, d) for i in self.agents for d in self.coordinates]
        return (
            *(f"x {i} {d}" for i, d in pairs),
            *(f"y {i} {d}" for i, d in pairs),
            *(f"z {d}" for d in self.coordinates),
        )

    def refusal(self, method: TokenMethod) -> str:
        """Every token method has states."""
        return ""

    def measure(self, problem: Problem, method: TokenMethod, snapshot: Snapshot) -> tuple[float, ...]:
        """The values."""
        pairs = [(i, d) for i in self.agents for d in self.coordinates]
        return (
            *(float(snapshot.x[i, d]) for i, d in pairs),
            *(float(snapshot.y[i, d]) for i, d in pairs),
            *(float(snapshot.z[d]) for d in self.coordinates),
        )
