"""Lost messages in gossip: the receiver goes on with what it has, in every method, as dense mathematics says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.gossip.admm import colours_of
from tests.conditions.support import (
    SEED,
    Postcards,
    adjacency,
    dates,
    film,
    losses,
    simulate,
    squares,
    triangle_with_tail,
    weights_of,
    within,
)

NETWORK = triangle_with_tail()
PROBLEM = squares(5)
A, W = adjacency(NETWORK), weights_of(NETWORK)
COMPLETE = rl.complete(8)

LOSSES = {
    "Bernoulli": rl.NetworkConditions(loss=rl.BernoulliLoss(0.4)),
    "bursts": rl.NetworkConditions(loss=rl.GilbertElliott(0.2, 0.3, loss_bad=0.9, loss_good=0.1)),
}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)


class Receivers:
    """held[i, j]: what agent i last heard of j, zero before the first message."""

    def __init__(self, lost: np.ndarray) -> None:
        self.lost, self.exchange = lost, 0
        self.held = np.zeros((5, 5, 2))

    def hear(self, messages: np.ndarray, speaking: Any = (True,) * 5) -> np.ndarray:
        """What each agent has of each other after this exchange."""
        for i, j in zip(*np.nonzero(A), strict=True):
            if speaking[j] and not self.lost[self.exchange, i, j]:
                self.held[i, j] = messages[j]
        self.exchange += 1
        return self.held

    def arrived(self, messages: np.ndarray) -> np.ndarray:
        """Only what has just arrived, for messages that are increments."""
        heard = np.where(((A > 0) & ~self.lost[self.exchange])[..., None], messages[None], 0.0)
        self.exchange += 1
        return heard


def mix(weights: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Σ_j w_ij·held_ij over the neighbours."""
    return np.einsum("ij,ijd->id", weights * A, held)


def gradients(x: np.ndarray) -> np.ndarray:
    return np.array([PROBLEM.gradient(i, x[i]) for i in range(5)])


def assert_close(ours: np.ndarray, dense: list[np.ndarray]) -> None:
    np.testing.assert_allclose(ours, np.array(dense), rtol=0.0, atol=1e-12 * np.abs(dense).max())


def lost_in(loss: str, exchanges: int, first: int = 0) -> Receivers:
    """With the losses of so many exchanges, where nothing is sent before the `first`."""
    lost = losses(NETWORK, LOSSES[loss], exchanges, Postcards(first))
    assert 0.2 < lost.sum() / (10 * exchanges) < 0.8
    return Receivers(lost)


# ---------------------------------------------------------------- every method with the losses it met


@EVERY_LOSS
def test_dgd_mixes_the_last_messages_that_arrived(loss: str) -> None:
    receivers, x, alpha = lost_in(loss, 25), np.zeros((5, 2)), 0.05
    dense = [x]
    for _ in range(25):
        x = np.diag(W)[:, None] * x + mix(W, receivers.hear(x)) - alpha * gradients(x)
        dense.append(x)
    assert_close(film(rl.DGD(alpha=alpha), PROBLEM, NETWORK, LOSSES[loss], iterations=25).x, dense)


@EVERY_LOSS
def test_gradient_tracking_loses_both_vectors_together(loss: str) -> None:
    first, second = lost_in(loss, 25), lost_in(loss, 25)
    x, alpha, own = np.zeros((5, 2)), 0.03, np.diag(W)[:, None]
    s, dense = gradients(x), [x]
    for _ in range(25):
        new = own * x + mix(W, first.hear(x)) - alpha * s
        s = own * s + mix(W, second.hear(s)) + gradients(new) - gradients(x)
        x = new
        dense.append(x)
    assert_close(film(rl.GradientTracking(alpha=alpha), PROBLEM, NETWORK, LOSSES[loss], iterations=25).x, dense)


