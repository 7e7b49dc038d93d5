"""The hop loop, as a kernel function: both engines run this text.

Everything the loop reads and changes stands in the NamedTuples below, so that between two calls the
arrays are the whole truth: a run can be stopped, looked at and continued after any hop.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.slots import Agents, estimate, unrest, visit
from roundelay.kernels import (
    DIM,
    FAR,
    TOKENS,
    VECTORS,
    Cube,
    Matrix,
    Vector,
    Visit,
    distance,
    dot,
    each,
    prefetch,
    slot,
    vector,
)

Integers = NDArray[np.int64]

# What a call of `travel` reports.
RUNNING, TOLERANCE_MET, ALL_CONTENT, DIVERGED = range(4)

# The places of the clock.
HOP, UNITS, MARK, SINCE_SUM = range(4)


class Trail(NamedTuple):
    """The tokens, and the place where each of them is."""

    tokens: Matrix
    places: Integers


class Gauge(NamedTuple):
    """How far the agents are from the optimum: formed anew at the rows, or kept up in O(p) a hop where these are many.

    `totals` holds Σ‖x_i − x*‖/‖x_i⁰ − x*‖, Σ‖x_i − x*‖ and Σ‖x_i − r‖²; `first` holds Σ(x_i − r). The reference
    r is what the token stood for when the sums were last formed, so that no digits cancel. Where they are kept up they are
    formed anew once a lap, because they drift. A row of `distances` holds 1/‖x_i⁰ − x*‖ and the present ‖x_i − x*‖.
    """

    optimum: Vector
    distances: Matrix
    totals: Vector
    reference: Vector
    first: Vector


class Log(NamedTuple):
    """The history: one row at each hop of `marks`."""

    marks: Integers
    units: Integers
    seconds: Vector
    accuracy: Vector
    error: Vector
    consensus: Vector
    tokens: Matrix


class Post(NamedTuple):
    """The transcript: who sent which token to whom, a row a hop; empty where it is not wanted.

    `relayed` is 1 where the sender only passed the token on. `cargo` holds the further vectors of the token.
    """

    sender: Integers
    receiver: Integers
    relayed: Integers
    tokens: Matrix
    cargo: Cube


class Reader(NamedTuple):
    """The last tokens that one agent received, in a ring of rows; `seen` holds how many in all."""

    agent: int
    tokens: Matrix
    seen: Integers


class Rule(NamedTuple):
    """When to stop: an error, the agents' contentment (negative where not asked for), and what counts as divergence.

    An agent's stamp is the number of the count in which it was last content; `tally` holds the number of
    the present count and how many distinct agents it has.
    """

    error: float
    content: float
    limit: float
    stamps: Integers
    tally: Integers


@slot
def advance(walk: Any, seed: int, hop: int, place: int, visits: Integers) -> int:
    """Slot of the walk: the place after this one."""
    raise NotImplementedError


@slot
def agent_at(walk: Any, place: int) -> int:
    """Slot of the walk: the agent at a place."""
    raise NotImplementedError


@slot
def agent_soon(walk: Any, place: int) -> int:
    """Slot of the walk: an agent that the token will reach a few hops later."""
    raise NotImplementedError


def nobody_soon(walk: Any, place: int) -> int:
    """Fills it where nobody knows."""
    return 0


@slot
def fetch(problem: Any, i: int) -> None:
    """Slot of the problem: ask for agent i's data, which will soon be needed."""
    raise NotImplementedError


def fetch_nothing(problem: Any, i: int) -> None:
    """Fills it where the problem does not care."""


@slot
def works(walk: Any, place: int) -> bool:
    """Slot of the walk: whether the agent updates at this place."""
    raise NotImplementedError


@slot
def move_cost(walk: Any, place: int, following: int) -> int:
    """Slot of the walk: what a move costs in units."""
    raise NotImplementedError


@slot
def cross(conditions: Any, links: Any, seed: int, hop: int, m: int, sender: int, receiver: int) -> int:
    """Slot of the conditions: token m crosses a link; how often it had to be sent."""
    raise NotImplementedError


def cross_at_once(conditions: Any, links: Any, seed: int, hop: int, m: int, sender: int, receiver: int) -> int:
    """Fills it where nothing happens on the links."""
    return 1


@slot
def add_noise(conditions: Any, seed: int, hop: int, sender: int, lane: int, token: Vector) -> None:
    """Slot of the conditions: what the link adds to a vector that the token carries."""
    raise NotImplementedError


def no_noise(conditions: Any, seed: int, hop: int, sender: int, lane: int, token: Vector) -> None:
    """Fills it where links add nothing."""


@slot
def work(conditions: Any, links: Any, seed: int, hop: int, m: int, i: int) -> None:
    """Slot of the conditions: agent i takes its time over token m."""
    raise NotImplementedError


