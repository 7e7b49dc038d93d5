"""Kernel functions of the network's conditions: what becomes of a token, or of a round of messages, on the links."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from roundelay.kernels import (
    CHAIN,
    DIM,
    INCREMENTS,
    LATENCY,
    LOSS,
    NOISE,
    RESEND,
    WORK,
    Cube,
    Flags,
    Integers,
    Matrix,
    Vector,
    chances,
    each,
    gather,
    gather_arrived,
    latest,
    normals,
    uniform,
    vector,
)

# The rows of `LinkStates.flags`.
LOST, LOST_BAD, TURNED_BAD, TURNED_GOOD = range(4)


class ConditionNumbers(NamedTuple):
    """The chances of loss, the noise, and the times; `starts` and `neighbours` say which arcs there are."""

    loss_good: float
    loss_bad: float
    turns_bad: float
    turns_good: float
    loses: int
    resend: int
    noise: float
    takes_time: int
    latency: Vector
    latency_jitter: float
    compute: Vector
    compute_jitter: float
    straggler_chance: float
    straggler_factor: float
    starts: Integers
    neighbours: Integers


class LinkStates(NamedTuple):
    """Which arcs are bad and when that was last looked at, what each last brought, its delay, and all clocks."""

    bad: Flags
    ticks: Integers
    tick: Integers
    flags: Matrix
    held: Cube
    delays: Vector
    clocks: Vector
    finished: Vector
    token_clocks: Vector


# ---------------------------------------------------------------- time


def exponential(chance: float) -> float:
    """The exponential draw with mean 1 that a uniform one stands for."""
    return -math.log(1.0 - chance)


def compute_time(conditions: ConditionNumbers, seed: int, i: int, step: int) -> float:
    """The seconds that agent i's update takes this time."""
    seconds = conditions.compute[i]
    if conditions.compute_jitter > 0.0:
        seconds *= 1.0 + conditions.compute_jitter * exponential(uniform(seed, i, step, WORK, 0))
    if conditions.straggler_chance > 0.0 and uniform(seed, i, step, WORK, 1) < conditions.straggler_chance:
        seconds *= conditions.straggler_factor
    return seconds


def delay_of(conditions: ConditionNumbers, seed: int, i: int, step: int, arc: int, index: int, attempts: int) -> float:
    """The seconds until a message has arrived: each attempt that failed costs a round trip more."""
    seconds = conditions.latency[arc]
    if conditions.latency_jitter > 0.0:
        seconds *= 1.0 + conditions.latency_jitter * exponential(uniform(seed, i, step, LATENCY, index))
    return seconds * (2.0 * attempts - 1.0)


def now(links: LinkStates) -> float:
    """The time at which the last agent and the last token were done."""
    last = 0.0
    for i in range(links.clocks.shape[0]):
        last = max(last, links.clocks[i])
    for m in range(links.token_clocks.shape[0]):
        last = max(last, links.token_clocks[m])
    return last


# ---------------------------------------------------------------- tokens


def arc_between(conditions: ConditionNumbers, sender: int, receiver: int) -> int:
    """The arc on which the receiver hears the sender; neighbours are sorted."""
    low, high = conditions.starts[receiver], conditions.starts[receiver + 1]
    while low < high:
        middle = (low + high) // 2
        if conditions.neighbours[middle] < sender:
            low = middle + 1
        else:
            high = middle
    return low


def turn_link(conditions: ConditionNumbers, links: LinkStates, arc: int, steps: int, chance: float) -> None:
    """The state of an arc so many steps later, drawn from what it was."""
    rate = conditions.turns_bad + conditions.turns_good
    usual = conditions.turns_bad / rate
    bad = usual + (links.bad[arc] - usual) * (1.0 - rate) ** steps
    links.bad[arc] = 1 if chance < bad else 0


def cross_link(
    conditions: ConditionNumbers, links: LinkStates, seed: int, hop: int, m: int, sender: int, receiver: int
) -> int:
    """Token m goes from sender to receiver: sent again until it arrives. Returns how often it was sent."""
    if sender == receiver:
        return 1
    arc = arc_between(conditions, sender, receiver)
    attempts = 0
    while True:
        links.tick[0] += 1
        if conditions.turns_bad > 0.0:
            passed = links.tick[0] - links.ticks[arc]
            turn_link(conditions, links, arc, passed, uniform(seed, sender, hop, CHAIN, attempts))
            links.ticks[arc] = links.tick[0]
        chance = conditions.loss_bad if links.bad[arc] == 1 else conditions.loss_good
        lost = chance > 0.0 and uniform(seed, sender, hop, LOSS, attempts) < chance
        attempts += 1
        if not lost:
            break
    if conditions.takes_time:
        links.token_clocks[m] += delay_of(conditions, seed, sender, hop, arc, 0, attempts)
    return attempts


def disturb_token(conditions: ConditionNumbers, seed: int, hop: int, sender: int, lane: int, token: Vector) -> None:
    """The link adds Gaussian noise; `lane` tells the vectors of one token apart."""
    if conditions.noise > 0.0:
        noise = vector(DIM)
        normals(seed, sender, 2 * hop + lane, NOISE, noise)
        for d in each(DIM):
            token[d] += conditions.noise * noise[d]


