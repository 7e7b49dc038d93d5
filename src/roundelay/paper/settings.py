"""What the paper's experiments have in common: its methods, problems and networks, and a monitor of the agents' states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import roundelay as rl
from roundelay.algorithms import TokenMethod
from roundelay.comparison.field_methods import Kind, entry_named
from roundelay.engine.monitors import Snapshot
from roundelay.problems import Problem

# The network (a) of its figures, with b rows of p numbers at each agent.
AGENTS, DENSITY, SAMPLES, DIM = 100, 0.3, 30, 2
LEVEL = 1e-6
# The paper's six methods: pieces, curves, claims and tables are found by their names.
W_ADMM, IPW_ADMM, COCA = rl.WADMM.name, rl.IPWADMM.name, rl.COCA.name
I_ADMM, PI_ADMM1, PI_ADMM2 = rl.IADMM.name, rl.PIADMM1.name, rl.PIADMM2.name
RIVALS = (W_ADMM, IPW_ADMM, COCA)
OURS = (I_ADMM, PI_ADMM1, PI_ADMM2)
# In the order of the paper's legends; the place is also the look.
SIX = (*RIVALS, *OURS)
ACCURACY_FIGURE = {"least squares": "fig3", "logistic": "fig5"}
# The paper's accuracy, and the common error, in which a far start is no advantage.
METRICS = ("accuracy", "error")


@dataclass(frozen=True)
class Panel:
    """One panel of Fig. 3 or Fig. 5."""

    letter: str
    agents: int
    density: float

    @property
    def title(self) -> str:
        """N and η, as the paper writes them."""
        return f"({self.letter}) N = {self.agents}, η = {self.density:g}"

    def problem(self, kind: Kind, seed: int, dim: int = DIM) -> Any:
        """The paper's synthetic data."""
        return data(kind, self.agents, seed, dim)

    def network(self, seed: int) -> rl.Network:
        """The paper's random network."""
        return rl.random_network(self.agents, self.density, seed=seed)


PANELS = (Panel("a", AGENTS, DENSITY), Panel("b", AGENTS, 0.5), Panel("c", 200, DENSITY))


def data(kind: Kind, agents: int, seed: int, dim: int = DIM) -> Any:
    """The paper's synthetic data: least squares as a half-sum, or logistic regression."""
    make = rl.paper_least_squares if kind == "least squares" else rl.paper_logistic
    return make(agents, SAMPLES, dim, seed=seed)


def method_named(name: str, kind: Kind) -> Any:
    """A method with the parameters that the paper gives it for this problem."""
    return entry_named(name).given(kind, data(kind, 2, 0))


def place_of(name: str) -> int:
    """The place of a method in the palette."""
    return SIX.index(name)


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
