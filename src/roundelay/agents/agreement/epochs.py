"""The plan of a run's first epoch, from invitations, and of the next ones; and what is new in each, for who must accept it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from roundelay.agents.agreement.invitations import Invitation, check_fits_task, check_same_columns
from roundelay.agents.agreement.names import refuse_alike
from roundelay.agents.agreement.plan import CUSTOM, Member, RingPlan, Stopping, Task
from roundelay.networks import Network
from roundelay.networks.network_checks import join_names, shorten_names
from roundelay.tables import in_short

Pairs = Iterable[tuple[str, str]]
USUAL_STOPPING = Stopping()


def plan_ring(
    invitations: Sequence[Invitation],
    links: Pairs | None,
    algorithm: Any,
    task: Task,
    stopping: Stopping = USUAL_STOPPING,
    first: str | None = None,
    warm: bool = False,
) -> RingPlan:
    """The plan of a new run, from the sites' invitations.

    `links` are the pairs of sites that can reach each other by name; None where all can. `first` is the site that has
    the token first. With `warm` all sites start from the model of an earlier run.
    """
    if len(invitations) < 2:
        raise ValueError("A ring needs at least two sites: give the invitations of all of them.")
    if task.has_rows:
        check_same_columns(invitations)
    if task.kind != CUSTOM and any(one.columns for one in invitations):
        for one in invitations:  # where no site has named any, each finds out from its own data
            check_fits_task(task, one)
    members = [invitation.member for invitation in invitations]
    _refuse_twins(members)
    arranged = arrange(members, links, first or members[0].name)
    return RingPlan(
        secrets.token_hex(16), 0, arranged.members, arranged.order, arranged.links, algorithm=algorithm, task=task, stopping=stopping,
        warm=warm,
    )  # fmt: skip


def plan_without(plan: RingPlan, names: Sequence[str], links: Pairs | None = None, *, previous: str) -> RingPlan:
    """The next epoch, without these sites; a site that leaves by its own wish is dropped too.

    `links` are those of the new ring; None keeps what is left of the old ones. `previous` is the digest of the file of
    `plan`.
    """
    gone = {plan.number_of(name) for name in names}
    stay = [member for number, member in enumerate(plan.members) if number not in gone]
    if len(stay) < 2:
        raise ValueError(
            f"Without {join_names(list(names))} {'one site is' if stay else 'no site is'} left, and a ring needs two: "
            "let the run end instead."
        )
    return _next(plan, stay, _old_links(plan, stay) if links is None else links, previous)


def plan_with(
    plan: RingPlan, invitations: Sequence[Invitation], links: Pairs | None = None, *, previous: str
) -> RingPlan:
    """The next epoch, with these sites too; None for `links` keeps the old ones and links newcomers with everybody."""
    if not invitations:
        raise ValueError("No site joins: give the invitations of the newcomers.")
    known = {member.name for member in plan.members}
    for invitation in invitations:
        if invitation.name in known:
            raise ValueError(
                f"{invitation.name} is a member already: let a newcomer have a name of its own; a member with a new key "
                "is taken in by renew."
            )
        check_fits_task(plan.task, invitation)
    newcomers = [invitation.member for invitation in invitations]
    members = [*plan.members, *newcomers]
    if links is None:
        fresh = {member.name for member in newcomers}
        names = [member.name for member in members]
        links = [*_old_links(plan, members), *(pair for pair in combinations(names, 2) if fresh & set(pair))]
    return _next(plan, members, links, previous)


def plan_renewed(plan: RingPlan, invitation: Invitation, *, previous: str) -> RingPlan:
    """The next epoch, in which a member has the certificate and the address of its new invitation."""
    number = plan.number_of(invitation.name)
    if plan.members[number] == invitation.member:
        raise ValueError(
            f"The invitation of {invitation.name} has nothing new: let it make new keys by roundelay ring rekey, and "
            "send the invitation that this writes."
        )
    if invitation.columns:
        check_fits_task(plan.task, invitation)
    members = [*plan.members]
    members[number] = invitation.member
    return _next(plan, members, _old_links(plan, members), previous)


def _next(plan: RingPlan, members: Sequence[Member], links: Pairs, previous: str) -> RingPlan:
    """The plan after this one; the token starts at a member that was there before, which has the state of the run."""
    _refuse_twins(members)
    stay = {member.name for member in members}
    first = next(plan.members[place].name for place in plan.order if plan.members[place].name in stay)
    arranged = arrange(members, links, first)
    return replace(
        plan,
        algorithm=_for_as_many(plan, len(arranged.members)),
        epoch=plan.epoch + 1,
        members=arranged.members,
        order=arranged.order,
        links=arranged.links,
        previous=previous,
    )


def _for_as_many(plan: RingPlan, agents: int) -> Any:
    """The algorithm for another number of sites, whose functions add up to N times the pooled one: so does λ‖x‖₁."""
    regulariser: Any = getattr(plan.algorithm, "regulariser", None)
    if not plan.task.has_rows or not hasattr(regulariser, "weight"):
        return plan.algorithm
    return replace(plan.algorithm, regulariser=replace(regulariser, weight=regulariser.weight * agents / plan.agents))


def _old_links(plan: RingPlan, members: Sequence[Member]) -> list[tuple[str, str]]:
    stay = {member.name for member in members}
    pairs = [(plan.members[first].name, plan.members[second].name) for first, second in plan.links]
    return [pair for pair in pairs if stay.issuperset(pair)]


def _refuse_twins(members: Sequence[Member]) -> None:
    """Two sites with one name or one certificate are one site, or one has copied the other's folder."""
    for own, words in (("name", "name"), ("certificate", "certificate")):
        seen: dict[object, str] = {}
        for member in members:
            value = getattr(member, own)
            if value in seen:
                raise ValueError(
                    f"{seen[value]} and {member.name} have the same {words}: let each site make an identity of its own."
                )
            seen[value] = member.name
    refuse_alike([member.name for member in members])


