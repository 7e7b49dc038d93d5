"""The privacy meter of sealed laps: what the neighbours hold of the words that this site received and sent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roundelay.agents.protocol.asking import Answered, Asking
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site.own_attacks import LapEvidence
from roundelay.algorithms.sealed.questions import OWN, asked_in
from roundelay.kernels import Vector
from roundelay.kernels.random import Words
from roundelay.masks import PairSecrets, my_seal, seal_with
from roundelay.privacy.public import Public
from roundelay.transcripts import LapPart, LapParts

# So many laps are looked at.
MOST_LAPS = 40


def lap_evidence(member: Holder, rows: list[Passage], secrets: PairSecrets) -> LapEvidence | None:
    """Take from this site's own words the masks that its neighbours can lift; None where no words are kept."""
    asking, plan = member.asking, member.plan
    assert asking is not None
    partners = sorted(plan.neighbours[member.me])
    laps: list[LapPart] = []
    truth: list[Vector] = []
    chains = list(asking.chains())
    for one, added in added_words(rows, asking):
        about = chains[one.number]
        grid, count, turn = (
            asking.algorithm.grid,
            asking.asked(one.kind),
            asking.turn_of(one.number),
        )
        lifted = grid.negative(seal_with(secrets, member.me, np.array(partners), count, turn, grid, about))
        opened = grid.negative(my_seal(secrets, member.me, plan.agents, count, turn, grid, about))
        assert one.told is not None
        laps.append(LapPart(one.kind, one.told, grid, grid.add(added, lifted), None))
        truth.append(grid.decode(grid.add(added, opened)))
        if len(laps) == MOST_LAPS:
            break
    if not laps:
        return None
    others = plan.agents - len(partners) - 1
    return LapEvidence(
        LapParts(member.me, tuple(laps), others + 1, others),
        Public(plan.algorithm, plan.agents, plan.dim),
        tuple(truth),
        asking.start(),
        member.problem.is_quadratic,
    )


def added_words(rows: list[Passage], asking: Asking) -> Iterator[tuple[Answered, Words]]:
    """What this member added in each lap that the journal has whole, with its question."""
    plan, first_hop, answered = asking.plan, asking.holder.first_hop, asking.held.answered
    starts, seen = plan.order[0] == asking.me, set()
    for row in rows:
        number = row.hop - first_hop - 1
        if row.sent_phase != Phase.ASK or row.epoch != plan.epoch or number in seen or not 0 <= number < len(answered):
            continue  # another lap, or one that meets this member again, where it only relays
        seen.add(number)
        one = answered[number]
        if asked_in(one.kind) in OWN:
            continue  # sums of which no attack takes anything
        if row.sent is None or one.told is None or (row.received is None and not starts):
            continue  # too long to be kept
        told, grid = asking.told_with(one.kind), asking.algorithm.grid
        left = np.frombuffer(row.sent, np.uint64)[told : -grid.words]  # without the count of members
        if not len(left):
            continue
        entered = np.zeros_like(left) if starts else np.frombuffer(row.received or b"", np.uint64)[told : -grid.words]
        yield one, grid.add(left, grid.negative(entered))
