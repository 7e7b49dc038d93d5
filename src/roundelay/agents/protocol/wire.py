"""What crosses a link: frames, each with the run, the epoch, the counter k and a checksum.

| kind | what it says | body |
|---|---|---|
| HELLO | I speak this version, stand in this epoch, and have this ring file | its digest, and what crossed this link last |
| BATON | here is hand-over k | the baton |
| ACK | hand-over k is in my journal | – |
| REFUSAL | I do not take hand-over k, and why | a sentence |
| PING, PONG | are you there? yes | – |
| RECEIPT | what crossed this link up to now, I sign | a receipt |

Only a baton can be packed into one: an agent's own state has no way onto a link.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from roundelay.tables import harmless

try:
    from xxhash import xxh3_64_intdigest
except ImportError:
    raise ImportError(
        "The frames of a ring need the package xxhash: install it by pip install 'roundelay[ring]'."
    ) from None

MAGIC = b"RNDL"
VERSION = 4
SENTENCE = 1000  # bytes of a refusal, at most

_HEADER = struct.Struct("<4sBBHI16sQQI")
HEADER_BYTES = _HEADER.size


class Kind(IntEnum):
    """What a frame says."""

    HELLO = 0
    BATON = 1
    ACK = 2
    REFUSAL = 3
    PING = 4
    PONG = 5
    RECEIPT = 6


_KINDS = {int(kind): kind for kind in Kind}


class FrameError(ValueError):
    """Bytes that are no frame of this run, for the reason that the sentence gives."""


class Frame(NamedTuple):
    """A frame as it came in; `checksum` covers all of it."""

    kind: Kind
    epoch: int
    k: int
    body: memoryview
    checksum: int


def checksum_of(data: bytes | memoryview, start: int = 0) -> int:
    """32 bits of XXH3 of the bytes, continued from another checksum."""
    return xxh3_64_intdigest(data, start) & 0xFFFFFFFF


def pack_frame(
    kind: Kind, run: bytes, epoch: int, k: int, head: bytes = b"", numbers: bytes | memoryview = b""
) -> bytes:
    """The bytes of a frame, whose body is a short head and perhaps many numbers, which are copied once."""
    header = _HEADER.pack(MAGIC, VERSION, kind, len(head), epoch, run, k, len(head) + len(numbers), 0)[:-4]
    checksum = checksum_of(numbers, checksum_of(head, checksum_of(header)))
    return b"".join((header, checksum.to_bytes(4, "little"), head, numbers))


def unpack_frame(data: bytes, run: bytes) -> Frame:
    """Read a frame. Nothing is allocated for what its header claims: the body is a view of what came."""
    if len(data) < HEADER_BYTES:
        raise FrameError(f"A frame of {len(data)} bytes is shorter than its header.")
    magic, version, kind, head, epoch, whose, k, length, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise FrameError("These bytes are not from a roundelay ring.")
    if version != VERSION:
        raise FrameError(
            f"The other agent speaks version {version} of the protocol, this one version {VERSION}: update the older one."
        )
    if length != len(data) - HEADER_BYTES:
        raise FrameError(f"The frame claims {length} bytes, but {len(data) - HEADER_BYTES} came.")
    view = memoryview(data)
    begin = HEADER_BYTES + head
    if (
        checksum_of(view[begin:], checksum_of(view[HEADER_BYTES:begin], checksum_of(view[: HEADER_BYTES - 4])))
        != checksum
    ):
        raise FrameError("The checksum of a frame is wrong: it was damaged on the way.")
    if whose != run:
        raise FrameError(f"The frame belongs to another run, {whose.hex()}.")
    if kind not in _KINDS:
        raise FrameError(f"The frame is of an unknown kind, {kind}.")
    body = view[HEADER_BYTES:]
    if kind not in (Kind.HELLO, Kind.BATON, Kind.REFUSAL, Kind.RECEIPT) and length:
        raise FrameError(f"A frame of the kind {Kind(kind).name} has no body, but this one has {length} bytes.")
    return Frame(_KINDS[kind], epoch, k, body, checksum)


def pack_sentence(text: str) -> bytes:
    """A sentence short enough to travel."""
    return text.encode()[:SENTENCE]


def unpack_sentence(body: memoryview) -> str:
    """A sentence, as harmless text."""
    return harmless(bytes(body[:SENTENCE]).decode(errors="replace"))
