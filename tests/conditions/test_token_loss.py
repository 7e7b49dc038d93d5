"""A token that is lost is sent again until it arrives: the mathematics stays, the cost grows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.kernels import LOSS, uniform
from tests.conditions.support import SEED, batch_error, film, simulate, squares, triangle_with_tail, within

TAIL = triangle_with_tail()

METHODS = {
    "I-ADMM with relays": (rl.IADMM(), TAIL, 1, 1),
    "W-ADMM with self-loops": (rl.WADMM(), TAIL, 1, 1),
    "PW-ADMM": (rl.PWADMM(walks=3, tau=0.7), TAIL, 3, 1),
    "IPW-ADMM": (rl.IPWADMM(walks=2), TAIL, 2, 1),
    "PI-ADMM2": (rl.PIADMM2(sigma=0.1), TAIL, 1, 1),
    "MC-SAG, two vectors": (rl.MCSAG(gamma=0.05), TAIL, 1, 2),
}
LOSSES = {
    "Bernoulli": rl.BernoulliLoss(0.4),
    "bursts": rl.GilbertElliott(0.2, 0.3, loss_bad=0.9, loss_good=0.1),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_loss_changes_the_cost_and_nothing_else(method: str, loss: str) -> None:
    algorithm, network, tokens, vectors = METHODS[method]
    conditions = rl.NetworkConditions(loss=LOSSES[loss], latency=1.0)
    bare = film(algorithm, squares(5), network, hops=120, transcript=True)
    lossy = film(algorithm, squares(5), network, conditions, hops=120, transcript=True)
    for ours, theirs in ((lossy.x, bare.x), (lossy.y, bare.y), (lossy.token, bare.token)):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(lossy.run.tokens, bare.run.tokens)
    np.testing.assert_array_equal(lossy.run.transcript.frame(), bare.run.transcript.frame())
    np.testing.assert_array_equal(bare.units, vectors * np.arange(121))
    again = np.diff(lossy.units) - vectors
    assert (again >= 0).all() and (again % vectors == 0).all() and again.sum() > 0
    stays = bare.run.transcript.sender == bare.run.transcript.receiver
    assert (again[:tokens] == 0).all()  # the first visit is in place
    assert (again[tokens:][stays[:-tokens]] == 0).all()  # and who keeps the token can't lose it


@pytest.mark.parametrize("method", METHODS)
def test_units_are_the_hops_and_what_was_sent_again(method: str) -> None:
    """Attempt t of the token that is sent at hop h − M is lost where its draw is below the chance."""
    algorithm, network, tokens, vectors = METHODS[method]
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.6))
    run = simulate(algorithm, squares(5), network, conditions, hops=150, record=1, transcript=True)
    sender, receiver, units = run.transcript.sender, run.transcript.receiver, [0]
    for hop in range(150):
        attempts = 1
        if hop >= tokens and sender[hop - tokens] != receiver[hop - tokens]:
            while uniform(SEED, int(sender[hop - tokens]), hop, LOSS, attempts - 1) < 0.6:
                attempts += 1
        units.append(units[-1] + vectors * attempts)
    assert run.record.units.tolist() == units
    assert run.record.bytes.tolist() == [8 * 2 * sent for sent in units]


def test_other_losses_in_every_seed_and_the_same_in_the_same() -> None:
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.5), latency=1.0)
    runs = [
        simulate(rl.IADMM(), squares(5), rl.ring(5), conditions, hops=100, record=1, seed=seed) for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0].record.units, runs[1].record.units)
    np.testing.assert_array_equal(runs[0].record.seconds, runs[1].record.seconds)
    assert (runs[0].record.units != runs[2].record.units).any()
    np.testing.assert_array_equal(runs[0].x, runs[2].x)


# ---------------------------------------------------------------- the law of the attempts


def attempts_of(loss: Any, network: rl.Network, hops: int, seed: int = SEED) -> np.ndarray:
    """How often the token was sent, hop by hop, by the compiled engine."""
    conditions = rl.NetworkConditions(loss=loss)
    problem = squares(network.agents)
    run = simulate(rl.IADMM(), problem, network, conditions, "compiled", hops=hops + 1, record=1, seed=seed)
    return np.diff(run.record.units)[1:]


@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5, 0.9])
def test_bernoulli_takes_a_geometric_number_of_attempts(chance: float) -> None:
    attempts = attempts_of(rl.BernoulliLoss(chance), rl.ring(5), 40_000)
    assert within(attempts.mean(), 1.0 / (1.0 - chance), np.sqrt(chance) / (1.0 - chance) / np.sqrt(40_000))
    for count in (1, 2, 4):
        tail = chance**count
        assert within((attempts > count).mean(), tail, np.sqrt(tail * (1.0 - tail) / 40_000)), count
    correlation = np.corrcoef(attempts[:-1], attempts[1:])[0, 1]
    assert within(correlation, 0.0, 1.0 / np.sqrt(40_000))


def expected_attempts(loss: rl.GilbertElliott, longest: int = 250) -> float:
    """The mean attempts of a token between two agents, from the stationary law of a Markov chain.

    Every attempt anywhere is one step for both arcs. Before arc A is crossed, what matters is its state s_A at its own
    last attempt, the attempts a_B that arc B took meanwhile, and s_B. Crossing A, the first attempt comes
    a_B + 1 steps after the last, every further one a step later.
    """
    step = np.array([[1.0 - loss.turns_bad, loss.turns_bad], [loss.turns_good, 1.0 - loss.turns_good]])
    lost = np.array([loss.loss_good, loss.loss_bad])
    # crossing[a_B, s_A, a_A, s_A⁺]; `now` is the law of A's state at the next attempt.
    crossing = np.zeros((longest + 1, 2, longest + 1, 2))
    now = np.array([np.linalg.matrix_power(step, waited + 1) for waited in range(longest + 1)])
    for attempt in range(1, longest + 1):
        crossing[:, :, attempt] = now * (1.0 - lost)
        now = (now * lost) @ step
    law = np.zeros((2, longest + 1, 2))
    law[0, 1, 0] = 1.0
    for _ in range(60):
        law = np.einsum("sau,astv->utv", law, crossing)
        law /= law.sum()
    return float((law.sum(axis=(0, 2)) * np.arange(longest + 1)).sum())


def closed_form(turns_bad: float, turns_good: float) -> float:
    """The same where bad links lose all and good ones nothing.

    After a crossing the arc is good. The first attempt of the next one fails with the chance π(1 − r^{a + 1}), where a
    is what the other arc took, r = 1 − turns_bad − turns_good; then a geometric number follows. With
    u = E r^a and Q = π(1 − ru) that is E a = 1 + Q/turns_good and u = r(1 − Q) + Q·r·G, G = E r^(geometric).
    """
    bad, r = turns_bad / (turns_bad + turns_good), 1.0 - turns_bad - turns_good
    geometric = turns_good * r / (1.0 - (1.0 - turns_good) * r)
    # u = r + Q·r(G − 1) with Q = π(1 − ru)
    gain = r * (geometric - 1.0) * bad
    u = (r + gain) / (1.0 + gain * r)
    return 1.0 + bad * (1.0 - r * u) / turns_good


PAIRS = {
    "long bursts": rl.GilbertElliott(0.02, 0.1),
    "short bursts": rl.GilbertElliott(0.3, 0.6),
    "every other": rl.GilbertElliott(0.9, 0.8),
    "both states lose": rl.GilbertElliott(0.1, 0.2, loss_bad=0.7, loss_good=0.2),
}


def test_the_two_derivations_agree() -> None:
    for loss in PAIRS.values():
        if loss.loss_bad == 1.0:
            assert abs(expected_attempts(loss) - closed_form(loss.turns_bad, loss.turns_good)) < 1e-8


@pytest.mark.parametrize("pair", PAIRS)
def test_a_token_between_two_agents_waits_for_bursts_to_end(pair: str) -> None:
    attempts = attempts_of(PAIRS[pair], rl.path(2), 60_000)
    assert within(attempts.mean(), expected_attempts(PAIRS[pair]), batch_error(attempts))


def test_a_link_seldom_used_is_met_as_it_is_in_the_long_run() -> None:
    """In 50 hops the state is forgotten: the first attempt fails with π_bad·loss_bad + π_good·loss_good."""
    loss = rl.GilbertElliott(0.15, 0.3, loss_bad=0.8, loss_good=0.1)
    attempts = attempts_of(loss, rl.ring(50), 40_000)
    rate = (1.0 / 3.0) * 0.8 + (2.0 / 3.0) * 0.1
    assert within((attempts > 1).mean(), rate, np.sqrt(rate * (1.0 - rate) / 40_000))
    # Given that it failed, the link was bad with chance π_bad·loss_bad/rate, and turns before the second attempt.
    was_bad = 0.8 / 3.0 / rate
    bad_now = was_bad * 0.7 + (1.0 - was_bad) * 0.15
    again = 0.8 * bad_now + 0.1 * (1.0 - bad_now)
    failed = (attempts > 1).sum()
    assert within((attempts > 2).sum() / failed, again, np.sqrt(again * (1.0 - again) / failed))


def test_bursts_are_longer_than_bernoullis() -> None:
    """Both lose a fifth in the long run; what follows a loss is 1/turns_good = 10 further attempts, or 1/(1 − p)."""
    bursts = attempts_of(rl.GilbertElliott(0.025, 0.1), rl.ring(50), 40_000)
    single = attempts_of(rl.BernoulliLoss(0.2), rl.ring(50), 40_000)
    after = {"bursts": bursts[bursts > 1] - 1, "single": single[single > 1] - 1}
    for name, mean in (("bursts", 10.0), ("single", 1.25)):
        spread = np.sqrt(mean * (mean - 1.0)) / np.sqrt(len(after[name]))
        assert within(after[name].mean(), mean, spread), name
    # After 50 hops a link that was good is bad with π(1 − r^50), r = 0.875: about a fifth all the same.
    for attempts in (bursts, single):
        assert within((attempts > 1).mean(), 0.2, 2.0 * np.sqrt(0.16 / 40_000))


def test_without_memory_bursts_are_bernoullis() -> None:
    """turns_bad + turns_good = 1: the state is drawn anew each time."""
    attempts = attempts_of(rl.GilbertElliott(0.3, 0.7), rl.path(2), 40_000)
    assert within(attempts.mean(), 1.0 / 0.7, np.sqrt(0.3) / 0.7 / np.sqrt(40_000))


@pytest.mark.parametrize(
    "loss",
    [
        rl.BernoulliLoss(0.3),
        rl.GilbertElliott(0.025, 0.1),
    ],
    ids=["Bernoulli", "bursts"],
)
def test_what_a_hop_is_expected_to_cost_is_what_it_costs(loss: Any) -> None:
    """On a large ring: P(bad)·m_bad + P(good)·m_good, m_s = 1 + loss_s·E m of the next state. Here 1 + 0.2/0.1 = 3."""
    attempts = attempts_of(loss, rl.ring(50), 40_000)
    assert within(attempts.mean(), rl.NetworkConditions(loss=loss).attempts, batch_error(attempts))
