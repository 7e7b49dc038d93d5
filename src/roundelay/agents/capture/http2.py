"""gRPC's messages in one direction of a connection in the open: HTTP/2 frames, and lengths before the messages in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from roundelay.agents.capture.tcp import Stream

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADER = 9
_PREFIX = struct.Struct(">BI")  # whether the message is compressed, and its length
_DATA, _SETTINGS = 0, 4
_PADDED = 0x08


class Frame(NamedTuple):
    """An HTTP/2 frame."""

    kind: int
    flags: int
    stream: int
    payload: memoryview


def frames_of(data: bytes) -> Iterator[Frame]:
    """The frames in bytes that begin with one; what is left of one at the end is not there."""
    view, place = memoryview(data), 0
    while place + _HEADER <= len(view):
        length, kind, flags = int.from_bytes(view[place : place + 3]), view[place + 3], view[place + 4]
        stream = int.from_bytes(view[place + 5 : place + 9]) & 0x7FFFFFFF
        end = place + _HEADER + length
        if end > len(view):
            return
        yield Frame(kind, flags, stream, view[place + _HEADER : end])
        place = end


def speaks_http2(data: bytes) -> bool:
    """Whether a direction begins as HTTP/2 does: with the preface where it is the client's, and then the settings."""
    first = data[len(PREFACE) :] if data.startswith(PREFACE) else data
    return len(first) >= _HEADER and first[3] == _SETTINGS and not any(first[5:9])


def messages_of(data: bytes) -> Iterator[bytes]:
    """The messages in bytes that begin with a frame, or with the preface; compressed ones are left out."""
    waiting: dict[int, bytearray] = {}
    for frame in frames_of(data[len(PREFACE) :] if data.startswith(PREFACE) else data):
        if frame.kind != _DATA:
            continue
        held = waiting.setdefault(frame.stream, bytearray())
        held += _without_padding(frame)
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


def messages_of_stream(stream: Stream, mark: bytes) -> Iterator[bytes]:
    """The messages of one direction. After a gap, reading goes on at the first message that begins with `mark`.

    So it does where the capture began later than the connection. What does not begin as HTTP/2 has none.
    """
    for piece in stream.pieces:
        if stream.begun and piece.offset == 0:
            if not speaks_http2(piece.data):
                return
            yield from messages_of(piece.data)
        else:
            start = _first_marked(piece.data, mark)
            if start is not None:
                yield from messages_of(piece.data[start:])


def _first_marked(data: bytes, mark: bytes) -> int | None:
    """Where the first data frame begins that holds a message which begins with `mark`."""
    before = _HEADER + _PREFIX.size
    place = data.find(mark, before)
    while place >= 0:
        start = place - before
        if data[start + 3] == _DATA and not data[start + 4] & _PADDED and not data[place - _PREFIX.size]:
            return start
        place = data.find(mark, place + 1)
    return None


def _without_padding(frame: Frame) -> memoryview:
    payload = frame.payload
    if not frame.flags & _PADDED or not payload:
        return payload
    return payload[1 : max(len(payload) - payload[0], 1)]
