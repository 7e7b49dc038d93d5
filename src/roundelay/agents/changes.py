"""What is new in a plan against the one of the epoch before, in sentences for the operator who must accept it."""

from __future__ import annotations

from collections.abc import Set

from roundelay.agents.plan import Member, RingPlan


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
    if before.task != after.task:
        said.append("What is fitted is another.")
    if before.stopping != after.stopping:
        said.append(f"The ring stopped by {before.stopping} and stops by {after.stopping}.")
    return tuple(said)


def _of_member(old: Member, new: Member) -> list[str]:
    said = []
    if old.certificate != new.certificate:
        said.append(f"{new.name} has a new certificate: compare its fingerprint.")
    if old.mask_key != new.mask_key:
        said.append(f"{new.name} has a new mask key.")
    if old.address != new.address:
        said.append(f"{new.name} is dialled at {new.address or 'no address'} instead of {old.address or 'no address'}.")
    return said


def _links(plan: RingPlan, among: Set[str]) -> set[frozenset[str]]:
    """The links among some sites, by their names."""
    pairs = {frozenset(plan.members[number].name for number in pair) for pair in plan.links}
    return {pair for pair in pairs if pair <= among}
