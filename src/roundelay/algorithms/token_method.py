"""What the engines need to know of a token method, and the ADMM family as one such method under five choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np

from roundelay.algorithms.parts.defences import Defence, NoDefence
from roundelay.algorithms.parts.perturbations import Perturbation
from roundelay.algorithms.parts.starts import SealedSum, Start
from roundelay.algorithms.parts.xsteps import ClippedGradient, XStep
from roundelay.algorithms.update import ADMMNumbers, estimate, unrest, visit
from roundelay.kernels import Matrix, Part, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.networks.walks import Walk
from roundelay.problems import Problem, Regulariser
from roundelay.problems.regularisers import NoRegulariser


@dataclass(frozen=True, eq=False)
class Initial:
    """The states before the first hop; the token starts at 0, unless `token` says where.

    `sealed` is a sum that goes round once before the first hop.
    """

    x: Matrix
    y: Matrix
    share: Matrix
    token: Vector | None = None
    sealed: SealedSum | None = None


class TokenMethod(Protocol):
    """A method in which tokens walk over the network and the agent that holds one updates.

    To add your own, write a kernel function `visit` (see `update.py` for its arguments) and an object
    with these members; `parts()` of an algorithm returns it. A token that carries more than one vector says how
    many by `vectors`; the others then stand below the agents' rows of `share`. A method of the ADMM family says so by
    `has_shares`.
    """

    @property
    def walk(self) -> Walk:
        """Where the token goes."""

    @property
    def tokens(self) -> int:
        """How many tokens go round."""

    @property
    def regulariser(self) -> Regulariser:
        """What is minimised besides Σ f_i."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The kernel functions that the problem must provide."""

    def update(self) -> Part:
        """The kernel functions `visit`, `estimate` and `unrest` with all that they call, and their numbers."""

    def start_states(self, seed: int, problem: Problem) -> Initial:
        """x_i, y_i and c_i before the first hop, and the token where it does not start at 0."""

    def mean_token(self, x: Matrix, y: Matrix) -> Vector | None:
        """The invariant: what the mean of the tokens must be, given all states. None where there is none."""

    def token_scale(self, agents: int) -> float:
        """The factor on r in the prox that turns the token into z."""

    def no_contentment(self, content: float, dim: int, agents: int) -> str:
        """Why the agents' own stopping rule can't work with this tolerance; empty where it can."""


def vectors_of(method: TokenMethod) -> int:
    """How many vectors the token carries."""
    return int(getattr(method, "vectors", 1))


def has_shares(method: TokenMethod) -> TypeGuard[TokenADMM]:
    """Whether the agents have multipliers y_i and shares c_i, whose mean is the token, so that they can be summed anew."""
    return bool(getattr(method, "has_shares", False))


# What each choice must be able to do, and an example of one.
CHOICES = {
    "walk": ("first_places", "MetropolisWalk()"),
    "start": ("draw", "UniformStart(0.0, 100.0)"),
    "regulariser": ("prox", "L1(0.1)"),
    "defence": ("content_floor", "ContributionNoise()"),
}


def check_choice(name: str, choice: Any) -> None:
    """Refuse what is not a walk, a start, a regulariser or a defence."""
    member, example = CHOICES[name]
    if isinstance(choice, type) or not hasattr(choice, member):
        raise ValueError(f"The {name} is {choice!r}: use an object such as {example}.")


@dataclass(frozen=True)
class TokenADMM:
    """Incremental ADMM: one update, five choices.

    The update is `visit` in `update.py`. The choices are where the token goes (`walk`), how x is solved
    (`xstep`), what is perturbed (`perturbation`), how it starts (`start`), and what hides the contributions (`defence`).
    Besides, the token may carry a regulariser, and several tokens may go round at once.
    """

    rho: float
    walk: Walk
    xstep: XStep
    perturbation: Perturbation
    start: Start
    regulariser: Regulariser = NoRegulariser()
    tokens: int = 1
    defence: Defence = NoDefence()

    has_shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        finite_number("rho", self.rho, above=0.0)
        whole_number("The number of walks", self.tokens, least=1)
        check_choice("walk", self.walk)
        check_choice("start", self.start)
        check_choice("regulariser", self.regulariser)
        check_choice("defence", self.defence)
        if self.tokens > 1 and getattr(self.start, "one_token", False):
            raise ValueError(
                f"{type(self.start).__name__} sets one token to the sum of its lap, but {self.tokens} tokens go round: "
                "use one token, or another start."
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """What the x-step needs of the problem."""
        return self.xstep.needs

    def update(self) -> Part:
        """The kernel function `visit` with all that it calls, and its numbers."""
        parts = (self.xstep.part(), self.perturbation.part(), self.regulariser.part(), self.defence.part())
        functions: list[tuple[str, Callable[..., Any]]] = [
            ("visit", getattr(self.perturbation, "visit", visit)),
            ("estimate", estimate),
            ("unrest", unrest),
            *(pair for part in parts for pair in part.functions),
        ]
        return Part(tuple(functions), ADMMNumbers(float(self.rho), *(part.numbers for part in parts)))

    def start_states(self, seed: int, problem: Problem) -> Initial:
        """x_i and y_i as the start says, c_i = x_i − y_i/ρ unless it says otherwise."""
        x, y, share, token, sealed = self.start.draw(seed, problem, self.rho)
        return Initial(x, y, x - y / self.rho if share is None else share, token, sealed)

    def mean_token(self, x: Matrix, y: Matrix) -> Vector:
        """z = (1/N) Σ (x_i − y_i/ρ)."""
        return np.mean(x - y / self.rho, axis=0)

    @property
    def shares_are_states(self) -> bool:
        """Whether c_i = x_i − y_i/ρ: a defence adds something to the shares that it takes back later."""
        return self.defence == NoDefence()

    def token_scale(self, agents: int) -> float:
        """z = prox of r/(Nρ), so that Σ f_i + r is minimised."""
        return 1.0 / (agents * self.rho)

    def no_contentment(self, content: float, dim: int, agents: int) -> str:
        """With several tokens nobody sees the whole; with noise, or steps that shrink, contentment means nothing."""
        floor = self.perturbation.content_floor(self.rho, dim, agents)
        coarse = self.defence.content_floor(self.rho, dim, agents)
        if self.tokens > 1:
            return f"{self.tokens} tokens go round, and no agent ever sees them together"
        if isinstance(self.xstep, ClippedGradient):
            return "it asks every agent for a gradient that is neither clipped nor noisy, which clipping is there to prevent"
        if math.isinf(floor):
            return "its steps shrink by themselves, so that every agent is content wherever it stands"
        if content < floor:
            return f"its primal noise keeps the agents from ever being content all at once below {floor:.2g}"
        if content < coarse:
            return f"the grid on which its tokens travel keeps the agents from ever being content below {coarse:.2g}"
        return ""
