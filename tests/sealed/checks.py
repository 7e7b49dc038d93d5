"""What each optimiser must do, as checks of the module with all of them: the real one passes, and one with a wrong symbol must not."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

import roundelay as rl
from roundelay.algorithms.sealed.questions import Asked
from roundelay.problems.regularisers import WeightedL1
from tests.sealed.support import (
    apart,
    goal_of,
    ill_conditioned,
    logistic,
    plain_functions,
    played,
    pooled_gradient,
    pooled_hessian,
    pooled_value,
    squares,
)
from tests.sealed.textbook import krylov, newton

# With these some coordinates are at a kink and some are free, in both problems.
BOUNDS = (rl.Box(-0.2, 0.3), rl.NonNegative())
WEIGHTS = {squares: 20.0, logistic: 0.3}
START = np.array([0.4, -0.3, 0.2, 0.7])
FAR = 8.0 * START


def _residual(problem: Any, point: Any) -> float:
    return float(np.linalg.norm(pooled_gradient(problem, point))) / problem.agents


@cache
def _composite(make: Any, regulariser: Any) -> Any:
    """The minimiser with a regulariser, by SciPy on x = u − v or between bounds."""
    problem = make(4, 4, 0)
    shape = regulariser.shape

    def value(both: Any) -> tuple[float, Any]:
        u, v = np.split(both, 2)
        gradient = pooled_gradient(problem, u - v)
        whole = pooled_value(problem, u - v) + float(np.sum(shape.weight * (u + v)))
        return whole, np.concatenate([gradient + shape.weight, shape.weight - gradient])

    upper = (max(shape.lower, 0.0), None if shape.upper == np.inf else shape.upper)
    bounds = [upper] * 4 + [(0.0, None if shape.lower == -np.inf else -shape.lower)] * 4
    best = minimize(
        value, np.zeros(8), jac=True, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-12}
    )
    u, v = np.split(best.x, 2)
    assert 0 < (~regulariser.is_free(np.round(u - v, 6))).sum() < 4
    return u - v


@cache
def spared(weight: float) -> WeightedL1:
    """Of the first coordinate nothing, of the last twice as much."""
    return WeightedL1(weight * np.array([0.0, 1.0, 1.0, 2.0]))


def apart_from_one(weight: float) -> WeightedL1:
    """Of one coordinate of eight nothing."""
    return WeightedL1(weight * np.arange(8.0).clip(max=1.0))


def check_composite(optimiser: Any, make: Any) -> None:
    problem = make(4, 4, 0)
    for regulariser in (rl.L1(WEIGHTS[make]), spared(WEIGHTS[make]), *BOUNDS):
        end = played(optimiser, problem, goal_of(problem, regulariser=regulariser)).found
        assert end.converged and apart(end.point, _composite(make, regulariser)) < 1e-5
        residual = end.point - regulariser.prox(end.point - pooled_gradient(problem, end.point) / 4, 0.25)
        assert abs(float(np.linalg.norm(residual)) - end.residual) < 1e-12


def check_model(module: Any) -> None:
    """The quadratic model is minimised to rounding, also where coordinates hang together; and what a residual is."""
    problem, _ = ill_conditioned(4, 8, 1e4, 2)
    hessian, centre = pooled_hessian(problem, np.zeros(8)), np.linspace(-1.0, 1.0, 8)
    gradient = pooled_gradient(problem, centre)
    size = np.linalg.eigvalsh(hessian).max()
    for regulariser in (
        rl.NoRegulariser(),
        rl.L1(0.003 * size),
        apart_from_one(0.003 * size),
        rl.Box(-0.4, 0.3),
        rl.NonNegative(),
    ):
        z = module.model_minimiser(hessian, gradient, centre, regulariser)
        slope = gradient + hessian @ (z - centre)
        assert np.abs(z - regulariser.prox(z - slope / size, 1.0 / size)).max() < 1e-12
        if not regulariser.is_zero:
            assert 0 < regulariser.is_free(z).sum() < 8
            roughly = module._by_coordinates(hessian, gradient, centre, regulariser.shape)
            assert np.abs(roughly - z).max() < 1e-3
        goal = module.Goal(8, 4, regulariser)
        expected = centre - regulariser.prox(centre - gradient / 4.0, 0.25)
        assert abs(goal.residual(centre, gradient) / np.linalg.norm(expected) - 1.0) < 1e-12


def check_normal_equations(module: Any) -> None:
    kind, problem = module.NormalEquations, squares(4, 4, 3)
    check_model(module)
    game = played(kind(), problem, goal_of(problem, start=START))
    assert [question.asked for question in game.questions] == [Asked.GRADIENT_AND_HESSIAN, Asked.GRADIENT]
    assert apart(game.points[1], problem.optimum) < 1e-12
    assert game.found.converged and abs(game.found.residual - _residual(problem, game.found.point)) < 1e-15
    # Totals of a coarse grid: the first solution is wrong in the sixth digit, and refinement mends that.
    hard, solution = ill_conditioned(4, 6, 1e8, 1)
    run = rl.simulate(rl.SealedLaps(kind()), hard, rl.ring(4), progress=False)
    assert apart(run.estimate, solution) < 1e-9 and len(run.record.step) <= 7
    check_composite(kind(), squares)


def check_conjugate_gradients(module: Any) -> None:
    kind, problem = module.ConjugateGradients, squares(4, 4, 3)
    game = played(kind(), problem, goal_of(problem, start=START))
    kinds = [question.asked for question in game.questions]
    # A gradient, at most p products, a step, and the gradient that confirms: the place is where Krylov's solution is.
    assert kinds == [Asked.GRADIENT, *[Asked.HESSIAN_TIMES_DIRECTION] * 4, Asked.NOTHING, Asked.GRADIENT]
    for place, solution in zip(game.points[2:6], krylov(problem, START, 4), strict=True):
        assert apart(place, solution) < 1e-9
    assert game.found.converged and abs(game.found.residual - _residual(problem, game.found.point)) < 1e-15
    np.testing.assert_array_equal(game.points[-1], game.found.point)
    assert all(abs(np.linalg.norm(question.direction) - 1.0) < 1e-12 for question in game.questions[1:5])
    hard, solution = ill_conditioned(4, 6, 1e5, 1)
    assert apart(played(kind(), hard).found.point, solution) < 1e-8


def check_newton(module: Any) -> None:
    kind, quadratic = module.Newton, squares(4, 4, 3)
    game = played(kind(), quadratic, goal_of(quadratic, start=START))
    assert len(game.questions) == 2 and apart(game.points[1], quadratic.optimum) < 1e-12
    straight = plain_functions(4, 4, 3, hessians=True)
    # From far away steps are too long, and the curvature changes by more than a step can say.
    for problem, start in (
        (logistic(4, 4, 3), START),
        (straight, START),
        (straight, FAR),
        (logistic(4, 4, 3, 1e-6), -3.0 * FAR),
    ):
        game = played(kind(), problem, goal_of(problem, start=start))
        for place, textbook in zip(game.points, newton(problem, start, 7), strict=False):
            assert apart(place, textbook) < 1e-7
        assert game.found.converged and abs(game.found.residual - _residual(problem, game.found.point)) < 1e-14
        assert len(game.questions) <= 16 and apart(game.found.point, problem.optimum) < 1e-9
    for start in (START, FAR):
        without_values = plain_functions(4, 4, 3, values=False, hessians=True)
        game = played(kind(), without_values, goal_of(without_values, start=start))
        assert len(game.questions) <= 16 and apart(game.found.point, without_values.optimum) < 1e-9
    check_composite(kind(), logistic)
    check_drift(module)
    check_last_laps(kind)


def check_drift(module: Any) -> None:
    """Where the third derivative is the same everywhere, the change of the Hessian along a line is known from any piece of it."""
    rng = np.random.default_rng(4)
    directions = rng.normal(size=(5, 3))

    def hessian(x: Any) -> Any:
        return 20.0 * np.eye(3) + directions.T @ ((directions @ x)[:, None] * directions)

    z, line = rng.normal(size=3), 0.1 * rng.normal(size=3)
    for before, ahead in ((1.0, 1.0), (1.0, 0.01), (0.3, -2.0)):
        step, here = before * line, hessian(z)
        turned = (hessian(z + ahead * line) - here) @ line
        expected = np.sqrt(turned @ np.linalg.solve(here, turned) / (line @ here @ line))
        drift = module.drift_over(here, ahead * line, module.Change(step, here - hessian(z - step)))
        assert abs(drift / expected - 1.0) < 1e-12
    assert module.drift_over(np.zeros((3, 3)), line, module.Change(line, np.eye(3))) == np.inf


def check_last_laps(kind: Any) -> None:
    """From where the last Hessian will do only gradients are asked for, and that takes no more laps."""
    spared = 0
    for problem, start in itertools.product(
        (logistic(4, 4, 3), logistic(3, 2, 5), plain_functions(4, 4, 3, hessians=True)), (START, FAR)
    ):
        game = played(kind(), problem, goal_of(problem, start=start[: problem.dim]))
        kinds = [question.asked for question in game.questions]
        count = kinds.count(Asked.GRADIENT)
        assert count >= 1 and set(kinds[:-count]) == {Asked.VALUE_GRADIENT_AND_HESSIAN}
        spared += count
        textbook = newton(problem, start[: problem.dim], 20)
        near = next(lap for lap, point in enumerate(textbook) if apart(point, problem.optimum) < 1e-11)
        assert len(kinds) <= near + 2
        last = pooled_hessian(problem, game.points[-count - 1])
        for point, following in itertools.pairwise(game.points[-count:]):
            assert apart(point - np.linalg.solve(last, pooled_gradient(problem, point)), following) < 1e-13
    assert spared == 8


def check_lbfgs(module: Any) -> None:
    kind = module.LBFGS
    for problem in (squares(4, 4, 3), logistic(4, 4, 3), plain_functions(4, 4, 3)):
        game = played(kind(), problem, goal_of(problem, start=START))
        # SciPy is given units in which the gradient at the start has the length 1, and sees the same points.
        first = pooled_gradient(problem, START)
        height, base, asked = np.linalg.norm(first), pooled_value(problem, START), []

        def pooled(offset: Any) -> tuple[float, Any]:
            asked.append(START + offset)  # noqa: B023
            value = pooled_value(problem, asked[-1]) - base  # noqa: B023
            return value / height, pooled_gradient(problem, asked[-1]) / height  # noqa: B023

        minimize(pooled, np.zeros(4), jac=True, method="L-BFGS-B", options={"maxiter": 6, "ftol": 0.0, "gtol": 0.0})
        for place, theirs in zip(game.points, asked, strict=False):
            assert apart(place, theirs) < 1e-6
        assert len(asked) > 5 and len(game.points) > 5
        assert game.found.converged and apart(game.found.point, problem.optimum) < 1e-9
        assert abs(game.found.residual - _residual(problem, game.found.point)) < 1e-14
        np.testing.assert_array_equal(game.points[-1], game.found.point)
        assert len(game.questions) <= 30
    # Of a quadratic the slopes at both ends say by how much its value changes; here the first step is much too long.
    quadratic, _ = ill_conditioned(4, 4, 10.0, 1)
    by_value, by_slopes = (
        played(kind(), quadratic, replace(goal_of(quadratic), values=known)) for known in (True, False)
    )
    for place, other in zip(by_value.points[1:8], by_slopes.points[1:8], strict=True):
        assert apart(place, other) < 1e-6
    without_values = plain_functions(4, 4, 3, values=False)
    game = played(kind(), without_values)
    assert apart(game.found.point, without_values.optimum) < 1e-9 and len(game.questions) <= 40
    for make in (squares, logistic):
        check_composite(kind(), make)
