"""A ring of real processes under the eyes of a sniffer on the loopback interface."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import numpy as np
import pytest

from roundelay.agents.capture import Sniffer
from roundelay.transcripts import Transcript
from tests.agents.processes import ProcessRing


def needs_raw_sockets(folder: Path) -> None:
    """Skip where this process may not capture packets, and say why."""
    try:
        with Sniffer((), folder / "nothing.pcap"):
            pass
    except PermissionError as error:
        pytest.skip(str(error))


def run_captured(ring: ProcessRing, path: Path) -> Path:
    """Run the ring, and keep all its packets.

    The ring is started by a process of its own, which is forked before the sniffer's thread is there.
    """
    ports = [int(member.address.rpartition(":")[2]) for member in ring.plan.members]
    waiting, go = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(go)
            if os.read(waiting, 1):  # nothing, where the sniffer could not be started
                ring.run()
                code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(waiting)
    try:
        with Sniffer(ports, path) as sniffer:
            os.write(go, b"!")
            _, status = os.waitpid(child, 0)
            child = 0
    finally:
        os.close(go)
        if child:
            os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert sniffer.packets > 0 and sniffer.dropped == 0
    return path


def same(one: Transcript, other: Transcript) -> None:
    """Whether two transcripts are the same to the last bit."""
    for name in ("hop", "sender", "receiver", "relayed", "tokens"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert (one.sealed is None) == (other.sealed is None)
    if one.sealed is not None:
        for name in ("place", "sender", "receiver", "words", "bits", "length", "agents"):
            np.testing.assert_array_equal(getattr(one.sealed, name), getattr(other.sealed, name), name)
