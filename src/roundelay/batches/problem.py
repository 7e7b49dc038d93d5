"""Problems whose agents' rows are read by batches: what an agent answers is a sum over its parts, and least squares needs one pass.

    f_i(x) = scale_i Σ_parts Σ_j ℓ(o_j'x, t_j) + ridge/2 ‖x‖²

Of least squares all is in G = Σ z z' over rows z = (o − c, 1, t − c_t): any rows with the same G are the same function, and p + 2 of
them are soon found. A problem of those few is one in memory like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.sealed.optimisers import Found, Goal, Newton, NoMinimiserError
from roundelay.algorithms.sealed.questions import HESSIANS, VALUES, Asked, Place, Total
from roundelay.batches.folder import Folder, Part, PassError, open_folder
from roundelay.batches.passes import Passes, Tell, summed
from roundelay.batches.products import add_products, whole_of
from roundelay.comparison.runners import Dask
from roundelay.kernels import Matrix, Part as KernelPart, Vector
from roundelay.problems import Problem
from roundelay.problems.callables import CallableProblem
from roundelay.problems.least_squares import LeastSquares
from roundelay.problems.logistic import Logistic
from roundelay.problems.regularisers import NoRegulariser
from roundelay.problems.row_problem import Loss, RowProblem, problem_named
from roundelay.problems.rows import LARGEST, Weights, check_ridge, read_weights

# So many numbers are worked on at a time: they stay close to the core until the sums have been formed.
NUMBERS_A_TILE = 2**18
# The sums at so many points are kept, so that who asks for the slope and then for the value has one pass for both.
POINTS_KEPT = 4

# The columns of a batch, those of the features and then the target.
Columns = Sequence[Vector]


class Read(Protocol):
    """How the rows of a part are read; with Dask it travels to the workers."""

    def __call__(self, part: Part) -> Iterator[Columns]:
        """Batch by batch."""

    def explain(self, part: Part) -> None:
        """Refuse the cell for which a sum over the part is no number, where it is a cell."""


@dataclass(frozen=True, eq=False)
class Tiles:
    """The rows of a part as they are fitted, a few at a time: a row for each feature, (x − shift)/scale, and one for the target less its own shift.

    With a `constant` the last feature is 1.
    """

    read: Read
    shift: Vector
    scale: Vector
    target_shift: float = 0.0
    constant: bool = False

    @property
    def dim(self) -> int:
        """How many features there are, the constant among them."""
        return len(self.shift) + self.constant

    def __call__(self, part: Part) -> Iterator[Matrix]:
        """The tiles of a part, in order; the target is the last row of each. A tile is overwritten by the next one."""
        return self.over(self.read(part))

    def over(self, batches: Iterator[Columns]) -> Iterator[Matrix]:
        """The tiles of some batches."""
        count = len(self.shift)
        most = NUMBERS_A_TILE // (count + 2) | 1  # odd, so that columns do not fall on each other in the cache
        whole = np.ones((self.dim + 1, most))
        shifts = [*self.shift.tolist(), self.target_shift]
        scaled = not bool((self.scale == 1.0).all())
        for columns in batches:
            for begin in range(0, len(columns[-1]), most):
                length = min(most, len(columns[-1]) - begin)
                tile = whole if length == most else np.ones((self.dim + 1, length))
                for place, column, shift in zip([*range(count), -1], columns, shifts, strict=True):
                    np.subtract(column[begin : begin + length], shift, out=tile[place])
                if scaled:
                    tile[:count] /= self.scale[:, None]
                yield tile


@dataclass(frozen=True)
class Named:
    """Columns of numbers by the names that they have in the files; `labels` says that the last is −1 or 1."""

    names: tuple[str, ...]
    labels: bool = False

    def __call__(self, part: Part) -> Iterator[Columns]:
        """Batch by batch."""
        for batch in part.batches(self.names):
            yield [_numbers(batch.column(name), name, part.path) for name in self.names]

    def explain(self, part: Part) -> None:
        """Refuse the first cell of which no sum can be formed, or that is no label."""
        row = part.first
        for columns in self(part):
            for name, column in zip(self.names, columns, strict=True):
                _refuse_cells(~(np.abs(column) <= LARGEST), row, part.path, name, CELL)
            if self.labels:
                _refuse_cells(np.abs(columns[-1]) != 1.0, row, part.path, self.names[-1], LABEL)
            row += len(columns[-1])


CELL = (
    f"an empty cell, or a number that is not finite or beyond {LARGEST:g},",
    "correct the row, or leave it out of the files",
)
LABEL = ("something that is no label", "labels must be -1 or 1 (from 0 and 1 they come by 2 * label - 1)")


def _refuse_cells(bad: NDArray[np.bool_], first: int, path: str, name: str, why: tuple[str, str]) -> None:
    if bad.any():
        what, remedy = why
        raise PassError(f'Row {first + int(np.argmax(bad)) + 1} of {path} has {what} in the column "{name}": {remedy}.')


def _numbers(column: Any, name: str, path: str) -> Vector:
    import pyarrow

    try:
        if column.type != pyarrow.float64():
            column = column.cast(pyarrow.float64(), safe=False)
        return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise PassError(f'The column "{name}" of {path} is not made of numbers: convert it.') from None


# ---------------------------------------------------------------- the sums of a part


@dataclass(frozen=True, eq=False)
class LossSums:
    """Of a part: Σℓ, Σℓ'o, and where it is `curved` Σℓ''oo', at x."""

    tiles: Tiles
    loss: Loss
    own: Any
    x: Vector
    curved: bool
    labels: bool = False

    def __call__(self, part: Part) -> tuple[float, Vector, Matrix]:
        """One tile after another."""
        dim = len(self.x)
        value, wrong, gradient, half = 0.0, False, np.zeros(dim), np.zeros((dim * self.curved, dim))
        with np.errstate(over="ignore", invalid="ignore"):  # far away a loss may be beyond all numbers
            for tile in self.tiles(part):
                features = tile[:-1]
                wrong |= self.labels and bool(np.count_nonzero(tile[-1] * tile[-1] != 1.0))
                values, slopes, bends = self.loss.of_rows(self.own, self.x @ features, tile[-1])
                value += float(values.sum())
                gradient += features @ slopes
                if self.curved:
                    add_products(features, bends, half)
        if wrong or not (math.isfinite(value) and np.isfinite(gradient).all()):
            self.tiles.read.explain(part)
        return value, gradient, whole_of(half) if self.curved else half


@dataclass(frozen=True, eq=False)
class GramSums:
    """Of a part: how many rows there are, and Σzz' over its rows z, which are the tiles: (o − c, 1, t − c_t)."""

    tiles: Tiles

    def __call__(self, part: Part) -> tuple[int, Matrix]:
        """One tile after another."""
        rows, gram = gram_of_tiles(self.tiles.dim + 1, self.tiles(part))
        if not np.isfinite(gram).all():
            self.tiles.read.explain(part)
        return rows, gram


