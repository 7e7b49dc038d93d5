"""The hand-overs of a ring in captured messages: each once, by its counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from roundelay.agents.baton import Baton, BatonError, unpack_baton
from roundelay.agents.member import HOPS_OF_AN_EPOCH, layout_of
from roundelay.agents.plan import RingPlan
from roundelay.agents.rows import sums_of
from roundelay.agents.wire import FrameError, Kind, unpack_frame


@dataclass(frozen=True, eq=False)
class Handovers:
    """What was handed over: `batons` by the counter k, and how many `frames` of the run there were, of all kinds.

    `repeated` counts the batons that were sent again, and `refused`, by the reason, messages that are none of this run.
    """

    batons: dict[int, Baton]
    frames: int
    repeated: int
    refused: Counter[str]


def handovers_of(messages: Iterable[bytes], plan: RingPlan) -> Handovers:
    """The hand-overs of a plan's epoch among messages. Of two with one counter the first is kept."""
    layout = layout_of(plan, sums_of(plan.task))
    batons: dict[int, Baton] = {}
    checksums: dict[int, int] = {}
    refused: Counter[str] = Counter()
    frames = repeated = 0
    for message in messages:
        try:
            frame = unpack_frame(message, plan.run_bytes)
            frames += 1
            if frame.kind != Kind.BATON:
                continue
            if frame.epoch != plan.epoch:
                raise FrameError(f"It is of epoch {frame.epoch}, but the ring file is of epoch {plan.epoch}.")
            if frame.k in batons:
                repeated += 1
                if checksums[frame.k] != frame.checksum:
                    raise FrameError(f"There are two different batons with the counter {frame.k}; the first is used.")
                continue
            baton = unpack_baton(frame.body, layout)
            if baton.hop // HOPS_OF_AN_EPOCH != plan.epoch:
                raise BatonError(f"The baton's hop, {baton.hop}, is none of this epoch.")
            batons[frame.k], checksums[frame.k] = baton, frame.checksum
        except (FrameError, BatonError) as error:
            refused[str(error)] += 1
    return Handovers(dict(sorted(batons.items())), frames, repeated, refused)
