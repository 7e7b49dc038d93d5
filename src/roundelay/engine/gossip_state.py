"""All that a run of a gossip method holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.gossip import GossipMethod
from roundelay.algorithms.gossip.mixing import MixingNumbers
from roundelay.engine import gossip_loop, token_loop as loop
from roundelay.engine.monitors import Snapshot
from roundelay.engine.state import DIVERGENCE, new_gauge
from roundelay.kernels import Matrix, Numbers, Vector
from roundelay.links.conditions import NetworkConditions
from roundelay.links.crossing import LinkStates, now
from roundelay.networks import Network
from roundelay.problems import Problem


@dataclass(frozen=True, eq=False)
class GossipState:
    """What the loop is handed, besides the numbers of the parts and the seed; it changes the arrays in place."""

    method: GossipMethod
    states: Any
    mail: gossip_loop.Mail
    links: Any
    clock: NDArray[np.int64]
    gauge: loop.Gauge
    log: gossip_loop.GossipLog
    rule: gossip_loop.GossipRule

    def handed(self) -> tuple[Any, ...]:
        """In the order of the loop's arguments."""
        return self.states, self.mail, self.links, self.clock, self.gauge, self.log, self.rule

    @property
    def step(self) -> int:
        """How many iterations have been made."""
        return int(self.clock[gossip_loop.ITERATION])

    @property
    def rows(self) -> int:
        """How many rows the history has."""
        return int(self.clock[gossip_loop.MARK])

    @property
    def marks(self) -> NDArray[np.int64]:
        """The iterations at which the history has a row."""
        return self.log.marks

    @property
    def seconds(self) -> float:
        """The simulated time."""
        return now(self.links) if isinstance(self.links, LinkStates) else 0.0

    @property
    def multipliers(self) -> Matrix:
        """The states that a method calls y; 0 where it has none."""
        return self.states.y if hasattr(self.states, "y") else np.zeros_like(self.states.x)

    def snapshot(self) -> Snapshot:
        """The state as the monitors see it: in place of a token stands the mean of the x_i."""
        mean = self.states.x.mean(axis=0)
        return Snapshot(self.states.x, self.multipliers, mean, mean)

    def write_last_row(self) -> None:
        """The row of the iteration at which the run ended, where that was not among the marks."""
        row, x, log = self.rows, self.states.x, self.log
        distances = np.linalg.norm(x - self.gauge.optimum, axis=1)
        mean = x.mean(axis=0)
        log.numbers[row], log.bits[row] = self.clock[gossip_loop.NUMBERS], self.clock[gossip_loop.BITS]
        log.seconds[row] = self.seconds
        log.accuracy[row] = (distances * self.gauge.distances[:, 0]).mean()
        log.error[row] = distances.mean()
        log.consensus[row] = math.sqrt(((x - mean) ** 2).sum(axis=1).mean())
        log.means[row] = mean
        self.clock[gossip_loop.MARK] += 1


def new_gossip_state(
    method: GossipMethod,
    problem: Problem,
    network: Network,
    mixing: MixingNumbers,
    seed: int,
    optimum: Vector,
    marks: NDArray[np.int64],
    tolerance: float | None,
    conditions: NetworkConditions | None = None,
) -> GossipState:
    """The state before the first iteration, with room for a history at `marks`."""
    agents, dim, vectors, rows = problem.agents, problem.dim, method.vectors, len(marks) + 1
    states = method.start_states(problem, network, seed)
    first = np.linalg.norm(states.x - optimum, axis=1)
    scale = float(np.linalg.norm(optimum)) or 1.0
    links: Any = Numbers()
    posted = np.zeros((agents, vectors, dim))
    before = np.zeros_like(posted)
    if conditions is not None:
        links = conditions.states(seed, agents, mixing.neighbours, 0, vectors, dim)
        if conditions.replaces:
            posted = np.zeros((2 * agents + len(mixing.neighbours), vectors, dim))
            before = posted[agents : 2 * agents]
    return GossipState(
        method,
        states,
        gossip_loop.Mail(
            posted,
            before,
            np.zeros((agents, vectors, dim)),
            np.zeros((vectors, dim)),
            np.zeros(agents, np.uint8),
            np.zeros(agents, np.uint8),
            np.zeros(agents, np.int64),
            np.zeros(agents, np.int64),
        ),
        links,
        np.zeros(4, np.int64),
        new_gauge(optimum, first),
        gossip_loop.GossipLog(
            marks,
            np.zeros(rows, np.int64),
            np.zeros(rows, np.int64),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros((rows, dim)),
        ),
        gossip_loop.GossipRule(
            -1.0 if tolerance is None else float(tolerance * scale), DIVERGENCE * max(float(first.max()), scale)
        ),
    )
