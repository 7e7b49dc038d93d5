"""The baseline that needs no iteration: sum up the normal equations in one lap, and hand the solution round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from roundelay.algorithms.algorithm import Algorithm, Tunable
from roundelay.algorithms.lemmas import Condition, Conditions
from roundelay.problems import Problem
from roundelay.registry import register


@dataclass(frozen=True)
class OnePassMethod:
    """What the engine runs: there is nothing to choose. Its sums are not masked."""

    masked: ClassVar[bool] = False
    needs: tuple[str, ...] = ()


@register(Algorithm)
@dataclass(frozen=True)
class OnePass:
    """The exact minimiser of quadratics, such as least squares, in one lap.

        lap 1: the token carries Σ H_i and Σ b_i, p(p + 3)/2 numbers;  then x = (Σ H_i)⁻¹ Σ b_i;  lap 2: it carries x

    H_i = ∇²f_i and b_i = −∇f_i(0). It costs about ((p + 3)/2 + 1)·N units and is exact. It exists for quadratics
    only, and whoever sees the token before and after an agent sees that agent's H_i and b_i.

    It is the unsealed control of `SealedLaps(NormalEquations())`: the same sums without masks, where everything leaks. Its transcript
    has both laps, the sums as −b and H.
    """

    name: ClassVar[str] = "one pass"
    tunable: ClassVar[tuple[Tunable, ...]] = ()

    def parts(self) -> OnePassMethod:
        """Two laps."""
        return OnePassMethod()

    def conditions(self, problem: Problem) -> Conditions:
        """It solves quadratics, and nothing else."""
        return Conditions(
            [Condition("Normal equations", "every f_i is quadratic", type(problem).__name__, is_quadratic(problem))]
        )


def is_quadratic(problem: Any) -> bool:
    """Whether the normal equations are the whole problem."""
    return bool(getattr(problem, "is_quadratic", False))
