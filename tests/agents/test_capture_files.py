"""Capture files: every format comes back packet for packet, and what is damaged is refused in a sentence."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from roundelay.agents.capture.packets import Packet, Segment, pcap_header, pcap_record, read_packets, segment_of
from tests.agents.fuzzing import changed_bytes, patient
from tests.agents.packets import Way, ethernet, linked, pcap, pcapng, tcp

WRITERS = {"pcap": pcap, "pcapng": pcapng}
PACKETS = [ethernet(tcp(Way(1, 2), 5, b"hello")), b"", b"x" * 61]


def read(folder: Path, content: bytes) -> list[Packet]:
    path = folder / "some.pcap"
    path.write_bytes(content)
    return list(read_packets(path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
@pytest.mark.parametrize("kind", WRITERS)
def test_packets_come_back(folder: Path, kind: str, order: str, nano: bool) -> None:
    found = read(folder, WRITERS[kind](PACKETS, 113, order, nano))
    unit = 1 if nano else 1000
    assert found == [Packet(1_700_000_000 * 10**9 + n * unit, 113, data) for n, data in enumerate(PACKETS)]


def test_what_is_written_here_is_read_here(folder: Path) -> None:
    times = [0, 1, 1_700_000_000_123_456_789]
    content = pcap_header(1) + b"".join(map(pcap_record, times, PACKETS))
    assert read(folder, content) == [Packet(time, 1, data) for time, data in zip(times, PACKETS, strict=True)]


@pytest.mark.parametrize("link", [0, 1, 101, 108, 113, 276])
@pytest.mark.parametrize("ipv6", [False, True])
def test_a_segment_is_found_behind_every_header(link: int, ipv6: bool) -> None:
    way = Way(50_000, 443, ipv6)
    found = segment_of(Packet(0, link, linked(link, tcp(way, 2**32 - 1, b"abc"))))
    assert found is not None
    assert (found.source.port, found.destination.port, found.sequence) == (50_000, 443, 2**32 - 1)
    # Padding behind a short packet is not data.
    assert (found.payload, found.length, found.syn) == (b"abc", 3, False)


def test_what_is_cut_short_says_how_much_is_missing() -> None:
    packet = ethernet(tcp(Way(1, 2), 5, b"a" * 100))
    found = segment_of(Packet(0, 1, packet[:-40]))
    assert found is not None and (len(found.payload), found.length) == (60, 100)


def test_vlan_tags_are_passed_over() -> None:
    found = segment_of(Packet(0, 1, ethernet(tcp(Way(1, 2), 5, b"abc"), vlan=True)))
    assert found is not None and found.payload == b"abc"


def test_other_packets_are_none() -> None:
    fragment = bytearray(tcp(Way(1, 2), 5, b"abc"))
    fragment[6] = 0x20
    udp = bytearray(tcp(Way(1, 2), 5, b"abc"))
    udp[9] = 17
    for data in (fragment, udp, b"", b"\x45", bytes(60), b"\xff" * 60):
        assert segment_of(Packet(0, 101, bytes(data))) is None
    assert segment_of(Packet(0, 147, bytes(60))) is None


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_that_ends_too_early_is_refused(folder: Path, kind: str) -> None:
    content = WRITERS[kind](PACKETS)
    whole = len(read(folder, content))
    for length in range(len(content)):
        try:
            assert len(read(folder, content[:length])) < whole
        except ValueError as error:
            assert str(error).endswith(".") and "some.pcap" in str(error)


def test_foreign_files_are_refused(folder: Path) -> None:
    for content in (b"", b"abc", b"PK\3\4" + bytes(100), b"\x89PNG" + bytes(50)):
        with pytest.raises(ValueError, match="is not a capture: give a pcap or pcapng file"):
            read(folder, content)
    with pytest.raises(ValueError, match="There is no file"):
        list(read_packets(folder / "nothing.pcap"))


@pytest.mark.parametrize("kind", WRITERS)
def test_a_length_that_is_not_there_takes_no_memory(folder: Path, kind: str) -> None:
    content = bytearray(WRITERS[kind](PACKETS))
    place = content.index(PACKETS[0]) - (8 if kind == "pcap" else 24)
    content[place : place + 4] = b"\xfc\xff\xff\xff"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="damaged"):
        read(folder, bytes(content))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


@patient
@given(st.data(), st.sampled_from(sorted(WRITERS)))
def test_damage_is_found_or_harmless(folder: Path, data: st.DataObject, kind: str) -> None:
    content = data.draw(changed_bytes(WRITERS[kind](PACKETS)))
    try:
        for packet in read(folder, content):
            segment_of(packet)
    except ValueError as error:
        assert "some.pcap" in str(error)


@patient
@given(st.binary(max_size=300), st.sampled_from([b"", b"\xd4\xc3\xb2\xa1", b"\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a"]))
def test_any_bytes_are_packets_or_refused(folder: Path, content: bytes, start: bytes) -> None:
    try:
        read(folder, start + content)
    except ValueError as error:
        assert "some.pcap" in str(error)


@patient
@given(st.binary(max_size=200), st.sampled_from([0, 1, 101, 108, 113, 276]))
def test_any_packet_is_a_segment_or_none(data: bytes, link: int) -> None:
    found = segment_of(Packet(0, link, data))
    assert found is None or isinstance(found, Segment)