def work_at_once(conditions: Any, links: Any, seed: int, hop: int, m: int, i: int) -> None:
    """Fills it where nothing takes time."""


@slot
def seconds_now(links: Any) -> float:
    """Slot of the conditions: the simulated time."""
    raise NotImplementedError


def no_time(links: Any) -> float:
    """Fills it where nothing takes time."""
    return 0.0


DEFAULTS = (
    ("agent_soon", nobody_soon),
    ("fetch", fetch_nothing),
    ("cross", cross_at_once),
    ("add_noise", no_noise),
    ("work", work_at_once),
    ("seconds_now", no_time),
)


def sum_distances(x: Matrix, gauge: Gauge) -> tuple[float, float]:
    """Σ‖x_i − x*‖/‖x_i⁰ − x*‖ and Σ‖x_i − x*‖."""
    accuracy = 0.0
    error = 0.0
    for i in range(x.shape[0]):
        far = distance(x[i], gauge.optimum)
        gauge.distances[i, 1] = far
        accuracy += far * gauge.distances[i, 0]
        error += far
    return accuracy, error


def sum_spread(x: Matrix, reference: Vector, first: Vector) -> float:
    """Σ‖x_i − r‖², and Σ(x_i − r) in `first`."""
    second = 0.0
    for d in each(DIM):
        first[d] = 0.0
    for i in range(x.shape[0]):
        spread = distance(x[i], reference)
        second += spread * spread
        for d in each(DIM):
            first[d] += x[i, d] - reference[d]
    return second


def spread_about(shift: Vector, second: float, first: Vector, agents: int) -> float:
    """The root mean square of ‖x_i − z‖, from the sums about the reference r; `shift` is z − r."""
    square = (second - 2.0 * dot(shift, first)) / agents + dot(shift, shift)
    return math.sqrt(max(square, 0.0))


def write_row(
    log: Log, row: int, units: int, seconds: float, accuracy: float, error: float, consensus: float, token: Vector
) -> None:
    """One row of the history."""
    log.units[row] = units
    log.seconds[row] = seconds
    log.accuracy[row] = accuracy
    log.error[row] = error
    log.consensus[row] = consensus
    for d in each(DIM):
        log.tokens[row, d] = token[d]


def mean_of_tokens(trail: Trail, out: Vector) -> None:
    """The mean of the tokens."""
    for d in each(DIM):
        out[d] = 0.0
    for m in range(TOKENS):
        for d in each(DIM):
            out[d] += trail.tokens[m, d] / TOKENS


def all_content(rule: Rule, i: int, agents: int, content: bool) -> bool:
    """Count agent i as content, or start counting anew; whether all agents are."""
    if not content:
        rule.tally[0] += 1
        rule.tally[1] = 0
    elif rule.stamps[i] != rule.tally[0]:
        rule.stamps[i] = rule.tally[0]
        rule.tally[1] += 1
    return rule.tally[1] == agents


