"""The loop of the gossip family, as a kernel function: both engines run this text.

As for tokens, the arrays are the whole truth between two calls.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from roundelay.algorithms.gossip.gossip_method import listens, receive, send, speaks, talks
from roundelay.engine.token_loop import (
    DIVERGED,
    RUNNING,
    TOLERANCE_MET,
    Gauge,
    no_time,
    seconds_now,
    sum_distances,
    sum_spread,
)
from roundelay.kernels import (
    DIM,
    EXCHANGES,
    INCREMENTS,
    VECTORS,
    Cube,
    Exchange,
    Flags,
    Integers,
    Matrix,
    Vector,
    each,
    gather,
    slot,
    vector,
)
from roundelay.links.crossing import LOSES

# The places of the clock.
ITERATION, NUMBERS, BITS, MARK = range(4)

# How often a run that has no tolerance looks whether it has diverged, in iterations.
LOOKS = 64


class Mail(NamedTuple):
    """What each agent has sent, what it had sent before, what it has heard, and what its last message weighed.

    `sent` tells who spoke in this exchange, `spoken` who ever did. `before` is kept only where messages can be lost.
    There `posted` goes on after the agents' rows: with `before`, and with a row for each arc, for what its receiver goes
    by instead of a lost message.
    """

    posted: Cube
    before: Cube
    inbox: Cube
    draft: Matrix
    sent: Flags
    spoken: Flags
    numbers: Integers
    bits: Integers


class GossipLog(NamedTuple):
    """The history: one row at each iteration of `marks`."""

    marks: Integers
    numbers: Integers
    bits: Integers
    seconds: Vector
    accuracy: Vector
    error: Vector
    consensus: Vector
    means: Matrix


class GossipRule(NamedTuple):
    """When to stop: an error (negative where not asked for), and what counts as divergence."""

    error: float
    limit: float


@slot
def transmit(
    channel: Any, seed: int, i: int, k: int, number: int, message: Vector, posted: Vector
) -> tuple[int, int, int]:
    """Slot of the channel: `posted` becomes what the others hold; whether it was sent, numbers and bits."""
    raise NotImplementedError


@slot
def open_exchange(
    conditions: Any, links: Any, mixing: Any, mail: Mail, seed: int, number: int, silent: int
) -> tuple[int, int]:
    """Slot of the conditions: what befalls the messages of this exchange; numbers and bits that were sent again."""
    raise NotImplementedError


@slot
def collect(links: Any, mixing: Any, mail: Mail, i: int, v: int, out: Vector) -> None:
    """Slot of the conditions: out = Σ_j w_ij·(message of j) as it arrives."""
    raise NotImplementedError


@slot
def begin_exchange(conditions: Any, links: Any) -> None:
    """Slot of the conditions: a new exchange."""
    raise NotImplementedError


@slot
def take_turn(conditions: Any, links: Any, seed: int, i: int, k: int, works: bool) -> None:
    """Slot of the conditions: agent i works and speaks."""
    raise NotImplementedError


@slot
def arrive(conditions: Any, links: Any, mixing: Any, i: int) -> None:
    """Slot of the conditions: agent i has heard all."""
    raise NotImplementedError


@slot
def begin_iteration(conditions: Any, links: Any, mixing: Any, seed: int, k: int) -> None:
    """Slot of the conditions: which links are there in iteration k, and who is awake."""
    raise NotImplementedError


@slot
def awake(links: Any, i: int) -> bool:
    """Slot of the conditions: whether agent i takes part in this iteration."""
    raise NotImplementedError


@slot
def hearers(links: Any, mixing: Any, i: int) -> int:
    """Slot of the conditions: how many hear what agent i says."""
    raise NotImplementedError


# What fills the slots where a method or the conditions leave them open.


def always_talks(method: Any, seed: int, k: int) -> bool:
    """The agents speak in every iteration."""
    return True


def all_speak(method: Any, i: int, exchange: int) -> bool:
    """Every agent speaks in every exchange."""
    return True


def all_listen(method: Any, i: int, exchange: int) -> bool:
    """Every agent listens in every exchange."""
    return True


def all_arrives(
    conditions: Any, links: Any, mixing: Any, mail: Mail, seed: int, number: int, silent: int
) -> tuple[int, int]:
    """Nothing befalls the messages."""
    return 0, 0


def collect_all(links: Any, mixing: Any, mail: Mail, i: int, v: int, out: Vector) -> None:
    """Every message arrives as it was sent."""
    for d in each(DIM):
        out[d] = mixing.own[i] * mail.posted[i, v, d]
    gather(mixing.weights, mixing.neighbours, mixing.starts[i], mixing.starts[i + 1], mail.posted, v, out)


def no_exchange_to_time(conditions: Any, links: Any) -> None:
    """Nothing takes time."""


def no_turn_to_time(conditions: Any, links: Any, seed: int, i: int, k: int, works: bool) -> None:
    """Nothing takes time."""


def no_arrival_to_time(conditions: Any, links: Any, mixing: Any, i: int) -> None:
    """Nothing takes time."""


def nothing_changes(conditions: Any, links: Any, mixing: Any, seed: int, k: int) -> None:
    """All links are there, always."""


def always_awake(links: Any, i: int) -> bool:
    """Nobody sleeps."""
    return True


def all_hear(links: Any, mixing: Any, i: int) -> int:
    """All neighbours hear what agent i says."""
    return mixing.starts[i + 1] - mixing.starts[i]


DEFAULTS = (
    ("begin_iteration", nothing_changes),
    ("awake", always_awake),
    ("hearers", all_hear),
    ("talks", always_talks),
    ("speaks", all_speak),
    ("listens", all_listen),
    ("open_exchange", all_arrives),
    ("collect", collect_all),
    ("begin_exchange", no_exchange_to_time),
    ("take_turn", no_turn_to_time),
    ("arrive", no_arrival_to_time),
    ("seconds_now", no_time),
)


def write_gossip_row(
    log: GossipLog, row: int, numbers: int, bits: int, seconds: float, x: Matrix, gauge: Gauge
) -> float:
    """One row of the history; returns Σ‖x_i − x*‖."""
    mean, offset, first = vector(DIM), vector(DIM), vector(DIM)
    agents = x.shape[0]
    accuracy, error = sum_distances(x, gauge)
    for d in each(DIM):
        offset[d] = x[0, d]
    sum_spread(x, offset, first)
    for d in each(DIM):
        mean[d] = offset[d] + first[d] / agents
    square = sum_spread(x, mean, first)
    log.numbers[row] = numbers
    log.bits[row] = bits
    log.seconds[row] = seconds
    log.accuracy[row] = accuracy / agents
    log.error[row] = error / agents
    log.consensus[row] = math.sqrt(square / agents)
    for d in each(DIM):
        log.means[row, d] = mean[d]
    return error


def travel(
    problem: Any,
    method: Any,
    channel: Any,
    mixing: Any,
    conditions: Any,
    seed: int,
    states: Any,
    mail: Mail,
    links: Any,
    clock: Integers,
    gauge: Gauge,
    log: GossipLog,
    rule: GossipRule,
    until: int,
) -> int:
    """Go on to iteration `until`, or until there is a reason to stop; returns that reason."""
    agents = states.x.shape[0]
    k, numbers, bits, mark = clock[ITERATION], clock[NUMBERS], clock[BITS], clock[MARK]
    next_mark = log.marks[mark] if mark < log.marks.shape[0] else -1
    status = RUNNING
    while True:
        if k == next_mark:
            error = write_gossip_row(log, mark, numbers, bits, seconds_now(links), states.x, gauge)
            mark += 1
            next_mark = log.marks[mark] if mark < log.marks.shape[0] else -1
            if not error < rule.limit * agents:
                status = DIVERGED
        if k >= until or status != RUNNING:
            break
        begin_iteration(conditions, links, mixing, seed, k)
        talking = talks(method, seed, k)
        for exchange in range(EXCHANGES):
            number = k * EXCHANGES + exchange
            begin_exchange(conditions, links)
            silent = agents

            # Each agent that speaks makes its message, and the channel carries it to those that hear it.
            for i in range(agents):
                if not (speaks(method, i, exchange) and awake(links, i)):
                    mail.sent[i] = 0
                    continue
                take_turn(conditions, links, seed, i, k, exchange == 0 or not speaks(method, i, 0))
                at = Exchange(seed, i, k, exchange)
                send(problem, method, at, states, mail.posted[i], mail.inbox[i], mail.draft)
                if talking:
                    sent, weight, fraction = 0, 0, 0
                    for v in range(VECTORS):
                        for d in each(DIM):
                            if INCREMENTS:
                                mail.posted[i, v, d] = 0.0
                            elif LOSES:
                                mail.before[i, v, d] = mail.posted[i, v, d]
                        said, more, rest = transmit(
                            channel, seed, i, k, number * VECTORS + v, mail.draft[v], mail.posted[i, v]
                        )
                        sent, weight, fraction = sent | said, weight + more, fraction + rest
                    heard_by = hearers(links, mixing, i)
                    numbers += heard_by * weight
                    bits += heard_by * fraction
                    mail.sent[i] = sent
                    mail.spoken[i] |= np.uint8(sent)
                    silent -= sent
                    mail.numbers[i] = weight
                    mail.bits[i] = fraction

            if talking:
                more, rest = open_exchange(conditions, links, mixing, mail, seed, number, silent)
                numbers += more
                bits += rest

            # Each agent that listens sums up what it hears, and updates. All wait for what was sent to them.
            for i in range(agents):
                if talking:
                    arrive(conditions, links, mixing, i)
                if listens(method, i, exchange) and awake(links, i):
                    if talking:
                        for v in range(VECTORS):
                            collect(links, mixing, mail, i, v, mail.inbox[i, v])
                    at = Exchange(seed, i, k, exchange)
                    receive(problem, method, at, states, mail.posted[i], mail.inbox[i], talking)
        k += 1
        if rule.error >= 0.0 or k % LOOKS == 0:
            _, error = sum_distances(states.x, gauge)
            if not error < rule.limit * agents:
                status = DIVERGED
            elif error <= rule.error * agents:
                status = TOLERANCE_MET
    clock[ITERATION], clock[NUMBERS], clock[BITS], clock[MARK] = k, numbers, bits, mark
    return status
