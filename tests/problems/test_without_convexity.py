"""Functions that are not convex: no maximum passes for an optimum, no gap is hidden, and a run can do without an optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl

RING = rl.ring(3)


def wells(**options: Any) -> rl.CallableProblem:
    """f_i(x) = (x² − 1)²: a maximum at 0, where every search begins, and minima at −1 and 1."""
    value, slope = (lambda x: float((x[0] ** 2 - 1.0) ** 2)), (lambda x: 4.0 * x * (x**2 - 1.0))
    return rl.CallableProblem([slope] * 3, 1, [value] * 3, **options)


def test_a_stationary_point_that_is_no_minimum_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no minimum near x = \(0\).*optimum=None"):
        _ = wells().optimum
    saddle = rl.CallableProblem([lambda x: np.array([x[0], -x[1]])], 2)
    with pytest.raises(ValueError, match="no minimum"):
        _ = saddle.optimum
    bend = rl.CallableProblem([lambda x: 3.0 * x**2], 1)  # x³, whose curvature at 0 is 0
    with pytest.raises(ValueError, match="no minimum"):
        _ = bend.optimum
    wide = rl.CallableProblem([lambda x: np.append(-1e-3 * x[:1], x[1:])], 400)  # too many unknowns for a matrix
    with pytest.raises(ValueError, match="no minimum"):
        _ = wide.optimum


def test_a_minimum_is_not_refused() -> None:
    flat = rl.CallableProblem([lambda x: 4.0 * x**3], 1)  # x⁴
    assert abs(flat.optimum[0]) < 1e-2
    lines = rl.CallableProblem([lambda x: np.array([1.0, 1e6]) * (x @ [1.0, 1e6] - 3.0)], 2)  # flat in one direction
    assert lines.optimum @ [1.0, 1e6] == pytest.approx(3.0)
    steep = rl.CallableProblem([lambda x: 1e9 * np.tanh(1e9 * (x - 1e-9))], 1, optimum=[1e-9])
    assert steep.optimum == [1e-9]


def test_the_optimum_can_be_given_and_is_checked() -> None:
    problem = wells(optimum=[1.0])
    run = rl.simulate(rl.DGD(alpha=0.05), problem, RING, iterations=300, x0=[0.5], progress=False)
    np.testing.assert_allclose(run.estimate, [1.0], atol=1e-9)
    assert run.history["error"].iloc[-1] < 1e-9
    for wrong, words in (([0.0], "no minimum"), ([0.7], "no minimum"), ([1.0, 2.0], "shape"), (["a"], "numbers")):
        with pytest.raises(ValueError, match=words):
            wells(optimum=wrong)


def test_no_gap_is_clipped() -> None:
    """Measured from the minimum at −1 of a sum that is lower at 1, the gap at 1 is negative."""
    tilted = rl.CallableProblem(
        [lambda x: 4.0 * x * (x**2 - 1.0) - 0.3], 1, [lambda x: float((x[0] ** 2 - 1.0) ** 2 - 0.3 * x[0])],
        optimum=[np.roots([4.0, 0.0, -4.0, -0.3]).min()],
    )  # fmt: skip
    run = rl.simulate(rl.DGD(alpha=0.05), tilted, rl.ring(1), iterations=200, x0=[1.0], progress=False)
    assert run.history["objective_gap"].iloc[-1] == pytest.approx(-0.6, abs=0.01)


def test_without_an_optimum_runs_are_measured_by_gradient_and_objective(tmp_path: Any) -> None:
    problem = wells(optimum=None)
    for algorithm, length in ((rl.IADMM(rho=20.0), {"hops": 60}), (rl.DGD(alpha=0.05), {"iterations": 60})):
        run = rl.simulate(algorithm, problem, RING, x0=[0.5], progress=False, **length)
        history = run.history
        assert not {"error", "accuracy", "objective_gap"} & set(history.columns)
        z = run.estimate[0]
        assert history["objective"].iloc[-1] == pytest.approx(3.0 * (z**2 - 1.0) ** 2)
        assert history["gradient_norm"].iloc[-1] == pytest.approx(abs(12.0 * z * (z**2 - 1.0)))
        assert history["gradient_norm"].iloc[-1] < 1e-2 < history["gradient_norm"].iloc[0]
        again = rl.load_run(run.save(tmp_path / "run.npz"))
        np.testing.assert_array_equal(again.history, history)
        with pytest.raises(ValueError, match=r"no minimiser; it has .*gradient_norm"):
            run.units_to(1e-3)
        with pytest.raises(ValueError, match="distance to the minimiser"):
            rl.simulate(algorithm, problem, RING, tolerance=1e-3, progress=False, **length)


def test_compare_goes_by_the_gradient_where_there_is_no_optimum() -> None:
    problem = rl.paper_least_squares(3, 5, 2, seed=1).with_optimum(None)
    found = rl.compare([rl.IADMM(), rl.DGD(0.01)], problem, RING, seeds=[0], units=600, levels=[1e-2], progress=False)
    assert found.column == "gradient_norm" and {"final_gradient_norm", "final_objective"} <= set(found.table().columns)
    assert found.ensembles["I-ADMM"][0].units_to(1e-2, "gradient_norm") == found.table().loc["I-ADMM", "units_to_1e-2"]
    assert "objective" in found.text()
    with pytest.raises(ValueError, match="without a minimiser"):
        rl.compare([rl.IADMM()], problem, RING, seeds=[0], units=600, column="error", progress=False)
    with pytest.raises(ValueError, match="needs a minimiser"):
        rl.tune(rl.IADMM(), problem, RING, progress=False)


def test_a_comparison_begins_where_it_is_told_and_not_at_a_maximum() -> None:
    """At x = 0 the gradient is 0, so that every method would be at every level for nothing."""
    problem, methods = wells(optimum=None), [rl.DGD(0.05), rl.WPG(alpha=0.02)]
    shared: dict[str, Any] = {"seeds": [0], "units": 3000, "levels": [1e-3], "progress": False}
    with pytest.raises(ValueError, match=r"start \(x = 0\) the gradient is at or below 0\.001 already.*x0="):
        rl.compare(methods, problem, RING, **shared)
    found = rl.compare(methods, problem, RING, x0=[0.5], **shared).table()
    assert (found["units_to_1e-3"] > 0).all() and (found["final_objective"] < 1e-6).all()
    squares = rl.paper_least_squares(3, 5, 2, seed=1)
    rows = rl.sweep(rl.DGD(0.05), squares, RING, seeds=[0], iterations=5, x0=[-3.0, 3.0], processes=0, progress=False)
    alone = rl.simulate(rl.DGD(0.05), squares, RING, iterations=5, x0=[-3.0, 3.0], progress=False)
    assert rows["error"][0] == alone.history["error"].iloc[-1]
    with pytest.raises(ValueError, match="all start at one point"):
        rl.sweep(rl.DGD(0.05), squares, RING, seeds=[0], iterations=5, x0=[[0.5, 0.5]] * 3, progress=False)
    near = rl.tune(
        rl.DGD(0.05), wells(optimum=[1.0]), RING, x0=[0.9], seeds=[0], evaluations=2, units=3000, progress=False
    )
    assert near.units < float("inf")


def test_a_function_where_a_list_belongs_is_said_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="one function for each agent"):
        rl.CallableProblem(lambda x: x, 1)  # type: ignore[arg-type]
