"""What a problem need not write itself follows from the little that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import roundelay as rl
from roundelay.kernels import DIM, Matrix, Part, Vector, each
from roundelay.problems import OwnProblem, Problem, RowProblem
from roundelay.problems.row_problem import problem_named

from .cases import call_gradient, call_minimise, kernel_function, least_squares, logistic, make_data, prox_residual


class Centres(NamedTuple):
    centres: Matrix


def minimise_to_centre(problem: Centres, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    for d in each(DIM):
        out[d] = (problem.centres[i, d] + w[d]) / (1.0 + penalty)


def gradient_to_centre(problem: Centres, i: int, x: Vector, out: Vector) -> None:
    for d in each(DIM):
        out[d] = x[d] - problem.centres[i, d]


class Meeting(rl.ProblemBase):
    """f_i(x) = ½‖x − centre_i‖²."""

    is_quadratic = True

    def __init__(self, centres: Matrix) -> None:
        self.centres = centres
        self.agents, self.dim = centres.shape

    def values(self, points: Matrix) -> Vector:
        return 0.5 * ((points - self.centres) ** 2).sum(axis=1)

    def gradients(self, points: Matrix) -> Matrix:
        return points - self.centres

    def kernel(self) -> Part:
        functions = (("minimise", minimise_to_centre), ("gradient", gradient_to_centre))
        return Part(functions, Centres(self.centres), per_agent=("centres",))


class Rounded(Meeting):
    """f_i(x) = Σ_d √(1 + (x_d − centre_d)²), which does not say its Hessians."""

    is_quadratic = False

    def values(self, points: Matrix) -> Vector:
        return np.sqrt(1.0 + (points - self.centres) ** 2).sum(axis=1)

    def gradients(self, points: Matrix) -> Matrix:
        return (points - self.centres) / np.sqrt(1.0 + (points - self.centres) ** 2)


CENTRES = np.arange(12.0).reshape(6, 2)


def test_all_follows_from_values_and_gradients() -> None:
    problem: Problem = Meeting(CENTRES)
    assert isinstance(problem, Problem) and problem.has_values and problem.logistic_rows is None
    x = np.array([0.5, -2.0])
    for agent, centre in enumerate(CENTRES):
        assert problem.value(agent, x) == 0.5 * ((x - centre) ** 2).sum()
        np.testing.assert_array_equal(problem.gradient(agent, x), x - centre)
        np.testing.assert_allclose(problem.prox(agent, x, 3.0), (centre + 3.0 * x) / 4.0, atol=1e-10)
    np.testing.assert_allclose(problem.optimum, CENTRES.mean(axis=0), atol=1e-10)
    gap = 0.5 * 6 * ((x - CENTRES.mean(axis=0)) ** 2).sum()
    np.testing.assert_allclose(problem.objective_gaps(x[None]), [gap], rtol=1e-9)
    run = rl.simulate(rl.IADMM(rho=1.0), problem, rl.ring(6), 500, engine="python")
    np.testing.assert_allclose(run.token, [5.0, 6.0], atol=1e-10)


def test_facts_and_what_they_allow() -> None:
    """Any quadratic can be solved in one pass, and an audit knows its H and g."""
    quadratic, other = Meeting(CENTRES), Rounded(CENTRES)
    np.testing.assert_array_equal(quadratic.hessian(3, np.ones(2)), np.eye(2))
    everywhere = np.tile([5.0, 6.0], (6, 1))
    np.testing.assert_allclose(rl.simulate(rl.OnePass(), quadratic, rl.ring(6)).x, everywhere, rtol=1e-12)
    run = rl.simulate(rl.PIADMM1(rho=1.0), quadratic, rl.ring(6), 300, engine="python", transcript=True)
    truth = rl.audit(run, agent=2).truth
    assert truth is not None and truth.H is not None and truth.g is not None and truth.records is None
    np.testing.assert_array_equal(truth.H, np.eye(2))
    np.testing.assert_array_equal(truth.g, -CENTRES[2])
    assert quadratic.has_hessians and not other.has_hessians and np.isnan(other.L)
    with pytest.raises(ValueError, match=r"^A Rounded has no Hessians: .* define hessian\.$"):
        other.hessian(0, np.zeros(2))
    with pytest.raises(ValueError, match="choose another algorithm"):
        rl.simulate(rl.OnePass(), other, rl.ring(6))
    x = other.prox(1, np.zeros(2), 0.5)
    np.testing.assert_allclose(other.gradient(1, x) + 0.5 * x, 0.0, atol=1e-8)
    np.testing.assert_allclose(other.gradients(np.tile(other.optimum, (6, 1))).sum(axis=0), 0.0, atol=1e-7)


def test_one_agent_alone_answers_to_any_number() -> None:
    data = make_data((3, 5, 9, 4), 4, 1)
    for make in (least_squares, logistic):
        whole = make(data, ridge=0.1).problem
        for agent in range(4):
            own: OwnProblem = make(
                data._replace(
                    features=[data.features[agent]], targets=[data.targets[agent]], labels=[data.labels[agent]]
                ),
                ridge=0.1,
            ).problem
            check_same_at(own, whole, agent)
    for agent in range(6):
        check_same_at(Meeting(CENTRES[agent : agent + 1]), Meeting(CENTRES), agent)


def check_same_at(own: OwnProblem, whole: Any, agent: int) -> None:
    """The kernel of one agent's own problem, at its place, gives the bits of the whole one."""

    class AtPlace(NamedTuple):
        dim: int

        def kernel(self) -> Part:
            return own.kernel_at(agent, whole.agents)

    placed: Any = AtPlace(whole.dim)
    x, mine, its = np.linspace(-1.0, 2.0, whole.dim), np.empty(whole.dim), np.empty(whole.dim)
    kernel_function(placed, call_gradient, False)(agent, x, mine)
    kernel_function(whole, call_gradient, False)(agent, x, its)
    np.testing.assert_array_equal(mine, its)
    kernel_function(placed, call_minimise, False)(agent, 2.0 * x, 2.0, x, mine)
    kernel_function(whole, call_minimise, False)(agent, 2.0 * x, 2.0, x, its)
    np.testing.assert_array_equal(mine, its)


