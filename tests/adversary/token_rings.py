"""Rings of a token in one place: real members with real secrets of pairs, whose hand-overs are kept as a journal keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.data.objectives import Known, Local
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site.meter import measure
from roundelay.agents.site.status import PrivacyStatus
from roundelay.masks import AgreedPairs, PairSecrets, new_private_key, public_key_of
from roundelay.problems import OwnProblem


def secrets_of(agents: int) -> list[PairSecrets]:
    """As real members agree on them."""
    private = [new_private_key() for _ in range(agents)]
    public = tuple(map(public_key_of, private))
    return [AgreedPairs(me, key, public, "run") for me, key in enumerate(private)]


@dataclass(eq=False)
class TokenRing:
    """The members, and what each of them would have in its journal; they bring functions, or what is given as `parts`."""

    plan: RingPlan
    functions: Sequence[OwnProblem] = ()
    parts: Sequence[Local] = ()
    secrets: list[PairSecrets] = field(init=False)
    members: list[Holder] = field(init=False)
    rows: list[list[Passage]] = field(init=False)

    def __post_init__(self) -> None:
        self.secrets = secrets_of(self.plan.agents)
        brought = self.parts or [Known(function) for function in self.functions]
        self.members = [Holder(self.plan, me, part, 100 + me, self.secrets[me]) for me, part in enumerate(brought)]
        self.rows = [[] for _ in self.members]

    def run(self) -> None:
        """From the first hand-over to the last."""
        at, taken = self.plan.order[0], None
        while (move := self.take(at, taken)) is not None:
            at, taken = move

    def take(self, me: int, baton: Baton | None) -> tuple[int, Baton] | None:
        """A member takes a baton; whom it hands what."""
        member = self.members[me]
        if baton is not None:
            member.check(baton, None)
        move = member.first() if baton is None else member.act(baton)
        sent, rows = None if move is None else move.baton, self.rows[me]
        phases = [-1 if one is None else int(one.phase) for one in (baton, sent)]
        numbers = [None if one is None else np.ascontiguousarray(one.numbers).tobytes() for one in (baton, sent)]
        rows.append(Passage(0, len(rows), len(rows) + 1, *phases, member.held.hop, 0, 0, 0, *numbers))
        return None if move is None else (move.receiver, move.baton)

    def measured(self, me: int) -> PrivacyStatus:
        """What a member's meter reads."""
        return measure(self.members[me], self.rows[me], self.secrets[me])


def errors(status: PrivacyStatus) -> dict[str, float]:
    """The readings by the letter of what they read: y, H or g."""
    return {reading.quantity[-2]: reading.error for reading in status.leaks}
