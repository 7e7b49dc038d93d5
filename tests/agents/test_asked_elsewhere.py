"""No question is answered again at a point at which this member has answered with other members."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.asking import Asking
from roundelay.agents.protocol.baton import Baton, BatonError, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.station import Reached, Station, nothing_happens
from roundelay.algorithms.sealed.questions import POINT, Asked, Question, asked_in
from roundelay.masks import SeededPairs
from tests.agents.test_schedules import change
from tests.agents.world import MemoryJournal, World, ring_plan

DIM, STAY, GO = 3, ("site0", "site1", "site2"), ["site3", "site4"]
OPTIMISERS = (rl.NormalEquations(), rl.ConjugateGradients(), rl.Newton(), rl.LBFGS())
WARM = np.array([0.5, -0.25, 2.0])


@dataclass
class WarmWorld(World):
    """All sites start from a model of an earlier run."""

    def _station(self, name: str, reached: Reached = nothing_happens) -> Station:
        plan = replace(self.plan_of(name), warm=True)
        secrets = SeededPairs(self.seed + 7919 * plan.epoch)
        holder = Holder(plan, plan.number_of(name), Known(self.function(name)), 1, secrets, lambda told: WARM)
        return Station(holder, self.journals[name], reached)  # type: ignore[arg-type]


def started(algorithm: object, kind: type[World] = World) -> World:
    world = kind(1, DIM, np.random.default_rng(1), 0.0)
    names = [*STAY, *GO]
    world.plans[0] = ring_plan(names, algorithm, DIM, Stopping(1e-9))
    for name in names:
        world.epochs[name] = 0
        world.journals[name] = MemoryJournal()
    for name in names:
        world.start(name)
    return world


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The points at which site 1 answers, as it answers."""
    points: list[np.ndarray] = []
    words = Asking._words

    def watched(self: Asking, number: int, question: Question) -> object:
        made = words(self, number, question)
        if self.plan.members[self.me].name == "site1" and question.asked != Asked.NOTHING:
            points.append(np.array(self.place.point))
        return made

    monkeypatch.setattr(Asking, "_words", watched)
    return points


def question_at(station: Station, point: np.ndarray) -> Baton:
    """The first question of the epoch, at a point that a dishonest first member chooses."""
    layout, asking = station.holder.layout, station.holder.asking
    assert asking is not None
    kind = next(kind for kind in layout.questions if kind & POINT and asked_in(kind) != Asked.NOTHING)
    words = np.zeros(layout.questions[kind] - DIM, np.uint64)
    return Baton(Phase.ASK, station.holder.first_hop, 0, 1, kind, 0, np.concatenate([point.view(np.uint64), words]))


@pytest.mark.parametrize("kind", [World, WarmWorld])
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda one: type(one).__name__)
def test_every_point_of_the_epoch_before_is_refused(
    optimiser: object, kind: type[World], asked: list[np.ndarray]
) -> None:
    """Whatever was told there, a point or only a step along a direction, and from whatever start; also after a restart."""
    world = started(rl.SealedLaps(optimiser, wide=True), kind)  # type: ignore[arg-type]
    world.run()
    points = list(asked)
    assert len(points) >= 2 and np.array_equal(points[0], WARM if kind is WarmWorld else np.zeros(DIM))
    change(world, GO, [])
    world.epochs["site1"] = 1
    for _ in range(2):  # as it moves on, and as it comes back
        station = world._station("site1")
        asking = station.holder.asking
        assert asking is not None
        for point in points:
            with pytest.raises(BatonError, match="at a point at which this member has answered in another epoch"):
                asking.check(question_at(station, point))
        asking.check(question_at(station, points[-1] + 1e-3))


def test_a_first_member_that_asks_there_nevertheless_gets_no_answer(
    asked: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = started(rl.SealedLaps(rl.Newton(), wide=True))
    world.run()
    target, before = asked[-1], len(asked)
    change(world, GO, [])
    monkeypatch.setattr(Asking, "_start_of_epoch", lambda self: target)
    monkeypatch.setattr(Asking, "_is_elsewhere", _honest_but_for_the_first)
    for name in STAY:
        world.adopt(name, 1)
    with pytest.raises(BatonError, match="at a point at which this member has answered in another epoch"):
        world.run()
    assert len(asked) == before


_looked = Asking._is_elsewhere


def _honest_but_for_the_first(self: Asking, point: np.ndarray) -> bool:
    return self.me != 0 and _looked(self, point)


@pytest.mark.parametrize(
    "optimiser", [rl.NormalEquations(), rl.Newton(), rl.LBFGS()], ids=lambda one: type(one).__name__
)
def test_a_model_of_zeros_before_and_after_stalls_nothing(optimiser: object) -> None:
    """Then the best point is one that was asked with others: it is asked beside it, by the last digit."""
    world = started(rl.SealedLaps(optimiser, rl.L1(1e6), wide=True))  # type: ignore[arg-type]
    world.run()
    change(world, GO, [])
    for name in STAY:
        world.adopt(name, 1)
    world.run()
    for name in STAY:
        holder = world.up[name].holder
        assert holder.held.estimate is not None and np.abs(holder.held.estimate).max() < 1e-300
        assert holder.asking is not None and not holder.asking.held.doubt