def gram_of_tiles(width: int, tiles: Iterator[Matrix]) -> tuple[int, Matrix]:
    """How many rows there are, and Σzz'."""
    rows, half = 0, np.zeros((width, width))
    with np.errstate(over="ignore", invalid="ignore"):
        for tile in tiles:
            rows += tile.shape[1]
            add_products(tile, np.ones(tile.shape[1]), half)
    return rows, whole_of(half)


@dataclass(frozen=True)
class ColumnSums:
    """Of a part: how many rows there are, and the sum of each column."""

    read: Read

    def __call__(self, part: Part) -> tuple[int, Vector]:
        """One batch after another."""
        found = [(len(columns[-1]), np.array([column.sum() for column in columns])) for columns in self.read(part)]
        rows, sums = summed(found)
        if not np.isfinite(sums).all():
            self.read.explain(part)
        return rows, sums


@dataclass(frozen=True, eq=False)
class Gram:
    """G = Σzz' over all rows z = (o − c, 1, t − c_t), and c, with that of the target last."""

    rows: int
    about: Vector
    products: Matrix

    @property
    def means(self) -> Vector:
        """Of each column over all rows."""
        return self.about + np.delete(self.products[-2], -2) / self.rows

    def squares_about(self, centres: Vector) -> Vector:
        """Σ(x − centre)² of each column."""
        apart = np.delete(self.products[-2], -2)
        own = np.delete(np.diag(self.products), -2) - apart**2 / self.rows
        return np.maximum(own, 0.0) + self.rows * (self.means - centres) ** 2

    def scaled(self, shift: Vector, scale: Vector) -> Gram:
        """That of the rows (x − shift)/scale."""
        units = np.insert(scale, -1, 1.0)
        return Gram(self.rows, (self.about - shift) / scale, self.products / np.outer(units, units))

    def equivalent_rows(self) -> tuple[Matrix, Vector]:
        """Features and targets of p + 2 rows that are the same least squares.

        Σ(o, t)(o, t)' is n times the product of the means, which is a row of √n times them, and the products about them, D = V Λ V' in
        units that make its diagonal 1, which are those of the rows √Λ V'.
        """
        apart = np.delete(self.products[-2], -2)  # Σ(o − c) and Σ(t − c_t)
        around = np.delete(np.delete(self.products, -2, 0), -2, 1) - np.outer(apart, apart) / self.rows
        widths = np.sqrt(np.maximum(np.diag(around), 0.0))
        widths = np.where(widths > 0.0, widths, 1.0)
        sizes, vectors = np.linalg.eigh(around / np.outer(widths, widths))
        rows = np.vstack(
            [math.sqrt(self.rows) * self.means, np.sqrt(np.maximum(sizes, 0.0))[:, None] * vectors.T * widths]
        )
        return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()


