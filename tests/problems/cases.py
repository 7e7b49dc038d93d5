"""Problems to test with, the same problems by the dense reference, and kernel functions ready to be called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from roundelay.engine.assemble import compiled_module, python_module, recipe
from roundelay.problems import LeastSquares, Logistic, Problem
from tests.reference.dense import DenseLogistic, DenseQuadratic, LocalObjective


class Case(NamedTuple):
    """A problem, and every agent's function by the dense reference."""

    problem: LeastSquares | Logistic
    dense: list[LocalObjective]


class Data(NamedTuple):
    """Rows of unequal numbers, with agents of thin rank, repeated rows and a column of zeros among them."""

    features: list[np.ndarray]
    targets: list[np.ndarray]
    labels: list[np.ndarray]


def make_data(counts: tuple[int, ...], dim: int, seed: int, repeat: bool = False, zero_column: bool = False) -> Data:
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(count, dim)) for count in counts]
    targets = [rng.normal(size=count) for count in counts]
    labels = [rng.choice([-1.0, 1.0], size=count) for count in counts]
    for block in features:
        if repeat:
            block[-1] = block[0]
        if zero_column:
            block[:, -1] = 0.0
    return Data(features, targets, labels)


def least_squares(data: Data, scale: Any = "half_sum", ridge: float = 0.0, weights: Any = "equal") -> Case:
    counts = np.array([len(block) for block in data.features])
    named = {
        "equal": np.ones(len(counts)),
        "rows": np.ones(len(counts)) if scale == "half_sum" else counts / counts.mean(),
    }
    factors = named[weights] if isinstance(weights, str) else np.asarray(weights)
    dense: list[LocalObjective] = [
        DenseQuadratic.from_rows(block, answer, scale, ridge, weight)
        for block, answer, weight in zip(data.features, data.targets, factors, strict=True)
    ]
    return Case(LeastSquares(data.features, data.targets, scale, ridge, weights), dense)


def logistic(data: Data, ridge: float = 0.1, weights: Any = "equal") -> Case:
    counts = np.array([len(block) for block in data.features])
    named = {"equal": np.ones(len(counts)), "rows": counts / counts.mean()}
    factors = named[weights] if isinstance(weights, str) else np.asarray(weights)
    dense: list[LocalObjective] = [
        DenseLogistic.from_rows(block, answer, ridge, weight)
        for block, answer, weight in zip(data.features, data.labels, factors, strict=True)
    ]
    return Case(Logistic(data.features, data.labels, ridge, weights), dense)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Either problem, over data of any shape."""
    dim = draw(st.integers(1, 6))
    counts = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    data = make_data(counts, dim, draw(st.integers(0, 2**32 - 1)), draw(st.booleans()), draw(st.booleans()))
    own = [0.5 + agent for agent in range(len(counts))]
    weights = draw(st.sampled_from(["equal", "rows", own]))
    if draw(st.booleans()):
        return least_squares(
            data, draw(st.sampled_from(["half_sum", "mean"])), draw(st.sampled_from([0.0, 0.3])), weights
        )
    return logistic(data, draw(st.sampled_from([1e-3, 0.5])), weights)


def size_of_terms(problem: Problem, agent: int, x: np.ndarray, v: np.ndarray, penalty: float) -> float:
    """How large the numbers are that cancel in ∇f(x) + penalty·(x − v): rounding is relative to this."""
    curvature = np.linalg.norm(problem.hessian(agent, x), 2)
    pull = np.linalg.norm(problem.gradient(agent, np.zeros(problem.dim)))
    if isinstance(problem, Logistic):  # the rows cancel each other too, wholly where a row is there with both labels
        pull = problem.scales[agent] * np.linalg.norm(problem.rows.features[problem.rows.of(agent)], axis=1).sum()
    return float(curvature * np.linalg.norm(x) + pull + penalty * (np.linalg.norm(x) + np.linalg.norm(v)))


def prox_residual(problem: Problem, agent: int, x: np.ndarray, v: np.ndarray, penalty: float) -> float:
    """‖∇f(x) + penalty·(x − v)‖ relative to its terms."""
    slope = problem.gradient(agent, x) + penalty * (x - v)
    return float(np.linalg.norm(slope)) / (size_of_terms(problem, agent, x, v, penalty) or 1.0)


def call_minimise(problem: Any, i: int, w: Any, penalty: float, start: Any, out: Any) -> int:
    minimise(problem, i, w, penalty, start, out)  # noqa: F821
    return 0


def call_gradient(problem: Any, i: int, x: Any, out: Any) -> int:
    gradient(problem, i, x, out)  # noqa: F821
    return 0


def call_row_slope(problem: Any, i: int, j: int, x: Any) -> float:
    return row_slope(problem, i, j, x)  # noqa: F821


def kernel_function(
    problem: Problem, entry: Callable[..., Any], compiled: bool, change: tuple[str, str, str] | None = None
) -> Callable[..., Any]:
    """`entry` over the problem's kernel functions, by either engine: the problem's numbers are filled in.

    A `change` is a function, what stands once in its text, and what stands there instead.
    """
    part = problem.kernel()
    literals = (("DIM", problem.dim), ("TOKENS", 1))
    text = recipe((part,), (part.numbers,), (("travel", entry),), literals, compiled)
    if change is not None:
        slot, old, new = change
        functions = dict(text.functions)
        assert functions[slot].count(old) == 1, f"{old!r} must stand exactly once in {slot}"
        functions[slot] = functions[slot].replace(old, new)
        text = replace(text, functions=tuple(functions.items()))
    travel = (compiled_module if compiled else python_module)(text, problem.dim).travel
    return lambda *arguments: travel(part.numbers, *arguments)
