"""Rings in one place whose members have real certificates and make keys for masks: as real agents, without links and disks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.plan import Member, RingPlan, Stopping, Task
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.objectives import Known, Local
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import HandOver, Holder
from roundelay.agents.protocol.signing import Certified, MaskKey
from roundelay.masks import new_private_key
from tests.agents.conftest import COLUMNS, site
from tests.agents.hospitals import NAMES, table_of
from tests.agents.world import least_squares, ring_plan

RING, OTHER_RING = "ab" * 32, "cd" * 32
TASK = Task("least_squares", COLUMNS[:2], COLUMNS[2])
# What whoever stands on the way makes of a baton, before it reaches a member.
Meddle = Callable[[int, Baton], Baton]


def signed_plan(
    algorithm: object, stopping: Stopping, task: Task | None = None, order: Sequence[int] = (0, 1, 2, 3), **more: Any
) -> RingPlan:
    """A ring of four sites with their certificates."""
    plan = ring_plan(list(NAMES), algorithm, 2, stopping)
    members = tuple(Member(name, site(name).certificate) for name in NAMES)
    links = sorted({(min(a, b), max(a, b)) for a, b in zip(order, (*order[1:], order[0]), strict=True)})
    return replace(
        plan, members=members, order=tuple(order), links=tuple(links), task=plan.task if task is None else task, **more
    )


def rows_of(name: str) -> OwnRows:
    """The rows of a site: Bergen has 45, the others 40."""
    table = table_of(name, 45 if name == "Bergen" else 40)
    return OwnRows(table[:, :-1], table[:, -1])


def local_of(plan: RingPlan, me: int) -> Local:
    """What a site brings."""
    if plan.task.kind == "custom":
        return Known(least_squares(me + 1, plan.dim))
    return RowsFit(plan.task, rows_of(plan.members[me].name))


def member_of(plan: RingPlan, me: int, ring: str = RING) -> Holder:
    """A member with the key of its certificate, and a key for masks."""
    certificates = tuple(member.certificate for member in plan.members)
    signer = Certified(certificates, site(plan.members[me].name))
    return Holder(
        plan, me, local_of(plan, me), 100 + me, MaskKey(new_private_key()), signer=signer, ring=ring
    )  # fmt: skip


def members_of(plan: RingPlan) -> list[Holder]:
    """All of them, who have accepted one ring file."""
    return [member_of(plan, me) for me in range(plan.agents)]


def hand_overs(ring: Sequence[Holder], meddle: Meddle = lambda receiver, baton: baton) -> Iterator[HandOver]:
    """Every hand-over as it reaches its receiver, who checks it and works on it."""
    move = ring[ring[0].plan.order[0]].first()
    while move is not None:
        move = move._replace(baton=meddle(move.receiver, move.baton))
        yield move
        ring[move.receiver].check(move.baton, None)
        move = ring[move.receiver].act(move.baton)


def played(ring: Sequence[Holder], meddle: Meddle = lambda receiver, baton: baton) -> list[HandOver]:
    """From the first hand-over to the last."""
    return list(hand_overs(ring, meddle))


def pooled_optimum(plan: RingPlan) -> np.ndarray:
    """What the sites of a custom ring should find."""
    parts = [least_squares(me + 1, plan.dim) for me in range(plan.agents)]
    return rl.LeastSquares([one.features[0] for one in parts], [one.targets[0] for one in parts]).optimum
