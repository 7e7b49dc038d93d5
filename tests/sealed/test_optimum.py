"""What sealed laps find is the minimiser of the pooled problem, as other libraries find it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize, nnls
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso, LogisticRegression

import roundelay as rl
from roundelay.algorithms.sealed.optimisers import Goal, NoMinimiserError
from tests.sealed.support import (
    apart,
    huber,
    ill_conditioned,
    logistic,
    plain_functions,
    played,
    pooled_gradient,
    pooled_value,
    rows,
    simulate,
    squares,
)

SIZES = st.tuples(st.integers(2, 6), st.integers(1, 6), st.integers(0, 10_000))
FEW = settings(max_examples=12, derandomize=True)


def check_found(run: rl.Run, problem: Any, solution: Any, within: float) -> None:
    assert run.stop == "found" and "found the minimiser" in run.outcome
    assert apart(run.estimate, solution) < within
    np.testing.assert_array_equal(run.x, np.tile(run.estimate, (problem.agents, 1)))
    assert run.history["error"].iloc[-1] < within and run.units_to(1e-6) <= run.units


@FEW
@given(SIZES, st.sampled_from(["auto", "normal-equations", "conjugate-gradients", "newton", "lbfgs"]), st.booleans())
def test_least_squares(size: tuple[int, int, int], optimiser: str, wide: bool) -> None:
    problem = squares(*size)
    whole, targets = (np.concatenate(list(blocks)) for blocks in (problem.features, problem.targets))
    run = simulate(rl.SealedLaps(optimiser, wide=wide), problem)
    check_found(run, problem, np.linalg.lstsq(whole, targets, rcond=None)[0], 1e-10)


@FEW
@given(SIZES, st.sampled_from(["auto", "newton", "lbfgs"]), st.sampled_from([logistic, huber]))
def test_rows_with_a_loss(size: tuple[int, int, int], optimiser: str, make: Any) -> None:
    problem = make(*size)
    run = simulate(rl.SealedLaps(optimiser), problem)
    check_found(run, problem, problem.optimum, 1e-9)
    assert np.linalg.norm(pooled_gradient(problem, run.estimate)) < 1e-9


@FEW
@given(SIZES, st.booleans(), st.booleans())
def test_functions_in_python_for_which_a_gradient_is_enough(
    size: tuple[int, int, int], values: bool, hessians: bool
) -> None:
    problem = plain_functions(*size, values=values, hessians=hessians)
    run = simulate(rl.SealedLaps(), problem)
    whole = plain_functions(*size)
    best = minimize(
        lambda x: pooled_value(whole, x), np.zeros(size[1]), jac=lambda x: pooled_gradient(whole, x), tol=1e-12
    )
    assert type(run.algorithm.optimiser) is (rl.Newton if hessians else rl.LBFGS)
    check_found(run, problem, best.x, 1e-6)  # as far as minimize comes
    assert np.linalg.norm(pooled_gradient(problem, run.estimate)) / size[0] < 1e-10


# ---------------------------------------------------------------- regularisers


@pytest.mark.parametrize("optimiser", ["normal-equations", "newton", "lbfgs"])
def test_lasso_as_scikit_learn_finds_it(optimiser: str) -> None:
    features, targets = load_diabetes(return_X_y=True)
    features, targets = features / features.std(axis=0), (targets - targets.mean()) / targets.std()
    weight = 20.0
    theirs = Lasso(alpha=weight / len(targets), fit_intercept=False, tol=1e-14, max_iter=100_000).fit(features, targets)
    problem = rl.LeastSquares(np.array_split(features, 5), np.array_split(targets, 5))
    run = simulate(rl.SealedLaps(optimiser, regulariser=rl.L1(weight)), problem)
    assert apart(run.estimate, theirs.coef_) < 1e-7
    np.testing.assert_array_equal(run.estimate == 0.0, theirs.coef_ == 0.0)
    assert 0 < (run.estimate == 0.0).sum() < 10


@pytest.mark.parametrize("optimiser", ["auto", "newton", "lbfgs"])
@pytest.mark.parametrize("make", [squares, logistic])
def test_boxes_as_scipy_finds_them(optimiser: str, make: Any) -> None:
    problem = make(4, 5, 3)
    low, high = -0.2, 0.3
    best = minimize(
        lambda x: pooled_value(problem, x), np.zeros(5), jac=lambda x: pooled_gradient(problem, x),
        bounds=[(low, high)] * 5, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-12},
    )  # fmt: skip
    run = simulate(rl.SealedLaps(optimiser, regulariser=rl.Box(low, high)), problem)
    check_found(run, problem, best.x, 1e-6)
    assert (run.estimate >= low).all() and (run.estimate <= high).all()
    assert 0 < ((run.estimate == low) | (run.estimate == high)).sum() < 5


@pytest.mark.parametrize("optimiser", ["normal-equations", "newton", "lbfgs"])
def test_non_negative_least_squares(optimiser: str) -> None:
    problem = squares(4, 6, 8)
    whole, targets = (np.concatenate(list(blocks)) for blocks in (problem.features, problem.targets))
    solution, _ = nnls(whole, targets)
    assert 0 < (solution == 0.0).sum() < 6
    run = simulate(rl.SealedLaps(optimiser, regulariser=rl.NonNegative()), problem)
    check_found(run, problem, solution, 1e-9)


@pytest.mark.parametrize("optimiser", ["newton", "lbfgs"])
def test_sparse_logistic_regression_as_scikit_learn_finds_it(optimiser: str) -> None:
    features, classes = load_breast_cancer(return_X_y=True)
    features = ((features - features.mean(axis=0)) / features.std(axis=0))[:, :8]
    labels = np.where(classes == 1, 1.0, -1.0)
    # Each f_i is a mean over its rows: equal numbers of rows, and the weight with them.
    features, labels = features[:565], labels[:565]
    weight = 0.4
    theirs = LogisticRegression(
        l1_ratio=1.0, C=5.0 / (565 * weight), solver="saga", fit_intercept=False, tol=1e-12, max_iter=100_000
    ).fit(features, labels)
    problem = rl.Logistic(np.split(features, 5), np.split(labels, 5))
    run = simulate(rl.SealedLaps(optimiser, regulariser=rl.L1(weight)), problem)
    assert apart(run.estimate, theirs.coef_[0]) < 1e-6
    assert (run.estimate == 0.0).any()


# ---------------------------------------------------------------- what is hard


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("optimiser", ["auto", "newton", "conjugate-gradients"])
def test_a_condition_number_of_1e8(optimiser: str, wide: bool) -> None:
    problem, solution = ill_conditioned(4, 10, 1e8, 0)
    run = simulate(rl.SealedLaps(optimiser, wide=wide), problem)
    assert run.stop == "found" and apart(run.estimate, solution) < 1e-8
    # Conjugate gradients know no Hessian, and so not what of a gradient is rounding.
    assert "found the minimiser" in run.outcome or optimiser == "conjugate-gradients"


@pytest.mark.parametrize("far", [1e-6, 1e6])
def test_lbfgs_with_one_feature_in_units_1e6_apart(far: float) -> None:
    features, targets, _ = rows(5, 3, 1)
    units = np.array([far, 1.0, 1.0])
    solution = np.linalg.lstsq(np.concatenate(features), np.concatenate(targets), rcond=None)[0]
    run = simulate(rl.SealedLaps("lbfgs", wide=True), rl.LeastSquares([block * units for block in features], targets))
    assert "found the minimiser" in run.outcome and apart(run.estimate * units, solution) < 1e-6


def test_lbfgs_says_where_it_came_no_further() -> None:
    problem, _ = ill_conditioned(4, 10, 1e8, 0)
    run = simulate(rl.SealedLaps("lbfgs"), problem, hops=4 * 60)
    assert run.stop == "hops" and run.outcome.startswith(
        "L-BFGS made 60 laps: another of 4 hops would be more than the 240"
    )


@pytest.mark.parametrize("distance", [10.0, 1e3])
def test_newton_finds_its_way_where_nearly_all_is_straight(distance: float) -> None:
    """Far from Huber's minimum slopes are cut off: for a dozen laps the gradient stays as long as it was; or no agent has a Hessian."""
    features, targets, _ = rows(4, 3, 2)
    far = [target + distance * block @ np.ones(3) for block, target in zip(features, targets, strict=True)]
    problem = rl.Huber(features, far, delta=0.7)
    check_found(simulate(rl.SealedLaps("newton", wide=True), problem), problem, problem.optimum, 1e-10)


