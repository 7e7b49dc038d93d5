"""What every algorithm says of itself: its name, its parts, which parameters are worth tuning, and step sizes left to the problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

from roundelay.algorithms.lemmas import Conditions
from roundelay.kernels.checks import finite_number
from roundelay.problems import Problem


@dataclass(frozen=True)
class Tunable:
    """One parameter: a positive number, or a share between 0 and 1 that is tuned in its distance from 1.

    `start` is where a search begins, where the algorithm's own value is not the place to begin.
    """

    name: str
    kind: Literal["positive", "below one", "share"] = "positive"
    start: float | None = None


class Algorithm(Protocol):
    """A frozen dataclass of options in the paper's words; `name` is what the papers call it, `tunable` what a search may change."""

    name: ClassVar[str]
    tunable: ClassVar[tuple[Tunable, ...]]

    def parts(self) -> Any:
        """What the engines run: a token method, a gossip method, or the one pass."""

    def conditions(self, problem: Problem) -> Conditions:
        """Which lemma's conditions hold on this problem, with the numbers."""


def check_step(name: str, value: float | None) -> None:
    """A step size is positive; None leaves it to the problem."""
    if value is not None:
        finite_number(name, value, above=0.0)


def with_step(algorithm: Any, name: str, factor: float, problem: Problem) -> Any:
    """The algorithm with its step size set to factor/L, where it was left open."""
    if getattr(algorithm, name) is not None:
        return algorithm
    if not (math.isfinite(problem.L) and problem.L > 0.0):
        raise ValueError(
            f"{algorithm.name} takes its step size from L, which is not known of this problem, or not finite: "
            f"give {name} to {type(algorithm).__name__}, or L to the problem."
        )
    return replace(algorithm, **{name: factor / problem.L})


def known_step(algorithm: Any, name: str) -> float:
    """The step size, which must have been set by now."""
    value = getattr(algorithm, name)
    return math.nan if value is None else float(value)
