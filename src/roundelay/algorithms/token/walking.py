"""The same update on random walks: W-ADMM with one token, PW-ADMM and IPW-ADMM with several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from roundelay.algorithms.algorithm import Algorithm, Tunable
from roundelay.algorithms.lemmas import Conditions, walkman
from roundelay.algorithms.parts.defences import Defence, NoDefence
from roundelay.algorithms.parts.perturbations import Inertia, Unperturbed
from roundelay.algorithms.parts.starts import Start, ZeroStart
from roundelay.algorithms.parts.xsteps import xstep
from roundelay.algorithms.token_method import TokenADMM
from roundelay.networks.walks import LeastVisitedWalk, MetropolisWalk, Walk
from roundelay.problems import Problem, Regulariser
from roundelay.problems.regularisers import NoRegulariser
from roundelay.registry import register


@register(Algorithm)
@dataclass(frozen=True)
class WADMM:
    """W-ADMM, Walkman (Mao, Yuan, Hu, Gu, Sayed, Yin, IEEE TSP 2020).

        x⁺ = prox_i(z + y/ρ, ρ)    y⁺ = y + ρ(z − x⁺)    z⁺ = z + (s⁺ − s)/N    s = x − y/ρ

    I-ADMM's update with the token on a random walk. `rho` is ρ (the papers' β). `walk` is
    `MetropolisWalk()`, `UniformWalk()` or `ClosedUniformWalk()`. `regulariser` is an r that the token
    carries, so that Σ f_i + r is minimised (the Walkman paper's own scaling minimises Σ f_i + N·r).
    `start` and `defence` are what hides the agents' functions, such as `SealedStart()` and `ContributionNoise()`.
    """

    name: ClassVar[str] = "W-ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"),)
    rho: float = 10.0
    walk: Walk = MetropolisWalk()
    first_order: bool = False
    start: Start = ZeroStart()
    regulariser: Regulariser = NoRegulariser()
    defence: Defence = NoDefence()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Random walk, x-step, no perturbation, zero start."""
        return TokenADMM(
            self.rho,
            self.walk,
            xstep(self.first_order),
            Unperturbed(),
            self.start,
            self.regulariser,
            defence=self.defence,
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Which theorem's conditions hold on this problem."""
        return walkman(self.rho, self.first_order, problem)


@register(Algorithm)
@dataclass(frozen=True)
class PWADMM:
    """Parallel random walk ADMM (Ye, Chen, Ma, Xiao, IEEE Comm. Letters 2020).

        x⁺ = prox_i((ρz_m + y + τx)/(ρ+τ), ρ+τ)    y⁺ = y + ρ(z_m − x⁺)    z_m⁺ = z_m + M/N (s⁺ − s)

    M = `walks` tokens z_m move in turn by the Metropolis walk and share one multiplier y_i an agent.
    `rho` is ρ, `tau` is τ. `first_order` replaces f_i by its tangent at x.
    """

    name: ClassVar[str] = "PW-ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"), Tunable("tau", start=1.0))
    rho: float = 1.0
    tau: float = 0.0
    walks: int = 25
    first_order: bool = False
    walk: Walk = MetropolisWalk()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Several random walks, x-step, inertia, zero start."""
        return TokenADMM(
            self.rho, self.walk, xstep(self.first_order), Inertia(self.tau), ZeroStart(), tokens=self.walks
        )

    def conditions(self, problem: Problem) -> Conditions:
        """No theorem with checkable numbers is known for several walks."""
        return Conditions()


@register(Algorithm)
@dataclass(frozen=True)
class IPWADMM:
    """Intelligent parallel random walk ADMM (Ye, Chen, Ma, Xiao, IEEE Comm. Letters 2020).

        x⁺ = prox_i((ρz_m + y + τx)/(ρ+τ), ρ+τ)    y⁺ = y + ρ(z_m − x⁺)    z_m⁺ = z_m + M/N (s⁺ − s)

    PW-ADMM where each token moves to the least visited of the neighbours and the agent itself, ties at
    random, the counts shared by all M = `walks` tokens. `rho` is ρ, `tau` is τ.
    """

    name: ClassVar[str] = "IPW-ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"), Tunable("tau", start=1.0))
    rho: float = 1.0
    tau: float = 0.0
    walks: int = 25
    first_order: bool = False

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Several walks with choice, x-step, inertia, zero start."""
        return TokenADMM(
            self.rho, LeastVisitedWalk(), xstep(self.first_order), Inertia(self.tau), ZeroStart(), tokens=self.walks
        )

    def conditions(self, problem: Problem) -> Conditions:
        """No theorem with checkable numbers is known for several walks."""
        return Conditions()
