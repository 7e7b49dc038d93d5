"""What the neighbours will know of a site by the plan alone: before the first hop, from the method and the numbers of members and visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.agreement.policy import masks_of
from roundelay.agents.site.status import CURVATURE, GRADIENT, MOST_UNKNOWNS, SLOPE, proven_in_words
from roundelay.algorithms.parts.defences import NoDefence
from roundelay.algorithms.parts.starts import SealedStart, ZeroStart
from roundelay.algorithms.token.incremental import IADMM

# What more unknowns or visits determine is the same: an agent with so many stands for all.
UNKNOWNS, VISITS = 3, 20
# Quantities as the count of unknowns calls them, and as operators read them.
QUANTITIES = {"y": GRADIENT, "H": CURVATURE, "g": SLOPE}


@dataclass(frozen=True)
class Assessment:
    """What follows from a plan.

    `known` is what the neighbours will know to the last digit. `unmeasured` says why the privacy meter can't tell how well the rest
    can be estimated; it is empty where it can, or where that is proven. `sentence` says all of it to the operator.
    """

    known: tuple[str, ...]
    unmeasured: str
    sentence: str


def assess(plan: RingPlan, me: int) -> Assessment:
    """What the neighbours of a member, who pool what they see, will know of it whatever its data are.

    Where it is an estimate only that they can have, as under noise, it is for the meter to say how good.
    """
    if plan.choice is not None:
        known = tuple(QUANTITIES.values()) if are_all_others(plan, me) else ()
        return Assessment(known, "", proven_in_words(plan))
    unmeasured = unmeasured_because(plan)
    try:
        known = _determined(plan, me)
    except ValueError as error:
        return Assessment((), unmeasured or str(error), unmeasured or f"The meter can't tell. {error}")
    words = _words(known, neighbours_in_words(plan, me), are_all_others(plan, me))
    return Assessment(known, unmeasured, f"{words} {unmeasured}".rstrip())


def are_all_others(plan: RingPlan, me: int) -> bool:
    """Whether the neighbours of a member are all the other members: of any sum they know all but its own part."""
    return len(plan.neighbours[me]) + 1 == plan.agents


def neighbours_in_words(plan: RingPlan, me: int) -> str:
    """Who they are, at the beginning of a sentence."""
    count = len(plan.neighbours[me])
    return {1: "Your neighbour", 2: "Your two neighbours together"}.get(count, f"Your {count} neighbours together")


def unmeasured_because(plan: RingPlan) -> str:
    """Why the meter can't measure what a token tells; empty where it can, or where a ring has none."""
    if plan.choice is not None:
        return ""
    if getattr(plan.method, "facts", None) is None or not plan.on_cycle:
        return "The meter knows no attack on this method."
    if plan.dim > MOST_UNKNOWNS:
        return (
            f"The meter is for up to {MOST_UNKNOWNS} unknowns; this fit has {plan.dim}. Use roundelay audit afterwards."
        )
    if plan.epoch or plan.warm:
        return "The meter measures the first epoch of a run from its own start only, not one that goes on with states of before."
    return ""


def known_to(plan: RingPlan, colluders: int) -> frozenset[str]:
    """What so many sites that pool what they see, a site's neighbours among them, know of it: of "y", "H" and "g" those that are determined.

    Noise is left out: it makes a guess of what is known, no secret. And so are masks that are too small to hide anything.
    """
    method: Any = plan.method
    if getattr(method, "facts", None) is None:
        return frozenset("Hgy")  # of another update than that of ADMM nobody has said what it hides
    from roundelay.privacy import (
        identifiable,
    )  # late: sealed laps, which need no count of equations, need not wait for it

    hiding = SealedStart() if plan.warm else method.start  # a warm start is a sealed one about another point
    start = hiding if masks_of(plan).hide and colluders < plan.agents - 1 else ZeroStart()
    model: Literal["quadratic", "unknown"] = "quadratic" if plan.task.is_quadratic else "unknown"
    found = identifiable(IADMM(rho=method.rho, start=start), dim=2, model=model)
    return frozenset(one.quantity for one in found.quantities if one.wholly)


def _determined(plan: RingPlan, me: int) -> tuple[str, ...]:
    """What so many visits determine of a quadratic function, as every smooth one is near the solution.

    Noise in what is added to the token is taken back, so that in the end it hides no gradient: of that it is as if there were none.
    """
    # Late: it brings the attacks and their solvers, which take a while.
    from roundelay.privacy import identifiable

    visits, dim = min(-(-plan.stopping.hops // plan.agents), VISITS), min(plan.dim, UNKNOWNS)

    def wholly(algorithm: Any) -> set[str]:
        found = identifiable(algorithm, visits=visits, dim=dim, agents=plan.agents, colluders=len(plan.neighbours[me]))
        return {one.quantity for one in found.quantities if one.wholly}

    noisy = wholly(plan.algorithm)
    bare = wholly(replace(plan.algorithm, defence=NoDefence())) if hasattr(plan.algorithm, "defence") else noisy
    determined = noisy | (bare - {"H"})
    return tuple(words for quantity, words in QUANTITIES.items() if quantity in determined)


def _words(known: Sequence[str], who: str, all_others: bool) -> str:
    why = (
        " All other sites are your neighbours, and of any sum they know all but your part, so that no start hides it."
        if all_others
        else ""
    )
    if not known:
        return f"By the plan alone {who[0].lower()}{who[1:]} will know nothing of your data to the last digit; how well they can guess is measured.{why}"
    listed = f"{', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else known[0]
    return f"{who} will know {listed} to the last digit, whatever your data are.{why}"
