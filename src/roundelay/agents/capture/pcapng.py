"""Packets from a pcapng file: blocks, of which only those that hold packets or describe interfaces matter here."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from roundelay.agents.capture.pcap import SECOND, Packet, read_exactly

SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_RESOLUTION = 9  # the option that says how fine the clock is
_MICROSECONDS = 10**6


class Block(NamedTuple):
    """A block: the byte order of its section, its kind, and what stands in it."""

    order: str
    kind: int
    body: bytes


class _Interface(NamedTuple):
    link: int
    ticks: int  # in a second
    snap: int


def blocks_of(file: BinaryIO, source: Path) -> Iterator[Block]:
    """The blocks of a file that begins with one of a section."""
    order, number = "", 0
    while head := file.read(8):
        number += 1
        damaged = ValueError(f"Block {number} of {source} is damaged, or the file ends in it: capture it again.")
        if len(head) < 8:
            raise damaged
        opening = b""
        if head[:4] == b"\x0a\x0d\x0d\x0a":  # reads the same in both byte orders, and says which it is
            opening = read_exactly(file, 4) or b""
            order = _ORDERS.get(opening, "")
        if not order:
            raise damaged
        kind, length = struct.unpack(order + "II", head)
        if length % 4 or length < 12 + len(opening):
            raise damaged
        rest = read_exactly(file, length - 8 - len(opening))
        if rest is None or struct.unpack(order + "I", rest[-4:])[0] != length:
            raise damaged
        yield Block(order, kind, rest[:-4])


def packets_of_blocks(blocks: Iterable[Block], source: Path) -> Iterator[Packet]:
    """The packets among blocks; each interface of a section has its link type and its clock."""
    interfaces: list[_Interface] = []
    for order, kind, body in blocks:
        try:
            if kind == SECTION:
                interfaces = []
            elif kind == INTERFACE:
                interfaces.append(_interface(order, body))
            elif kind == ENHANCED:
                which, high, low, kept, _whole = struct.unpack_from(order + "IIIII", body)
                link, ticks, _ = interfaces[which]
                if kept > len(body) - 20:
                    raise IndexError
                yield Packet((high << 32 | low) * SECOND // ticks, link, body[20 : 20 + kept])
            elif kind == SIMPLE:
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
