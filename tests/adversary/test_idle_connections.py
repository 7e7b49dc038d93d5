"""Strangers open connections by the thousand and say nothing: an agent with few open files finishes its fit."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.links import grpc_transport
from roundelay.agents.page import PageServer, server
from roundelay.agents.site.rehearsal import Rehearsal, prepare_ring
from roundelay.agents.site.taking_part import Site, SiteOptions
from tests.agents.apart import apart
from tests.agents.hospitals import TASK, table_of
from tests.agents.likeness import check_same, simulated
from tests.agents.processes import ProcessRing, make_ring, own_functions, wait_until

SITES, HOPS, SEED = 3, 60, 5
# Both neighbours of the last site dial it.
VICTIM = SITES - 1
FEW = 256
MANY = 1500


def why_not() -> str:
    """Why there can be no attack here, in words."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < MANY + 100:
        return f"a process may have only {hard} open files here, too few to attack another one with"
    return ""


@contextmanager
def idle_connections(address: str, with_tls: bool, ready: Path) -> Iterator[None]:
    """A process that connects and says nothing, or says hello as TLS does and nothing after that."""
    host, _, port = address.rpartition(":")
    attacker = os.fork()
    if not attacker:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (MANY + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            held = []
            for _ in range(MANY):
                try:
                    one = socket.create_connection((host, int(port)), timeout=5.0)
                    if with_tls:
                        one = context.wrap_socket(one, do_handshake_on_connect=False)
                        one.setblocking(False)
                        one.do_handshake()
                except OSError:  # also where the handshake has begun, and nobody goes on with it
                    pass
                held.append(one)
            ready.touch()
            signal.pause()
        finally:
            os._exit(1)
    try:
        wait_until(ready.exists, "all connections are made")
        yield
    finally:
        os.kill(attacker, signal.SIGKILL)
        os.waitpid(attacker, 0)


def with_few_open_files(site: Site, number: int) -> None:
    if number == VICTIM:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW))


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except OSError:
        return False
    return True


def attacked(folder: Path, wrap: object, with_tls: bool) -> tuple[ProcessRing, rl.Run]:
    """The victim is up and full of strangers when its neighbours begin to dial."""
    problem = rl.paper_least_squares(agents=SITES, samples=6, dim=2, seed=SEED)
    ring = make_ring(
        folder, own_functions(problem), rl.IADMM(), Stopping(None, HOPS), seed=SEED, wrap=wrap,
        options=SiteOptions(meter=True),
    )  # fmt: skip
    address = ring.plan.members[VICTIM].address
    try:
        ring.start(VICTIM)
        wait_until(lambda: listens(address), "the site that is attacked listens")
        with idle_connections(address, with_tls, folder / "connected"):
            for number in range(SITES):
                if number != VICTIM:
                    ring.start(number)
            ring.wait()
    finally:
        ring.stop()
    return ring, simulated(rl.IADMM(), problem, rl.ring(SITES), HOPS, SEED)


@pytest.mark.parametrize("with_tls", [False, True])
def test_a_fit_goes_on_among_idle_connections(with_tls: bool, tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    check_same(*attacked(tmp_path, with_few_open_files, with_tls))


def test_without_a_quota_the_agent_dies(tmp_path: Path) -> None:
    """What the quota is for: all open files are taken by strangers."""
    if reason := why_not():
        pytest.skip(reason)

    def wrap(site: Site, number: int) -> None:
        with_few_open_files(site, number)
        grpc_transport.most_connections = lambda: 100 * MANY

    with pytest.raises(AssertionError, match=f"site {VICTIM} ended with"):
        attacked(tmp_path, wrap, with_tls=False)


def test_nothing_is_imported_once_strangers_can_connect(tmp_path: Path) -> None:
    """An import opens files. A whole agent by its own command, with its page and its privacy meter."""
    header = [str(column) for column in (*TASK.features, TASK.target)]
    rows = {
        name: [[repr(cell) for cell in row] for row in table_of(name).tolist()] for name in ("Oslo", "Bergen", "Alta")
    }
    ring = prepare_ring(tmp_path / "ring", header, rows, TASK, rl.SealedLaps(wide=True), Stopping(1e-9))
    try:
        watched = start_watched(ring, tmp_path / "late.json")
        for seat in ring.seats[:-1]:
            ring.start(seat)
        wait_until(lambda: ring.done() and watched.poll() is not None, "all have their models")
        assert watched.returncode == 0 and not ring.failed()
    finally:
        ring.stop()
    late = json.loads((tmp_path / "late.json").read_text())
    assert late == []


WATCHED = """
import atexit, json, sys
from pathlib import Path
from roundelay.agents.links.grpc_transport import GrpcTransport
from roundelay.cli import main

serve, before = GrpcTransport._serve, set()

async def served(transport):
    await serve(transport)
    before.update(sys.modules)

GrpcTransport._serve = served
out = Path(sys.argv.pop(1))
atexit.register(lambda: out.write_text(json.dumps(sorted(set(sys.modules) - before) if before else ["never served"])))
main()
"""


def start_watched(ring: Rehearsal, out: Path) -> subprocess.Popen[bytes]:
    """The last seat's agent, which notes what it imports after it has begun to listen."""
    seat = ring.seats[-1]
    command = [
        sys.executable, "-c", WATCHED, str(out), "agent", "--ring", str(ring.ring), "--folder", str(seat.folder),
        "--data", str(seat.data), "--out", str(seat.model),
    ]  # fmt: skip
    with (seat.folder / "output.txt").open("ab") as output:
        ring.processes[seat.name] = subprocess.Popen(command, stdout=output, stderr=output)
    return ring.processes[seat.name]


@pytest.mark.parametrize("noted", [False, True])
def test_what_is_no_http_fills_no_log(
    noted: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user of the same machine, without the token, sends it again and again: each time the agent's output had kilobytes of it. The control has aiohttp's own log."""
    if noted:
        monkeypatch.setattr(server, "_own_log", lambda: logging.getLogger("aiohttp.server"))

    async def play() -> bytes:
        page = PageServer(lambda: None)  # type: ignore[arg-type,return-value]
        address = await page.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.partition("/?")[0].rpartition(":")[2]))
        writer.write(b"GET /?" + b"a=b&" * 1000 + b" HTTP/2\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await page.stop()
        return answer

    assert asyncio.run(play()).startswith(b"HTTP/1.0 400")
    assert bool(caplog.records) is noted


@pytest.mark.parametrize("counted", [True, False])
def test_the_page_has_room_for_a_few_only(counted: bool, tmp_path: Path) -> None:
    """Another user of the same machine connects to it again and again; what he can't have the agent keeps."""

    async def play() -> tuple[int, int]:
        if not counted:
            server.MOST_READERS = 100 * MANY
        page = PageServer(lambda: None, token="open")  # type: ignore[arg-type,return-value]
        address = await page.start()
        port = int(address.partition("/?")[0].rpartition(":")[2])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        gone = 0
        for reader, _ in idle[40:] if counted else []:
            gone += await reader.read() == b""
        for _, writer in idle:
            writer.close()
        assert page._runner is not None and page._runner.server is not None
        held = page._runner.server
        left = len(held.connections)
        while held.connections:
            await asyncio.sleep(0.01)
        # When they have gone there is room again.
        answer = await asyncio.to_thread(lambda: urllib.request.urlopen(address).status)
        assert answer == 200
        await page.stop()
        return gone, left

    gone, left = apart(tmp_path, play)
    assert (gone, left) == ((60, 32) if counted else (0, 100))
