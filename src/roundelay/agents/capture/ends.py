"""Who handed what to whom: not written on a hand-over, but known to whoever has the ring file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from roundelay.agents.baton import Baton, Phase
from roundelay.agents.plan import RingPlan
from roundelay.engine.laps import lap_along


class Ends(NamedTuple):
    """The member that hands over, and the one that takes."""

    sender: int
    receiver: int


def ends_of(k: int, batons: Mapping[int, Baton], plan: RingPlan) -> Ends | None:
    """The ends of hand-over k: on a cycle from the counter alone.

    On a random walk a token names the member that sends it, so that the next hand-over tells who had taken this one;
    None where there is no next one.
    """
    order = plan.order
    if plan.on_cycle:
        return Ends(order[(k - 1) % len(order)], order[k % len(order)])
    sender = _sender_on_walk(batons[k], plan)
    if batons[k].phase != Phase.ITERATE:
        lap = lap_along(np.array(order), batons[k].origin).order
        return Ends(sender, int(lap[batons[k].step % len(lap)]))
    following = batons.get(k + 1)
    return None if following is None else Ends(sender, _sender_on_walk(following, plan))


def _sender_on_walk(baton: Baton, plan: RingPlan) -> int:
    if baton.phase == Phase.ITERATE:
        return baton.origin
    lap = lap_along(np.array(plan.order), baton.origin).order
    return int(lap[(baton.step - 1) % len(lap)])
