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
# Two numbers are the same but for rounding; weights of a row are so many times others but for little.
ROUNDING, SUITS = 1e-12, 1e-2
# So many numbers of points before are looked at together.
AT_ONCE, AT_A_TIME = 1_000_000, 64

Numbers = NDArray[np.float64]


class Looked(Protocol):
    """Some rows at a point, of which it can be said how many carry what is told there."""

    def carriers(self, before: Sequence[Any], bent: bool) -> float:
        """How many of these rows carry what is told, or the difference to what was told of them at a point before."""

    def wanted(self, start: Any, least: int) -> float:
        """How many there must be, where these rows were at the start before any model."""

    def tells_together(self, before: Sequence[Any], anywhere: Any, least: int) -> bool:
        """Whether points, put together otherwise than by a difference, tell of fewer rows than `least`; `anywhere` no two are alike that are not."""

    def tells_by_kinds(self, before: Sequence[Any], anywhere: Any, least: int) -> bool:
        """Whether points at which rows are of few kinds do, by their number."""

    def kept(self) -> Looked:
        """What is needed of them once they have answered."""


class RowsAt(NamedTuple):
    """Rows at a point, a row a row and a column an equation: predictions, and the slopes and curvatures of what each row adds.

    `ends` are the slopes far out to either side, where they have an end: their sums are known beforehand. `weight` is what a row counts, `loss`
    what all add up to, and `null` what they would with the constant that suits them best. `follows` says that what a row adds follows from its own
    predictions, so that whoever knows these knows it.
    """

    predictions: Matrix
    slopes: Matrix
    curvatures: Matrix
    ends: tuple[Matrix, ...]
    weight: Vector
    loss: float
    null: float = np.inf
    follows: bool = True

    def carriers(self, before: Sequence[RowsAt], bent: bool) -> float:
        """By the rows themselves."""
        return carriers(self, before, bent)

    def wanted(self, start: RowsAt, least: int) -> float:
        """By how many rows there are, and how well they fit."""
        return carriers_wanted(self, start, least)

    def tells_together(self, before: Sequence[RowsAt], anywhere: RowsAt, least: int) -> bool:
        """By what each row adds."""
        return tells_by_a_factor(self, before, least) or tells_by_levels(self, before, anywhere, least)

    def tells_by_kinds(self, before: Sequence[RowsAt], anywhere: RowsAt, least: int) -> bool:
        """By the kinds of rows that there are at the point."""
        return tells_by_kinds(self, before, anywhere, least)

    @property
    def counted(self) -> float:
        """How many rows these are, by what they count."""
        return float(about(self.weight[:, None])[0])

    def without(self, some: RowsAt) -> RowsAt:
        """What is told of the other rows where it is told of these and of some of them."""
        return self._replace(
            slopes=self.slopes - some.slopes, curvatures=self.curvatures - some.curvatures,
            ends=tuple(end - other for end, other in zip(self.ends, some.ends, strict=True)), weight=self.weight - some.weight,
        )  # fmt: skip

    def kept(self) -> RowsAt:
        """All but the ends."""
        return self._replace(ends=())


def of_all_rows(outside: Sequence[RowsAt]) -> RowsAt:
    """What is told of all rows by the answers about those outside of each of some folds, wherever they were asked: each row is in all but one."""
    mean = 1.0 / (len(outside) - 1)
    parts = ("predictions", "slopes", "curvatures", "weight", "loss")
    ends = tuple(mean * np.sum(each, axis=0) for each in zip(*(one.ends for one in outside), strict=True))
    return outside[0]._replace(
        **{part: mean * sum(getattr(one, part) for one in outside) for part in parts}, ends=ends, null=np.inf
    )


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
            bends = now.curvatures[:, :slopes], np.stack([one.curvatures for one in some])
            others = np.stack([one.slopes for one in some])
            counts.append(_between(now.slopes - others, apart, bends[0], bends[1][..., :slopes]))
            if len(now.ends) > 1:  # who is beyond one plane and who is before another are all but those between them
                counts.append(about(now.slopes - now.ends[0] + others - now.ends[1]))
            if bent:
                counts.append(_between(now.curvatures - bends[1], apart, now.curvatures, bends[1]))
    return float(np.min([one.min(initial=np.inf) for one in counts]))


