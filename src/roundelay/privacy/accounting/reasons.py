"""Why there is no bound on what a visit gives away, in words. Where a reason is found, no number is given."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NoReturn

from roundelay.algorithms import TokenADMM


@dataclass(frozen=True)
class NoGuarantee:
    """There is no guarantee of differential privacy; `reason` says why. It has no ε, not even an infinite one."""

    reason: str

    @property
    def words(self) -> str:
        """The reason as a sentence."""
        return f"There is no guarantee of differential privacy: {self.reason}."

    @property
    def epsilon(self) -> NoReturn:
        """There is none."""
        raise AttributeError(f"There is no epsilon to read. {self.words}")

    @property
    def x(self) -> NoReturn:
        """There is no sensitivity either."""
        raise AttributeError(f"There is no sensitivity to read. {self.words}")


# The choices that the derivation covers; a choice that it does not know of is not assumed to be harmless.
COVERED = ("rho", "walk", "xstep", "perturbation", "start", "regulariser", "tokens")


def method_of(algorithm: Any) -> Any:
    """The parts of an algorithm; a method stands for itself."""
    return algorithm.parts() if hasattr(algorithm, "parts") else algorithm


def why_no_sensitivity(method: Any, problem: Any = None) -> str:
    """Why one record can change a visit by any amount, or by an amount that nobody has worked out; empty where neither."""
    # The very class: the derivation is that of its update, and one derived from it may have another.
    if type(method) is not TokenADMM:
        return "the accounting is that of incremental ADMM with noise on x, and this is another method"
    for field in fields(method):
        if field.name not in COVERED and getattr(method, field.name) != field.default:
            return f"the accounting does not cover its {field.name}"
    start, perturbation, xstep = method.facts
    if perturbation.noise not in ("nothing", "x"):
        return "its step size changes from visit to visit, and the accounting is that of noise which is added to x"
    if xstep.step == "exact":
        return "its steps are exact, and one record can move the minimiser of f_i by any amount: use first_order=True and clip"
    if xstep.clip is None:
        return "the gradients of single records are not clipped, so that one record can move x by any amount: set clip"
    if start.uses_data:
        return "its start is not known to be made without the data"
    if problem is not None and not hasattr(problem, "record_weights"):
        return f"a {type(problem).__name__} does not say what a single record counts"
    return ""


def why_no_guarantee(method: Any, problem: Any = None) -> str:
    """Why there is no guarantee of differential privacy; empty where there is one."""
    if type(method) is TokenADMM and method.facts.perturbation.noise == "nothing":
        return "nothing random is added to x"
    reason = why_no_sensitivity(method, problem)
    if reason:
        return reason
    if not method.facts.perturbation.sigma > 0.0:
        return "sigma is 0, so that nothing random is added to x"
    return ""
