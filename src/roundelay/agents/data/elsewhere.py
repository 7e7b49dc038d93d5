"""What this site's rows have answered in other runs and epochs: two questions can differ by one patient whether one run asks both or two.

For each question that tells of rows the site's folder keeps what each row added, in the order of their marks, by which rows are known again
whatever other columns a plan has. It is the site's own, and never sent. Another question is held against all of them.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.agreement.disk import make_private, one_at_a_time, write_whole
from roundelay.agents.agreement.ledger import Data, LedgerError
from roundelay.agents.data.marks import Marked, alike
from roundelay.kernels import Matrix
from roundelay.problems.carriers import RowsAt

FOLDER, LOCK, ENDING = "answered", ".answered.lock", ".npz"
# What rows add is the same where it differs by no more than this, over the largest.
ROUNDING = 1e-13


class _Weights(NamedTuple):
    """What some rows added to a question: predictions, slopes less what they are far out to one side, where they come to an end, curvatures, and what each counts."""

    predictions: Matrix
    slopes: Matrix
    curvatures: Matrix
    weight: Matrix
    from_end: NDArray[np.bool_]


class _There(NamedTuple):
    """The weights of an earlier question for the rows as they stand now, and for which of these it has some."""

    groups: tuple[_Weights, ...]
    known: NDArray[np.bool_]


@dataclass(eq=False)
class Elsewhere:
    """What the rows of a site answered before an epoch of a run, or answer beside it."""

    folder: Path
    marked: Marked
    run: str
    epoch: int
    _own: set[str] = field(default_factory=set)
    _found: dict[str, _There | None] = field(default_factory=dict)
    _alike: dict[tuple[str, ...], tuple[NDArray[np.int64], NDArray[np.int64]] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """What can't be read is said now, before anything is asked."""
        self._look()

    def alone(self) -> AbstractContextManager[None]:
        """No other run of this site answers meanwhile."""
        return one_at_a_time(self.folder / LOCK)

    def before(self, now: Sequence[RowsAt]) -> list[list[RowsAt]]:
        """For each group of rows what they, or the groups of other questions, added elsewhere."""
        self._look()
        there = [one for name, one in self._found.items() if one is not None and name not in self._own]
        return [
            [rows for one in there for rows in _beside(group, place, len(now), one)] for place, group in enumerate(now)
        ]

    def note(self, now: Sequence[RowsAt]) -> None:
        """This is answered here: on disk when it returns."""
        arrays: dict[str, Any] = {
            f"{part}{place}": array
            for place, rows in enumerate(now)
            for part, array in zip(_Weights._fields, _weights_of(rows, self.marked.order), strict=True)
        }
        content = io.BytesIO()
        names = np.array(sorted(self.marked.data.columns), str)
        np.savez_compressed(content, columns=names, cells=np.array(self.marked.data.cells), **arrays)
        numbers = (np.ascontiguousarray(one).tobytes() for one in arrays.values())
        digest = hashlib.sha256(self.marked.data.cells.encode() + b"".join(numbers)).hexdigest()
        name = f"{self.run}-{self.epoch}-{digest[:16]}{ENDING}"
        self._own.add(name)
        if not list(self._place.glob(f"*-{digest[:16]}{ENDING}")):  # what was answered before tells nothing again
            make_private(self._place)
            write_whole(self._place / name, content.getvalue())

    @cached_property
    def _place(self) -> Path:
        return self.folder / FOLDER

    def _look(self) -> None:
        for path in sorted(self._place.glob(f"*{ENDING}")):
            if path.name not in self._found and path.name not in self._own:
                self._found[path.name] = self._read(path)

    def _kinds_of(self, data: Data) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        key = (*data.columns, data.cells)
        if key not in self._alike:
            self._alike[key] = alike(self.folder, self.marked, data)
        return self._alike[key]

    def _read(self, path: Path) -> _There | None:
        """None where no row of it is known again."""
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
                columns = dict.fromkeys(kept["columns"].tolist(), "")
                data = Data(columns=columns, cells=str(kept["cells"]))
                groups = [
                    _Weights(*(kept[f"{part}{place}"] for part in _Weights._fields))
                    for place in range((len(kept.files) - 2) // len(_Weights._fields))
                ]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise LedgerError(
                f"{path} does not hold what this site wrote there, so that nobody can say any more what was told at that question: restore the "
                "file from a copy. Without it, a question may be answered that tells of a row together with that one."
            ) from None
        kinds = self._kinds_of(data)
        if kinds is None or any(len(one.slopes) != len(kinds[1]) for one in groups):
            return None
        here, there = kinds
        count = max(here.max(initial=-1), there.max(initial=-1)) + 1
        then = np.bincount(there, minlength=count)
        known = np.bincount(here, minlength=count) == then
        back = np.argsort(self.marked.order)
        return _There(tuple(_by_kinds(one, here[back], there, then) for one in groups), known[here[back]])


def _weights_of(rows: RowsAt, order: NDArray[np.int64]) -> _Weights:
    slopes = rows.slopes - rows.ends[0] if rows.ends else rows.slopes
    ended = np.array(bool(rows.ends))
    return _Weights(rows.predictions[order], slopes[order], rows.curvatures[order], rows.weight[order, None], ended)


def _by_kinds(
    weights: _Weights, here: NDArray[np.int64], there: NDArray[np.int64], count: NDArray[np.int64]
) -> _Weights:
    """For each row as it stands now the mean of those of its kind: of rows that are alike nobody can tell one from another."""

    def means(numbers: Matrix) -> Matrix:
        sums = np.column_stack([np.bincount(there, column, len(count)) for column in numbers.T])
        return (sums / np.maximum(count, 1)[:, None])[here]

    predictions, slopes, curvatures, weight, from_end = weights
    return _Weights(means(predictions), means(slopes), means(curvatures), means(weight), from_end)


def _beside(now: RowsAt, place: int, groups: int, there: _There) -> Iterator[RowsAt]:
    """An earlier question as one about these rows; those that it has not are taken as they are now, since who came or went is the ledger's matter."""
    for weights in [there.groups[place]] if len(there.groups) == groups else there.groups:
        if bool(weights.from_end) != bool(now.ends):
            continue  # slopes of two kinds have nothing to do with each other
        if weights.slopes.shape[1] == now.slopes.shape[1]:
            yield _as_now(now, weights, there.known)
            continue
        for number in range(weights.slopes.shape[1]):
            bend = min(number, weights.curvatures.shape[1] - 1)
            one = weights._replace(
                predictions=weights.predictions[:, number : number + 1],
                slopes=weights.slopes[:, number : number + 1], curvatures=weights.curvatures[:, bend : bend + 1],
            )  # fmt: skip
            yield _as_now(now, one, there.known)


def _as_now(now: RowsAt, weights: _Weights, known: NDArray[np.bool_]) -> RowsAt:
    """Whoever has the totals multiplies them by any number: so that rows count what they do now, as most of them do."""
    count = weights.weight[:, 0]
    both = known & (now.weight > 0.0) & (count > 0.0)
    factor = float(np.median(now.weight[both] / count[both])) if both.any() else 1.0
    slopes = factor * weights.slopes + (now.ends[0] if now.ends else 0.0)
    bends = weights.curvatures if weights.curvatures.shape == now.curvatures.shape else weights.curvatures[:, :1]
    predictions, slopes, bends = (
        np.broadcast_to(there, here.shape)
        for there, here in (
            (weights.predictions, now.predictions),
            (slopes, now.slopes),
            (factor * bends, now.curvatures),
        )
    )
    weight, known = np.where(known, factor * count, 0.0), known[:, None]
    if _same(slopes, now.slopes, known) and _same(bends, now.curvatures, known):
        return now._replace(ends=(), weight=weight)
    return now._replace(
        predictions=np.where(known, predictions, now.predictions), slopes=np.where(known, slopes, now.slopes),
        curvatures=np.where(known, bends, now.curvatures), ends=(), weight=weight,
    )  # fmt: skip


def _same(one: Matrix, other: Matrix, known: NDArray[np.bool_]) -> bool:
    """Whether two questions are one but for rounding: what rounding makes of a row is of no row."""
    apart = np.where(known, np.abs(one - other), 0.0).max(initial=0.0)
    return bool(apart <= ROUNDING * np.abs(other).max(initial=0.0))
