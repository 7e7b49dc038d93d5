"""What a plan lets others learn of a site, and what to think of before it is accepted: for people who have never seen the method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from roundelay.agents.agreement.plan import CUSTOM, RingPlan
from roundelay.agents.agreement.policy import Policy, masks_of, sides
from roundelay.agents.site.assessment import are_all_others
from roundelay.agents.site.status import proven_in_words
from roundelay.algorithms.parts.defences import conceal_nothing
from roundelay.algorithms.parts.starts import SealedStart, ZeroStart
from roundelay.algorithms.token.incremental import IADMM
from roundelay.networks.network_checks import join_names
from roundelay.regression.regression import Regression


class Verdict(NamedTuple):
    """What others learn of a site, and what to think of, in sentences."""

    learned: tuple[str, ...]
    risks: tuple[str, ...]


def verdict(plan: RingPlan, me: int | None = None) -> Verdict:
    """What a plan means for one of its sites; for any of them where `me` is None."""
    if plan.choice is not None:
        return Verdict(tuple(_by_sums(plan)), tuple(_risks_of_sums(plan, me)))
    return Verdict(tuple(_by_token(plan, me)), tuple(_risks_of_token(plan, me)))


# ---------------------------------------------------------------- sealed laps


def _by_sums(plan: RingPlan) -> Iterator[str]:
    if plan.noise is not None:
        yield f"Everybody is told sums over all {plan.agents} sites with noise in them, no other sums, and the model."
    elif plan.task.kind == CUSTOM:
        yield (
            f"Everybody is told sums over all {plan.agents} sites: how the sites' objectives do at each point that is asked about, and how "
            "they change there. And the model."
        )
    elif plan.task.regression is not None:
        yield f"Everybody is told these sums over all {plan.agents} sites, and no part of them by itself:"
        yield from (f"  {what};" for what in plan.task.told)
        yield _small_cells(plan.task.regression)
    else:
        whole = ", and the squares and products of all columns" if plan.task.problem.is_quadratic else ""
        yield (
            f"Everybody is told sums over all {plan.agents} sites: how many rows they have together, the sum and the spread of each "
            f"column{whole}; and for each model that is tried, how well it fits all rows and how that changes with the model. And the model."
        )
    yield proven_in_words(plan)


def _small_cells(regression: Regression) -> str:
    return (
        f"Cells of Table 1 and of the pictures with fewer than {regression.least} rows of all sites are not printed; but whoever keeps what is "
        "told sees them, though not at which site these rows are. By its policy a site takes no part where it has a level, in a group of Table 1 too, "
        "that few of its rows have (least_rows_a_level)."
    )


def _risks_of_sums(plan: RingPlan, me: int | None) -> Iterator[str]:
    if plan.noise is None and me != plan.order[0]:
        first = plan.members[plan.order[0]].name
        yield (
            f"{first} asks the questions. It could ask about other models than agreed, {plan.stopping.questions:,} in all at most; the "
            "answers are sums all the same, and your agent names such questions at the end."
        )
    yield from _false_data(plan)


# ---------------------------------------------------------------- a token


def _by_token(plan: RingPlan, me: int | None) -> Iterator[str]:
    if plan.task.has_rows:
        yield (
            f"Everybody is told sums over all {plan.agents} sites: how many rows they have together, and the sum and the spread of each "
            "column. And the model."
        )
    known = _known(plan, me)
    yield (
        f"A token goes from site to site: {plan.dim * plan.vectors:,} numbers, the model as far as it has come. Each site changes it by its "
        f"own data. {_neighbours(plan, me)} After some rounds they can work out from that, as exactly as if you had told them: "
        f"{_worked_out(plan, known)}."
    )
    if _by_single_rows(plan):
        yield "A step takes some rows at a time, or bounds what each may add: from a few rounds these neighbours can work out single rows."
    hidden = _hidden(plan, me)
    if hidden:
        yield hidden
    if _has_noise(plan):
        yield (
            "Noise blurs what they work out, for a while. How much of it nobody has proven, and a neighbour that keeps the token where it is "
            "sees through it."
        )


def _neighbours(plan: RingPlan, me: int | None) -> str:
    if me is None:
        return "A site's neighbours see the token before and after it."
    names = join_names(sorted(plan.members[one].name for one in plan.neighbours[me]))
    if len(plan.neighbours[me]) == 1:
        return f"Your neighbour {names} sees it before and after you."
    return f"Your neighbours {names} see it before and after you."


def _open(plan: RingPlan, me: int | None) -> bool:
    """Whether a site's neighbours are all the others, so that they know its part of every sum."""
    return any(are_all_others(plan, one) for one in (range(plan.agents) if me is None else (me,)))


