"""Many unknowns and few rows, or many of both: the minimiser is found in the span of the rows, by a factor or by iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import roundelay as rl
from roundelay.problems import least_squares, row_problem, solving, total_gradient
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


def test_without_a_ridge_it_is_the_one_of_least_norm() -> None:
    problem = KINDS["squares"](0.0, DATA)
    rows = problem.rows
    np.testing.assert_allclose(problem.optimum, np.linalg.pinv(rows.features) @ rows.targets, rtol=1e-9)
    points = np.random.default_rng(0).normal(size=(3, 310))
    least = problem.values(np.tile(problem.optimum, (3, 1))).sum()
    gaps = [problem.values(np.tile(point, (3, 1))).sum() - least for point in points]
    np.testing.assert_allclose(problem.objective_gaps(points), gaps, rtol=1e-9)
    assert problem.mu == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_too_large_for_a_matrix_is_iterated(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data((40, 30, 30), 12, 6)
    factored = KINDS[kind](0.1, data).optimum
    for module in (solving, row_problem, least_squares):
        monkeypatch.setattr(module, "MOST_FACTORED", 5)
    problem = KINDS[kind](0.1, data)
    np.testing.assert_allclose(problem.optimum, factored, rtol=1e-9, atol=1e-11)
    if kind == "squares":
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


def test_sparse_features_are_refused_as_what_they_are() -> None:
    block = scipy.sparse.csr_matrix(np.eye(3))
    with pytest.raises(ValueError, match=r"agent 1 are a sparse matrix.*toarray"):
        rl.LeastSquares([np.eye(3), block], [np.ones(3), np.ones(3)])
    with pytest.raises(ValueError, match=r"one sparse matrix.*toarray"):
        rl.LeastSquares(block, [np.ones(3)])  # type: ignore[arg-type]