def spend_time(conditions: ConditionNumbers, links: LinkStates, seed: int, hop: int, m: int, i: int) -> None:
    """Agent i works on token m, once it has the token and is done with any other."""
    if conditions.takes_time:
        begin = max(links.token_clocks[m], links.clocks[i])
        end = begin + compute_time(conditions, seed, i, hop)
        links.clocks[i] = end
        links.token_clocks[m] = end


# ---------------------------------------------------------------- gossip


def draw_losses(
    conditions: ConditionNumbers, links: LinkStates, seed: int, i: int, number: int, begin: int, end: int
) -> None:
    """Which of agent i's arcs lose their message this time."""
    lost = links.flags[LOST]
    chances(seed, i, number, LOSS, conditions.loss_good, lost, begin, end)
    if conditions.turns_bad > 0.0:
        lost_bad, turned_bad, turned_good = links.flags[LOST_BAD], links.flags[TURNED_BAD], links.flags[TURNED_GOOD]
        chances(seed, i, 2 * number, RESEND, conditions.loss_bad, lost_bad, begin, end)
        chances(seed, i, 2 * number, CHAIN, conditions.turns_bad, turned_bad, begin, end)
        chances(seed, i, 2 * number + 1, CHAIN, conditions.turns_good, turned_good, begin, end)
        for a in range(begin, end):
            bad = turned_good[a] == 0 if links.bad[a] == 1 else turned_bad[a] == 1
            links.bad[a] = 1 if bad else 0
            lost[a] = lost_bad[a] if bad else lost[a]


def send_again(
    conditions: ConditionNumbers, links: LinkStates, seed: int, i: int, number: int, a: int, place: int
) -> int:
    """Repeat a lost message until it arrives; how often it was sent in all."""
    attempts = 1
    while True:
        attempts += 1
        if conditions.turns_bad > 0.0:
            turn_link(conditions, links, a, 1, uniform(seed, i, 2 * number + 1, RESEND, 128 * place + 2 * attempts))
        chance = conditions.loss_bad if links.bad[a] == 1 else conditions.loss_good
        if uniform(seed, i, 2 * number + 1, RESEND, 128 * place + 2 * attempts + 1) >= chance:
            return attempts


def collect_through(
    conditions: ConditionNumbers,
    links: LinkStates,
    mixing: Any,
    mail: Any,
    seed: int,
    i: int,
    number: int,
    v: int,
    out: Vector,
) -> tuple[int, int]:
    """Out = Σ_j w_ij·(what arrived of j's message), with noise. Returns numbers and bits that were sent again."""
    begin, end = mixing.starts[i], mixing.starts[i + 1]
    numbers, bits, square = 0, 0, 0.0
    if v == 0 and (conditions.loses or conditions.takes_time):
        if conditions.loses:
            draw_losses(conditions, links, seed, i, number, begin, end)
        if conditions.takes_time or conditions.resend:
            for a in range(begin, end):
                attempts = 1
                if conditions.resend and links.flags[LOST, a] == 1:
                    attempts = send_again(conditions, links, seed, i, number, a, a - begin)
                    links.flags[LOST, a] = 0
                    numbers += (attempts - 1) * mail.numbers[mixing.neighbours[a]]
                    bits += (attempts - 1) * mail.bits[mixing.neighbours[a]]
                if conditions.takes_time:
                    links.delays[a] = delay_of(conditions, seed, i, number, a, a - begin, attempts)
    for d in each(DIM):
        out[d] = mixing.own[i] * mail.posted[i, v, d]
    if conditions.loses and not conditions.resend:
        square = gather_arrived(
            mixing.weights, mixing.neighbours, begin, end, mail.posted, v, links.flags[LOST], mail.sent, links.held,
            INCREMENTS, out,
        )  # fmt: skip
    else:
        gather(mixing.weights, mixing.neighbours, begin, end, mail.posted, v, out)
        if conditions.noise > 0.0:
            for a in range(begin, end):
                square += mixing.weights[a] * mixing.weights[a]
    if conditions.noise > 0.0:
        noise = vector(DIM)
        normals(seed, i, 2 * number + v, NOISE, noise)
        for d in each(DIM):
            out[d] += conditions.noise * math.sqrt(square) * noise[d]
    return numbers, bits


def ring_the_bell(conditions: ConditionNumbers, links: LinkStates) -> None:
    """A new exchange: nobody has spoken yet, and nobody waits for one who does not speak."""
    if conditions.takes_time:
        links.finished[:] = -math.inf


def take_turn(conditions: ConditionNumbers, links: LinkStates, seed: int, i: int, k: int, works: bool) -> None:
    """Agent i speaks, in iteration k, after its work if that is still to be done."""
    if conditions.takes_time:
        if works:
            links.clocks[i] += compute_time(conditions, seed, i, k)
        links.finished[i] = links.clocks[i]


def arrive(conditions: ConditionNumbers, links: LinkStates, mixing: Any, i: int) -> None:
    """Agent i goes on when it has heard all that have spoken."""
    if conditions.takes_time:
        begin, end = mixing.starts[i], mixing.starts[i + 1]
        links.clocks[i] = max(links.clocks[i], latest(links.finished, links.delays, mixing.neighbours, begin, end))


def all_listen(conditions: ConditionNumbers) -> bool:
    """Where messages get lost, whoever does not listen to one can't have it later."""
    return conditions.loses == 1
