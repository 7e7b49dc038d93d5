"""Hand-overs as a transcript, row for row as the simulator would have written it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roundelay.agents.baton import Baton, Phase
from roundelay.agents.beginning import grid_of
from roundelay.agents.capture.ends import Ends
from roundelay.agents.member import HOPS_OF_AN_EPOCH
from roundelay.agents.plan import RingPlan
from roundelay.agents.rows import sums_of
from roundelay.networks.walks import tour_part
from roundelay.transcripts import SealedLap, Transcript


def transcript_of(batons: Mapping[int, Baton], ends: Mapping[int, Ends], plan: RingPlan) -> Transcript:
    """The messages with the token. The sender of the first message with a new hop made the hop before it."""
    walk = tour_part(np.array(plan.order)) if plan.on_cycle else plan.method.walk.part(plan.network)
    works = dict(walk.functions)["works"]
    first_hop, made = plan.epoch * HOPS_OF_AN_EPOCH, 0
    rows: list[tuple[int, Ends, bool, Baton]] = []
    for k, both in ends.items():
        baton = batons[k]
        if baton.phase in (Phase.SUM, Phase.TELL) or (baton.phase == Phase.DONE and baton.step > 1):
            continue
        hop = baton.hop - first_hop
        place = (hop - 1) % len(plan.order) if plan.on_cycle else both.sender
        # A frozen token is passed on with the hop as it was, and so is one that goes on after that.
        rows.append((hop - 1, both, not works(walk.numbers, place), baton) if hop > made else (hop, both, True, baton))
        made = hop
    return Transcript(
        np.array([hop for hop, *_ in rows], np.int64),
        np.array([both.sender for _, both, *_ in rows], np.int64),
        np.array([both.receiver for _, both, *_ in rows], np.int64),
        np.array([relayed for *_, relayed, _ in rows], np.bool_),
        np.array([baton.numbers for *_, baton in rows], np.float64).reshape(len(rows), plan.vectors * plan.dim),
        sealed=_sealed(batons, ends, plan),
    )


def _sealed(batons: Mapping[int, Baton], ends: Mapping[int, Ends], plan: RingPlan) -> SealedLap | None:
    """The lap in which the shares were summed under masks, where the ring begins so."""
    turn = len(sums_of(plan.task))
    lap = [k for k in ends if batons[k].phase == Phase.SUM and batons[k].purpose == turn]
    if not lap:
        return None
    return SealedLap(
        np.array([batons[k].step - 1 for k in lap], np.int64),
        np.array([ends[k].sender for k in lap], np.int64),
        np.array([ends[k].receiver for k in lap], np.int64),
        np.array([batons[k].numbers for k in lap], np.uint64),
        grid_of(plan.method).bits,
        len(plan.order),
        plan.agents,
    )
