"""The holes in the hop loop and in the update: what a method and its parts must provide.

The loop calls `visit`, `estimate` and `unrest` of the method. `visit` in `update.py` calls the others. The engines fill
each with a kernel function of the chosen part: `minimise`, `gradient`, `row_slope` and `record_weight` come from the
problem, `solve` from the x-step, `step_sizes` and `disturb` from the perturbation, which may also fill `along` and
`x_step`, `at_token` from the regulariser, `conceal` and `as_sent` from the defence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from roundelay.kernels import Integers, Matrix, Vector, Visit, slot


class Agents(NamedTuple):
    """The agents' private states: x_i, y_i, the share c_i, and how often each has been visited.

    Below the rows of the agents `share` has one for each further vector that the token carries. A visit touches only the
    rows of its agent, and reads how often that was visited from where it is: an agent of a ring does not know it of others.
    """

    x: Matrix
    y: Matrix
    share: Matrix
    visits: Integers


@slot
def visit(problem: Any, method: Any, at: Visit, token: Vector, states: Agents, watch: bool) -> tuple[float, float]:
    """The update of the method; returns ‖x⁺ − z‖ and ρ‖s⁺ − s‖ where asked to `watch`."""
    raise NotImplementedError


@slot
def estimate(method: Any, agents: int, token: Vector, z: Vector) -> None:
    """Z = the solution that the token stands for, the method's step size taken into account."""
    raise NotImplementedError


@slot
def unrest(problem: Any, method: Any, i: int, agents: int, token: Vector, share: Vector) -> float:
    """How far agent i is from balance with the token as it stands."""
    raise NotImplementedError


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
def solve(problem: Any, xstep: Any, at: Visit, w: Vector, penalty: float, x: Vector, new: Vector) -> None:
    """New = the x-step from the pull w and the penalty, x being the state before."""
    raise NotImplementedError


@slot
def step_sizes(perturbation: Any, rho: float, at: Visit, room: Vector) -> tuple[Any, Any, float]:
    """How strongly z pulls x, the step of the multiplier, and how strongly x holds on to itself.

    The first two are numbers, or the vector `room` where each coordinate has its own; `along` reads either.
    """
    raise NotImplementedError


@slot
def along(size: Any, d: int) -> float:
    """The step size in coordinate d."""
    raise NotImplementedError


@slot
def x_step(problem: Any, method: Any, at: Visit, w: Vector, pull: Any, inertia: float, x: Vector, new: Vector) -> None:
    """New = argmin f_i(x) + ½x'(β + τ)x − w'x, by the x-step, where β is the pull and τ the inertia."""
    raise NotImplementedError


@slot
def disturb(perturbation: Any, at: Visit, new: Vector) -> None:
    """Add what the perturbation adds to the new x."""
    raise NotImplementedError


@slot
def at_token(regulariser: Any, scale: float, token: Vector, z: Vector) -> None:
    """Z = argmin_z scale·r(z) + ½‖z − token‖²: the token itself without a regulariser."""
    raise NotImplementedError


@slot
def conceal(defence: Any, at: Visit, change: Vector) -> None:
    """Add what hides the agent's contribution N(z⁺ − z) to it."""
    raise NotImplementedError


@slot
def as_sent(defence: Any, moved: float) -> float:
    """A coordinate of the token as it can be sent: itself, or rounded."""
    raise NotImplementedError
