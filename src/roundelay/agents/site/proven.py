"""What is proven of sealed laps, as a site's operator reads it; it needs no measurement."""

from __future__ import annotations

from roundelay.agents.agreement.plan import RingPlan


def in_words(plan: RingPlan) -> str:
    """What is proven: words under masks tell whoever lacks the masks nothing but their sum."""
    if plan.agents == 2:
        return (
            "Sealed laps hide nothing between two sites: the other one knows the sum and its own part, and so all that your site "
            "answered. At least three sites are needed, and four if two of them may work together."
        )
    if plan.agents == 3:
        return (
            "Neither neighbour alone can learn anything of your data but what the sum over your site and the other one "
            "says. Both together know all that your site answered: they are all the others."
        )
    return (
        f"Your two neighbours together, and any {plan.agents - 2} of the other {plan.agents - 1} sites, can learn nothing of your "
        "data but what the sum over your site and those who do not work with them says: that is proven, not only "
        f"measured. All {plan.agents - 1} others together know all that your site answered."
    )
