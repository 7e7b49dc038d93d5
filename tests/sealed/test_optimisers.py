"""Every optimiser does what a textbook says, a replay asks the same bit for bit, and one wrong symbol is noticed."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.algorithms.sealed import optimisers, quadratic_model, search
from roundelay.algorithms.sealed.optimisers import Goal, Optimiser
from roundelay.algorithms.sealed.questions import Asked, Question, numbers_asked
from roundelay.registry import registered
from tests.sealed.checks import check_conjugate_gradients, check_lbfgs, check_newton, check_normal_equations
from tests.sealed.support import Played, goal_of, logistic, plain_functions, played, squares

CHECKS: dict[str, Callable[[Any], None]] = {
    "NormalEquations": check_normal_equations,
    "ConjugateGradients": check_conjugate_gradients,
    "Newton": check_newton,
    "LBFGS": check_lbfgs,
}


def test_every_optimiser_has_its_check() -> None:
    elsewhere = {"Auto", "NoisyNewton"}  # which takes noise to be told from a wrong symbol: test_sealed_noise
    assert {kind.__name__ for kind in registered(Optimiser).values()} == elsewhere | set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_it_does_what_the_textbook_says(name: str) -> None:
    CHECKS[name](SimpleNamespace(**{**vars(quadratic_model), **vars(optimisers)}))


# ---------------------------------------------------------------- one wrong symbol

# (optimiser, what stands in the module, what stands there instead)
MUTATIONS = [
    ("NormalEquations", "return centre - _solved(hessian, gradient)", "return centre + _solved(hessian, gradient)"),
    ("NormalEquations", "/ np.where(kept, size, 1.0), 0.0)", "* np.where(kept, size, 1.0), 0.0)"),
    ("NormalEquations", "return directions @ along / widths", "return directions @ along"),
    ("NormalEquations", "max(abs(wanted) - weights[d] / bends[d], 0.0)", "max(abs(wanted) + weights[d] / bends[d], 0.0)"),
    ("NormalEquations", "(z - centre) + weights * signs", "(z - centre) - weights * signs"),
    ("NormalEquations", "moved[free] -= _solved", "moved[free] += _solved"),
    ("NormalEquations", "step = gradient / self.agents", "step = gradient"),
    ("NormalEquations", "following = model_minimiser(hessian, gradient, z, goal.regulariser)\n            step",
     "following = model_minimiser(hessian, gradient, following, goal.regulariser) + 1e-7\n            step"),
    ("ConjugateGradients", "ahead, left, step = -gradient, -gradient, None", "ahead, left, step = gradient, -gradient, None"),
    ("ConjugateGradients", "direction = ahead / np.linalg.norm(ahead)", "direction = ahead"),
    ("ConjugateGradients", "step = float(left @ direction) / bend", "step = float(left @ left) / bend"),
    ("ConjugateGradients", "left = left - step * product", "left = left + step * product"),
    ("ConjugateGradients", "ahead = left + (square / last) * ahead", "ahead = left + (last / square) * ahead"),
    ("ConjugateGradients", "ahead = left + (square / last) * ahead", "ahead = left"),
    ("ConjugateGradients", "z = z + step * direction", "z = z - step * direction"),
    ("ConjugateGradients", "yield Question(Asked.NOTHING, step=step)", "yield Question(Asked.NOTHING)"),
    ("Newton", "bent = gradient + 0.5 * along", "bent = gradient + along"),
    ("Newton", "bent = gradient + 0.5 * along", "bent = gradient - 0.5 * along"),
    ("Newton", "min(1.0, 0.5 / excess)", "min(1.0, 2.0 / excess)"),
    ("Newton", "changed = Change(trial - at, new.hessian - hessian)", "changed = Change(trial - at, new.hessian)"),
    ("Newton", "at, hessian = trial, new.hessian", "hessian = new.hessian"),
    ("Newton", "left = 0.5 * drift**2 * step", "left = 0.5 * drift * step"),
    ("Newton", "left = drift * step", "left = np.inf"),
    ("Newton", "asked = Asked.GRADIENT if left", "asked = Asked.GRADIENT if left >= 0.0 and laps > 1 or left"),
    ("Newton", "turned @ _solved(hessian, turned)) / bend", "turned @ turned) / bend"),
    ("Newton", "bend = float(changed.step @ hessian @ changed.step)\n    return", "bend = float(ahead @ hessian @ ahead)\n    return"),
    ("Newton", "trial = z + length * ahead", "trial = z - length * ahead"),
    ("Newton", "change = new.value - old.value", "change = old.value - new.value"),
    ("Newton", "best = -0.5 * slope / (change - slope)", "best = -0.5 * slope / (change + slope)"),
    ("Newton", "if change <= DECREASE * slope or slope >= 0.0:", "if change >= DECREASE * slope or slope >= 0.0:"),
    ("Newton", "change = 0.5 * (slope + float(new.gradient @ ahead)", "change = 0.5 * (slope - float(new.gradient @ ahead)"),
    ("LBFGS", "return value / self._height, (self.length / self._height) * gradient", "return value, gradient / self._height"),
    ("LBFGS", "change = 0.5 * float((last.gradient + total.gradient) @ apart)", "change = -0.5 * float((last.gradient + total.gradient) @ apart)"),
    ("LBFGS", "self._last = (x, value + change, total)", "self._last = (x, value, total)"),
    ("LBFGS", "np.concatenate([gradient + weight, weight - gradient])", "np.concatenate([gradient + weight, weight + gradient])"),
    ("LBFGS", "value, gradient = self._at(upper - lower)", "value, gradient = self._at(upper + lower)"),
    ("LBFGS", "(shape.upper - start) / length", "(shape.upper + 1.0 - start) / length"),
    ("LBFGS", "value, gradient = self._at(self.start + self.length * offset)", "value, gradient = self._at(self.length * offset)"),
    ("LBFGS", "return Found(point, arrived, arrived <= goal.tolerance)", "return Found(best, arrived, arrived <= goal.tolerance)"),
]  # fmt: skip


def mutated(old: str, new: str) -> Any:
    """The module in which this stands instead, there or in what it takes from others; nothing is entered in the register."""
    texts = {module.__name__: inspect.getsource(module) for module in (quadratic_model, search, optimisers)}
    times = sum(text.count(old) for text in texts.values())
    assert times == 1, f"{old!r} stands {times} times in the modules: make it unique"
    entered, own = "from roundelay.registry import register\n", dict[str, Any]()
    for name, text in texts.items():
        changed = text.replace(entered, "register = lambda *_: lambda entry: entry\n").replace(old, new)
        made: dict[str, Any] = {"__name__": name}
        exec(compile(changed, name, "exec"), made)
        made.update({known: own[known] for known in made.keys() & own.keys()})
        own.update({known: thing for known, thing in made.items() if getattr(thing, "__module__", "") == name})
    return SimpleNamespace(**own)


def test_a_module_in_which_nothing_is_changed_passes() -> None:
    same = "return centre - _solved(hessian, gradient)"
    CHECKS["Newton"](mutated(same, same))


@pytest.mark.parametrize(("name", "old", "new"), MUTATIONS, ids=range(len(MUTATIONS)))
def test_one_wrong_symbol_is_noticed(name: str, old: str, new: str) -> None:
    module = mutated(old, new)
    with pytest.raises((AssertionError, ArithmeticError, ValueError)), np.errstate(all="ignore"):
        CHECKS[name](module)


# ---------------------------------------------------------------- what is not asked for

WITH_EVERY_HESSIAN = mutated("asked = Asked.GRADIENT if left", "asked = Asked.GRADIENT if False and left").Newton()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(2, 7), st.booleans(), st.booleans(),
    st.sampled_from([rl.NoRegulariser(), rl.L1(0.3), rl.NonNegative(), rl.Box(-0.2, 0.3)]),
)  # fmt: skip
def test_where_the_last_hessian_will_do_nothing_is_lost_by_not_asking_for_another(
    seed: int, dim: int, rows: bool, values: bool, regulariser: Any
) -> None:
    problem = logistic(3, dim, seed, 0.001) if rows else plain_functions(3, dim, seed, values, hessians=True)
    goal = goal_of(problem, regulariser=regulariser)
    spared, whole = played(rl.Newton(), problem, goal), played(WITH_EVERY_HESSIAN, problem, goal)
    assert spared.found.converged and whole.found.converged
    size = np.abs(whole.found.point).max()
    assert np.abs(spared.found.point - whole.found.point).max() <= 1e-10 * size
    assert _numbers(spared, dim) <= _numbers(whole, dim)
    assert len(spared.questions) <= len(whole.questions) + 2


def _numbers(game: Played, dim: int) -> int:
    return sum(question.told.size + numbers_asked(question.asked, dim) for question in game.questions)


# ---------------------------------------------------------------- a restart is a replay

GAMES = [
    (rl.NormalEquations(), squares(4, 3, 1), None),
    (rl.NormalEquations(), squares(4, 3, 1), rl.L1(4.0)),
    (rl.ConjugateGradients(), squares(4, 5, 1), None),
    (rl.Newton(), logistic(4, 3, 1), None),
    (rl.Newton(), plain_functions(4, 3, 1, hessians=True), rl.NonNegative()),
    (rl.LBFGS(), logistic(4, 3, 1), None),
    (rl.LBFGS(), plain_functions(4, 3, 1, values=False), None),
    (rl.LBFGS(), squares(4, 3, 1), rl.L1(4.0)),
]


def same_question(one: Question, other: Question) -> None:
    assert one.kind == other.kind
    assert one.told.tobytes() == other.told.tobytes()


@pytest.mark.parametrize(("optimiser", "problem", "regulariser"), GAMES)
def test_whoever_has_the_totals_finds_the_same_questions_bit_for_bit(
    optimiser: Any, problem: Any, regulariser: Any
) -> None:
    goal: Goal = goal_of(problem) if regulariser is None else goal_of(problem, regulariser=regulariser)
    game = played(optimiser, problem, goal)
    assert len(game.questions) > 1
    for known in range(1, len(game.totals)):
        asking = optimiser.questions(goal)
        question = next(asking)
        for old, total in zip(game.questions[:known], game.totals[:known], strict=True):
            same_question(question, old)
            question = asking.send(total)
        same_question(question, game.questions[known])
        asking.close()
    if isinstance(optimiser, rl.Newton):  # whether a Hessian is asked for is replayed too
        assert {question.asked for question in game.questions} >= {Asked.VALUE_GRADIENT_AND_HESSIAN, Asked.GRADIENT}
    again = played(optimiser, problem, goal)
    assert again.found.point.tobytes() == game.found.point.tobytes() and again.found.residual == game.found.residual


def test_a_search_that_is_given_up_leaves_no_thread_behind() -> None:
    problem = logistic(4, 3, 1)
    before = set(threading.enumerate())
    for _ in range(5):
        asking = rl.LBFGS().questions(goal_of(problem))
        next(asking)
        game = played(rl.LBFGS(), problem)
        asking.send(game.totals[0])
        asking.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(10.0)
        assert not thread.is_alive()
