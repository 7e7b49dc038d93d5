"""Rings of sealed laps that are killed and whose links are bad, against the same ring where nothing happens."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.data.models import load_model
from roundelay.agents.data.objectives import Known
from roundelay.agents.links import agent_loop
from roundelay.agents.protocol.asking import ENDING, Asking
from roundelay.agents.protocol.baton import Baton, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.site.taking_part import Site
from roundelay.masks import SeededPairs
from tests.agents.bad_links import Length, Tried
from tests.agents.chaos import SLOW_SITE, Chaos, Kills, Size
from tests.agents.likeness import check_every_hand_over_once
from tests.agents.processes import ProcessRing, make_ring, own_functions

# L-BFGS, since it is a library's and runs in a thread: what is hardest to bring back to where it was.
ALGORITHM = rl.SealedLaps(rl.LBFGS(), wide=True)


def ill_conditioned(agents: int, seed: int) -> rl.LeastSquares:
    """A problem over which L-BFGS takes hundreds of laps."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(agents, 30, 12)) * np.logspace(0, -3, 12)
    return rl.LeastSquares(list(features), list(rng.normal(size=(agents, 30))))


def slow_answers(site: Site, number: int) -> None:
    """One site takes long over its answers, so that it acknowledges before it is done."""
    if number == SLOW_SITE:
        answer = Asking._answer

        def slowly(self: Asking, baton: Baton) -> Baton:
            time.sleep(1.6 * agent_loop.LONG)
            return answer(self, baton)

        Asking._answer = slowly  # type: ignore[method-assign]


def undisturbed(plan: RingPlan, functions: list[Any], seed: int) -> list[tuple[int, Baton]]:
    """Every hand-over of a ring in one place: the sender and the baton."""
    secrets = SeededPairs(seed)
    holders = [Holder(plan, me, Known(function), seed, secrets) for me, function in enumerate(functions)]
    sender, move, sent = plan.order[0], holders[plan.order[0]].first(), []
    while move is not None:
        sent.append((sender, move.baton))
        sender, move = move.receiver, holders[move.receiver].act(move.baton)
    return sent


def check_same_words(ring: ProcessRing, seed: int) -> None:
    """What crossed the links, and how it ended, bit for bit; so no mask was ever used for other words."""
    expected = undisturbed(ring.plan, list(ring.functions), seed)
    found: dict[int, tuple[int, int, bytes | None]] = {}
    for number in range(ring.plan.agents):
        for row in ring.visits(number):
            if row.sent_k >= 0:
                assert row.sent_k not in found, "two different senders of one hand-over"
                found[row.sent_k] = (number, row.sent_phase, row.sent)
    assert sorted(found) == list(range(1, len(expected) + 1))
    for k, (sender, baton) in enumerate(expected, start=1):
        assert found[k][:2] == (sender, baton.phase), f"hand-over {k}"
        # The frozen batons have all totals, and are not kept where they are long; their point is in the models.
        if baton.phase != Phase.FROZEN or found[k][2] is not None:
            assert found[k][2] == np.ascontiguousarray(baton.numbers).tobytes(), f"hand-over {k}"
    assert sum(baton.phase == Phase.ASK for _, baton in expected) > len(expected) / 2
    check_every_hand_over_once(ring)
    models = [load_model(ring.site_folder(number) / "model.json") for number in range(ring.plan.agents)]
    point = expected[-1][1].numbers[ENDING : ENDING + ring.plan.dim]
    for stored in models:
        assert [value for _, value in stored.model.coefficients] == point.tolist()
        assert stored.about == models[0].about and not stored.about.doubt


def sealed_ring(folder: Path, length: Length | Size, seed: int, **more: Any) -> ProcessRing:
    stopping = Stopping(1e-15, questions=length.hops // length.agents)
    functions = own_functions(ill_conditioned(length.agents, seed))
    return make_ring(folder, functions, ALGORITHM, stopping, seed=seed, **more)


SEALED = Tried(sealed_ring, lambda ring, length, seed: check_same_words(ring, seed))


def killed(folder: Path, size: Size, seed: int) -> Kills:
    """Kill and restart until the ring is done."""
    ring = sealed_ring(folder, size, seed, wrap=slow_answers)
    kills = Chaos(ring, size, random.Random(seed)).run()
    check_same_words(ring, seed)
    return kills
