"""The fourth choice: where the agents start. At zero, at random, or hiding their gradients under masks that cancel in the sum."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from roundelay.algorithms.parts.facts import StartFacts
from roundelay.kernels import START, Matrix, Vector
from roundelay.kernels.checks import finite_number
from roundelay.kernels.random import Words, uniforms, uniforms_of_agents
from roundelay.masks import FixedPoint, PairSecrets, SeededPairs, my_mask, seals, zero_sum_masks
from roundelay.problems import OwnProblem, Problem
from roundelay.registry import register


@dataclass(frozen=True, eq=False)
class SealedSum:
    """What each agent adds in a lap before the first hop: words modulo 2⁶⁴ under its mask, `bits` bits after the point."""

    contributions: Words
    bits: int


class Beginning(NamedTuple):
    """The states before the first hop: x_i, y_i and the shares c_i of all agents, or of one.

    c_i is x_i − y_i/ρ, unless the start masks it. `token` is where the token starts, if not at 0, and `sealed` a sum
    that goes round once before the first hop, from which it came.
    """

    x: Matrix
    y: Matrix
    share: Matrix
    token: Vector | None = None
    sealed: SealedSum | None = None


class OneAgent(NamedTuple):
    """Agent `me` of so many as it knows itself: the seed of its own draws, and the secrets that it shares with each other."""

    me: int
    agents: int
    seed: int
    secrets: PairSecrets


class Start(Protocol):
    """A rule for x_i⁰, y_i⁰ and c_i⁰, and where it is not 0 for the token.

    One that works with a single token only has `one_token = True`. What is public of it stands in `facts`, a `StartFacts`; of one
    that says nothing nothing is taken to be public. One whose token is the mean of shares that were summed
    under masks has `sum_grid`, the `FixedPoint` in which they are summed.

    No agent of a ring knows the others' functions and secrets. There `own(agent, problem, rho)` is asked, with a `OneAgent`
    and its own function, for the agent's row of what `draw` draws. A start that needs neither function nor secrets can
    do without: the agent then takes its row of `draw`.
    """

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop. An agent's may depend on its own function, not on those of others."""


@register(Start, "zero")
@dataclass(frozen=True)
class ZeroStart:
    """x_i = y_i = 0."""

    facts: ClassVar[StartFacts] = StartFacts("zero", width=0.0, uses_data=False)

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop."""
        shape = (problem.agents, problem.dim)
        return Beginning(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def own(self, agent: OneAgent, problem: OwnProblem, rho: float) -> Beginning:
        """Where one agent stands before the first hop."""
        return Beginning(np.zeros(problem.dim), np.zeros(problem.dim), np.zeros(problem.dim))


@register(Start, "uniform")
@dataclass(frozen=True)
class UniformStart:
    """x_i = υ_i with entries from U(low, high), and y_i = ρυ_i, so that every x_i − y_i/ρ is 0 and z⁰ = 0 holds.

    The paper's Algorithm 2 prints y_i = −ρυ_i. Then Σ(x_i − y_i/ρ) is not 0 and the method ends at a
    wrong point, which `printed_sign=True` lets you see.
    """

    low: float = 0.0
    high: float = 100.0
    printed_sign: bool = False

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop."""
        return self._from(uniform_states(seed, problem, self.low, self.high), rho)

    def own(self, agent: OneAgent, problem: OwnProblem, rho: float) -> Beginning:
        """Where one agent stands before the first hop."""
        return self._from(uniform_state(agent, problem.dim, self.low, self.high), rho)

    def _from(self, x: Matrix, rho: float) -> Beginning:
        y = (-rho if self.printed_sign else rho) * x
        return Beginning(x, y, x - y / rho)

    @property
    def facts(self) -> StartFacts:
        """x − y/ρ = 0 is public, but with the printed sign it is 2υ, unless that is 0."""
        apart = self.printed_sign and (self.low != 0.0 or self.high != 0.0)
        return drawn_within(self.low, self.high, "twice x" if apart else "zero")


def check_bounds(low: float, high: float) -> None:
    """Bounds are finite, the smaller first."""
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ValueError(f"A uniform start from {low} to {high} is not possible: use finite bounds, the smaller first.")


def drawn_within(low: float, high: float, share: Literal["zero", "twice x", "masked"]) -> StartFacts:
    """What is public of an x from U(low, high)."""
    return StartFacts(share, 0.5 * (low + high), 0.5 * (high - low), uses_data=False)


def uniform_states(seed: int, problem: Problem, low: float, high: float) -> Matrix:
    """υ of all agents."""
    return low + (high - low) * uniforms_of_agents(seed, problem.agents, problem.dim, START)


def uniform_state(agent: OneAgent, dim: int, low: float, high: float) -> Vector:
    """υ of one agent: its row of `uniform_states`."""
    drawn = np.empty(dim)
    uniforms(agent.seed, agent.me, 0, START, drawn)
    return low + (high - low) * drawn


