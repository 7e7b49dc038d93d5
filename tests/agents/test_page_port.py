"""The page's port is taken by another program: the agent says so, and what to do."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.agents.small_ring import roundelay, small_ring


def test_a_port_that_is_taken_is_said_in_words(tmp_path: Path) -> None:
    with small_ring(tmp_path) as ring, socket.create_server(("127.0.0.1", 0)) as taken:
        seat = ring.seats[0]
        words = ("--ring", ring.ring, "--folder", seat.folder, "--data", seat.data, "--port", taken.getsockname()[1])
        said = roundelay("agent", *map(str, words))
    assert said.returncode == 4, said.stderr
    assert "Choose another port" in said.stderr and "Traceback" not in said.stderr
