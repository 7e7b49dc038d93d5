"""What the parts of incremental ADMM say of themselves, to those who reason about a method without running it.

Attacks, the privacy meter, the count of unknowns and the accounting ask for these facts and never for a part's class. A
part has them as `facts`. One that says nothing is taken at the defaults, with which nobody promises anything for it:
attacks whose equations rest on a fact refuse, and so does the accounting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple


@dataclass(frozen=True)
class StartFacts:
    """What is public of x_i⁰ and y_i⁰.

    `share` is what c_i⁰ = x_i⁰ − y_i⁰/ρ is: "zero"; "twice x", 2x_i⁰; "masked", a secret of its own; or "sealed",
    −∇f_i(0)/ρ. Every coordinate of x_i⁰ lies within `width` of `middle`, its mean; with the width 0 it is public. `uses_data` says whether
    the agents' data have a part in it. `scale` is how large the masks are that hide c_i⁰: the deviation of a coordinate, infinite where they
    are uniform over all words; 0 promises none.
    """

    share: Literal["zero", "twice x", "masked", "sealed"] = "masked"
    middle: float = 0.0
    width: float = math.inf
    uses_data: bool = True
    scale: float = 0.0

    @property
    def balanced(self) -> bool:
        """Whether x_i⁰ − y_i⁰/ρ = 0 is public, as under every start of the paper."""
        return self.share == "zero"

    @property
    def at_zero(self) -> bool:
        """Whether x_i⁰ = y_i⁰ = 0 is public."""
        return self.balanced and self.middle == self.width == 0.0


@dataclass(frozen=True)
class PerturbationFacts:
    """What is public of a perturbation, which is the law of its draws and not the draws.

    `noise` is in "nothing", the "step size", the new "x", or in something "else". A noisy step size is ργ, with γ within
    `width` of `gamma`, its mean, and one γ for each coordinate where it is `by_coordinate`. Noise in x is N(0, sigma²I).
    `plain_steps` says whether y⁺ = y + ρ(z − x⁺) holds exactly, with ρ itself.
    """

    noise: Literal["nothing", "step size", "x", "else"] = "else"
    gamma: float = 1.0
    width: float = 0.0
    by_coordinate: bool = False
    sigma: float = 0.0
    plain_steps: bool = False


@dataclass(frozen=True)
class XStepFacts:
    """How x⁺ is found: the `step` is the "exact" minimiser, the "first order" one by the gradient, or something "else".

    `clip` is the largest norm of a single record's gradient, None where there is no such limit, and `rate` the chance with
    which a record is drawn, None where all are used.
    """

    step: Literal["exact", "first order", "else"] = "else"
    clip: float | None = None
    rate: float | None = None


@dataclass(frozen=True)
class NoisyStep:
    """What is public of a method whose every visit is z⁺ = z − α_k(g_i(z) + ω), ω ~ N(0, sigma²I), and whose agents keep nothing of it.

    g_i is the gradient with every row of a record scaled down to the norm `clip_row` and its slope ℓ' cut at ±`clip_slope`;
    α_k = alpha/(k + 1)^decay at the agent's visit k.
    """

    alpha: float
    decay: float
    sigma: float
    clip_row: float
    clip_slope: float

    @property
    def clip(self) -> float:
        """The largest norm of a record's gradient."""
        return self.clip_row * self.clip_slope


class Facts(NamedTuple):
    """Those of a method's parts. A token method has `facts` of this kind where its update is that of incremental ADMM."""

    start: StartFacts
    perturbation: PerturbationFacts
    xstep: XStepFacts

    @classmethod
    def of(cls, start: Any, perturbation: Any, xstep: Any) -> Facts:
        """What these parts say, the defaults where they say nothing."""
        return cls(
            start.facts if is_own(start, "facts", "draw") else StartFacts(),
            perturbation.facts if is_own(perturbation, "facts", "part") else PerturbationFacts(),
            xstep.facts if is_own(xstep, "facts", "part") else XStepFacts(),
        )


def is_own(part: Any, said: str, done: str) -> bool:
    """Whether what a part says was said by the class that does it, or by one derived from that: not of another's doing."""
    order = type(part).__mro__
    says, does = (next((k for k, kind in enumerate(order) if name in vars(kind)), None) for name in (said, done))
    return says is not None and (does is None or says <= does)