def d_admm(
    receivers: Receivers, c: float, threshold: Any, iterations: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """D-ADMM, with x̂_i what i last sent and x̂_ij what j last heard of it; silent where it moved less than allowed."""
    x, shown, held, multipliers = np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((5, 5, 2)), np.zeros((5, 2))
    total, xs, ys = c * A.sum(axis=1)[:, None], [x], [multipliers]
    for k in range(1, iterations + 1):
        pull = total * shown + mix(c * A, held) - multipliers
        x = np.array([PROBLEM.prox(i, pull[i] / (2.0 * total[i]), 2.0 * float(total[i, 0])) for i in range(5)])
        speaking = np.linalg.norm(x - shown, axis=1) >= threshold(k)
        shown = np.where(speaking[:, None], x, shown)
        held = receivers.hear(shown, speaking)
        multipliers = multipliers + total * shown - mix(c * A, held)
        xs.append(x)
        ys.append(multipliers)
    return xs, ys


@EVERY_LOSS
def test_d_admm_pulls_to_the_last_messages_that_arrived(loss: str) -> None:
    xs, ys = d_admm(lost_in(loss, 20), 2.0, lambda k: 0.0, 20)
    ours = film(rl.DADMM(c=2.0), PROBLEM, NETWORK, LOSSES[loss], iterations=20)
    assert_close(ours.x, xs)
    assert_close(ours.y, ys)


@EVERY_LOSS
def test_who_is_silent_leaves_the_receivers_what_they_have(loss: str) -> None:
    """COCA: silence is no loss, and after a loss silence leaves the receiver with what is older still."""
    xs, ys = d_admm(lost_in(loss, 25), 2.0, lambda k: 0.6 * 0.85**k, 25)
    ours = film(rl.COCA(c=2.0, alpha=0.6, rho=0.85), PROBLEM, NETWORK, LOSSES[loss], iterations=25)
    assert_close(ours.x, xs)
    assert_close(ours.y, ys)
    sent = np.diff(ours.units)
    assert sent.min() < 10 and sent.sum() > 30  # some were silent, some spoke


def test_a_loss_is_not_made_good_by_the_silence_after_it() -> None:
    """Where x no longer moves nothing is sent, and who missed the last message keeps the one before for ever."""
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.5))
    ours = film(rl.COCA(c=2.0, alpha=1e6, rho=1.0), PROBLEM, NETWORK, conditions, iterations=10)
    assert (ours.units == 0).all()
    xs, _ = d_admm(Receivers(np.zeros((10, 5, 5), bool)), 2.0, lambda k: np.inf, 10)
    assert_close(ours.x, xs)


def test_a_message_of_two_vectors_is_not_censored_where_it_may_be_lost() -> None:
    """Gradient tracking, censored: x may be silent where s speaks, and who loses the message can't tell which."""
    channel = rl.Channel(censoring=rl.Censoring(0.8, 0.9))
    algorithm = rl.GradientTracking(alpha=0.03, channel=channel)
    with pytest.raises(ValueError, match=r"^gradient tracking sends 2 vectors .* use resend=True"):
        simulate(algorithm, PROBLEM, NETWORK, LOSSES["Bernoulli"], iterations=3)
    again = rl.NetworkConditions(loss=rl.BernoulliLoss(0.3), resend=True)
    kept, bare = (film(algorithm, PROBLEM, NETWORK, given, iterations=30).x for given in (again, None))
    np.testing.assert_array_equal(kept, bare)


def test_two_kinds_of_message_in_turn_need_every_one() -> None:
    algorithm = rl.GradientTracking(alpha=0.03, adapt_then_combine=True)
    with pytest.raises(ValueError, match=r"two kinds of message in turn, .* use resend=True"):
        simulate(algorithm, PROBLEM, NETWORK, LOSSES["Bernoulli"], iterations=3)


