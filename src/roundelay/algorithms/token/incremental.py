"""The update on a cycle: I-ADMM, the paper's Algorithm 2, PI-ADMM1, PI-ADMM2, and sI-ADMM with a few rows at each visit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from roundelay.algorithms.algorithm import Algorithm, Tunable
from roundelay.algorithms.lemmas import Conditions, first_order_stability, lemma_2, lemma_4
from roundelay.algorithms.parts.defences import Defence, NoDefence
from roundelay.algorithms.parts.perturbations import (
    PrimalNoise,
    Schedule,
    StepSizeNoise,
    Unperturbed,
    VectorStepSizeNoise,
)
from roundelay.algorithms.parts.starts import Start, UniformStart, ZeroStart
from roundelay.algorithms.parts.xsteps import Sampled, xstep
from roundelay.algorithms.token_method import TokenADMM
from roundelay.networks.walks import Cycle
from roundelay.problems import Problem, Regulariser
from roundelay.problems.regularisers import NoRegulariser
from roundelay.registry import register


@register(Algorithm)
@dataclass(frozen=True)
class IADMM:
    """Incremental ADMM (Ye et al. 2020, Algorithm 1).

        x⁺ = prox_i(z + y/ρ, ρ)    y⁺ = y + ρ(z − x⁺)    z⁺ = z + (s⁺ − s)/N    s = x − y/ρ

    `rho` is ρ. `first_order` replaces f_i by its tangent: x⁺ = z + (y − ∇f_i(x))/ρ. `regulariser` is an r that the
    token carries, so that Σ f_i + r is minimised. `start` and `defence` are what hides the agents' functions, such as
    `SealedStart()` and `ContributionNoise()`.
    """

    name: ClassVar[str] = "I-ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"),)
    rho: float = 10.0
    first_order: bool = False
    start: Start = ZeroStart()
    regulariser: Regulariser = NoRegulariser()
    defence: Defence = NoDefence()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Cycle, x-step, no perturbation, zero start."""
        return TokenADMM(
            self.rho,
            Cycle(),
            xstep(self.first_order),
            Unperturbed(),
            self.start,
            self.regulariser,
            defence=self.defence,
        )

    def conditions(self, problem: Problem) -> Conditions:
        """Which lemma's conditions hold on this problem."""
        return first_order_stability(self.rho, problem) if self.first_order else lemma_2(self.rho, problem)


@register(Algorithm, "randomstart")
@dataclass(frozen=True)
class Algorithm2:
    """Incremental ADMM with a random start (Ye et al. 2020, Algorithm 2).

        x_i⁰ = υ_i    y_i⁰ = ρυ_i    z⁰ = 0,    then as I-ADMM

    `rho` is ρ; υ_i has entries from U(0, 100). The paper prints y_i⁰ = −ρυ_i, which is an error:
    `start=UniformStart(0, 100, printed_sign=True)` shows what it does. `roundelay.RandomStart` is another name for it.
    """

    name: ClassVar[str] = "Algorithm 2"
    former_name: ClassVar[str] = "RandomStart"  # so it is called in older files
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"),)
    rho: float = 10.0
    first_order: bool = False
    start: Start = UniformStart(0.0, 100.0)
    defence: Defence = NoDefence()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Cycle, x-step, no perturbation, random start."""
        return TokenADMM(self.rho, Cycle(), xstep(self.first_order), Unperturbed(), self.start, defence=self.defence)

    def conditions(self, problem: Problem) -> Conditions:
        """Which lemma's conditions hold on this problem."""
        return first_order_stability(self.rho, problem) if self.first_order else lemma_2(self.rho, problem)


RandomStart = Algorithm2  # its former name, which sounds like one of the starts