def test_several_agents_have_no_place() -> None:
    with pytest.raises(ValueError, match=r"^Meeting\(6 agents, p = 2\) can't be one agent's function: .*\.$"):
        Meeting(CENTRES).kernel_at(1, 6)


@pytest.mark.parametrize("make", [least_squares, logistic])
def test_printing_shows_the_size_and_no_data(make: Any) -> None:
    problem = make(make_data((3, 5), 2, 0)).problem
    assert repr(problem) == f"{type(problem).__name__}(2 agents, 8 rows, p = 2)"
    assert repr(rl.CallableProblem([lambda x: x], 3)) == "CallableProblem(1 agents, p = 3)"


def test_the_general_optimum_of_rows_is_that_of_least_squares() -> None:
    """Squares have a better way; the general one must get there too."""
    for problem in (
        least_squares(make_data((3, 5, 9), 4, 2), ridge=0.1).problem,
        logistic(make_data((3, 5, 9), 4, 2)).problem,
    ):
        general = RowProblem.optimum.func(problem)  # type: ignore[attr-defined]
        np.testing.assert_allclose(general, problem.optimum, rtol=1e-9)
        assert prox_residual(problem, 1, RowProblem.prox(problem, 1, general, 0.3), general, 0.3) <= 1e-12


def test_problems_are_known_by_their_word() -> None:
    assert problem_named("least-squares") is problem_named("least_squares") is rl.LeastSquares
    assert problem_named("logistic") is rl.Logistic
    with pytest.raises(ValueError, match=r"^There is no problem 'ridge': use least_squares or logistic.*\.$"):
        problem_named("ridge")
    drawn = rl.LeastSquares.drawn(3, 4, 2, seed=5)
    np.testing.assert_array_equal(drawn.optimum, rl.paper_least_squares(3, 4, 2, seed=5).optimum)
    np.testing.assert_array_equal(rl.Logistic.drawn(3, 40, 2, 5).signed, rl.paper_logistic(3, 40, 2, 5).signed)


def test_a_problem_that_forgets_to_be_discreet_prints_no_data() -> None:
    @dataclass(frozen=True)
    class Careless(rl.RowProblem):
        features: Any
        targets: Any
        ridge: float = 0.0
        weights: Any = "equal"
        loss = rl.LeastSquares.loss

    problem = Careless([np.full((3, 2), 12345.5)], [np.zeros(3)])
    assert repr(problem) == "Careless(1 agents, 3 rows, p = 2)" and "12345" not in f"{problem} {[problem]}"
