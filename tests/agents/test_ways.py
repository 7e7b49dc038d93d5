"""The way to a neighbour where it is not straight: through a proxy, by a relay, or both."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.names import check_address
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.links.grpc_transport import dials
from roundelay.agents.links.ways import proxy_for
from roundelay.agents.site.taking_part import Site
from roundelay.cli.app import app
from tests.agents.connect_proxy import connect_proxy, relay
from tests.agents.likeness import check_same, simulated
from tests.agents.processes import ProcessRing, free_ports, make_ring, own_functions, wait_until

SITES, HOPS, SEED = 4, 40, 1


def ring_with(folder: Path, addresses: Sequence[str], proxies: dict[int, dict[str, str]]) -> tuple[ProcessRing, rl.Run]:
    """A ring of four, some of which have proxies in their environment."""
    problem = rl.paper_least_squares(agents=SITES, samples=6, dim=2, seed=SEED)

    def wrap(site: Site, number: int) -> None:
        os.environ.update(proxies.get(number, {}))

    ring = make_ring(
        folder, own_functions(problem), rl.IADMM(), Stopping(None, HOPS), addresses=addresses, seed=SEED, wrap=wrap
    )
    return ring, simulated(rl.IADMM(), problem, rl.ring(SITES), HOPS, SEED)


def connected(log: Path) -> set[str]:
    """What the proxy has connected to."""
    lines = [line.split(" ") for line in log.read_text().splitlines()]
    return {target for _, target, told, *_ in lines if told == "200"}


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy"])
def test_who_may_only_dial_out_does_it_through_the_proxy(variable: str, tmp_path: Path) -> None:
    """Sites 0 and 2 have no address and a proxy, which wants a name and a password that need quoting."""
    one, other, proxy = (f"127.0.0.1:{port}" for port in free_ports(3))
    log = tmp_path / "asked"
    there = {variable: f"http://ward%207:p%40ss@{proxy}"}
    ring, run = ring_with(tmp_path / "ring", ["", one, "", other], {0: there, 2: there})
    with connect_proxy(proxy, log, credentials="ward 7:p@ss"):
        ring.run()
    check_same(ring, run)
    assert connected(log) == {one, other}


def test_what_is_not_to_go_through_the_proxy_is_dialled_straight(tmp_path: Path) -> None:
    one, other, proxy = (f"127.0.0.1:{port}" for port in free_ports(3))
    log = tmp_path / "asked"
    there = {"HTTPS_PROXY": f"http://{proxy}", "NO_PROXY": "example.org,127.0.0.1"}
    ring, run = ring_with(tmp_path / "ring", ["", one, "", other], {0: there})
    with connect_proxy(proxy, log):
        ring.run()
    check_same(ring, run)
    assert log.read_text() == ""


def test_a_proxy_that_refuses_is_named(tmp_path: Path) -> None:
    """The agent waits, says what the proxy says, and goes on when there is a way."""
    one, other, proxy = (f"127.0.0.1:{port}" for port in free_ports(3))
    log, said = tmp_path / "asked", tmp_path / "said"

    def noting(site: Site, number: int) -> None:
        if number == 0:
            os.environ["HTTPS_PROXY"] = f"http://ward:wrong@{proxy}"
            note_trouble(site, said)

    ring, run = ring_with(tmp_path / "ring", ["", one, "", other], {})
    ring.wrap = noting
    try:
        with connect_proxy(proxy, log, credentials="ward:right"):
            for number in range(SITES):
                ring.start(number)
            wait_until(lambda: said.exists() and "407" in said.read_text(), "the refusal is told")
            assert f"The proxy {proxy} does not connect to" in said.read_text()
        log.unlink()
        with connect_proxy(proxy, log, credentials="ward:wrong"):
            ring.wait()
    finally:
        ring.stop()
    check_same(ring, run)


def note_trouble(site: Site, said: Path) -> None:
    """Write what the page would say of the links, as long as it says something."""
    tasks = []

    async def noting(watch: object) -> None:
        while True:
            trouble = [link.trouble for link in watch.status().links if link.trouble]  # type: ignore[attr-defined]
            if trouble:
                said.write_text("\n".join(trouble))
            await asyncio.sleep(0.02)

    site.on_epoch = lambda watch: tasks.append(asyncio.get_running_loop().create_task(noting(watch)))


def test_a_site_is_met_at_a_relay(tmp_path: Path) -> None:
    """One site by a relay, one that only dials, through a proxy, and two with addresses: every kind of link there is."""
    one, other, proxy, post_office = (f"127.0.0.1:{port}" for port in free_ports(4))
    log = tmp_path / "asked"
    addresses = [f"relay://{post_office}", one, other, ""]
    ring, run = ring_with(tmp_path / "ring", addresses, {3: {"HTTPS_PROXY": f"http://{proxy}"}})
    with connect_proxy(proxy, log), relay(post_office, tmp_path / "relay.log"):
        ring.run()
    check_same(ring, run)
    assert connected(log) == {post_office, other}


def test_all_may_meet_at_relays_and_be_killed(tmp_path: Path) -> None:
    """Nobody listens; a site is killed in the middle, and the relay is started anew."""
    here, there = free_ports(2)
    relays = [f"127.0.0.1:{here}", f"127.0.0.1:{there}"]
    ring, run = ring_with(tmp_path / "ring", [f"relay://{relays[number % 2]}" for number in range(SITES)], {})
    try:
        with relay(relays[1], tmp_path / "there.log"):
            with relay(relays[0], tmp_path / "here.log"):
                for number in range(SITES):
                    ring.start(number)
                ring.wait_until_busy()
                ring.kill(1)
                wait_until(lambda: 1 in ring.reap(), "site 1 is killed")
            ring.start(1)
            (tmp_path / "here.log").unlink()
            with relay(relays[0], tmp_path / "here.log"):
                ring.wait()
    finally:
        ring.stop()
    check_same(ring, run)


def test_a_relay_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Both ends say so, and go on when it is there."""
    one, other, third, post_office = (f"127.0.0.1:{port}" for port in free_ports(4))
    ring, run = ring_with(tmp_path / "ring", [f"relay://{post_office}", one, other, third], {})
    ring.wrap = lambda site, number: note_trouble(site, tmp_path / f"said{number}")
    try:
        for number in range(SITES):
            ring.start(number)
        for number in (0, 1):
            said = tmp_path / f"said{number}"
            words = f"The relay at {post_office} can't be reached"
            wait_until(lambda s=said, w=words: s.exists() and w in s.read_text(), f"site {number} says why")  # type: ignore[misc]
        with relay(post_office, tmp_path / "relay.log"):
            ring.wait()
    finally:
        ring.stop()
    check_same(ring, run)


