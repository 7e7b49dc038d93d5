"""The truth about an agent, which the auditor knows and no observer does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.algorithms.token_method import TokenADMM
from roundelay.engine import Run
from roundelay.engine.replay import replay
from roundelay.kernels import Matrix, Vector
from roundelay.problems import LeastSquares, Logistic, Problem
from roundelay.transcripts import Visits


@dataclass(frozen=True, eq=False)
class Truth:
    """What there is to know about an agent; None where the auditor does not know it either.

    Row r of `x` and `y` is after r visits; where only the end is known there is that one row. `gradient` is ∇f_i(x*),
    `H` and `g` are those of a quadratic f_i, `records` its rows label·features. The means over all agents are what one
    guesses without the transcript.
    """

    x: Matrix
    y: Matrix
    whole_run: bool
    gradient: Vector | None = None
    H: Matrix | None = None
    g: Vector | None = None
    records: Matrix | None = None
    mean_x: Vector | None = None
    mean_hessian: Matrix | None = None
    mean_g: Vector | None = None


def truth_of(run: Run, method: TokenADMM, visits: Visits) -> Truth:
    """All that the run and its problem tell; where there is no problem, as in a file, the states at the end."""
    agent = visits.agent
    mean_x = run.x.mean(axis=0)
    if run.problem is None:
        return Truth(run.x[agent][None], run.y[agent][None], False, mean_x=mean_x)
    problem = run.problem
    if run.conditions is not None and run.conditions.noise > 0.0:
        x, y, whole = run.x[agent][None], run.y[agent][None], False
    else:
        replayed = replay(method, problem, run.seed, visits)
        x, y, whole = replayed.x, replayed.y, True
    gradient = problem.gradient(agent, run.optimum)
    hessian, slope, mean_hessian, mean_slope = _quadratic(problem, agent)
    return Truth(
        x, y, whole, gradient, hessian, slope, _records(problem, agent), mean_x, mean_hessian, mean_slope
    )  # fmt: skip


def _quadratic(problem: Problem, agent: int) -> tuple[Matrix | None, Vector | None, Matrix | None, Vector | None]:
    """H and g where f_i is quadratic, and their means over the agents."""
    if not isinstance(problem, LeastSquares):
        return None, None, None, None
    origin = np.zeros(problem.dim)
    hessians = np.array([problem.hessian(i) for i in range(problem.agents)])
    slopes = np.array([problem.gradient(i, origin) for i in range(problem.agents)])
    return hessians[agent], slopes[agent], hessians.mean(axis=0), slopes.mean(axis=0)


def _records(problem: Problem, agent: int) -> Matrix | None:
    """The rows label·features of an agent of a logistic problem."""
    return np.array(problem.signed[problem.rows.of(agent)]) if isinstance(problem, Logistic) else None