def test_newton_says_found_only_where_the_gradient_is_within_the_tolerance() -> None:
    """A step of 1e-12 may leave a gradient above it; one more lap is made then."""
    problem = logistic(2, 2, 2763)
    check_found(simulate(rl.SealedLaps("newton"), problem), problem, problem.optimum, 1e-10)


@pytest.mark.parametrize(
    ("optimiser", "make"), [("normal-equations", squares), ("newton", squares), ("newton", logistic), ("newton", huber)]
)
def test_on_a_coarse_grid_it_ends_where_nothing_more_is_to_be_seen(optimiser: str, make: Any) -> None:
    run = simulate(rl.SealedLaps(optimiser, bits=16), make(4, 5, 3))
    assert run.stop == "found" and len(run.history) < 40 and run.history["error"].iloc[-1] < 1e-3


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("optimiser", ["normal-equations", "conjugate-gradients"])
def test_two_hundred_unknowns(optimiser: str, wide: bool) -> None:
    rng = np.random.default_rng(5)
    whole, targets = rng.normal(size=(420, 200)), rng.normal(size=420)
    problem = rl.LeastSquares(np.split(whole, 6), np.split(targets, 6))
    run = simulate(rl.SealedLaps(optimiser, wide=wide), problem)
    check_found(run, problem, np.linalg.lstsq(whole, targets, rcond=None)[0], 1e-9)


