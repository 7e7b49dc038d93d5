"""Problems to ask about, their pooled solutions by other libraries, and optimisers played without a ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import roundelay as rl
from roundelay.algorithms.sealed.optimisers import Found, Goal, Optimiser
from roundelay.algorithms.sealed.questions import Place, Question, Total, answers, total_of
from roundelay.kernels import Vector


def simulate(algorithm: Any, problem: Any, network: rl.Network | None = None, **options: Any) -> rl.Run:
    return rl.simulate(algorithm, problem, network or rl.ring(problem.agents), progress=False, **options)


# ---------------------------------------------------------------- problems


def rows(agents: int, dim: int, seed: int, count: int = 12) -> tuple[list[Any], list[Any], list[Any]]:
    """Features, targets and labels that no plane separates."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(count, dim)) for _ in range(agents)]
    truth = rng.normal(size=dim)
    targets = [block @ truth + rng.normal(size=count) for block in features]
    labels = [np.where(block @ truth + 2.0 * rng.normal(size=count) > 0.0, 1.0, -1.0) for block in features]
    return features, targets, labels


def squares(agents: int, dim: int, seed: int) -> rl.LeastSquares:
    features, targets, _ = rows(agents, dim, seed)
    return rl.LeastSquares(features, targets)


def logistic(agents: int, dim: int, seed: int, ridge: float = 0.01) -> rl.Logistic:
    features, _, labels = rows(agents, dim, seed)
    return rl.Logistic(features, labels, ridge=ridge)


def huber(agents: int, dim: int, seed: int) -> Any:
    features, targets, _ = rows(agents, dim, seed)
    return rl.Huber(features, targets, delta=0.7, ridge=0.01)


def plain_functions(
    agents: int, dim: int, seed: int, values: bool = True, hessians: bool = False
) -> rl.CallableProblem:
    """f_i(x) = Σ_j √(1 + (a_j'x − t_j)²), as somebody writes it in Python; far from its minimum it is nearly straight."""
    features, targets, _ = rows(agents, dim, seed)
    pairs = list(zip(features, [target + 3.0 for target in targets], strict=True))

    def value(a: Any, t: Any) -> Any:
        return lambda x: float(np.sqrt(1.0 + (a @ x - t) ** 2).sum())

    def gradient(a: Any, t: Any) -> Any:
        return lambda x: a.T @ ((a @ x - t) / np.sqrt(1.0 + (a @ x - t) ** 2))

    def hessian(a: Any, t: Any) -> Any:
        return lambda x: (a.T / (1.0 + (a @ x - t) ** 2) ** 1.5) @ a

    curvature = max(float(np.linalg.eigvalsh(a.T @ a).max()) for a in features)
    return rl.CallableProblem(
        [gradient(a, t) for a, t in pairs], dim, value_of=[value(a, t) for a, t in pairs] if values else None,
        hessian_of=[hessian(a, t) for a, t in pairs] if hessians else None, L=curvature,
    )  # fmt: skip


def ill_conditioned(agents: int, dim: int, condition: float, seed: int) -> tuple[rl.LeastSquares, Vector]:
    """Least squares whose X'X has this condition number, and its solution from X itself, which has the root of it."""
    rng = np.random.default_rng(seed)
    basis, turn = (np.linalg.qr(rng.normal(size=(size, dim)))[0] for size in (12 * dim, dim))
    whole = 50.0 * basis * np.geomspace(1.0, condition**-0.5, dim) @ turn.T
    targets = rng.normal(size=12 * dim)
    problem = rl.LeastSquares(np.array_split(whole, agents), np.array_split(targets, agents))
    return problem, np.linalg.lstsq(whole, targets, rcond=None)[0]


# ---------------------------------------------------------------- optimisers without a ring


def total_at(problem: Any, question: Question, place: Place) -> Total:
    """Σ answer_i in floating point, without grid or masks."""
    return total_of(question.asked, answers(problem, question.asked, place).sum(axis=0), problem.dim)


@dataclass(frozen=True, eq=False)
class Played:
    """The questions of an optimiser, the point of each, the totals that it was sent, and what it found."""

    questions: list[Question]
    points: list[Vector]
    totals: list[Total]
    found: Found


def played(optimiser: Optimiser, problem: Any, goal: Goal | None = None) -> Played:
    goal = goal or goal_of(problem)
    asking, place = optimiser.questions(goal), Place(goal.origin, np.zeros(goal.dim))
    questions: list[Question] = []
    points: list[Vector] = []
    totals: list[Total] = []
    try:
        question = next(asking)
        while True:
            place = question.moved(place)
            questions.append(question)
            points.append(place.point)
            totals.append(total_at(problem, question, place))
            question = asking.send(totals[-1])
    except StopIteration as end:
        return Played(questions, points, totals, end.value)


def goal_of(problem: Any, **options: Any) -> Goal:
    return Goal(problem.dim, problem.agents, values=problem.has_values, hessians=problem.has_hessians, **options)


def pooled_value(problem: Any, x: Vector) -> float:
    return float(problem.values(np.tile(x, (problem.agents, 1))).sum())


def pooled_gradient(problem: Any, x: Vector) -> Vector:
    return problem.gradients(np.tile(x, (problem.agents, 1))).sum(axis=0)


def pooled_hessian(problem: Any, x: Vector) -> Any:
    return sum(problem.hessian(agent, x) for agent in range(problem.agents))


def apart(one: Sequence[float] | Vector, other: Sequence[float] | Vector) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(np.subtract(one, other)).max() / np.abs(other).max())
