"""One lap is one sum: exact on the grid, the same with masks and without, and refused where it would leave the range."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.algorithms.sealed.questions import (
    OWN,
    Asked,
    OwnSums,
    Place,
    Question,
    answers,
    asked_in,
    kinds_of,
    numbers_asked,
    numbers_told,
    question_of,
    total_of,
)
from roundelay.masks import FixedPoint, Grid, SeededPairs, WideFixedPoint, seals
from tests.defences.support import looks_uniform
from tests.sealed.support import huber, logistic, plain_functions, pooled_value, simulate, squares

# What is asked of the functions; looks and folds are sums of the problem's own.
OF_THE_FUNCTION = [one for one in Asked if one not in OWN]
GRIDS = [FixedPoint(44), FixedPoint(20), WideFixedPoint()]
NUMBERS = st.floats(-1000.0, 1000.0)


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
@settings(max_examples=25, derandomize=True)
@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=7), st.integers(0, 2**32))
def test_the_total_is_the_plain_sum_on_the_grid(grid: Grid, rows: list[list[float]], seed: int) -> None:
    """With masks and without: in whole multiples of the grid, to the last one."""
    words = grid.encode(np.array(rows))
    masks = seals(SeededPairs(seed), len(rows), 3, 5, grid)
    masked = np.array([grid.add(own, mask) for own, mask in zip(words, masks, strict=True)])
    np.testing.assert_array_equal(grid.total(masked), grid.total(words))
    step = Fraction(2) ** -(grid.bits if isinstance(grid, FixedPoint) else 64)
    for total, column in zip(grid.decode(grid.total(words)), np.transpose(rows), strict=True):
        assert total == float(sum(round(Fraction(number) / step) for number in column) * step)


@pytest.mark.parametrize("optimiser", ["normal-equations", "conjugate-gradients", "newton", "lbfgs"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("network", [rl.ring(5), rl.star(5)], ids=["cycle", "covering walk"])
def test_the_last_message_of_every_lap_is_the_total(optimiser: str, wide: bool, network: rl.Network) -> None:
    problem = squares(5, 3, 1)
    run = simulate(rl.SealedLaps(optimiser, wide=wide), problem, network, transcript=True)
    assert run.transcript is not None and len(run.transcript.laps) == len(run.record.step) - 2
    grid: Grid = WideFixedPoint() if wide else FixedPoint(44)
    place = Place(np.zeros(3), np.zeros(3))
    for lap, point in zip(run.transcript.laps, run.record.tokens[1:], strict=False):
        question = question_of(lap.kind, lap.told, 3)
        place = question.moved(place)
        np.testing.assert_array_equal(place.point, point)
        own = grid.encode(answers(problem, question.asked, place))
        np.testing.assert_array_equal(lap.words[-1], grid.total(own))
        np.testing.assert_array_equal(lap.total(), grid.decode(grid.total(own)))
        assert lap.length == len(network.tour().order) and len(lap) == lap.length
        relays = np.flatnonzero(~network.tour().works.astype(bool))
        np.testing.assert_array_equal(lap.words[relays], lap.words[relays - 1])


def test_all_other_words_look_uniform_and_without_masks_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = squares(12, 8, 1)

    def words() -> Any:
        run = simulate(rl.SealedLaps("normal-equations"), problem, transcript=True)
        return run.transcript.laps[0].words[:-1]

    assert looks_uniform(words())
    monkeypatch.setattr(
        "roundelay.engine.sealed_run.seals", lambda _, agents, dim, *rest: np.zeros((agents, dim), np.uint64)
    )
    assert not looks_uniform(words())


def test_no_two_laps_have_the_same_masks() -> None:
    """The same answer in two laps of one run is under other words, else their difference would tell."""
    problem = squares(4, 2, 1)
    run = simulate(rl.SealedLaps("lbfgs"), problem, transcript=True)
    first = np.array([lap.words[0] for lap in run.transcript.laps])
    masks = [seals(SeededPairs(0), 4, 3, number)[0] for number in range(len(first))]
    assert len({tuple(mask) for mask in masks}) == len(first)
    np.testing.assert_array_equal(
        FixedPoint(44).decode(first[1] - masks[1])[1:],
        FixedPoint(44).rounded(problem.gradient(0, run.record.tokens[2])),
    )


@pytest.mark.parametrize(
    ("options", "scale", "words"),
    [
        ({}, 1e5, r"such are summed, which fixed point with 44 bits after the point can't hold: use fewer bits"),
        ({"bits": 60}, 1.0, r"with 60 bits after the point can't hold: use fewer bits"),
        ({"wide": True}, 1e12, r"beyond 2\^62 .* can't be added up exactly: use a larger unit everywhere"),
    ],
)
def test_what_leaves_the_range_is_refused_in_a_sentence(options: dict[str, Any], scale: float, words: str) -> None:
    small = squares(4, 2, 1)
    problem = rl.LeastSquares([scale * block for block in small.features], small.targets)
    with pytest.raises(ValueError, match=f"The largest number of an answer is .*{words}"):
        simulate(rl.SealedLaps(**options), problem)


# ---------------------------------------------------------------- questions and answers


@pytest.mark.parametrize("make", [squares, logistic, huber, plain_functions])
@pytest.mark.parametrize("asked", OF_THE_FUNCTION)
def test_answers_sum_to_what_finite_differences_say(make: Any, asked: Asked) -> None:
    dim, agents = 3, 4
    problem = make(agents, dim, 6, hessians=True) if make is plain_functions else make(agents, dim, 6)
    rng = np.random.default_rng(0)
    point, direction = 0.1 * rng.normal(size=dim), rng.normal(size=dim)
    numbers = answers(problem, asked, Place(point, direction))
    assert numbers.shape == (agents, numbers_asked(asked, dim))
    if asked == Asked.NOTHING:
        return
    total, step = total_of(asked, numbers.sum(axis=0), dim), 1e-5

    def slope_along(way: Any, at: Any = point) -> float:
        return (pooled_value(problem, at + step * way) - pooled_value(problem, at - step * way)) / (2.0 * step)

    gradient = [slope_along(way) for way in np.eye(dim)]
    curvature = [
        [
            (slope_along(one, point + 1e-3 * other) - slope_along(one, point - 1e-3 * other)) / 2e-3
            for one in np.eye(dim)
        ]
        for other in np.eye(dim)
    ]
    # The loss of Huber has kinks in its slope.
    within = {"rtol": 0.2, "atol": 0.5} if make is huber else {"rtol": 1e-4, "atol": 1e-3}
    if asked == Asked.HESSIAN_TIMES_DIRECTION:
        np.testing.assert_allclose(total.gradient, np.array(curvature) @ direction, **within)
        return
    np.testing.assert_allclose(total.gradient, gradient, rtol=1e-6, atol=1e-7)
    assert np.isnan(total.value) or total.value == pytest.approx(pooled_value(problem, point), rel=1e-12)
    if total.hessian is not None:
        np.testing.assert_array_equal(total.hessian, total.hessian.T)
        np.testing.assert_allclose(total.hessian, curvature, **within)


@settings(max_examples=40, derandomize=True)
@given(st.data())
def test_questions_come_back_from_their_kind_and_numbers(data: st.DataObject) -> None:
    vector = st.lists(NUMBERS, min_size=3, max_size=3).map(np.array)
    asked = data.draw(st.sampled_from(OF_THE_FUNCTION))
    kind = data.draw(st.sampled_from(kinds_of(asked)))
    told = np.array(data.draw(st.lists(NUMBERS, min_size=numbers_told(kind, 3), max_size=numbers_told(kind, 3))))
    question = question_of(kind, told, 3)
    assert (question.kind, asked_in(kind)) == (kind, asked)
    np.testing.assert_array_equal(question.told, told)
    place = Place(data.draw(vector), data.draw(vector))
    moved = question.moved(place)
    start = place.point if question.point is None else question.point
    ahead = 0.0 if question.step is None else question.step * place.direction
    np.testing.assert_array_equal(moved.point, start + ahead)
    np.testing.assert_array_equal(
        moved.direction, place.direction if question.direction is None else question.direction
    )
    assert isinstance(question, Question)


def test_sums_of_the_problems_own_are_asked_where_all_stand_and_move_nobody() -> None:
    own, place = OwnSums(4, 7, 6, 11), Place(np.ones(3), np.zeros(0))
    questions = (
        (Question(Asked.FIRST_LOOK), 0),
        (Question(Asked.SECOND_LOOK, beside=np.arange(4.0)), 4),
        (Question(Asked.FOLDS, beside=np.arange(6.0)), 6),
    )
    for question, told in questions:
        assert kinds_of(question.asked) == (question.kind,)
        assert numbers_told(question.kind, 3, own) == len(question.told) == told
        back = question_of(question.kind, question.told, 3)
        np.testing.assert_array_equal(back.told, question.told)
        assert back.moved(place).point is place.point
    assert [numbers_asked(asked, 3, own) for asked in OWN] == [4, 7, 11]
