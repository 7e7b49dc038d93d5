"""Where a site's rows have answered in an epoch, and whether an answer at one point more would be about few of them.

Whoever asks first may ask anywhere, and any member can send the agreed optimiser anywhere, by false data of its own in a sum or two. So what a
point would tell is looked at by each site, of its own rows, before it answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from roundelay.agents.data.objectives import Local
from roundelay.algorithms.sealed.questions import HESSIANS, OWN, Asked, Place, Question
from roundelay.kernels import Vector
from roundelay.problems.carriers import Looked, RowsAt, Watched, of_all_rows


class _Rows(NamedTuple):
    """Some rows of the site, what they are where no model is, anywhere, and at each point where something of them was told; `asked` has those of no folds."""

    watched: Watched
    start: Looked
    anywhere: Looked
    before: list[Looked]
    asked: list[Looked]


class Elsewhere(Protocol):
    """What this site's rows have answered in other runs and epochs."""

    def alone(self) -> AbstractContextManager[None]:
        """No other run of this site answers meanwhile."""

    def before(self, now: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """For each group of rows what they added to other questions."""

    def note(self, now: Sequence[Any]) -> None:
        """This is answered here: on disk when it returns."""


class Carried:
    """The rows of one site in one epoch: all of them, or those outside of each fold.

    `told` has the sums before the fit, from which the units follow; `least` is how many rows an answer must be about, and `asks` what the agreed
    optimiser may ask for.
    """

    def __init__(
        self,
        local: Local,
        told: tuple[Vector, ...],
        dim: int,
        least: int,
        asks: Iterable[Asked],
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._local, self._told, self._least, self._elsewhere = local, told, least, elsewhere
        start = local.start(told)
        self._start = np.zeros(dim) if start is None else start
        self._bent = any(asked in (*HESSIANS, *OWN) for asked in asks)
        self._rows: dict[bool, list[_Rows]] = {}

    def admits(self, question: Question, place: Place) -> bool:
        """Whether enough rows carry what is told there, and what it tells together with what was told before; if so, it is told."""
        now = self._at(question, place)
        with nullcontext() if self._elsewhere is None else self._elsewhere.alone():
            others = self._told_elsewhere(now)
            enough = (self._are_enough(*one, beside, question) for one, beside in zip(now, others, strict=True))
            if self._least > 1 and not (all(enough) and self._folds_are_enough([rows for _, rows in now])):
                return False
            self._keep(now, question)
        return True

    def _told_elsewhere(self, now: list[tuple[_Rows, Looked]]) -> Sequence[Sequence[Looked]]:
        return [()] * len(now) if self._elsewhere is None else self._elsewhere.before([rows for _, rows in now])

    def _are_enough(self, known: _Rows, rows: Looked, elsewhere: Sequence[Looked], question: Question) -> bool:
        """Of what is no number there are none."""
        before = [*elsewhere, *known.before]
        if not rows.carriers(before, self._bent) >= rows.wanted(known.start, self._least):
            return False
        if rows.tells_together(before, known.anywhere, self._least):
            return False
        # To choose a penalty takes a hundred points, on a line while but one column counts: folds tell of each of its values in any honest fit,
        # and several fits do.
        return question.asked == Asked.FOLDS or not rows.tells_by_kinds(known.asked, known.anywhere, self._least)

    def _folds_are_enough(self, now: Sequence[Looked]) -> bool:
        """A fold is the same few rows each time: half of them have to carry what is told of it, where they are few."""
        of_rows = [one for one in now if isinstance(one, RowsAt)]
        folds = [of_rows[-1].without(one) for one in of_rows[:-1]]
        return all(fold.carriers((), self._bent) >= min(self._least, 0.5 * fold.counted) for fold in folds)

    def note(self, question: Question, place: Place) -> None:
        """It was told there."""
        self._keep(self._at(question, place), question)

    def _keep(self, now: list[tuple[_Rows, Looked]], question: Question) -> None:
        if self._elsewhere is not None and now:
            self._elsewhere.note([rows for _, rows in now])
        for known, rows in now:
            known.before.append(rows.kept())
            if question.asked != Asked.FOLDS:
                known.asked.append(known.before[-1])

    def _at(self, question: Question, place: Place) -> list[tuple[_Rows, Looked]]:
        """The rows of which something is told, where they are asked.

        Of folds that is more than what is asked: all answers together are one about all rows, and that less the answer about those outside of a fold is
        one about the fold.
        """
        if question.asked == Asked.NOTHING:
            return []
        if question.asked != Asked.FOLDS or question.beside is None:
            return [(one, one.watched(place.point)) for one in self._rows_of(folds=False)]
        parts = self._rows_of(folds=True)
        if not parts:
            return []
        points = np.split(question.beside, len(parts))
        outside = [one.watched(point) for one, point in zip(parts, points, strict=True)]
        together = of_all_rows([one for one in outside if isinstance(one, RowsAt)])
        return [*zip(parts, outside, strict=True), *((one, together) for one in self._rows_of(folds=False))]

    def _rows_of(self, folds: bool) -> list[_Rows]:
        if folds not in self._rows:
            watched = self._local.watched(self._told, folds)
            anywhere = self._start + np.random.default_rng(0).standard_normal(len(self._start))
            self._rows[folds] = [_Rows(one, one(self._start), one(anywhere), [], []) for one in watched]
        return self._rows[folds]
