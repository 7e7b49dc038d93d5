"""Remark 2, Theorems 2 and 3: how many equations the observer has, how many unknowns, and what the rank says.

The paper counts scalars. Here the systems are written down for tokens of any dimension, their Jacobian is taken at a
random point that satisfies them, and its rank is computed: an unknown is determined where it is fixed by the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from roundelay.experiments.reproduce.effort import Effort
from roundelay.experiments.reproduce.measured import Measured
from roundelay.experiments.reproduce.pieces import Piece
from roundelay.kernels import Integers, Matrix

NAME = "equation counts"
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
    return (Piece(NAME, measure_counts),)


def measure_counts(effort: Effort) -> Measured:
    """All systems, with the paper's formulas beside them."""
    n, k, laps = AGENTS, LAST, LAST // AGENTS
    everyone = np.arange(LAST + 1) % AGENTS
    alone = np.zeros(laps + 1, np.int64)
    systems = (
        ("Remark 2, as printed", 2 * k + 3, 2 * k + 2 * n + 2, count_system(everyone, AGENTS, 1, False, False)),
        ("Remark 2", 2 * k + n + 2, 2 * k + 2 * n + 2, count_system(everyone, AGENTS, 1, False, False)),
        ("Theorem 2", 2 * k + n + 2, 3 * k + 2 * n + 3, count_system(everyone, AGENTS, 1, True, False)),
        ("Theorem 3", 2 * laps + 3, 3 * laps + 5, count_system(alone, 1, 1, True, False)),
    )
    rows = [
        (name, equations, unknowns, count.equations, count.unknowns, count.rank, count.determined, count.sought)
        for name, equations, unknowns, count in systems
    ]
    # What the paper's count leaves out: a scalar γ for p coordinates, and that all gradients are those of one f_i.
    for dim, visits in ((2, 20), (2, 6), (2, 5), (5, 20), (1, 20)):
        count = count_system(np.zeros(visits, np.int64), 1, dim, True, True)
        name = f"quadratic f_i, p = {dim}, {visits} visits"
        rows.append((name, 0, 0, count.equations, count.unknowns, count.rank, count.determined, count.sought))
    columns = [
        "system", "paper's equations", "paper's unknowns", "equations", "unknowns", "rank", "determined", "sought",
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    numbers = {
        f"{row[0]}: {column}": float(row[place]) for row in rows for place, column in enumerate(columns) if place
    }
    return Measured(numbers, {"counts": table})


def count_system(turns: Integers, agents: int, dim: int, steps_unknown: bool, quadratic: bool) -> Count:
    """The system of an observer who saw these turns.

    Its unknowns are x and y of all agents at the start and after every turn, γ where it is unknown, and for quadratic
    f_i a symmetric H and a g for each agent. What is sought are x and y after the agents' first turns, with H and g;
    the start itself is left out, since nobody ever uses it again.
    """
    generator = np.random.default_rng([agents, dim, len(turns)])
    rows: list[Matrix] = []
    visits, symmetric = len(turns), dim * (dim + 1) // 2
    states = 2 * dim * (agents + visits)
    width = states + (visits if steps_unknown else 0) + (agents * (symmetric + dim) if quadratic else 0)

    def x_of(place: int) -> slice:
        return slice(2 * dim * place, 2 * dim * place + dim)

    def y_of(place: int) -> slice:
        return slice(2 * dim * place + dim, 2 * dim * (place + 1))

    identity = np.eye(dim)
    for i in range(agents):
        block = np.zeros((dim, width))
        block[:, x_of(i)], block[:, y_of(i)] = identity, -identity / RHO
        rows.append(block)
    latest = list(range(agents))
    factors = generator.standard_normal((agents, 2 * dim, dim))
    hessians, slopes = factors.transpose(0, 2, 1) @ factors, generator.standard_normal((agents, dim))
    points = generator.standard_normal((agents, dim))
    multipliers = RHO * points
    for turn, i in enumerate(turns):
        before, after = latest[i], agents + turn
        gamma = generator.uniform(0.9, 1.1) if steps_unknown else 1.0
        # Any x⁺ may come about, since z is free; then y⁺ is the gradient there, and z − x⁺ = (y⁺ − y)/(ργ).
        point = generator.standard_normal(dim)
        multiplier = hessians[i] @ point + slopes[i]
        residual = (multiplier - multipliers[i]) / (RHO * gamma)
        points[i], multipliers[i] = point, multiplier
        # (x⁺ − y⁺/ρ) − (x − y/ρ) = NΔ, and y⁺ = y + ργ(z − x⁺), of which z and Δ are known.
        share, dual = np.zeros((dim, width)), np.zeros((dim, width))
        share[:, x_of(after)], share[:, y_of(after)] = identity, -identity / RHO
        share[:, x_of(before)], share[:, y_of(before)] = -identity, identity / RHO
        dual[:, y_of(after)], dual[:, y_of(before)] = identity, -identity
        dual[:, x_of(after)] = RHO * gamma * identity
        if steps_unknown:
            dual[:, states + turn] = -RHO * residual
        rows += [share, dual]
        if quadratic:
            # y⁺ = Hx⁺ + g: the derivative by x⁺ is H itself, by H it is x⁺.
            model = np.zeros((dim, width))
            model[:, y_of(after)], model[:, x_of(after)] = identity, -hessians[i]
            own = states + visits + int(i) * (symmetric + dim)
            for place, (row, column) in enumerate(zip(*np.triu_indices(dim), strict=True)):
                model[row, own + place] -= point[column]
                if row != column:
                    model[column, own + place] -= point[row]
            model[:, own + symmetric : own + symmetric + dim] = -identity
            rows.append(model)
        latest[i] = after
    jacobian = np.concatenate(rows)
    wanted = np.r_[np.arange(2 * dim * agents, states), np.arange(states + (visits if steps_unknown else 0), width)]
    return Count(len(jacobian), width, *_rank_and_determined(jacobian, wanted), len(wanted))


def _rank_and_determined(jacobian: Matrix, wanted: Integers) -> tuple[int, int]:
    """The rank, and how many of the wanted unknowns no null vector touches."""
    _, sizes, right = np.linalg.svd(jacobian / np.linalg.norm(jacobian, axis=1, keepdims=True))
    rank = int((sizes > 1e-11 * sizes[0]).sum())
    null = right[rank:]
    free = np.abs(null).max(axis=0) if len(null) else np.zeros(jacobian.shape[1])
    return rank, int((free[wanted] < 1e-8).sum())
