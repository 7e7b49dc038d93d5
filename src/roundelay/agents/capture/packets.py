"""What a capture file holds: packets, in a pcap or a pcapng file, and the TCP segments in them.

Read here and by no library, since damage must be told in a sentence and a time kept to its nanosecond: dpkt 1.9.8 takes a
file cut off within a packet for a whole one, and has times as floats; python-pcapng 2.1.1 fails by a KeyError and takes five
times as long. A segment takes four times as long with dpkt, and the sniffer has to keep up with what crosses the link.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

# What the first four bytes say: the byte order, and how many nanoseconds a unit of the fraction has.
_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_SECOND = 10**9
SNAP = 262_144  # what a capture keeps of a packet at most; none on a link is larger
_REST_OF_HEADER, _RECORD = "HHiIII", "IIII"
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_RESOLUTION = 9  # the option that says how fine the clock is
_MICROSECONDS = 10**6
# How the packets of a link begin: the types that are read here.
ETHERNET = 1
_NULL, _LOOP, _COOKED, _COOKED_2 = 0, 108, 113, 276
_BARE = (12, 14, 101, 228, 229)  # raw on BSD, on OpenBSD and elsewhere, IPv4, IPv6
LINKS = (ETHERNET, _NULL, _LOOP, _COOKED, _COOKED_2, *_BARE)
_IP_TYPES = (0x0800, 0x86DD)
_VLAN_TYPES = (0x8100, 0x88A8)
_TCP = 6
_EXTENSIONS = (0, 43, 60)  # hop-by-hop, routing and destination options: each says how long it is
_SYN = 0x02


class Packet(NamedTuple):
    """A packet: when it was seen, in nanoseconds since 1970, how it begins (link type), and what was kept of its bytes."""

    time: int
    link: int
    data: bytes


def read_packets(path: str | Path) -> Iterator[Packet]:
    """The packets of a pcap or pcapng file, in the order in which they stand there.

    A file that is none, or is damaged, is refused by a ValueError, perhaps only after the packets before the damage.
    """
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"There is no file {source}: give the path of a capture, such as tcpdump -w writes.")
    with open(source, "rb") as file:
        magic = file.read(4)
        if magic in _MAGICS:
            yield from _classic(file, source, *_MAGICS[magic])
        elif magic == _PCAPNG:
            file.seek(0)
            yield from _packets_of_blocks(_blocks_of(file, source), source)
        else:
            raise ValueError(f"{source} is not a capture: give a pcap or pcapng file, such as tcpdump -w writes.")


def _read_exactly(file: BinaryIO, count: int) -> bytes | None:
    """So many bytes; None where the file has fewer, however many are claimed: nothing is allocated for a claim."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    return file.read(count) if count <= left else None


# ------------------------------------------------------------ pcap


def _cut_off(source: Path, number: int) -> ValueError:
    return ValueError(f"{source} ends in the middle of packet {number}, or is damaged there: capture it again.")


def _classic(file: BinaryIO, source: Path, order: str, unit: int) -> Iterator[Packet]:
    header, record = struct.Struct(order + _REST_OF_HEADER), struct.Struct(order + _RECORD)
    head = _read_exactly(file, header.size)
    if head is None:
        raise ValueError(f"{source} ends within its header: capture it again.")
    # The upper half of the link type may say something of checksums, which nobody needs here.
    link, number = header.unpack(head)[-1] & 0xFFFF, 0
    while about := file.read(record.size):
        number += 1
        if len(about) < record.size:
            raise _cut_off(source, number)
        seconds, fraction, kept, _whole = record.unpack(about)
        data = _read_exactly(file, kept)
        if data is None:
            raise _cut_off(source, number)
        yield Packet(seconds * _SECOND + fraction * unit, link, data)


def pcap_header(link: int) -> bytes:
    """How a classic file begins, in little-endian order and with nanoseconds."""
    return struct.pack("<I" + _REST_OF_HEADER, 0xA1B23C4D, 2, 4, 0, 0, SNAP, link)


def pcap_record(time: int, data: bytes) -> bytes:
    """A packet as it stands in such a file."""
    seconds, fraction = divmod(time, _SECOND)
    return struct.pack("<" + _RECORD, seconds, fraction, len(data), len(data)) + data


# ------------------------------------------------------------ pcapng


class _Block(NamedTuple):
    """A block: the byte order of its section, its kind, and what stands in it."""

    order: str
    kind: int
    body: bytes


class _Interface(NamedTuple):
    link: int
    ticks: int  # in a second
    snap: int


