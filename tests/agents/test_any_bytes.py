"""Any bytes at all: a frame, a baton, or a refusal in words, and never more memory than came in."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable

import numpy as np
from hypothesis import given, strategies as st

from roundelay.agents.protocol.baton import (
    WORDS,
    Baton,
    BatonError,
    Layout,
    Phase,
    baton_size,
    pack_baton,
    unpack_baton,
)
from roundelay.agents.protocol.wire import (
    HEADER_BYTES,
    VERSION,
    FrameError,
    Kind,
    checksum_of,
    pack_frame,
    unpack_frame,
)
from tests.agents.fuzzing import changed_bytes, patient
from tests.agents.world import RUN

RUN_BYTES = bytes.fromhex(RUN)
LAYOUT = Layout(3, 2, 2, (4, 2), (3, 0), shares=4)
GOOD = pack_frame(Kind.BATON, RUN_BYTES, 0, 7, *pack_baton(Baton(Phase.ITERATE, 7, 1, 0, 0, 5, np.ones(2)), 3))
SMALL = 200_000  # bytes: a few objects, and nothing that a header claims


def bounded(work: Callable[[], None]) -> None:
    tracemalloc.start()
    try:
        work()
        assert tracemalloc.get_traced_memory()[1] < SMALL
    finally:
        tracemalloc.stop()


def made_up(
    version: int, kind: int, spare: int, epoch: int, run: bytes, k: int, length: int | None, rest: bytes
) -> bytes:
    """A frame with these claims and the right checksum."""
    head = struct.pack(
        "<4sBBHI16sQQ", b"RNDL", version, kind, spare, epoch, run, k, len(rest) if length is None else length
    )
    return head + struct.pack("<I", checksum_of(rest, checksum_of(head))) + rest


def headers() -> st.SearchStrategy[bytes]:
    """Well-formed headers with any claims."""
    return st.builds(
        made_up, st.just(VERSION) | st.integers(0, 255), st.integers(0, 255), st.integers(0, 65535), st.integers(0, 2**32 - 1),
        st.just(RUN_BYTES) | st.binary(min_size=16, max_size=16), st.integers(0, 2**64 - 1),
        st.none() | st.integers(0, 2**64 - 1), st.binary(max_size=100),
    )  # fmt: skip


@patient
@given(st.binary(max_size=300) | headers() | changed_bytes(GOOD))
def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    def read() -> None:
        try:
            frame = unpack_frame(data, RUN_BYTES)
        except FrameError as error:
            assert str(error).endswith((".", "one"))
        else:
            assert len(frame.body) == len(data) - HEADER_BYTES

    bounded(read)


@patient
@given(st.binary(max_size=200) | changed_bytes(GOOD[HEADER_BYTES:]) | st.binary(min_size=48, max_size=48))
def test_any_bytes_are_a_baton_or_refused(body: bytes) -> None:
    def read() -> None:
        try:
            baton = unpack_baton(memoryview(body), LAYOUT)
        except BatonError as error:
            assert str(error).endswith(".") or "dimension" in str(error)
        else:
            expected = LAYOUT.numbers(baton.phase, baton.purpose)
            assert expected == len(baton.numbers)
            assert len(body) == baton_size(3, expected) + LAYOUT.beside(baton.phase)
            assert baton.origin < 3 and baton.content < 8
            assert baton.phase in WORDS or np.isfinite(baton.numbers).all()

    bounded(read)