@EVERY_LOSS
def test_increments_that_are_lost_count_as_nothing_in_choco(loss: str) -> None:
    receivers, eta, gamma = lost_in(loss, 25), 0.04, 0.6
    x, copy, heard = np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((5, 2))
    dense = [x]
    for _ in range(25):
        x = x - eta * gradients(x)
        q = x - copy
        copy = copy + q
        heard = heard + np.diag(W)[:, None] * q + mix(W, receivers.arrived(q))
        x = x + gamma * (heard - copy)
        dense.append(x)
    algorithm = rl.CHOCO(eta=eta, gamma=gamma, channel=rl.Plain())
    assert_close(film(algorithm, PROBLEM, NETWORK, LOSSES[loss], iterations=25).x, dense)


@EVERY_LOSS
def test_increments_that_are_lost_count_as_nothing_in_lead(loss: str) -> None:
    receivers, eta, gamma, alpha = lost_in(loss, 25, first=1), 0.04, 0.9, 0.4
    receivers.exchange = 1
    x = -eta * gradients(np.zeros((5, 2)))
    H, H_w, D = np.zeros((3, 5, 2))
    dense = [np.zeros((5, 2)), x]
    for _ in range(24):
        slope = gradients(x)
        q = x - eta * slope - eta * D - H
        Wq = np.diag(W)[:, None] * q + mix(W, receivers.arrived(q))
        D = D + gamma / (2.0 * eta) * ((H + q) - (H_w + Wq))
        H, H_w = H + alpha * q, H_w + alpha * Wq
        x = x - eta * (slope + D)
        dense.append(x)
    algorithm = rl.LEAD(eta=eta, gamma=gamma, alpha=alpha, channel=rl.Plain())
    assert_close(film(algorithm, PROBLEM, NETWORK, LOSSES[loss], iterations=25).x, dense)


@EVERY_LOSS
def test_in_coloured_d_admm_each_colour_goes_by_the_last_that_it_heard(loss: str) -> None:
    colours, rho, iterations = colours_of(NETWORK), 2.0, 15
    count = int(colours.max()) + 1
    assert count == 3
    receivers = lost_in(loss, count * iterations)
    x, held, multipliers = np.zeros((5, 2)), np.zeros((5, 5, 2)), np.zeros((5, 2))
    stiff, dense = rho * A.sum(axis=1)[:, None], [x]
    for _ in range(iterations):
        for colour in range(count):
            x = x.copy()
            pull = mix(rho * A, held) - multipliers
            for i in np.flatnonzero(colours == colour):
                x[i] = PROBLEM.prox(int(i), pull[i] / stiff[i], float(stiff[i, 0]))
            held = receivers.hear(x, colours == colour)
        multipliers = multipliers + stiff * x - mix(rho * A, held)
        dense.append(x)
    ours = film(rl.ColouredDADMM(rho=rho), PROBLEM, NETWORK, LOSSES[loss], iterations=iterations)
    assert_close(ours.x, dense)
    assert ours.units[-1] == 10 * iterations  # what is lost is paid for, once


# ---------------------------------------------------------------- sent again


RESENT = {
    "DGD": (rl.DGD(), 1),
    "D-ADMM": (rl.DADMM(), 1),
    "gradient tracking": (rl.GradientTracking(), 2),
    "gradient tracking in turn": (rl.GradientTracking(adapt_then_combine=True), 2),
    "differences": (rl.DGD(channel=rl.Channel(rl.TopK(1), differences=True)), 1),
    "LEAD": (rl.LEAD(channel=rl.Plain()), 1),
    "coloured D-ADMM": (rl.ColouredDADMM(), 1),
}
EVERY_RESENT = pytest.mark.parametrize("method", RESENT)


@EVERY_LOSS
@EVERY_RESENT
def test_what_is_sent_again_arrives(method: str, loss: str) -> None:
    conditions = rl.NetworkConditions(loss=LOSSES[loss].loss, resend=True)
    bare = film(RESENT[method][0], PROBLEM, NETWORK, iterations=20)
    again = film(RESENT[method][0], PROBLEM, NETWORK, conditions, iterations=20)
    np.testing.assert_array_equal(again.x, bare.x)
    np.testing.assert_array_equal(again.y, bare.y)
    assert (np.diff(again.units) >= np.diff(bare.units)).all() and again.units[-1] > bare.units[-1]


