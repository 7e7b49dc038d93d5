"""The privacy meter of a site and the audit, side by side: they know the same attacks and find the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site.meter import measure, worst_error
from roundelay.agents.site.own_attacks import most_visits
from roundelay.masks import SeededPairs
from tests.agents.processes import own_functions
from tests.agents.world import ring_plan

PROBLEM = rl.paper_least_squares(4, samples=20, seed=5)
AGENT, SEED = 2, 1
# What the meter calls by words, and the audit too.
QUANTITIES = {"(y)": "multipliers y", "(H)": "Hessian H", "(g)": "slope g"}


def side_by_side(algorithm: Any) -> tuple[Any, rl.Audit]:
    """The meter's reading at a site, and the audit of the same run."""
    hops = PROBLEM.agents * most_visits(PROBLEM.dim)
    run = rl.simulate(
        algorithm, PROBLEM, rl.ring(PROBLEM.agents), hops, seed=SEED, transcript=True, progress=False, engine="python"
    )
    assert run.transcript is not None
    visits = run.transcript.seen_by(rl.Neighbours(AGENT)).visits_of(AGENT)
    rows = [
        Passage(0, k, k, Phase.ITERATE, Phase.ITERATE, int(hop), 1, 3, 0, received.tobytes(), sent.tobytes())
        for k, (hop, received, sent) in enumerate(zip(visits.hop, visits.received, visits.sent, strict=True))
    ]
    plan = ring_plan(["a", "b", "c", "d"], algorithm, PROBLEM.dim, Stopping(None, hops))
    member = Holder(plan, AGENT, Known(own_functions(PROBLEM)[AGENT]), SEED, SeededPairs(SEED))
    return measure(member, rows, SeededPairs(SEED)), rl.audit(run, "neighbours", AGENT)


METHODS = [
    rl.PIADMM1(gamma_is="vector"),
    rl.PIADMM1(gamma_is="vector", gamma_spread=0.3, start=rl.SealedStart()),
    rl.PIADMM1(),
    rl.PIADMM1(rho=30.0, first_order=True),
    rl.PIADMM2(),
    rl.IADMM(),
]


@pytest.mark.parametrize("algorithm", METHODS, ids=repr)
def test_the_meter_reads_what_the_best_attack_of_the_audit_finds(algorithm: Any) -> None:
    status, found = side_by_side(algorithm)
    best = {leak.quantity: leak.at_end for leak in found.worst}
    readings = {reading.quantity[-3:]: reading.error for reading in status.leaks}
    assert readings.keys() == QUANTITIES.keys()
    for short, quantity in QUANTITIES.items():
        assert np.isclose(readings[short], best[quantity], rtol=1e-6, atol=1e-13), quantity


def test_a_limit_fires_where_each_coordinate_has_its_own_gamma() -> None:
    """Under a sealed start y and g are hidden, and only the attack on a vector γ knows H so well."""
    status, _ = side_by_side(rl.PIADMM1(gamma_is="vector", start=rl.SealedStart()))
    assert worst_error(status) < 0.05
    assert min(status.leaks, key=lambda reading: reading.error).attack == "vector γ"
