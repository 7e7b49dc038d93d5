"""The sensitivity, from the problem itself, and measured: one record is replaced and one visit made without noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.kernels import BATCH, uniform
from roundelay.privacy import Guarantee, Sensitivity, epsilon, sensitivity
from tests.engine.support import trace

CLIP, RHO, DIM = 0.7, 9.0, 3
COUNTS = (4, 2, 6)
NETWORK = rl.ring(len(COUNTS))
KINDS = ("half_sum", "mean", "logistic")
WEIGHTS: tuple[Any, ...] = ("equal", "rows", (0.5, 2.0, 1.0))


def private(**options: Any) -> rl.PIADMM2:
    return rl.PIADMM2(**{"rho": RHO, "first_order": True, "clip": CLIP, "sigma": 0.1, **options})


def data(seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    generator = np.random.default_rng(seed)
    features = [generator.normal(size=(count, DIM)) for count in COUNTS]
    return features, [np.sign(generator.normal(size=count)) for count in COUNTS]


def problem_of(kind: str, features: Any, answers: Any, weights: Any = "equal", ridge: float = 0.05) -> Any:
    if kind == "logistic":
        return rl.Logistic(features, answers, ridge=ridge, weights=weights)
    return rl.LeastSquares(features, answers, scale=kind, ridge=ridge, weights=weights)


def replaced(blocks: list[np.ndarray], agent: int, value: Any) -> list[np.ndarray]:
    """The same blocks with the agent's first record replaced."""
    changed = [block.copy() for block in blocks]
    changed[agent][0] = value
    return changed


def after_a_visit(problem: Any, agent: int, seed: int, **options: Any) -> np.ndarray:
    """x⁺ of the agent after its first visit, without noise; before it nothing has been done with its data."""
    run = trace(private(sigma=0.0, start=rl.UniformStart(-2.0, 2.0), **options), problem, NETWORK, agent + 1, seed)
    return run.x[-1, agent]


def bound(problem: Any, agent: int, **options: Any) -> Sensitivity:
    found = sensitivity(private(**options), problem, agent)
    assert isinstance(found, Sensitivity)
    return found


@pytest.mark.parametrize(
    ("kind", "weights", "expected"),
    [
        ("half_sum", "equal", (2.0, 2.0, 2.0)),
        ("half_sum", "rows", (2.0, 2.0, 2.0)),  # a sum weighs the rows alike already
        ("half_sum", (0.5, 2.0, 1.0), (1.0, 4.0, 2.0)),
        ("mean", "equal", (2 / 4, 2 / 2, 2 / 6)),
        ("mean", "rows", (2 / 4, 2 / 4, 2 / 4)),  # weights b_i/4, as the mean of b is 4
        ("mean", (0.5, 2.0, 1.0), (1 / 4, 4 / 2, 2 / 6)),
        ("logistic", "equal", (2 / 4, 2 / 2, 2 / 6)),
        ("logistic", "rows", (2 / 4, 2 / 4, 2 / 4)),
        ("logistic", (0.5, 2.0, 1.0), (1 / 4, 4 / 2, 2 / 6)),
    ],
)
def test_it_is_2_c_weight_over_rho(kind: str, weights: Any, expected: tuple[float, ...]) -> None:
    problem = problem_of(kind, *data(0), weights)
    for agent, factor in enumerate(expected):
        found = bound(problem, agent)
        assert found.x == pytest.approx(factor * CLIP / RHO, rel=1e-14)
        assert found.relation == "replace one record" and "clipped to 0.7" in found.words
        sampled = bound(problem, agent, sample_rate=0.25)
        assert sampled.x == pytest.approx(0.5 * factor * CLIP / (0.25 * RHO), rel=1e-14)
        assert sampled.relation == "add or remove one record"


def test_the_ridge_plays_no_part() -> None:
    assert bound(problem_of("mean", *data(0), ridge=0.0), 0).x == bound(problem_of("mean", *data(0), ridge=5.0), 0).x


