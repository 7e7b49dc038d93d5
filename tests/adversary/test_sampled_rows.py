"""Masks at the start hide one vector, the gradient there. A method that uses a few rows at a time gives it away, and the rows with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.agreement.policy import OwnData, Policy, breaches
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.baton import Baton, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.site.verdict import verdict
from roundelay.kernels import Matrix, Vector
from roundelay.masks import SeededPairs
from tests.agents.world import ring_plan

DIM, ROWS, VISITS, ME = 3, 12, 150, 1
RHO, TAU, GAMMA = 10.0, 10.0, 1.0


def sampled(batch: int) -> RingPlan:
    """One that goes on from an earlier model, so that the shares are summed under masks."""
    plan = ring_plan(list("abcde"), rl.SIADMM(RHO, TAU, GAMMA, batch), DIM, Stopping(None, 5 * VISITS))
    return replace(plan, warm=True)


def seen(plan: RingPlan, rows: Matrix, targets: Vector, warm: Vector) -> tuple[Matrix, Matrix, Vector]:
    """The token before and after each visit of a site, and what the masks hide: its y at the start."""
    holder = Holder(plan, ME, Known(rl.LeastSquares([rows], [targets])), 5, SeededPairs(3), lambda told: warm)
    holder._begin()
    hidden = holder.held.y[ME].copy()
    rng = np.random.default_rng(2)
    received = warm + rng.normal(size=(VISITS, DIM))
    hops = ME + plan.agents * np.arange(VISITS)
    sent = []
    for hop, token in zip(hops.tolist(), received, strict=True):
        after, _ = holder.visit(Baton(Phase.ITERATE, hop, 0, 0, 0, 0, token))
        sent.append(np.array(after.numbers))
    return received, np.array(sent), hidden


def samples(received: Matrix, sent: Matrix, warm: Vector, agents: int) -> Matrix:
    """The gradient of each visit's rows, but for one vector in all of them: the update, solved for it."""
    x, y, before, found = warm, np.zeros(DIM), warm, []
    for k, (z, after) in enumerate(zip(received, sent, strict=True), 1):
        tau, gamma = TAU * np.sqrt(k), GAMMA / np.sqrt(k)
        share = before + agents * (after - z)
        new = (share + y / RHO + gamma * z) / (1.0 + gamma)
        found.append(RHO * z + y + tau * x - (RHO + tau) * new)
        x, y, before = new, y + RHO * gamma * (z - new), share
    return np.array(found)


def lines(points: Matrix) -> list[tuple[Vector, Vector]]:
    """A point and the direction of each line on which three of the points lie: the samples of one row do."""
    found: list[tuple[Vector, Vector]] = []
    for point in points:
        ways = points - point
        ways = ways[np.linalg.norm(ways, axis=1) > 1e-6]
        ways /= np.linalg.norm(ways, axis=1)[:, None]
        alike = np.abs(np.abs(ways @ ways.T) - 1.0) < 1e-12
        best = int(alike.sum(axis=1).argmax())
        if alike[best].sum() > 2:
            found.append((point, ways[best]))
    return found


def crossing(found: list[tuple[Vector, Vector]]) -> Vector:
    """Where all lines meet."""
    across = [np.eye(DIM) - np.outer(way, way) for _, way in found]
    return np.linalg.solve(sum(across), sum(one @ point for one, (point, _) in zip(across, found, strict=True)))


def test_single_rows_are_read_off_the_token_and_the_policy_refuses_that() -> None:
    rng = np.random.default_rng(0)
    rows, targets, warm = rng.normal(size=(ROWS, DIM)), rng.normal(size=ROWS), rng.normal(size=DIM)
    plan = sampled(1)
    received, sent, hidden = seen(plan, rows, targets, warm)
    found = lines(samples(received, sent, warm, plan.agents))
    assert np.allclose(-crossing(found), hidden, rtol=1e-6)  # the gradient that was to be hidden
    directions = rows / np.linalg.norm(rows, axis=1)[:, None]
    best = np.abs(np.array([way for _, way in found]) @ directions.T)
    assert (best.max(axis=0) > 1.0 - 1e-9).all()  # every row of the site, up to its length
    for batch in (1, 10):
        (refused,) = breaches(Policy(), sampled(batch), ME, OwnData(1000, 1.0))
        assert "least_cover" in refused
        learned = " ".join(verdict(sampled(batch), ME).learned)
        assert "can work out single rows" in learned and "Nothing is hidden" in learned
    assert not breaches(Policy(), replace(plan, algorithm=rl.IADMM(RHO)), ME, OwnData(1000, 1.0))
