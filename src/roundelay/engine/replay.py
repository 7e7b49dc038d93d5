"""What an agent did, again: from its own function, its own start, and the tokens that it received."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roundelay.algorithms.slots import Agents
from roundelay.algorithms.token_method import TokenADMM
from roundelay.engine.assemble import Prepared, prepare, token_assembly
from roundelay.kernels import Matrix, Visit
from roundelay.networks.constructors import ring
from roundelay.networks.walks import Cycle
from roundelay.problems import Problem
from roundelay.transcripts import Visits

# What is replayed agrees with what was sent to rounding, or it is another run.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Replayed:
    """x and y of an agent before its first visit and after each: row r is after r visits, R + 1 rows."""

    x: Matrix
    y: Matrix


def replay(method: TokenADMM, problem: Problem, seed: int, visits: Visits) -> Replayed:
    """The states of one agent, by the update itself.

    Refused where what it would have sent is not what was sent: then the problem, the seed or the algorithm is not that
    of the run, or the links disturbed the tokens.
    """
    prepared = _prepared(method, problem)
    start = method.start_states(seed, problem)
    x, y, share = (np.array(part) for part in (start.x, start.y, start.share))
    i, turn, agents = visits.agent, 0, Agents(x, y, share, np.zeros(problem.agents, np.int64))
    after_x, after_y = [x[i].copy()], [y[i].copy()]
    visit: Any = prepared.functions().visit
    for received, sent, hop, updates in zip(visits.received, visits.sent, visits.hop, visits.updates, strict=True):
        token = received.copy()
        for earlier in range(int(updates) - 1, -1, -1):  # on a random walk it may have kept the token for a while
            at = Visit(seed, i, int(hop) - earlier, turn, problem.agents)
            visit(*prepared.numbers[:2], at, token, agents, False)
            turn += 1
        if not np.allclose(token, sent, rtol=ROUNDING, atol=ROUNDING * float(np.abs(visits.sent).max())):
            raise ValueError(
                f"Agent {i} would not have sent what it sent at hop {int(hop)}: the problem, the seed or the algorithm is "
                "not that of the run, or the links added noise."
            )
        after_x.append(x[i].copy())
        after_y.append(y[i].copy())
    return Replayed(np.array(after_x), np.array(after_y))


def _prepared(method: TokenADMM, problem: Problem) -> Prepared:
    """The update by the Python engine; the walk does not matter, since the visits are known."""
    return prepare(token_assembly(replace(method, walk=Cycle()), problem, ring(problem.agents)), "python")