@register(Algorithm)
@dataclass(frozen=True)
class PIADMM1:
    """Incremental ADMM with a perturbed step size (Ye et al. 2020, Algorithm 3).

        x⁺ = prox_i(z + y/(ργ), ργ)    y⁺ = y + ργ(z − x⁺)    z⁺ = z + (s⁺ − s)/N    s = x − y/ρ

    `rho` is ρ. γ is drawn anew at each visit, uniformly within `gamma_spread` (relative) of `gamma`. `first_order`
    replaces f_i by its tangent: x⁺ = z + (y − ∇f_i(x))/(ργ). `gamma_is="vector"` draws one γ for each coordinate; see
    `VectorStepSizeNoise` for what that does not hide. `start` and `defence` are what hides more.
    """

    name: ClassVar[str] = "PI-ADMM1"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"),)
    rho: float = 10.0
    gamma_spread: float = 0.1
    start: Start = UniformStart(0.0, 100.0)
    first_order: bool = False
    gamma: float = 1.0
    gamma_is: Literal["scalar", "vector"] = "scalar"
    defence: Defence = NoDefence()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Cycle, x-step, perturbed step size, random start."""
        if self.gamma_is not in ("scalar", "vector"):
            raise ValueError(f'gamma_is is {self.gamma_is!r}: use "scalar" or "vector".')
        kind = StepSizeNoise if self.gamma_is == "scalar" else VectorStepSizeNoise
        noise = kind(self.gamma_spread, self.gamma)
        return TokenADMM(self.rho, Cycle(), xstep(self.first_order), noise, self.start, defence=self.defence)

    def conditions(self, problem: Problem) -> Conditions:
        """Which lemma's conditions hold on this problem."""
        least_gamma = self.gamma * (1.0 - self.gamma_spread)
        if self.first_order:
            return first_order_stability(self.rho * least_gamma, problem)
        return lemma_4(self.rho, least_gamma, problem)


@register(Algorithm)
@dataclass(frozen=True)
class PIADMM2:
    """Incremental ADMM with a perturbed primal variable (Ye et al. 2020, Algorithm 4).

        x⁺ = prox_i(z + y/ρ, ρ) + ω    y⁺ = y + ρ(z − x⁺)    z⁺ = z + (s⁺ − s)/N    s = x − y/ρ

    `rho` is ρ. ω ~ N(0, σ²I) is drawn anew at each visit; `sigma` is σ, the standard deviation, or with
    `sigma_is="variance"` σ² itself, since the paper's N(0, σ) does not say which. It ends at a floor that σ
    sets. The paper announces a convergence proof and does not give one.

    With `first_order`, `clip` limits the norm of every record's gradient, and `sample_rate` is the chance with which a
    record is drawn at a visit. Only with `clip` is there a guarantee of differential privacy: see
    `roundelay.privacy.epsilon`.
    """

    name: ClassVar[str] = "PI-ADMM2"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"),)
    rho: float = 10.0
    sigma: float = 1e-3
    start: Start = UniformStart(0.0, 100.0)
    first_order: bool = False
    sigma_is: Literal["deviation", "variance"] = "deviation"
    clip: float | None = None
    sample_rate: float | None = None
    defence: Defence = NoDefence()

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Cycle, x-step, perturbed primal variable, random start."""
        if self.sigma_is not in ("deviation", "variance"):
            raise ValueError(f'sigma_is is {self.sigma_is!r}: use "deviation" or "variance".')
        noise = PrimalNoise(self.sigma if self.sigma_is == "deviation" else max(self.sigma, 0.0) ** 0.5)
        solve = xstep(self.first_order, self.clip, self.sample_rate)
        return TokenADMM(self.rho, Cycle(), solve, noise, self.start, defence=self.defence)

    def conditions(self, problem: Problem) -> Conditions:
        """No theorem covers the noise; for the step itself the first-order form has a condition."""
        return first_order_stability(self.rho, problem) if self.first_order else Conditions()


@register(Algorithm)
@dataclass(frozen=True)
class SIADMM:
    """sI-ADMM, stochastic incremental ADMM (Chen, Ye, Xiao, Skoglund, Poor).

        x⁺ = (ρz + y + τ_k x − g_i)/(ρ+τ_k)    y⁺ = y + ργ_k(z − x⁺)    z⁺ = z + (s⁺ − s)/N    s = x − y/ρ

    g_i estimates ∇f_i(x) from `batch` rows drawn with replacement. τ_k = c_tau·√k and γ_k = c_gamma/√k, where
    k counts the laps. `rho` is ρ.
    """

    name: ClassVar[str] = "sI-ADMM"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"), Tunable("c_tau"), Tunable("c_gamma"))
    rho: float = 10.0
    c_tau: float = 10.0
    c_gamma: float = 1.0
    batch: int = 10

    def __post_init__(self) -> None:
        self.parts()  # refuses bad options now

    def parts(self) -> TokenADMM:
        """Cycle, sampled x-step, scheduled step sizes, zero start."""
        return TokenADMM(self.rho, Cycle(), Sampled(self.batch), Schedule(self.c_tau, self.c_gamma), ZeroStart())

    def conditions(self, problem: Problem) -> Conditions:
        """No theorem with checkable numbers is known here."""
        return Conditions()
