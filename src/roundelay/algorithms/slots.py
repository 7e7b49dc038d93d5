"""The holes in the update: what its parts must provide.

`visit` in `update.py` calls these names. The engines fill each with a kernel function of the chosen part:
`minimise`, `gradient`, `row_slope` and `record_weight` come from the problem, `solve` from the x-step, `step_sizes` and
`disturb` from the perturbation, `at_token` from the regulariser, `conceal` and `as_sent` from the defence.
"""

from __future__ import annotations

from typing import Any

from roundelay.kernels import Vector, slot


@slot
def minimise(problem: Any, i: int, w: Vector, penalty: float, start: Vector, out: Vector) -> None:
    """out = argmin_x f_i(x) + penalty/2 ‖x‖² − w'x, that is prox_i(w/penalty, penalty)."""
    raise NotImplementedError


@slot
def gradient(problem: Any, i: int, x: Vector, out: Vector) -> None:
    """out = ∇f_i(x)."""
    raise NotImplementedError


@slot
def row_slope(problem: Any, i: int, j: int, x: Vector) -> float:
    """The number that data row j of agent i is multiplied by in ∇f_i(x)."""
    raise NotImplementedError


@slot
def record_weight(problem: Any, i: int) -> float:
    """What the loss of one record of agent i is multiplied by in f_i."""
    raise NotImplementedError


@slot
def solve(
    problem: Any, xstep: Any, seed: int, i: int, hop: int, w: Vector, penalty: float, x: Vector, new: Vector
) -> None:
    """New = the x-step from the pull w and the penalty, x being the state before."""
    raise NotImplementedError


@slot
def step_sizes(perturbation: Any, rho: float, seed: int, i: int, hop: int, turn: int) -> tuple[float, float, float]:
    """How strongly z pulls x, the step of the multiplier, and how strongly x holds on to itself."""
    raise NotImplementedError


@slot
def disturb(perturbation: Any, seed: int, i: int, hop: int, new: Vector) -> None:
    """Add what the perturbation adds to the new x."""
    raise NotImplementedError


@slot
def estimate(method: Any, agents: int, token: Vector, z: Vector) -> None:
    """Z = the solution that the token stands for, the method's step size taken into account."""
    raise NotImplementedError


@slot
def at_token(regulariser: Any, scale: float, token: Vector, z: Vector) -> None:
    """Z = argmin_z scale·r(z) + ½‖z − token‖²: the token itself without a regulariser."""
    raise NotImplementedError


@slot
def conceal(defence: Any, seed: int, i: int, hop: int, turn: int, change: Vector) -> None:
    """Add what hides the agent's contribution N(z⁺ − z) to it."""
    raise NotImplementedError


@slot
def as_sent(defence: Any, moved: float) -> float:
    """A coordinate of the token as it can be sent: itself, or rounded."""
    raise NotImplementedError
