"""Bad input is refused in a sentence that names the agent and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from roundelay.problems import LeastSquares, Logistic

GOOD = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, -6.0], [7.0, 8.0], [0.5, 1.0]])]
ANSWERS = [np.array([1.0, -1.0]), np.array([1.0, -1.0, 1.0])]
PROBLEMS: list[Callable[..., Any]] = [LeastSquares, Logistic]


def refusal(make: Callable[[], Any]) -> str:
    with pytest.raises(ValueError) as caught:
        make()
    sentence = str(caught.value)
    assert re.match(r"^[A-Z].*: .*\.$", sentence, re.DOTALL), sentence
    assert type(caught.value) is ValueError
    return sentence


def with_entry(blocks: list[np.ndarray], agent: int, where: Any, value: float) -> list[np.ndarray]:
    changed = [block.copy() for block in blocks]
    changed[agent][where] = value
    return changed


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    ("features", "targets", "words"),
    [
        ([], [], "There is no agent"),
        (np.zeros((0, 2, 2)), np.zeros((0, 2)), "There is no agent"),
        (GOOD, ANSWERS[:1], "features for 2 agents but targets for 1"),
        (GOOD[:1], ANSWERS, "features for 1 agents but targets for 2"),
        (GOOD, [ANSWERS[0], ANSWERS[1][:2]], "Agent 1 has 3 rows of features but 2 targets"),
        ([GOOD[0], np.zeros((0, 2))], [ANSWERS[0], []], "Agent 1 has no rows"),
        ([np.zeros((2, 0)), np.zeros((3, 0))], ANSWERS, "features of agent 0 have no columns"),
        ([GOOD[0], GOOD[1][:, :1]], ANSWERS, "Agent 1 has 1 features but agent 0 has 2"),
        ([GOOD[0], GOOD[1][:, 0]], ANSWERS, "features of agent 1 have 1 dimensions instead of 2"),
        (np.ones((2, 2)), [[1.0, 1.0], [1.0, 1.0]], "features of agent 0 have 1 dimensions instead of 2"),
        (GOOD, [ANSWERS[0], ANSWERS[1][:, None]], "targets of agent 1 have 2 dimensions instead of 1"),
        (with_entry(GOOD, 1, (2, 0), np.nan), ANSWERS, "features of agent 1 hold nan in row 2"),
        (with_entry(GOOD, 0, (1, 1), -np.inf), ANSWERS, "features of agent 0 hold -inf in row 1"),
        (with_entry(GOOD, 1, (0, 1), 1e200), ANSWERS, r"features of agent 1 hold 1e\+200 in row 0: rescale"),
        (GOOD, with_entry(ANSWERS, 1, 1, np.nan), "targets of agent 1 hold nan in row 1"),
        (GOOD, with_entry(ANSWERS, 0, 0, np.inf), "targets of agent 0 hold inf in row 0"),
        ([GOOD[0], [["a", "b"]] * 3], ANSWERS, "features of agent 1 are not numbers"),
        ([GOOD[0], [["1", "2"]] * 3], ANSWERS, "features of agent 1 are not numbers"),
        ([GOOD[0], np.array([["1", 2.0]] * 3, object)], ANSWERS, "features of agent 1 are not numbers"),
        ([GOOD[0], [[None, 2.0]] * 3], ANSWERS, "features of agent 1 hold nan in row 0"),
        ([GOOD[0], GOOD[1] * 1j], ANSWERS, "features of agent 1 are not numbers"),
        (
            [GOOD[0], np.ma.masked_equal(GOOD[1], 8.0)],
            ANSWERS,
            r"features of agent 1 are not numbers \(some are masked",
        ),
        ([GOOD[0], [[1.0, 2.0], [3.0], [1.0, 1.0]]], ANSWERS, "features of agent 1 are not numbers"),
        (GOOD, [ANSWERS[0], ["yes", "no", "yes"]], "targets of agent 1 are not numbers"),
        ("data", ANSWERS, "The features are a str"),
        (GOOD, None, "The targets are a NoneType"),
        (np.array(3.0), np.array(4.0), "The features are a ndarray"),
        ({0: GOOD[0]}, ANSWERS, "The features are a dict"),
    ],
)
def test_bad_rows(problem: Callable[..., Any], features: Any, targets: Any, words: str) -> None:
    assert re.search(words, refusal(lambda: problem(features, targets)))


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("row", "The weights are 'row'"),
        ([1.0], r"shape \(1,\), but there are 2 agents"),
        ([1.0, 2.0, 3.0], r"shape \(3,\), but there are 2 agents"),
        (np.ones((2, 1)), r"shape \(2, 1\)"),
        (2.0, r"shape \(\)"),
        (None, r"shape \(\)"),
        ([1.0, 0.0], "weight of agent 1 is 0.0"),
        ([-1.0, 1.0], "weight of agent 0 is -1.0"),
        ([1.0, np.nan], "weight of agent 1 is nan"),
        ([np.inf, 1.0], "weight of agent 0 is inf"),
        (["1", "2"], "weights can't be read as numbers"),
        ([[1.0], [1.0, 2.0]], "weights can't be read as numbers"),
    ],
)
def test_bad_weights(problem: Callable[..., Any], weights: Any, words: str) -> None:
    assert re.search(words, refusal(lambda: problem(GOOD, ANSWERS, weights=weights)))


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("ridge", [-1e-9, np.nan, np.inf])
def test_bad_ridges(problem: Callable[..., Any], ridge: float) -> None:
    assert f"The ridge is {ridge}" in refusal(lambda: problem(GOOD, ANSWERS, ridge=ridge))


def test_bad_scale() -> None:
    assert "'sum'" in refusal(lambda: LeastSquares(GOOD, ANSWERS, "sum"))  # type: ignore[arg-type]


@pytest.mark.parametrize("label", [0.0, 2.0, -0.5])
def test_labels_are_minus_one_and_one(label: float) -> None:
    sentence = refusal(lambda: Logistic(GOOD, with_entry(ANSWERS, 1, 2, label)))
    assert f"Agent 1 has the label {label:g} in row 2" in sentence and "2 * labels - 1" in sentence


def separable(seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    plane = rng.normal(size=3)
    features = [rng.normal(size=(count, 3)) for count in (4, 1, 7)]
    return features, [np.sign(block @ plane) for block in features]


@pytest.mark.parametrize("seed", range(8))
def test_separable_labels_need_a_ridge(seed: int) -> None:
    features, labels = separable(seed)
    assert "add a ridge" in refusal(lambda: Logistic(features, labels))
    assert np.isfinite(Logistic(features, labels, ridge=1e-6).optimum).all()


@pytest.mark.parametrize("unit", [1e-10, 1e-4, 1.0, 1e4, 1e10])
@pytest.mark.parametrize("seed", range(4))
def test_labels_separable_in_one_direction_need_a_ridge(seed: int, unit: float) -> None:
    """Overlapping in two features; a third, mostly 0, is never against the label."""
    rng = np.random.default_rng(seed)
    features, labels = (
        [rng.normal(size=(12, 3)) for _ in range(2)],
        [rng.choice([-1.0, 1.0], size=12) for _ in range(2)],
    )
    for block, own in zip(features, labels, strict=True):
        block[:, 2] = 0.0
        block[:2, 2] = unit * own[:2]
    assert "add a ridge" in refusal(lambda: Logistic(features, labels))
    features[1][5, 2] = -unit * labels[1][5]  # the control: one row against it, and there is a minimiser
    assert np.isfinite(Logistic(features, labels).optimum).all()


def test_a_single_overlap_is_enough_to_have_a_minimiser() -> None:
    rows = np.array([[-2.0], [-1.0], [1e-3], [-1e-3], [1.0], [2.0]])
    labels = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    problem = Logistic([np.hstack([rows, np.ones_like(rows)])], [labels])
    assert np.linalg.norm(problem.gradient(0, problem.optimum)) <= 1e-12


def test_agents_may_be_separable_as_long_as_all_together_are_not() -> None:
    rows = [np.array([[1.0], [2.0]]), np.array([[1.0]])]
    problem = Logistic(rows, [[1.0, 1.0], [-1.0]])
    assert np.isfinite(problem.optimum).all()
