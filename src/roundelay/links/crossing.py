"""Kernel functions of the network's conditions: what becomes of a token, or of a round of messages, on the links."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from roundelay.kernels import (
    CHAIN,
    DIM,
    INCREMENTS,
    LATENCY,
    LOSS,
    NOISE,
    RESEND,
    VECTORS,
    WORK,
    Cube,
    Flags,
    Integers,
    Matrix,
    Vector,
    chances,
    each,
    flagged,
    gather,
    latest,
    normals,
    uniform,
    uniforms,
    vector,
)
from roundelay.kernels.bulk import Gaps, befall
from roundelay.kernels.ziggurat import quick_normals
from roundelay.links.presence import is_there

# Literals that `NetworkConditions.part` sets, so that what does not happen costs nothing.
LOSES: int = 0
BURSTS: int = 0
RESENDS: int = 0
NOISY: int = 0
TIMED: int = 0
CHANGES: int = 0
DETOURS: int = 0


class ConditionNumbers(NamedTuple):
    """The chances of loss, the noise, and the times; `starts` and `neighbours` say which arcs there are.

    Link `links[a]` is that of arc a. In round k it is up with the chance `up` where turns[k // rounds] says that it has its turn,
    one after another; `waiting` is the seconds of a round in which a token waits.
    """

    loss_good: float
    loss_bad: float
    turns_bad: float
    turns_good: float
    noise: float
    latency: Vector
    latency_jitter: float
    compute: Vector
    compute_jitter: float
    straggler_chance: float
    straggler_factor: float
    starts: Integers
    neighbours: Integers
    gaps: Gaps
    edges: Vector
    links: Integers
    turns: Any
    rounds: int
    up: float
    falls_asleep: float
    wakes_up: float
    waiting: float


class LinkStates(NamedTuple):
    """Which arcs are bad and when that was last looked at, what befell the last messages, and all clocks.

    `lost` tells the arcs whose message of this exchange was lost. Arc a is heard from row `sources[a]` of `mail.posted`:
    that of its sender, or where the receiver lacks what the sender last sent, one of its own that holds what it has
    instead. `order` lists these arcs, after this exchange and after the last; `lacking` is how many they are.
    Where links come and go, `round` counts the rounds of tokens, and `looked` says in which of them an agent was last looked at;
    in gossip `there` tells the arcs of this iteration, `weights`, `own` and `degrees` what follows for the weights.
    `noise` and `noise_rows` are the same memory, as are `words` and `lanes`; these and the rest are scratch.
    """

    bad: Flags
    ticks: Integers
    tick: Integers
    lost: Flags
    lost_bad: Flags
    turned_bad: Flags
    turned_good: Flags
    sources: Any
    order: Any
    lacking: Integers
    words: Any
    lanes: Flags
    noise: Cube
    noise_rows: Matrix
    squares: Vector
    spread: Vector
    delays: Vector
    clocks: Vector
    finished: Vector
    token_clocks: Vector
    round: Integers
    awake: Flags
    looked: Integers
    up: Flags
    falls: Flags
    wakes: Flags
    there: Flags
    weights: Vector
    own: Vector
    degrees: Integers


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


def round_trips(attempts: int) -> float:
    """How many latencies pass until a message has arrived: each attempt that failed costs a round trip more."""
    return 2.0 * attempts - 1.0


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
    """Token m goes from sender to receiver: once both are there, sent again until it arrives. Returns how often it was sent.

    That is 0 where the receiver is not there and the token may look for another instead of waiting.
    """
    if sender == receiver:
        return 1
    arc = arc_between(conditions, sender, receiver)
    if CHANGES:
        while not is_there(conditions, links, seed, conditions.links[arc], receiver):
            links.token_clocks[m] += conditions.waiting
            if DETOURS:
                return 0
    attempts = 0
    while True:
        links.tick[0] += 1
        if BURSTS:
            passed = links.tick[0] - links.ticks[arc]
            turn_link(conditions, links, arc, passed, uniform(seed, sender, hop, CHAIN, attempts))
            links.ticks[arc] = links.tick[0]
        chance = conditions.loss_bad if links.bad[arc] == 1 else conditions.loss_good
        lost = chance > 0.0 and uniform(seed, sender, hop, LOSS, attempts) < chance
        attempts += 1
        if not lost:
            break
    if TIMED:
        seconds = conditions.latency[arc]
        if conditions.latency_jitter > 0.0:
            seconds *= 1.0 + conditions.latency_jitter * exponential(uniform(seed, sender, hop, LATENCY, 0))
        links.token_clocks[m] += seconds * round_trips(attempts)
    return attempts


def disturb_token(conditions: ConditionNumbers, seed: int, hop: int, sender: int, lane: int, token: Vector) -> None:
    """The link adds Gaussian noise; `lane` tells the vectors of one token apart."""
    if NOISY:
        noise = vector(DIM)
        normals(seed, sender, VECTORS * hop + lane, NOISE, noise)
        for d in each(DIM):
            token[d] += conditions.noise * noise[d]


def spend_time(conditions: ConditionNumbers, links: LinkStates, seed: int, hop: int, m: int, i: int) -> None:
    """Agent i works on token m, once it has the token and is done with any other."""
    if TIMED:
        begin = max(links.token_clocks[m], links.clocks[i])
        end = begin + compute_time(conditions, seed, i, hop)
        links.clocks[i] = end
        links.token_clocks[m] = end


# ---------------------------------------------------------------- gossip


def draw_losses(conditions: ConditionNumbers, links: LinkStates, seed: int, number: int, order: Integers) -> int:
    """Which arcs lose their message in this exchange, in `lost` and in `order`; how many there are."""
    words, lanes = links.words, links.lanes
    if not BURSTS:
        return befall(conditions.gaps, seed, 0, number, LOSS, words, links.lost, order)
    chances(seed, 0, number, LOSS, conditions.loss_good, words, lanes, links.lost)
    chances(seed, 1, number, LOSS, conditions.loss_bad, words, lanes, links.lost_bad)
    chances(seed, 0, number, CHAIN, conditions.turns_bad, words, lanes, links.turned_bad)
    chances(seed, 1, number, CHAIN, conditions.turns_good, words, lanes, links.turned_good)
    for a in each(links.bad.shape[0]):
        links.bad[a] = links.bad[a] * (1 - links.turned_good[a]) + (1 - links.bad[a]) * links.turned_bad[a]
        links.lost[a] = links.bad[a] * links.lost_bad[a] + (1 - links.bad[a]) * links.lost[a]
    return flagged(links.lost, order)


def send_again(conditions: ConditionNumbers, links: LinkStates, seed: int, number: int, a: int) -> int:
    """Repeat the message lost on arc a until it arrives; how often it was sent in all."""
    attempts = 1
    while True:
        if BURSTS:
            turn_link(conditions, links, a, 1, uniform(seed, a, number, RESEND, 2 * attempts))
        chance = conditions.loss_bad if links.bad[a] == 1 else conditions.loss_good
        attempts += 1
        if uniform(seed, a, number, RESEND, 2 * attempts + 1) >= chance:
            return attempts


def make_up(links: LinkStates, mixing: Any, mail: Any, before: int, now: int) -> None:
    """In place of a lost message stands the last one that did arrive, or 0 if messages are increments.

    Nothing here branches on chance, which the processor could not foresee, and numbers are unsigned, because Python's
    negative ones would be looked for at every arc.
    """
    one, agents = np.uint64(1), np.uint64(mixing.own.shape[0])
    for n in range(links.lacking[before]):
        # It stays where it is if it is lost again; else its receiver hears the sender.
        a = np.uint64(links.order[before, n])
        lost = np.uint64(links.lost[a])
        links.sources[a] = lost * np.uint64(links.sources[a]) + (one - lost) * np.uint64(mixing.neighbours[a])
    for n in range(links.lacking[now]):
        a = np.uint64(links.order[now, n])
        row = agents + agents + a
        if INCREMENTS:
            links.squares[mixing.receivers[a]] -= mixing.weights[a] * mixing.weights[a]
        else:
            # What the sender had sent before; a row that holds something already keeps it.
            source = np.uint64(links.sources[a])
            held = source + agents * np.uint64(source < agents)
            for v in range(VECTORS):
                for d in each(DIM):
                    mail.posted[row, v, d] = mail.posted[held, v, d]
        links.sources[a] = row


def leave_silent_out(links: LinkStates, mixing: Any, mail: Any) -> None:
    """There is no noise where there is no message: none was ever sent, or what is not sent is an increment of 0."""
    for a in range(mixing.neighbours.shape[0]):
        j = mixing.neighbours[a]
        if mail.sent[j] == 0 and (INCREMENTS or mail.spoken[j] == 0):
            links.squares[mixing.receivers[a]] -= mixing.weights[a] * mixing.weights[a]


def sum_squares(links: LinkStates, mixing: Any) -> None:
    """The sums of the squared weights of the moment."""
    for i in range(mixing.own.shape[0]):
        links.squares[i] = 0.0
        for a in range(mixing.starts[i], mixing.starts[i + 1]):
            links.squares[i] += links.weights[a] * links.weights[a]


def open_exchange(
    conditions: ConditionNumbers, links: LinkStates, mixing: Any, mail: Any, seed: int, number: int, silent: int
) -> tuple[int, int]:
    """All have spoken: draw what befalls their messages, and begin the sums with it.

    `silent` is how many did not speak. Returns how many numbers and bits had to be sent again.
    """
    agents, numbers, bits = mixing.own.shape[0], 0, 0
    before, now = links.tick[0] % 2, (links.tick[0] + 1) % 2
    links.tick[0] += 1
    if LOSES:
        lacking = draw_losses(conditions, links, seed, number, links.order[now])
        if silent > 0:
            for a in each(links.lost.shape[0]):  # who did not speak leaves its hearers as they were
                spoke, behind = mail.sent[mixing.neighbours[a]], links.sources[a] != mixing.neighbours[a]
                links.lost[a] = spoke * links.lost[a] + (0 if INCREMENTS else (1 - spoke) * behind)
            lacking = flagged(links.lost, links.order[now])
        links.lacking[now] = lacking
        if CHANGES:
            for a in each(links.lost.shape[0]):  # nothing is lost where nothing was sent
                links.lost[a] = links.lost[a] * links.there[a]
            links.lacking[now] = flagged(links.lost, links.order[now])
    if TIMED:
        if conditions.latency_jitter > 0.0:
            uniforms(seed, 0, number, LATENCY, links.delays)
            for a in each(links.delays.shape[0]):
                links.delays[a] = conditions.latency[a] * (
                    1.0 - conditions.latency_jitter * np.log(1.0 - links.delays[a])
                )
        else:
            for a in each(links.delays.shape[0]):
                links.delays[a] = conditions.latency[a]
        if CHANGES:
            for a in range(links.delays.shape[0]):
                if links.there[a] == 0:
                    links.delays[a] = -math.inf  # nobody waits for who is not there
    if LOSES and RESENDS:
        for n in range(links.lacking[now]):
            a = links.order[now, n]
            attempts = send_again(conditions, links, seed, number, a)
            numbers += (attempts - 1) * mail.numbers[mixing.neighbours[a]]
            bits += (attempts - 1) * mail.bits[mixing.neighbours[a]]
            links.delays[a] *= round_trips(attempts)
    if INCREMENTS or silent > 0:
        for i in each(agents):
            links.squares[i] = mixing.squares[i]
    if LOSES and not RESENDS:
        make_up(links, mixing, mail, before, now)
    if NOISY:
        for i in each(agents):
            links.spread[i] = conditions.noise * mixing.norms[i]
        if CHANGES:
            sum_squares(links, mixing)
        elif silent > 0:
            leave_silent_out(links, mixing, mail)
        if INCREMENTS or CHANGES or silent > 0:
            for i in range(agents):
                links.spread[i] = conditions.noise * math.sqrt(max(links.squares[i], 0.0))
        for v in range(VECTORS):
            quick_normals(conditions.edges, seed, v, number, NOISE, links.words, links.noise_rows[v])
    return numbers, bits


def collect_through(links: LinkStates, mixing: Any, mail: Any, i: int, v: int, out: Vector) -> None:
    """Out = Σ_j w_ij·(message of j) as it arrives, after `open_exchange` has drawn what befalls the messages."""
    own = mixing.own[i]
    if CHANGES:
        own = links.own[i]
    for d in each(DIM):
        out[d] = own * mail.posted[i, v, d]
    if NOISY:
        for d in each(DIM):
            out[d] += links.spread[i] * links.noise[v, i, d]
    if CHANGES:
        gather(links.weights, links.sources, mixing.starts[i], mixing.starts[i + 1], mail.posted, v, out)
    else:
        gather(mixing.weights, links.sources, mixing.starts[i], mixing.starts[i + 1], mail.posted, v, out)


def ring_the_bell(conditions: ConditionNumbers, links: LinkStates) -> None:
    """A new exchange: nobody has spoken yet, and nobody waits for one who does not speak."""
    if TIMED:
        links.finished[:] = -math.inf


def take_turn(conditions: ConditionNumbers, links: LinkStates, seed: int, i: int, k: int, works: bool) -> None:
    """Agent i speaks, in iteration k, after its work if that is still to be done."""
    if TIMED:
        if works:
            links.clocks[i] += compute_time(conditions, seed, i, k)
        links.finished[i] = links.clocks[i]


def arrive(conditions: ConditionNumbers, links: LinkStates, mixing: Any, i: int) -> None:
    """Agent i goes on when it has heard all that have spoken."""
    if TIMED:
        begin, end = mixing.starts[i], mixing.starts[i + 1]
        links.clocks[i] = max(links.clocks[i], latest(links.finished, links.delays, mixing.neighbours, begin, end))
