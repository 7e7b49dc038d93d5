"""What the engines need to know of a token method; the ADMM family under five choices; a method with its own visit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np

from roundelay.algorithms.parts.defences import Defence, NoDefence
from roundelay.algorithms.parts.facts import Facts, NoisyStep
from roundelay.algorithms.parts.perturbations import Perturbation
from roundelay.algorithms.parts.starts import Beginning, Start, ZeroStart
from roundelay.algorithms.parts.xsteps import XStep
from roundelay.algorithms.update import ADMMNumbers, along_all, estimate, step_once, unrest, visit
from roundelay.kernels import DIM, Matrix, Numbers, Part, Vector, each
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.networks.walks import Cycle, Walk
from roundelay.problems import Problem, Regulariser
from roundelay.problems.regularisers import NoRegulariser


class TokenMethod(Protocol):
    """A method in which tokens walk over the network and the agent that holds one updates.

    `parts()` of an algorithm returns one: a `TokenADMM`, or with a kernel function `visit` of its own an `OwnVisit`. A
    token that carries more than one vector says how many by `vectors`; the others then stand below the agents' rows of
    `share`. A method of the ADMM family says so by `has_shares`.
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

    def update(self, first: int = 0) -> Part:
        """The kernel functions `visit`, `estimate` and `unrest` with all that they call, and their numbers; `first` begins a lap."""

    def start_states(self, seed: int, problem: Problem) -> Beginning:
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
    def facts(self) -> Facts:
        """What its parts say of themselves."""
        return Facts.of(self.start, self.perturbation, self.xstep)

    @property
    def needs(self) -> tuple[str, ...]:
        """What the x-step needs of the problem."""
        return self.xstep.needs

    def update(self, first: int = 0) -> Part:
        """The kernel function `visit` with all that it calls, and its numbers."""
        parts = (self.xstep.part(), self.perturbation.part(), self.regulariser.part(), self.defence.part())
        functions: dict[str, Callable[..., Any]] = {
            "visit": visit,
            "estimate": estimate,
            "unrest": unrest,
            "along": along_all,
            "x_step": step_once,
        }
        for part in parts:
            functions.update(part.functions)
        return Part(tuple(functions.items()), ADMMNumbers(float(self.rho), *(part.numbers for part in parts)))

    def start_states(self, seed: int, problem: Problem) -> Beginning:
        """As the start says."""
        return self.start.draw(seed, problem, self.rho)

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
        if self.facts.xstep.clip is not None:
            return "it asks every agent for a gradient that is neither clipped nor noisy, which clipping is there to prevent"
        if math.isinf(floor):
            return "its steps shrink by themselves, so that every agent is content wherever it stands"
        if content < floor:
            return f"its primal noise keeps the agents from ever being content all at once below {floor:.2g}"
        if content < coarse:
            return f"the grid on which its tokens travel keeps the agents from ever being content below {coarse:.2g}"
        return ""


# ---------------------------------------------------------------- a visit of its own


def estimate_is_token(method: Any, agents: int, token: Vector, z: Vector) -> None:
    """Z is the token."""
    for d in each(DIM):
        z[d] = token[d]


def never_at_rest(problem: Any, method: Any, i: int, agents: int, token: Vector, share: Vector) -> float:
    """No agent can tell how far the sum is from its minimum."""
    return math.inf


def no_invariant(x: Matrix, y: Matrix) -> None:
    """The states do not tell where the token is."""


def unscaled(agents: int) -> float:
    """There is no regulariser to scale."""
    return 1.0


@dataclass(frozen=True, eq=False)
class OwnVisit:
    """A token method with a visit of its own, put together: its kernel functions, what they read, and where it goes.

    `visit` is a kernel function with the arguments of `slots.visit`, and `numbers` a NamedTuple of what it reads, or what
    makes one of the agent that begins a lap of the tour; for many methods that is all. `vectors` is how many vectors the token carries: those after the first start at 0 and
    stand in the rows of `share` below the agents'. `start` is drawn with ρ = 1. A method whose token carries a
    `regulariser` has an `estimate` that applies it, with the factor `token_scale`. Where an agent can tell by `unrest`
    whether it is in balance with the token, the agents can stop by themselves; `mean_token` is the invariant, if there is one.
    A method that is a Gaussian mechanism a visit says so by `noisy_step`, which the accounting takes at its word.
    """

    visit: Callable[..., tuple[float, float]]
    numbers: Any = Numbers()
    walk: Walk = Cycle()
    needs: tuple[str, ...] = ("gradient",)
    vectors: int = 1
    start: Start = ZeroStart()
    estimate: Callable[..., None] = estimate_is_token
    unrest: Callable[..., float] = never_at_rest
    mean_token: Callable[[Matrix, Matrix], Vector | None] = no_invariant
    token_scale: Callable[[int], float] = unscaled
    regulariser: Regulariser = NoRegulariser()
    tokens: int = 1
    noisy_step: NoisyStep | None = None

    def __post_init__(self) -> None:
        check_choice("walk", self.walk)
        check_choice("start", self.start)
        check_choice("regulariser", self.regulariser)
        if self.estimate is estimate_is_token and self.regulariser != NoRegulariser():
            raise ValueError(
                f"The token carries {self.regulariser!r}, but nothing applies it: give an estimate that calls at_token, "
                "or leave the regulariser out."
            )

    def update(self, first: int = 0) -> Part:
        """The kernel function `visit` with all that it calls, and its numbers."""
        own = (("visit", self.visit), ("estimate", self.estimate), ("unrest", self.unrest))
        numbers = self.numbers(first) if callable(self.numbers) else self.numbers
        return Part((*own, *self.regulariser.part().functions), numbers)

    def start_states(self, seed: int, problem: Problem) -> Beginning:
        """As the start says; the further vectors at 0."""
        begun = self.start.draw(seed, problem, 1.0)
        return begun._replace(share=np.vstack([begun.share, np.zeros((self.vectors - 1, problem.dim))]))

    def no_contentment(self, content: float, dim: int, agents: int) -> str:
        """Without `unrest` an agent can't tell, and with several tokens nobody sees the whole."""
        if self.unrest is never_at_rest:
            return "its steps do not tell an agent how far the sum is from its minimum"
        return f"{self.tokens} tokens go round, and no agent ever sees them together" if self.tokens > 1 else ""
