"""Rows of data, one block an agent, checked once and stored end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.kernels import Matrix, Vector

# Squares of larger numbers would overflow.
LARGEST = 1e100

Weights = Literal["equal", "rows"] | Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """All agents' rows: those of agent i are `features[starts[i]:starts[i + 1]]`, likewise `targets`."""

    features: Matrix
    targets: Vector
    starts: NDArray[np.int64]

    @property
    def agents(self) -> int:
        """How many agents there are."""
        return len(self.starts) - 1

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.features.shape[1]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows each agent has."""
        return np.diff(self.starts)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The agent that each row belongs to."""
        return np.repeat(np.arange(self.agents), self.counts)

    def of(self, agent: int) -> slice:
        """Where agent's rows stand."""
        return slice(int(self.starts[agent]), int(self.starts[agent + 1]))

    def sums(self, values: Vector) -> Vector:
        """The sum of one value a row, agent by agent."""
        return np.add.reduceat(values, self.starts[:-1])

    def __repr__(self) -> str:
        """Its size: the data are private."""
        return f"Rows({self.agents} agents, {len(self.targets)} rows, p = {self.dim})"


def read_rows(features: Sequence[ArrayLike] | ArrayLike, targets: Sequence[ArrayLike] | ArrayLike) -> Rows:
    """Check one block of features and one of targets an agent, and put them end to end."""
    blocks = [_as_floats(block, agent, "features") for agent, block in enumerate(_sequence(features, "features"))]
    answers = [_as_floats(block, agent, "targets") for agent, block in enumerate(_sequence(targets, "targets"))]
    if not blocks:
        raise ValueError(
            "There is no agent: give one array of features for each agent, and there must be at least one."
        )
    if len(blocks) != len(answers):
        raise ValueError(
            f"There are features for {len(blocks)} agents but targets for {len(answers)}: give one array of each for every agent."
        )
    for agent, (block, answer) in enumerate(zip(blocks, answers, strict=True)):
        _check_block(agent, block, answer, blocks[0])
    counts = np.array([len(block) for block in blocks])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = Rows(np.ascontiguousarray(np.concatenate(blocks)), np.concatenate(answers), starts)
    for array in (rows.features, rows.targets, rows.starts):
        array.setflags(write=False)
    return rows


def read_weights(weights: Weights, rows: Rows, rows_are_summed: bool) -> Vector:
    """The factor on each agent's loss: 1 for all, in proportion to the rows with mean 1, or as given.

    A loss that sums over the rows weighs each row alike already, so "rows" leaves it as it is.
    """
    if isinstance(weights, str):
        if weights == "equal" or (weights == "rows" and rows_are_summed):
            return np.ones(rows.agents)
        if weights == "rows":
            return rows.counts / rows.counts.mean()
        raise ValueError(
            f'The weights are {weights!r}: use "equal" (the paper), "rows" (the pooled fit), or one number for each agent.'
        )
    try:
        factors = _real(weights).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(f"The weights can't be read as numbers ({error}): give one number for each agent.") from None
    if factors.shape != (rows.agents,):
        raise ValueError(
            f"The array of weights has the shape {factors.shape}, but there are {rows.agents} agents: give one number for each agent."
        )
    for agent in np.flatnonzero(~(np.isfinite(factors) & (factors > 0.0))):
        raise ValueError(f"The weight of agent {agent} is {factors[agent]}: weights must be positive and finite.")
    return factors


def check_ridge(ridge: float) -> None:
    """A ridge is a finite number, not below zero."""
    if not (np.isfinite(ridge) and ridge >= 0.0):
        raise ValueError(f"The ridge is {ridge}: use a finite number that is not negative (0 for no ridge).")


def check_sizes(agents: int, samples: int, dim: int, seed: int) -> None:
    """What synthetic data are drawn by."""
    for name, size in (("agents", agents), ("samples", samples), ("dimensions", dim)):
        if size < 1:
            raise ValueError(f"The number of {name} is {size}: use at least 1.")
    if seed < 0:
        raise ValueError(f"The seed is {seed}: use a whole number that is not negative.")


def _sequence(blocks: Sequence[ArrayLike] | ArrayLike, what: str) -> Sequence[ArrayLike]:
    if hasattr(blocks, "toarray"):
        raise ValueError(
            f"The {what} are one sparse matrix: give a list with one array for each agent, each by .toarray() of its rows, where that fits into memory."
        )
    if not isinstance(blocks, (list, tuple, np.ndarray)) or (isinstance(blocks, np.ndarray) and blocks.ndim == 0):
        raise ValueError(f"The {what} are a {type(blocks).__name__}: give a list with one array for each agent.")
    return cast(Sequence[ArrayLike], blocks)


def _as_floats(block: ArrayLike, agent: int, what: str) -> NDArray[np.float64]:
    if hasattr(block, "toarray"):
        raise ValueError(
            f"The {what} of agent {agent} are a sparse matrix, which can't be taken as it is: give them by .toarray(), where that fits into memory."
        )
    try:
        return _real(block)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The {what} of agent {agent} are not numbers ({error}): encode them as numbers first."
        ) from None


def _real(values: ArrayLike) -> NDArray[np.float64]:
    """An array of floats, without what NumPy would do in silence: parse text, drop imaginary parts and masks."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if np.ma.is_masked(values):
        raise ValueError("some are masked")
    array = np.asarray(values)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"their type is {array.dtype}")
    if array.dtype.kind == "O" and any(isinstance(value, (str, bytes)) for value in array.flat):
        raise TypeError("some are text")
    return array.astype(np.float64)


def _check_block(agent: int, block: Matrix, answer: Vector, first: Matrix) -> None:
    if block.ndim != 2:
        raise ValueError(
            f"The features of agent {agent} have {block.ndim} dimensions instead of 2: give an array of shape (rows, features), "
            "for a single feature by .reshape(-1, 1)."
        )
    if answer.ndim != 1:
        raise ValueError(
            f"The targets of agent {agent} have {answer.ndim} dimensions instead of 1: give one number for each row."
        )
    if len(block) == 0:
        raise ValueError(f"Agent {agent} has no rows: leave it out, or give it at least one row.")
    if block.shape[1] == 0:
        raise ValueError(f"The features of agent {agent} have no columns: give at least one feature.")
    if block.shape[1] != first.shape[1]:
        raise ValueError(
            f"Agent {agent} has {block.shape[1]} features but agent 0 has {first.shape[1]}: all agents must give the same features."
        )
    if len(block) != len(answer):
        raise ValueError(
            f"Agent {agent} has {len(block)} rows of features but {len(answer)} targets: give one target for each row."
        )
    for what, values in (("features", block), ("targets", answer)):
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row, value = int(np.argwhere(bad)[0][0]), values[bad][0]
            remedy = "rescale them" if np.isfinite(value) else "remove or impute values that are not finite"
            raise ValueError(f"The {what} of agent {agent} hold {value} in row {row}: {remedy}.")
