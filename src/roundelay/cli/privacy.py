"""What a run with noise on x has cost its records, for the summary."""

from __future__ import annotations

from typing import Any

from roundelay.algorithms import PrimalNoise
from roundelay.engine import Run


def privacy_of(run: Run, delta: float) -> dict[str, Any]:
    """The guarantee as data, or why there is none; nothing for a method that does not claim to be private in this way."""
    method = run.algorithm.parts()
    if not isinstance(getattr(method, "perturbation", None), PrimalNoise):
        return {}
    from roundelay.privacy.accounting.guarantee import check_delta
    from roundelay.privacy.accounting.ledger import ledger_of
    from roundelay.privacy.accounting.none import NoGuarantee
    from roundelay.privacy.accounting.reasons import why_no_guarantee

    reason = why_no_guarantee(method, run.problem)
    if reason:
        return {"privacy": {"epsilon": None, "delta": None, "words": NoGuarantee(reason).words}}
    check_delta(delta)
    try:
        spent = ledger_of(method, run.problem, delta).spent(run.visits)
    except ImportError as error:  # the run itself did not need the package
        return {"privacy": {"epsilon": None, "delta": delta, "words": str(error)}}
    return {"privacy": {"epsilon": spent.epsilon, "delta": delta, "words": spent.words}}
