"""Which lemma's conditions hold for a method on a problem, with the numbers. Nothing is refused for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roundelay.problems import Problem
from roundelay.shown.notebook import View
from roundelay.shown.show import Shown
from roundelay.shown.table import Table


@dataclass(frozen=True)
class Condition:
    """One requirement of one theorem, and whether it holds; None where a number is not known."""

    source: str
    requirement: str
    numbers: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """Whether it holds, in words."""
        return {True: "holds", False: "does not hold", None: "can't be checked"}[self.holds]

    def __str__(self) -> str:
        return f"{self.source}: {self.requirement} {self.verdict} ({self.numbers})."


class Conditions(tuple[Condition, ...], Shown):
    """The conditions of all theorems that speak about a method."""

    __slots__ = ()

    @property
    def hold(self) -> bool:
        """Whether there are any, and every one of them is known to hold."""
        return bool(self) and all(condition.holds is True for condition in self)

    def view(self) -> View:
        """A row for each."""
        if not self:
            return View(str(self))
        rows = tuple((one.source, one.requirement, one.numbers, one.verdict) for one in self)
        return View("", (Table("conditions", "", ("by", "requirement", "numbers", "verdict"), rows, words=4),))

    def __str__(self) -> str:
        return "\n".join(str(condition) for condition in self) or "No theorem is known for this method."


def at_least(source: str, symbol: str, value: float, formula: str, bound: float, strict: bool) -> Condition:
    """The requirement value ≥ bound, or value > bound."""
    holds = None if math.isnan(bound) else (value > bound if strict else value >= bound)
    sign = ">" if strict else "≥"
    known = f"{symbol} = {value:.4g}, {formula} = {bound:.4g}" if holds is not None else "L of the problem is not known"
    return Condition(source, f"{symbol} {sign} {formula}", known, holds)


def lemma_2(rho: float, problem: Problem) -> Conditions:
    """I-ADMM and Algorithm 2, exact."""
    return Conditions([at_least("Lemma 2 (Ye et al. 2020)", "ρ", rho, "2L + 2", 2.0 * problem.L + 2.0, strict=False)])


def lemma_4(rho: float, least_gamma: float, problem: Problem) -> Conditions:
    """PI-ADMM1, exact."""
    source, L, N = "Lemma 4 (Ye et al. 2020)", problem.L, problem.agents  # noqa: N806
    first = (2.0 * rho**2 + 4.0 * rho + 1.0) / (rho - L) if rho > L else math.inf
    bound = math.nan if math.isnan(L) else max(first, 2.0 * (rho + 2.0) * N)
    return Conditions(
        [
            at_least(source, "ρ", rho, "L", L, strict=True),
            at_least(source, "γ", least_gamma, "max{(2ρ² + 4ρ + 1)/(ρ − L), 2(ρ + 2)N}", bound, strict=True),
        ]
    )


def walkman(rho: float, first_order: bool, problem: Problem) -> Conditions:
    """W-ADMM."""
    source, L = "Walkman (Mao et al. 2020)", problem.L  # noqa: N806
    if first_order:
        return Conditions([at_least(source, "ρ", rho, "2L² + L + 2", 2.0 * L**2 + L + 2.0, strict=True)])
    return Conditions([at_least(source, "ρ", rho, "2L + 2", 2.0 * L + 2.0, strict=True)])


def first_order_stability(least_penalty: float, problem: Problem) -> Conditions:
    """A local fixed-point analysis: with the token held still, x⁺ = z − H(x − x⁻)/(ργ) contracts for ργ > 2L."""
    return Conditions(
        [at_least("Local stability of the first-order step", "ργ", least_penalty, "2L", 2.0 * problem.L, strict=True)]
    )


def gradient_step(alpha: float, problem: Problem) -> Conditions:
    """Gradient steps at the token."""
    return step_below("Gradient steps on smooth functions", alpha, "2/L", 2.0, problem)


def step_below(
    source: str, step: float | None, formula: str, factor: float, problem: Problem, symbol: str = "α"
) -> Conditions:
    """A step size below factor/L."""
    bound = factor / problem.L
    holds = None if step is None or math.isnan(bound) else step < bound
    known = "L of the problem is not known" if holds is None else f"{symbol} = {step:.4g}, {formula} = {bound:.4g}"
    return Conditions([Condition(source, f"{symbol} < {formula}", known, holds)])


def step_for_network(source: str, step: float | None, problem: Problem) -> Conditions:
    """A step size below (1 + λ_min(W))/L, which depends on the network: above 2/L it is too long for all of them."""
    bound = 2.0 / problem.L
    too_long = step is not None and not math.isnan(bound) and step >= bound
    known = (
        "L of the problem is not known"
        if math.isnan(bound)
        else f"α = {step:.4g}, at most 2/L = {bound:.4g}, less where λ_min(W) < 1"
    )
    return Conditions([Condition(source, "α < (1 + λ_min(W))/L", known, False if too_long else None)])
