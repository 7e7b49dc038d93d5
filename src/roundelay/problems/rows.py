"""Rows of data, one block an agent, full or sparse, checked once and stored end to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundelay.kernels import Integers, Matrix, Vector
from roundelay.problems.solving import MOST_DENSE

# Squares of larger numbers would overflow.
LARGEST = 1e100
# About how many numbers of the data are worked on at once where all are gone through.
AT_ONCE = 2**20

Weights = Literal["equal", "rows"] | Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """All agents' rows: those of agent i are `features[starts[i]:starts[i + 1]]`, likewise `targets`."""

    features: Matrix
    targets: Vector
    starts: NDArray[np.int64]
    is_sparse: ClassVar[bool] = False

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

    def batches(self) -> Iterator[tuple[Matrix, Vector, NDArray[np.int64]]]:
        """Features, targets and owners, some MB of rows at once, where all are gone through and no copy of all is to be made."""
        step = max(1, AT_ONCE // self.dim)
        for begin in range(0, len(self.targets), step):
            own = np.arange(begin, min(begin + step, len(self.targets)))
            owners = np.searchsorted(self.starts, own, side="right") - 1
            yield self.features[begin : begin + step], self.targets[begin : begin + step], owners

    def sums(self, values: Vector) -> Vector:
        """The sum of one value a row, agent by agent."""
        return np.add.reduceat(values, self.starts[:-1])

    def predictions(self, points: Matrix) -> Vector:
        """o_j'x_i of every row, where x_i is its agent's point."""
        return np.einsum("rp,rp->r", self.features, points[self.owners])

    def pulls(self, factors: Vector) -> Matrix:
        """Σ_j factors_j·o_j of every agent, some MB of rows at once."""
        pulled, together = np.empty((self.agents, self.dim)), max(1, AT_ONCE // (int(self.counts.max()) * self.dim))
        for first in range(0, self.agents, together):
            ends = self.starts[first : first + together + 1]
            own = slice(ends[0], ends[-1])
            products = factors[own, None] * self.features[own]
            pulled[first : first + together] = np.add.reduceat(products, ends[:-1] - ends[0])
        return pulled

    def multiplied(self, factors: Vector) -> Matrix:
        """The features, each row multiplied by its factor."""
        return np.ascontiguousarray(self.features * factors[:, None])

    def curvature(self, weights: Vector) -> Matrix:
        """Σ_j weights_j·o_j o_j' over all rows."""
        return (self.features.T * weights) @ self.features

    def squares(self, axis: Literal[0, 1] = 1) -> Vector:
        """‖o_j‖² of every row, or of every column."""
        return (self.features**2).sum(axis=axis)

    def largest_curvatures(self) -> Vector:
        """The largest eigenvalue of Σ_j o_j o_j' of every agent."""
        sizes = np.empty(self.agents)
        for count in np.unique(self.counts):  # agents with the same number of rows go together
            group = np.flatnonzero(self.counts == count)
            block = self.features[self.starts[group, None] + np.arange(count)]
            products = (
                np.einsum("nbp,nbq->npq", block, block) if count > self.dim else np.einsum("nbp,ncp->nbc", block, block)
            )
            sizes[group] = np.linalg.eigvalsh(products)[:, -1]
        return sizes

    def __repr__(self) -> str:
        """Its size: the data are private."""
        return f"Rows({self.agents} agents, {len(self.targets)} rows, p = {self.dim}{', sparse' * self.is_sparse})"


class Places(NamedTuple):
    """Which places of x each agent's rows have, those of agent i from starts[i] on; and of each number of the rows the place among them."""

    places: Integers
    starts: Integers
    columns: Integers


@dataclass(frozen=True, eq=False, repr=False)
class SparseRows(Rows):
    """The same with a sparse matrix of features, by rows, without duplicates or zeros."""

    features: Any
    is_sparse: ClassVar[bool] = True

    def batches(self) -> Iterator[tuple[Any, Vector, NDArray[np.int64]]]:
        """All of them: they are small."""
        yield self.features, self.targets, self.owners

    @cached_property
    def columns(self) -> Integers:
        """The columns that are not all zeros."""
        return np.unique(self.features.indices).astype(np.int64)

    @cached_property
    def places(self) -> Places:
        """The same of every agent."""
        ends = self.features.indptr[self.starts]
        found, counted = [], []
        for begin, end in pairwise(ends):
            own, columns = np.unique(self.features.indices[begin:end], return_inverse=True)
            found.append(own.astype(np.int64))
            counted.append(columns)
        starts = np.concatenate([[0], np.cumsum([len(own) for own in found])]).astype(np.int64)
        return Places(np.concatenate(found), starts, np.concatenate(counted).astype(np.int64))

    def places_of(self, agent: int) -> Integers:
        """The places that an agent's rows have."""
        return self.places.places[self.places.starts[agent] : self.places.starts[agent + 1]]

    def predictions(self, points: Matrix) -> Vector:
        """o_j'x_i of every row, where x_i is its agent's point."""
        row = np.repeat(np.arange(len(self.targets)), np.diff(self.features.indptr))
        products = self.features.data * points[self.owners[row], self.features.indices]
        return np.asarray(np.bincount(row, products, len(self.targets)), np.float64)

    def pulls(self, factors: Vector) -> Matrix:
        """Σ_j factors_j·o_j of every agent."""
        return np.array([self.features[self.of(agent)].T @ factors[self.of(agent)] for agent in range(self.agents)])

    def multiplied(self, factors: Vector) -> Any:
        """The features, each row multiplied by its factor."""
        from scipy.sparse import diags_array

        return (diags_array(factors) @ self.features).tocsr()

    def curvature(self, weights: Vector) -> Matrix:
        """Σ_j weights_j·o_j o_j' over all rows."""
        return np.asarray((self.features.T @ self.multiplied(weights)).toarray())

    def squares(self, axis: Literal[0, 1] = 1) -> Vector:
        """‖o_j‖² of every row, or of every column."""
        return np.asarray(self.features.multiply(self.features).sum(axis=axis)).ravel()

    def largest_curvatures(self) -> Vector:
        """The largest eigenvalue of Σ_j o_j o_j' of every agent, in the smaller of its rows and its places."""
        return np.array([self._largest_curvature(agent) for agent in range(self.agents)])

    def _largest_curvature(self, agent: int) -> float:
        block = self.features[self.of(agent)][:, self.places_of(agent)]
        if not block.nnz:
            return 0.0
        narrow = block.T if block.shape[0] > block.shape[1] else block
        if narrow.shape[0] <= MOST_DENSE:
            return float(np.linalg.eigvalsh((narrow @ narrow.T).toarray())[-1])
        from scipy.sparse.linalg import LinearOperator, eigsh

        shape = narrow.shape[0], narrow.shape[0]
        products = LinearOperator(shape, lambda v: narrow @ (narrow.T @ v), dtype=np.float64)
        start = np.sqrt(np.asarray(narrow.multiply(narrow).sum(axis=1)).ravel())
        return float(eigsh(products, 1, which="LA", v0=start, return_eigenvectors=False)[0])

    def dense(self, columns: Integers) -> list[Matrix]:
        """These columns of every agent's rows, as arrays."""
        whole = self.features[:, columns].toarray()
        return np.split(whole, self.starts[1:-1])


def read_rows(features: Sequence[ArrayLike] | ArrayLike, targets: Sequence[ArrayLike] | ArrayLike) -> Rows:
    """Check one block of features and one of targets an agent, and put them end to end."""
    given = _sequence(features, "features")
    sparse = any(hasattr(block, "tocsr") for block in given)
    as_numbers: Callable[..., Any] = _as_sparse if sparse else _as_floats
    blocks = [as_numbers(block, agent, "features") for agent, block in enumerate(given)]
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
    counts = np.array([block.shape[0] for block in blocks])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    if sparse:
        return _sparse_rows(blocks, np.concatenate(answers), starts)
    rows = Rows(_end_to_end(features, blocks), _end_to_end(targets, answers), starts)
    for array in (rows.features, rows.targets, rows.starts):
        array.setflags(write=False)
    return rows


def _sparse_rows(blocks: Sequence[Any], targets: Vector, starts: NDArray[np.int64]) -> SparseRows:
    from scipy.sparse import csr_array, vstack

    features = csr_array(vstack(blocks, format="csr"), copy=len(blocks) == 1)  # which is the caller's own
    features.sum_duplicates()
    features.eliminate_zeros()
    for array in (features.data, features.indices, features.indptr, targets, starts):
        array.setflags(write=False)
    return SparseRows(features, targets, starts)


def _end_to_end(given: Any, blocks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """All blocks as one array: a copy, but of one array of floats that nobody writes to any more (`setflags(write=False)`) a view."""
    whole = blocks[0][None] if len(blocks) == 1 else given
    if (
        type(whole) is np.ndarray
        and whole.dtype == np.float64
        and whole.flags.c_contiguous
        and not whole.flags.writeable
    ):
        return whole.reshape(-1, *whole.shape[2:])
    return np.ascontiguousarray(np.concatenate(blocks))


def read_weights(weights: Weights, counts: NDArray[np.int64], rows_are_summed: bool = False) -> Vector:
    """The factor on each agent's loss: 1 for all, in proportion to the rows with mean 1, or as given.

    A loss that sums over the rows weighs each row alike already, so "rows" leaves it as it is.
    """
    if isinstance(weights, str):
        if weights == "equal" or (weights == "rows" and rows_are_summed):
            return np.ones(len(counts))
        if weights == "rows":
            return counts / counts.mean()
        raise ValueError(
            f'The weights are {weights!r}: use "equal" (the paper), "rows" (the pooled fit), or one number for each agent.'
        )
    try:
        factors = _real(weights).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(f"The weights can't be read as numbers ({error}): give one number for each agent.") from None
    if factors.shape != (len(counts),):
        raise ValueError(
            f"The array of weights has the shape {factors.shape}, but there are {len(counts)} agents: give one number for each agent."
        )
    for agent in np.flatnonzero(~(np.isfinite(factors) & (factors > 0.0))):
        raise ValueError(f"The weight of agent {agent} is {factors[agent]}: weights must be positive and finite.")
    return factors


def check_ridge(ridge: float) -> None:
    """A ridge is a finite number, not below zero."""
    if not (np.isfinite(ridge) and ridge >= 0.0):
        raise ValueError(f"The ridge is {ridge}: use a finite number that is not negative (0 for no ridge).")


def check_labels(rows: Rows) -> None:
    """Labels are −1 or 1."""
    for row in np.flatnonzero(np.abs(rows.targets) != 1.0)[:1]:
        agent = int(rows.owners[row])
        raise ValueError(
            f"Agent {agent} has the label {rows.targets[row]:g} in row {row - rows.starts[agent]}: labels must be -1 or 1 "
            "(from 0 and 1 they come by 2 * labels - 1; roundelay.split(…, positive=label) sets one label against all others)."
        )


def check_sizes(agents: int, samples: int, dim: int, seed: int) -> None:
    """What synthetic data are drawn by."""
    for name, size in (("agents", agents), ("samples", samples), ("dimensions", dim)):
        if size < 1:
            raise ValueError(f"The number of {name} is {size}: use at least 1.")
    if seed < 0:
        raise ValueError(f"The seed is {seed}: use a whole number that is not negative.")


def _sequence(blocks: Sequence[ArrayLike] | ArrayLike, what: str) -> Sequence[ArrayLike]:
    if hasattr(blocks, "tocsr"):
        raise ValueError(
            f"The {what} are one sparse matrix: give a list with one for each agent, or divide its rows by roundelay.split."
        )
    many = blocks.ndim > 0 if isinstance(blocks, np.ndarray) else isinstance(blocks, Sequence)
    if not many or isinstance(blocks, (str, bytes)):
        raise ValueError(f"The {what} are a {type(blocks).__name__}: give a list with one array for each agent.")
    return cast(Sequence[ArrayLike], blocks)


def _as_floats(block: ArrayLike, agent: int, what: str) -> NDArray[np.float64]:
    if hasattr(block, "tocsr"):
        raise ValueError(f"The {what} of agent {agent} are a sparse matrix: give one number for each row, as an array.")
    try:
        return _real(block)
    except (TypeError, ValueError) as error:
        raise _no_numbers(what, agent, error) from None


def _as_sparse(block: Any, agent: int, what: str) -> Any:
    """A block as a sparse matrix of floats by rows, itself or another; its indices are looked at, since they are used unchecked."""
    from scipy.sparse import csr_array

    if not hasattr(block, "tocsr"):
        full = _as_floats(block, agent, what)
        return csr_array(full) if full.ndim == 2 else full
    if block.ndim != 2:
        return block
    try:
        rows = block.tocsr()
        rows.check_format(full_check=True)
        return csr_array((_real(rows.data), rows.indices, rows.indptr), shape=rows.shape)
    except (TypeError, ValueError) as error:
        raise _no_numbers(what, agent, error) from None


def _no_numbers(what: str, agent: int, error: Exception) -> ValueError:
    return ValueError(f"The {what} of agent {agent} are not numbers ({error}): encode them as numbers first.")


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


def _check_block(agent: int, block: Any, answer: Vector, first: Any) -> None:
    if block.ndim != 2:
        raise ValueError(
            f"The features of agent {agent} have {block.ndim} dimensions instead of 2: give an array of shape (rows, features), "
            "for a single feature by .reshape(-1, 1)."
        )
    if answer.ndim != 1:
        raise ValueError(
            f"The targets of agent {agent} have {answer.ndim} dimensions instead of 1: give one number for each row."
        )
    if block.shape[0] == 0:
        raise ValueError(f"Agent {agent} has no rows: leave it out, or give it at least one row.")
    if block.shape[1] == 0:
        raise ValueError(f"The features of agent {agent} have no columns: give at least one feature.")
    if block.shape[1] != first.shape[1]:
        raise ValueError(
            f"Agent {agent} has {block.shape[1]} features but agent 0 has {first.shape[1]}: all agents must give the same features."
        )
    if block.shape[0] != len(answer):
        raise ValueError(
            f"Agent {agent} has {block.shape[0]} rows of features but {len(answer)} targets: give one target for each row."
        )
    sparse = hasattr(block, "indptr")
    for what, values in (("features", block.data if sparse else block), ("targets", answer)):
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row, value = int(np.argwhere(bad)[0][0]), values[bad][0]
            if sparse and what == "features":
                row = int(np.searchsorted(block.indptr, row, "right")) - 1
            remedy = "rescale them" if np.isfinite(value) else "remove or impute values that are not finite"
            raise ValueError(f"The {what} of agent {agent} hold {value} in row {row}: {remedy}.")
