"""The privacy meter: what the two neighbours together could infer of this site, by its own measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.protocol.baton import Baton, Phase
from roundelay.agents.protocol.beginning import begin, grid_of, opens_with_a_sum
from roundelay.agents.protocol.holder import HOPS_OF_AN_EPOCH, Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site.assessment import are_all_others, assess, neighbours_in_words, unmeasured_because
from roundelay.agents.site.lap_meter import lap_evidence
from roundelay.agents.site.meter_process import Found, attack_here
from roundelay.agents.site.own_attacks import Evidence, TokenEvidence, most_visits
from roundelay.agents.site.status import (
    CURVATURE,
    GRADIENT,
    MOST_KEPT,
    SLOPE,
    MeterReading,
    PrivacyStatus,
    proven_in_words,
)
from roundelay.algorithms.parts.starts import OneAgent
from roundelay.kernels import Matrix, Vector
from roundelay.masks import PairSecrets
from roundelay.privacy import Public
from roundelay.privacy.attacks.setting import admm
from roundelay.transcripts import Visits

TOKENS = (Phase.ITERATE, Phase.FROZEN)
# An error that is larger is no better than a guess.
ROUGHLY = 0.5


def visits_of(rows: list[Passage], plan: RingPlan, me: int) -> Visits:
    """The visits of this epoch as the neighbours saw them: the token that they handed over, and what they got back."""
    hops: list[int] = []
    received: list[Vector] = []
    sent: list[Vector] = []
    for row in rows:
        if (
            row.epoch != plan.epoch
            or row.sent is None
            or row.sent_phase not in TOKENS
            or (hops and row.hop == hops[-1])
        ):
            continue  # a lap besides the hops, or the token was only passed on
        if row.phase in (Phase.FROZEN, Phase.DONE):
            continue  # nothing was done but to pass it on
        if plan.order.index(me) != (row.hop - plan.epoch * HOPS_OF_AN_EPOCH) % len(plan.order):
            continue  # it was frozen where it was only passed on
        hops.append(row.hop)
        received.append(_received(row, plan))
        sent.append(np.frombuffer(row.sent))
        if len(hops) == MOST_KEPT:
            break
    shape = (len(hops), plan.dim)
    return Visits(
        me, np.array(hops, np.int64), np.array(received).reshape(shape), np.array(sent).reshape(shape),
        np.ones(len(hops), np.int64), complete=plan.epoch == 0,
    )  # fmt: skip


def _received(row: Passage, plan: RingPlan) -> Vector:
    """The token before the visit; the first agent makes it from the sum, or starts it at 0."""
    if row.phase == Phase.ITERATE:
        return np.frombuffer(row.received or b"")
    if row.phase == Phase.SUM and row.received is not None:
        return grid_of(plan.method).decode(np.frombuffer(row.received, np.uint64)) / plan.agents
    return np.zeros(plan.dim)


def measure(
    member: Holder,
    rows: list[Passage],
    secrets: PairSecrets,
    attack: Callable[[Evidence], Found] = attack_here,
) -> PrivacyStatus:
    """Have the attacks run on this agent's own visits, and hold what they find against the truth, which it knows.

    `secrets` are the member's, in an object of their own: the meter draws masks again while the agent may be drawing others.
    """
    plan = member.plan
    if member.asking is not None:
        answered, proven, evidence = (
            len(member.asking.held.answered),
            proven_in_words(plan),
            lap_evidence(member, rows, secrets),
        )
        found = Found(()) if evidence is None else attack(evidence)
        # What is proven needs no measurement.
        return PrivacyStatus(answered, _best(found.readings), f"{proven} {found.trouble}".rstrip())
    if unmeasured_because(plan):
        return PrivacyStatus(member.held.visits, (), assess(plan, member.me).sentence, unmeasured=True)
    visits = visits_of(rows, plan, member.me)
    if len(visits) < 3:
        return PrivacyStatus(len(visits), (), "There have been too few visits to tell.")
    found = attack(_token_evidence(member, visits, secrets))
    best = _best(found.readings)
    trouble = found.trouble
    if len(visits) == MOST_KEPT:
        trouble = trouble or f"The privacy meter looks at the first {MOST_KEPT:,} visits, and measures no more."
    if not best or trouble:
        more = trouble or "None of the meter's attacks applies to this method."
        so_far = _sentence(best, plan, member.me) if any(one.error < ROUGHLY for one in best) else ""
        words = " ".join(filter(None, (so_far, more, assess(plan, member.me).sentence)))
        return PrivacyStatus(len(visits), best, words, unmeasured=True)
    return PrivacyStatus(len(visits), best, _sentence(best, plan, member.me))


def _token_evidence(member: Holder, visits: Visits, secrets: PairSecrets) -> TokenEvidence:
    """What the neighbours hold, and what there is to know.

    Where they are all the other members they know this one's share as well: the sum of all is in the token.
    """
    plan, problem, me = member.plan, member.problem, member.me
    public = Public(plan.algorithm, plan.agents, plan.dim)
    _, _, share = begin(plan.method, problem, OneAgent(me, plan.agents, member.seed, secrets), None)
    if opens_with_a_sum(plan.method, plan.epoch, plan.warm):
        grid = grid_of(plan.method)
        share = grid.decode(grid.encode(share, plan.agents, "The largest share of the token"))
    truth: dict[str, Matrix | Vector] = {GRADIENT: _own_y(member, visits.first(most_visits(plan.dim)), secrets)}
    origin = np.zeros(plan.dim)
    if problem.is_quadratic:
        truth[CURVATURE] = problem.hessian(0, origin)
    if (
        problem.is_quadratic or admm(public).facts.start.share == "sealed"
    ):  # of any other function the slope at 0 is what that start hides
        truth[SLOPE] = problem.gradients(origin[None])[0]
    if are_all_others(plan, me):
        visits = replace(visits, share=share)
    return TokenEvidence(visits, public, truth)


def _own_y(member: Holder, visits: Visits, secrets: PairSecrets) -> Vector:
    """What this agent's y was after these visits: the update itself, made again from its own start."""
    again = Holder(member.plan, member.me, member.local, member.seed, secrets, member.warm)
    again.held.told = member.held.told
    for hop, received in zip(visits.hop.tolist(), visits.received, strict=True):
        again.visit(Baton(Phase.ITERATE, hop, 0, 0, 0, 0, received))
    return again.held.y[member.me]


def worst_error(status: PrivacyStatus) -> float:
    """The smallest relative error of any quantity: 0 where something is known exactly."""
    return min((leak.error for leak in status.leaks), default=float("inf"))


def _best(readings: tuple[MeterReading, ...]) -> tuple[MeterReading, ...]:
    best: dict[str, MeterReading] = {}
    for one in readings:
        if one.quantity not in best or one.error < best[one.quantity].error:
            best[one.quantity] = one
    return tuple(best.values())


def _sentence(readings: tuple[MeterReading, ...], plan: RingPlan, me: int) -> str:
    least, who = min(readings, key=lambda one: one.error), neighbours_in_words(plan, me)
    if least.error < 0.01:
        return f"{who} can know {least.quantity} to {least.error:.1g} of its size."
    if least.error < ROUGHLY:
        return f"{who} can know {least.quantity} roughly, to {least.error:.0%} of its size."
    return f"What {who[0].lower()}{who[1:]} can infer of your data is no better than a guess."
