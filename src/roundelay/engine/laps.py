"""Laps besides the hops: that of a sealed start before them, and those of a frozen token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.parts.starts import SealedSum
from roundelay.engine.assemble import Prepared
from roundelay.kernels import Integers
from roundelay.masks import FixedPoint, SeededPairs, pads
from roundelay.networks import Network
from roundelay.networks.walks import Walk
from roundelay.transcripts import SealedLap, Transcript, sealed_lap

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


def cost_of_lap(prepared: Prepared, links: Any, lap: Lap, seed: int, number: int, working: bool) -> int:
    """What lap `number` costs in units; its time passes, with that of the agents' work where they do any."""
    functions, conditions = prepared.functions(), prepared.numbers[3]
    first, units = LAPS + number * len(lap.order), 0
    for place, (sender, receiver) in enumerate(zip(lap.order.tolist(), np.roll(lap.order, -1).tolist(), strict=True)):
        if working and lap.works[place]:
            functions.work(conditions, links, seed, first + place, 0, sender)
        units += int(functions.cross(conditions, links, seed, first + place, 0, sender, receiver))
    return units


def with_words(
    transcript: Transcript, lap: Lap, sealed: SealedSum | None, wire: FixedPoint | None, seed: int
) -> Transcript:
    """The transcript with the messages of a sealed start, and with what crossed the links where these are masked."""
    messages = None if sealed is None else sealed_lap(lap.order, lap.works, sealed.contributions, sealed.bits)
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
