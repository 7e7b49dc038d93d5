"""What is made of a run that has ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.engine import token_loop as loop
from roundelay.engine.gossip_state import GossipState
from roundelay.engine.monitors import Monitor
from roundelay.engine.result import Record, StopKind, bytes_a_message
from roundelay.engine.state import State
from roundelay.kernels import Matrix, Part, Vector
from roundelay.networks import Network
from roundelay.transcripts import Transcript, joined


def outcome_in_words(
    stop: StopKind,
    steps: int,
    noun: str,
    tolerance: float | None,
    content: float | None = None,
    last_lap: int = 0,
    budget: str = "",
) -> str:
    """Why it stopped; `noun` is what the steps are called."""
    words: dict[StopKind, str] = {
        "hops": f"It made all {steps} hops that were asked for.",
        "iterations": f"It made all {steps} iterations that were asked for.",
        "tolerance": f"The error came down to {tolerance} after {steps} {noun}s.",
        "content": f"All agents were content within {content} after {steps} hops; "
        f"a last lap of {last_lap} hops carried the frozen token, and all confirmed.",
        "diverged": f"It diverged at {noun} {steps}: the states left all bounds.",
        "interrupted": f"It was interrupted after {steps} {noun}s; the state is whole.",
        "budget": f"It stopped after {steps} {noun}s to stay within its budget: {budget}.",
    }
    return words[stop]


def record_of(state: State, watched: list[tuple[float, ...]], monitors: Sequence[Monitor]) -> Record:
    """The rows of the history."""
    log, rows = state.log, state.rows
    units = log.units[:rows].copy()
    seconds = log.seconds[:rows].copy()
    units[-1], seconds[-1] = state.clock[loop.UNITS], state.seconds  # with the lap of a frozen token, if there was one
    return Record(
        _steps(state),
        units,
        units * bytes_a_message(log.tokens.shape[1]),
        seconds,
        log.accuracy[:rows].copy(),
        log.error[:rows].copy(),
        log.consensus[:rows].copy(),
        log.tokens[:rows].copy(),
        columns_of(watched, monitors),
    )


def gossip_record_of(state: GossipState, watched: list[tuple[float, ...]], monitors: Sequence[Monitor]) -> Record:
    """The rows of the history of a gossip method."""
    log, rows, dim = state.log, state.rows, state.log.means.shape[1]
    numbers, bits = log.numbers[:rows], log.bits[:rows]
    # As the literature counts: a number of a quantised message is worth 32 bits. On the wire a number takes 64.
    units: NDArray[Any] = numbers // dim if not (bits.any() or (numbers % dim).any()) else (numbers + bits / 32.0) / dim
    return Record(
        _steps(state),
        units,
        numbers * bytes_a_message(1) + -(-bits // 8),
        log.seconds[:rows].copy(),
        log.accuracy[:rows].copy(),
        log.error[:rows].copy(),
        log.consensus[:rows].copy(),
        log.means[:rows].copy(),
        columns_of(watched, monitors),
    )


def _steps(state: State | GossipState) -> NDArray[np.int64]:
    """The hop or iteration of each row."""
    step = np.append(state.marks[: state.rows], -1)[: state.rows]
    step[-1] = state.step
    return step


def columns_of(watched: list[tuple[float, ...]], monitors: Sequence[Monitor]) -> dict[str, Vector]:
    """What the monitors saw, column by column."""
    columns = [column for monitor in monitors for column in monitor.columns]
    return {column: np.array([row[k] for row in watched]) for k, column in enumerate(columns)}


@dataclass(frozen=True)
class Move:
    """The last message of a token, sent at `hop`: who is about to receive it, whether it will work on it, and the cost."""

    hop: int
    receiver: int
    works: bool
    cost: int


def next_moves(state: State, walk: Part, seed: int) -> list[Move]:
    """Where each token is going, found as the loop would: one after another, counting the visits."""
    functions, numbers, tokens = dict(walk.functions), walk.numbers, len(state.trail.tokens)
    visits, moves = state.agents.visits.copy(), []
    for hop in range(state.step, state.step + tokens):
        place = int(state.trail.places[hop % tokens])
        if hop < tokens:  # a token that has not yet made its first visit, in place
            visits[int(functions["agent_at"](numbers, place))] += bool(functions["works"](numbers, place))
            continue
        following = int(functions["advance"](numbers, seed, hop, place, visits))
        receiver, works = int(functions["agent_at"](numbers, following)), bool(functions["works"](numbers, following))
        visits[receiver] += works
        moves.append(Move(hop - tokens, receiver, works, int(functions["move_cost"](numbers, place, following))))
    return moves


def transcript_of(state: State, frozen_at: list[int], following: list[Move], network: Network) -> Transcript:
    """The messages of the hops, and between them those of the laps in which a frozen token went round."""
    post = state.post
    for move in following:
        post.receiver[move.hop] = move.receiver

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
        pieces += [messages(begin, frozen), _frozen_lap(network, frozen, holder, token)]
        begin = frozen
    return joined([*pieces, messages(begin, state.step)])


def _frozen_lap(network: Network, hop: int, first: int, token: Vector) -> Transcript:
    """The lap of a frozen token: from the agent that holds it once round the tour."""
    order = network.tour().order
    start = int(np.flatnonzero(order == first)[0])
    senders = np.roll(order, -start)
    count = len(order)
    return Transcript(
        np.full(count, hop), senders, np.roll(senders, -1), np.ones(count, bool), np.tile(token, (count, 1))
    )


def received_by_reader(state: State, following: list[Move]) -> Matrix:
    """The tokens that the reader has received, with those just sent to it."""
    tokens = state.trail.tokens
    arriving = [
        tokens[move.hop % len(tokens)] for move in following if move.works and move.receiver == state.reader.agent
    ]
    return np.vstack([state.received, *arriving])
