"""Questions far from any model: there what is told of all rows is about one patient. Each site counts the rows that carry its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.agreement.policy import Policy
from roundelay.agents.data.regressing import known_of
from roundelay.agents.protocol.baton import Reason
from roundelay.agents.protocol.holder import DeceivedError, Holder, SolverError
from roundelay.algorithms.sealed.optimisers import Asking, Goal
from roundelay.algorithms.sealed.questions import Asked, Question, Total
from roundelay.kernels import Matrix, Vector
from roundelay.problems import carriers
from roundelay.problems.carriers import RowsAt, about
from roundelay.regression.study import Study
from tests.agents.regression_rings import Drawn, hand_overs, holders, regression_of
from tests.regression.studies import STUDIES, split

SITE, LEAST = "site2", Policy().least_rows_a_level
# How far the next row is from the plane, as its predictor.
FLAT = 40.0
# A lie about the curvature, beside which that of all rows is small.
STEEP = 1e5
Where = Callable[[], Vector]
Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class FarOut:
    """The agreed optimiser, but for what it asks after its first question."""

    agreed: Any
    where: Sequence[Where]
    told: list[Total]
    by_folds: bool = False

    def questions(self, goal: Goal) -> Asking:
        asking, told = self.agreed.questions(goal), []
        told.append((yield next(asking)))
        question = asking.send(told[0])
        for where in self.where:
            told.append((yield replace(question, **{"beside" if self.by_folds else "point": where()})))
        self.told[:] = told
        while True:
            total = yield question
            try:
                question = asking.send(total)
            except StopIteration as end:
                return end.value

    @property
    def asks(self) -> Any:
        """What the agreed one may ask."""
        return self.agreed.asks


@dataclass(frozen=True, eq=False)
class Attacked:
    """A ring whose first member knows how the rows lie, and what it was told."""

    ring: list[Holder]
    frames: Frames
    told: list[Total]

    @property
    def scaling(self) -> Any:
        """The units of the fit."""
        return known_of(Study(self.ring[0].plan.task.regression), self.ring[0].held.told).scaling  # type: ignore[arg-type]

    def design(self, frame: pd.DataFrame) -> Matrix:
        """Rows in the units of the fit."""
        shift, scale = self.scaling
        return (np.column_stack([np.ones(len(frame)), frame["age"], frame["dose"]]) - shift) / scale

    @property
    def rows(self) -> Matrix:
        """Those of all sites."""
        return np.vstack([self.design(frame) for frame in self.frames.values()])


Point = Callable[[Attacked], Vector]


def attacked(
    where: Sequence[Point],
    least: int,
    family: str = "binomial",
    formula: str = "ill ~ age + dose",
    optimiser: str = "auto",
    frames: Frames | None = None,
    most: int = 12,
    **planned: Any,
) -> Attacked:
    """A ring whose first member will ask at these points."""
    frames = Drawn().frames() if frames is None else frames
    regression = regression_of(frames, formula, family, **planned)
    algorithm = rl.SealedLaps(optimiser, wide=True)
    ring = holders(frames, regression, Stopping(1e-11, questions=most), algorithm, least)
    found = Attacked(ring, frames, [])
    assert ring[0].asking is not None
    points = [partial(one, found) for one in where]
    ring[0].asking.optimiser = FarOut(ring[0].asking.optimiser, points, found.told, bool(planned.get("folds")))  # type: ignore[assignment]
    return found


def check_refused(found: Attacked, number: int) -> None:
    """A site stops before it answers this question, names who asks, and says nothing of its rows."""
    with pytest.raises(DeceivedError, match=f"Question {number} .*least_rows_a_level.* site0, who asks"):
        list(hand_overs(found.ring))


# ---------------------------------------------------------------- one question: the curvature is one row's


def the_oldest(found: Attacked) -> Vector:
    """A patient, in the units of the fit."""
    frame = found.frames[SITE]
    return found.design(frame)[int(frame["age"].argmax())]


def plane_through(found: Attacked) -> Vector:
    """Coefficients under which this row's chance is a half, and that of all others as near to 0 or 1 as can be."""
    row, angles = the_oldest(found), np.linspace(0.0, np.pi, 500)
    directions = np.column_stack([np.zeros(len(angles)), np.cos(angles), np.sin(angles)])
    directions[:, 0] = -directions @ row
    gaps = np.sort(np.abs(found.rows @ directions.T), axis=0)[1]
    return directions[gaps.argmax()] * FLAT / gaps.max()