def test_classes_that_can_be_separated_are_named_in_words() -> None:
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(6, 2)) for _ in range(3)]
    labels = [np.where(block[:, 0] > 0.0, 1.0, -1.0) for block in features]
    with pytest.raises(
        ValueError, match="separated by a plane, so that the logistic loss has no finite minimiser: add a ridge"
    ):
        rl.Logistic(features, labels)
    assert simulate(rl.SealedLaps(), rl.Logistic(features, labels, ridge=1e-4)).stop == "found"


@pytest.mark.parametrize("optimiser", [rl.Newton(), rl.LBFGS()], ids=lambda one: one.name)
def test_a_sum_below_what_a_minimum_can_be_has_none(optimiser: Any) -> None:
    """Whose labels are separated, of which nobody knows before the totals: exp(−x) has no minimiser."""
    falling = rl.CallableProblem(
        [lambda x: -np.exp(-x)] * 3, 1, value_of=[lambda x: float(np.exp(-x[0]))] * 3, hessian_of=[lambda x: np.diag(np.exp(-x))] * 3
    )  # fmt: skip
    goal = Goal(1, 3, least=1e-6, why_none="The classes can be separated.")
    with pytest.raises(NoMinimiserError, match="can be separated"):
        played(optimiser, falling, goal)


# ---------------------------------------------------------------- who takes part


@pytest.mark.parametrize("agents", [1, 2])
def test_few_agents(agents: int) -> None:
    """Two agents hide nothing from each other, and one has nobody to hide from: both are right all the same."""
    problem = squares(agents, 3, 1)
    run = simulate(rl.SealedLaps(), problem, rl.complete(agents), transcript=True)
    check_found(run, problem, problem.optimum, 1e-12)
    assert (run.units == 0.0) == (agents == 1)


@pytest.mark.parametrize("optimiser", ["normal-equations", "lbfgs"])
def test_whoever_is_met_again_only_relays(optimiser: str) -> None:
    problem, star = squares(5, 3, 2), rl.star(5)
    on_a_ring, on_a_star = (simulate(rl.SealedLaps(optimiser), problem, network) for network in (rl.ring(5), star))
    np.testing.assert_array_equal(on_a_star.record.tokens, on_a_ring.record.tokens)
    assert on_a_star.steps / on_a_ring.steps == len(star.tour().order) / 5 == 8 / 5
