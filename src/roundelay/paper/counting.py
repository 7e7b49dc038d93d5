"""Remark 2, Theorems 2 and 3: how many equations the observer has, how many unknowns, and what the rank says.

The paper counts scalars and takes every gradient for an unknown of its own. Here its systems are written down, their
Jacobian is taken at a random point, and its rank is computed: an unknown is determined where no null vector touches it.
What is left out of that count, several coordinates and gradients of one quadratic f_i, `rl.identifiable` has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.kernels import Integers, Matrix, Vector
from roundelay.paper.pieces import Effort, Measured, Piece

COUNTS = "equation counts"
# Enough to see the formulas; they do not depend on the size.
AGENTS, LAST = 5, 23
RHO = 10.0


@dataclass(frozen=True)
class Count:
    """A system: its equations, its unknowns, its rank, and how many of the unknowns x and y are determined by it."""

    equations: int
    unknowns: int
    rank: int
    determined: int
    sought: int


def counting_pieces() -> tuple[Piece, ...]:
    """One piece."""
    return (Piece(COUNTS, measure_counts),)


def measure_counts(effort: Effort) -> Measured:
    """All systems, with the paper's formulas beside them."""
    n, k, laps = AGENTS, LAST, LAST // AGENTS
    everyone = np.arange(LAST + 1) % AGENTS
    alone = np.zeros(laps + 1, np.int64)
    systems = (
        ("Remark 2, as printed", 2 * k + 3, 2 * k + 2 * n + 2, count_system(everyone, AGENTS, False)),
        ("Remark 2", 2 * k + n + 2, 2 * k + 2 * n + 2, count_system(everyone, AGENTS, False)),
        ("Theorem 2", 2 * k + n + 2, 3 * k + 2 * n + 3, count_system(everyone, AGENTS, True)),
        ("Theorem 3", 2 * laps + 3, 3 * laps + 5, count_system(alone, 1, True)),
        # What the paper's count leaves out: a scalar γ for p coordinates, and that all gradients are those of one f_i.
        *(
            (f"quadratic f_i, p = {dim}, {visits} visits", 0, 0, count_quadratic(visits, dim))
            for dim, visits in ((2, 20), (2, 6), (2, 5), (5, 20), (1, 20))
        ),
    )
    rows = [
        (name, equations, unknowns, count.equations, count.unknowns, count.rank, count.determined, count.sought)
        for name, equations, unknowns, count in systems
    ]
    columns = [
        "system", "paper's equations", "paper's unknowns", "equations", "unknowns", "rank", "determined", "sought",
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    numbers = {
        f"{row[0]}: {column}": float(row[place]) for row in rows for place, column in enumerate(columns) if place
    }
    return Measured(numbers, {"counts": table})


def count_quadratic(visits: int, dim: int) -> Count:
    """What an observer of so many visits of one agent of PI-ADMM1 has, given that f_i is quadratic.

    Sought are x and y after every visit, H and g; the start itself is left out, since nobody ever uses it again.
    """
    answer = rl.identifiable(rl.PIADMM1(rho=RHO), visits=visits, dim=dim)
    sought = [one for one in answer.quantities if one.quantity != "start"]
    return Count(
        answer.equations,
        answer.unknowns,
        answer.rank,
        sum(one.numbers for one in sought),
        sum(one.of for one in sought),
    )


def count_system(turns: Integers, agents: int, steps_unknown: bool) -> Count:
    """The system of an observer who saw these turns, in one dimension.

    Its unknowns are x and y of all agents at the start and after every turn, and γ where it is unknown. What is sought
    are x and y after the agents' first turns.
    """
    generator = np.random.default_rng([agents, len(turns)])
    states = 2 * (agents + len(turns))
    width = states + (len(turns) if steps_unknown else 0)

    def row(*entries: tuple[int, float]) -> Vector:
        made = np.zeros(width)
        for place, value in entries:
            made[place] = value
        return made

    # The unknowns of a place are x, at twice its number, and y behind it: x − y/ρ is 0 at the start.
    rows = [row((2 * i, 1.0), (2 * i + 1, -1.0 / RHO)) for i in range(agents)]
    latest = list(range(agents))
    for turn, i in enumerate(turns):
        before, after = 2 * latest[i], 2 * (agents + turn)
        gamma = generator.uniform(0.9, 1.1) if steps_unknown else 1.0
        # (x⁺ − y⁺/ρ) − (x − y/ρ) = NΔ, and y⁺ = y + ργ(z − x⁺), of which z and Δ are known.
        rows.append(row((after, 1.0), (after + 1, -1.0 / RHO), (before, -1.0), (before + 1, 1.0 / RHO)))
        dual = row((after + 1, 1.0), (before + 1, -1.0), (after, RHO * gamma))
        if steps_unknown:
            dual[states + turn] = -RHO * generator.standard_normal()  # z − x⁺ may be anything, since z is free
        rows.append(dual)
        latest[i] = agents + turn
    jacobian, wanted = np.array(rows), np.arange(2 * agents, states)
    return Count(len(jacobian), width, *_rank_and_determined(jacobian, wanted), len(wanted))


def _rank_and_determined(jacobian: Matrix, wanted: Integers) -> tuple[int, int]:
    """The rank, and how many of the wanted unknowns no null vector touches."""
    _, sizes, right = np.linalg.svd(jacobian / np.linalg.norm(jacobian, axis=1, keepdims=True))
    rank = int((sizes > 1e-11 * sizes[0]).sum())
    null = right[rank:]
    free = np.abs(null).max(axis=0) if len(null) else np.zeros(jacobian.shape[1])
    return rank, int((free[wanted] < 1e-8).sum())
