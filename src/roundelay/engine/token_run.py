"""Run a token method: the lap of a sealed start, the hops, and the lap of a frozen token once all agents are content."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.parts.starts import SealedSum
from roundelay.algorithms.token_method import TokenMethod, vectors_of
from roundelay.engine.assemble import Prepared, token_assembly
from roundelay.engine.checks import (
    Options,
    check_balance,
    check_detours,
    check_reader,
    check_stopping,
    check_words,
    hops_within,
    marks_of,
    marks_up_to,
    steps_of,
)
from roundelay.engine.drive import Driver, Request, deferred_interrupt, steps_of_rows
from roundelay.engine.result import HistoryRows, Journey, Run, StopKind, bytes_a_message, outcome_in_words
from roundelay.engine.state import State, new_state
from roundelay.engine.token_loop import ALL_CONTENT, RUNNING, UNITS
from roundelay.kernels import Integers, Matrix, Part, Vector
from roundelay.masks import FixedPoint, SeededPairs, pads
from roundelay.networks import Network
from roundelay.networks.walks import Walk
from roundelay.transcripts import SealedLap, Transcript, joined, sealed_lap


def run_token(request: Request, begun: State | None = None) -> Run:
    """Make the hops until there is a reason to stop, and what is left of them; from a state that has `begun`, the rest of them."""
    method: TokenMethod = request.method
    problem, network, seed, options, name = (
        request.problem, request.network, request.seed, request.options, request.name,
    )  # fmt: skip
    noise = 0.0 if options.conditions is None else options.conditions.noise
    asked = steps_of(options, "hops", name)
    check_reader(options.reader, problem.agents)
    check_stopping(options.tolerance, options.content, method, problem, name, noise)
    check_detours(options, method)
    hops, too_far = hops_within(options.budget, method, problem, network, seed, asked)
    marks = marks_up_to(hops, marks_of(options.record, asked, problem.dim))
    on_tour, wire = method.walk.is_tour, getattr(getattr(method, "defence", None), "wire", None)

    assembly = token_assembly(method, problem, network, options.conditions)
    driver = Driver(assembly, request, hops, "budget" if too_far else "hops")
    state = new_state(method, problem, network, seed, marks, options) if begun is None else begun.going_on(hops)
    if state.sealed is not None or wire is not None:
        check_words(f"{name} with {'masked links' if state.sealed is None else 'a sealed start'} sends", noise)
    if options.content is not None:
        check_balance(state.agents.share, state.mean_token, name)
    if state.sealed is not None and begun is None:
        first_lap = lap_from(network, first_agent(method.walk, network, seed))
        state.clock[UNITS] += _cost_of_lap(driver.prepared, state.links, first_lap, seed, 0, working=True)

    frozen_at: list[int] = []
    stop: StopKind | None = None
    with driver.under_way():
        while stop is None:
            until = driver.until(state)
            if options.transcript:
                state = state.with_room(until)
            status = driver.advance(state, until)
            if status == ALL_CONTENT:
                frozen_at.append(state.step)
                tour = lap_from(network, int(network.tour().order[0]))
                state.clock[UNITS] += _cost_of_lap(
                    driver.prepared, state.links, tour, seed, len(frozen_at), working=False
                )
                if not _all_confirm(state, driver.prepared):
                    state.rule.tally[:] = state.rule.tally[0] + 1, 0  # the agents are counted anew
                    status = RUNNING
            stop = driver.reason_to_stop(state, status)
    driver.write_last_row(state)

    last = _last_messages(state, method.walk.part(network), seed)
    # So far the messages that are still under way were counted at a unit a vector.
    state.clock[UNITS] += vectors_of(method) * sum(message.cost - 1 for message in last)
    transcript = None
    if options.transcript:
        first_lap = lap_from(network, first_agent(method.walk, network, seed))
        plain = _transcript_of(state, frozen_at, last, network)
        transcript = _with_words(plain, first_lap, state.sealed, wire, seed)
    last_lap = len(network.tour().order) if options.content is not None else 0
    scale = float(method.token_scale(problem.agents))
    keeps_invariant = method.mean_token(state.agents.x, state.agents.y) is not None
    return Run(
        algorithm=request.algorithm,
        seed=seed,
        engine=driver.prepared.engine,
        engine_reason=driver.prepared.reason,
        outcome=outcome_in_words(stop, state.step, "hop", options.tolerance, options.content, last_lap, too_far),
        stop=stop,
        steps=state.step,
        units=int(state.clock[UNITS]),
        estimate=method.regulariser.prox(state.mean_token, scale),
        x=state.agents.x,
        y=state.agents.y,
        optimum=state.optimum,
        record=_history_rows(state, driver.columns).against(state.optimum),
        journey=Journey(
            state.trail.tokens,
            state.agents.visits,
            network.tour().words if on_tour else "",
            _received_by_reader(state, last),
            options.reader,
            on_tour and noise == 0.0 and keeps_invariant,
            scale,
        ),
        transcript=transcript,
        conditions=options.conditions,
        problem=problem,
        regulariser=method.regulariser,
        resume=None if _ends_of_itself(options) else partial(_resumed, request, state),
    )


def _ends_of_itself(options: Options) -> bool:
    """Whether what was asked of a run is over once it has ended: a budget that is spent, monitors that have looked, agents that agreed to stop."""
    return options.budget is not None or options.content is not None or bool(options.monitors)


def _resumed(request: Request, state: State, steps: int) -> Run:
    with deferred_interrupt() as interrupt:
        more = replace(request.options, hops=state.step + steps, record=None)
        return run_token(replace(request, options=more, interrupt=interrupt), state)


# ---------------------------------------------------------------- laps besides the hops

# Hops with numbers from here on belong to laps besides the hops, so that their draws are their own.
LAPS = 2**40


class Lap(NamedTuple):
    """The agents of one lap in order, and where each is met first."""

    order: Integers
    works: NDArray[np.bool_]


def first_agent(walk: Walk, network: Network, seed: int) -> int:
    """Who has the token first."""
    part, place = walk.part(network), walk.first_places(network, seed, 1)[0]
    return int(dict(part.functions)["agent_at"](part.numbers, int(place)))


def lap_from(network: Network, first: int) -> Lap:
    """The network's tour, from one of its agents on."""
    return lap_along(network.tour().order, first)


