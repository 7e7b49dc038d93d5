"""A ring played through in memory, and the packets that it would have sent in the open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.data.objectives import Local
from roundelay.agents.protocol.baton import pack_baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.wire import Kind, pack_frame
from roundelay.masks import SeededPairs
from tests.agents.packets import Way, grpc_stream, segments


class Sent(NamedTuple):
    """A hand-over as it crosses a link."""

    sender: int
    receiver: int
    frame: bytes


def played(plan: RingPlan, parts: Sequence[Local], seed: int = 1) -> list[Sent]:
    """Every hand-over from the first to the last."""
    holders = [Holder(plan, me, part, seed, SeededPairs(seed)) for me, part in enumerate(parts)]
    sent: list[Sent] = []
    who, move = plan.order[0], holders[plan.order[0]].first()
    while move is not None:
        pieces = pack_baton(move.baton, plan.agents)
        sent.append(
            Sent(who, move.receiver, pack_frame(Kind.BATON, plan.run_bytes, plan.epoch, len(sent) + 1, *pieces))
        )
        who, move = move.receiver, holders[move.receiver].act(move.baton)
    return sent


def packets_of(sent: Sequence[Sent], most: int = 1400) -> list[bytes]:
    """A connection for each pair that speaks, made anew for each direction: what is said there, packet by packet."""
    ways: dict[tuple[int, int], list[bytes]] = {}
    for one in sent:
        ways.setdefault((one.sender, one.receiver), []).append(one.frame)
    return [
        packet
        for (sender, receiver), frames in ways.items()
        for packet in segments(Way(5000 + sender, 5000 + receiver), grpc_stream(frames, sender < receiver), most=most)
    ]
