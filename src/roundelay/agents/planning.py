"""Plans of rings: a first one from invitations, and from one plan the next, when sites leave, join or change their keys."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from roundelay.agents.columns import check_fits_task, check_same_columns
from roundelay.agents.invitations import Invitation
from roundelay.agents.laps import Lap, plan_lap
from roundelay.agents.plan import Member, RingPlan, Stopping, Task
from roundelay.networks.sentences import join_names

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
    if task.kind != "custom":
        check_same_columns(invitations)
        if invitations[0].columns:  # where no site has named any, each finds out from its own data
            check_fits_task(task, invitations[0])
    members = [invitation.member for invitation in invitations]
    _refuse_twins(members)
    lap = plan_lap(members, links, first or members[0].name)
    return RingPlan(
        secrets.token_hex(16), 0, lap.members, lap.order, lap.links, algorithm=algorithm, task=task, stopping=stopping,
        warm=warm,
    )  # fmt: skip


def dropped(plan: RingPlan, names: Sequence[str], links: Pairs | None = None, *, previous: str) -> RingPlan:
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


def joined(plan: RingPlan, invitations: Sequence[Invitation], links: Pairs | None = None, *, previous: str) -> RingPlan:
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


def renewed(plan: RingPlan, invitation: Invitation, *, previous: str) -> RingPlan:
    """The next epoch, in which a member has the certificate, the mask key and the address of its new invitation."""
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
    lap: Lap = plan_lap(members, links, first)
    return replace(plan, epoch=plan.epoch + 1, members=lap.members, order=lap.order, links=lap.links, previous=previous)


def _old_links(plan: RingPlan, members: Sequence[Member]) -> list[tuple[str, str]]:
    stay = {member.name for member in members}
    pairs = [(plan.members[first].name, plan.members[second].name) for first, second in plan.links]
    return [pair for pair in pairs if stay.issuperset(pair)]


def _refuse_twins(members: Sequence[Member]) -> None:
    """Two sites with one name, one certificate or one mask key are one site, or one has copied the other's folder."""
    for own, words in (("name", "name"), ("certificate", "certificate"), ("mask_key", "mask key")):
        seen: dict[object, str] = {}
        for member in members:
            value = getattr(member, own)
            if value in seen:
                raise ValueError(
                    f"{seen[value]} and {member.name} have the same {words}: let each site make an identity of its own."
                )
            seen[value] = member.name