def test_one_question_can_tell_a_patients_row_and_whoever_asks_it_is_named() -> None:
    found = attacked([plane_through], least=1)
    list(hand_overs(found.ring))
    hessian = np.asarray(found.told[1].hessian)
    np.testing.assert_allclose(hessian[0] / hessian[0, 0], the_oldest(found), rtol=1e-6)
    for one in found.ring[1:]:
        assert one.asking is not None
        assert "Question 2 is not one that the agreed optimiser would have asked: site0" in one.asking.held.doubt


def test_no_site_answers_where_few_of_its_rows_carry_the_answer() -> None:
    check_refused(attacked([plane_through], LEAST), 2)


# ---------------------------------------------------------------- slopes: who is on which side of a plane


def beyond(found: Attacked, count: int) -> Vector:
    """A plane with so many rows of all sites beyond it, in the middle between two of them, and far from both."""
    ages = np.sort(found.rows[:, 1])[::-1]
    upper, lower = ages[count - 1 : count + 1]
    return np.array([-0.5 * (upper + lower), 1.0, 0.0]) * FLAT / (upper - lower)


def alone(found: Attacked) -> int:
    """How many rows are older than the patient who is farthest from the next ones, with a fifth of all rows on either side."""
    ages = np.sort(found.rows[:, 1])[::-1]
    gaps = np.minimum(ages[:-2] - ages[1:-1], ages[1:-1] - ages[2:])
    inside = slice(len(ages) // 5, 4 * len(ages) // 5)
    return int(gaps[inside].argmax()) + inside.start + 1


def all_but_one(found: Attacked) -> Vector:
    return beyond(found, 1)


def without(found: Attacked) -> Vector:
    return beyond(found, alone(found))


def with_it(found: Attacked) -> Vector:
    return beyond(found, alone(found) + 1)


def slopes_of(found: Attacked) -> list[Vector]:
    """Σ (chance − outcome)·row, at each point where it was told."""
    return [sum(map(len, found.frames.values())) / len(found.frames) * one.gradient for one in found.told]


def test_slopes_tell_who_is_alone_beyond_a_plane() -> None:
    """What was told where nothing is known takes the outcomes away."""
    found = attacked([all_but_one], least=1)
    list(hand_overs(found.ring))
    null, far = slopes_of(found)
    chance = np.mean(np.concatenate([frame["ill"] for frame in found.frames.values()]))
    row = far - null + chance * found.rows.sum(axis=0)
    np.testing.assert_allclose(row, found.rows[found.rows[:, 1].argmax()], rtol=1e-6)


def between_two(found: Attacked) -> Vector:
    ages = found.rows[:, 1]
    return found.rows[np.argsort(ages)[::-1][alone(found)]]


@pytest.mark.parametrize("optimiser", ["newton", "lbfgs"])
def test_two_planes_tell_the_one_between_them(optimiser: str) -> None:
    found = attacked([without, with_it], 1, optimiser=optimiser)
    list(hand_overs(found.ring))
    _, fewer, more = slopes_of(found)
    np.testing.assert_allclose(more - fewer, between_two(found), rtol=1e-5)
    check_refused(attacked([without, with_it], LEAST, optimiser=optimiser), 2)  # it is about the rows beside the plane


def test_who_is_alone_is_not_told() -> None:
    check_refused(attacked([all_but_one], LEAST, optimiser="lbfgs"), 2)


def hard(count: int, found: Attacked) -> Vector:
    """A plane so many rows before that of the patient, and so hard that no row's curvature is anything."""
    ages = np.sort(found.rows[:, 1])[::-1]
    upper, lower = ages[alone(found) + count - 1 : alone(found) + count + 1]
    return np.array([-0.5 * (upper + lower), 1.0, 0.0]) * 1e5 / (upper - lower)


def from_the_other_side(found: Attacked) -> Vector:
    return -hard(1, found)


def test_two_planes_seen_from_either_side_tell_the_one_between_them() -> None:
    """Who is beyond the one and who is before the other are all but the patient: it is the sum that tells, and each question is about many."""
    points = [partial(hard, 0), from_the_other_side]
    check_refused(attacked(points, LEAST), 3)
    check_refused(attacked(points, LEAST, optimiser="lbfgs"), 3)
    found = attacked(points, 1)
    list(hand_overs(found.ring))
    null, beyond_one, before_other = slopes_of(found)
    chance = np.mean(np.concatenate([frame["ill"] for frame in found.frames.values()]))
    all_but = beyond_one + before_other - 2.0 * null + 2.0 * chance * found.rows.sum(axis=0)
    np.testing.assert_allclose(found.rows.sum(axis=0) - all_but, between_two(found), rtol=1e-5)


# ---------------------------------------------------------------- two questions, each of which is about many rows

CELL = ("m", "high")


def one_in_a_cell(rows: int = 60) -> dict[str, pd.DataFrame]:
    """Many have each level, and one patient of all sites both."""
    frames = Drawn(rows=rows).frames()
    for name, frame in frames.items():
        both = (frame["sex"] == CELL[0]) & (frame["grade"] == CELL[1])
        kept = frame.index[both][:1] if name == SITE else []
        frame.loc[both, "sex"] = "f"
        frame.loc[kept, "sex"] = CELL[0]
    return frames


def by_levels(coefficients: Mapping[str, float], found: Attacked) -> Vector:
    """A point, by the coefficients of the columns as they are."""
    regression = found.ring[0].plan.task.regression
    assert regression is not None
    shift, scale = found.scaling
    given = np.array([coefficients.get(name, 0.0) for name in regression.design_names])
    point = given * scale
    point[0] = given @ shift + given[0]
    return point


# All women but those of the level are where the loss bends, in both: the patient alone goes over.
PLANES = [
    partial(by_levels, {"Intercept": high, "C(sex)[T.m]": -40.0, "C(grade)[T.low]": -high, "C(grade)[T.middle]": -high})
    for high in (20.0, 60.0)
]


def test_two_questions_about_many_rows_differ_by_one() -> None:
    """The difference of the slopes is that patient's row: what was told of all others is the same both times."""
    frames = one_in_a_cell()
    found = attacked(PLANES, 1, formula="ill ~ C(sex) + C(grade) + age + dose", frames=frames)
    list(hand_overs(found.ring))
    _, before, after = slopes_of(found)
    shift, scale = found.scaling
    frame = frames[SITE]
    patient = frame[(frame["sex"] == CELL[0]) & (frame["grade"] == CELL[1])]
    np.testing.assert_allclose(
        ((after - before) * scale + shift)[-2:], patient[["age", "dose"]].to_numpy()[0], rtol=1e-6
    )
    check_refused(attacked(PLANES, LEAST, formula="ill ~ C(sex) + C(grade) + age + dose", frames=frames), 3)


@dataclass(frozen=True)
class FoldsThenFit:
    """After the first question of the agreed optimiser one about two folds, and then one of the fit at another point."""

    agreed: Any
    where: Sequence[Where]
    told: list[Total]

    def questions(self, goal: Goal) -> Asking:
        self.told.append((yield next(self.agreed.questions(goal))))
        self.told.append((yield Question(Asked.FOLDS, beside=np.concatenate([self.where[0](), self.where[2]()]))))
        self.told.append((yield Question(Asked.VALUE_GRADIENT_AND_HESSIAN, point=self.where[1]())))
        yield Question(Asked.FIRST_LOOK)  # the ring is told no more

    @property
    def asks(self) -> Any:
        return self.agreed.asks


@pytest.mark.parametrize("apart", [0.0, 7.0])
@pytest.mark.parametrize("least", [1, LEAST])
def test_folds_at_one_point_are_all_rows_there(least: int, apart: float) -> None:
    """What is told of the rows outside of each of two folds adds up to that of all: with a question of the fit it is as if that had asked twice.

    Also where they are asked at two points that are far from each other, but where all rows add the same.
    """
    frames = one_in_a_cell()
    ring = holders(
        frames,
        regression_of(frames, WITH_LEVELS, "binomial", ridge=0.1, folds=2),
        Stopping(1e-11, questions=12),
        rl.SealedLaps("auto", wide=True),
        least,
    )
    found = Attacked(ring, frames, [])
    assert ring[0].asking is not None
    farther = partial(by_levels, PLANES[0].args[0] | {"C(sex)[T.m]": -40.0 - apart})
    where = [partial(one, found) for one in (*PLANES, farther)]
    ring[0].asking.optimiser = FoldsThenFit(ring[0].asking.optimiser, where, found.told)  # type: ignore[assignment]
    if least > 1:
        check_refused(found, 3)
        return
    with pytest.raises(SolverError, match="question 4"):
        list(hand_overs(ring))
    dim = len(found.scaling[0])
    folds = np.asarray(found.told[1].gradient).reshape(2, -1)[:, 3 : 3 + dim].sum(axis=0)
    row = np.asarray(found.told[2].gradient) * sum(map(len, frames.values())) / len(frames) - folds
    shift, scale = found.scaling
    patient = frames[SITE][(frames[SITE]["sex"] == CELL[0]) & (frames[SITE]["grade"] == CELL[1])]
    np.testing.assert_allclose((row / row[0] * scale + shift)[-2:], patient[["age", "dose"]].to_numpy()[0], rtol=1e-5)


def by_groups(women: float, men: float, women_of_the_level: float) -> Point:
    """A point at which all that counts of a row is its sex, and whether it has the level."""
    lower = women - women_of_the_level
    named = {"C(sex)[T.m]": men - women, "C(grade)[T.low]": lower, "C(grade)[T.middle]": lower}
    return partial(by_levels, {"Intercept": women_of_the_level, **named})


WITH_LEVELS = "ill ~ C(sex) + C(grade) + age + dose"


@pytest.mark.parametrize("high", [0.0, -1.0])
def test_what_each_kind_adds_can_be_put_together_by_any_factor(high: float) -> None:
    """Women of the level add a part to both and the man 1 to one alone, all others nothing; even one will do, with its Hessian."""
    frames = one_in_a_cell(rows=120)
    points = [by_groups(-60.0, -20.0, high), by_groups(-20.0, -60.0, 1.0)]
    found = attacked(points, 1, formula=WITH_LEVELS, frames=frames)
    list(hand_overs(found.ring))
    null, one, other = slopes_of(found)
    count, outcomes = sum(map(len, frames.values())), np.concatenate([frame["ill"] for frame in frames.values()])
    ill = outcomes.mean() * np.eye(len(null))[0] * count - null  # all columns but the constant are about their means
    row = (one + ill) - (other + ill) * (1.0 + np.exp(-1.0)) / (1.0 + np.exp(-high))
    shift, scale = found.scaling
    patient = frames[SITE][(frames[SITE]["sex"] == CELL[0]) & (frames[SITE]["grade"] == CELL[1])]
    np.testing.assert_allclose((row / row[0] * scale + shift)[-2:], patient[["age", "dose"]].to_numpy()[0], rtol=1e-5)
    check_refused(attacked(points, LEAST, formula=WITH_LEVELS, frames=frames), 2)


def in_the_tail(group: float, man: float, found: Attacked) -> Vector:
    """A point at which women of the level add e to the power of this and of a little of their age, the man to that power, and all others nothing."""
    to_all = {"Intercept": -61.0, "age": 0.02, "C(sex)[T.m]": man + 60.0}
    return by_levels({**to_all, "C(grade)[T.low]": group - man, "C(grade)[T.middle]": group - man}, found)


def test_twice_as_much_of_all_but_one_is_no_difference_of_many() -> None:
    """With a logarithm as its link everything is so many times as much one step farther out, but for the patient who goes from nothing to something."""
    points = [partial(in_the_tail, -1.0, -41.0), partial(in_the_tail, -1.0 + np.log(2.0), -1.0)]
    frames, formula = one_in_a_cell(rows=120), WITH_LEVELS.replace("ill", "visits")
    found = attacked(points, 1, "poisson", formula, frames=frames)
    list(hand_overs(found.ring))
    _, once, twice = slopes_of(found)
    shift, scale = found.scaling
    rows = [holder.local.rows for holder in found.ring]  # type: ignore[attr-defined]
    visits = sum(one.response @ ((one.design({}) - shift) / scale) for one in rows)  # told before the fit
    row = (twice + visits) - 2.0 * (once + visits)
    patient = frames[SITE][(frames[SITE]["sex"] == CELL[0]) & (frames[SITE]["grade"] == CELL[1])]
    np.testing.assert_allclose((row / row[0] * scale + shift)[-2:], patient[["age", "dose"]].to_numpy()[0], rtol=1e-4)
    check_refused(attacked(points, LEAST, "poisson", formula, frames=frames), 3)


def test_what_was_answered_before_a_restart_counts_too() -> None:
    found = attacked(PLANES, LEAST, formula="ill ~ C(sex) + C(grade) + age + dose", frames=one_in_a_cell())
    with pytest.raises(DeceivedError, match="Question 3"):
        for _ in hand_overs(found.ring):
            for one in found.ring:
                assert one.asking is not None
                one.asking._carried = None  # as it is after a restart


# ---------------------------------------------------------------- many questions near by, put together

MANY = 7.0


def moved_along(step: float, found: Attacked, beside: float = 0.0) -> Vector:
    """From where nothing is known along one column, with a little of another: what a row counts is, but for that, a function of the one alone."""
    assert found.ring[0].asking is not None
    start = found.ring[0].asking.start()
    assert start is not None
    return start + step * np.array([0.0, 1.0, beside])


def many_near_by(beside: float = 0.0) -> tuple[Frames, Vector, list[Any]]:
    """Where age is a number of children, of which one patient has seven: as many questions along it as it has values, and two more."""
    frames, rng = Drawn().frames(), np.random.default_rng(3)
    for frame in frames.values():
        frame["age"] = np.minimum(rng.poisson(1.6, len(frame)), 5).astype(float)
    frames[SITE].loc[4, "age"] = MANY
    values = np.unique(np.concatenate([frame["age"] for frame in frames.values()]))
    steps = np.linspace(-0.7, 0.7, len(values) + 2).tolist()
    return frames, values, [partial(moved_along, step, beside=beside) for step in steps]


@pytest.mark.parametrize(("beside", "nearly"), [(0.0, 1e-4), (1e-3, 2e-3)])
def test_many_questions_near_by_tell_of_a_rare_value(
    beside: float, nearly: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: each is about nearly all rows, and so is each difference; as many as a column has values are equations for what all with each value add.

    Where a little of another column stands beside it no two rows are the same, and it is so but for that.
    """
    for check in ("tells_together", "tells_by_kinds"):
        monkeypatch.setattr(RowsAt, check, lambda now, before, anywhere, least: False)
    frames, values, steps = many_near_by(beside)
    found = attacked(steps, LEAST, frames=frames)
    list(hand_overs(found.ring))
    shift, scale = found.scaling
    weights = []
    for one in steps:
        eta = (values - shift[1]) / scale[1] * one(found)[1] + one(found)[0]
        weights.append(1.0 / (2.0 + np.exp(eta) + np.exp(-eta)))
    hessians = np.array([np.asarray(total.hessian)[0] for total in found.told[1:]])
    of_values = np.linalg.lstsq(np.array(weights), hessians, rcond=None)[0]
    row = of_values[-1] / of_values[-1, 0] * scale + shift
    np.testing.assert_allclose(row[1:], [MANY, frames[SITE].loc[4, "dose"]], rtol=nearly)
    for member in found.ring[1:]:
        assert member.asking is not None and "Question 2 is not one that the agreed" in member.asking.held.doubt


@pytest.mark.parametrize("beside", [0.0, 1e-6, 1e-5, 1e-3])
def test_they_are_refused_before_there_are_as_many_as_values(beside: float) -> None:
    frames, values, steps = many_near_by(beside)
    found = attacked(steps, LEAST, frames=frames)
    with pytest.raises(DeceivedError, match="so few rows of this site"):
        list(hand_overs(found.ring))
    assert len(found.told) - 1 < len(values)


YEARS, WIDTH = np.arange(26.0, 84.0, 0.7), 3.0


def bump(age: float, found: Attacked) -> Vector:
    """A point at which those of about this age count, an eighth of all rows and more."""
    shift, scale = found.scaling
    return np.array([(shift[1] - age) / WIDTH, scale[1] / WIDTH, 0.0])


def of_all_ages() -> Frames:
    """Where age is in years, and there are nearly as many as a site has rows."""
    frames, rng = Drawn().frames(), np.random.default_rng(5)
    for frame in frames.values():
        frame["age"] = rng.integers(20, 90, len(frame)).astype(float)
    return frames


@pytest.mark.parametrize("looked_at", [False, True])
def test_eighty_questions_tell_each_of_seventy_years(looked_at: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control is without a look at kinds that are more than half as many as rows: by how they overlap, bumps over years are equations for each year."""
    if not looked_at:
        monkeypatch.setattr(carriers, "POINTS_OF_MANY", 1000)
    frames = of_all_ages()
    found = attacked([partial(bump, age) for age in YEARS], LEAST, frames=frames, most=200)
    if looked_at:
        with pytest.raises(DeceivedError, match="so few rows of this site"):
            list(hand_overs(found.ring))
        asking = found.ring[0].asking
        assert asking is not None and len(asking.held.answered) < 30
        return
    list(hand_overs(found.ring))
    everybody = pd.concat(frames.values())
    ages = np.unique(everybody["age"])
    weights = 1.0 / (2.0 + np.exp((ages[:, None] - YEARS) / WIDTH) + np.exp((YEARS - ages[:, None]) / WIDTH))
    hessians = np.array([np.asarray(total.hessian)[0] for total in found.told[1:]])
    counted, _, of_dose = np.linalg.lstsq(weights.T, hessians, rcond=1e-14)[0].T
    shift, scale = found.scaling
    alone = everybody[everybody["age"] == 70.0]["dose"]
    assert len(alone) == 1
    assert (of_dose / counted * scale[2] + shift[2])[ages == 70.0] == pytest.approx(alone.to_numpy(), rel=1e-2)


def test_levels_alone_are_asked_as_often_as_the_optimiser_likes() -> None:
    """Of a kind of rows that are alike in all columns there is nothing to be told but how many they are."""
    frames = Drawn().frames()
    frames[SITE] = frames[SITE][
        (frames[SITE]["sex"] == "m") | (frames[SITE]["grade"] != "high") | (np.arange(len(frames[SITE])) < 9)
    ]
    ring = holders(frames, regression_of(frames, "ill ~ C(sex) + C(grade)", "binomial"), least_carriers=LEAST)
    list(hand_overs(ring))
    assert {one.held.reason for one in ring} == {Reason.CONTENT}


# ---------------------------------------------------------------- other losses


def at(point: tuple[float, ...], found: Attacked) -> Vector:
    return np.array(point)


@pytest.mark.parametrize(
    ("family", "formula", "point", "planned"),
    [
        ("poisson", "visits ~ age + dose", (0.0, 20.0, 3.0), {}),
        ("gamma", "time ~ age + dose", (0.0, -20.0, 3.0), {}),
        ("multinomial", "grade ~ age + dose", (0.0, 900.0, 100.0, 3.0, 1500.0, -200.0), {}),
        ("cox", "Surv(time, died) ~ age + dose", (30.0, 5.0), {}),
        ("binomial", "ill ~ age + dose + site", (900.0, 100.0), {}),
        ("binomial", "ill ~ age + dose", (0.0, 900.0, 100.0) * 5, {"ridge": 1e-3, "folds": 5}),
    ],
)
def test_other_losses_are_looked_at_too(
    family: str, formula: str, point: tuple[float, ...], planned: dict[str, Any]
) -> None:
    check_refused(attacked([partial(at, point)], LEAST, family, formula, **planned), 2)


def test_an_offset_can_make_the_first_question_about_one_patient() -> None:
    """Nobody asks anything but what was agreed: it is the plan that leads there. Only the one whose age is known is near the bend."""
    frames, patient = Drawn().frames(), 5
    age, dose = frames[SITE][["age", "dose"]].iloc[patient].tolist()
    formula = f"ill ~ 0 + dose + offset(37 * (age - {age!r}) / sqrt((age - {age!r}) ** 2 + 1e-6))"
    regression = regression_of(frames, formula, "binomial")
    ring = holders(frames, regression)
    next(move for move in hand_overs(ring) if move.baton.hop > 0)
    asking = ring[0].asking
    assert asking is not None and asking.held.answered[0].total is not None
    curvature = asking.held.answered[0].total[2] * sum(map(len, frames.values())) / len(frames)
    _, scale = known_of(Study(regression), ring[0].held.told).scaling
    assert np.sqrt(4.0 * curvature) * scale[0] == pytest.approx(dose, rel=1e-6)
    with pytest.raises(DeceivedError, match=r"Question 1 .*or the plan does, by an offset"):
        list(hand_overs(holders(frames, regression, least_carriers=LEAST)))


def just_below_one(found: Attacked) -> Vector:
    """The chance of one patient who is ill comes within a millionth of 1, and nobody else's: the curvature there is expected to be a million."""
    frame = found.frames[SITE]
    row = found.design(frame)[int(frame["age"].where(frame["ill"] == 1.0).argmax())]
    highest = found.rows[:, 1].max() + 1.0
    return np.array([-0.3 * highest - 2e-6, 0.3, 0.0]) + np.array([0.3 * (highest - row[1]), 0.0, 0.0])


def test_what_is_expected_of_the_curvature_is_told_where_a_fit_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the link log it is e^η/(1 − e^η), and where the outcome was 1 the curvature itself is 0."""
    frames = Drawn().frames()
    oldest = int(frames[SITE]["age"].argmax())
    frames[SITE].loc[oldest, ["age", "ill"]] = [150.0, 1.0]
    monkeypatch.setattr(Drawn, "frames", lambda _: frames)
    told = []
    for least in (1, LEAST):
        found = attacked([just_below_one], least, link="log")
        if least > 1:
            check_refused(found, 2)
            continue
        member = found.ring[2]
        watched = member.local.watched
        for move in hand_overs(found.ring):
            if move.baton.hop == 2 and not told:
                told.append(watched(member.held.told, False)[0](just_below_one(found)).curvatures)
    observed, expected = told[0].T
    assert about(observed[:, None])[0] > 20.0 and about(expected[:, None])[0] < 1.1


# ---------------------------------------------------------------- false data lead there too


@dataclass(frozen=True, eq=False)
class Lying:
    """A site's function, and in the first answers others as well: steep bowls, each about a point to which all are led."""

    own: Any
    bowls: list[Where]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def value(self, agent: int, x: Vector) -> float:
        """It looks as if all had come down."""
        return float(self.own.value(agent, x)) + 1e12 * len(self.bowls)

    def gradient(self, agent: int, x: Vector) -> Vector:
        """Down to the point."""
        found = np.array(self.own.gradient(agent, x))
        return found + STEEP * (x - self.bowls[0]()) if self.bowls else found

    def hessian(self, agent: int, x: Vector) -> Matrix:
        """As steep in all directions; what is asked next comes from another."""
        found = np.array(self.own.hessian(agent, x))
        return found + STEEP * np.eye(len(x)) if self.bowls and self.bowls.pop(0) else found


@pytest.mark.parametrize("least", [1, LEAST])
def test_a_member_that_lies_for_a_while_about_its_data_leads_an_honest_one_there(least: int) -> None:
    """The first member asks what was agreed, all totals are as they were, and no replay finds anything."""
    frames = Drawn().frames()
    ring = holders(
        frames,
        regression_of(frames, "ill ~ age + dose", "binomial"),
        Stopping(1e-11, questions=12),
        least_carriers=least,
    )
    found = Attacked(ring, frames, [])

    def led() -> None:
        for _ in hand_overs(ring):
            if ring[3]._own is None and len(ring[3].held.told) == len(ring[3].local.sums):
                ring[3]._own = Lying(ring[3].problem, [partial(plane_through, found), lambda: np.zeros(3)])  # type: ignore[assignment]

    if least > 1:
        with pytest.raises(DeceivedError, match=r"Question 2 .*some site has told false data"):
            led()
        return
    led()
    asking = ring[1].asking
    assert asking is not None and not asking.held.doubt and ring[1].held.reason == Reason.CONTENT
    assert ring[0].asking is not None and ring[0].asking.held.answered[1].total is not None
    first = ring[0].asking.held.answered[1].total[4:7] - [STEEP, 0.0, 0.0]  # whoever lies knows the lie
    np.testing.assert_allclose(first / first[0], the_oldest(found), rtol=1e-3)


# ---------------------------------------------------------------- honest fits go on


def test_a_penalty_is_chosen_by_folds_where_age_is_in_years() -> None:
    """While age alone counts all points are on its line, and most rows have an age that few others of the site have."""
    rng, frames = np.random.default_rng(0), {}
    for site in range(4):
        age, dose = np.round(rng.normal(60.0, 14.0, 200)).clip(18.0, 104.0), rng.normal(size=200)
        ill = rng.random(200) < 1.0 / (1.0 + np.exp(5.0 - 0.08 * age))
        frames[f"site{site}"] = pd.DataFrame({"age": age, "dose": dose, "ill": ill.astype(float)})
    regression = regression_of(frames, "ill ~ age + dose", "binomial", lasso=0.1, folds=3)
    ring = holders(frames, regression, Stopping(1e-6, questions=200), least_carriers=LEAST)
    list(hand_overs(ring))
    assert {one.held.reason for one in ring} == {Reason.CONTENT}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("breast cancer", "90/10"),
        ("wine", "90/10"),
        ("star98", "90/10"),
        ("rossi", "by label"),
        ("scotland", "by label"),
    ],
)
def test_fits_to_real_data_are_answered(name: str, how: str) -> None:
    """Sites of two rows, of seven, of one outcome nearly alone: nobody asks far out of them, and none of them refuses."""
    case = next(one for one in STUDIES if one.name == name)
    rows = split(case.rows(), how, case.label, case.sites)
    frames = {site: frame.reset_index(drop=True) for site, frame in rows.items()}
    ring = holders(frames, regression_of(frames, case.formula, **case.planned), Stopping(1e-9), least_carriers=LEAST)
    list(hand_overs(ring))
    assert all(one.held.reason == Reason.CONTENT for one in ring)
