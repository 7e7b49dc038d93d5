"""How many of the rows of a folder carry what is told of them at a point, as `problems/carriers.py` has it of rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from roundelay.batches.folder import Part
from roundelay.batches.problem import RowSums, Tiles
from roundelay.kernels import Matrix, Vector
from roundelay.problems.carriers import FAR_OUT, between, end_at, folded_of, is_small, pace_of, wanted_of
from roundelay.problems.row_problem import Loss


class Sizes(NamedTuple):
    """Of some weights of rows: the largest, and in its units Σ|v| and Σv², so that no square is beyond all numbers, or lost.

    `known` says which of them there are for every row, and `loss` what all rows add up to.
    """

    largest: Vector
    size: Vector
    squares: Vector
    known: Vector
    loss: float

    def with_others(self, other: Sizes) -> Sizes:
        """Of both together."""
        largest = np.maximum(self.largest, other.largest)
        units = np.where(largest > 0.0, largest, 1.0)
        mine, theirs = self.largest / units, other.largest / units
        return Sizes(
            largest,
            self.size * mine + other.size * theirs,
            self.squares * mine**2 + other.squares * theirs**2,
            self.known * other.known,
            self.loss + other.loss,
        )

    @property
    def about(self) -> Vector:
        """How many rows each is about; infinity where all are 0, and nothing is told."""
        return np.divide(self.size**2, self.squares, out=np.full_like(self.size, np.inf), where=self.squares != 0.0)


def _sizes(weights: Matrix, known: Vector, loss: float) -> Sizes:
    size = np.abs(weights)
    largest = size.max(axis=1, initial=0.0)
    size /= np.where(largest > 0.0, largest, 1.0)[:, None]
    return Sizes(largest, size.sum(axis=1), np.einsum("kn,kn->k", size, size), known, loss)


@dataclass(frozen=True, eq=False)
class CarriedSums:
    """Of a part: the sizes of what is told at a point, and of the differences to what was told at the points before."""

    tiles: Tiles
    loss: Loss
    own: object
    point: Vector
    before: tuple[Vector, ...]

    def __call__(self, part: Part) -> Sizes:
        """One tile after another."""
        with np.errstate(all="ignore"):  # a point may be anywhere
            return reduce(Sizes.with_others, (self._of(tile) for tile in self.tiles(part)), self._none)

    @property
    def _none(self) -> Sizes:
        count = 3 + 7 * len(self.before)
        return Sizes(np.zeros(count), np.zeros(count), np.zeros(count), np.ones(count), 0.0)

    def _of(self, tile: Matrix) -> Sizes:
        """Curvatures, slopes beside their ends, and of each point before both: a change, its pace, and the change of rows that have gone over a bend.

        And the slopes of both beside opposite ends, since who is beyond one plane and who is before another are all but those between them.
        """
        features, target = tile[:-1], tile[-1]
        here = self.point @ features
        values, slopes, bends = self.loss.of_rows(self.own, here, target)
        weights, known = [bends], [1.0]
        ends = [
            end_at(lambda at: self.loss.slope(self.own, at[:, 0], target)[:, None], (len(target), 1), side)
            for side in (-FAR_OUT, FAR_OUT)
        ]
        for end in ends:
            weights.append(slopes if end is None else slopes - end[:, 0])
            known.append(float(end is not None))
        opposite = sum(end[:, 0] for end in ends if end is not None)
        for point in self.before:
            there = point @ features
            _, slopes_there, bends_there = self.loss.of_rows(self.own, there, target)
            for change in (slopes - slopes_there, bends - bends_there):
                pace = pace_of(change, here - there)
                weights += [change, pace, folded_of(change, pace, bends, bends_there)]
                known += [1.0, 1.0, 1.0]
            weights.append(slopes + slopes_there - opposite)
            known.append(known[1] * known[2])
        return _sizes(np.array(weights), np.array(known), float(values.sum()))


@dataclass(eq=False)
class PartsAt:
    """The rows of a site at a point; that they are looked at is a pass."""

    sums: RowSums
    rows: int
    point: Vector
    _loss: float | None = None

    def _looked(self, before: Sequence[PartsAt]) -> Sizes:
        sums = self.sums
        work = CarriedSums(sums.tiles, sums.loss, sums.own, self.point, tuple(one.point for one in before))
        found = reduce(Sizes.with_others, sums.passes.over(sums.parts, work))
        self._loss = found.loss
        return found

    def carriers(self, before: Sequence[PartsAt], bent: bool) -> float:
        """By the fewest that carry anything told."""
        found = self._looked(before)
        told = np.where(found.known > 0.0, found.about, np.inf)
        counts, largest = (
            one[3:].reshape(-1, 7)[:, :6].reshape(-1, 2, 3)[:, : 1 + bent] for one in (found.about, found.largest)
        )
        changes = between(counts[..., 0], counts[..., 1], is_small(largest[..., 2], largest[..., 0]))
        return float(np.min([told[:3].min(), told[9::7].min(initial=np.inf), changes.min(initial=np.inf)]))

    @property
    def loss(self) -> float:
        """What all rows add up to."""
        return self._looked(()).loss if self._loss is None else self._loss

    def wanted(self, start: PartsAt, least: int) -> float:
        """By how many rows there are, and how well they fit."""
        return wanted_of(float(self.rows), self.loss > start.loss, least)

    def tells_together(self, before: Sequence[PartsAt], anywhere: PartsAt, least: int) -> bool:
        """Rows are not held side by side here, so that nobody sees which are alike."""
        return False

    def tells_by_kinds(self, before: Sequence[PartsAt], anywhere: PartsAt, least: int) -> bool:
        """Nor are they here."""
        return False

    def kept(self) -> PartsAt:
        """All of it, which is a point."""
        return self