def travel(
    problem: Any,
    method: Any,
    walk: Any,
    conditions: Any,
    seed: int,
    agents: Agents,
    trail: Trail,
    links: Any,
    clock: Integers,
    gauge: Gauge,
    log: Log,
    post: Post,
    reader: Reader,
    rule: Rule,
    until: int,
) -> int:
    """Go on to hop `until`, or until there is a reason to stop; returns that reason."""
    number = agents.x.shape[0]
    token, mean, before, change, shift = vector(DIM), vector(DIM), vector(DIM), vector(DIM), vector(DIM)
    reference, first, z = vector(DIM), vector(DIM), vector(DIM)
    for d in each(DIM):
        token[d] = trail.tokens[0, d]
        reference[d] = gauge.reference[d]
        first[d] = gauge.first[d]
    accuracy, error, second = gauge.totals[0], gauge.totals[1], gauge.totals[2]
    posting = post.sender.shape[0] > 0
    watching = rule.content >= 0.0
    # Sums at every row take less than sums kept up at every hop, if there is a lap between two rows, one with another. A
    # tolerance must be met at the very hop.
    keeping = rule.error >= 0.0 or log.marks.shape[0] * number > log.marks[-1]
    hop, units, mark, since = clock[HOP], clock[UNITS], clock[MARK], clock[SINCE_SUM]
    next_mark = log.marks[mark] if mark < log.marks.shape[0] else -1
    status = RUNNING
    while True:
        if hop == next_mark or (keeping and since >= number):
            for d in each(DIM):
                mean[d] = token[d]
            if TOKENS > 1:
                mean_of_tokens(trail, mean)
            estimate(method, number, mean, z)
            if not keeping or since >= number:
                since = 0
                accuracy, error = sum_distances(agents.x, gauge)
                for d in each(DIM):
                    reference[d] = z[d]
                second = sum_spread(agents.x, reference, first)
            if hop == next_mark:
                for d in each(DIM):
                    shift[d] = z[d] - reference[d]
                spread = spread_about(shift, second, first, number)
                write_row(log, mark, units, seconds_now(links), accuracy / number, error / number, spread, mean)
                mark += 1
                next_mark = log.marks[mark] if mark < log.marks.shape[0] else -1
        if hop >= until or status != RUNNING:
            break

        # The token moves on to its next place.
        m = hop % TOKENS
        place = trail.places[m]
        if TOKENS > 1:
            for d in each(DIM):
                token[d] = trail.tokens[m, d]
        stays = False
        if hop < TOKENS:
            units += VECTORS  # the first visit is in place; what it sends is paid for all the same
        else:
            following = advance(walk, seed, hop, place, agents.visits)
            cost = move_cost(walk, place, following)
            sender, receiver = agent_at(walk, place), agent_at(walk, following)
            attempts = cross(conditions, links, seed, hop, m, sender, receiver)
            units += VECTORS * cost * attempts
            stays = attempts == 0
            if stays:
                following = place
            elif sender != receiver:
                add_noise(conditions, seed, hop, sender, 0, token)
                for v in range(1, VECTORS):
                    add_noise(conditions, seed, hop, sender, v, agents.share[number + v - 1])
            if TOKENS > 1:
                for d in each(DIM):
                    trail.tokens[m, d] = token[d]
            place = following
            trail.places[m] = place
            if posting:
                post.receiver[hop - TOKENS] = agent_at(walk, place)
        i = agent_at(walk, place)
        if FAR:  # ask now for what a later hop will wait for
            soon = agent_soon(walk, place)
            fetch(problem, soon)
            prefetch(agents.x, soon)
            prefetch(agents.y, soon)
            prefetch(agents.share, soon)
            prefetch(agents.visits, soon)
            prefetch(gauge.distances, soon)

        # The agent there updates, unless it only relays, or has the token still.
        if works(walk, place) and not stays:
            work(conditions, links, seed, hop, m, i)
            if i == reader.agent:
                for d in each(DIM):
                    reader.tokens[reader.seen[0] % reader.tokens.shape[0], d] = token[d]
                reader.seen[0] += 1
            if keeping:
                for d in each(DIM):
                    before[d] = agents.x[i, d]
            at = Visit(seed, i, hop, agents.visits[i], number)
            primal, dual = visit(problem, method, at, token, agents, watching)
            agents.visits[i] += 1
            if TOKENS > 1:
                for d in each(DIM):
                    trail.tokens[m, d] = token[d]

            far = distance(agents.x[i], gauge.optimum)
            if keeping:
                nearer = far - gauge.distances[i, 1]
                gauge.distances[i, 1] = far
                accuracy += nearer * gauge.distances[i, 0]
                error += nearer
                for d in each(DIM):
                    change[d] = agents.x[i, d] - before[d]
                    before[d] += agents.x[i, d] - 2.0 * reference[d]
                    first[d] += change[d]
                second += dot(change, before)  # ‖x⁺ − r‖² − ‖x − r‖² = (x⁺ − x)'(x⁺ + x − 2r)
            if not far < rule.limit:
                status = DIVERGED
            if watching and status == RUNNING:
                # The cheap conditions first: they spare the gradient until the end is near.
                content = primal <= rule.content and dual <= rule.content
                content = content and unrest(problem, method, i, number, token, agents.share[i]) <= rule.content
                if all_content(rule, i, number, content):
                    status = ALL_CONTENT
            if error <= rule.error * number and status == RUNNING:
                accuracy, error = sum_distances(agents.x, gauge)  # sums that are kept up drift: make sure
                if error <= rule.error * number:
                    status = TOLERANCE_MET
        if posting:
            post.sender[hop] = i
            post.relayed[hop] = 0 if works(walk, place) else 1
            for d in each(DIM):
                post.tokens[hop, d] = token[d]
            for v in range(VECTORS - 1):
                for d in each(DIM):
                    post.cargo[hop, v, d] = agents.share[number + v, d]
        hop += 1
        since += 1
    for d in each(DIM):
        if TOKENS == 1:
            trail.tokens[0, d] = token[d]
        gauge.reference[d] = reference[d]
        gauge.first[d] = first[d]
    gauge.totals[0], gauge.totals[1], gauge.totals[2] = accuracy, error, second
    clock[HOP], clock[UNITS], clock[MARK] = hop, units, mark
    clock[SINCE_SUM] = (
        since if keeping else number
    )  # what was not kept up is formed anew by whoever keeps it up from here
    return status
