"""Stochastic incremental ADMM: a few rows of data at each visit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from roundelay.algorithms.conditions import Conditions
from roundelay.algorithms.perturbations import Schedule
from roundelay.algorithms.starts import ZeroStart
from roundelay.algorithms.token_method import TokenADMM
from roundelay.algorithms.tunable import Tunable
from roundelay.algorithms.xsteps import Sampled
from roundelay.networks.walks import Cycle
from roundelay.problems import Problem


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