def gram_of(parts: Sequence[Part], read: Read, passes: Passes) -> Gram:
    """One pass, about the means of the first part: about 0 numbers that are large and vary little would lose the digits that matter."""
    first = list(parts[:1])
    rows, sums = passes.summed(first, ColumnSums(read))
    about = sums / max(rows, 1)
    tiles = Tiles(read, about[:-1], np.ones(len(about) - 1), float(about[-1]), constant=True)
    rows, products = passes.summed(parts, GramSums(tiles))
    return Gram(rows, about, products)


# ---------------------------------------------------------------- one agent


@dataclass(frozen=True, eq=False)
class RowSums:
    """One agent's function: scale·Σ_j ℓ(o_j'x, t_j) + ridge/2 ‖x‖² over rows that are read anew for every point.

    Where the sum over all agents is below the `least` of each, it has no minimiser: its labels can be separated.
    """

    parts: tuple[Part, ...]
    tiles: Tiles
    loss: Loss
    own: Any
    scale: float
    ridge: float
    passes: Passes
    labels: bool = False
    least: float = -math.inf
    _kept: dict[bytes, tuple[float, Vector, Matrix]] = field(default_factory=dict, init=False, repr=False)

    @property
    def dim(self) -> int:
        """p."""
        return self.tiles.dim

    def sums(self, x: Vector, curved: bool) -> tuple[float, Vector, Matrix]:
        """f(x), ∇f(x) and, where it was asked for, ∇²f(x), by one pass; of the last few points by none."""
        x = np.array(x, np.float64)
        kept = self._kept.get(x.tobytes())
        if kept is None or (curved and not len(kept[2])):
            value, gradient, hessian = self.passes.summed(
                self.parts, LossSums(self.tiles, self.loss, self.own, x, curved, self.labels)
            )
            bent = self.scale * hessian + self.ridge * np.eye(self.dim) if curved else hessian
            kept = self.scale * value + 0.5 * self.ridge * float(x @ x), self.scale * gradient + self.ridge * x, bent
            while len(self._kept) >= POINTS_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[x.tobytes()] = kept
        return kept

    def value(self, x: Vector) -> float:
        """f(x)."""
        return self.sums(x, False)[0]

    def gradient(self, x: Vector) -> Vector:
        """∇f(x)."""
        return self.sums(x, False)[1]

    def hessian(self, x: Vector) -> Matrix:
        """∇²f(x)."""
        return self.sums(x, True)[2]

    def prox(self, v: Vector, penalty: float) -> Vector:
        """argmin f(x) + penalty/2 ‖x − v‖²: a few passes."""

        def total(x: Vector) -> Total:
            value, gradient, hessian = self.sums(x, True)
            apart = x - v
            bent = hessian + penalty * np.eye(self.dim)
            return Total(value + 0.5 * penalty * float(apart @ apart), gradient + penalty * apart, bent)

        return _minimised(
            total, Goal(self.dim, 1, NoRegulariser(), values=True, hessians=True, start=np.asarray(v, np.float64))
        )

    def answer(self, asked: Asked, place: Place) -> Vector:
        """What this agent answers, by one pass."""
        value, gradient, hessian = self.sums(place.point, asked in HESSIANS)
        parts = [np.array([value])] * (asked in VALUES) + [gradient]
        if asked in HESSIANS:
            parts.append(hessian[np.triu_indices(self.dim)])
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False, repr=False)
class BatchedProblem(CallableProblem):
    """Functions that are sums over rows which no memory holds: each point costs a pass over them, whatever is asked there."""

    sites: tuple[RowSums, ...] = ()

    def answer(self, agent: int, asked: Asked, place: Place) -> Vector:
        """What an agent answers to a question of sealed laps, by one pass."""
        if asked == Asked.HESSIAN_TIMES_DIRECTION:
            return self.hessian_times(agent, place.point, place.direction)
        return self.sites[agent].answer(asked, place)

    @cached_property  # type: ignore[misc]
    def optimum(self) -> Vector:
        """x*, by Newton's method: about eight passes."""
        goal = Goal(
            self.dim, self.agents, NoRegulariser(), values=True, hessians=True, least=min(site.least for site in self.sites),
            why_none="The labels of all agents together can be separated by a plane, so that the loss has no finite minimiser: add a ridge, for "
            "instance ridge=1e-3.",
        )  # fmt: skip

        def total(x: Vector) -> Total:
            value, gradient, hessian = summed(site.sums(x, True) for site in self.sites)
            return Total(value, gradient, hessian)

        return _minimised(total, goal)

    def __repr__(self) -> str:
        rows = sum(part.rows for site in self.sites for part in site.parts)
        return f"BatchedProblem({self.agents} agents, {rows:,} rows, p = {self.dim})"


