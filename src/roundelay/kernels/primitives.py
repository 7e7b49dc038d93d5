"""The primitives that kernel functions are written in, as the Python engine runs them.

`roundelay.kernels.compiled` has the same names for the compiled engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])


def slot(function: Function) -> Function:
    """Mark a function as a hole that a part fills: calls of it go to the part's function of the same name."""
    function.is_slot = True  # type: ignore[attr-defined]
    return function


class Numbers(NamedTuple):
    """No numbers: what a part without parameters hands to its functions."""


@dataclass(frozen=True, eq=False)
class Part:
    """Kernel functions, the numbers they read, and the literals they are compiled with.

    `functions` pairs the name that other functions call (a slot) with the function that fills it.
    `numbers` is a NamedTuple of arrays and floats, handed to the functions at run time, so that new
    values need no new compilation. `literals` become constants of the compiled module; `hints` too, but they say only what
    follows from the numbers as well, and are 0 in code that is made for many runs.
    `why_not_compiled` is empty where the functions can be compiled, and otherwise says why they can't.
    `per_agent` names the numbers of a problem that are there for each agent: one number an agent, or the N + 1 places
    between which each agent's own stand. The functions of a part that wraps another, its `inner`, call that one's by the names
    that these have, with inner_ before them.
    """

    functions: tuple[tuple[str, Callable[..., Any]], ...]
    numbers: Any = Numbers()
    literals: tuple[tuple[str, int], ...] = ()
    hints: tuple[tuple[str, int], ...] = ()
    why_not_compiled: str = ""
    per_agent: tuple[str, ...] = ()
    inner: Part | None = None


class Visit(NamedTuple):
    """Where a visit of a token is: the run's seed, the agent, the hop, how often it was here before, how many agents."""

    seed: int
    agent: int
    hop: int
    turn: int
    agents: int


class Exchange(NamedTuple):
    """Where an exchange of messages is: the run's seed, the agent, the iteration, and which of its exchanges."""

    seed: int
    agent: int
    iteration: int
    exchange: int


Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Cube = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.uint8]

# Literals of the module that an engine puts together: the dimension p, how many tokens go round, how many
# vectors one message holds, how many exchanges an iteration has, whether messages are added to what came before,
# and whether there are so many agents that their data do not stay near the processor.
DIM: int = 0
TOKENS: int = 1
VECTORS: int = 1
EXCHANGES: int = 1
INCREMENTS: int = 0
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


# Sums of fewer numbers are formed in the order of the compiled engine, to the bit; those of more are left to a BLAS, in a tenth of the time and with other
# last digits, since it fuses products and sums on some processors.
LEFT_TO_BLAS = 1024


def dot(a: Vector, b: Vector) -> float:
    """The inner product of two vectors, in the order of `sums.dot`: of short ones term after term, of longer ones in eight partial sums."""
    if a.size >= LEFT_TO_BLAS:
        return float(np.dot(a, b))
    if a.size < 16:
        total = -0.0  # nothing is changed by adding it, not even the sign of a 0
        for one, other in zip(a.tolist(), b.tolist(), strict=True):
            total += one * other
        return total
    products = a * b
    blocks = products.size // 8
    lanes = np.add.reduce(products[: 8 * blocks].reshape(blocks, 8), axis=0)  # block after block
    total = 0.0
    for term in (*products[8 * blocks :].tolist(), *lanes.tolist()):
        total += term
    return total


def norm(a: Vector) -> float:
    """The Euclidean norm."""
    return float(np.sqrt(dot(a, a)))


def distance(a: Vector, b: Vector) -> float:
    """The Euclidean distance between two points, term after term."""
    gaps = a - b
    if not 16 <= gaps.size < LEFT_TO_BLAS:
        return norm(gaps)
    return float(np.sqrt(np.add.accumulate(gaps * gaps)[-1]))


def solve_positive(a: Matrix, b: Vector) -> None:
    """Overwrite b by the solution x of a·x = b, for a symmetric positive definite a (overwritten too)."""
    b[:] = np.linalg.solve(a, b)


def gather(weights: Vector, neighbours: Integers, begin: int, end: int, rows: Cube, lane: int, out: Vector) -> None:
    """Add Σ weights[a]·rows[neighbours[a], lane] over the arcs a from `begin` to `end` to `out`."""
    out += weights[begin:end] @ rows[neighbours[begin:end], lane]


def flagged(flags: Flags, order: Integers) -> int:
    """Write the places where a flag is set to `order`, and return how many there are."""
    places = np.flatnonzero(flags)
    order[: len(places)] = places
    return len(places)


def latest(times: Vector, delays: Vector, neighbours: Integers, begin: int, end: int) -> float:
    """The latest of times[neighbours[a]] + delays[a] over the arcs a from `begin` to `end`; 0 without any."""
    return float((times[neighbours[begin:end]] + delays[begin:end]).max(initial=0.0))