def pace_of(change: Numbers, apart: Numbers) -> Numbers:
    """How fast weights change with the prediction; 0 where that stands still."""
    return np.divide(change, apart, out=np.zeros_like(change), where=apart != 0.0)


def folded_of(change: Numbers, pace: Numbers, here: Numbers, there: Numbers) -> Numbers:
    """The change of those rows of which the pace and the curvatures at both ends are not alike: they have gone over a bend."""
    size = np.abs(pace)
    less, more = np.minimum(np.minimum(here, there), size), np.maximum(np.maximum(here, there), size)
    return np.where(more <= FOLD * less, 0.0, change)


def is_small(most_folded: Numbers, most: Numbers) -> NDArray[np.bool_]:
    """Whether a step is small: no row that makes much of the largest change has gone over a bend."""
    return ~(most_folded >= MUCH * most) | (most_folded == 0.0)


def between(change: Numbers, pace: Numbers, small: NDArray[np.bool_]) -> Numbers:
    """Rows that carry a change; over a small step those that carry its pace will do: that is the curvature, which is told anyway."""
    return np.where(small, np.maximum(change, pace), change)


def _between(change: Numbers, apart: Numbers, here: Numbers, there: Numbers) -> Numbers:
    pace = pace_of(change, apart)
    return between(about(change), about(pace), _is_small(change, pace, here, there))


def _is_small(change: Numbers, pace: Numbers, here: Numbers, there: Numbers) -> NDArray[np.bool_]:
    return is_small(*(np.abs(one).max(axis=-2, initial=0.0) for one in (folded_of(change, pace, here, there), change)))


def carriers_wanted(now: RowsAt, start: RowsAt, least: int) -> float:
    """How many there must be, by how many rows there are, and how well they fit."""
    # Where all start follows from what was told, which somebody can have made as bad as he likes.
    none = min(start.loss, NULLS * start.null)
    return wanted_of(now.counted, now.loss > none, least)


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


# Rows are on one level where what they add lies nearer together than this, over the largest of it: at any of these.
LEVELS = (1e-13, 1e-10, 1e-7, 1e-5, 1e-4, 1e-3)
# Predictions that have this part of another's size are as good as none.
SMALL_BESIDE = 1e-3