def _blocks_of(file: BinaryIO, source: Path) -> Iterator[_Block]:
    """The blocks of a file that begins with one of a section."""
    order, number = "", 0
    while head := file.read(8):
        number += 1
        damaged = ValueError(f"Block {number} of {source} is damaged, or the file ends in it: capture it again.")
        if len(head) < 8:
            raise damaged
        opening = b""
        if head[:4] == _PCAPNG:  # reads the same in both byte orders, and says which it is
            opening = _read_exactly(file, 4) or b""
            order = _ORDERS.get(opening, "")
        if not order:
            raise damaged
        kind, length = struct.unpack(order + "II", head)
        if length % 4 or length < 12 + len(opening):
            raise damaged
        rest = _read_exactly(file, length - 8 - len(opening))
        if rest is None or struct.unpack(order + "I", rest[-4:])[0] != length:
            raise damaged
        yield _Block(order, kind, rest[:-4])


def _packets_of_blocks(blocks: Iterable[_Block], source: Path) -> Iterator[Packet]:
    """The packets among blocks; each interface of a section has its link type and its clock."""
    interfaces: list[_Interface] = []
    for order, kind, body in blocks:
        try:
            if kind == _SECTION:
                interfaces = []
            elif kind == _INTERFACE:
                interfaces.append(_interface(order, body))
            elif kind == _ENHANCED:
                which, high, low, kept, _whole = struct.unpack_from(order + "IIIII", body)
                link, ticks, _ = interfaces[which]
                if kept > len(body) - 20:
                    raise IndexError
                yield Packet((high << 32 | low) * _SECOND // ticks, link, body[20 : 20 + kept])
            elif kind == _SIMPLE:
                (whole,) = struct.unpack_from(order + "I", body)
                link, _, snap = interfaces[0]
                yield Packet(0, link, body[4 : 4 + (min(whole, snap) if snap else whole)])
        except (struct.error, IndexError):
            raise ValueError(
                f"A block of {source} contradicts itself: the file is damaged. Capture it again."
            ) from None


def _interface(order: str, body: bytes) -> _Interface:
    link, _, snap = struct.unpack_from(order + "HHI", body)
    ticks, place = _MICROSECONDS, 8
    while place + 4 <= len(body):
        option, length = struct.unpack_from(order + "HH", body, place)
        if option == _RESOLUTION and length == 1 and place + 5 <= len(body):
            power = body[place + 4]
            ticks = 2 ** (power & 0x7F) if power & 0x80 else 10**power
        place += 4 + length + -length % 4
    return _Interface(link, ticks, snap)


# ------------------------------------------------------------ the segment in a packet


class Endpoint(NamedTuple):
    """One end of a connection."""

    address: bytes
    port: int


class Segment(NamedTuple):
    """A TCP segment: `payload` is what was kept of its `length` bytes, which begin at number `sequence`."""

    source: Endpoint
    destination: Endpoint
    sequence: int
    syn: bool
    length: int
    payload: bytes


def segment_of(packet: Packet) -> Segment | None:
    """The segment in a packet; None where there is no TCP in it, or its headers were not kept whole."""
    try:
        inner = _network_layer(packet)
        if inner is None:
            return None
        version = inner[0] >> 4
        return _in_ipv4(inner) if version == 4 else _in_ipv6(inner) if version == 6 else None
    except (struct.error, IndexError):
        return None


def _network_layer(packet: Packet) -> bytes | None:
    link, data = packet.link, packet.data
    if link in _BARE:
        return data
    if link in (_NULL, _LOOP):
        return data[4:]  # the family of addresses, which the IP header says as well
    place = {ETHERNET: 12, _COOKED: 14, _COOKED_2: 0}.get(link)
    if place is None:
        return None
    (kind,) = struct.unpack_from(">H", data, place)
    place += 2
    while kind in _VLAN_TYPES:
        (kind,) = struct.unpack_from(">H", data, place + 2)
        place += 4
    return data[20 if link == _COOKED_2 else place :] if kind in _IP_TYPES else None


def _in_ipv4(data: bytes) -> Segment | None:
    words, total, fragment, protocol = data[0] & 0x0F, *struct.unpack_from(">H2xHxB", data, 2)
    # A part of a packet has no header of its own; the gap that it leaves is noticed by the sequence numbers.
    if words < 5 or protocol != _TCP or fragment & 0x3FFF:
        return None
    # A packet that the kernel has not cut into pieces yet may be too long to say so.
    end = total or len(data)
    return _segment(data[12:16], data[16:20], data[4 * words : end], end - 4 * words)


def _in_ipv6(data: bytes) -> Segment | None:
    length, following = struct.unpack_from(">HB", data, 4)
    end = 40 + length if length else len(data)
    place = 40
    while following in _EXTENSIONS:
        following, place = data[place], place + 8 * (data[place + 1] + 1)
    if following != _TCP:
        return None
    return _segment(data[8:24], data[24:40], data[place:end], end - place)


def _segment(source: bytes, destination: bytes, data: bytes, length: int) -> Segment | None:
    sender, receiver, sequence, words, flags = struct.unpack_from(">HHI4xBB", data)
    header = 4 * (words >> 4)
    if header < 20 or length < header:
        return None
    return Segment(
        Endpoint(source, sender), Endpoint(destination, receiver), sequence, bool(flags & _SYN), length - header, data[header:]
    )  # fmt: skip