def _minimised(total: Callable[[Vector], Total], goal: Goal) -> Vector:
    """The minimiser of a function that is had by passes, by Newton's method."""
    asking, place = Newton().questions(goal), Place(goal.origin, np.zeros(goal.dim))
    question = next(asking)
    try:
        while True:
            place = question.moved(place)
            question = asking.send(total(place.point))
    except StopIteration as end:
        found: Found = end.value
    except NoMinimiserError as error:
        raise ValueError(str(error)) from None
    if not found.converged:
        raise ValueError(
            "Newton's method did not find the minimiser of a sum over rows: bring the features to similar units, or add a ridge, for "
            "instance ridge=1e-3."
        )
    return found.point


def batched_problem(sites: Sequence[RowSums]) -> BatchedProblem:
    """A problem with one agent for each of them."""
    return BatchedProblem(
        [site.gradient for site in sites], sites[0].dim, [site.value for site in sites], [site.hessian for site in sites],
        [site.prox for site in sites], sites=tuple(sites),
    )  # fmt: skip


# ---------------------------------------------------------------- least squares


@dataclass(frozen=True, eq=False, repr=False)
class SummedLeastSquares(LeastSquares):
    """Least squares of a few rows in the place of many, the same function to rounding; they are no records of anybody."""

    counted: tuple[int, ...] = ()

    has_records: ClassVar[bool] = False

    def kernel(self) -> KernelPart:
        """What the engines run, without what is about single rows."""
        part = super().kernel()
        about_rows = ("row_slope", "record_weight")
        return replace(part, functions=tuple(one for one in part.functions if one[0] not in about_rows))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.agents} agents, {sum(self.counted):,} rows, p = {self.dim})"