@pytest.mark.parametrize("chance", [0.1, 0.6])
@EVERY_RESENT
def test_what_is_sent_again_is_paid_for(method: str, chance: float) -> None:
    """Each message is sent 1/(1 − p) times in the mean, with the variance p/(1 − p)²."""
    algorithm, _ = RESENT[method]
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(chance), resend=True)
    bare = simulate(algorithm, PROBLEM, NETWORK, iterations=120).units
    again = simulate(algorithm, PROBLEM, NETWORK, conditions, iterations=120).units
    messages = 10 * 119
    assert within(again / bare, 1.0 / (1.0 - chance), np.sqrt(chance) / (1.0 - chance) / np.sqrt(messages))


def test_bursts_are_paid_for_until_they_end() -> None:
    """Between exchanges a link turns once, and once with every repetition: a burst met costs 1/turns_good more."""
    turns_bad, turns_good = 0.1, 0.25
    conditions = rl.NetworkConditions(loss=rl.GilbertElliott(turns_bad, turns_good), resend=True)
    run = simulate(rl.DGD(), PROBLEM, NETWORK, conditions, iterations=250, record=1)
    sent = np.diff(run.record.units)[5:] / 10.0
    # A message that arrives leaves the link good, so that the next one meets a bad link with the chance turns_bad.
    expected = 1.0 + turns_bad / turns_good
    variance = turns_bad * (2.0 - turns_good) / turns_good**2 - (turns_bad / turns_good) ** 2
    assert within(sent.mean(), expected, np.sqrt(variance / (10 * len(sent))))


def test_arcs_repeat_independently() -> None:
    """On links so bad that a message takes a hundred attempts, the number in all varies as independent ones do."""
    chance, iterations = 0.99, 1500
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(chance), resend=True)
    run = simulate(rl.DGD(), squares(8), COMPLETE, conditions, "compiled", iterations=iterations, record=1)
    sent = np.diff(run.record.units)
    mean, variance = 56 / (1.0 - chance), 56 * chance / (1.0 - chance) ** 2
    assert within(sent.mean(), mean, np.sqrt(variance / iterations))
    squared = (sent - mean) ** 2
    assert within(squared.mean(), variance, squared.std() / np.sqrt(iterations))


# ---------------------------------------------------------------- how much is lost


def test_the_last_postcard_that_arrived_is_kept() -> None:
    """Dates never fall; they are of now, or of before, or there is none yet."""
    had = dates(NETWORK, LOSSES["Bernoulli"], 60)
    now = 1 + np.arange(60)[:, None, None]
    assert (np.diff(had, axis=0) >= 0).all() and (had <= now).all()
    changed = np.diff(had, axis=0) > 0
    assert (had[1:][changed] == np.broadcast_to(now, had.shape)[1:][changed]).all()
    assert (np.diagonal(had, axis1=1, axis2=2) == now[..., 0]).all()  # an agent always knows its own
    assert (had[0][A > 0] == 0).any()


OFF = ~np.eye(8, dtype=bool)


def lost_on_arcs(loss: Any, exchanges: int) -> np.ndarray:
    """Whether each message was lost: (exchanges, arcs)."""
    return losses(COMPLETE, rl.NetworkConditions(loss=loss), exchanges)[:, OFF].astype(float)


@pytest.mark.parametrize("chance", [0.05, 0.5])
def test_bernoulli_loses_its_share_independently(chance: float) -> None:
    lost = lost_on_arcs(rl.BernoulliLoss(chance), 800)
    assert within(lost.mean(), chance, np.sqrt(chance * (1.0 - chance) / lost.size))
    centred = (lost - chance) / np.sqrt(chance * (1.0 - chance))
    assert within((centred[1:] * centred[:-1]).mean(), 0.0, 1.0 / np.sqrt(lost.size))
    # The number lost in an exchange has the variance of independent arcs.
    together = centred.sum(axis=1) ** 2 / lost.shape[1]
    assert within(together.mean(), 1.0, together.std() / np.sqrt(len(together)))
    both = [(centred[:, a] * centred[:, b]).mean() for a in range(56) for b in range(a)]
    assert np.abs(both).max() < 6.0 / np.sqrt(800)


