"""Packets, capture files and cleartext gRPC connections, written from the specifications and not with the code that reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SYN, ACK = 0x02, 0x10


@dataclass(frozen=True)
class Way:
    """One direction of a connection between two ports of 127.0.0.1, or of ::1."""

    source: int
    destination: int
    ipv6: bool = False


def tcp(way: Way, sequence: int, payload: bytes, flags: int = ACK, options: int = 3) -> bytes:
    """A TCP segment in an IP packet."""
    head = struct.pack(
        ">HHIIBBHHH", way.source, way.destination, sequence % 2**32, 7, (5 + options) << 4, flags, 512, 0, 0
    )
    inner = head + bytes(4 * options) + payload
    if way.ipv6:
        one = bytes(15) + b"\1"
        return struct.pack(">IHBB", 6 << 28, len(inner), 6, 64) + one + one + inner
    one = b"\x7f\0\0\1"
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(inner), 1, 0x4000, 64, 6, 0) + one + one + inner


def ethernet(packet: bytes, vlan: bool = False) -> bytes:
    """An Ethernet frame, padded to its least length as a card does."""
    kind = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\0"
    return (bytes(12) + (b"\x81\0\0\5" if vlan else b"") + kind + packet).ljust(60, b"\xee")


def linked(link: int, packet: bytes) -> bytes:
    """A packet behind the header of its link."""
    ipv6 = packet[0] >> 4 == 6
    kind = b"\x86\xdd" if ipv6 else b"\x08\0"
    return {
        0: struct.pack("<I", 10 if ipv6 else 2) + packet,
        1: ethernet(packet),
        101: packet,
        108: struct.pack(">I", 30 if ipv6 else 2) + packet,
        113: struct.pack(">HHH8s", 0, 772, 6, bytes(8)) + kind + packet,
        276: kind + struct.pack(">HIHBB8s", 0, 1, 772, 0, 6, bytes(8)) + packet,
    }[link]


def pcap(packets: Iterable[bytes], link: int = 1, order: str = "<", nano: bool = False, snap: int = 2**18) -> bytes:
    """A classic capture file; of each packet `snap` bytes are kept."""
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)]
    for number, packet in enumerate(packets):
        kept = packet[:snap]
        out.append(struct.pack(order + "IIII", 1_700_000_000, number, len(kept), len(packet)) + kept)
    return b"".join(out)


def pcapng(packets: Iterable[bytes], link: int = 1, order: str = "<", nano: bool = False) -> bytes:
    """The same in the newer format, with a block besides that no reader needs to know."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + length + body + length

    resolution = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0) if nano else b""
    out = [
        block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(order + "HHI", link, 0, 0) + resolution),
        block(0xBAD, b"whatever"),
    ]
    for number, packet in enumerate(packets):
        ticks = 1_700_000_000 * (10**9 if nano else 10**6) + number
        about = struct.pack(order + "IIIII", 0, ticks >> 32, ticks % 2**32, len(packet), len(packet))
        out.append(block(6, about + packet))
    return b"".join(out)


def frame(kind: int, payload: bytes, stream: int = 1, flags: int = 0) -> bytes:
    """An HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def message(data: bytes, compressed: int = 0) -> bytes:
    """A message as gRPC writes it into a stream."""
    return struct.pack(">BI", compressed, len(data)) + data


def grpc_stream(messages: Sequence[bytes], client: bool = True, most: int = 2**14) -> bytes:
    """One direction of a gRPC call in the open, its data in frames of up to `most` bytes."""
    out = [PREFACE if client else b"", frame(4, bytes(6), 0), frame(1, b"headers", 1, 4)]
    for one in messages:
        data = message(one)
        out += [frame(0, data[place : place + most]) for place in range(0, len(data), most)]
    return b"".join(out)


def segments(way: Way, data: bytes, start: int = 1000, most: int = 1400) -> list[bytes]:
    """The packets of one direction from its first on."""
    opening = [tcp(way, start, b"", SYN)]
    return opening + [
        tcp(way, start + 1 + place, data[place : place + most]) for place in range(0, len(data), most)
    ]  # fmt: skip
