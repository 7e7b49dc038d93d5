"""The TCP segment in a packet: the headers of the link, of IPv4 or IPv6 and of TCP, one inside the other."""

from __future__ import annotations

import struct
from typing import NamedTuple

from roundelay.agents.capture.pcap import Packet

NULL, ETHERNET, RAW_BSD, RAW_OPENBSD, RAW, LOOP, COOKED, IPV4, IPV6, COOKED_2 = (
    0,
    1,
    12,
    14,
    101,
    108,
    113,
    228,
    229,
    276,
)
_BARE = (RAW_BSD, RAW_OPENBSD, RAW, IPV4, IPV6)
_IP_TYPES = (0x0800, 0x86DD)
_VLAN_TYPES = (0x8100, 0x88A8)
_TCP = 6
_EXTENSIONS = (0, 43, 60)  # hop-by-hop, routing and destination options: each says how long it is
_SYN = 0x02
LINKS = (NULL, ETHERNET, LOOP, COOKED, COOKED_2, *_BARE)


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
    if link in (NULL, LOOP):
        return data[4:]  # the family of addresses, which the IP header says as well
    place = {ETHERNET: 12, COOKED: 14, COOKED_2: 0}.get(link)
    if place is None:
        return None
    (kind,) = struct.unpack_from(">H", data, place)
    place += 2
    while kind in _VLAN_TYPES:
        (kind,) = struct.unpack_from(">H", data, place + 2)
        place += 4
    return data[20 if link == COOKED_2 else place :] if kind in _IP_TYPES else None


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
