"""How a run ended, in words: from the plan and what all members have signed alone, so that whoever has both can say the same."""

from __future__ import annotations

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.protocol.baton import Reason
from roundelay.agents.protocol.holder import HOPS_OF_AN_EPOCH


def questions_of(plan: RingPlan, hop: int) -> int:
    """How many questions were asked in sealed laps before the end at a hop."""
    return 0 if plan.choice is None else hop - plan.epoch * HOPS_OF_AN_EPOCH


def hops_of(plan: RingPlan, hop: int) -> int:
    """How many hops the fit took."""
    made = hop - plan.epoch * HOPS_OF_AN_EPOCH
    return made if plan.choice is None else made * len(plan.order)


def why_it_ended(plan: RingPlan, hop: int, reason: Reason, by: int) -> str:
    """Why the ring stopped."""
    hops = hops_of(plan, hop)
    sealed = plan.choice is not None
    laps = f"{questions_of(plan, hop)} laps, " if sealed else ""
    after = f"after {laps}{hops:,} hops"
    if reason == Reason.ASKED:
        return f"The operator of {plan.members[by].name} asked the ring to stop, {after}."
    if reason == Reason.NO_MINIMUM:
        return f"There is no best model: the ring stopped {after}."
    if sealed:
        if plan.noise is not None:
            return f"The {plan.agents} sites have made {plan.noise.laps_in_words}, as was planned, {after}."
        if reason == Reason.CONTENT:
            return f"The {plan.agents} sites have found the best fit {after}: all were asked there, and the sum of their slopes is 0."
        return f"The sites came no further {after}: the sum of their slopes is not 0 yet."
    if reason == Reason.CONTENT:
        return f"All {plan.agents} sites were content within {plan.stopping.tolerance:g} {after}, and confirmed it."
    return f"The {hops:,} hops that the ring file allows were made."