def test_who_is_met_at_a_relay_is_waited_for_there(tmp_path: Path) -> None:
    ring, _ = ring_with(tmp_path, ["a.example.org:1", "relay://b.example.org:1", "relay://c.example.org:1", ""], {})
    plan = ring.plan
    assert [dials(plan, 0, 1), dials(plan, 1, 0)] == [True, False]  # whatever the numbers say
    assert [dials(plan, 1, 2), dials(plan, 2, 1)] == [True, False]
    assert [dials(plan, 2, 3), dials(plan, 3, 2)] == [False, True]
    assert [dials(plan, 0, 3), dials(plan, 3, 0)] == [False, True]


@pytest.mark.parametrize("address", ["relay://host.example.org:7440", "relay://[::1]:7440", "127.0.0.1:1", ""])
def test_what_is_an_address(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    "address", ["relay://", "relay://host", "relay://relay://host:1", "https://host:1", "RELAY://host:1"]
)
def test_what_is_none(address: str) -> None:
    with pytest.raises(ValueError, match="can't be dialled"):
        check_address(address)


@pytest.mark.parametrize(
    "proxy", ["https://proxy:3128", "socks5://proxy:1080", "http://proxy", "proxy", "http://proxy:99999"]
)
def test_a_proxy_that_can_not_be_used_is_refused_at_once(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ValueError, match="HTTPS_PROXY in the environment is no proxy that can be used"):
        proxy_for("oslo.example.org:7443")
    monkeypatch.setenv("no_proxy", ".example.org")
    assert proxy_for("oslo.example.org:7443") == ""


@pytest.mark.parametrize(
    ("listen", "words"), [("relay://a:1", "address of its own"), ("256.0.0.1:1", "can't be listened on")]
)
def test_a_relay_says_where_it_can_not_listen(listen: str, words: str) -> None:
    said = CliRunner().invoke(app, ["relay", "--listen", listen])
    assert said.exit_code == 2 and words in said.stderr
