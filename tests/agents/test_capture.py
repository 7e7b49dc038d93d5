"""The paper's eavesdropper on real packets: with TLS it sees nothing, and without it what the simulator says it does."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.capture import EncryptedError, Sniffer, read_capture
from roundelay.agents.capture.packets import read_packets
from roundelay.agents.protocol.wire import MAGIC, VERSION
from roundelay.transcripts import Transcript
from tests.agents.captures import needs_raw_sockets, run_captured, same
from tests.agents.processes import ProcessRing, make_ring, own_functions
from tests.privacy.support import Truth, observed, relative

AGENTS, HOPS, AGENT = 5, 101, 3
PROBLEM = rl.paper_least_squares(AGENTS)
OPEN, SEALED = rl.PIADMM1(start=rl.UniformStart()), rl.PIADMM1(start=rl.SealedStart())
ATTACK = "parametric, step size"


@dataclass(frozen=True)
class Tapped:
    """A ring that has run, and what was captured of it."""

    ring: ProcessRing
    capture: Path

    @property
    def bytes_on_the_wire(self) -> bytes:
        return b"\n".join(packet.data for packet in read_packets(self.capture))


def tapped(folder: Path, algorithm: Any, encrypted: bool) -> Tapped:
    needs_raw_sockets(folder)
    ring = make_ring(
        folder / "ring", own_functions(PROBLEM), algorithm, Stopping(None, HOPS), seed=1, encrypted=encrypted
    )
    return Tapped(ring, run_captured(ring, folder / "ring.pcap"))


@pytest.fixture(scope="module")
def in_the_open(tmp_path_factory: pytest.TempPathFactory) -> Tapped:
    return tapped(tmp_path_factory.mktemp("open"), OPEN, encrypted=False)


@pytest.fixture(scope="module")
def with_sealed_start(tmp_path_factory: pytest.TempPathFactory) -> Tapped:
    return tapped(tmp_path_factory.mktemp("sealed"), SEALED, encrypted=False)


@pytest.fixture(scope="module")
def under_tls(tmp_path_factory: pytest.TempPathFactory) -> Tapped:
    return tapped(tmp_path_factory.mktemp("tls"), OPEN, encrypted=True)


@pytest.fixture(scope="module")
def truth() -> Truth:
    return observed(OPEN, PROBLEM, HOPS, seed=1)


def simulated(algorithm: Any) -> Transcript:
    run = rl.simulate(
        algorithm, PROBLEM, rl.ring(AGENTS), HOPS, seed=1, transcript=True, progress=False, engine="python"
    )
    assert run.transcript is not None
    return run.transcript


# ------------------------------------------------------------ what crosses the wire


def secrets_of(ring: ProcessRing) -> dict[str, list[bytes]]:
    """What must not be seen: every token whole, every coordinate, and what marks a frame of the ring."""
    # The last one goes out in the lap that ends the run.
    tokens = [*ring.transcript().tokens, *simulated(ring.plan.algorithm).tokens[-1:]]
    return {
        "tokens": [token.tobytes() for token in tokens],
        "coordinates": [number.tobytes() for token in tokens for number in token],
        "marks": [MAGIC + bytes([VERSION]), ring.plan.run_bytes],
    }


def test_without_tls_the_search_finds_every_token(in_the_open: Tapped) -> None:
    """The positive control of the next one."""
    data = in_the_open.bytes_on_the_wire
    for what, searched in secrets_of(in_the_open.ring).items():
        assert len(searched) >= (2 if what == "marks" else HOPS), what
        assert all(secret in data for secret in searched), what


def test_with_tls_there_is_nothing_of_them(under_tls: Tapped) -> None:
    data = under_tls.bytes_on_the_wire
    assert len(data) > 10_000  # the ring did speak
    for what, searched in secrets_of(under_tls.ring).items():
        assert not any(secret in data for secret in searched), what
        assert not any(secret[::-1] in data for secret in searched), what


def test_with_tls_a_reader_is_told_why(under_tls: Tapped) -> None:
    with pytest.raises(EncryptedError, match="encrypted by TLS"):
        read_capture(under_tls.capture, under_tls.ring.plan)
    said = audited(under_tls)
    assert said.returncode == 2 and said.stdout == ""
    assert "encrypted by TLS" in said.stderr and "Traceback" not in said.stderr


@pytest.mark.parametrize("which", ["in_the_open", "with_sealed_start"])
def test_without_tls_the_transcript_is_the_simulator_s_bit_for_bit(which: str, request: pytest.FixtureRequest) -> None:
    one: Tapped = request.getfixturevalue(which)
    found = read_capture(one.capture, one.ring.plan)
    same(found.transcript, simulated(one.ring.plan.algorithm))
    assert found.missing == () and found.skipped == ()
    assert found.frames > HOPS  # greetings and acknowledgements, too


# ------------------------------------------------------------ what an audit makes of it


def audited(one: Tapped, *more: str) -> subprocess.CompletedProcess[str]:
    words = [str(one.capture), "--ring", str(one.ring.folder / "ring.toml"), "--agent", f"site{AGENT}", *more]
    command = [sys.executable, "-m", "roundelay.cli", "audit", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def estimates(one: Tapped, observer: str) -> dict[str, Any]:
    said = audited(one, "--observer", observer, "--json")
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert told["agent"] == AGENT and told["visits"] == HOPS // AGENTS
    found: dict[str, Any] = told["estimates"]
    return found


@pytest.mark.parametrize("observer", ["eavesdropper", "neighbours"])
def test_an_audit_of_the_packets_gives_back_the_function(in_the_open: Tapped, truth: Truth, observer: str) -> None:
    found = estimates(in_the_open, observer)[ATTACK]
    H, g, x, y = (np.array(found[name]) for name in ("H", "g", "x", "y"))
    origin = np.zeros(PROBLEM.dim)
    true_x, true_y = truth.of(AGENT)
    assert found["converged"]
    assert relative(H, PROBLEM.hessian(AGENT, origin)) < 1e-6
    assert relative(g, PROBLEM.gradient(AGENT, origin)) < 1e-6
    assert relative(y[1:], true_y[1:]) < 1e-6
    assert relative(x[1:], true_x[1:]) < 1e-6
    # So the gradient is known anywhere, for instance where the agent ended.
    assert relative(H @ true_x[-1] + g, PROBLEM.gradient(AGENT, true_x[-1])) < 1e-6


def test_a_sealed_start_hides_the_gradient_and_not_the_hessian(with_sealed_start: Tapped) -> None:
    """What TLS would have hidden altogether. The gradient at 0 is off by itself: nothing of it is known."""
    run = rl.simulate(SEALED, PROBLEM, rl.ring(AGENTS), HOPS, seed=1, progress=False)
    origin = np.zeros(PROBLEM.dim)
    several = estimates(with_sealed_start, "eavesdropper")
    assert relative(np.array(several[ATTACK]["H"]), PROBLEM.hessian(AGENT, origin)) < 1e-6
    assert not several[ATTACK]["converged"]
    for name, found in several.items():
        assert relative(np.array(found["y"])[-1], run.y[AGENT]) > 0.1, name
        if "g" in found:
            assert relative(np.array(found["g"]), PROBLEM.gradient(AGENT, origin)) > 0.1, name


def test_the_command_in_words(in_the_open: Tapped) -> None:
    said = audited(in_the_open)
    assert said.returncode == 0, said.stderr
    assert f"agent {AGENT}'s Hessian H was estimated" in said.stdout


# ------------------------------------------------------------ the sniffer


def say(port_of: socket.socket, words: bytes) -> None:
    """Send words to a listening socket."""
    with socket.create_connection(port_of.getsockname()) as speaker:
        speaker.sendall(words)


def test_only_the_given_ports_are_kept(tmp_path: Path) -> None:
    needs_raw_sockets(tmp_path)
    path = tmp_path / "one.pcap"
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        say(one, b"before")
        with Sniffer([one.getsockname()[1]], path) as sniffer:
            say(one, b"first of all")
            say(other, b"not for you")
            say(one, b"last of all")
        say(one, b"after")
    packets = list(read_packets(path))
    data = b"".join(packet.data for packet in packets)
    assert len(packets) == sniffer.packets and sniffer.dropped == 0
    # Each once, though the interface shows every packet twice; the last one, too, which was sent just before the end.
    assert data.count(b"first of all") == data.count(b"last of all") == 1
    assert not any(words in data for words in (b"not for you", b"before", b"after"))


def test_without_the_right_to_it_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("socket.socket", refuse)
    with pytest.raises(PermissionError, match="may not capture packets: run it as root"), Sniffer([1], tmp_path / "a"):
        pass
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(PermissionError, match="on Linux only"), Sniffer([1], tmp_path / "a"):
        pass
