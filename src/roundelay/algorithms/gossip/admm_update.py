"""The update of decentralised ADMM: D-ADMM, COCA, weighted, quantised and differentially private ADMM are this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from roundelay.algorithms.gossip.gossip_method import Gossip
from roundelay.algorithms.gossip.mixing import Penalties
from roundelay.algorithms.slots import gradient, minimise
from roundelay.kernels import DIM, Exchange, Matrix, Numbers, Part, Vector, each, slot, vector
from roundelay.kernels.checks import finite_number
from roundelay.links.channel import Channel
from roundelay.networks import Network


class ADMMGossipNumbers(NamedTuple):
    """Σ_j c_ij of each agent, and the numbers of the x-step and of the perturbation."""

    totals: Vector
    xstep: Any
    perturbation: Any


class ADMMGossipStates(NamedTuple):
    """x and the multipliers λ."""

    x: Matrix
    y: Matrix


@slot
def solve_local(
    problem: Any, xstep: Any, i: int, w: Vector, penalty: float, x: Vector, shown: Vector, new: Vector
) -> None:
    """New = the x-step from the pull w and the penalty; x is the state before, `shown` what the others hold of it."""
    raise NotImplementedError


@slot
def stiffness(perturbation: Any, k: int) -> float:
    """The factor on the penalty of the x-step in iteration k."""
    raise NotImplementedError


@slot
def disturb_pull(perturbation: Any, at: Exchange, penalty: float, w: Vector) -> None:
    """Add what the perturbation adds to the pull."""
    raise NotImplementedError


@slot
def disturb_message(perturbation: Any, at: Exchange, message: Vector) -> None:
    """Add what the perturbation adds to the message."""
    raise NotImplementedError


def send_admm(
    problem: Any,
    method: ADMMGossipNumbers,
    at: Exchange,
    states: ADMMGossipStates,
    own: Matrix,
    inbox: Matrix,
    out: Matrix,
) -> None:
    """x_i⁺ = argmin f_i(x) + t_i‖x‖² − (t_i x̂_i + Σ_j c_ij x̂_j − λ_i)'x, t_i = Σ_j c_ij: its message.

    `own` is x̂_i, `inbox` is Σ_j c_ij x̂_j.
    """
    i, k = at.agent, at.iteration
    w, new = vector(DIM), vector(DIM)
    total = method.totals[i]
    factor = stiffness(method.perturbation, k)
    for d in each(DIM):
        w[d] = factor * (total * own[0, d] + inbox[0, d]) - states.y[i, d]
    penalty = 2.0 * factor * total
    disturb_pull(method.perturbation, at, penalty, w)
    solve_local(problem, method.xstep, i, w, penalty, states.x[i], own[0], new)
    for d in each(DIM):
        states.x[i, d] = new[d]
        out[0, d] = new[d]
    disturb_message(method.perturbation, at, out[0])


def receive_admm(
    problem: Any,
    method: ADMMGossipNumbers,
    at: Exchange,
    states: ADMMGossipStates,
    own: Matrix,
    inbox: Matrix,
    talked: bool,
) -> None:
    """λ_i⁺ = λ_i + Σ_j c_ij(x̂_i − x̂_j)."""
    i = at.agent
    total = method.totals[i]
    for d in each(DIM):
        states.y[i, d] += total * own[0, d] - inbox[0, d]


# ---------------------------------------------------------------- how x is solved


class LocalStep(Protocol):
    """A way to the new x."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The kernel functions that the problem must provide."""

    def part(self) -> Part:
        """The kernel function `solve_local` and its numbers."""


def solve_local_exactly(
    problem: Any, xstep: Numbers, i: int, w: Vector, penalty: float, x: Vector, shown: Vector, new: Vector
) -> None:
    """x⁺ = argmin f_i(x) + penalty/2 ‖x‖² − w'x."""
    minimise(problem, i, w, penalty, x, new)


@dataclass(frozen=True)
class SolvedExactly:
    """By the problem's prox."""

    needs: tuple[str, ...] = ("minimise",)

    def part(self) -> Part:
        """The kernel function `solve_local` and its numbers."""
        return Part((("solve_local", solve_local_exactly),))


class InertiaNumbers(NamedTuple):
    """ρ_l, how strongly x holds on to itself."""

    inertia: float


def solve_local_linearised(
    problem: Any, xstep: InertiaNumbers, i: int, w: Vector, penalty: float, x: Vector, shown: Vector, new: Vector
) -> None:
    """x⁺ = (w + ρ_l x − ∇f_i(x))/(penalty + ρ_l): f_i replaced by its tangent at the old x."""
    slope = vector(DIM)
    gradient(problem, i, x, slope)
    inverse = 1.0 / (penalty + xstep.inertia)
    for d in each(DIM):
        new[d] = (w[d] + xstep.inertia * x[d] - slope[d]) * inverse


def solve_local_from_itself(
    problem: Any, xstep: InertiaNumbers, i: int, w: Vector, penalty: float, x: Vector, shown: Vector, new: Vector
) -> None:
    """x⁺ = x − (∇f_i(x) + λ + Σ_j c_ij(x̂_i − x̂_j))/(penalty + ρ_l): from x itself, not from what was sent of it."""
    slope = vector(DIM)
    gradient(problem, i, x, slope)
    inverse = 1.0 / (penalty + xstep.inertia)
    for d in each(DIM):
        new[d] = x[d] - (slope[d] + penalty * shown[d] - w[d]) * inverse


@dataclass(frozen=True)
class Linearised:
    """One gradient: from what was sent (`cola=False`), or as COLA has it from x itself."""

    inertia: float = 0.0
    cola: bool = False
    needs: tuple[str, ...] = ("gradient",)

    def __post_init__(self) -> None:
        finite_number("inertia", self.inertia, least=0.0)

    def part(self) -> Part:
        """The kernel function `solve_local` and its numbers."""
        function = solve_local_from_itself if self.cola else solve_local_linearised
        return Part((("solve_local", function),), InertiaNumbers(float(self.inertia)))


# ---------------------------------------------------------------- without perturbation


def stiffness_one(perturbation: Any, k: int) -> float:
    """The penalty as it is."""
    return 1.0


def leave_pull(perturbation: Any, at: Exchange, penalty: float, w: Vector) -> None:
    """Leave the pull as it is."""


def leave_message(perturbation: Any, at: Exchange, message: Vector) -> None:
    """Leave the message as it is."""


def undisturbed() -> Part:
    """No perturbation."""
    return Part((("stiffness", stiffness_one), ("disturb_pull", leave_pull), ("disturb_message", leave_message)))


def gossip_admm(
    penalties: float | Sequence[float], xstep: LocalStep, channel: Channel, perturbation: Part | None = None
) -> Gossip:
    """Decentralised ADMM from its choices: penalties, x-step, channel, perturbation."""
    mixing, step, noise = Penalties(penalties), xstep.part(), perturbation or undisturbed()

    def numbers(network: Network) -> ADMMGossipNumbers:
        weights = mixing.numbers(network)
        receivers = np.repeat(np.arange(network.agents), np.diff(weights.starts))
        totals = np.asarray(np.bincount(receivers, weights.weights, network.agents), np.float64)
        return ADMMGossipNumbers(totals, step.numbers, noise.numbers)

    functions: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("send", send_admm),
        ("receive", receive_admm),
        *step.functions,
        *noise.functions,
    )
    return Gossip(functions, numbers, ADMMGossipStates, mixing, channel, xstep.needs)
