"""A site with more rows than memory: its files are a folder of Parquet, and all that it adds to a fit is a sum over their parts.

One pass at the start looks at every cell, as it is looked at in a file that is read as a whole, and forms what the sums before the fit are
made of. Least squares needs no other; of any other loss a question is two passes, one that counts the rows that would carry the answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from roundelay.agents.agreement.ledger import Data
from roundelay.agents.agreement.plan import Task
from roundelay.agents.data.fitting import FitOfRows, scaling_of, share_of
from roundelay.agents.data.marks import Marked
from roundelay.agents.data.models import Model
from roundelay.agents.data.own_fit import OwnFit, compare_rows
from roundelay.agents.data.parquet import headings_of, table_of_batch
from roundelay.agents.data.reading import OwnRows, gaps_in, labels_in
from roundelay.agents.data.statistics import means_of, refuse_large
from roundelay.agents.data.table import find_columns
from roundelay.agents.data.values import Understood
from roundelay.batches import Folder, Part, Passes, open_folder
from roundelay.batches.carried import PartsAt
from roundelay.batches.problem import (
    Columns,
    ColumnSums,
    Gram,
    RowSums,
    Tiles,
    batched_problem,
    gram_of_tiles,
    summed_least_squares,
)
from roundelay.kernels import Vector
from roundelay.problems import OwnProblem, Regulariser
from roundelay.problems.carriers import Watched
from roundelay.problems.rows import LARGEST
from roundelay.regression.columns import Column

# The ring's model is tried on so many rows of this site, the first of each part alike.
TRIED = 2**16


@dataclass(frozen=True, eq=False)
class RowsOfTask:
    """How the rows of a task without a formula are read from a part: the features in the task's order, then the target, a label as −1 or 1.

    `names` are the columns as the files have them, and `headings` what these say.
    """

    task: Task
    names: tuple[str, ...]
    headings: tuple[Column, ...]

    def __call__(self, part: Part) -> Iterator[Columns]:
        """Batch by batch, without the rows that lack a cell where the ring has agreed to that."""
        for _, _, columns in self.with_places(part):
            yield columns

    def explain(self, part: Part) -> None:
        """Cells are looked at when they are read."""

    def with_places(self, part: Part) -> Iterator[tuple[int, int, Columns]]:
        """The same, with how many rows were left out, and on which signs the labels are: 1 where one is 0, and 2 where one is −1."""
        agreed = (*self.task.features, *([self.task.target] if self.task.target else []))
        first = part.first
        for batch in part.batches(self.names):
            table = table_of_batch(batch.select(list(self.names)), part.path, self.headings, first)
            columns: Columns = Understood(table, agreed).values()
            dropped = 0
            if not all(np.isfinite(column.sum()) and np.abs(column).max(initial=0.0) <= LARGEST for column in columns):
                cells = np.column_stack(columns)
                keep = ~gaps_in(table, cells, agreed, self.task.missing).any(axis=1)
                dropped, columns = int((~keep).sum()), list(np.ascontiguousarray(cells[keep].T))
                table = table_of_batch(batch.select(list(self.names)).filter(keep), part.path, self.headings, first)
            signs = 0
            if self.task.problem.needs_labels:
                target = columns[-1]
                signs = 1 * bool((target == 0.0).any()) + 2 * bool((target == -1.0).any())
                columns = [*columns[:-1], labels_in(table, target, self.task)]
            yield dropped, signs, columns
            first += batch.num_rows


class Surveyed(NamedTuple):
    """Of some parts: rows and their products, in how many each column has another number than most, how many were left out, the signs of
    labels, and a digest of each column."""

    rows: int
    products: Vector
    beside_most: Vector
    dropped: int
    signs: int
    digests: tuple[bytes, ...]

    def with_others(self, other: Surveyed) -> Surveyed:
        """Of both; a digest is that of all parts' digests, in order."""
        return Surveyed(
            self.rows + other.rows, self.products + other.products, self.beside_most + other.beside_most, self.dropped + other.dropped,
            self.signs | other.signs, tuple(one + two for one, two in zip(self.digests, other.digests, strict=True)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Survey:
    """The first look at a part: every cell, what the sums before a fit follow from, and digests."""

    read: RowsOfTask
    tiles: Tiles
    usual: Vector

    def __call__(self, part: Part) -> Surveyed:
        """One batch after another."""
        dropped = signs = 0
        beside = np.zeros(len(self.usual))
        hashes = [hashlib.sha256() for _ in self.read.names]

        def looked_at() -> Iterator[Columns]:
            nonlocal dropped, signs
            for left_out, here, columns in self.read.with_places(part):
                dropped, signs = dropped + left_out, signs | here
                beside[:] += [
                    np.count_nonzero(column != most) for column, most in zip(columns, self.usual, strict=True)
                ]
                for one, column in zip(hashes, columns, strict=True):
                    one.update(np.ascontiguousarray(column, "<f8").data)
                yield columns

        rows, products = gram_of_tiles(self.tiles.dim + 1, self.tiles.over(looked_at()))
        return Surveyed(rows, products, beside, dropped, signs, tuple(one.digest() for one in hashes))


@dataclass(frozen=True, eq=False)
class BatchedRowsFit(FitOfRows):
    """The rows of one site, read anew whenever a sum over them is formed.

    On a cluster of the site's own processors may differ in the last digit, so that answers are on disk before they leave.
    """

    folder: Folder
    read: RowsOfTask
    gram: Gram
    dropped: int
    column_digests: tuple[bytes, ...]
    counted_beside_most: tuple[int, ...]
    tried: OwnRows
    passes: Passes

    makes_passes: ClassVar[bool] = True

    @property
    def repeatable(self) -> bool:
        """Whether an answer can be made again bit for bit."""
        return self.passes.dask is None

    @cached_property
    def digest(self) -> str:
        """A hash of all rows, as they lie in the files."""
        return hashlib.sha256(repr(self.gram.rows).encode() + b"".join(self.column_digests)).hexdigest()

    def marked(self, key: bytes) -> Marked:
        """What the ledger keeps of the rows: no mark of each, so that rows that have changed can't be counted, and any change counts as one of few."""
        digests = [hashlib.blake2b(one, digest_size=16, key=key).hexdigest() for one in self.column_digests]
        return Marked(Data(self.digest, self.gram.rows, dict(zip(self.columns, digests, strict=True))))

    @property
    def slope(self) -> float:
        """Of least squares, which alone is fitted by a token: the deviation of the target, times the size of the largest feature."""
        squares, rows = self.gram.squares_about(np.zeros(len(self.gram.about))), self.gram.rows
        target = self.gram.squares_about(self.gram.means) if self.task.intercept else squares
        largest = 1.0 if self.task.standardise else float(np.sqrt(squares[:-1].max() / rows))
        return largest * float(np.sqrt(target[-1] / rows))

    def summand(self, told: tuple[Vector, ...], sites: int) -> Vector:
        """This site's part of the next sum."""
        gram = self.gram
        names = self.columns if told else ["the rows", *self.columns]
        numbers = (
            gram.squares_about(means_of(told[0][1:])) if told else np.concatenate([[gram.rows], gram.rows * gram.means])
        )
        refuse_large(numbers, names, sites)
        return numbers

    @property
    def beside_most(self) -> tuple[int, ...]:
        """As it was counted at the first look."""
        return self.counted_beside_most

    def _sums(self, told: tuple[Vector, ...]) -> RowSums:
        """The sums over all parts at a point, in the ring's units."""
        standard = self.standard(told)
        assert standard is not None
        share = share_of(self.task, self.gram.rows, standard, round(told[0][0]))
        scaling = scaling_of(self.task, standard)
        tiles = Tiles(self.read, scaling.shift, scaling.scale, scaling.target_shift, self.task.has_constant)
        one = self.task.problem.of_site(np.zeros((1, 1)), np.ones(1), 1.0, 1.0)
        return RowSums(self.folder.parts, tiles, one.loss, one.own, share, self.task.ridge, self.passes)

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The site's own function."""
        if not self.task.problem.is_quadratic:
            return batched_problem([self._sums(told)])
        standard = self.standard(told)
        assert standard is not None
        share = share_of(self.task, self.gram.rows, standard, round(told[0][0]))
        scaling = scaling_of(self.task, standard)
        gram = self.gram.scaled(np.append(scaling.shift, scaling.target_shift), np.append(scaling.scale, 1.0))
        return summed_least_squares([gram], [share], self.task.ridge)

    def watched(self, told: tuple[Vector, ...], folds: bool) -> tuple[Watched, ...]:
        """All rows, but for squares."""
        if self.task.problem.is_quadratic:
            return ()
        return (partial(PartsAt, self._sums(told), self.gram.rows),)

    def own_fit(
        self, fitted: Vector, model: Model, regulariser: Regulariser, told: tuple[Vector, ...]
    ) -> OwnFit | None:
        """How the ring's model does on some of these rows, against a fit to them alone."""
        return compare_rows(self.task, self.tried, model, regulariser)


def read_by_batches(folder: Folder | str | Path, task: Task, passes: Passes, by_token: bool = False) -> BatchedRowsFit:
    """Look at all rows of a folder once, and be ready for a fit to them."""
    if task.regression is not None:
        raise ValueError(
            "This ring fits a formula, for which a site's rows must be in memory so far: give one file by --data, or plan the ring without a "
            "formula, by --target and --task."
        )
    if task.promise is not None:
        raise ValueError("Under a promise of ε each record is looked at by itself, in memory: give one file by --data.")
    if by_token and not task.problem.is_quadratic:
        raise ValueError(
            f"At every visit of a token {task.problem.model} would need many passes over the rows: plan the ring by sealed laps, or give one file by "
            "--data."
        )
    folder = folder if isinstance(folder, Folder) else open_folder(folder)
    read = _reading(folder, task)
    first = list(folder.parts[:1])
    rows, sums = passes.summed(first, ColumnSums(read))
    about = sums / max(rows, 1)
    tiles = Tiles(read, about[:-1], np.ones(len(about) - 1), float(about[-1]), constant=True)
    tried = _some_rows(folder, read)
    # If all rows but a few have one number, so have most of these.
    usual = np.median(np.column_stack([tried.features, tried.target]), axis=0)
    found = reduce(Surveyed.with_others, passes.over(folder.parts, Survey(read, tiles, usual)))
    if not found.rows:
        raise ValueError(f"{folder.path} has no rows without an empty cell: give at least one row, or leave the ring.")
    if found.signs == 3:
        raise ValueError(
            f'{folder.path} has both 0 and -1 in the column "{task.target}": use 0 and 1, or -1 and 1, not both.'
        )
    digests = tuple(hashlib.sha256(one).digest() for one in found.digests)
    gram, beside_most = Gram(found.rows, about, found.products), tuple(found.beside_most.astype(np.int64).tolist())
    return BatchedRowsFit(task, folder, read, gram, found.dropped, digests, beside_most, tried, passes)


def _reading(folder: Folder, task: Task) -> RowsOfTask:
    """The columns are called the same in all files, and hold numbers."""
    assert task.target is not None
    agreed = tuple(Column(column.name, column.unit) for column in (*task.features, task.target))
    known: tuple[tuple[str, ...], tuple[Column, ...]] | None = None
    for file in folder.files:
        names, headings, holds = headings_of(Path(file), partial(_chosen, file, agreed))
        for heading, what in zip(headings, holds, strict=True):
            if what not in ("numbers", "truths"):
                raise ValueError(
                    f'{file} has {what} in the column "{heading}", which by batches can\'t be read as numbers: convert the column in the files.'
                )
        if known is not None and known != (names, headings):
            raise ValueError(
                f"{file} calls its columns otherwise than {folder.files[0]}: give them the same names in all files."
            )
        known = names, headings
    assert known is not None
    return RowsOfTask(task, *known)


def _chosen(file: str, agreed: Iterable[Column], header: tuple[Column, ...]) -> list[int]:
    return find_columns(file, header, tuple(agreed))


def _some_rows(folder: Folder, read: RowsOfTask) -> OwnRows:
    """The first rows of each part, as many of each."""
    most, found = -(-TRIED // len(folder.parts)), []
    for part in folder.parts:
        taken = 0
        for columns in read(part):
            found.append(np.column_stack([column[: most - taken] for column in columns]))
            taken += len(found[-1])
            if taken >= most:
                break
    cells = np.concatenate(found)
    return OwnRows(np.ascontiguousarray(cells[:, :-1]), cells[:, -1].copy())