def test_bursts_lose_the_share_of_the_long_run() -> None:
    """π_bad·loss_bad + π_good·loss_good from the first exchange on, with the correlation (1 − a − b) of the chain."""
    loss = rl.GilbertElliott(0.1, 0.2, loss_bad=0.9, loss_good=0.05)
    lost = lost_on_arcs(loss, 600)
    rate, r, bad = 0.9 / 3.0 + 0.05 * 2.0 / 3.0, 0.7, 1.0 / 3.0
    variance, shared = rate * (1.0 - rate), bad * (1.0 - bad) * 0.85**2
    # Correlated in time: the error of the mean is larger by Σ of the correlations.
    assert within(lost.mean(), rate, np.sqrt((variance + 2.0 * shared * r / (1.0 - r)) / lost.size))
    for lag in (1, 2, 5):
        products = (lost[lag:] - rate) * (lost[:-lag] - rate)
        assert within(products.mean(), shared * r**lag, 2.5 * products.std() / np.sqrt(products.size)), lag


def test_links_start_as_they_are_in_the_long_run() -> None:
    """The share of the long run is lost in the very first exchange, by tokens and in gossip."""
    loss, seeds, rate = rl.GilbertElliott(0.1, 0.2, loss_bad=0.9, loss_good=0.05), 40, 0.9 / 3.0 + 0.05 * 2.0 / 3.0
    conditions = rl.NetworkConditions(loss=loss)
    lost = [losses(COMPLETE, conditions, 1, seed=seed)[0, OFF].mean() for seed in range(seeds)]
    assert within(np.mean(lost), rate, np.sqrt(rate * (1.0 - rate) / (56 * seeds)))
    again = [simulate(rl.IADMM(), PROBLEM, NETWORK, conditions, hops=2, seed=seed).units > 2 for seed in range(400)]
    assert within(np.mean(again), rate, np.sqrt(rate * (1.0 - rate) / 400))


def bursts_in(lost: np.ndarray) -> np.ndarray:
    """The lengths of all runs of losses that begin and end within the table."""
    lengths = []
    for column in lost.T:
        edges = np.diff(np.concatenate([[0.0], column, [0.0]]))
        begins, ends = np.flatnonzero(edges == 1.0), np.flatnonzero(edges == -1.0)
        inside = (begins > 0) & (ends < len(column))
        lengths += list(ends[inside] - begins[inside])
    return np.array(lengths)


@pytest.mark.parametrize(
    ("loss", "ends"),
    [(rl.GilbertElliott(0.05, 0.2), 0.2), (rl.GilbertElliott(0.3, 0.6), 0.6), (rl.BernoulliLoss(0.2), 0.8)],
    ids=["long", "short", "Bernoulli"],
)
def test_bursts_are_geometric(loss: Any, ends: float) -> None:
    """A burst goes on with the chance 1 − turns_good: its mean length is 1/turns_good; Bernoulli's is 1/(1 − p)."""
    lengths = bursts_in(lost_on_arcs(loss, 600))
    assert within(lengths.mean(), 1.0 / ends, np.sqrt(1.0 - ends) / ends / np.sqrt(len(lengths)))
    for least in (2, 3, 5):
        share = (1.0 - ends) ** (least - 1)
        assert within((lengths >= least).mean(), share, np.sqrt(share * (1.0 - share) / len(lengths))), least


def test_the_same_seed_loses_the_same_and_another_seed_others() -> None:
    conditions = LOSSES["bursts"]
    first, same, other = (losses(NETWORK, conditions, 40, seed=seed) for seed in (SEED, SEED, SEED + 1))
    np.testing.assert_array_equal(first, same)
    assert 0.2 < (first != other)[:, A > 0].mean() < 0.8
