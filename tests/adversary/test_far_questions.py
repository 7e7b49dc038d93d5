"""A first member that asks far out: the curvature of all sites' rows together is that of one patient there. Nothing stops it; it is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roundelay.agents.data.regressing import known_of
from roundelay.algorithms.sealed.optimisers import Asking, Goal
from roundelay.algorithms.sealed.questions import Total
from roundelay.kernels import Matrix, Vector
from roundelay.regression.study import Study
from tests.agents.regression_rings import Drawn, hand_overs, holders, regression_of

SITE, FLAT = "site2", 40.0


@dataclass(frozen=True)
class FarOut:
    """The agreed optimiser, but for its second question."""

    agreed: Any
    where: Callable[[], Vector]
    keep: Callable[[Total], None]

    def questions(self, goal: Goal) -> Asking:
        asking = self.agreed.questions(goal)
        total = yield next(asking)
        question = asking.send(total)
        self.keep((yield replace(question, point=self.where())))
        while True:
            total = yield question
            try:
                question = asking.send(total)
            except StopIteration as end:
                return end.value


def plane_through(row: Vector, rows: Matrix) -> Vector:
    """Coefficients under which this row's chance is a half, and that of all others as near to 0 or 1 as can be."""
    angles = np.linspace(0.0, np.pi, 500)
    directions = np.column_stack([np.zeros(len(angles)), np.cos(angles), np.sin(angles)])
    directions[:, 0] = -directions @ row
    gaps = np.sort(np.abs(rows @ directions.T), axis=0)[1]
    return directions[gaps.argmax()] * FLAT / gaps.max()


def test_one_question_can_tell_a_patients_row_and_whoever_asks_it_is_named() -> None:
    frames = Drawn().frames()
    regression = regression_of(frames, "ill ~ age + dose", "binomial")
    ring, told = holders(frames, regression), []
    asking, patient = ring[0].asking, int(frames[SITE]["age"].argmax())
    assert asking is not None and regression.design_names == ("Intercept", "age", "dose")

    def designs() -> dict[str, Matrix]:
        shift, scale = known_of(Study(regression), ring[0].held.told).scaling
        return {
            name: (np.column_stack([np.ones(len(frame)), frame["age"], frame["dose"]]) - shift) / scale
            for name, frame in frames.items()
        }

    def where() -> Vector:
        return plane_through(designs()[SITE][patient], np.vstack([*designs().values()]))

    asking.optimiser = FarOut(asking.optimiser, where, told.append)
    list(hand_overs(ring))
    hessian = np.asarray(told[0].hessian)
    np.testing.assert_allclose(hessian[0] / hessian[0, 0], designs()[SITE][patient], rtol=1e-6)
    for one in ring[1:]:
        assert one.asking is not None
        assert "Question 2 is not one that the agreed optimiser would have asked: site0" in one.asking.held.doubt