def lap_along(order: Integers, first: int) -> Lap:
    """A tour, from one of its agents on."""
    return lap_at(order, int(np.flatnonzero(order == first)[0]))


def lap_at(order: Integers, place: int) -> Lap:
    """A tour, from one of its places on: an agent may have several."""
    order = np.roll(order, -place)
    works = np.zeros(len(order), np.bool_)
    works[np.unique(order, return_index=True)[1]] = True
    return Lap(order, works)


def _cost_of_lap(prepared: Prepared, links: Any, lap: Lap, seed: int, number: int, working: bool) -> int:
    """What lap `number` costs in units; its time passes, with that of the agents' work where they do any."""
    functions, conditions = prepared.functions(), prepared.numbers[3]
    first, units = LAPS + number * len(lap.order), 0
    for place, (sender, receiver) in enumerate(zip(lap.order.tolist(), np.roll(lap.order, -1).tolist(), strict=True)):
        if working and lap.works[place]:
            functions.work(conditions, links, seed, first + place, 0, sender)
        attempts = 0
        while attempts == 0:
            attempts = int(functions.cross(conditions, links, seed, first + place, 0, sender, receiver))
        units += attempts
    return units


def _all_confirm(state: State, prepared: Prepared) -> bool:
    """The last lap: the frozen token goes round once more, and every agent says whether it is in balance with it.

    While the agents were being counted the token still moved a little. With the token frozen, the mean of what
    they find is the gradient of the mean function there, so a stop is right, not just likely.
    """
    agents, unrest, token = len(state.agents.x), prepared.functions().unrest, state.trail.tokens[0]
    problem, method = prepared.numbers[:2]
    return all(
        unrest(problem, method, i, agents, token, state.agents.share[i]) <= state.rule.content for i in range(agents)
    )


# ---------------------------------------------------------------- what is made of a run that has ended


def _history_rows(state: State, monitors: dict[str, Vector]) -> HistoryRows:
    """The rows of the history."""
    log, rows = state.log, state.rows
    units = log.units[:rows].copy()
    seconds = log.seconds[:rows].copy()
    units[-1], seconds[-1] = state.clock[UNITS], state.seconds  # with the lap of a frozen token, if there was one
    return HistoryRows(
        steps_of_rows(state),
        units,
        units * bytes_a_message(log.tokens.shape[1]),
        seconds,
        log.accuracy[:rows].copy(),
        log.error[:rows].copy(),
        log.consensus[:rows].copy(),
        log.tokens[:rows].copy(),
        monitors,
    )