# ---------------------------------------------------------------- the lap


@dataclass(frozen=True)
class Arrangement:
    """The members, numbered as the token first meets them; the lap, which starts at 0; and the links."""

    members: tuple[Member, ...]
    order: tuple[int, ...]
    links: tuple[tuple[int, int], ...]


def arrange(members: Sequence[Member], links: Pairs | None, first: str) -> Arrangement:
    """A Hamiltonian cycle of the links where there is one, else a closed walk; it starts at the site called `first`.

    Either end of a link may dial the other, but one of them must have an address: links without one do not count.
    """
    names = [member.name for member in members]
    numbers = {name: number for number, name in enumerate(names)}
    given = set(combinations(range(len(members)), 2)) if links is None else _numbered(links, numbers)
    usable = sorted((a, b) for a, b in given if members[a].address or members[b].address)
    tour = _network(members, usable, given).tour().order.tolist()
    start = tour.index(_number(first, numbers))
    walk = [*tour[start:], *tour[:start]]
    met = list(dict.fromkeys(walk))  # as the token first meets them
    place = {old: new for new, old in enumerate(met)}
    pairs = sorted((min(place[a], place[b]), max(place[a], place[b])) for a, b in usable)
    return Arrangement(tuple(members[old] for old in met), tuple(place[old] for old in walk), tuple(pairs))


def _network(members: Sequence[Member], usable: list[tuple[int, int]], given: set[tuple[int, int]]) -> Network:
    names = tuple(member.name for member in members)
    try:
        return Network(len(members), np.array(usable, np.int64).reshape(-1, 2), labels=names)
    except ValueError as error:
        unreachable = [(names[a], names[b]) for a, b in sorted(given - set(usable))]
        if not unreachable:
            raise ValueError(f"The sites can't make a ring. {error}") from None
    silent = sorted({name for pair in unreachable for name in pair})
    pairs = shorten_names([f"{a} and {b}" for a, b in unreachable], len(unreachable), most=3)
    raise ValueError(
        f"The sites can't make a ring: neither end of the link between {pairs} has an address, so that neither can dial the "
        f"other. Give {silent[0] if len(silent) == 1 else 'some of ' + join_names(silent[:20])} an address by --address, "
        "and make new invitations."
    )


def _numbered(links: Pairs, numbers: dict[str, int]) -> set[tuple[int, int]]:
    pairs: set[tuple[int, int]] = set()
    for a, b in links:
        first, second = sorted((_number(a, numbers), _number(b, numbers)))
        if first == second:
            raise ValueError(f"A link joins {in_short(a)} to itself: leave it out.")
        pairs.add((first, second))
    return pairs


def _number(name: str, numbers: dict[str, int]) -> int:
    if name not in numbers:
        raise ValueError(
            f"There is no site {in_short(name)} among the members: they are {shorten_names(list(numbers)[:20], len(numbers), 20)}."
        )
    return numbers[name]


# ---------------------------------------------------------------- what is new


def changes(before: RingPlan, after: RingPlan) -> tuple[str, ...]:
    """Every difference between two plans of one run."""
    old = {member.name: member for member in before.members}
    new = {member.name: member for member in after.members}
    said = [f"{name} leaves." for name in old if name not in new]
    said += [f"{name} joins." for name in new if name not in old]
    said += [sentence for name in new if name in old for sentence in _of_member(old[name], new[name])]
    stay = old.keys() & new.keys()
    if _links(before, stay) != _links(after, stay):
        said.append("Other pairs of the sites that stay may speak to each other.")
    if before.algorithm != after.algorithm:
        said.append(f"The algorithm was {before.algorithm!r} and is {after.algorithm!r}.")
    if before.task != after.task or _levels(before) != _levels(after):
        said.append("What is fitted is another.")
    if before.stopping != after.stopping:
        said.append(f"The ring stopped by {before.stopping} and stops by {after.stopping}.")
    return tuple(said)


def fits_the_same(before: RingPlan, after: RingPlan) -> bool:
    """Whether two epochs of a run fit the same thing in the same way."""
    fit = (before.task, _levels(before), _for_as_many(before, after.agents), before.warm)
    return fit == (after.task, _levels(after), after.algorithm, after.warm)


def _levels(plan: RingPlan) -> list[tuple[object, ...]]:
    """What kind of values the columns have, and how others become those, which does not make them other columns."""
    return [(column.values, column.levels, column.conversions) for column in plan.task.columns]


def _of_member(old: Member, new: Member) -> list[str]:
    said = []
    if old.certificate != new.certificate:
        said.append(f"{new.name} has a new certificate: compare its fingerprint.")
    if old.address != new.address:
        said.append(f"{new.name} is dialled at {new.address or 'no address'} instead of {old.address or 'no address'}.")
    return said


def _links(plan: RingPlan, among: Set[str]) -> set[frozenset[str]]:
    """The links among some sites, by their names."""
    pairs = {frozenset(plan.members[number].name for number in pair) for pair in plan.links}
    return {pair for pair in pairs if pair <= among}