def test_the_worst_agent_is_the_one_with_the_fewest_records() -> None:
    found = epsilon(private(), problem_of("mean", *data(0)), 5)
    assert isinstance(found, Guarantee) and found.agent == 1
    each = [epsilon(private(), problem_of("mean", *data(0)), 5, agent=agent).epsilon for agent in range(3)]
    assert each[1] == found.epsilon == max(each) and each[2] == min(each)


numbers = st.floats(-1e4, 1e4)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KINDS), st.sampled_from(WEIGHTS), st.integers(0, 2), st.integers(0, 50),
    st.lists(numbers, min_size=DIM, max_size=DIM), numbers, st.lists(numbers, min_size=DIM, max_size=DIM), numbers,
)  # fmt: skip
def test_no_record_moves_x_further(
    kind: str, weights: Any, agent: int, seed: int, one: list[float], first: float, other: list[float], second: float
) -> None:
    features, answers = data(seed)
    ends = []
    for row, answer in ((one, first), (other, second)):
        value = float(np.sign(answer) or 1.0) if kind == "logistic" else answer
        problem = problem_of(kind, replaced(features, agent, row), replaced(answers, agent, value), weights)
        ends.append(after_a_visit(problem, agent, seed))
    assert np.linalg.norm(ends[0] - ends[1]) <= bound(problem, agent).x * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("agent", range(3))
def test_the_worst_record_moves_it_just_so_far(kind: str, weights: Any, agent: int) -> None:
    """The same features, seen from both sides: gradients of more than C each way. So the bound is tight."""
    features, answers = data(1)
    ends = []
    for side in (-1.0, 1.0):
        row = 1e-3 * np.ones(DIM) if kind != "logistic" else 50.0 * np.array([1.0, -1.0, 0.5])
        if kind == "logistic":  # a margin of 0 gives the slope −½t·o whatever the label: turn the row until x'o = 0
            start = trace(
                private(sigma=0.0, start=rl.UniformStart(-2.0, 2.0)), problem_of(kind, features, answers), NETWORK, 0, 1
            )
            x = start.x[0, agent]
            row = row - (row @ x) / (x @ x) * x
        problem = problem_of(
            kind,
            replaced(features, agent, row),
            replaced(answers, agent, side if kind == "logistic" else side * 1e6),
            weights,
        )
        ends.append(after_a_visit(problem, agent, 1))
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(bound(problem, agent).x, rel=1e-9)


def test_unclipped_there_is_no_such_bound() -> None:
    features, answers = data(1)
    ends = []
    for target in (-1e6, 1e6):
        problem = problem_of("mean", features, replaced(answers, 0, target))
        ends.append(trace(private(clip=None, sigma=0.0), problem, NETWORK, 1, 1).x[-1, 0])
    assert np.linalg.norm(ends[0] - ends[1]) > 1e3


@pytest.mark.parametrize("kind", ["half_sum", "mean"])
def test_with_sampling_a_record_that_is_drawn_moves_x_by_1_over_q_as_much(kind: str) -> None:
    """Agent 0's last record is taken away; its weight stays as it was, since the number of records is public."""
    rate, agent = 0.4, 0
    features, answers = data(2)
    answers[0][-1] = 1e6
    fewer = [block[:-1] if i == agent else block for i, block in enumerate(features)]
    less = [block[:-1] if i == agent else block for i, block in enumerate(answers)]
    weights = (0.75, 1.0, 1.0) if kind == "mean" else "equal"  # 0.75/3 = 1/4
    whole, rest = problem_of(kind, features, answers), problem_of(kind, fewer, less, weights)
    assert rest.record_weights[0] == whole.record_weights[0]
    moved = []
    for seed in range(40):
        ends = [after_a_visit(problem, agent, seed, sample_rate=rate) for problem in (whole, rest)]
        moved.append(np.linalg.norm(ends[0] - ends[1]))
        drawn = uniform(seed, agent, 0, BATCH, COUNTS[0] - 1) < rate
        expected = bound(whole, agent, sample_rate=rate).x if drawn else 0.0
        assert moved[-1] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert 0.0 < np.mean(np.array(moved) > 0.0) < 1.0
