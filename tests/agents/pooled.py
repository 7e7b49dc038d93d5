"""Uneven shares of one table, with features of very different units."""

from __future__ import annotations

import numpy as np

from roundelay.agents.data.reading import OwnRows
from roundelay.agents.data.statistics import (
    Standard,
    first_moments,
    means_of,
    second_moments,
    standard_of,
)
from roundelay.kernels import Vector
from roundelay.masks import SeededPairs, WideFixedPoint, seals

UNITS = np.array([1e-3, 1.0, 3e4])
CENTRES = np.array([0.02, -5.0, 2e5])


def shares(seed: int, sites: int = 4, labels: bool = False) -> list[OwnRows]:
    """Tables of 1 to 60 rows; some sites have fewer rows than features, and some have labels of one kind only."""
    draws = np.random.default_rng(seed)
    counts = [2, *draws.integers(1, 60, sites - 2), 80]
    tables = []
    for count in counts:
        standardised = draws.normal(size=(count, 3)) + draws.normal(size=3)
        features = CENTRES + UNITS * standardised
        target = 4.0 + standardised @ [1.0, -2.0, 0.5] + draws.normal(size=count)
        if labels:
            target = np.where(standardised @ [1.0, -2.0, 0.5] + 2.0 * draws.normal(size=count) > 0.3, 1.0, -1.0)
        tables.append(OwnRows(features, target))
    return tables


def pool(tables: list[OwnRows]) -> OwnRows:
    """All rows together, which in a ring nobody ever has."""
    return OwnRows(np.concatenate([t.features for t in tables]), np.concatenate([t.target for t in tables]))


def sealed_sum(vectors: list[Vector], seed: int = 1) -> Vector:
    """The total as a ring forms it: the sum of words, each site's under a mask of its own."""
    grid, total = WideFixedPoint(), np.zeros(2 * len(vectors[0]), np.uint64)
    for vector, mask in zip(vectors, seals(SeededPairs(seed), len(vectors), len(vectors[0]), 0, grid), strict=True):
        total = grid.add(total, grid.add(grid.encode(vector), mask))
    return grid.decode(total)


def standard_by_sums(tables: list[OwnRows], scaled: bool = True) -> Standard:
    """What the sites find out together, by two sums under masks."""
    first = sealed_sum([first_moments(table) for table in tables])
    means = means_of(first)
    second = sealed_sum([second_moments(table, means) for table in tables], seed=2)
    return standard_of(first, second, ["a", "b", "c"][: tables[0].features.shape[1]], scaled)
