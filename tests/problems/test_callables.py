"""Problems from plain functions: the same as the built-in ones, and refused where they can't be."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from roundelay.problems import CallableProblem, LeastSquares, Logistic, Problem

from .cases import call_gradient, call_minimise, kernel_function, make_data, prox_residual

DATA = make_data((3, 1, 8), 4, 6)
LEAST_SQUARES = LeastSquares(DATA.features, DATA.targets, ridge=0.1)
LOGISTIC = Logistic(DATA.features, DATA.labels, ridge=0.1)


def through_callables(problem: Problem, *given: str) -> CallableProblem:
    def each_agent(name: str) -> Any:
        method = getattr(problem, name)
        return [lambda *arguments, i=i: method(i, *arguments) for i in range(problem.agents)]

    return CallableProblem(each_agent("gradient"), problem.dim, **{f"{name}_of": each_agent(name) for name in given})


@pytest.mark.parametrize("inner", [LEAST_SQUARES, LOGISTIC])
def test_identical_to_the_problem_inside(inner: Problem) -> None:
    problem = through_callables(inner, "value", "hessian", "prox")
    assert isinstance(problem, Problem) and (problem.agents, problem.dim) == (3, 4)
    points = np.random.default_rng(0).normal(size=(3, 4))
    for agent, x in enumerate(points):
        assert problem.value(agent, x) == inner.value(agent, x)
        np.testing.assert_array_equal(problem.gradient(agent, x), inner.gradient(agent, x))
        np.testing.assert_array_equal(problem.hessian(agent, x), inner.hessian(agent, x))
        np.testing.assert_array_equal(problem.prox(agent, x, 2.0), inner.prox(agent, x, 2.0))
    np.testing.assert_allclose(problem.values(points), inner.values(points), rtol=1e-12)
    np.testing.assert_allclose(problem.gradients(points), inner.gradients(points), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(problem.optimum, inner.optimum, rtol=1e-8)
    np.testing.assert_allclose(problem.objective_gaps(points), inner.objective_gaps(points), rtol=1e-9)


@pytest.mark.parametrize("inner", [LEAST_SQUARES, LOGISTIC])
@pytest.mark.parametrize("given", [(), ("hessian",)], ids=["gradient", "hessian"])
@pytest.mark.parametrize("penalty", [1e-2, 1.0, 1e4])
def test_a_missing_prox_is_solved(inner: Problem, given: tuple[str, ...], penalty: float) -> None:
    problem = through_callables(inner, *given)
    rng = np.random.default_rng(1)
    for agent in range(3):
        for spread in (1.0, 100.0):
            v = spread * rng.normal(size=4)
            for start in (None, rng.normal(size=4)):
                x = problem.prox(agent, v, penalty, start)
                assert prox_residual(inner, agent, x, v, penalty) <= 1e-8
                np.testing.assert_allclose(x, inner.prox(agent, v, penalty), rtol=1e-6, atol=1e-6)


def test_a_missing_prox_in_many_dimensions() -> None:
    dim = 400
    diagonal = np.linspace(1.0, 3.0, dim)
    problem = CallableProblem([lambda x: diagonal * x - 1.0], dim)
    v = np.linspace(-1.0, 1.0, dim)
    np.testing.assert_allclose(problem.prox(0, v, 2.0), (1.0 + 2.0 * v) / (diagonal + 2.0), atol=1e-7)


def test_the_optimum_without_values() -> None:
    problem = through_callables(LEAST_SQUARES)
    np.testing.assert_allclose(problem.optimum, LEAST_SQUARES.optimum, rtol=1e-8)
    assert np.isnan(problem.objective_gaps(np.zeros((2, 4)))).all()


def test_the_kernels_run_in_python_and_say_why_not_compiled() -> None:
    problem = through_callables(LEAST_SQUARES, "prox")
    assert "plain Python functions" in problem.kernel().why_not_compiled
    x, out = np.linspace(0.0, 1.0, 4), np.empty(4)
    kernel_function(problem, call_gradient, False)(1, x, out)
    np.testing.assert_array_equal(out, LEAST_SQUARES.gradient(1, x))
    kernel_function(problem, call_minimise, False)(1, 3.0 * x, 3.0, np.zeros(4), out)
    np.testing.assert_allclose(out, LEAST_SQUARES.prox(1, x, 3.0), rtol=1e-12)


def one(gradient: Any = lambda x: x, **others: Any) -> CallableProblem:
    return CallableProblem(
        [lambda x: x, gradient], 2, **{name: [function, function] for name, function in others.items()}
    )


REFUSED: list[tuple[Any, str]] = [
    (lambda: CallableProblem([], 2), "There is no agent"),
    (lambda: CallableProblem([lambda x: x], 0), "The dimension is 0"),
    (lambda: CallableProblem([lambda x: x], 2, value_of=[]), "value_of has 0 functions but there are 1 agents"),
    (lambda: CallableProblem([lambda x: x], 2, prox_of=[max, max]), "prox_of has 2 functions but there are 1 agents"),
    (lambda: one(lambda x: x[:1]), r"gradient of agent 1 has the shape \(1,\) instead of \(2,\)"),
    (lambda: one(lambda x: None), r"gradient of agent 1 has the shape \(\)"),
    (lambda: one(lambda x: "none"), "gradient of agent 1 is not made of numbers"),
    (lambda: one(lambda x: x * np.nan), "gradient of agent 1 is not finite"),
    (lambda: one().value(1, np.zeros(2)), "value of agent 1's function is not known: give value_of"),
    (lambda: one(value_of=lambda x: np.inf).value(1, np.zeros(2)), "value of agent 1 is not finite"),
    (lambda: one(value_of=lambda x: x).value(1, np.zeros(2)), r"value of agent 1 has the shape \(2,\)"),
    (lambda: one().hessian(1, np.zeros(2)), "Hessian of agent 1's function is not known: give hessian_of"),
    (lambda: one(hessian_of=lambda x: x).hessian(1, np.zeros(2)), r"Hessian of agent 1 has the shape \(2,\)"),
    (lambda: one(hessian_of=lambda x: x).prox(1, np.zeros(2), 1.0), r"Hessian of agent 1 has the shape \(2,\)"),
    (lambda: one(hessian_of=lambda x: np.eye(2) * np.nan).hessian(1, np.zeros(2)), "Hessian of agent 1 is not finite"),
    (lambda: one(prox_of=lambda v, c: v[0]).prox(1, np.zeros(2), 1.0), r"prox of agent 1 has the shape \(\)"),
    (lambda: one(prox_of=lambda v, c: v + np.inf).prox(1, np.zeros(2), 1.0), "prox of agent 1 is not finite"),
    (lambda: one().prox(1, np.zeros(2), 0.0), "The penalty is 0.0"),
    (lambda: one().gradient(2, np.zeros(2)), "There is no agent 2"),
    (lambda: one(lambda x: 1.0 - x + x**2).prox(1, np.zeros(2), 1.0), "proximal step of agent 1"),
    (lambda: one(lambda x: np.ones(2) - x).optimum, "check the gradients, or that a minimiser exists"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refusals(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        make()
    assert re.match(r"^[A-Z].*: .*\.$", str(caught.value))
