"""A ring of processes and the simulator, side by side: equal to the last bit, or the first difference in words."""

from __future__ import annotations

from typing import Any

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.ledger import read_ledger
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.site.bookkeeping import lost_sums
from roundelay.engine.token_run import first_agent
from roundelay.transcripts.observers import crossed
from tests.agents.processes import ProcessRing


def simulated(algorithm: Any, problem: Any, network: rl.Network, hops: int, seed: int) -> rl.Run:
    """What the ring is compared with."""
    return rl.simulate(
        algorithm, problem, network, hops, seed=seed, engine="python", transcript=True, progress=False
    )  # fmt: skip


def first_of(algorithm: Any, network: rl.Network, seed: int) -> int:
    """Who has the token first in the simulator."""
    return first_agent(algorithm.parts().walk, network, seed)


def check_same(ring: ProcessRing, run: rl.Run) -> None:
    """States and transcript, bit for bit."""
    check_same_states(ring, run)
    check_same_transcript(ring, run)


def check_same_states(ring: ProcessRing, run: rl.Run) -> None:
    """x and y of every site, and the estimate, which all sites have alike."""
    for number, (x, y, _, estimate) in enumerate(ring.states()):
        assert np.array_equal(x, run.x[number]), f"x of site {number}"
        assert np.array_equal(y, run.y[number]), f"y of site {number}"
        assert np.array_equal(estimate, run.estimate), f"the estimate of site {number}"


def check_same_transcript(ring: ProcessRing, run: rl.Run) -> None:
    """What crossed the links: a walk that stays where it is sends nothing, and neither do the last two hops' ends."""
    assert run.transcript is not None
    expected, found = run.transcript, ring.transcript()
    over_links = crossed(expected)
    # The simulator's last hop ends with the token on its way; a ring ends where it is, and tells all so in a lap.
    sent = min(len(found), int(over_links.sum()))
    assert sent >= int(over_links.sum()) - 1
    for name in ("sender", "receiver", "tokens"):
        mine, its = getattr(expected, name)[over_links][:sent], getattr(found, name)[:sent]
        assert np.array_equal(mine, its), name
    worked = ~expected.relayed[over_links][:sent]  # who only passes the token on does not count its hops
    assert np.array_equal(expected.hop[over_links][:sent][worked], found.hop[:sent][worked])
    if expected.sealed is not None:
        assert np.array_equal(expected.sealed.words, _words_of(ring, len(expected.sealed)))


def _words_of(ring: ProcessRing, count: int) -> np.ndarray:
    """The words of a sealed lap, as they were sent."""
    rows = [row for number in range(ring.plan.agents) for row in ring.visits(number) if row.sent_phase == Phase.SUM]
    rows.sort(key=lambda row: row.sent_k)
    return np.array([np.frombuffer(row.sent or b"", "<u8") for row in rows])[:count]


def check_every_hand_over_once(ring: ProcessRing) -> int:
    """No hand-over was taken twice or lost, over all members together, and each has its sums in its ledger; how many there were."""
    taken: dict[int, list[int]] = {}
    for number in range(ring.plan.agents):
        ledger = read_ledger(ring.site_folder(number))
        assert [(one.run, one.epoch) for one in ledger.added] == [(ring.plan.run, ring.plan.epoch)]
        assert not lost_sums(ring.site_folder(number), ledger)
        for row in ring.visits(number):
            taken.setdefault(row.epoch, []).append(row.k)
    for epoch, counters in taken.items():
        assert sorted(counters) == list(range(len(counters))), f"epoch {epoch}: taken twice, or lost"
    return sum(map(len, taken.values()))
