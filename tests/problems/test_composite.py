"""The minimiser with a regulariser, and the regularisers themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import lsq_linear

from roundelay import L1, Box, NonNegative, NoRegulariser
from roundelay.problems import CallableProblem, LeastSquares, Logistic, composite_optimum, total_gradient
from tests.reference.dense import lasso_by_sklearn, project_box, project_nonnegative, soft_threshold

from .cases import make_data

DATA = make_data((3, 9, 1, 14), 6, 11)
ROWS, TARGETS = np.vstack(DATA.features), np.concatenate(DATA.targets)


@pytest.mark.parametrize("weight", [0.01, 0.5, 2.0, 5.0, 1e4])
def test_lasso(weight: float) -> None:
    """Our pooled loss is ½‖Ox − t‖²; scikit-learn's is (1/2n)‖Ox − t‖², so that its alpha is weight/n."""
    x = composite_optimum(LeastSquares(DATA.features, DATA.targets), L1(weight))
    expected = lasso_by_sklearn(DATA.features, DATA.targets, weight)
    np.testing.assert_allclose(x, expected, atol=1e-9)
    np.testing.assert_array_equal(x == 0.0, expected == 0.0)


def test_the_lasso_tests_see_both_sparse_and_dense_answers() -> None:
    problem = LeastSquares(DATA.features, DATA.targets)
    counts = [np.count_nonzero(composite_optimum(problem, L1(weight))) for weight in (0.01, 2.0, 1e4)]
    assert counts[0] == 6 > counts[1] > counts[2] == 0


@pytest.mark.parametrize(("lower", "upper"), [(-0.1, 0.1), (0.05, 0.2), (-np.inf, 0.0), (0.0, np.inf), (-9.0, 9.0)])
def test_box(lower: float, upper: float) -> None:
    problem = LeastSquares(DATA.features, DATA.targets)
    x = composite_optimum(problem, NonNegative() if (lower, upper) == (0.0, np.inf) else Box(lower, upper))
    expected = lsq_linear(ROWS, TARGETS, (lower, upper), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(x, expected, atol=1e-10)
    assert (x >= lower).all() and (x <= upper).all()


@pytest.mark.parametrize("weight", [0.01, 0.1, 0.4, 10.0])
def test_logistic_with_l1_meets_its_conditions(weight: float) -> None:
    problem = Logistic(DATA.features, DATA.labels, ridge=1e-3)
    x = composite_optimum(problem, L1(weight))
    slope = total_gradient(problem, x)
    away = x != 0.0
    np.testing.assert_allclose(slope[away], -weight * np.sign(x[away]), atol=1e-10)
    assert (np.abs(slope[~away]) <= weight + 1e-10).all()


@pytest.mark.parametrize("regulariser", [Box(-0.2, 0.1), NonNegative()])
def test_logistic_in_a_box_meets_its_conditions(regulariser: Box) -> None:
    problem = Logistic(DATA.features, DATA.labels, ridge=1e-3)
    x = composite_optimum(problem, regulariser)
    slope = total_gradient(problem, x)
    assert (slope[x == regulariser.lower] >= -1e-10).all()
    assert (slope[x == regulariser.upper] <= 1e-10).all()
    np.testing.assert_allclose(slope[(x > regulariser.lower) & (x < regulariser.upper)], 0.0, atol=1e-10)
    assert np.isfinite(regulariser.value(x))


def test_without_a_regulariser_it_is_the_optimum() -> None:
    problem = LeastSquares(DATA.features, DATA.targets)
    np.testing.assert_array_equal(composite_optimum(problem, NoRegulariser()), problem.optimum)
    np.testing.assert_allclose(composite_optimum(problem, L1(0.0)), problem.optimum, atol=1e-11)


def test_without_a_lipschitz_constant_it_is_refused() -> None:
    problem = CallableProblem([lambda x: x - 1.0], 2)
    with pytest.raises(ValueError, match=r"^The minimiser with a regulariser needs .*: give L to the problem\.$"):
        composite_optimum(problem, L1(1.0))


def test_a_callable_problem_without_hessians_will_do() -> None:
    reference = LeastSquares(DATA.features, DATA.targets)
    gradients = [lambda x, i=i: reference.gradient(i, x) for i in range(4)]
    x = composite_optimum(CallableProblem(gradients, 6, L=reference.L), L1(2.0))
    np.testing.assert_allclose(x, composite_optimum(reference, L1(2.0)), atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5), st.floats(0.0, 10.0), st.floats(1e-3, 1e3))
def test_proximal_maps(v: list[float], weight: float, scale: float) -> None:
    point = np.array(v)
    np.testing.assert_array_equal(L1(weight).prox(point, scale), soft_threshold(point, scale * weight))
    np.testing.assert_array_equal(Box(-1.0, weight).prox(point, scale), project_box(point, -1.0, weight))
    np.testing.assert_array_equal(NonNegative().prox(point, scale), project_nonnegative(point))
    np.testing.assert_array_equal(NoRegulariser().prox(point, scale), point)
    for regulariser in (L1(weight), Box(-1.0, weight), NonNegative(), NoRegulariser()):
        x = regulariser.prox(point, scale)

        def objective(y: np.ndarray, regulariser=regulariser) -> float:
            return scale * regulariser.value(y) + 0.5 * (y - point) @ (y - point)

        for nudge in (1e-3, -1e-3, 0.5):
            assert objective(x) <= objective(x + nudge) * (1.0 + 1e-12)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"^The weight of ‖x‖₁ is .*\.$"):
        L1(weight)


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.0), (np.nan, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)])
def test_empty_boxes_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(ValueError, match=r"^The box from .* is empty: lower must not exceed upper\.$"):
        Box(lower, upper)
