"""Sums and epochs of real rows: who was told something else gets no sum, and a change of members is a fit of who is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.epochs import plan_without
from roundelay.agents.agreement.plan import Column, Promise, RingPlan, Stopping, Task
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.protocol.baton import BatonError, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.masks import SeededPairs
from tests.agents.hospitals import Hospitals
from tests.agents.test_private_ring import plan_of, rows_of, task_of
from tests.agents.world import ring_plan

TASK = Task("least_squares", (Column("age"), Column("bmi")), Column("outcome"))


def own_rows(me: int) -> OwnRows:
    draws = np.random.default_rng(me)
    features = draws.normal([50.0, 27.0], 1.0, size=(20 + me, 2))
    return OwnRows(features, features @ [1.0, -2.0] + draws.normal(size=20 + me))


def holders(plan: RingPlan) -> list[Holder]:
    return [Holder(plan, me, RowsFit(plan.task, own_rows(me)), 1, SeededPairs(1)) for me in range(plan.agents)]


@pytest.mark.parametrize("victim", [1, 2, 3])
def test_other_means_for_one_member_give_no_sum(victim: int) -> None:
    """Σ(x − M)² of one member for a large M would be n·M² − 2M·Σx: its rows and its sums."""
    plan = replace(ring_plan([f"site{me}" for me in range(4)], rl.SealedLaps(wide=True), 2, Stopping(1e-9)), task=TASK)
    ring = holders(plan)
    move = ring[0].first()
    with pytest.raises(BatonError, match="did not come out"):
        while move is not None:
            baton = move.baton
            if (baton.phase, baton.purpose, move.receiver) == (Phase.TELL, 0, victim):
                numbers = np.array(baton.numbers)
                numbers[2:] = 2.0**25 * numbers[1]
                there = ring[move.receiver].act(baton._replace(numbers=numbers))
                assert there is not None
                move = there._replace(baton=there.baton._replace(numbers=baton.numbers))
            else:
                move = ring[move.receiver].act(baton)


def test_no_point_makes_a_record_count_without_bound() -> None:
    """At 1.7e308 a product is inf − inf for some records; as a whole number that is −2⁶³ steps, beside which noise is nothing."""
    plan = plan_of(task_of("logistic"), 3)
    assert plan.noise is not None
    own = [RowsFit(plan.task, rows_of(plan.task, f"site{me}")) for me in range(3)]
    ring = [Holder(plan, me, part, 1, SeededPairs(1)) for me, part in enumerate(own)]
    point = np.array([1.7e308, -1.7e308, 1.7e308])
    for part in own:
        problem = part.problem(())
        steps = plan.noise.steps(problem, 0, 1, point)
        record = np.ldexp(np.sqrt(plan.noise.honest) / plan.noise.multiplier, 30) + 1.0
        assert np.abs(steps).max() <= record * len(problem.rows.targets)
    move = ring[0].first()
    assert move is not None
    for _ in range(3):
        move = ring[move.receiver].act(move.baton)
    numbers = np.concatenate([point.view(np.uint64), move.baton.numbers[3:]])
    with pytest.raises(BatonError, match="beyond all measure"):
        ring[1].check(move.baton._replace(numbers=numbers), None)


def test_bounds_bound() -> None:
    with pytest.raises(ValueError, match="bound nothing"):
        Promise(1.0, 1e-6, (1e308,), (1.7e308,))


def test_after_a_change_of_members_the_fit_is_that_of_who_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other rows, means and deviations are others; so is N, and the weight of a lasso with it."""
    hospitals = Hospitals(tmp_path, monkeypatch, ("Oslo", "Bergen", "Tromso", "Narvik", "Alta"))
    hospitals.tables["Alta"][:, 2] += 40.0
    hospitals.tables["Narvik"][:, 0] *= 3.0
    for lasso in (0.0, 0.1):
        regulariser = rl.L1(5 * lasso) if lasso else rl.NoRegulariser()
        ring = hospitals.accept(hospitals.plan(algorithm=rl.SealedLaps(regulariser=regulariser, wide=True)))
        hospitals.finish(ring)
        fewer = plan_without(ring.plan, ["Alta", "Narvik"], previous=ring.digest)
        after = hospitals.accept(hospitals.signed(fewer, "Oslo"), despite_difference=True)
        ended = hospitals.finish(after)
        table = np.concatenate([hospitals.tables[name] for name in ("Oslo", "Bergen", "Tromso")])
        features, target = table[:, :2], table[:, 2]
        mean, deviation = features.mean(axis=0), features.std(axis=0)
        scaled = (features - mean) / deviation
        found = np.array([value for _, value in ended["Oslo"].model.coefficients]) * deviation
        slope = scaled.T @ (scaled @ found - (target - target.mean())) / len(target)
        if lasso:
            np.testing.assert_allclose(slope[found != 0.0], -lasso * np.sign(found[found != 0.0]), atol=1e-9)
            assert (np.abs(slope) <= lasso + 1e-9).all()
        else:
            np.testing.assert_allclose(slope, 0.0, atol=1e-9)
        raw = found / deviation
        assert ended["Oslo"].model.intercept == pytest.approx(target.mean() - raw @ mean)
