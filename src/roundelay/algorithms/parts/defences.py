"""The fifth choice: what an agent does to the token before it hands it on, so that others learn less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from roundelay.kernels import CONCEAL, DIM, Numbers, Part, Vector, Visit, each, normals, vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.masks import FixedPoint
from roundelay.registry import register


class Defence(Protocol):
    """What hides a contribution, or the token on its way."""

    @property
    def wire(self) -> FixedPoint | None:
        """The fixed point in which tokens travel under pads; None where they travel as they are."""

    def part(self) -> Part:
        """The kernel functions `conceal` and `as_sent`, and their numbers."""

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """The smallest tolerance at which the agents' own stopping rule can ever be met."""


def conceal_nothing(defence: Any, at: Visit, change: Vector) -> None:
    """Leave the contribution as it is."""


def sent_as_it_is(defence: Any, moved: float) -> float:
    """The token itself."""
    return moved


@register(Defence, "none")
@dataclass(frozen=True)
class NoDefence:
    """The plain update: the token shows s_i⁺ − s_i of every agent to its neighbours."""

    @property
    def wire(self) -> FixedPoint | None:
        """Tokens travel as they are."""
        return None

    def part(self) -> Part:
        """The kernel functions `conceal` and `as_sent`, and their numbers."""
        return Part((("conceal", conceal_nothing), ("as_sent", sent_as_it_is)), Numbers())

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """Any tolerance can be met."""
        return 0.0


class DefenceNumbers(NamedTuple):
    """The noise scale·exp(−rate·(r − since)), and the steps in one, 1/grid, with the grid itself."""

    scale: float
    rate: float
    steps: float
    grid: float
    since: int = 0


def conceal_by_noise(defence: DefenceNumbers, at: Visit, change: Vector) -> None:
    """Add e_r = scale·qʳ·N(0, I) at the agent's visit r, counted from when the noise began."""
    noise = vector(DIM)
    normals(at.seed, at.agent, at.hop, CONCEAL, noise)
    size = defence.scale * math.exp(-defence.rate * (at.turn - defence.since))
    for d in each(DIM):
        change[d] += size * noise[d]


def sent_on_grid(defence: DefenceNumbers, moved: float) -> float:
    """The nearest multiple of the grid; the agent's share takes up the rounding, and its next visit repays it."""
    return np.rint(moved * defence.steps) * defence.grid


@register(Defence, "contribution-noise")
@dataclass(frozen=True)
class ContributionNoise:
    """Every contribution carries noise that the agent takes back at its next visit.

        z⁺ = z + (s⁺ + e_r − c)/N,   c⁺ = c + N(z⁺ − z),   e_r = scale·decayʳ·N(0, I) at the agent's visit r

    Σc_i = Nz at every hop, and since the noise decays the method still converges to the exact optimum, if slower.
    `decay` must lie above the factor by which the method itself converges in a lap (0.62 for I-ADMM on the paper's
    least squares, ρ = 10): with a smaller one the noise vanishes before the signal does, and the last visits tell
    what the first hid.

    **Hides**, from everyone who sees the token and up to N − 1 colluders, as long as they follow the protocol, the curvature H_i of
    f_i: what is seen of s_i is off by e_r. No unbiased attack that knows the law of the noise finds H_i at p = 2 on the paper's least
    squares better than to 0.7 of its size with the defaults, where the population's mean is off by 0.12; with decay
    0.6 it is 0.02, with 0.5 0.0005.
    **Does not hide** y_i and ∇f_i(x*): the noise vanishes, so that s_i is known in the end; take `ZeroSumStart` or
    `SealedStart` with it. At p = 10 some directions of H_i still leak. There is no proof and no ε: the noise is
    Gaussian, but the transcript of all visits has no bounded sensitivity.
    **Does not hide** anything from neighbours who are active: who hands the agent one and the same token until the noise has
    decayed, and then p others for a while each, knows H_i to rounding (p = 2: to 1e-12 after 280 visits). It protects from the honest
    but curious alone.

    An agent that adds it on the way counts r from its visit number `since`.
    """

    scale: float = 1.0
    decay: float = 0.75
    since: int = 0

    def __post_init__(self) -> None:
        finite_number("scale", self.scale, least=0.0)
        whole_number("since", self.since, least=0)
        if not 0.0 < finite_number("decay", self.decay) < 1.0:
            raise ValueError(
                f"decay is {self.decay}: use a number above 0 and below 1, so that the noise vanishes and the method converges."
            )

    @property
    def wire(self) -> FixedPoint | None:
        """Tokens travel as they are."""
        return None

    def part(self) -> Part:
        """The kernel functions `conceal` and `as_sent`, and their numbers."""
        numbers = DefenceNumbers(float(self.scale), -math.log(self.decay), 1.0, 1.0, self.since)
        return Part((("conceal", conceal_by_noise), ("as_sent", sent_as_it_is)), numbers)

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """Any tolerance can be met, once the noise has decayed."""
        return 0.0


@register(Defence, "masked-links")
@dataclass(frozen=True)
class MaskedLinks:
    """Every token travels in fixed point under a one-time pad that only its sender and its receiver can draw.

        z⁺ = the multiple of 2^−bits next to z + (s⁺ − c)/N,   on the wire: z⁺·2^bits + pad (mod 2⁶⁴)

    The rounding of one visit is repaid at the next, Σc_i = Nz holds exactly, and the method converges to within about
    ρN·2^−bits. `bits` is how many bits stand after the point; tokens must stay below 2^(63 − bits). `noise` is a
    `ContributionNoise` to go with it.

    **Hides** the token from everybody who only taps links, any number of them: the words are uniform.
    **Does not hide** anything from agents: the one before and the one after agent i hold the pads, and together they
    see all that they see without masks. It does not notice who changes a message on the way. On real networks use
    TLS, which does both.
    """

    bits: int = 40
    noise: ContributionNoise | None = None

    def __post_init__(self) -> None:
        FixedPoint(self.bits)  # refuses bad bits now
        if self.noise is not None and not isinstance(self.noise, ContributionNoise):
            raise ValueError(f"The noise is {self.noise!r}: use ContributionNoise(), or None.")

    @property
    def wire(self) -> FixedPoint:
        """The fixed point in which tokens travel."""
        return FixedPoint(self.bits)

    def part(self) -> Part:
        """The kernel functions `conceal` and `as_sent`, and their numbers."""
        noise = self.noise or ContributionNoise(0.0)
        conceal = conceal_nothing if self.noise is None else conceal_by_noise
        steps = math.ldexp(1.0, self.bits)
        numbers = DefenceNumbers(float(noise.scale), -math.log(noise.decay), steps, 1.0 / steps, noise.since)
        return Part((("conceal", conceal), ("as_sent", sent_on_grid)), numbers)

    def content_floor(self, rho: float, dim: int, agents: int) -> float:
        """The rounding of the token moves c_i by up to N/2 steps of the grid, once at this visit and once at the last."""
        return max(rho, 1.0) * agents * self.wire.grid * math.sqrt(dim)
