"""Rings that fit a regression, in one process: real holders, their rows drawn or given, and the same rows pooled for comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import roundelay as rl
from roundelay.agents.agreement.plan import Member as Site, RingPlan, Stopping, Task
from roundelay.agents.data.regressing import Outcome, RegressionFit, outcome_of
from roundelay.agents.protocol.baton import Baton, Reason
from roundelay.agents.protocol.holder import HandOver, Holder
from roundelay.masks import SeededPairs
from roundelay.regression.pooled import columns_of, rows_of
from roundelay.regression.regression import Regression
from tests.agents.world import RUN

Frames = Mapping[str, pd.DataFrame]
Meddle = Callable[[Baton], Baton]
USUAL = Stopping(1e-11)
BY_ITSELF = rl.SealedLaps(wide=True)


def regression_of(frames: Frames, formula: str, family: str = "gaussian", **planned: Any) -> Regression:
    """A regression over the columns of these frames."""
    columns = columns_of(list(frames.values()), formula, {}, str(planned.get("by", "")))
    return Regression(formula, columns, family, **planned)


def plan_of(
    names: tuple[str, ...], regression: Regression, stopping: Stopping = USUAL, algorithm: rl.SealedLaps = BY_ITSELF
) -> RingPlan:
    """A ring of these sites."""
    agents = len(names)
    links = {(min(i, (i + 1) % agents), max(i, (i + 1) % agents)) for i in range(agents)}
    members = tuple(Site(name, "", "127.0.0.1:1") for name in names)
    task = Task("regression", missing="drop", regression=regression)
    return RingPlan(RUN, 0, members, tuple(range(agents)), tuple(sorted(links)), algorithm, task, stopping)


def holders(
    frames: Frames,
    regression: Regression,
    stopping: Stopping = USUAL,
    algorithm: rl.SealedLaps = BY_ITSELF,
    least_carriers: int = 1,
) -> list[Holder]:
    """The members of the ring, before anything was sent."""
    plan = plan_of(tuple(frames), regression, stopping, algorithm)
    own = [RegressionFit(plan.task, rows_of(regression, frame, name, "drop")) for name, frame in frames.items()]
    return [Holder(plan, me, one, 1, SeededPairs(1), least_carriers=least_carriers) for me, one in enumerate(own)]


def as_it_is(baton: Baton) -> Baton:
    """Nothing is meddled with."""
    return baton


def hand_overs(ring: list[Holder], meddle: Meddle = as_it_is) -> Iterator[HandOver]:
    """Every hand-over, checked by its receiver before it is worked on; what the first member sends may be meddled with."""
    sender, move = 0, ring[0].first()
    while move is not None:
        if sender == 0:
            move = move._replace(baton=meddle(move.baton))
        yield move
        ring[move.receiver].check(move.baton, None)
        sender, move = move.receiver, ring[move.receiver].act(move.baton)


def outcome_at(member: Holder) -> Outcome:
    """What a member makes of what it was told."""
    held, asking = member.held, member.asking
    assert held.estimate is not None and asking is not None and member.plan.task.regression is not None
    chosen = getattr(asking.found(), "chosen", None) if asking.own_sums.folds else None
    return outcome_of(
        member.plan.task.regression, held.told, asking.seen, held.estimate, tuple(one.name for one in member.plan.members),
        len(asking.held.answered), held.reason == Reason.CONTENT, chosen,
    )  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """People at several sites: their age, sex and dose, an outcome of three kinds, and how long they lived."""

    sites: int = 4
    rows: int = 60
    seed: int = 0

    def frames(self) -> dict[str, pd.DataFrame]:
        """One frame a site."""
        rng = np.random.default_rng(self.seed)
        found = {}
        for number in range(self.sites):
            count = self.rows + 7 * number
            age, dose = rng.normal(50.0 + number, 10.0, count), rng.gamma(2.0, 1.0, count)
            sex = rng.choice(["f", "m"], count)
            eta = 0.05 * (age - 50.0) + 0.6 * (sex == "m") - 0.3 * dose
            time = rng.exponential(np.exp(-0.5 * eta))
            limit = rng.uniform(0.2, 4.0, count)
            found[f"site{number}"] = pd.DataFrame(
                {
                    "age": age, "dose": dose, "sex": sex, "length": 3.0 + eta + rng.normal(size=count),
                    "ill": (rng.random(count) < 1.0 / (1.0 + np.exp(-eta))).astype(float), "visits": rng.poisson(np.exp(0.4 * eta)).astype(float),
                    "grade": rng.choice(["low", "middle", "high"], count, p=[0.3, 0.4, 0.3]),
                    "time": np.minimum(time, limit) + 1e-3, "died": (time <= limit).astype(float),
                }
            )  # fmt: skip
        return found
