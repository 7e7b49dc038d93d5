"""Many unknowns and few rows, or many of both: the minimiser is found in the span of the rows, by a factor or by iterations."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.problems import least_squares, row_problem, rows, solving, total_gradient
from roundelay.shown import watched
from tests.problems.cases import make_data

DATA = make_data((3, 1, 8), 310, 6)  # 12 rows, 310 unknowns
KINDS: dict[str, Any] = {
    "squares": lambda ridge, data: rl.LeastSquares(
        data.features, data.targets, ridge=ridge, scale="mean", weights=[1.0, 2.0, 3.0]
    ),
    "logistic": lambda ridge, data: rl.Logistic(data.features, data.labels, ridge=ridge, separable=True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_with_fewer_rows_than_unknowns_the_minimiser_is_the_same(kind: str) -> None:
    problem = KINDS[kind](0.1, DATA)
    x, everywhere = problem.optimum, problem.minimiser()  # in the span of the rows, and among all unknowns
    np.testing.assert_allclose(x, everywhere, rtol=1e-9, atol=1e-11)
    assert np.linalg.norm(total_gradient(problem, x)) <= 1e-12
    _, _, span = np.linalg.svd(problem.rows.features, full_matrices=False)
    np.testing.assert_allclose(span.T @ (span @ x), x, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_depend_on_each_other_are_no_hindrance(kind: str) -> None:
    """One is nearly another, so that their span is found by an orthonormal basis."""
    data = make_data((3, 1, 8), 310, 8)
    data.features[2][2] = data.features[0][1] + 1e-7 * data.features[2][3]
    problem = KINDS[kind](0.1, data)
    np.testing.assert_allclose(problem.optimum, problem.minimiser(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_by_batch_it_is_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over all rows, the agents' factors and gradients, and the span of the rows."""
    x, data = np.random.default_rng(2).normal(size=6), make_data((9, 4, 9), 6, 6)
    at_once, by_batches = KINDS[kind](0.1, data), KINDS[kind](0.1, data)
    expected = [*_all_of(at_once, x), KINDS[kind](0.1, DATA).optimum]
    for module in (rows, least_squares, row_problem):
        monkeypatch.setattr(module, "AT_ONCE", 30)
    assert [len(targets) for _, targets, _ in by_batches.rows.batches()] == [5, 5, 5, 5, 2]
    assert [owners.tolist() for *_, owners in by_batches.rows.batches()][1:3] == [[0, 0, 0, 0, 1], [1, 1, 1, 2, 2]]
    for one, other in zip(expected, [*_all_of(by_batches, x), KINDS[kind](0.1, DATA).optimum], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11)


def _all_of(problem: Any, x: np.ndarray) -> list[Any]:
    everywhere = np.tile(x, (3, 1))
    return [
        problem.optimum, problem.total_gradient(x), total_gradient(problem, x), problem.total_hessian(x),
        problem.gradients(everywhere), problem.prox(2, x, 0.7),
    ]  # fmt: skip


def test_an_array_that_nobody_writes_to_is_not_copied() -> None:
    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4))
    before = rl.LeastSquares(features, targets)
    assert not np.shares_memory(before.rows.features, features)
    for array in (features, targets):
        array.setflags(write=False)
    after = rl.LeastSquares(features, targets)
    assert np.shares_memory(after.rows.features, features) and np.shares_memory(after.rows.targets, targets)
    np.testing.assert_array_equal(after.rows.features, before.rows.features)
    np.testing.assert_array_equal(after.rows.targets, before.rows.targets)
    alone = rl.LeastSquares([features[1]], [targets[1]])
    assert np.shares_memory(alone.rows.features, features)
    turned = features.transpose(0, 2, 1)[:, :, :2]  # read-only, too, but not in the order of the rows
    np.testing.assert_array_equal(rl.LeastSquares(turned, targets[:, :2]).rows.features, np.concatenate(list(turned)))


def test_without_a_ridge_it_is_the_one_of_least_norm() -> None:
    problem = KINDS["squares"](0.0, DATA)
    data = problem.rows
    np.testing.assert_allclose(problem.optimum, np.linalg.pinv(data.features) @ data.targets, rtol=1e-9)
    points = np.random.default_rng(0).normal(size=(3, 310))
    least = problem.values(np.tile(problem.optimum, (3, 1))).sum()
    gaps = [problem.values(np.tile(point, (3, 1))).sum() - least for point in points]
    np.testing.assert_allclose(problem.objective_gaps(points), gaps, rtol=1e-9)
    assert problem.mu == 0.0


@pytest.mark.usefixtures("in_a_notebook")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_too_large_for_a_matrix_is_iterated(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    data = make_data((40, 30, 30), 12, 6)
    factored = KINDS[kind](0.1, data).optimum
    for module in (solving, row_problem, least_squares):
        monkeypatch.setattr(module, "MOST_FACTORED", 5)
    problem = KINDS[kind](0.1, data)
    np.testing.assert_allclose(problem.optimum, factored, rtol=1e-9, atol=1e-11)
    if kind == "squares":
        assert "Looking for x*" in shown.getvalue() and "/240" in shown.getvalue()
        points = np.eye(12)
        np.testing.assert_allclose(
            problem.objective_gaps(points), KINDS[kind](0.1, data).objective_gaps(points), rtol=1e-9
        )


def test_large_systems_are_solved_by_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data((40, 30, 30), 12, 6)
    exact = [KINDS[kind](0.1, data).optimum for kind in KINDS]
    monkeypatch.setattr(solving, "MOST_DENSE", 5)
    for kind, x in zip(KINDS, exact, strict=True):
        np.testing.assert_allclose(KINDS[kind](0.1, data).optimum, x, rtol=1e-10, atol=1e-12)


def test_ten_thousand_unknowns() -> None:
    """A matrix of 10,000 × 10,000 would take 800 MB, and a minute to be solved."""
    squares = rl.paper_least_squares(5, 10, 10_000)
    assert np.linalg.norm(total_gradient(squares, squares.optimum)) <= 1e-9
    rows = np.random.default_rng(0).normal(size=(5, 10, 10_000))
    logistic = rl.Logistic(rows, np.sign(rows[:, :, 0]), ridge=1e-2)
    assert np.linalg.norm(total_gradient(logistic, logistic.optimum)) <= 1e-9
    run = rl.simulate(rl.IADMM(), squares, rl.ring(5), 50, engine="python", progress=False)
    assert run.history["objective_gap"].iloc[-1] < run.history["objective_gap"].iloc[0]


def test_a_logistic_problem_with_a_ridge_looks_for_its_minimiser_when_it_is_asked() -> None:
    assert "optimum" not in vars(rl.Logistic(DATA.features, DATA.labels, ridge=1.0))
    with pytest.raises(ValueError, match="separated by a plane"):
        rl.Logistic(DATA.features, DATA.labels)
