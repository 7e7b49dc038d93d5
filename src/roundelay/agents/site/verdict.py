"""What a plan lets others learn of a site, and what to think of before it is accepted: for people who have never seen the method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from roundelay.agents.agreement.plan import CUSTOM, RingPlan
from roundelay.agents.agreement.policy import Policy, masks_of, sides
from roundelay.agents.site.assessment import are_all_others, known_to
from roundelay.agents.site.leaving import Told, named_sums, told_of
from roundelay.agents.site.status import proven_in_words
from roundelay.algorithms.parts.defences import conceal_nothing
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
        yield f"Everybody is told sums over all {plan.agents} sites with noise in them, no other sums, and the model:"
    else:
        yield f"Everybody is told these sums over all {plan.agents} sites, no part of them by itself, and the model:"
    yield from _listed(told_of(plan))
    if plan.task.regression is not None:
        yield small_cells(plan.task.regression)
    yield proven_in_words(plan)


def _listed(told: Iterable[Told]) -> Iterator[str]:
    """Each sum with how many numbers it has, for sentences of their own."""
    lines = [f"  {one.tells} ({one.counted})" for one in told]
    yield from (f"{line};" for line in lines[:-1])
    yield f"{lines[-1]}."


def small_cells(regression: Regression) -> str:
    """What is not printed, and who knows it nevertheless."""
    return (
        f"Cells of Table 1 and of the pictures with fewer than {regression.least} rows of all sites are not printed; but whoever keeps what is "
        "told sees them, though not at which site these rows are. By its policy a site takes no part where it has a level, in a group of Table 1 too, "
        f"that few of its rows have (least_rows_a_level).{_combinations(regression)}"
    )


def _combinations(regression: Regression) -> str:
    names = [column.name for column in regression.columns if column.values == "levels"]
    if len(names) < 2:
        return ""
    return (
        f" Whoever is told the sums can work out how many rows have each combination of the levels of {join_names(names)}: where few have one, leave "
        "a column out, or join levels."
    )


def _risks_of_sums(plan: RingPlan, me: int | None) -> Iterator[str]:
    if plan.noise is None and me != plan.order[0]:
        first = plan.members[plan.order[0]].name
        yield (
            f"{first} asks the questions. It could ask about other models than agreed, {plan.stopping.questions:,} in all at most; the "
            "answers are sums all the same; your agent gives none that few rows of yours carry, and names such questions at the end."
        )
    yield from _false_data(plan)


# ---------------------------------------------------------------- a token


def _by_token(plan: RingPlan, me: int | None) -> Iterator[str]:
    sums = [one for one in told_of(plan) if one.name in {name for name, _, _ in named_sums(plan)}]
    if sums:
        yield f"Everybody is told these sums over all {plan.agents} sites, no part of them by itself, and the model:"
        yield from _listed(sums)
    known = neighbours_know(plan, me)
    yield (
        f"A token goes from site to site: {plan.dim * plan.vectors:,} numbers, the model as far as it has come. Each site changes it by its "
        f"own data. {_neighbours(plan, me)} After some rounds they can work out from that, as exactly as if you had told them: "
        f"{worked_out(plan, known)}."
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


def neighbours_know(plan: RingPlan, me: int | None) -> frozenset[str]:
    """What is determined of a site by what its neighbours see."""
    return known_to(plan, plan.agents - 1 if _open(plan, me) else 2)


def worked_out(plan: RingPlan, known: frozenset[str]) -> str:
    """What that means, in the columns' own names."""
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


# ---------------------------------------------------------------- what is agreed on, in words


def promise_in_words(plan: RingPlan) -> str:
    """What is promised, and against whom."""
    promise, noise = plan.task.promise, plan.noise
    assert promise is not None and noise is not None
    return (
        f"Every record is promised ε = {promise.epsilon:g} at δ = {promise.delta:g}, where neighbouring means one record more or less "
        f"(ρ = {noise.rho:.4g}): a row counts up to the length {noise.clip_row:g}, every site adds its share of the noise under the masks, and "
        f"no other sums are formed. It holds against everybody as long as no more than {noise.leave_out} of the {plan.agents} sites leave "
        f"their noise out or work together; against the {plan.agents - 1} others together a site has its own share alone."
    )


def way_in_words(plan: RingPlan) -> str:
    """From site to site."""
    if not plan.on_cycle:
        return f"on a random walk over {len(plan.links)} links"
    names = [plan.members[number].name for number in plan.order]
    return f"{' – '.join((*names, names[0]))}"


def method_in_words(plan: RingPlan) -> str:
    """How it is fitted, and what that shows to whom."""
    if plan.choice is None:
        return f"A token goes round, which each site changes. Those who know the method read: {plan.algorithm!r}."
    regulariser = plan.algorithm.regulariser
    with_it = "" if regulariser.is_zero else f" The model is subject to {regulariser!r}."
    return (
        f"In each lap all sites add up one answer, each under masks that cancel; nobody sees anything but the sum over all sites. "
        f"{plan.choice.words}{with_it}"
    )


def stop_in_words(plan: RingPlan) -> str:
    """When it ends."""
    if plan.noise is not None:
        return f"It stops after {plan.noise.laps_in_words}, and one that tells the model."
    if plan.choice is not None:
        return f"It stops at the best fit, or after {plan.stopping.questions:,} questions at the latest."
    if plan.stopping.tolerance is None:
        return f"It stops after {plan.stopping.hops:,} hops."
    return (
        f"It stops when every site is content within {plan.stopping.tolerance:g}, or after {plan.stopping.hops:,} hops."
    )
