"""How many of a site's rows carry what is told of them at a point.

Far from any model a loss is a straight line for all rows but those whose prediction lies near its bend: there a sum of curvatures is that of
one row, and two sums of slopes differ by one. Weights v are about (Σ|v|)²/Σv² rows: n where all are alike, 1 where one outweighs the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector

# A slope that is the same here and twice as far out does not change beyond.
FAR_OUT, SATURATED = 1e6, 1e-9
# One of so many rows at least must carry an answer where a model fits them worse than none.
PART = 8
# No start is taken to fit rows worse than so many times what their own best constant does.
NULLS = 2.0
# A row makes much of a change with this part of the largest; over a small step no curvature grows so many times.
MUCH, FOLD = 0.1, 100.0
# So many numbers of points before are looked at together.
AT_ONCE = 1_000_000

Numbers = NDArray[np.float64]


class Looked(Protocol):
    """Some rows at a point, of which it can be said how many carry what is told there."""

    def carriers(self, before: Sequence[Any], bent: bool) -> float:
        """How many of these rows carry what is told, or the difference to what was told of them at a point before."""

    def wanted(self, start: Any, least: int) -> float:
        """How many there must be, where these rows were at the start before any model."""

    def tells_of_few(self, before: Sequence[Any], anywhere: Any, least: int) -> bool:
        """Whether the answer, put together with those before, tells of fewer rows that are alike than `least`; `anywhere` no two are that are not."""

    def kept(self) -> Looked:
        """What is needed of them once they have answered."""


class RowsAt(NamedTuple):
    """Rows at a point, a row a row and a column an equation: predictions, and the slopes and curvatures of what each row adds.

    `ends` are the slopes far out to either side, where they have an end: their sums are known beforehand. `weight` is what a row counts, `loss`
    what all add up to, and `null` what they would with the constant that suits them best.
    """

    predictions: Matrix
    slopes: Matrix
    curvatures: Matrix
    ends: tuple[Matrix, ...]
    weight: Vector
    loss: float
    null: float = np.inf

    def carriers(self, before: Sequence[RowsAt], bent: bool) -> float:
        """By the rows themselves."""
        return carriers(self, before, bent)

    def wanted(self, start: RowsAt, least: int) -> float:
        """By how many rows there are, and how well they fit."""
        return carriers_wanted(self, start, least)

    def tells_of_few(self, before: Sequence[RowsAt], anywhere: RowsAt, least: int) -> bool:
        """By the kinds of rows that there are at the point."""
        return tells_of_few(self, before, anywhere, least)

    def kept(self) -> RowsAt:
        """All but the ends."""
        return self._replace(ends=())


# The rows of which something is told at a point.
Watched = Callable[[Vector], Looked]
Slopes = Callable[[Matrix], Matrix]


def ends_of(slopes: Slopes, shape: tuple[int, ...]) -> tuple[Matrix, ...]:
    """The slopes far out to either side, where they do not change any more."""
    return tuple(end for end in (end_at(slopes, shape, side) for side in (-FAR_OUT, FAR_OUT)) if end is not None)


def end_at(slopes: Slopes, shape: tuple[int, ...], side: float) -> Matrix | None:
    """The slopes so far out; None where they change beyond."""
    with np.errstate(all="ignore"):
        end, beyond = slopes(np.full(shape, side)), slopes(np.full(shape, 2.0 * side))
        ends = np.isfinite(end).all() and (np.abs(end - beyond) <= SATURATED * np.abs(end)).all()
    return end if ends else None


def about(weights: Numbers) -> Numbers:
    """How many rows weights are about, which are in the last but one place; infinity where all are 0, and nothing is told."""
    size = np.abs(weights)
    largest = size.max(axis=-2, keepdims=True, initial=0.0)
    size /= np.where(largest > 0.0, largest, 1.0)  # so that no square is beyond all numbers, or lost
    squares = np.einsum("...nk,...nk->...k", size, size)
    return np.divide(size.sum(axis=-2) ** 2, squares, out=np.full_like(squares, np.inf), where=squares != 0.0)


def carriers(now: RowsAt, before: Sequence[RowsAt], bent: bool) -> float:
    """How many rows carry what is told at a point, or the difference to what was told at one before, going by the fewest.

    Slopes are told, and with `bent` curvatures. Those far out decide of slopes, too: two points side by side tell them.
    """
    together, slopes = max(1, AT_ONCE // max(now.curvatures.size, 1)), now.slopes.shape[1]
    with np.errstate(all="ignore"):  # a point may be anywhere
        counts = [about(now.curvatures), *(about(now.slopes - end) for end in now.ends)]
        for first in range(0, len(before), together):
            some = before[first : first + together]
            apart = now.predictions - np.stack([one.predictions for one in some])
            curvatures = np.stack([one.curvatures for one in some])
            change = now.slopes - np.stack([one.slopes for one in some])
            counts.append(_between(change, apart, now.curvatures[:, :slopes], curvatures[..., :slopes]))
            if bent:
                counts.append(_between(now.curvatures - curvatures, apart, now.curvatures, curvatures))
    return float(np.min([one.min(initial=np.inf) for one in counts]))


def pace_of(change: Numbers, apart: Numbers) -> Numbers:
    """How fast weights change with the prediction; 0 where that stands still."""
    return np.divide(change, apart, out=np.zeros_like(change), where=apart != 0.0)


def folded_of(change: Numbers, pace: Numbers, here: Numbers, there: Numbers) -> Numbers:
    """The change of those rows of which the pace and the curvatures at both ends are not alike: they have gone over a bend."""
    size = np.abs(pace)
    less, more = np.minimum(np.minimum(here, there), size), np.maximum(np.maximum(here, there), size)
    return np.where(more <= FOLD * less, 0.0, change)


def between(change: Numbers, pace: Numbers, most_folded: Numbers, most: Numbers) -> Numbers:
    """Rows that carry a change; over a small step those that carry its pace will do: that is the curvature, which is told anyway.

    A step is small where no row that makes much of the largest change has gone over a bend.
    """
    small = ~(most_folded >= MUCH * most) | (most_folded == 0.0)
    return np.where(small, np.maximum(change, pace), change)


def _between(change: Numbers, apart: Numbers, here: Numbers, there: Numbers) -> Numbers:
    pace = pace_of(change, apart)
    largest = [np.abs(one).max(axis=-2, initial=0.0) for one in (folded_of(change, pace, here, there), change)]
    return between(about(change), about(pace), *largest)


def carriers_wanted(now: RowsAt, start: RowsAt, least: int) -> float:
    """How many there must be, by how many rows there are, and how well they fit."""
    # Where all start follows from what was told, which somebody can have made as bad as he likes.
    none = min(start.loss, NULLS * start.null)
    return wanted_of(float(about(now.weight[:, None])[0]), now.loss > none, least)


def wanted_of(rows: float, worse: bool, least: int) -> float:
    """How many of so many rows there must be: one in so many; where a model fits them no worse than none does, `least` are enough.

    A fit by which outcomes can nearly be told apart ends where few rows are near the bend, and fits well there.
    """
    part = rows / PART
    return part if worse else min(float(least), part)


# Rows are of one kind where their predictions lie nearer together than this, over the spread of all, and kinds farther apart: at any of these.
RESOLUTIONS = tuple(1e-6 * 2.0**power for power in range(18))
# A kind of rows is told of where a combination of answers is about it but for this.
BUT_FOR = 1e-2
# Kinds that are more than half as many as rows are asked after once there are so many points: fewer are no equations for them.
POINTS_OF_MANY = 12


def tells_of_few(now: RowsAt, before: Sequence[RowsAt], anywhere: RowsAt, least: int) -> bool:
    """Whether points on one line, say, at which rows are of few kinds, tell by their number of a kind of few rows.

    Where predictions follow from one column of few values, a sum of curvatures is Σ over its values v of w(v)·M_v, with M_v the sum over the
    rows that have v: as many points as values give every M_v, though each is about all rows. Kinds are not asked after where they are all that
    there is, as with levels alone: then M_v tells how many rows there are of a kind, and no more of them. Rows of a kind need not be the same
    to the last digit, or whoever asks would add a little of another column; then M_v is told as far as they are, and combinations that are
    smaller than their differences tell nothing.
    """
    others, here = anywhere.predictions, now.predictions
    whole, ordered = _kinds(others, np.argsort(others, axis=0), RESOLUTIONS[0]), np.argsort(here, axis=0)
    seen = {len(whole.sizes)} if whole is not None else set()
    for apart in RESOLUTIONS:
        kinds = _kinds(here, ordered, apart)
        if kinds is None or len(kinds.sizes) in seen:
            continue
        seen.add(len(kinds.sizes))
        if (kinds.sizes < least).any() and _told_of(kinds, now, before, apart, least):
            return True
    return False


class _Kinds(NamedTuple):
    """Rows that are alike: the first of each kind, of which kind each row is, and how many each has."""

    first: NDArray[np.int64]
    place: NDArray[np.int64]
    sizes: NDArray[np.int64]


def _told_of(kinds: _Kinds, now: RowsAt, before: Sequence[RowsAt], apart: float, least: int) -> bool:
    """Whether the answers at all points with these kinds tell of one that few rows are of."""
    first, place, count = kinds
    same = [
        one
        for one in before
        if _spread(one.predictions - one.predictions[first][place]) <= apart * _spread(one.predictions)
    ]
    if len(count) > len(place) / 2 and len(same) < POINTS_OF_MANY:
        return False
    counted = np.where(now.weight[first] > 0.0, now.weight[first], 1.0)[:, None]
    weights = np.column_stack([one.curvatures[first] / counted for one in (*same, now)])
    weights = weights / np.maximum(np.abs(weights).max(axis=0), np.finfo(float).tiny) * np.sqrt(count)[:, None]
    turned, sizes, _ = np.linalg.svd(weights, full_matrices=False)
    turned = turned[:, sizes > apart**2 * sizes[0]]
    return bool(((turned**2).sum(axis=1)[count < least] > 1.0 - BUT_FOR).any())


def _spread(numbers: Matrix) -> float:
    return float(np.ptp(numbers, axis=0).max(initial=0.0)) if len(numbers) else 0.0


def _kinds(predictions: Matrix, ordered: NDArray[np.int64], apart: float) -> _Kinds | None:
    """Rows alike in their predictions, of every equation, which are `ordered` by each; None where some lie between two kinds."""
    unit = apart * max(_spread(predictions), float(np.finfo(float).tiny))
    places = np.zeros(predictions.shape, np.int64)
    for column, order, place in zip(predictions.T, ordered.T, places.T, strict=True):
        with np.errstate(all="ignore"):
            begins = np.append(True, np.diff(column[order]) > unit)[: len(order)]
            number = np.cumsum(begins) - 1
            if not (column[order] - column[order][begins][number] <= unit).all():
                return None
        place[order] = number
    _, first, place, count = np.unique(places, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return _Kinds(first, place.reshape(-1), count)
