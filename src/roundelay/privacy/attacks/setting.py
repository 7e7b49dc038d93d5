"""What the attacks have in common: what they are given and find, and the public setting in the form that they compute with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from roundelay.algorithms.token_method import TokenADMM
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.public import Public
from roundelay.transcripts import Visits


@dataclass(frozen=True, eq=False)
class Recovered:
    """An estimate of what agent i keeps to itself: row r of `x` and `y` is its state after r visits, R + 1 rows.

    `residual` is what the attack itself can measure of its own failure, and `converged` whether its equations could
    be solved and its assumptions hold; neither uses the truth. `words` says how it went. Attacks that recover the
    function too have its Hessian `H` and slope `g` (f = ½x'Hx + g'x), its `records` (rows label·features), or both,
    and always its `gradient`. `gamma` holds the factors γ_r, where they were unknown.
    """

    x: Matrix
    y: Matrix
    residual: float
    converged: bool
    words: str
    H: Matrix | None = None
    g: Vector | None = None
    gradient: Callable[[Vector], Vector] | None = None
    records: Matrix | None = None
    gamma: Matrix | None = None


class Attack(Protocol):
    """What an observer can make of the visits to an agent; it refuses by a ValueError what its equations are not made for.

    Entered by @register(Attack, "word") it is run by every audit and by the privacy meter of every site.
    """

    def __call__(self, visits: Visits, public: Public, /) -> Recovered:
        """An estimate of what the agent keeps to itself, from what was seen and what is public."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """One agent's visits in the paper's symbols.

    `z` (R, p) what the received tokens stand for (their prox, where they carry a regulariser), `d` (R, p) the
    increments, `s` (R + 1, p) with s_r = x_r − y_r/ρ before visit r: s_0 = 0 under every start of the paper, so that
    s is public. Under another start s_0 is taken for 0 as well, unless it is known; `s_is_known` says whether s is right.
    """

    rho: float
    z: Matrix
    d: Matrix
    s: Matrix
    s_is_known: bool

    @property
    def rounding(self) -> float:
        """How exactly d and s can be known: the tokens' last digit, times N, which is in d already."""
        return float(np.finfo(np.float64).eps * self.scale)

    @property
    def scale(self) -> float:
        """The largest number in sight."""
        return float(max(np.abs(self.s).max(initial=0.0), np.abs(self.z).max(initial=0.0)))


def parts_of(public: Public) -> TokenADMM | None:
    """The method under its choices, if its update is that of incremental ADMM: then it has facts."""
    parts = getattr(public.algorithm, "parts", None)
    method: Any = parts() if callable(parts) else None
    return method if getattr(method, "facts", None) is not None else None


def forms_sums(public: Public) -> bool:
    """Whether the method is made of laps in which sums are formed, under masks or in the open."""
    parts = getattr(public.algorithm, "parts", None)
    return callable(parts) and getattr(parts(), "masked", None) is not None


def admm(public: Public) -> TokenADMM:
    """The method as the family's one update under its choices; anything else is refused."""
    method = parts_of(public)
    if method is None:
        name = getattr(public.algorithm, "name", type(public.algorithm).__name__)
        raise ValueError(
            f"{name} is not of the incremental ADMM family, to which these attacks apply: "
            "use them on I-ADMM, Algorithm 2, PI-ADMM1, PI-ADMM2, W-ADMM or PW-ADMM."
        )
    return method


def evidence(visits: Visits, public: Public) -> Evidence:
    """z, d and s of an agent; refused where the observer has not seen all its visits."""
    method = admm(public)
    if visits.dim != public.dim:
        raise ValueError(
            f"The tokens have {visits.dim} numbers, but the public dimension is {public.dim}: "
            "they belong to different runs."
        )
    if not visits.complete:
        raise ValueError(
            f"The observer has not seen everything that agent {visits.agent} received and sent: "
            "use an eavesdropper, its neighbours, or its colluders."
        )
    if not len(visits):
        raise ValueError(f"No visit of agent {visits.agent} was seen from its beginning to its end: observe more hops.")
    d = visits.increments(public.agents, method.tokens)
    scale = method.token_scale(public.agents)
    z = np.array([method.regulariser.prox(token, scale) for token in visits.received])
    first = np.zeros(d.shape[1]) if visits.share is None else visits.share
    s = first + np.vstack([np.zeros(d.shape[1]), np.cumsum(d, axis=0)])
    return Evidence(method.rho, z, d, s, method.facts.start.balanced or visits.share is not None)


def first_order(method: TokenADMM) -> bool:
    """Whether x is solved by the first-order step; a step that is neither exact nor first order is refused."""
    step = method.facts.xstep.step
    if step == "else":
        raise ValueError(
            f"The x-step {type(method.xstep).__name__} is neither exact nor first order: this attack has no equations for it."
        )
    return step == "first order"


def expected_start(method: TokenADMM, dim: int) -> Vector:
    """The mean of x_i⁰, which is public."""
    return np.full(dim, method.facts.start.middle)


def one_update_each(visits: Visits) -> None:
    """Refuse visits in which the agent kept the token for several updates: nobody saw it in between."""
    if (visits.updates > 1).any():
        raise ValueError(
            f"Agent {visits.agent} kept the token in {int((visits.updates > 1).sum())} of its visits and worked on it "
            "unseen: this attack needs one update a visit, as on a cycle."
        )