def summed_least_squares(grams: Sequence[Gram], weights: Sequence[float], ridge: float = 0.0) -> SummedLeastSquares:
    """f_i = weight_i/2 ‖O_i x − t_i‖² + ridge/2 ‖x‖², by the sums over the rows of each agent."""
    rows = [gram.equivalent_rows() for gram in grams]
    return SummedLeastSquares(
        [features for features, _ in rows], [targets for _, targets in rows], ridge=ridge, weights=list(weights),
        counted=tuple(gram.rows for gram in grams),
    )  # fmt: skip


# ---------------------------------------------------------------- by hand


def by_batches(
    kind: type[RowProblem] | str,
    sites: Sequence[str | Path | Folder],
    features: Sequence[str],
    target: str,
    *,
    ridge: float = 0.0,
    weights: Weights = "equal",
    scale: Literal["half_sum", "mean"] = "half_sum",
    threads: int | None = None,
    dask: Dask = None,
    progress: Tell | None = None,
    **parameters: float,
) -> Problem:
    """A problem of rows that need not fit into memory: each agent's are a folder of Parquet files, read by batches.

    `kind` is LeastSquares, Logistic, Huber or another problem of rows with a smooth loss, `features` and `target` are names of columns,
    and the rest is that problem's own. Least squares takes one pass, and is in memory then: any method runs on it. Of any other
    loss each point that an agent is asked about is a pass, on all cores, in `threads` of this process, or by `dask` on a cluster whose
    workers see the files under the same path. The sums are the same to the last bit wherever they are formed, on processors of one
    kind. Files must stay as they are.
    """
    kind = problem_named(kind) if isinstance(kind, str) else kind
    check_ridge(ridge)
    if not sites or isinstance(sites, str | Path | Folder):
        raise ValueError("sites has one folder for each agent: give a list of them.")
    if not features:
        raise ValueError("There are no features: name at least one column.")
    folders = [site if isinstance(site, Folder) else open_folder(site) for site in sites]
    names = (*features, target)
    for folder in folders:
        for name in names:
            if name not in folder.names:
                raise ValueError(
                    f'Not every file of {folder.path} has a column "{name}": those that all have are {", ".join(folder.names)}.'
                )
    # Of one made-up row: what the loss and its parameters are.
    likeness: Any = kind([np.zeros((1, 1))], [np.ones(1)], ridge=1.0, **parameters)  # type: ignore[call-arg]
    if not likeness.has_gradients:
        raise ValueError(
            f"A {kind.__name__} has a loss with corners, whose proximal step is no sum over rows: it needs its rows in memory."
        )
    read, passes = Named(names, kind.needs_labels), Passes(threads, dask, progress)
    counts = np.array([folder.rows for folder in folders])
    squares = issubclass(kind, LeastSquares)
    if scale not in ("half_sum", "mean"):
        raise ValueError(f'The scale is {scale!r}: use "half_sum" or "mean".')
    factors = read_weights(weights, counts, rows_are_summed=squares and scale == "half_sum")
    if squares:
        grams = [gram_of(folder.parts, read, passes) for folder in folders]
        return summed_least_squares(grams, (factors if scale == "half_sum" else 2.0 * factors / counts).tolist(), ridge)
    tiles = Tiles(read, np.zeros(len(features)), np.ones(len(features)))
    leasts = (
        math.log(2.0) * factors / counts
        if issubclass(kind, Logistic) and not ridge
        else np.full(len(counts), -math.inf)
    )
    loss, own, labels = likeness.loss, likeness.own, kind.needs_labels
    return batched_problem(
        [
            RowSums(folder.parts, tiles, loss, own, factor, ridge, passes, labels, least)
            for folder, factor, least in zip(folders, (factors / counts).tolist(), leasts.tolist(), strict=True)
        ]
    )
