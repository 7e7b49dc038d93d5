"""The time of a token: it crosses links, waits for the agent, and is worked on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.kernels import LATENCY, WORK, uniform
from tests.conditions.support import SEED, exponential, matrix_of, simulate, squares, triangle_with_tail, within

TAIL = triangle_with_tail()
LINKS = [1.0, 2.5, 0.5, 4.0, 3.25]
WORKING = [0.25, 2.0, 0.0, 1.5, 7.0]

METHODS = {
    "I-ADMM with relays": (rl.IADMM(), 1),
    "W-ADMM with self-loops": (rl.WADMM(walk=rl.ClosedUniformWalk()), 1),
    "W-ADMM with free self-loops": (rl.WADMM(walk=rl.MetropolisWalk(self_loops_free=True)), 1),
    "PW-ADMM": (rl.PWADMM(walks=3, tau=0.7), 3),
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "latency": {"latency": LINKS},
    "compute": {"compute": WORKING},
    "both": {"latency": LINKS, "compute": WORKING},
    "loss": {"latency": LINKS, "compute": WORKING, "loss": rl.BernoulliLoss(0.5)},
    "bursts": {"latency": 1.5, "compute": 0.5, "loss": rl.GilbertElliott(0.2, 0.3)},
    "jitter": {"latency": LINKS, "compute": WORKING, "latency_jitter": 0.7, "compute_jitter": 1.3},
    "stragglers": {
        "latency": LINKS, "compute": WORKING, "straggler_chance": 0.3, "straggler_factor": 6.0,
        "loss": rl.BernoulliLoss(0.5), "latency_jitter": 0.2, "compute_jitter": 0.1,
    },
}  # fmt: skip


def recomputed(
    run: rl.Run, tokens: int, hops: int, network: rl.Network, conditions: rl.NetworkConditions
) -> list[float]:
    """The time after every hop: t += latency·(2·attempts − 1), wait until the agent is free, t += compute.

    A token that stays where it is crosses nothing; who only relays does not compute. The attempts are read off the
    units.
    """
    sender, receiver, relayed = run.transcript.sender, run.transcript.receiver, run.transcript.relayed
    latency = matrix_of(network, conditions.latency)
    compute = np.broadcast_to(conditions.compute, network.agents)
    sent = np.diff(run.record.units)
    token, busy, last = np.zeros(tokens), np.zeros(network.agents), [0.0]
    for hop in range(hops):
        m = hop % tokens
        if hop >= tokens and sender[hop - tokens] != receiver[hop - tokens]:
            i, j = sender[hop - tokens], receiver[hop - tokens]
            assert j == sender[hop]
            late = exponential(uniform(SEED, int(i), hop, LATENCY, 0))
            token[m] += latency[i, j] * (1.0 + conditions.latency_jitter * late) * (2 * sent[hop] - 1)
        agent = int(sender[hop])
        if not relayed[hop]:
            slow = exponential(uniform(SEED, agent, hop, WORK, 0))
            seconds = compute[agent] * (1.0 + conditions.compute_jitter * slow)
            if uniform(SEED, agent, hop, WORK, 1) < conditions.straggler_chance:
                seconds *= conditions.straggler_factor
            token[m] = busy[agent] = max(token[m], busy[agent]) + seconds
        last.append(max(last[-1], token[m]))
    return last


@pytest.mark.parametrize("given", CONDITIONS)
@pytest.mark.parametrize("method", METHODS)
def test_every_hop_takes_the_time_of_the_link_and_of_the_agent(method: str, given: str) -> None:
    algorithm, tokens = METHODS[method]
    conditions = rl.NetworkConditions(**CONDITIONS[given])
    run = simulate(algorithm, squares(5), TAIL, conditions, hops=90, record=1, transcript=True)
    expected = recomputed(run, tokens, 90, TAIL, conditions)
    np.testing.assert_allclose(run.record.seconds, expected, rtol=1e-12)
    assert expected[-1] > 0.0


def test_a_lap_takes_all_links_and_all_agents_once() -> None:
    """On a ring: Σ latency + Σ compute a lap, and a slow agent adds what it is slower, once a lap."""
    links, fast = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.full(5, 0.5)
    slow = fast.copy()
    slow[3] = 20.5
    laps = []
    for compute in (fast, slow):
        conditions = rl.NetworkConditions(latency=links, compute=compute)
        run = simulate(rl.IADMM(), squares(5), rl.ring(5), conditions, hops=50, record=5)
        laps.append(np.diff(run.record.seconds)[1:])
    np.testing.assert_allclose(laps[0], 15.0 + 2.5, rtol=1e-12)
    np.testing.assert_allclose(laps[1] - laps[0], 20.0, rtol=1e-12)


def test_a_lost_token_costs_a_round_trip() -> None:
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.5), latency=3.0)
    run = simulate(rl.IADMM(), squares(5), rl.ring(5), conditions, hops=200, record=1)
    again = np.diff(run.record.units)[1:] - 1
    np.testing.assert_array_equal(np.diff(run.record.seconds)[1:], 3.0 + 6.0 * again)
    assert again.max() >= 3


def test_staying_takes_no_time_on_the_way() -> None:
    run = simulate(
        rl.WADMM(walk=rl.ClosedUniformWalk()), squares(5), TAIL, rl.NetworkConditions(latency=1.0), hops=200, record=1,
        transcript=True,
    )  # fmt: skip
    stays = run.transcript.sender == run.transcript.receiver
    assert 20 < stays.sum() < 180
    np.testing.assert_array_equal(np.diff(run.record.seconds)[1:], np.where(stays[:-1], 0.0, 1.0))


@pytest.mark.parametrize("walks", [1, 2, 5])
def test_an_agent_serves_one_token_at_a_time(walks: int) -> None:
    """Only the hub of a star takes time, and no token gets from leaf to leaf but through it."""
    conditions = rl.NetworkConditions(compute=[3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    algorithm = rl.PWADMM(walks=walks, walk=rl.UniformWalk())
    run = simulate(algorithm, squares(6), rl.star(6), conditions, hops=300)
    assert run.record.seconds[-1] == 3.0 * run.visits[0]
    assert run.visits[0] >= 148


def test_tokens_travel_side_by_side() -> None:
    """Five tokens on a ring of five, one at each agent: all hop at once, so five hops take what one takes."""
    conditions = rl.NetworkConditions(latency=2.0, compute=1.0)
    algorithm = rl.PWADMM(walks=5, walk=rl.Cycle())
    run = simulate(algorithm, squares(5), rl.ring(5), conditions, hops=100, record=5)
    np.testing.assert_allclose(run.record.seconds, [0.0, *(1.0 + 3.0 * np.arange(20))], rtol=1e-12)


def test_jitter_and_stragglers_have_their_means() -> None:
    """A hop takes l(1 + j) + c(1 + J)(1 + q(f − 1)) in the mean; both jitters are exponential."""
    conditions = rl.NetworkConditions(
        latency=1.0, latency_jitter=0.5, compute=2.0, compute_jitter=1.5, straggler_chance=0.1, straggler_factor=4.0
    )
    run = simulate(rl.IADMM(), squares(5), rl.ring(5), conditions, hops=6001, record=1)
    hops = np.diff(run.record.seconds)[1:]
    mean = 1.5 + 2.0 * 2.5 * 1.3
    square = 2.0 * 1.5**2 + 2.0 * 1.5 + 1.0  # E(1 + JE)²
    variance = 0.5**2 + 4.0 * (square * (1.0 + 0.1 * 15.0) - (2.5 * 1.3) ** 2)
    assert within(hops.mean(), mean, np.sqrt(variance / len(hops)))
    assert within(hops.var(), variance, np.std((hops - mean) ** 2) / np.sqrt(len(hops)))
    assert hops.min() > 3.0 - 1e-9
    assert within(np.corrcoef(hops[:-1], hops[1:])[0, 1], 0.0, 1.0 / np.sqrt(len(hops)))


def test_latency_alone_has_its_exponential_jitter() -> None:
    conditions = rl.NetworkConditions(latency=2.0, latency_jitter=1.0)
    run = simulate(rl.IADMM(), squares(5), rl.ring(5), conditions, hops=4001, record=1)
    extra = np.diff(run.record.seconds)[1:] / 2.0 - 1.0
    assert extra.min() >= -1e-9
    for level in (0.5, 1.0, 2.0):
        share = np.exp(-level)
        assert within((extra > level).mean(), share, np.sqrt(share * (1.0 - share) / len(extra)))
