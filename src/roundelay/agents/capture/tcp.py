"""The bytes that went along each direction of each TCP connection, from segments in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from roundelay.agents.capture.headers import Endpoint, Segment

_NUMBERS = 2**32
_HALF = 2**31


class Piece(NamedTuple):
    """Bytes without a gap among them; `offset` counts from the first of the direction that is known."""

    offset: int
    data: bytes


@dataclass(frozen=True)
class Stream:
    """One direction of a connection.

    `pieces` are what is there of it, in order. `begun` says whether its first byte is known, because the connection was
    seen to be made. `missing` is how many bytes the gaps have that the sequence numbers show, the last one among them.
    """

    source: Endpoint
    destination: Endpoint
    pieces: tuple[Piece, ...]
    begun: bool
    missing: int


class _Placed(NamedTuple):
    offset: int
    arrival: int
    length: int
    payload: bytes


def streams_of(segments: Iterable[Segment]) -> list[Stream]:
    """Every direction of every connection, in the order in which they were first seen."""
    flows: dict[tuple[Endpoint, Endpoint], list[Segment]] = {}
    for segment in segments:
        flows.setdefault((segment.source, segment.destination), []).append(segment)
    return [
        _assembled(*ends, group) for ends, several in flows.items() for group in _connections(several) if group
    ]  # fmt: skip


def _connections(segments: list[Segment]) -> list[list[Segment]]:
    """The segments of each connection between two ports: another start makes another connection.

    What was seen before the first start belongs to it, too: packets overtake each other.
    """
    groups: list[list[Segment]] = [[]]
    start: int | None = None
    for segment in segments:
        if segment.syn:
            if start is not None and segment.sequence != start:
                groups.append([])
            start = segment.sequence
        groups[-1].append(segment)
    return groups


def _assembled(source: Endpoint, destination: Endpoint, segments: list[Segment]) -> Stream:
    placed, begun = _placed(segments)
    pieces: list[Piece] = []
    parts: list[bytes] = []
    first = end = missing = 0
    for offset, _, _, payload in placed:
        if offset > end:
            _close(pieces, first, parts)
            missing += offset - end
            first = end = offset
        if offset + len(payload) > end:
            parts.append(payload[end - offset :])
            end = offset + len(payload)
    _close(pieces, first, parts)
    # Of the last segment, too, less may have been kept than was sent.
    furthest = max((offset + length for offset, _, length, _ in placed), default=0)
    return Stream(source, destination, tuple(pieces), begun, missing + max(furthest - end, 0))


def _close(pieces: list[Piece], offset: int, parts: list[bytes]) -> None:
    if parts:
        pieces.append(Piece(offset, b"".join(parts)))
    parts.clear()


def _placed(segments: list[Segment]) -> tuple[list[_Placed], bool]:
    """The segments with data, by where their bytes belong, counted from the first byte of the connection."""
    origin = next((segment.sequence + 1 for segment in segments if segment.syn), None)
    furthest = 0
    base = segments[0].sequence if origin is None else origin
    found: list[_Placed] = []
    for arrival, segment in enumerate(segments):
        # Numbers wrap around after 4 GiB; the right one is that nearest to the furthest so far.
        number = segment.sequence + segment.syn - base
        offset = furthest + (number - furthest + _HALF) % _NUMBERS - _HALF
        if segment.length:
            found.append(_Placed(offset, arrival, segment.length, segment.payload))
        furthest = max(furthest, offset)
    if origin is None and found:
        lowest = min(one.offset for one in found)
        found = [one._replace(offset=one.offset - lowest) for one in found]
    # A probe whether the other end is still there repeats a number from before the first byte.
    kept = [
        one if one.offset >= 0 else _Placed(0, one.arrival, one.length + one.offset, one.payload[-one.offset :])
        for one in found
        if one.offset + one.length > 0
    ]
    return sorted(kept, key=lambda one: one[:2]), origin is not None
