"""The primitives that kernel functions are written in, as the Python engine runs them.

`roundelay.engine.compiled` has the same names for the compiled engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Literals of the module that an engine puts together: the dimension p, how many tokens go round, and whether
# there are so many agents that their data do not stay near the processor.
DIM: int = 0
TOKENS: int = 1
FAR: int = 0


def each(dim: int) -> Iterable[int]:
    """All coordinates of a vector: here in one go, as a slice; one after another when compiled."""
    return (slice(None),)  # type: ignore[return-value]


def vector(dim: int) -> Vector:
    """Scratch space for one vector; its contents are undefined."""
    return np.empty(dim)


def matrix(dim: int) -> Matrix:
    """Scratch space for one square matrix; its contents are undefined."""
    return np.empty((dim, dim))


def prefetch(array: NDArray[Any], row: int) -> None:
    """Ask for a row of an array that will soon be needed; only compiled code has a use for it."""


def dot(a: Vector, b: Vector) -> float:
    """The inner product of two vectors."""
    return float(np.dot(a, b))


def norm(a: Vector) -> float:
    """The Euclidean norm."""
    return float(np.sqrt(np.dot(a, a)))


def distance(a: Vector, b: Vector) -> float:
    """The Euclidean distance between two points."""
    return norm(a - b)


def solve_positive(a: Matrix, b: Vector) -> None:
    """Overwrite b by the solution x of a·x = b, for a symmetric positive definite a (overwritten too)."""
    b[:] = np.linalg.solve(a, b)
