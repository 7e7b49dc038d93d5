"""Where there is no guarantee, there is no number, and the reason is said."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms import Beginning, ClippedGradient, PrimalNoise, Sampled, TokenADMM
from roundelay.privacy import NoGuarantee, epsilon, sensitivity
from roundelay.privacy.accounting import composition

SQUARES = rl.paper_least_squares(agents=3, samples=4)
CALLABLE = rl.CallableProblem([lambda x: 2.0 * x] * 3, 2)
PRIVATE = rl.PIADMM2(first_order=True, clip=1.0)


@dataclass(frozen=True)
class FromTheData:
    """A start that nobody has looked into."""

    def draw(self, seed: int, agents: int, dim: int, rho: float) -> Beginning:
        return Beginning(np.ones((agents, dim)), np.ones((agents, dim)), np.ones((agents, dim)))


@dataclass(frozen=True)
class WithASurprise(TokenADMM):
    """A method that may override anything."""


CASES = [
    (rl.PIADMM2(), SQUARES, "steps are exact"),
    (rl.PIADMM2(first_order=True), SQUARES, "not clipped"),
    (rl.PIADMM2(first_order=True, clip=1.0, sigma=0.0), SQUARES, "sigma is 0"),
    (rl.IADMM(), SQUARES, "nothing random is added to x"),
    (rl.IADMM(first_order=True), SQUARES, "nothing random is added to x"),
    (rl.RandomStart(), SQUARES, "nothing random is added to x"),
    (rl.PIADMM1(first_order=True), SQUARES, "step size changes"),
    (rl.PWADMM(), SQUARES, "step size changes"),
    (rl.SIADMM(), SQUARES, "step size changes"),
    (TokenADMM(1.0, rl.Cycle(), Sampled(2), PrimalNoise(1.0), rl.ZeroStart()), SQUARES, "not clipped"),
    (rl.WPG(0.1), SQUARES, "another method"),
    (rl.DGD(0.1), SQUARES, "another method"),
    (rl.DualPerturbedADMM(), SQUARES, "another method"),
    (rl.OnePass(), SQUARES, "another method"),
    (
        WithASurprise(1.0, rl.Cycle(), ClippedGradient(1.0), PrimalNoise(1.0), rl.ZeroStart()),
        SQUARES,
        "another method",
    ),
    (rl.PIADMM2(first_order=True, clip=1.0, start=FromTheData()), SQUARES, "start is not known"),
    (PRIVATE, CALLABLE, "CallableProblem does not say what a single record counts"),
]


@pytest.mark.parametrize(("algorithm", "problem", "words"), CASES, ids=lambda case: str(case)[:40])
def test_no_number_is_given_but_a_reason(algorithm: Any, problem: Any, words: str) -> None:
    found = epsilon(algorithm, problem, 20)
    assert isinstance(found, NoGuarantee)
    assert words in found.words and found.words.endswith(".")
    assert not hasattr(found, "epsilon")
    with pytest.raises(AttributeError, match=f"There is no epsilon to read.*{words}"):
        _ = found.epsilon
    with pytest.raises(TypeError):
        float(found)  # type: ignore[arg-type]


@pytest.mark.parametrize(("algorithm", "problem", "words"), CASES[:3], ids=lambda case: str(case)[:40])
def test_nor_a_sensitivity_where_a_record_is_not_bounded(algorithm: Any, problem: Any, words: str) -> None:
    found = sensitivity(algorithm, problem, 0)
    if words == "sigma is 0":  # how far a record moves x does not depend on the noise
        assert found.x > 0.0
        return
    assert isinstance(found, NoGuarantee) and words in found.words
    with pytest.raises(AttributeError, match="There is no sensitivity"):
        _ = found.x


@pytest.mark.parametrize(("algorithm", "problem", "words"), CASES, ids=lambda case: str(case)[:40])
def test_a_budget_is_refused_with_the_same_reason(algorithm: Any, problem: Any, words: str) -> None:
    if not hasattr(algorithm, "name") or problem is CALLABLE:
        return
    length = {"iterations": 3} if "mixing" in dir(algorithm.parts()) else {"hops": 3}
    with pytest.raises(ValueError, match=f"can't keep to a budget.*{words}"):
        rl.simulate(algorithm, problem, rl.ring(3), budget=rl.PrivacyBudget(1.0), progress=False, **length)


def test_nor_can_it_be_watched() -> None:
    with pytest.raises(ValueError, match="PrivacyLoss can't watch PI-ADMM2: its steps are exact"):
        rl.simulate(rl.PIADMM2(), SQUARES, rl.ring(3), 3, monitors=[rl.PrivacyLoss()], progress=False)


def test_a_choice_that_the_accounting_does_not_know_is_not_taken_for_harmless(monkeypatch: Any) -> None:
    monkeypatch.setattr(
        "roundelay.privacy.accounting.sensitivities.COVERED", ("rho", "walk", "xstep", "perturbation", "start")
    )
    method = TokenADMM(1.0, rl.Cycle(), ClippedGradient(1.0), PrimalNoise(1.0), rl.ZeroStart(), tokens=2)
    found = epsilon(method, SQUARES, 3)
    assert isinstance(found, NoGuarantee) and "does not cover its tokens" in found.words


def test_without_dp_accounting_the_remedy_is_named(monkeypatch: Any) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "dp_accounting":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    composition._exact.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'roundelay\[privacy\]'"):
        epsilon(PRIVATE, SQUARES, 20)
    assert isinstance(epsilon(rl.PIADMM2(), SQUARES, 20), NoGuarantee)  # no number, no package


def test_facts_are_not_inherited_by_who_does_something_else() -> None:
    """A start that takes another's facts but draws by itself has said nothing of what it draws from."""

    class FromTheData(rl.ZeroStart):
        def draw(self, seed, problem, rho):
            x = problem.gradients(np.zeros((problem.agents, problem.dim)))
            return Beginning(x, rho * x, np.zeros_like(x))

    class Renamed(rl.ZeroStart):
        """The same, under another name."""

    method = rl.PIADMM2(sigma=1.0, first_order=True, clip=1.0, start=FromTheData())
    assert method.parts().facts.start.uses_data
    assert not replace(method, start=Renamed()).parts().facts.start.uses_data