def _known(plan: RingPlan, me: int | None) -> frozenset[str]:
    """What is determined of a site by what its neighbours see. Noise is left out: it makes a guess of what is known, no secret."""
    method: Any = plan.method
    if getattr(method, "facts", None) is None:
        return frozenset("Hgy")  # of another update than that of ADMM nobody has said what it hides
    from roundelay.privacy import (
        identifiable,
    )  # late: sealed laps, which need no count of equations, need not wait for it

    hiding = SealedStart() if plan.warm else method.start  # a warm start is a sealed one about another point
    start = hiding if masks_of(plan).hide and not _open(plan, me) else ZeroStart()
    quadratic = plan.task.is_quadratic
    found = identifiable(IADMM(rho=method.rho, start=start), dim=2, model="quadratic" if quadratic else "unknown")
    return frozenset(one.quantity for one in found.quantities if one.wholly)


def _worked_out(plan: RingPlan, known: frozenset[str]) -> str:
    task = plan.task
    if not task.is_quadratic:
        slope = "the slope of your objective" if task.kind == CUSTOM else "the slope of your rows' loss"
        if "y" in known:
            return f"{slope} at each model that comes by. Where you have few rows, they may follow from that one by one"
        return (
            f"how {slope} differs between the models that come by, though not, by that alone, what it is at any of them"
        )
    features = "the sums of squares and products of your features (X'X)"
    if "g" in known:
        return (
            f"{features}, and of your features with {task.target} (X't). A fit to your rows alone follows from these, and where you have few "
            "rows much about each of them"
        )
    return f"{features}, from which much about each row follows where you have few"


def _by_single_rows(plan: RingPlan) -> bool:
    """Whether a step is not of a site's whole function."""
    facts = getattr(plan.method, "facts", None)
    return facts is not None and facts.xstep.step == "else"


def _hidden(plan: RingPlan, me: int | None) -> str:
    """What the start keeps, or that it keeps nothing though it reads as if it did."""
    masks, start = masks_of(plan), getattr(plan.method, "start", None)
    if masks.hide and _open(plan, me):
        return (
            "All other sites are neighbours here, and of any sum they know all but one part, so that no start hides it."
        )
    if masks.hide:
        what = "The slopes themselves stay" if not plan.task.is_quadratic else (
            f"How your features go with {plan.task.target} (X't) stays"
        )  # fmt: skip
        return f"{what} hidden under the masks of the start, from any {plan.agents - 2} sites together: all {plan.agents - 1} others together know it."
    if masks.size:
        rho = float(getattr(plan.method, "rho", 1.0))
        thin = masks.size < Policy.least_cover
        too = f"the masks are {masks.size:.2g} large" if thin else f"the masks go in steps of {masks.step:.2g}"
        return (
            f"The plan says {start!r}, which sounds as if it hid something. With ρ = {rho:g} it hides nothing: {too}, and the slopes "
            "that they should hide are near 1."
        )
    return "Nothing is hidden from these neighbours."


def _has_noise(plan: RingPlan) -> bool:
    method: Any = plan.method
    facts = getattr(method, "facts", None)
    defence = getattr(method, "defence", None)
    concealed = defence is not None and dict(defence.part().functions).get("conceal") is not conceal_nothing
    return concealed or (facts is not None and facts.perturbation.noise in ("x", "else"))


def _risks_of_token(plan: RingPlan, me: int | None) -> Iterator[str]:
    both = {one: sides(plan, one) for one in (range(plan.agents) if me is None else (me,))}
    for one, seen in both.items():
        if seen:
            names = join_names(sorted(plan.members[other].name for other in seen))
            site, stand = (
                plan.members[one].name if me is None else "you",
                "stands" if len(seen) == 1 else "may each stand",
            )
            yield f"{names} {stand} on both sides of {site}: it takes nobody else to work out the above."
    yield (
        "If one site comes or goes later, the tokens before and after tell what is hidden of it. That is refused unless an operator says "
        "otherwise."
    )
    yield from _false_data(plan)


def _false_data(plan: RingPlan) -> Iterator[str]:
    yield (
        "Any site can give false data and so move the model, and nobody sees that. At the end your agent says how the model does on "
        "your own data."
    )
