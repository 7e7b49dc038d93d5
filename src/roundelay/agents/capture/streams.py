"""What went along a connection in the open: its bytes, put together from TCP segments, and the gRPC messages in them.

A message stands behind its length in the data frames of HTTP/2, which are read by hyperframe.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hyperframe.exceptions import HyperframeError
from hyperframe.frame import DataFrame, Frame, SettingsFrame

from roundelay.agents.capture.packets import Endpoint, Segment

_NUMBERS = 2**32
_HALF = 2**31
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADER = 9  # of a frame
_PREFIX = struct.Struct(">BI")  # whether the message is compressed, and its length


# ------------------------------------------------------------ bytes from segments


class Stretch(NamedTuple):
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
    pieces: tuple[Stretch, ...]
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
    pieces: list[Stretch] = []
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


def _close(pieces: list[Stretch], offset: int, parts: list[bytes]) -> None:
    if parts:
        pieces.append(Stretch(offset, b"".join(parts)))
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


# ------------------------------------------------------------ messages from bytes


def messages_of_stream(stream: Stream, mark: bytes) -> Iterator[bytes]:
    """The messages of one direction. After a gap, reading goes on at the first message that begins with `mark`.

    So it does where the capture began later than the connection. What does not begin as HTTP/2 has none.
    """
    for piece in stream.pieces:
        if stream.begun and piece.offset == 0:
            if not _speaks_http2(piece.data):
                return
            yield from messages_of(piece.data)
        else:
            start = _first_marked(piece.data, mark)
            if start is not None:
                yield from messages_of(piece.data[start:])


def messages_of(data: bytes) -> Iterator[bytes]:
    """The messages in bytes that begin with a frame, or with the preface; compressed ones are left out."""
    waiting: dict[int, bytearray] = {}
    for frame in _data_frames(data.removeprefix(_PREFACE)):
        held = waiting.setdefault(frame.stream_id, bytearray())
        held += frame.data
        place = 0
        while place + _PREFIX.size <= len(held):
            compressed, length = _PREFIX.unpack_from(held, place)
            end = place + _PREFIX.size + length
            if end > len(held):
                break
            if not compressed:
                yield bytes(held[place + _PREFIX.size : end])
            place = end
        del held[:place]


def _data_frames(data: bytes) -> Iterator[DataFrame]:
    """The data frames in bytes that begin with a frame, up to the first that is not whole or contradicts HTTP/2."""
    view, place = memoryview(data), 0
    while (header := _header_at(view, place)) is not None:
        frame, length = header
        start, place = place + _HEADER, place + _HEADER + length
        if place > len(view):
            return
        if isinstance(frame, DataFrame):
            try:
                frame.parse_body(view[start:place])
            except HyperframeError:
                return
            yield frame


def _header_at(view: memoryview, place: int) -> tuple[Frame, int] | None:
    """The frame whose header is at a place, without its payload, and how long that is; None where there is none."""
    try:
        return Frame.parse_frame_header(view[place : place + _HEADER])
    except HyperframeError:
        return None


def _speaks_http2(data: bytes) -> bool:
    """Whether a direction begins as HTTP/2 does: with the preface where it is the client's, and then the settings."""
    header = _header_at(memoryview(data.removeprefix(_PREFACE)), 0)
    return header is not None and isinstance(header[0], SettingsFrame)


def _first_marked(data: bytes, mark: bytes) -> int | None:
    """Where the first data frame begins that holds a message which begins with `mark`."""
    view, before = memoryview(data), _HEADER + _PREFIX.size
    place = data.find(mark, before)
    while place >= 0:
        header = _header_at(view, place - before)
        frame = None if header is None else header[0]
        if isinstance(frame, DataFrame) and "PADDED" not in frame.flags and not data[place - _PREFIX.size]:
            return place - before
        place = data.find(mark, place + 1)
    return None
