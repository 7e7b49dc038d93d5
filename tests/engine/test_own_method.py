"""A researcher's own method, problem and kernel functions run as the built-in ones do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms import OwnVisit
from roundelay.algorithms.slots import Agents, gradient
from roundelay.algorithms.token.gradient import DescentNumbers
from roundelay.engine.assemble import SHORT, CannotCompileError
from roundelay.kernels import DIM, Visit, each, vector


def heavy_ball(problem: Any, method: Any, at: Visit, token: Any, states: Agents, watch: bool) -> tuple[float, float]:
    """A descent step with momentum: y_i remembers the last step that agent i took."""
    slope = vector(DIM)
    gradient(problem, at.agent, token, slope)
    for d in each(DIM):
        step = method.decay * states.y[at.agent, d] - method.alpha * slope[d]
        states.y[at.agent, d] = step
        moved = token[d] + step
        token[d] = moved
        states.x[at.agent, d] = moved
    return 0.0, 0.0


def saturating(problem: Any, method: Any, at: Visit, token: Any, states: Agents, watch: bool) -> tuple[float, float]:
    """Uses a name that only the Python engine can be given."""
    slope = vector(DIM)
    gradient(problem, at.agent, token, slope)
    size = method.alpha * exp(-at.hop / 500.0)
    for d in each(DIM):
        moved = token[d] - size * slope[d]
        token[d] = moved
        states.x[at.agent, d] = moved
    return 0.0, 0.0


def not_for_numba(problem: Any, method: Any, at: Visit, token: Any, states: Agents, watch: bool) -> tuple[float, float]:
    """Mixes types in a way that only Python can run."""
    step = "long" if at.hop == 0 else 0.01
    for d in each(DIM):
        token[d] = token[d] + (0.01 if step == "long" else step)
        states.x[at.agent, d] = 1.0
    return 0.0, 0.0


@dataclass(frozen=True)
class OwnMethod:
    function: Any
    alpha: float = 0.01
    momentum: float = 0.3

    def parts(self) -> OwnVisit:
        return OwnVisit(self.function, DescentNumbers(self.alpha, self.momentum))


@pytest.fixture(scope="module")
def problem() -> rl.LeastSquares:
    return rl.paper_least_squares(agents=8)


def test_an_own_method_runs_compiled(problem: rl.LeastSquares) -> None:
    method, network = OwnMethod(heavy_ball), rl.ring(8)
    ours = rl.simulate(method, problem, network, 400, engine="compiled")
    plain = rl.simulate(method, problem, network, 400, engine="python")
    token, steps = np.zeros(2), np.zeros((8, 2))
    for hop in range(400):
        i = hop % 8
        steps[i] = 0.3 * steps[i] - 0.01 * problem.gradient(i, token)
        token = token + steps[i]
    for run in (ours, plain):
        assert np.abs(run.token - token).max() < 1e-13
        assert np.abs(run.y - steps).max() < 1e-13


def test_what_only_python_can_run_is_run_by_python(problem: rl.LeastSquares) -> None:
    for function, reason in ((saturating, "the name 'exp'"), (not_for_numba, "numba says")):
        run = rl.simulate(OwnMethod(function), problem, rl.ring(8), SHORT + 1)
        assert run.engine == "python" and reason in run.engine_reason
        again = rl.simulate(OwnMethod(function), problem, rl.ring(8), SHORT + 1, engine="python")
        assert (run.token == again.token).all()
        with pytest.raises(CannotCompileError, match=reason):
            rl.simulate(OwnMethod(function), problem, rl.ring(8), 50, engine="compiled")


def test_a_regulariser_that_nothing_applies_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing applies it"):
        OwnVisit(heavy_ball, regulariser=rl.L1(0.1))


OWN_PROBLEM = '''
import numpy as np, roundelay as rl
from typing import NamedTuple
from roundelay.kernels import DIM, Part, each

class Targets(NamedTuple):
    centres: np.ndarray

def minimise(problem, i, w, penalty, start, out):
    for d in each(DIM):
        out[d] = (problem.centres[i, d] + w[d]) / (1.0 + penalty)

def gradient(problem, i, x, out):
    for d in each(DIM):
        out[d] = x[d] - problem.centres[i, d]

class Meeting:
    """f_i(x) = ½‖x − centre_i‖²."""
    def __init__(self, centres):
        self.centres = centres
        self.agents, self.dim = centres.shape
        self.optimum, self.L, self.mu = centres.mean(axis=0), 1.0, 1.0
    def values(self, points): return 0.5 * ((points - self.centres) ** 2).sum(axis=1)
    def gradients(self, points): return points - self.centres
    def objective_gaps(self, points): return 0.5 * self.agents * ((points - self.optimum) ** 2).sum(axis=1)
    def kernel(self): return Part((("minimise", minimise), ("gradient", gradient)), Targets(self.centres))

run = rl.simulate(rl.IADMM(rho=1.0), Meeting(np.arange(12.0).reshape(6, 2)), rl.ring(6), 500, engine="compiled")
assert np.abs(run.token - [5.0, 6.0]).max() < 1e-12, run.token
'''


def test_an_own_problem_runs_compiled_and_may_move_to_another_file(tmp_path: Path) -> None:
    """A second file with the same text under another name finds no index that speaks of the first."""
    for name in ("first_home", "second_home"):
        path = tmp_path / f"{name}.py"
        path.write_text(OWN_PROBLEM, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-c", f"import {name}"], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        path.unlink()
