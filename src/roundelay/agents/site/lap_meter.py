"""The privacy meter of sealed laps: what is proven, in words, and the attacks on the words that this site received and sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.protocol.asking import Answered, Asking
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site.status import CURVATURE, GRADIENT, SLOPE, MeterReading, PrivacyStatus, proven_in_words
from roundelay.algorithms.sealed.questions import asked_in, numbers_asked, numbers_told
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.random import Words
from roundelay.masks import PairSecrets, my_seal, seal_with
from roundelay.privacy.attacks.lap_sums import LapAttack, quadratic_in, told_in
from roundelay.privacy.public import Public
from roundelay.registry import registered
from roundelay.transcripts import LapPart, LapParts

# So many laps are looked at.
MOST_LAPS = 40


def measure_laps(member: Holder, rows: list[Passage], secrets: PairSecrets) -> PrivacyStatus:
    """Take from this site's own words the masks that its two neighbours can lift, and hold the rest against its answers.

    A reading above 1, the error of a guess without any message, is shown as 1. The neighbours know the words, and so from a
    reading to more digits they would know the size of the answer: the meter itself must not tell it.
    """
    asking, plan = member.asking, member.plan
    assert asking is not None
    answered, sentence = len(asking.held.answered), proven_in_words(plan)
    partners = neighbours_of(plan, member.me)
    laps: list[LapPart] = []
    truth: list[Vector] = []
    chains = list(asking.chains())
    for one, added in added_words(rows, asking):
        about = chains[one.number]
        grid, count, turn = (
            asking.algorithm.grid,
            numbers_asked(asked_in(one.kind), plan.dim),
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
        return PrivacyStatus(answered, (), sentence)
    others = plan.agents - len(partners) - 1
    parts, public = LapParts(member.me, tuple(laps), others + 1, others), Public(plan.algorithm, plan.agents, plan.dim)
    truths = dict(_quantities(parts, truth, asking))
    best: dict[str, MeterReading] = {}
    for name, attack in registered(LapAttack).items():
        try:
            estimates = _quantities(parts, attack(parts, public).answers, asking)
        except ValueError:
            continue  # not made for what the neighbours hold
        for what, estimate in estimates:
            if what in truths and np.linalg.norm(truths[what]) > 0.0:
                error = _error(estimate, truths[what])
                if what not in best or error < best[what].error:
                    best[what] = MeterReading(what, error, 1.0, name)
    return PrivacyStatus(answered, tuple(best.values()), sentence)


def neighbours_of(plan: RingPlan, me: int) -> list[int]:
    """Those who hand over to a member, and those it hands over to."""
    order = plan.order
    places = [place for place, member in enumerate(order) if member == me]
    return sorted({order[(place + step) % len(order)] for place in places for step in (-1, 1)} - {me})


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
        if row.sent is None or one.told is None or (row.received is None and not starts):
            continue  # too long to be kept
        told, grid = numbers_told(one.kind, plan.dim), asking.algorithm.grid
        left = np.frombuffer(row.sent, np.uint64)[told:]
        if not len(left):
            continue
        entered = np.zeros_like(left) if starts else np.frombuffer(row.received or b"", np.uint64)[told:]
        yield one, grid.add(left, grid.negative(entered))


def _quantities(
    parts: LapParts, answers: Sequence[Vector | None], asking: Asking
) -> Iterator[tuple[str, Matrix | Vector]]:
    """What the answers say: the last gradient, the Hessian, and of a quadratic function the slope."""
    dim = asking.plan.dim
    told = list(told_in(parts.laps, answers, dim, asking.start()))
    gradients = [one.gradient for one in told if one.gradient is not None]
    if gradients:
        yield GRADIENT, gradients[-1]
    hessian, slope = quadratic_in(iter(told), dim)
    if hessian is not None:
        yield CURVATURE, hessian
    if slope is not None and asking.holder.problem.is_quadratic:
        yield SLOPE, slope


def _error(estimate: Matrix | Vector, truth: Matrix | Vector) -> float:
    """Relative to the truth, and at most that of a guess."""
    error = float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))
    return min(error, 1.0) if np.isfinite(error) else 1.0
