"""Packets from a capture file: the classic pcap format, in either byte order, to the microsecond or to the nanosecond."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

# What the first four bytes say: the byte order, and how many nanoseconds a unit of the fraction has.
_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
PCAPNG = b"\x0a\x0d\x0d\x0a"
SECOND = 10**9
SNAP = 262_144  # what a capture keeps of a packet at most; none on a link is larger
_REST_OF_HEADER, _RECORD = "HHiIII", "IIII"


class Packet(NamedTuple):
    """A packet: when it was seen, in nanoseconds since 1970, how it begins (link type), and what was kept of its bytes."""

    time: int
    link: int
    data: bytes


def read_packets(path: str | Path) -> Iterator[Packet]:
    """The packets of a pcap or pcapng file, in the order in which they stand there.

    A file that is none, or is damaged, is refused by a ValueError, perhaps only after the packets before the damage.
    """
    from roundelay.agents.capture.pcapng import blocks_of, packets_of_blocks

    source = Path(path)
    if not source.is_file():
        raise ValueError(f"There is no file {source}: give the path of a capture, such as tcpdump -w writes.")
    with open(source, "rb") as file:
        magic = file.read(4)
        if magic in _MAGICS:
            yield from _classic(file, source, *_MAGICS[magic])
        elif magic == PCAPNG:
            file.seek(0)
            yield from packets_of_blocks(blocks_of(file, source), source)
        else:
            raise ValueError(f"{source} is not a capture: give a pcap or pcapng file, such as tcpdump -w writes.")


def read_exactly(file: BinaryIO, count: int) -> bytes | None:
    """So many bytes; None where the file has fewer, however many are claimed: nothing is allocated for a claim."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    return file.read(count) if count <= left else None


def _cut_off(source: Path, number: int) -> ValueError:
    return ValueError(f"{source} ends in the middle of packet {number}, or is damaged there: capture it again.")


def _classic(file: BinaryIO, source: Path, order: str, unit: int) -> Iterator[Packet]:
    header, record = struct.Struct(order + _REST_OF_HEADER), struct.Struct(order + _RECORD)
    head = read_exactly(file, header.size)
    if head is None:
        raise ValueError(f"{source} ends within its header: capture it again.")
    # The upper half of the link type may say something of checksums, which nobody needs here.
    link, number = header.unpack(head)[-1] & 0xFFFF, 0
    while about := file.read(record.size):
        number += 1
        if len(about) < record.size:
            raise _cut_off(source, number)
        seconds, fraction, kept, _whole = record.unpack(about)
        data = read_exactly(file, kept)
        if data is None:
            raise _cut_off(source, number)
        yield Packet(seconds * SECOND + fraction * unit, link, data)


def pcap_header(link: int) -> bytes:
    """How a classic file begins, in little-endian order and with nanoseconds."""
    return struct.pack("<I" + _REST_OF_HEADER, 0xA1B23C4D, 2, 4, 0, 0, SNAP, link)


def pcap_record(time: int, data: bytes) -> bytes:
    """A packet as it stands in such a file."""
    seconds, fraction = divmod(time, SECOND)
    return struct.pack("<" + _RECORD, seconds, fraction, len(data), len(data)) + data