@register(Start, "zero-sum")
@dataclass(frozen=True)
class ZeroSumStart:
    """x_i = υ_i from U(low, high) and y_i = ρ(υ_i − m_i), so that c_i = x_i − y_i/ρ = m_i, with Σm_i = 0 exactly.

    m_i = Σ_j m_ij and m_ij = −m_ji, each from a secret that only i and j share; `scale` is the standard deviation of
    a coordinate of m_i. It costs no message. The shares start at the masks themselves: started at 0 the masks would
    never be applied.

    **Hides** g_i, y_i and ∇f_i(x*) from everyone, up to N − 2 colluders: they are known only with an error of ρm_i,
    since s_i is known only up to m_i. N − 2 colluders learn the sum of the two others, N − 1 learn all. It hides
    within `scale`, not perfectly: an error of ρ·scale against the size of g_i. What lies below the masks' grid (about
    1e-10, see `masks.mask_grid`) is not hidden, so that a guess of all digits of g_i can be tested.
    **Does not hide** H_i and x_i, which follow from differences; take `ContributionNoise` with it. Nor Σg_i: where the
    g_i are alike, their mean is a good guess at each, and with the masks' law nobody finds a better one.
    """

    scale: float = 150.0
    low: float = 0.0
    high: float = 100.0

    def __post_init__(self) -> None:
        finite_number("scale", self.scale, above=0.0)
        check_bounds(self.low, self.high)

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop."""
        x = uniform_states(seed, problem, self.low, self.high)
        return self._under(zero_sum_masks(SeededPairs(seed), problem.agents, problem.dim, self.scale), x, rho)

    def own(self, agent: OneAgent, problem: OwnProblem, rho: float) -> Beginning:
        """Where one agent stands before the first hop."""
        x = uniform_state(agent, problem.dim, self.low, self.high)
        return self._under(my_mask(agent.secrets, agent.me, agent.agents, problem.dim, self.scale), x, rho)

    def _under(self, masks: Matrix, x: Matrix, rho: float) -> Beginning:
        return Beginning(x, rho * (x - masks), masks)

    @property
    def facts(self) -> StartFacts:
        """x − y/ρ is the mask."""
        return replace(drawn_within(self.low, self.high, "masked"), scale=self.scale)


@register(Start, "sealed")
@dataclass(frozen=True)
class SealedStart:
    """x_i = 0 and y_i = ∇f_i(0); one lap sums −∇f_i(0)/ρ under uniform masks, and the token starts at z = sum/N.

    The lap is in fixed point modulo 2⁶⁴ with `bits` bits after the point, and goes round the network's tour: as many
    units as the tour has hops. c_i starts at what was actually summed, so that Σc_i = Nz. Afterwards the method runs
    as from zero, plainly.

    **Hides** g_i, y_i and ∇f_i(x*) of quadratic f_i from everyone, up to N − 2 colluders: the transcript depends on
    the g_i of the honest agents through their sum only, so that moving g from one to another changes nothing but the
    rounding (below 2^−bits). The words of the lap are uniform but for the last message, which is the total. For other
    f_i it hides ∇f_i(0) and nothing else.
    **Does not hide** H_i and x_i, nor Σg_i; N − 1 colluders learn all. Take `ContributionNoise` with it.
    """

    one_token: ClassVar[bool] = True
    facts: ClassVar[StartFacts] = StartFacts("sealed", width=0.0, scale=math.inf)
    bits: int = 40

    def __post_init__(self) -> None:
        FixedPoint(self.bits)  # refuses bad bits now

    @property
    def sum_grid(self) -> FixedPoint:
        """The grid on which the lap before the first hop sums."""
        return FixedPoint(self.bits)

    def draw(self, seed: int, problem: Problem, rho: float) -> Beginning:
        """The states before the first hop, and the sum that leads to them."""
        shape = (problem.agents, problem.dim)
        slopes, fixed = problem.gradients(np.zeros(shape)), self.sum_grid
        parts = self._parts(slopes, rho)
        fixed.check(parts, problem.agents, "The largest |∇f_i(0)|/ρ")
        words = fixed.encode(parts)
        total = fixed.decode(words.sum(axis=0, dtype=np.uint64))
        sealed = SealedSum(words + seals(SeededPairs(seed), *shape), self.bits)
        return Beginning(np.zeros(shape), slopes, fixed.decode(words), total / problem.agents, sealed)

    def own(self, agent: OneAgent, problem: OwnProblem, rho: float) -> Beginning:
        """Where one agent stands before the first hop; its share is rounded when it is summed."""
        slope = problem.gradients(np.zeros((1, problem.dim)))[0]
        return Beginning(np.zeros(problem.dim), slope, self._parts(slope, rho))

    def _parts(self, slopes: Matrix, rho: float) -> Matrix:
        parts = slopes / -rho
        if not np.isfinite(parts).all():
            raise ValueError("A sealed start needs the gradients at 0, which are not finite here: use another start.")
        return parts
