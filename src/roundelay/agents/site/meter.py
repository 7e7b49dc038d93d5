"""The privacy meter: what the two neighbours together could infer of this site, by its own measurement."""

from __future__ import annotations

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.protocol.baton import Baton, Phase
from roundelay.agents.protocol.beginning import grid_of
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site.lap_meter import measure_laps
from roundelay.agents.site.status import CURVATURE, GRADIENT, MOST_UNKNOWNS, SLOPE, MeterReading, PrivacyStatus
from roundelay.kernels import Matrix, Vector
from roundelay.masks import PairSecrets
from roundelay.privacy import Public
from roundelay.privacy.attacks import Attack, Recovered
from roundelay.problems import OwnProblem
from roundelay.registry import registered
from roundelay.transcripts import Visits

TOKENS = (Phase.ITERATE, Phase.FROZEN, Phase.DONE)


def most_visits(dim: int) -> int:
    """So many visits are looked at: several times what the equations need; more tell no more and take longer."""
    return 4 * (dim + 5)


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
        hops.append(row.hop)
        received.append(_received(row, plan))
        sent.append(np.frombuffer(row.sent))
        if len(hops) == most_visits(plan.dim):
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


def measure(member: Holder, rows: list[Passage], own_y: Vector, secrets: PairSecrets) -> PrivacyStatus:
    """Run the attacks on this agent's own visits, and hold what they find against the truth, which it knows.

    `own_y` is its y now. In the first epoch its y after the visits that are looked at is found by making them again. `secrets`
    are the member's, in an object of their own: the meter draws masks again while the agent may be drawing others.
    """
    plan = member.plan
    if member.asking is not None:
        return measure_laps(member, rows, secrets)
    why = _cannot(plan)
    if why:
        return PrivacyStatus(0, (), why)
    visits = visits_of(rows, plan, member.me)
    if len(visits) < 3:
        return PrivacyStatus(len(visits), (), "There have been too few visits to tell.")
    public = Public(plan.algorithm, plan.agents, plan.dim)
    truth = _own_y(member, visits) if plan.epoch == 0 else (own_y if len(visits) < most_visits(plan.dim) else None)
    readings: list[MeterReading] = []
    for name, attack in registered(Attack).items():
        try:
            found = attack(visits, public)
        except (ValueError, np.linalg.LinAlgError):
            continue  # not made for this method, or for so few visits
        readings += _against_truth(name, found, member.problem, truth)
    best = _best(readings)
    return PrivacyStatus(len(visits), best, _sentence(best))


def _own_y(member: Holder, visits: Visits) -> Vector:
    """What this agent's y was after these visits: the update itself, made again from its own start."""
    again = Holder(member.plan, member.me, member.local, member.seed, member.secrets, member.warm)
    again.held.told = member.held.told
    for hop, received in zip(visits.hop.tolist(), visits.received, strict=True):
        again.visit(Baton(Phase.ITERATE, hop, 0, 0, 0, 0, received))
    return again.held.y[member.me]


def worst_error(status: PrivacyStatus) -> float:
    """The smallest relative error of any quantity: 0 where something is known exactly."""
    return min((leak.error for leak in status.leaks), default=float("inf"))


def _cannot(plan: RingPlan) -> str:
    if getattr(plan.method, "facts", None) is None or not plan.on_cycle:
        return "The meter knows no attack on this method."
    if plan.dim > MOST_UNKNOWNS:
        return (
            f"The meter is for up to {MOST_UNKNOWNS} unknowns; this fit has {plan.dim}. Use roundelay audit afterwards."
        )
    return ""


def _against_truth(name: str, found: Recovered, problem: OwnProblem, y: Vector | None) -> list[MeterReading]:
    """Relative errors; a guess of 0, which needs no message, has the error 1."""
    quantities: list[tuple[str, Matrix | Vector | None, Matrix | Vector]] = []
    if y is not None:
        quantities.append((GRADIENT, found.y[-1], y))
    if problem.is_quadratic:
        origin = np.zeros(problem.dim)
        quantities += [
            (CURVATURE, found.H, problem.hessian(0, origin)),
            (SLOPE, found.g, problem.gradient(0, origin)),
        ]
    return [
        MeterReading(what, float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth)), 1.0, name)
        for what, estimate, truth in quantities
        if estimate is not None and np.isfinite(estimate).all() and np.linalg.norm(truth) > 0.0
    ]


def _best(readings: list[MeterReading]) -> tuple[MeterReading, ...]:
    best: dict[str, MeterReading] = {}
    for one in readings:
        if one.quantity not in best or one.error < best[one.quantity].error:
            best[one.quantity] = one
    return tuple(best.values())


def _sentence(readings: tuple[MeterReading, ...]) -> str:
    if not readings:
        return "None of the meter's attacks applies to this method."
    least = min(readings, key=lambda one: one.error)
    if least.error < 0.01:
        return f"Your two neighbours together can know {least.quantity} to {least.error:.1g} of its size."
    if least.error < 0.5:
        return f"Your two neighbours together can know {least.quantity} roughly, to {least.error:.0%} of its size."
    return "What your two neighbours can infer of your data is no better than a guess."
