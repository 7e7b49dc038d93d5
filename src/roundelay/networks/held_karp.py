"""The cheapest round through a few places, exactly: dynamic programming over subsets (Held and Karp 1962)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_PLACES = 14
"""Time and memory double with every further place; so many take some milliseconds."""


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
