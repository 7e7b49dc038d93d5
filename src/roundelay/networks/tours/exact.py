"""The cheapest round through all places, and that it is: over all subsets of a few places, or by constraint programming.

The one is Held and Karp's dynamic programming (1962), the other OR-Tools CP-SAT, which is optional.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

MOST_PLACES = 14
"""Time and memory double with every further place; so many take some milliseconds."""

MOST_ARCS = 200_000
"""Beyond this, building the model takes longer than most searches are given."""

HOW_TO_INSTALL = "OR-Tools, which could settle it, is not installed (pip install 'roundelay[exact]')"


def cheapest_round(costs: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Return the cheapest order that visits all places and comes back, starting at 0; None if there is none.

    `costs` is symmetric, with infinity between places that are not linked.
    """
    others = len(costs) - 1
    if others == 0:
        return np.zeros(1, dtype=np.int64)
    between, from_start = costs[1:, 1:], costs[0, 1:]
    subsets = np.arange(1 << others)
    sizes = sum((subsets >> place) & 1 for place in range(others))
    # cheapest[subset, end]: of a path from 0 through the subset that stops at one of it.
    cheapest = np.full((1 << others, others), np.inf)
    cheapest[1 << np.arange(others), np.arange(others)] = from_start
    for size in range(1, others):
        layer = subsets[sizes == size]
        for place in range(others):
            without = layer[(layer >> place) & 1 == 0]
            cheapest[without | (1 << place), place] = (cheapest[without] + between[:, place]).min(axis=1)
    everyone = (1 << others) - 1
    last = int(np.argmin(cheapest[everyone] + from_start))
    if not np.isfinite(cheapest[everyone, last] + from_start[last]):
        return None
    order, left = [last], everyone
    while left != 1 << order[-1]:
        left ^= 1 << order[-1]
        order.append(int(np.argmin(cheapest[left] + between[:, order[-1]])))
    return np.array([0, *(place + 1 for place in order)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Circuit:
    """The answer: `order` is the circuit, None if there is none; `proven` that this is the last word."""

    order: NDArray[np.int64] | None
    proven: bool


def solver_installed() -> bool:
    """Say whether OR-Tools is there."""
    return _load_solver() is not None


def solve_circuit(
    places: int,
    links: NDArray[np.int64],
    costs: NDArray[np.float64] | None,
    hint: NDArray[np.int64] | None,
    time_limit: float,
    seed: int,
) -> Circuit:
    """Search for a circuit through all places along undirected links, the cheapest where there are costs.

    `hint` is a circuit to start from. Costs are rounded to whole multiples of a 2⁻⁴⁰th of the largest
    possible total, so that an optimum is proven to about twelve digits. One worker and a fixed seed make
    the answer the same every time, except where the time limit cuts the search short.
    """
    cp_model = _load_solver()
    if cp_model is None or time_limit <= 0 or 2 * len(links) > MOST_ARCS:
        return Circuit(hint, proven=False)
    model = cp_model.CpModel()
    tails, heads = np.concatenate([links, links[:, ::-1]]).T.tolist()
    used = [model.new_bool_var("") for _ in tails]
    model.add_circuit(list(zip(tails, heads, used, strict=True)))
    if costs is not None:
        model.minimize(cp_model.LinearExpr.weighted_sum(used, np.tile(_whole_costs(costs, places), 2).tolist()))
    if hint is not None:
        steps = set(zip(hint.tolist(), np.roll(hint, -1).tolist(), strict=True))
        for tail, head, literal in zip(tails, heads, used, strict=True):
            model.add_hint(literal, (tail, head) in steps)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.linearization_level = 2
    if np.isfinite(time_limit):
        solver.parameters.max_time_in_seconds = time_limit
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Circuit(None, proven=True)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Circuit(hint, proven=False)
    successor = {tail: head for tail, head, literal in zip(tails, heads, used, strict=True) if solver.value(literal)}
    order = [0]
    while len(order) < places:
        order.append(successor[order[-1]])
    return Circuit(np.array(order, dtype=np.int64), proven=status == cp_model.OPTIMAL)


def _load_solver() -> ModuleType | None:
    # Imported only here: it is optional, and takes most of a second.
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return None
    return cp_model


def _whole_costs(costs: NDArray[np.float64], places: int) -> NDArray[np.int64]:
    if np.all(costs == np.rint(costs)) and costs.max() * places < 2**40:
        return costs.astype(np.int64)
    whole: NDArray[np.int64] = np.rint(costs * (2.0**40 / (costs.max() * places))).astype(np.int64)
    return whole
