"""What went along a connection comes back from its packets, however they were cut, repeated and shuffled."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given, strategies as st

from roundelay.agents.capture.packets import Packet, segment_of
from roundelay.agents.capture.streams import Stream, messages_of, messages_of_stream, streams_of
from tests.agents.fuzzing import patient
from tests.agents.packets import SYN, Way, frame, grpc_stream, message, segments, tcp

HERE = Way(40_000, 443)


def streams(packets: list[bytes], link: int = 101) -> list[Stream]:
    found = (segment_of(Packet(0, link, packet)) for packet in packets)
    return streams_of(one for one in found if one is not None)


@st.composite
def cuts(draw: st.DrawFn, length: int) -> list[tuple[int, int]]:
    """Parts that cover 0 to length, and others that overlap them, in any order."""
    places = sorted({0, length, *draw(st.lists(st.integers(0, length), max_size=8))})
    parts = list(pairwise(places))
    more = draw(st.lists(st.tuples(st.integers(0, length), st.integers(0, length)), max_size=6))
    parts += [(min(pair), max(pair)) for pair in more]
    return draw(st.permutations(parts + draw(st.lists(st.sampled_from(parts), max_size=4)) if parts else parts))


STARTS = st.sampled_from([0, 1000, 2**31 - 3, 2**32 - 1, 2**32 - 20])


@patient
@given(st.data(), st.binary(min_size=1, max_size=60), STARTS)
def test_any_cutting_repeating_and_shuffling(data: st.DataObject, content: bytes, start: int) -> None:
    parts = data.draw(cuts(len(content)))
    packets = [tcp(HERE, start + 1 + first, content[first:last]) for first, last in parts]
    packets.insert(data.draw(st.integers(0, len(packets))), tcp(HERE, start, b"", SYN))
    (stream,) = streams(packets)
    assert [*stream.pieces] == [(0, content)]
    assert stream.begun and stream.missing == 0
    # Without the packet that made the connection, too, but nobody knows then that this is all.
    (later,) = streams([packet for packet in packets if packet != tcp(HERE, start, b"", SYN)])
    assert [*later.pieces] == [(0, content)] and not later.begun


@patient
@given(st.data(), st.binary(min_size=1, max_size=60), STARTS)
def test_gaps_are_reported_and_nothing_is_made_up(data: st.DataObject, content: bytes, start: int) -> None:
    parts = data.draw(cuts(len(content)))
    kept = data.draw(st.lists(st.sampled_from(parts), min_size=1))
    snapped = data.draw(st.lists(st.integers(0, 60), min_size=len(kept), max_size=len(kept)))
    packets, seen, furthest = [tcp(HERE, start, b"", SYN)], set(), 0
    for (first, last), most in zip(kept, snapped, strict=True):
        packet = tcp(HERE, start + 1 + first, content[first:last])
        packets.append(packet[: len(packet) - (last - first) + most])
        seen |= set(range(first, min(last, first + most)))
        furthest = max(furthest, last if last > first else 0)
    (stream,) = streams(packets)
    assert {piece.offset + n for piece in stream.pieces for n in range(len(piece.data))} == seen
    for piece in stream.pieces:
        assert piece.data == content[piece.offset : piece.offset + len(piece.data)]
    assert stream.missing == furthest - len(seen)


def test_both_directions_and_two_connections_of_the_same_ports() -> None:
    back = Way(443, 40_000)
    packets = segments(HERE, b"one", 5) + segments(back, b"two", 9) + segments(HERE, b"three", 70_000)
    assert [stream.pieces[0].data for stream in streams(packets)] == [b"one", b"three", b"two"]


def test_more_than_the_numbers_can_count() -> None:
    """After 4 GiB the sequence numbers begin again."""
    step, count = 2**30, 9
    packets = [tcp(HERE, 0, b"", SYN)] + [tcp(HERE, 1 + n * step, b"%d" % n) for n in range(count)]
    (stream,) = streams(packets)
    assert [(piece.offset, piece.data) for piece in stream.pieces] == [(n * step, b"%d" % n) for n in range(count)]


def test_a_probe_before_the_first_byte() -> None:
    packets = [tcp(HERE, 9, b"", SYN), tcp(HERE, 9, b"?"), tcp(HERE, 10, b"abc"), tcp(HERE, 12, b"?")]
    (stream,) = streams(packets)
    assert [*stream.pieces] == [(0, b"abc")] and stream.missing == 0


MESSAGES = st.lists(st.binary(max_size=40), max_size=6)


@patient
@given(MESSAGES, st.booleans(), st.integers(1, 50))
def test_messages_come_back(sent: list[bytes], client: bool, most: int) -> None:
    assert list(messages_of(grpc_stream(sent, client, most))) == sent


def test_padding_other_frames_other_streams_and_compressed_messages() -> None:
    first, second = message(b"first"), message(b"second")
    data = b"".join(
        [
            frame(0, bytes([3]) + first[:4] + bytes(3), 1, 0x08),
            frame(6, b"pingping", 0),
            frame(0, second, 3),
            frame(0, message(b"packed", compressed=1), 3),
            frame(0, first[4:] + second, 1),
            frame(0, b"", 1, 0x08),
            frame(0, bytes([200]), 1, 0x08),
            frame(0, message(b"third"), 3)[:-1],
        ]
    )
    assert list(messages_of(data)) == [b"second", b"first", b"second"]


@patient
@given(st.binary(max_size=200))
def test_any_bytes_are_messages_or_none(data: bytes) -> None:
    assert sum(map(len, messages_of(data))) <= len(data)


def test_after_a_gap_reading_goes_on_at_the_next_mark() -> None:
    sent = [b"MARK" + bytes([n]) * 50 for n in range(20)]
    packets = segments(HERE, grpc_stream(sent), most=64)
    for lost in range(2, len(packets)):
        (stream,) = streams(packets[:lost] + packets[lost + 1 :])
        found = list(messages_of_stream(stream, b"MARK"))
        assert set(found) <= set(sent) and len(found) >= len(sent) - 3
    # A capture that began too late has no beginning at all.
    (stream,) = streams(packets[5:])
    assert list(messages_of_stream(stream, b"MARK")) == sent[-len(list(messages_of_stream(stream, b"MARK"))) :]
    assert len(list(messages_of_stream(stream, b"MARK"))) >= 15


def test_another_protocol_has_no_messages() -> None:
    shuffled = bytearray(grpc_stream([b"MARK one"]))
    random.Random(0).shuffle(shuffled)
    for data in (b"GET / HTTP/1.1\r\n\r\n" * 10, bytes(shuffled), b"\x16\x03\x01" + bytes(100)):
        (stream,) = streams(segments(HERE, data))
        assert list(messages_of_stream(stream, b"MARK")) == []
