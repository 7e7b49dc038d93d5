"""Where a site's rows have answered in an epoch, and whether an answer at one point more would be about few of them.

Whoever asks first may ask anywhere, and any member can send the agreed optimiser anywhere, by false data of its own in a sum or two. So what a
point would tell is looked at by each site, of its own rows, before it answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from roundelay.agents.data.objectives import Local
from roundelay.algorithms.sealed.questions import HESSIANS, OWN, Asked, Place, Question
from roundelay.kernels import Vector
from roundelay.problems.carriers import Looked, Watched


class _Rows(NamedTuple):
    """Some rows of the site, what they are where no model is, anywhere, and at each point where they have answered."""

    watched: Watched
    start: Looked
    anywhere: Looked
    before: list[Looked]


class Carried:
    """The rows of one site in one epoch: all of them, or those outside of each fold.

    `told` has the sums before the fit, from which the units follow; `least` is how many rows an answer must be about, and `asks` what the agreed
    optimiser may ask for.
    """

    def __init__(self, local: Local, told: tuple[Vector, ...], dim: int, least: int, asks: Iterable[Asked]) -> None:
        self._local, self._told, self._least = local, told, least
        start = local.start(told)
        self._start = np.zeros(dim) if start is None else start
        self._bent = any(asked in (*HESSIANS, *OWN) for asked in asks)
        self._rows: dict[bool, list[_Rows]] = {}

    def admits(self, question: Question, place: Place) -> bool:
        """Whether enough rows carry what is told there, and what it tells together with what was told before; if so, it is told."""
        now = self._at(question, place)
        # To choose a penalty takes a hundred points, on a line while but one column counts: folds tell of each of its values in any honest fit.
        kinds = question.asked != Asked.FOLDS
        enough = all(
            rows.carriers(known.before, self._bent) >= rows.wanted(known.start, self._least)
            and not (kinds and rows.tells_of_few(known.before, known.anywhere, self._least))
            for known, rows in now
        )  # of what is no number there are none
        if enough:
            self._keep(now)
        return enough

    def note(self, question: Question, place: Place) -> None:
        """It was told there."""
        self._keep(self._at(question, place))

    def _keep(self, now: list[tuple[_Rows, Looked]]) -> None:
        for known, rows in now:
            known.before.append(rows.kept())

    def _at(self, question: Question, place: Place) -> list[tuple[_Rows, Looked]]:
        if question.asked == Asked.NOTHING:
            return []
        folds = question.asked == Asked.FOLDS
        if folds not in self._rows:
            watched = self._local.watched(self._told, folds)
            anywhere = self._start + np.random.default_rng(0).standard_normal(len(self._start))
            self._rows[folds] = [_Rows(one, one(self._start), one(anywhere), []) for one in watched]
        rows = self._rows[folds]
        points = (
            np.split(question.beside, len(rows))
            if folds and rows and question.beside is not None
            else [place.point] * len(rows)
        )
        return [(one, one.watched(point)) for one, point in zip(rows, points, strict=True)]
