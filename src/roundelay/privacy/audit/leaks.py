"""A leak: what an attack found of a quantity, held against the truth, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from roundelay.algorithms.token_method import TokenADMM
from roundelay.engine import Run
from roundelay.engine.replay import replay
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks import Recovered
from roundelay.problems import Problem
from roundelay.transcripts import Visits

Numbers = NDArray[np.float64]

# An error this near to that of a guess is no knowledge.
NO_BETTER = 0.5
# Beyond these digits it is rounding that is counted.
MOST_DIGITS = 15
# Those of which an agent has several.
SEVERAL = ("states x", "multipliers y", "records", "values", "gradients", "products Hv")


@dataclass(frozen=True)
class Leak:
    """What an attack knows of a quantity of an agent.

    Errors are relative: `over_run` is the root mean square over the agent's visits against that of the truth, `at_end`
    that of the last visit, `guess` that of the best guess without the transcript, the mean over all agents. Where the
    truth is not known they are not numbers, and `residual` is all there is. `words` is the verdict.
    """

    quantity: str
    attack: str
    over_run: float
    at_end: float
    guess: float
    residual: float
    converged: bool
    words: str

    @property
    def known(self) -> bool:
        """Whether the attack knows more than a guess does."""
        return self.at_end < NO_BETTER * min(self.guess, 1.0)

    @property
    def digits(self) -> int:
        """How many digits are known at the end."""
        return digits_of(self.at_end)


def digits_of(error: float) -> int:
    """How many digits a relative error leaves."""
    if error <= 0.0:
        return MOST_DIGITS
    return int(min(max(math.floor(-math.log10(error)), 0), MOST_DIGITS)) if math.isfinite(error) else 0


def verdict(agent: int, quantity: str, observer: str, at_end: float, guess: float) -> str:
    """The verdict in plain words."""
    verb, past = ("are", "were") if quantity in SEVERAL else ("is", "was")
    whose = f"agent {agent}'s {quantity}"
    if math.isnan(at_end):
        return f"{whose} {past} estimated; how well can't be said without the truth"
    if not at_end < NO_BETTER * min(guess, 1.0):
        return f"{whose} {verb} not known to {observer}: no better than a guess"
    digits = digits_of(at_end)
    if digits == 0:
        return f"{whose} {verb} known to {observer} within {100.0 * at_end:.0f} %"
    return f"{whose} {verb} known to {observer} to {digits} {'digit' if digits == 1 else 'digits'}"


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
    gradient = problem.gradient(agent, run.optimum if run.has_optimum else run.estimate)
    hessian, slope, mean_hessian, mean_slope = _quadratic(problem, agent)
    return Truth(
        x, y, whole, gradient, hessian, slope, _records(problem, agent), mean_x, mean_hessian, mean_slope
    )  # fmt: skip


def _quadratic(problem: Problem, agent: int) -> tuple[Matrix | None, Vector | None, Matrix | None, Vector | None]:
    """H and g where f_i is quadratic, and their means over the agents."""
    if not problem.is_quadratic:
        return None, None, None, None
    origin = np.zeros(problem.dim)
    hessians = np.array([problem.hessian(i, origin) for i in range(problem.agents)])
    slopes = np.array([problem.gradient(i, origin) for i in range(problem.agents)])
    return hessians[agent], slopes[agent], hessians.mean(axis=0), slopes.mean(axis=0)


def _records(problem: Problem, agent: int) -> Matrix | None:
    """The rows label·features of an agent, where the loss is logistic."""
    rows = problem.logistic_rows
    return None if rows is None else np.array(rows.signed[rows.starts[agent] : rows.starts[agent + 1]])


def leaks_of(
    agent: int, observer: str, attack: str, found: Recovered, truth: Truth | None, optimum: Vector | None
) -> Iterator[Leak]:
    """A line for each quantity that the attack gives."""

    def leak(quantity: str, over_run: float, at_end: float, guess: float) -> Leak:
        words = verdict(agent, quantity, observer, at_end, guess)
        return Leak(quantity, attack, over_run, at_end, guess, found.residual, found.converged, words)

    if truth is None:
        yield leak("states x", math.nan, math.nan, math.nan)
        yield leak("multipliers y", math.nan, math.nan, math.nan)
        for quantity, value in (("Hessian H", found.H), ("slope g", found.g), ("records", found.records)):
            if value is not None:
                yield leak(quantity, math.nan, math.nan, math.nan)
        return
    yield leak("states x", *_states(found.x, truth.x, truth.whole_run, truth.mean_x))
    # The multipliers add up to 0 in the end, so that their mean tells nothing.
    yield leak("multipliers y", *_states(found.y, truth.y, truth.whole_run, np.zeros(truth.y.shape[1])))
    if truth.gradient is not None:
        estimate = found.gradient(optimum) if found.gradient is not None and optimum is not None else found.y[-1]
        error = relative(estimate, truth.gradient)
        yield leak("gradient at the solution", error, error, 1.0)
    if found.H is not None and truth.H is not None and truth.mean_hessian is not None:
        error, guess = relative(found.H, truth.H), relative(truth.mean_hessian, truth.H)
        yield leak("Hessian H", error, error, guess)
        best, best_guess = best_direction(found.H, truth.H), best_direction(truth.mean_hessian, truth.H)
        yield leak("Hessian H, best-known direction", best, best, max(best_guess, 1e-3))
    if found.g is not None and truth.g is not None and truth.mean_g is not None:
        error, guess = relative(found.g, truth.g), relative(truth.mean_g, truth.g)
        yield leak("slope g", error, error, guess)
    if found.records is not None and truth.records is not None and len(found.records) == len(truth.records):
        error = records_error(found.records, truth.records)
        guess = relative(np.broadcast_to(truth.records.mean(axis=0), truth.records.shape), truth.records)
        yield leak("records", error, error, guess)


def _states(estimate: Matrix, truth: Matrix, whole_run: bool, guess: Vector | None) -> tuple[float, float, float]:
    """The error over the run, at its end, and that of the guess; the start itself, which is drawn, is left out."""
    at_end = relative(estimate[-1], truth[-1])
    over_run = relative(estimate[1:], truth[1:]) if whole_run else math.nan
    return over_run, at_end, relative(guess, truth[-1]) if guess is not None else math.nan


def relative(estimate: Numbers, truth: Numbers) -> float:
    """‖estimate − truth‖/‖truth‖."""
    size = float(np.linalg.norm(truth))
    return float(np.linalg.norm(estimate - truth)) / (size if size > 0.0 else 1.0)


def best_direction(estimate: Matrix, truth: Matrix) -> float:
    """The least |v'(Ĥ − H)v|/v'Hv over the eigenvectors of that quotient: the direction an observer knows best."""
    values, vectors = np.linalg.eigh(truth)
    root = vectors / np.sqrt(np.maximum(values, 1e-12 * max(float(values.max()), 1e-300)))
    return float(np.abs(np.linalg.eigvalsh(root.T @ (estimate - truth) @ root)).min())


def records_error(estimate: Matrix, truth: Matrix) -> float:
    """The relative error of the records, whose order nobody knows."""
    costs = np.linalg.norm(estimate[:, None, :] - truth[None, :, :], axis=2) ** 2
    rows, columns = scipy.optimize.linear_sum_assignment(costs)
    return relative(estimate[rows], truth[columns])