@dataclass(frozen=True)
class LastMessage:
    """The last message of a token, sent at `hop`: who is about to receive it, whether it will work on it, and the cost."""

    hop: int
    receiver: int
    works: bool
    cost: int


def _last_messages(state: State, walk: Part, seed: int) -> list[LastMessage]:
    """Where each token is going, found as the loop would: one after another, counting the visits."""
    functions, numbers, tokens = dict(walk.functions), walk.numbers, len(state.trail.tokens)
    visits, messages = state.agents.visits.copy(), []
    for hop in range(state.step, state.step + tokens):
        place = int(state.trail.places[hop % tokens])
        if hop < tokens:  # a token that has not yet made its first visit, in place
            visits[int(functions["agent_at"](numbers, place))] += bool(functions["works"](numbers, place))
            continue
        following = int(functions["advance"](numbers, seed, hop, place, visits))
        receiver, works = int(functions["agent_at"](numbers, following)), bool(functions["works"](numbers, following))
        visits[receiver] += works
        cost = int(functions["move_cost"](numbers, place, following))
        messages.append(LastMessage(hop - tokens, receiver, works, cost))
    return messages


def _received_by_reader(state: State, last: list[LastMessage]) -> Matrix:
    """The tokens that the reader has received, with those just sent to it."""
    tokens, reader = state.trail.tokens, state.reader.agent
    arriving = [tokens[message.hop % len(tokens)] for message in last if message.works and message.receiver == reader]
    return np.vstack([state.received, *arriving])


def _transcript_of(state: State, frozen_at: list[int], last: list[LastMessage], network: Network) -> Transcript:
    """The messages of the hops, and between them those of the laps in which a frozen token went round."""
    post = state.post
    for message in last:
        post.receiver[message.hop] = message.receiver

    def messages(begin: int, end: int) -> Transcript:
        own = slice(begin, end)
        relayed = post.relayed[own] == 1
        carried = np.concatenate(
            [post.tokens[own], post.cargo[own].reshape(end - begin, math.prod(post.cargo.shape[1:]))], axis=1
        )
        return Transcript(np.arange(begin, end), post.sender[own], post.receiver[own], relayed, carried)

    pieces, begin = [], 0
    for frozen in frozen_at:
        holder, token = int(post.receiver[frozen - 1]), post.tokens[frozen - 1]
        pieces += [messages(begin, frozen), _frozen_lap(lap_from(network, holder), frozen, token)]
        begin = frozen
    return joined([*pieces, messages(begin, state.step)])


def _frozen_lap(lap: Lap, hop: int, token: Vector) -> Transcript:
    """The lap of a frozen token: from the agent that holds it once round the tour."""
    senders, count = lap.order, len(lap.order)
    return Transcript(
        np.full(count, hop), senders, np.roll(senders, -1), np.ones(count, bool), np.tile(token, (count, 1))
    )


def _with_words(
    transcript: Transcript, lap: Lap, sealed: SealedSum | None, wire: FixedPoint | None, seed: int
) -> Transcript:
    """The transcript with the messages of a sealed start, and with what crossed the links where these are masked."""
    messages = (
        None if sealed is None else sealed_lap(lap.order, lap.works, sealed.contributions, FixedPoint(sealed.bits))
    )
    if wire is None:
        return replace(transcript, sealed=messages)
    wire.check(transcript.tokens, what="The largest coordinate of a token")
    before = 0 if messages is None else len(messages)
    numbers = before + np.arange(len(transcript))
    padded = wire.encode(transcript.tokens) + _pads(transcript, numbers, transcript.tokens.shape[1], seed)
    if messages is not None:
        own = _pads(messages, messages.place, messages.words.shape[1], seed)
        messages = replace(messages, wire=messages.words + own)
    return replace(transcript, sealed=messages, wire=padded, wire_bits=wire.bits)


def _pads(messages: Transcript | SealedLap, numbers: Integers, dim: int, seed: int) -> NDArray[np.uint64]:
    return pads(SeededPairs(seed), messages.sender, messages.receiver, numbers, dim)