def tells_by_a_factor(now: RowsAt, before: Sequence[RowsAt], least: int) -> bool:
    """Whether all rows but few add so many times what they added at one point before.

    Not over a small step: there all that is told is the curvature, as with a difference.
    """
    together, slopes = max(1, AT_ONCE // max(now.curvatures.size, 1)), now.slopes.shape[1]
    enough = min(float(least), now.counted / PART)
    with np.errstate(all="ignore"):  # a point may be anywhere
        for first in range(0, len(before), together):
            some = before[first : first + together]
            apart = now.predictions - np.stack([one.predictions for one in some])
            here, there = now.curvatures, np.stack([one.curvatures for one in some])
            others = np.stack([one.slopes for one in some])
            change = now.slopes - others
            small = _is_small(change, pace_of(change, apart), here[:, :slopes], there[..., :slopes])
            told = [(now.slopes - end, others - end, small) for end in now.ends or (np.zeros_like(now.slopes),)]
            told.append((here, there, _is_small(here - there, pace_of(here - there, apart), here, there)))
            if any(_few_are_left(one, other, small, enough) for one, other, small in told):
                return True
    return False


def _few_are_left(now: Matrix, before: Numbers, small: NDArray[np.bool_], enough: float) -> bool:
    """Whether few rows are left of weights of which others are taken as many times as suits most rows, the median; where that suits few, nothing is."""
    # Where all rows add the same nothing is told.
    level = np.ptp(now, axis=0) <= ROUNDING * np.abs(now).max(axis=0, initial=0.0)
    point, equation = np.nonzero(~small & ~level)
    for most in range(0, len(point), AT_A_TIME):
        chosen = point[most : most + AT_A_TIME], equation[most : most + AT_A_TIME]
        here, there = now[:, chosen[1]], before[chosen[0], :, chosen[1]].T
        ratio, size = pace_of(here, there), np.abs(there)
        order, half = np.argsort(ratio, axis=0), 0.5 * size.sum(axis=0)
        middle = (np.cumsum(np.take_along_axis(size, order, axis=0), axis=0) < half).sum(axis=0)
        place = np.take_along_axis(order, np.minimum(middle, len(size) - 1)[None], axis=0)
        taken = np.take_along_axis(ratio, place, axis=0) * there
        rest = here - taken
        suits = np.where(np.abs(rest) <= SUITS * np.abs(taken), size, 0.0).sum(axis=0) >= half
        rest[np.abs(rest) <= ROUNDING * (np.abs(here) + np.abs(taken))] = 0.0
        if (about(rest) < enough)[suits].any():
            return True
    return False


def tells_by_levels(now: RowsAt, before: Sequence[RowsAt], anywhere: RowsAt, least: int) -> bool:
    """Whether points at which each row adds one of few numbers tell of few rows by any combination, also with the sum of all rows as they are.

    Far out, or where a formula's levels alone count, rows add the same, 0, 1 or a half, whatever else is in them. So whoever asks there knows what
    each kind of rows adds before he has asked, and solves for the sum over each. Where all rows add something else he knows it of none; and where
    the predictions at these points are all that there is of a row, he learns nothing of it by that.
    """
    if not now.follows:
        return False
    whole = _all_kinds(anywhere)
    counted = {one.weight.tobytes(): one.weight > 0.0 for one in (now, *before)}
    return any(
        _levels_tell(now, before, some & (now.weight > 0.0), anywhere, whole, least) for some in counted.values()
    )


def _levels_tell(
    now: RowsAt, before: Sequence[RowsAt], some: NDArray[np.bool_], anywhere: RowsAt, whole: int, least: int
) -> bool:
    """Whether they do of some rows, by the points at which all of these added something."""
    for apart in LEVELS:
        here = _levels_at(now, now, some, apart)
        if here is None or not here.place.any():
            continue
        counting = [one for one in before if (one.weight[some] > 0.0).all()]
        levels = [(one, _levels_at(one, now, some, apart)) for one in counting]
        points = [(now, here), *((one, found) for one, found in levels if found is not None)]
        _, first, count = np.unique(
            np.column_stack([found.place for _, found in points]), axis=0, return_index=True, return_counts=True
        )
        if len(count) == whole or not (count < least).any():
            continue
        known = np.column_stack([np.ones(len(first)), *(found.weights[first] for _, found in points[1:])])
        told = _alone(np.column_stack([known, here.weights[first]]), count, apart, least)
        if (told & ~_alone(known, count, apart, least)).any():
            each = [one.predictions[some] for one, _ in points]
            if not any(
                _is_all_there_is(anywhere.predictions[some], known) for known in (each[0], np.column_stack(each))
            ):
                return True
    return False


def _is_all_there_is(rows: Matrix, known: Matrix) -> bool:
    """Whether predictions anywhere follow from those that are known, but for what is far smaller than these."""
    known = np.column_stack([np.ones(len(known)), known / np.maximum(np.abs(known).max(axis=0), np.finfo(float).tiny)])
    rest = rows - known @ np.linalg.lstsq(known, rows, rcond=SMALL_BESIDE)[0]
    return bool(np.abs(rest).max(initial=0.0) <= RESOLUTIONS[0] * _spread(rows))


class _Levels(NamedTuple):
    """On which level each row is at a point, and what it adds there, over the largest."""

    place: NDArray[np.int64]
    weights: Matrix


def _levels_at(rows: RowsAt, now: RowsAt, some: NDArray[np.bool_], apart: float) -> _Levels | None:
    """None where so many rows have no level between them, or some lie between two."""
    with np.errstate(all="ignore"):  # a point may be anywhere
        slopes = rows.slopes - now.ends[0] if now.ends else rows.slopes
        weights = np.column_stack([slopes, rows.curvatures])[some] / now.weight[some, None]
        weights /= np.maximum(np.abs(weights).max(axis=0, initial=0.0), np.finfo(float).tiny)
    if not np.isfinite(weights).all():
        return None
    kinds = _kinds(weights, np.argsort(weights, axis=0), apart)
    return None if kinds is None or len(kinds.sizes) > len(weights) / PART else _Levels(kinds.place, weights)


def _alone(weights: Matrix, count: NDArray[np.int64], smallest: float, least: int) -> NDArray[np.bool_]:
    """The kinds of few rows that a combination of weights is about alone, but for combinations smaller than that beside the largest."""
    largest = np.maximum(np.abs(weights).max(axis=0), np.finfo(float).tiny)
    turned, sizes, _ = np.linalg.svd(weights / largest * np.sqrt(count)[:, None], full_matrices=False)
    turned = turned[:, sizes > smallest * sizes[0]]
    return ((turned**2).sum(axis=1) > 1.0 - BUT_FOR) & (count < least)


def tells_by_kinds(now: RowsAt, before: Sequence[RowsAt], anywhere: RowsAt, least: int) -> bool:
    """Whether points on one line, say, at which rows are of few kinds, tell by their number of a kind of few rows.

    Where predictions follow from one column of few values, a sum of curvatures is Σ over its values v of w(v)·M_v, with M_v the sum over the
    rows that have v: as many points as values give every M_v, though each is about all rows. Kinds are not asked after where they are all that
    there is, as with levels alone: then M_v tells how many rows there are of a kind, and no more of them. Rows of a kind need not be the same
    to the last digit, or whoever asks would add a little of another column; then M_v is told as far as they are, and combinations that are
    smaller than their differences tell nothing.
    """
    here = now.predictions
    ordered, seen = np.argsort(here, axis=0), {_all_kinds(anywhere)}
    for apart in RESOLUTIONS:
        kinds = _kinds(here, ordered, apart * _spread(here))
        if kinds is None or len(kinds.sizes) in seen:
            continue
        seen.add(len(kinds.sizes))
        if (kinds.sizes < least).any() and _told_of(kinds, now, before, apart, least):
            return True
    return False


def _all_kinds(anywhere: RowsAt) -> int:
    """How many kinds of rows there are at a point where none are alike that are not; 0 where there are as good as no two alike."""
    here = anywhere.predictions
    kinds = _kinds(here, np.argsort(here, axis=0), RESOLUTIONS[0] * _spread(here))
    return 0 if kinds is None else len(kinds.sizes)


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
    return bool(_alone(weights, count, apart**2, least).any())


def _spread(numbers: Matrix) -> float:
    return float(np.ptp(numbers, axis=0).max(initial=0.0)) if len(numbers) else 0.0


def _kinds(numbers: Matrix, ordered: NDArray[np.int64], apart: float) -> _Kinds | None:
    """Rows alike in all their numbers, which are `ordered` by each; None where some lie between two kinds."""
    unit = max(apart, float(np.finfo(float).tiny))
    places = np.zeros(numbers.shape, np.int64)
    for column, order, place in zip(numbers.T, ordered.T, places.T, strict=True):
        with np.errstate(all="ignore"):
            begins = np.append(True, np.diff(column[order]) > unit)[: len(order)]
            number = np.cumsum(begins) - 1
            if not (column[order] - column[order][begins][number] <= unit).all():
                return None
        place[order] = number
    _, first, place, count = np.unique(places, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return _Kinds(first, place.reshape(-1), count)
